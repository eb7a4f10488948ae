//! Client and server: what an endpoint does with its stack, from its start to its report. It is the same in a process with a
//! socket and in a simulator: [`Host`] is what these differ in.

use std::fs::File;
use std::io::{self, BufWriter};
use std::net::SocketAddr;
use std::time::Instant;

use noq_proto::{ClientConfig, EndpointConfig, ServerConfig, VarInt};

use crate::contract::{Assignment, Event, Metrics, Role};
use crate::hq::{Answers, Request};
use crate::settings;
use crate::stack::{Application, Stack};
use crate::surroundings::Surroundings;

/// Datagrams that are received before others are sent.
const BATCH: usize = 64;

/// What an endpoint runs on: its network, its clock and its outputs.
pub trait Host {
    fn now(&self) -> Instant;

    fn send(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()>;

    /// The next datagram that has arrived.
    fn receive(&mut self) -> io::Result<Option<Received<'_>>>;

    /// On standard output.
    fn say(&mut self, event: Event) -> io::Result<()>;

    /// A line on standard error.
    fn complain(&mut self, line: &str);
}

/// A datagram that has arrived.
pub struct Received<'a> {
    pub at: Instant,
    pub from: SocketAddr,
    pub datagram: &'a [u8],
}

/// When an endpoint has its next turn.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// At this time, if there is one, and before it when a datagram has arrived or it is interrupted.
    Until(Option<Instant>),
    /// Never: it was a success, and has reported.
    Ended,
}

/// An endpoint that has read its assignment and its certificates, and has yet to start.
pub struct Prepared {
    assignment: Assignment,
    endpoint: EndpointConfig,
    end: End,
}

enum End {
    Client(ClientConfig),
    Server(ServerConfig),
}

impl Prepared {
    /// An error is one line.
    pub fn new(assignment: Assignment, surroundings: &Surroundings) -> Result<Self, String> {
        let end = match assignment.role {
            Role::Client => End::Client(settings::client(&assignment, surroundings)?),
            Role::Server => End::Server(settings::server(&assignment, surroundings)?),
        };
        Ok(Self { endpoint: settings::endpoint(surroundings), assignment, end })
    }

    /// Begins: a client dials, a server listens. An error is one line.
    pub fn start(self, host: &mut impl Host) -> Result<Endpoint, String> {
        let Self { assignment, endpoint, end } = self;
        match end {
            End::Client(config) => {
                let request = Request::new(assignment.workload, assignment.content_seed);
                let mut client = Client {
                    side: Side::new(assignment, Stack::new(endpoint, None)),
                    start: host.now(),
                    is_interrupted: false,
                };
                client.dial(config, request)?;
                Ok(Endpoint::Client(client))
            }
            End::Server(config) => {
                let stack = Stack::new(endpoint, Some(config));
                let server = Server { side: Side::new(assignment, stack), is_interrupted: false };
                say(host, Event::Ready)?;
                Ok(Endpoint::Server(server))
            }
        }
    }
}

/// An endpoint that is at work. Errors are one line, and its end.
pub enum Endpoint {
    Client(Client),
    Server(Server),
}

impl Endpoint {
    /// Takes in what has arrived, and sends what that and the time have brought.
    pub fn turn(&mut self, host: &mut impl Host) -> Result<Turn, String> {
        match self {
            Self::Client(client) => client.turn(host),
            Self::Server(server) => server.turn(host),
        }
    }

    /// Has it end at its next turn: a server when it has taken in what had arrived, a client as a failure.
    pub fn interrupt(&mut self) {
        match self {
            Self::Client(client) => client.is_interrupted = true,
            Self::Server(server) => server.is_interrupted = true,
        }
    }
}

/// Transfers, until that has ended or its deadline has come.
pub struct Client {
    side: Side<Request>,
    start: Instant,
    is_interrupted: bool,
}

impl Client {
    fn dial(&mut self, config: ClientConfig, request: Request) -> Result<(), String> {
        let Assignment { address, server_name, .. } = &self.side.assignment;
        let dialled = self.side.stack.connect(self.start, config, *address, server_name, request);
        dialled.map_err(|error| format!("cannot connect to {address}: {error}"))
    }

    fn turn(&mut self, host: &mut impl Host) -> Result<Turn, String> {
        self.side.receive(host, || unreachable!("a client accepts no connection"))?;
        self.side.transmit(host)?;
        let deadline = self.start + self.side.assignment.deadline;
        match self.outcome(host.now(), deadline) {
            None => {
                let until = self.side.stack.timeout().map_or(deadline, |timeout| timeout.min(deadline));
                Ok(Turn::Until(Some(until)))
            }
            Some(outcome) => {
                let reported = self.end(host, outcome);
                // A transfer that failed leaves its series, too.
                reported.and(self.side.leave_series())?;
                Ok(Turn::Ended)
            }
        }
    }

    /// How and when the transfer has ended, if it has.
    fn outcome(&mut self, now: Instant, deadline: Instant) -> Option<Result<Instant, String>> {
        if let Some((end, outcome)) = self.side.stack.applications().find_map(|request| request.outcome.take()) {
            return Some(outcome.map(|()| end));
        }
        let Assignment { workload, deadline: limit, .. } = &self.side.assignment;
        if self.is_interrupted {
            return Some(Err(format!("{workload}: ended by a signal")));
        }
        let limit = limit.as_secs_f64();
        (now >= deadline).then(|| Err(format!("{workload}: not done within the deadline of {limit} s")))
    }

