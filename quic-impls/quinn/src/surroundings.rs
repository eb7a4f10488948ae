//! What is around an endpoint beside its assignment: where its randomness comes from, what day it is, and what it records.

use std::time::{SystemTime, UNIX_EPOCH};

use host::simulator::VIRTUAL_TIME_BEGINS;
use hq::records::Records;
use quinn_proto::{ConnectionId, TimeSource};
use ring::digest::{SHA256, digest};
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// The length of the connection ID that a client makes up for its server.
const FIRST_ID_LENGTH: usize = 20;

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

/// Decides all randomness of an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Seed([u8; 32]);

impl Seed {
    /// Seeds of different names are independent.
    pub fn of(seed: u64, name: &str) -> Self {
        Self::digest(&[&seed.to_le_bytes(), name.as_bytes()].concat())
    }

    /// What quinn-proto seeds its generators with.
    pub fn of_generators(&self) -> [u8; 32] {
        self.part("generators").0
    }

    /// The connection ID that a client begins with.
    pub fn first_id(&self) -> ConnectionId {
        ConnectionId::new(&self.part("first connection ID").0[..FIRST_ID_LENGTH])
    }

    fn part(&self, name: &str) -> Self {
        Self::digest(&[&self.0, name.as_bytes()].concat())
    }

    fn digest(bytes: &[u8]) -> Self {
        Self(digest(&SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

/// What day it is, for certificates and tokens.
#[derive(Debug, Clone, Copy)]
pub enum Calendar {
    System,
    /// The first of January 2000, at which virtual time begins.
    Virtual,
}

impl TimeProvider for Calendar {
    fn current_time(&self) -> Option<UnixTime> {
        Some(match self {
            Self::System => UnixTime::now(),
            Self::Virtual => UnixTime::since_unix_epoch(VIRTUAL_TIME_BEGINS),
        })
    }
}

impl TimeSource for Calendar {
    fn now(&self) -> SystemTime {
        match self {
            Self::System => SystemTime::now(),
            Self::Virtual => UNIX_EPOCH + VIRTUAL_TIME_BEGINS,
        }
    }
}
