//! The traits of an implementation, its endpoints, and their environment. An endpoint is the same in a process with a
//! socket and in a simulator: only the [`Host`] differs.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::contract::{Assignment, Event, Result, Values};
use crate::requests::Input;

/// An implementation, as its impl.toml declares it.
pub trait Implementation: Sized + 'static {
    /// The name of its folder.
    const NAME: &'static str;
    /// The text of the impl.toml that declares its options.
    const DECLARED: &'static str;
    const WORKLOADS: &'static [&'static str];
    const SERIES: &'static [&'static str];
    /// Whether an endpoint can stand between a client and a server.
    const RELAYS: bool = false;
    /// Whether endpoints have TLS, and so certificates, and work to do in a handshake.
    const HAS_CERTIFICATES: bool;

    type Options: Debug;
    /// The environment of an endpoint besides its assignment.
    type Surroundings;
    /// An endpoint that has yet to start.
    type Prepared;
    type Endpoint: Endpoint;

    /// Takes its options out of the values.
    fn options(values: &mut Values) -> Result<Self::Options>;

    /// Returns how many paths a connection uses, each from an address of the client's own.
    fn paths(_options: &Self::Options) -> usize {
        1
    }

    /// Settles what options and workload together mean, and refuses those that it does not have together.
    fn settle(assignment: &mut Assignment<Self::Options>) -> Result<()>;

    /// The surroundings of a process. An error is one line.
    fn surroundings() -> std::result::Result<Self::Surroundings, String>;

    /// Returns the surroundings of an endpoint in virtual time. The seed and its name decide its randomness. It writes
    /// logs to the folder, if there is one. An error is one line.
    fn virtual_surroundings(
        seed: u64,
        name: &str,
        logs: Option<&Path>,
    ) -> std::result::Result<Self::Surroundings, String>;

    /// Refuses a server that would differ from run to run, in one line.
    fn check_repeatable(server: &Assignment<Self::Options>) -> std::result::Result<(), String>;

    /// An error is one line.
    fn prepare(
        assignment: Assignment<Self::Options>,
        surroundings: &Self::Surroundings,
    ) -> std::result::Result<Self::Prepared, String>;

    /// Begins: a client dials, a server listens. An error is one line.
    fn start(prepared: Self::Prepared, host: &mut impl Host) -> std::result::Result<Self::Endpoint, String>;
}

/// An endpoint that is at work. Errors are one line, and its end.
pub trait Endpoint {
    /// Takes in what has arrived, and sends what that and the time have brought.
    fn turn(&mut self, host: &mut impl Host) -> std::result::Result<Turn, String>;

    /// Has it end at its next turn: a server when it has taken in what had arrived, a client as a failure.
    fn interrupt(&mut self);
}

/// The environment of an endpoint: its network, its clock and its outputs.
pub trait Host {
    fn now(&self) -> Instant;

    /// A time by the clock that both ends of a trial have: the machine's monotonic one, or that of the simulation.
    fn monotonic(&self, time: Instant) -> Duration;

    /// Sends a datagram, from one of the addresses that a client's paths begin at; without one, over the first path.
    fn send(&mut self, datagram: &[u8], from: Option<IpAddr>, to: SocketAddr) -> io::Result<()>;

    /// Says the ECN codepoint of the datagrams that are sent from now on, as in IP headers; 0 before. An error: the host
    /// cannot.
    fn mark(&mut self, _codepoint: u8) -> io::Result<()> {
        Ok(())
    }

    /// The next datagram that has arrived.
    fn receive(&mut self) -> io::Result<Option<Received<'_>>>;

    /// Reads the next part of standard input, for a client of the workload `requests`.
    fn read(&mut self) -> io::Result<Option<Input>>;

    /// Writes an event on standard output.
    fn say(&mut self, event: Event) -> io::Result<()>;

    /// A line on standard error.
    fn complain(&mut self, line: &str);
}

/// A datagram that has arrived.
pub struct Received<'a> {
    pub at: Instant,
    pub from: SocketAddr,
    /// The client's address to which it was sent, if it uses several paths.
    pub to: Option<IpAddr>,
    /// Its ECN codepoint, as it came.
    pub ecn: u8,
    pub datagram: &'a [u8],
}

/// The next turn of an endpoint.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// Until this time, if there is one, or until a datagram arrives or the endpoint is interrupted.
    Until(Option<Instant>),
    /// Never: it was a success, and has reported.
    Ended,
}