    fn end(&mut self, host: &mut impl Host, outcome: Result<Instant, String>) -> Result<(), String> {
        self.side.stack.close(host.now(), VarInt::from_u32(0), "");
        let connected = self.side.stack.applications().find_map(|request| request.connected);
        self.side.transmit(host)?;
        let end = outcome?;
        let connected = connected.expect("a transfer ends after its handshake");
        let mut metrics = self.side.metrics();
        metrics.insert("dct_s", (end - self.start).as_secs_f64());
        metrics.insert("handshake_s", (connected - self.start).as_secs_f64());
        say(host, Event::Done(metrics))
    }
}

/// Answers, until it is interrupted.
pub struct Server {
    side: Side<Answers>,
    is_interrupted: bool,
}

impl Server {
    fn turn(&mut self, host: &mut impl Host) -> Result<Turn, String> {
        let seed = self.side.assignment.content_seed;
        // What arrived before it was interrupted counts.
        self.side.receive(host, || Answers::new(seed))?;
        for answers in self.side.stack.applications() {
            for refusal in answers.refusals.drain(..) {
                host.complain(&format!("noq-fec: {refusal}"));
            }
        }
        if self.is_interrupted {
            self.side.stack.close(host.now(), VarInt::from_u32(0), "server stopped");
        }
        self.side.transmit(host)?;
        if !self.is_interrupted {
            return Ok(Turn::Until(self.side.stack.timeout()));
        }
        say(host, Event::Done(self.side.metrics()))?;
        self.side.leave_series()?;
        Ok(Turn::Ended)
    }
}

/// What client and server have in common.
struct Side<A> {
    assignment: Assignment,
    stack: Stack<A>,
    /// All UDP payload that passed the host's network.
    bytes_sent: u64,
    bytes_received: u64,
    datagram: Vec<u8>,
}

impl<A: Application> Side<A> {
    fn new(assignment: Assignment, mut stack: Stack<A>) -> Self {
        if assignment.cwnd_series.is_some() {
            stack.record_congestion();
        }
        Self { assignment, stack, bytes_sent: 0, bytes_received: 0, datagram: Vec::new() }
    }

    /// Takes in what has arrived, and what time has brought.
    fn receive(&mut self, host: &mut impl Host, accept: impl Fn() -> A) -> Result<(), String> {
        for _ in 0..BATCH {
            let received = host.receive().map_err(|error| format!("cannot receive: {error}"))?;
            let Some(Received { at, from, datagram }) = received else {
                break;
            };
            self.bytes_received += datagram.len() as u64;
            // Each has its own time: the last one of a batch may be what ends the transfer.
            self.stack.receive(at, from, datagram, &accept);
        }
        self.stack.on_timeout(host.now());
        if let Some(schemes) = &self.assignment.options.schemes {
            for complaint in schemes.complaints.take() {
                host.complain(&format!("noq-fec: {complaint}"));
            }
        }
        Ok(())
    }

    fn transmit(&mut self, host: &mut impl Host) -> Result<(), String> {
        while let Some(to) = self.stack.transmit(host.now(), &mut self.datagram) {
            host.send(&self.datagram, to).map_err(|error| format!("cannot send to {to}: {error}"))?;
            self.bytes_sent += self.datagram.len() as u64;
        }
        Ok(())
    }

    /// Writes the series that was asked for, if any.
    fn leave_series(&self) -> Result<(), String> {
        let (Some(path), Some(series)) = (&self.assignment.cwnd_series, self.stack.congestion()) else {
            return Ok(());
        };
        let written = File::create(path).and_then(|file| series.write(&mut BufWriter::new(file)));
        written.map_err(|error| format!("series cwnd: {}: {error}", path.display()))
    }

    /// Those of the contract that both roles have.
    fn metrics(&mut self) -> Metrics {
        let counters = self.stack.counters();
        let never_came = counters.recovered - counters.recovered_spurious;
        Metrics::from([
            ("packets_sent", counters.packets_sent as f64),
            ("packets_lost", counters.packets_lost as f64),
            ("losses_declared", counters.losses_declared as f64),
            ("packets_received", (counters.packets_received + never_came) as f64),
            ("bytes_sent", self.bytes_sent as f64),
            ("bytes_received", self.bytes_received as f64),
            ("smoothed_rtt_ms", counters.smoothed_rtt_ms),
            ("spurious_losses", counters.spurious_losses as f64),
            ("window_reductions", counters.window_reductions as f64),
            ("window_restorations", counters.window_restorations as f64),
            ("congestion_window_bytes", counters.congestion_window as f64),
            ("source_sent", counters.source_sent as f64),
            ("repair_sent", counters.repair_sent as f64),
            ("source_received", counters.source_received as f64),
            ("repair_received", counters.repair_received as f64),
            ("packets_recovered", never_came as f64),
            ("recovered_spurious", counters.recovered_spurious as f64),
            // Each symbol recovered took one repair symbol: one equation for one unknown.
            ("repair_useless", (counters.repair_received - counters.recovered) as f64),
            ("recovered_late", counters.recovered_late as f64),
            ("recovered_in_time", (counters.recovered - counters.recovered_late) as f64),
            ("recovered_by_peer", counters.recovered_by_peer as f64),
            ("useless_retransmissions", counters.useless_retransmissions as f64),
        ])
    }
}

fn say(host: &mut impl Host, event: Event) -> Result<(), String> {
    host.say(event).map_err(|error| format!("standard output: {error}"))
}
