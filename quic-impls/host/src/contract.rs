//! The endpoint contract of fecbench (quic-impls/README.md): the JSON file that an endpoint is started
//! with, the events that it writes, and its exit codes. It refuses unknown keys, options that impl.toml doesn't
//! have, and values outside of the ranges given there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::implementation::Implementation;
use crate::live::{self, Live};
use crate::messages::Messages;
use crate::requests::{self, Said};

const EXIT_FAILURE: u8 = 1;
pub const EXIT_BAD_INPUT: u8 = 2;
/// The convention of the QUIC interop runner.
const EXIT_UNSUPPORTED: u8 = 127;

/// The largest transfer, in bytes.
pub(crate) const LARGEST: u64 = 1 << 40;

/// The task of an endpoint, with the options of its implementation.
#[derive(Debug)]
pub struct Assignment<O> {
    pub role: Role,
    /// The address at which the server listens.
    pub address: SocketAddr,
    pub server_name: String,
    pub workload: Workload,
    pub content_seed: u64,
    pub options: O,
    pub certificate: PathBuf,
    pub private_key: PathBuf,
    pub authority: PathBuf,
    /// The folder for files of the endpoint.
    pub log_folder: PathBuf,
    /// The series that were asked for.
    pub series: Vec<String>,
    /// Addresses of the host, for implementations that declare that they need them: a client's paths begin at them, in
    /// their order.
    pub local_addresses: Vec<IpAddr>,
    pub deadline: Duration,
    /// The task of a relay towards its server: that of a client. A relay is a server that has one.
    pub upstream: Option<Box<Assignment<O>>>,
}

/// The role of an endpoint between a client and a server.
pub const RELAY: &str = "relay";

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

impl<O> Assignment<O> {
    /// Returns the name of its place in a trial.
    pub fn place(&self) -> &'static str {
        match (self.role, &self.upstream) {
            (Role::Client, _) => "client",
            (Role::Server, None) => "server",
            (Role::Server, Some(_)) => RELAY,
        }
    }

    /// Returns the addresses at which the paths of a client begin, if it uses several.
    pub fn path_addresses<I: Implementation<Options = O>>(&self) -> &[IpAddr] {
        match (self.role, I::paths(&self.options)) {
            (Role::Server, _) | (_, 1) => &[],
            (Role::Client, paths) => &self.local_addresses[..paths],
        }
    }

    /// Returns the path for a series, if it was asked for.
    pub fn series(&self, name: &str) -> Option<PathBuf> {
        let is_wanted = self.series.iter().any(|series| series == name);
        is_wanted.then(|| self.log_folder.join(format!("{name}.series.csv")))
    }
}

/// The traffic that crosses the link.
#[derive(Debug, Clone)]
pub enum Workload {
    Transfer(Transfer),
    Messages(Arc<Messages>),
    Live(Arc<Live>),
    /// Downloads that the client is asked for in the course of the trial.
    Requests,
}

impl Workload {
    pub fn direction(&self) -> Direction {
        match self {
            Self::Transfer(transfer) => transfer.direction,
            Self::Messages(messages) => messages.direction,
            Self::Live(live) => live.direction,
            Self::Requests => Direction::Download,
        }
    }

    /// Returns the messages, if it is of messages.
    pub fn messages(&self) -> Option<&Messages> {
        match self {
            Self::Messages(messages) => Some(messages),
            _ => None,
        }
    }

    /// Returns the broadcast, if it is a live one.
    pub fn live(&self) -> Option<&Arc<Live>> {
        match self {
            Self::Live(live) => Some(live),
            _ => None,
        }
    }
}

impl Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transfer(transfer) => transfer.fmt(f),
            Self::Messages(messages) => messages.fmt(f),
            Self::Live(live) => live.fmt(f),
            Self::Requests => f.write_str(requests::NAME),
        }
    }
}

/// A transfer of `size` bytes.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    pub direction: Direction,
    pub size: u64,
}

impl Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Download => "download",
            Direction::Upload => "upload",
        };
        write!(f, "{direction} of {} bytes", self.size)
    }
}

/// The direction of content: to the client, or to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Download,
    Upload,
}

impl Direction {
    /// Returns the role that sends the content.
    pub fn sender(self) -> Role {
        match self {
            Self::Download => Role::Server,
            Self::Upload => Role::Client,
        }
    }
}

