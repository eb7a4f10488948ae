//! Randomness and date of an endpoint in virtual time.

use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use crate::simulator::VIRTUAL_TIME_BEGINS;

/// The length of the connection ID that a client makes up for its server.
const FIRST_ID_LENGTH: usize = 20;

/// Decides all randomness of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed([u8; 32]);

impl Seed {
    /// Seeds of different names are independent.
    pub fn of(seed: u64, name: &str) -> Self {
        Self::digest(&[&seed.to_le_bytes(), name.as_bytes()].concat())
    }

    /// Returns the seed of a QUIC stack's generators.
    pub fn of_generators(&self) -> [u8; 32] {
        self.part("generators").0
    }

    /// Returns the seed that decides when BBR probes for bandwidth.
    pub fn of_congestion_control(&self) -> [u8; 16] {
        *self.part("congestion control").0.first_chunk().expect("a seed is longer")
    }

    /// The connection ID that a client begins with.
    pub fn first_id(&self) -> [u8; FIRST_ID_LENGTH] {
        *self.part("first connection ID").0.first_chunk().expect("a seed is longer")
    }

    fn part(&self, name: &str) -> Self {
        Self::digest(&[&self.0, name.as_bytes()].concat())
    }

    fn digest(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

/// The date, for certificates and tokens.
#[derive(Debug, Clone, Copy)]
pub enum Calendar {
    System,
    /// The first of January 2000, at which virtual time begins.
    Virtual,
}

impl Calendar {
    pub fn now(self) -> SystemTime {
        match self {
            Self::System => SystemTime::now(),
            Self::Virtual => UNIX_EPOCH + VIRTUAL_TIME_BEGINS,
        }
    }
}
