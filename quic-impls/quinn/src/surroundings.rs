//! What is around an endpoint beside its assignment: where its randomness comes from, what day it is, and what it records.

use std::time::SystemTime;

use host::records::Records;
use host::surroundings::{Calendar, Seed};
use quinn_proto::TimeSource;

pub struct Surroundings {
    /// What decides the lengths and the order of what QUIC sends, as far as they are random; the system does without one.
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