/// The reason for which an assignment is refused, in one line.
#[derive(Debug, PartialEq)]
pub enum Refused {
    /// The file or a value in it is wrong.
    Wrong(String),
    /// The implementation does not have something in the assignment.
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

pub type Result<T> = std::result::Result<T, Refused>;

/// Refuses a value that is wrong.
pub fn wrong<T>(what: impl Into<String>) -> Result<T> {
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
    #[serde(default)]
    local_addresses: Vec<IpAddr>,
    deadline_s: f64,
    upstream: Option<Upstream>,
}

/// The server of a relay, and the options of the connection to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Upstream {
    address: String,
    port: u16,
    options: Map<String, Value>,
}

/// Reads an assignment. A refusal names the file, the key and what would be right.
pub fn read<I: Implementation>(path: &Path) -> Result<Assignment<I::Options>> {
    let text = std::fs::read(path).or_else(|error| wrong(format!("cannot read {}: {error}", path.display())))?;
    parse::<I>(&text).map_err(|refused| match refused {
        Refused::Wrong(what) => Refused::Wrong(format!("{}: {what}", path.display())),
        Refused::Unsupported(what) => Refused::Unsupported(what),
    })
}

/// Refuses a JSON object that an assignment could not have as its options.
pub fn check_options<I: Implementation>(text: &[u8]) -> Result<()> {
    let values = serde_json::from_slice(text).or_else(|error| wrong(format!("options: no JSON object: {error}")))?;
    parse_options::<I>("options", values).map(drop)
}

/// Reads an assignment from the text of its file.
pub fn parse<I: Implementation>(text: &[u8]) -> Result<Assignment<I::Options>> {
    accept::<I>(serde_json::from_slice(text))
}

/// Reads an assignment from what the text of its file means.
pub fn parse_value<I: Implementation>(value: Value) -> Result<Assignment<I::Options>> {
    accept::<I>(serde_json::from_value(value))
}

fn accept<I: Implementation>(document: serde_json::Result<Document>) -> Result<Assignment<I::Options>> {
    let document = document.or_else(|error| wrong(format!("not an assignment: {error}")))?;
    let mut assignment = document.assignment::<I>()?;
    I::settle(&mut assignment)?;
    if let Some(upstream) = &mut assignment.upstream {
        I::settle(upstream)?;
    }
    Ok(assignment)
}

