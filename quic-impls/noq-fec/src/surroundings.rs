//! What is around an endpoint beside its assignment: where its randomness comes from, what day it is, and what it records.

use std::env;
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use host::simulator::VIRTUAL_TIME_BEGINS;
use noq_proto::{ConnectionId, QlogConfig, QlogFactory, QlogFileFactory, Side, TimeSource};
use ring::digest::{SHA256, digest};
use rustls::KeyLog;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// The length of the connection ID that a client makes up for its server.
const FIRST_ID_LENGTH: usize = 20;

pub struct Surroundings {
    pub randomness: Randomness,
    pub calendar: Calendar,
    /// Where qlog goes, if it is written.
    pub qlog: Option<Arc<dyn QlogFactory>>,
    pub key_log: Arc<dyn KeyLog>,
}

impl Surroundings {
    /// Those of a process: the variables QLOGDIR and SSLKEYLOGFILE say what it records. An error is one line.
    pub fn of_process() -> Result<Self, String> {
        Ok(Self {
            randomness: Randomness::System,
            calendar: Calendar::System,
            qlog: match variable("QLOGDIR") {
                None => None,
                Some(folder) => {
                    fs::create_dir_all(&folder).map_err(|error| format!("QLOGDIR: {}: {error}", folder.display()))?;
                    Some(Arc::new(QlogFileFactory::new(folder)))
                }
            },
            key_log: match variable("SSLKEYLOGFILE") {
                None => Arc::new(rustls::NoKeyLog),
                Some(file) => Arc::new(Secrets::appended_to(&file).map_err(|error| format!("SSLKEYLOGFILE: {error}"))?),
            },
        })
    }

    /// Those of an endpoint in virtual time that records nothing.
    pub fn virtual_time(seed: Seed) -> Self {
        Self {
            randomness: Randomness::Seeded(seed),
            calendar: Calendar::Virtual,
            qlog: None,
            key_log: Arc::new(rustls::NoKeyLog),
        }
    }

    /// The same, with qlog and TLS secrets in a folder. An error is one line.
    pub fn recording(self, folder: &Path) -> Result<Self, String> {
        Ok(Self {
            qlog: Some(Arc::new(VirtualQlog(folder.to_owned()))),
            key_log: Arc::new(Secrets::appended_to(&folder.join("keys.log"))?),
            ..self
        })
    }
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Where the lengths and the order of what QUIC sends come from, as far as they are random.
#[derive(Debug, Clone, Copy)]
pub enum Randomness {
    System,
    Seeded(Seed),
}

/// Decides all randomness of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed([u8; 32]);

impl Seed {
    /// Seeds of different names are independent.
    pub fn of(seed: u64, name: &str) -> Self {
        Self::digest(&[&seed.to_le_bytes(), name.as_bytes()].concat())
    }

    /// What noq-proto seeds its generators with.
    pub fn of_generators(&self) -> [u8; 32] {
        self.part("generators").0
    }

    /// What decides when BBR probes for bandwidth.
    pub fn of_congestion_control(&self) -> [u8; 16] {
        *self.part("congestion control").0.first_chunk().expect("a seed is longer")
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

/// Writes qlog files into a folder. Their names have no time, unlike noq-proto's own, which have that of the real clock.
struct VirtualQlog(PathBuf);

impl QlogFactory for VirtualQlog {
    fn for_connection(&self, side: Side, _: SocketAddr, first_id: ConnectionId, _: Instant) -> Option<QlogConfig> {
        let side = format!("{side:?}").to_lowercase();
        let path = self.0.join(format!("{first_id}-{side}.qlog"));
        match File::create(&path) {
            Ok(file) => Some(QlogConfig::new(Box::new(BufWriter::new(file)))),
            Err(error) => {
                eprintln!("noq-fec: qlog: {}: {error}", path.display());
                None
            }
        }
    }
}

/// A file of TLS secrets. One that can't be written is noticed when it is opened: later, rustls takes no error.
#[derive(Debug)]
struct Secrets(Mutex<File>);

impl Secrets {
    /// An error is one line.
    fn appended_to(path: &Path) -> Result<Self, String> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        Ok(Self(Mutex::new(file.map_err(|error| format!("{}: {error}", path.display()))?)))
    }
}

impl KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        if let Err(error) = self.0.lock().expect("nobody panics with it").write_all(line.as_bytes()) {
            eprintln!("noq-fec: TLS secrets: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_seed_and_name_has_its_own_randomness() {
        let seeds = [(0, "a"), (0, "b"), (1, "a"), (u64::MAX, "a")].map(|(seed, name)| Seed::of(seed, name));
        for (n, seed) in seeds.iter().enumerate() {
            assert_ne!(seed.of_generators()[..FIRST_ID_LENGTH], seed.first_id()[..]);
            assert_ne!(seed.of_congestion_control(), seed.first_id()[..16]);
            for other in &seeds[..n] {
                assert_ne!(seed.of_generators(), other.of_generators());
                assert_ne!(seed.of_congestion_control(), other.of_congestion_control());
                assert_ne!(seed.first_id(), other.first_id());
            }
        }
        assert_eq!(Seed::of(7, "a").first_id(), Seed::of(7, "a").first_id());
    }
}
