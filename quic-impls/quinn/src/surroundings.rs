//! The environment of an endpoint besides its assignment: its randomness, its date, and its records.

use std::time::SystemTime;

use host::records::Records;
use host::surroundings::{Calendar, Seed};
use quinn_proto::TimeSource;

pub struct Surroundings {
    /// Seed of the lengths and the order of what QUIC sends, as far as they are random; the system has none.
    pub seed: Option<Seed>,
    pub calendar: Calendar,
    pub records: Records,
}

impl Surroundings {
    pub fn of_process(records: Records) -> Self {
        Self { seed: None, calendar: Calendar::System, records }
    }

    pub fn virtual_time(seed: Seed, records: Records) -> Self {
        Self { seed: Some(seed), calendar: Calendar::Virtual, records }
    }
}

/// The calendar, as quinn-proto asks for it.
pub struct Days(pub Calendar);

impl TimeSource for Days {
    fn now(&self) -> SystemTime {
        self.0.now()
    }
}