impl Document {
    fn assignment<I: Implementation>(self) -> Result<Assignment<I::Options>> {
        if self.version != 1 {
            return wrong(format!("version: {}; this program knows version 1", self.version));
        }
        let role = match (self.role.as_str(), &self.upstream) {
            ("client", None) => Role::Client,
            ("server", None) => Role::Server,
            (RELAY, _) if !I::RELAYS => return Err(Refused::Unsupported(format!("role: {RELAY:?}"))),
            (RELAY, Some(_)) => Role::Server,
            (RELAY, None) => return wrong("upstream: missing; a relay needs it"),
            (role @ ("client" | "server"), Some(_)) => return wrong(format!("upstream: a {role} has none")),
            (other, _) => return wrong(format!("role: {other:?} is not one of client, server, {RELAY}")),
        };
        if !(self.deadline_s > 0.0 && self.deadline_s <= 1e6) {
            return wrong(format!("deadline_s: {} is not above 0 and up to 1000000", self.deadline_s));
        }
        if I::HAS_CERTIFICATES {
            self.require_for(role)?;
            if self.upstream.is_some() {
                self.require_for(Role::Client)?;
            }
        }
        let address = parse_address("", &self.address, self.port)?;
        let options = parse_options::<I>("options", self.options)?;
        let (paths, addresses) = (I::paths(&options), self.local_addresses.len());
        if role == Role::Client && paths > addresses.max(1) {
            return Err(Refused::Unsupported(format!("options.paths: {paths} paths from {addresses} local_addresses")));
        }
        let mut assignment = Assignment {
            role,
            address,
            server_name: self.server_name,
            workload: parse_workload::<I>(self.workload)?,
            content_seed: self.content_seed,
            options,
            series: parse_series::<I>(self.series)?,
            local_addresses: self.local_addresses,
            log_folder: self.log_folder,
            certificate: self.certificate,
            private_key: self.private_key,
            authority: self.authority,
            deadline: Duration::from_secs_f64(self.deadline_s),
            upstream: None,
        };
        if let Some(upstream) = self.upstream {
            assignment.upstream = Some(Box::new(upstream.assignment::<I>(&assignment)?));
        }
        Ok(assignment)
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

impl Upstream {
    /// The task of the relay with this assignment as a client. One path leads to the server.
    fn assignment<I: Implementation>(self, relay: &Assignment<I::Options>) -> Result<Assignment<I::Options>> {
        let options = parse_options::<I>("upstream.options", self.options)?;
        if let paths @ 2.. = I::paths(&options) {
            return Err(Refused::Unsupported(format!("upstream.options.paths: {paths} paths of a {RELAY}")));
        }
        Ok(Assignment {
            role: Role::Client,
            address: parse_address("upstream.", &self.address, self.port)?,
            server_name: relay.server_name.clone(),
            workload: relay.workload.clone(),
            content_seed: relay.content_seed,
            options,
            series: Vec::new(),
            local_addresses: Vec::new(),
            log_folder: relay.log_folder.clone(),
            certificate: PathBuf::new(),
            private_key: PathBuf::new(),
            authority: relay.authority.clone(),
            deadline: relay.deadline,
            upstream: None,
        })
    }
}

/// Reads an address and its port; the name of the object that has them stands before both keys.
fn parse_address(of: &str, address: &str, port: u16) -> Result<SocketAddr> {
    let Ok(ip) = address.parse::<IpAddr>() else {
        return wrong(format!("{of}address: {address:?} is not an IP address"));
    };
    if port == 0 {
        return wrong(format!("{of}port: 0 is not in 1 to 65535"));
    }
    Ok(SocketAddr::new(ip, port))
}

fn parse_workload<I: Implementation>(values: Map<String, Value>) -> Result<Workload> {
    let mut values = Values::new("workload", values);
    let name = match values.take("name") {
        Value::String(name) if I::WORKLOADS.contains(&name.as_str()) => name,
        Value::String(name) => return Err(Refused::Unsupported(format!("workload.name: {name:?}"))),
        other => return wrong(format!("workload.name: {other} is not one of {}", I::WORKLOADS.join(", "))),
    };
    let workload = match name.as_str() {
        requests::NAME => Workload::Requests,
        "messages" => Workload::Messages(Arc::new(Messages::parse(&mut values)?)),
        live::NAME => Workload::Live(Arc::new(Live::parse(&mut values)?)),
        name => {
            let direction = if name == "upload" { Direction::Upload } else { Direction::Download };
            Workload::Transfer(Transfer { direction, size: values.integer("size_bytes", 0, LARGEST)? })
        }
    };
    values.end()?;
    Ok(workload)
}

fn parse_series<I: Implementation>(names: Vec<String>) -> Result<Vec<String>> {
    match names.iter().find(|name| !I::SERIES.contains(&name.as_str())) {
        Some(name) => Err(Refused::Unsupported(format!("series: {name:?}"))),
        None => Ok(names),
    }
}

fn parse_options<I: Implementation>(key: &'static str, values: Map<String, Value>) -> Result<I::Options> {
    let mut values = Values { key, values, declared: I::DECLARED };
    let options = I::options(&mut values)?;
    values.end()?;
    Ok(options)
}

/// The values of a JSON object, taken out one by one.
#[derive(Debug)]
pub struct Values {
    key: &'static str,
    values: Map<String, Value>,
    /// The impl.toml that has the bounds of options.
    declared: &'static str,
}

impl Values {
    pub fn new(key: &'static str, values: Map<String, Value>) -> Self {
        Self { key, values, declared: "" }
    }

    pub fn take(&mut self, name: &str) -> Value {
        self.values.remove(name).unwrap_or(Value::Null)
    }

    pub fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Result<T> {
        let value = self.take(name);
        match choices.iter().find(|(choice, _)| value == *choice) {
            Some((_, meaning)) => Ok(*meaning),
            None => {
                let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
                wrong(format!("{}.{name}: {value} is not one of {}", self.key, names.join(", ")))
            }
        }
    }

    pub fn integer(&mut self, name: &str, minimum: u64, maximum: u64) -> Result<u64> {
        let value = self.take(name);
        match value.as_u64() {
            Some(integer) if (minimum..=maximum).contains(&integer) => Ok(integer),
            _ => wrong(format!("{}.{name}: {value} is not an integer in {minimum} to {maximum}", self.key)),
        }
    }

    /// Takes an integer option, whose bounds are those of impl.toml.
    ///
    /// # Panics
    ///
    /// If impl.toml has no such option, or an option without bounds.
    pub fn option(&mut self, name: &str) -> Result<u64> {
        let (minimum, maximum) = bounds(self.declared, name).expect("an option of impl.toml with bounds");
        self.integer(name, minimum, maximum)
    }

    pub fn boolean(&mut self, name: &str) -> Result<bool> {
        let value = self.take(name);
        value.as_bool().map_or_else(|| wrong(format!("{}.{name}: {value} is not true or false", self.key)), Ok)
    }

    /// Refuses what was not taken out.
    pub(crate) fn end(self) -> Result<()> {
        match self.values.keys().next() {
            Some(name) => wrong(format!("{}.{name}: unknown", self.key)),
            None => Ok(()),
        }
    }
}

/// The minimum and the maximum of each option that has them.
type Bounds = BTreeMap<&'static str, (u64, u64)>;

thread_local! {
    /// The text of an impl.toml, which a program has once, and the bounds in it.
    static BOUNDS: RefCell<(&'static str, Bounds)> = const { RefCell::new(("", BTreeMap::new())) };
}

/// Returns the minimum and the maximum of an option in the text of an impl.toml.
fn bounds(declared: &'static str, name: &str) -> Option<(u64, u64)> {
    BOUNDS.with_borrow_mut(|(text, bounds)| {
        if !ptr::eq(*text, declared) {
            (*text, *bounds) = (declared, read_bounds(declared));
        }
        bounds.get(name).copied()
    })
}

fn read_bounds(declared: &'static str) -> Bounds {
    let tables = declared.split("\n[").filter_map(|table| table.strip_prefix("options.")?.split_once(']'));
    let bounds = tables.filter_map(|(name, table)| {
        let value = |key| table.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
        Some((name, (value("minimum =")?, value("maximum =")?)))
    });
    bounds.collect()
}

/// Measurements of an endpoint, by the contract's names.
pub type Metrics = BTreeMap<&'static str, f64>;

/// A message of an endpoint on standard output.
#[derive(Debug)]
pub enum Event {
    /// A server listens.
    Ready,
    /// An endpoint has ended, and was a success.
    Done(Metrics),
    /// An event of an object that was asked for.
    Said(Said),
}

impl Event {
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Ready => writeln!(out, r#"{{"event": "ready"}}"#)?,
            Self::Said(said) => writeln!(out, "{}", said.json())?,
            Self::Done(metrics) => {
                let metrics = serde_json::to_string(metrics)?;
                writeln!(out, r#"{{"event": "done", "metrics": {metrics}}}"#)?;
            }
        }
        out.flush()
    }
}

/// The end of an endpoint: its exit code, and the last line on standard error unless it succeeded.
#[derive(Debug, PartialEq, Eq)]
pub struct Exit {
    pub code: u8,
    pub line: Option<String>,
}

impl Exit {
    /// Returns the exit of an endpoint that has accepted its assignment; an error is one line. `place` is that of the
    /// assignment.
    pub fn of<I: Implementation>(place: &str, ended: std::result::Result<(), String>) -> Self {
        match ended {
            Ok(()) => Self { code: 0, line: None },
            Err(error) => Self { code: EXIT_FAILURE, line: Some(format!("{}: {place}: {error}", I::NAME)) },
        }
    }

    /// Returns the exit of an endpoint that has refused its assignment.
    pub fn refusing<I: Implementation>(refused: Refused) -> Self {
        let code = match refused {
            Refused::Wrong(_) => EXIT_BAD_INPUT,
            Refused::Unsupported(_) => EXIT_UNSUPPORTED,
        };
        Self { code, line: Some(format!("{}: {refused}", I::NAME)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &str = "[options.code]\ntype = \"string\"\n\n[options.k]\ntype = \"integer\"\nminimum = 1\nmaximum = 254\n\
                            [options.kk]\nminimum = 7\nmaximum = 9\n";

    #[test]
    fn an_integer_option_has_the_bounds_of_impl_toml() {
        for (value, is_right) in [(0, false), (1, true), (254, true), (255, false)] {
            let values = Map::from_iter([("k".to_string(), value.into())]);
            let taken = Values { key: "options", values, declared: DECLARED }.option("k");
            let refusal = format!("options.k: {value} is not an integer in 1 to 254");
            assert_eq!(taken, if is_right { Ok(value) } else { wrong(refusal) });
        }
        assert_eq!(["kk", "code", "none"].map(|name| bounds(DECLARED, name)), [Some((7, 9)), None, None]);
    }
}
