//! The endpoint contract of fecbench (quic-impls/README.md): the JSON file that an endpoint is started
//! with, the events that it writes, and its exit codes. It refuses unknown keys, options that impl.toml doesn't
//! have, and values outside of the ranges given there.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fec::Code;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::schemes::{Complaints, Redundancy, Schemes};

const EXIT_FAILURE: u8 = 1;
pub const EXIT_BAD_INPUT: u8 = 2;
/// The convention of the QUIC interop runner.
const EXIT_UNSUPPORTED: u8 = 127;

/// In quarters of a congestion window per round-trip time: RFC 9002, section 7.7.
const DEFAULT_PACING: u32 = 5;

/// The largest transfer, in bytes.
const LARGEST: u64 = 1 << 40;

/// What an endpoint has to do.
#[derive(Debug)]
pub struct Assignment {
    pub role: Role,
    /// Where the server listens.
    pub address: SocketAddr,
    pub server_name: String,
    pub workload: Workload,
    pub content_seed: u64,
    pub options: Options,
    pub certificate: PathBuf,
    pub private_key: PathBuf,
    pub authority: PathBuf,
    /// Where an endpoint leaves files.
    pub log_folder: PathBuf,
    /// Where to leave the series `cwnd`, when it was asked for.
    pub cwnd_series: Option<PathBuf>,
    pub deadline: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

impl Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// A transfer of `size` bytes.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    pub direction: Direction,
    pub size: u64,
}

impl Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Download => "download",
            Direction::Upload => "upload",
        };
        write!(f, "{direction} of {} bytes", self.size)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Download,
    Upload,
}

/// Those of impl.toml.
#[derive(Debug, Clone)]
pub struct Options {
    /// None turns FEC off.
    pub schemes: Option<Schemes>,
    pub congestion_control: CongestionControl,
    /// In bytes.
    pub initial_window: u64,
    /// Quarters of a congestion window per round-trip time.
    pub slow_start_pacing: u32,
    pub packet_size: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionControl {
    Cubic,
    NewReno,
    Bbr3,
}

/// Why an assignment is not taken on, in one line.
#[derive(Debug, PartialEq)]
pub enum Refused {
    /// The file or a value in it is wrong.
    Wrong(String),
    /// This implementation doesn't have what was asked for.
    Unsupported(String),
}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(what) => f.write_str(what),
            Self::Unsupported(what) => write!(f, "{what} is not supported"),
        }
    }
}

type Result<T> = std::result::Result<T, Refused>;

fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(Refused::Wrong(what.into()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u64,
    role: String,
    address: String,
    port: u16,
    #[serde(default)]
    server_name: String,
    workload: Map<String, Value>,
    content_seed: u64,
    options: Map<String, Value>,
    #[serde(default)]
    certificate: PathBuf,
    #[serde(default)]
    private_key: PathBuf,
    #[serde(default)]
    authority: PathBuf,
    log_folder: PathBuf,
    #[serde(default)]
    series: Vec<String>,
    deadline_s: f64,
}

/// Reads an assignment. What it refuses names the file, the key and what would be right.
pub fn read(path: &Path) -> Result<Assignment> {
    let text = std::fs::read(path).or_else(|error| wrong(format!("cannot read {}: {error}", path.display())))?;
    parse(&text).map_err(|refused| match refused {
        Refused::Wrong(what) => Refused::Wrong(format!("{}: {what}", path.display())),
        Refused::Unsupported(what) => Refused::Unsupported(what),
    })
}

/// Refuses a JSON object that an assignment could not have as its options.
pub fn check_options(text: &[u8]) -> Result<()> {
    let values = serde_json::from_slice(text).or_else(|error| wrong(format!("options: no JSON object: {error}")))?;
    parse_options(values).map(drop)
}

/// Reads an assignment from the text of its file.
pub fn parse(text: &[u8]) -> Result<Assignment> {
    accept(serde_json::from_slice(text))
}

/// Reads an assignment from what the text of its file means.
pub fn parse_value(value: Value) -> Result<Assignment> {
    accept(serde_json::from_value(value))
}

fn accept(document: serde_json::Result<Document>) -> Result<Assignment> {
    document.or_else(|error| wrong(format!("not an assignment: {error}")))?.assignment()
}

impl Document {
    fn assignment(self) -> Result<Assignment> {
        if self.version != 1 {
            return wrong(format!("version: {}; this program knows version 1", self.version));
        }
        let role = match self.role.as_str() {
            "client" => Role::Client,
            "server" => Role::Server,
            other => return wrong(format!("role: {other:?} is not one of client, server")),
        };
        let Ok(address) = self.address.parse::<IpAddr>() else {
            return wrong(format!("address: {:?} is not an IP address", self.address));
        };
        if self.port == 0 {
            return wrong("port: 0 is not in 1 to 65535");
        }
        if !(self.deadline_s > 0.0 && self.deadline_s <= 1e6) {
            return wrong(format!("deadline_s: {} is not above 0 and up to 1000000", self.deadline_s));
        }
        self.require_for(role)?;
        Ok(Assignment {
            role,
            address: SocketAddr::new(address, self.port),
            server_name: self.server_name,
            workload: parse_workload(self.workload)?,
            content_seed: self.content_seed,
            options: parse_options(self.options)?,
            cwnd_series: parse_series(&self.series, &self.log_folder)?,
            log_folder: self.log_folder,
            certificate: self.certificate,
            private_key: self.private_key,
            authority: self.authority,
            deadline: Duration::from_secs_f64(self.deadline_s),
        })
    }

    fn require_for(&self, role: Role) -> Result<()> {
        let needed = match role {
            Role::Client => {
                [("authority", self.authority.as_os_str().is_empty()), ("server_name", self.server_name.is_empty())]
            }
            Role::Server => [
                ("certificate", self.certificate.as_os_str().is_empty()),
                ("private_key", self.private_key.as_os_str().is_empty()),
            ],
        };
        match needed.iter().find(|(_, is_missing)| *is_missing) {
            Some((key, _)) => wrong(format!("{key}: missing; a {role} needs it")),
            None => Ok(()),
        }
    }
}

fn parse_workload(values: Map<String, Value>) -> Result<Workload> {
    let mut values = Values::new("workload", values);
    let direction = match values.take("name") {
        Value::String(name) => match name.as_str() {
            "download" => Direction::Download,
            "upload" => Direction::Upload,
            _ => return Err(Refused::Unsupported(format!("workload.name: {name:?}"))),
        },
        other => return wrong(format!("workload.name: {other} is not \"download\" or \"upload\"")),
    };
    let size = values.integer("size_bytes", 0, LARGEST)?;
    values.end()?;
    Ok(Workload { direction, size })
}

/// The file for the only series there is, if it was asked for.
fn parse_series(names: &[String], log_folder: &Path) -> Result<Option<PathBuf>> {
    match names.iter().find(|name| *name != "cwnd") {
        Some(name) => Err(Refused::Unsupported(format!("series: {name:?}"))),
        None => Ok((!names.is_empty()).then(|| log_folder.join("cwnd.series.csv"))),
    }
}

fn parse_options(values: Map<String, Value>) -> Result<Options> {
    let mut values = Values::new("options", values);
    let codes = [
        ("none", None),
        ("xor", Some(Code::Xor)),
        ("rs", Some(Code::ReedSolomon)),
        ("rlc", Some(Code::RLC)),
        ("vandermonde", Some(Code::Vandermonde)),
        ("tetrys", Some(Code::Vandermonde)), // its older name
    ];
    let code = values.choice("scheme", &codes)?;
    let n = values.integer("n", 2, 255)? as usize;
    let k = values.integer("k", 1, 254)? as usize;
    let window = values.integer("window", 1, 255)? as usize;
    let window_trim = values.boolean("window_trim")?;
    let interleave = values.integer("interleave", 1, 255)? as usize;
    let redundancies = [("constant", Redundancy::Constant), ("tail", Redundancy::Tail)];
    let redundancy = values.choice("controller", &redundancies)?;
    let recovered = [("notify", (false, false)), ("notify_at_once", (false, true)), ("mask", (true, false))];
    let (masks_losses, tells_losses_at_once) = values.choice("recovered", &recovered)?;
    let packet_size = values.integer("packet_size", 1200, 1452)? as u16;
    let options = Options {
        schemes: code.map(|code| Schemes {
            code,
            n,
            k,
            window,
            window_trim,
            interleave,
            redundancy,
            masks_losses,
            tells_losses_at_once,
            complaints: Complaints::default(),
        }),
        congestion_control: values.choice(
            "congestion_control",
            &[
                ("cubic", CongestionControl::Cubic),
                ("newreno", CongestionControl::NewReno),
                ("bbr3", CongestionControl::Bbr3),
            ],
        )?,
        initial_window: initial_window(&mut values, packet_size)?,
        slow_start_pacing: values.choice("slow_start_pacing", &[("1.25", DEFAULT_PACING), ("2", 8)])?,
        packet_size,
    };
    if options.congestion_control == CongestionControl::Bbr3 && options.slow_start_pacing != DEFAULT_PACING {
        return wrong("options: slow_start_pacing = \"2\": bbr3 has a pace of its own, so it must be \"1.25\"");
    }
    if let Some(schemes) = &options.schemes {
        schemes.check().or_else(|why| wrong(format!("options: {why}")))?;
    }
    values.end()?;
    Ok(options)
}

/// In bytes, whichever of its two options says it.
fn initial_window(values: &mut Values, packet_size: u16) -> Result<u64> {
    let packets = values.integer("initial_window", 2, 64)?;
    let bytes = values.integer("initial_window_bytes", 0, 100_000)?;
    let packet_size = u64::from(packet_size);
    match bytes {
        0 => Ok(packets * packet_size),
        // Room for the end of the handshake, some data and its repair symbol.
        _ if bytes < 4 * packet_size => {
            let least = 4 * packet_size;
            wrong(format!(
                "options.initial_window_bytes: {bytes} is neither 0 nor {least} or more, which is four packets"
            ))
        }
        _ => Ok(bytes),
    }
}

/// The values of a JSON object, taken out one by one.
struct Values {
    key: &'static str,
    values: Map<String, Value>,
}

impl Values {
    fn new(key: &'static str, values: Map<String, Value>) -> Self {
        Self { key, values }
    }

    fn take(&mut self, name: &str) -> Value {
        self.values.remove(name).unwrap_or(Value::Null)
    }

    fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Result<T> {
        let value = self.take(name);
        match choices.iter().find(|(choice, _)| value == *choice) {
            Some((_, meaning)) => Ok(*meaning),
            None => {
                let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
                wrong(format!("{}.{name}: {value} is not one of {}", self.key, names.join(", ")))
            }
        }
    }

    fn integer(&mut self, name: &str, minimum: u64, maximum: u64) -> Result<u64> {
        let value = self.take(name);
        match value.as_u64() {
            Some(integer) if (minimum..=maximum).contains(&integer) => Ok(integer),
            _ => wrong(format!("{}.{name}: {value} is not an integer in {minimum} to {maximum}", self.key)),
        }
    }

    fn boolean(&mut self, name: &str) -> Result<bool> {
        let value = self.take(name);
        value.as_bool().map_or_else(|| wrong(format!("{}.{name}: {value} is not true or false", self.key)), Ok)
    }

    /// Refuses what was not taken out.
    fn end(self) -> Result<()> {
        match self.values.keys().next() {
            Some(name) => wrong(format!("{}.{name}: unknown", self.key)),
            None => Ok(()),
        }
    }
}

/// What an endpoint has measured, by the contract's names.
pub type Metrics = BTreeMap<&'static str, f64>;

/// What an endpoint says on standard output.
#[derive(Debug)]
pub enum Event {
    /// A server listens.
    Ready,
    /// An endpoint has ended, and was a success.
    Done(Metrics),
}

impl Event {
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Ready => writeln!(out, r#"{{"event": "ready"}}"#)?,
            Self::Done(metrics) => {
                let metrics = serde_json::to_string(metrics)?;
                writeln!(out, r#"{{"event": "done", "metrics": {metrics}}}"#)?;
            }
        }
        out.flush()
    }
}

/// How an endpoint ends: its exit code, and the last line on standard error of all but a success.
#[derive(Debug, PartialEq, Eq)]
pub struct Exit {
    pub code: u8,
    pub line: Option<String>,
}

impl Exit {
    /// That of an endpoint that has taken its assignment on; an error is one line.
    pub fn of(role: Role, ended: std::result::Result<(), String>) -> Self {
        match ended {
            Ok(()) => Self { code: 0, line: None },
            Err(error) => Self { code: EXIT_FAILURE, line: Some(format!("noq-fec: {role}: {error}")) },
        }
    }
}

impl From<Refused> for Exit {
    fn from(refused: Refused) -> Self {
        let code = match refused {
            Refused::Wrong(_) => EXIT_BAD_INPUT,
            Refused::Unsupported(_) => EXIT_UNSUPPORTED,
        };
        Self { code, line: Some(format!("noq-fec: {refused}")) }
    }
}
