//! The surroundings of an endpoint beside its assignment: the source of its randomness, the date, and its records.

use std::io::BufWriter;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use host::records::Records;
use host::surroundings::{Calendar, Seed};
use noq_proto::{ConnectionId, QlogConfig, QlogFactory, Side, TimeSource};

pub struct Surroundings {
    pub randomness: Randomness,
    pub calendar: Calendar,
    pub records: Records,
}

impl Surroundings {
    pub fn of_process(records: Records) -> Self {
        Self { randomness: Randomness::System, calendar: Calendar::System, records }
    }

    pub fn virtual_time(seed: Seed, records: Records) -> Self {
        Self { randomness: Randomness::Seeded(seed), calendar: Calendar::Virtual, records }
    }

    /// Returns the writer of qlog, if it is asked for.
    pub fn qlog(&self) -> Option<Arc<dyn QlogFactory>> {
        self.records.has_qlog().then(|| Arc::new(Qlog(self.records.clone())) as _)
    }
}

/// Source of the lengths and the order of what QUIC sends, as far as they are random.
#[derive(Debug, Clone, Copy)]
pub enum Randomness {
    System,
    Seeded(Seed),
}

/// The calendar, as noq-proto asks for it.
pub struct Days(pub Calendar);

impl TimeSource for Days {
    fn now(&self) -> SystemTime {
        self.0.now()
    }
}

/// A file for each connection. Their names have no time, unlike noq-proto's own, which have that of the real clock.
struct Qlog(Records);

impl QlogFactory for Qlog {
    fn for_connection(&self, side: Side, _: SocketAddr, first_id: ConnectionId, _: Instant) -> Option<QlogConfig> {
        match self.0.qlog(&format!("{first_id}-{side:?}").to_lowercase()) {
            Ok(file) => Some(QlogConfig::new(Box::new(BufWriter::new(file?)))),
            Err(what) => {
                eprintln!("noq-fec: {what}");
                None
            }
        }
    }
}
