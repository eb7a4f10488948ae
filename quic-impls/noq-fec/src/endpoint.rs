//! Client and server: an endpoint's work with its stack, from its start to its report.

use std::fs::File;
use std::io::{self, BufWriter};
use std::time::Instant;

use host::contract::{Event, Metrics, Role};
use host::implementation::{self, Host, Received, Turn};
use noq_proto::{ClientConfig, EcnCodepoint, EndpointConfig, ServerConfig, VarInt};

use crate::paths::PathCounters;
use crate::schemes::Schemes;
use crate::sent::{self, ContentSeries};
use crate::series::{Congestion, Repair, Series, Values as _};
use crate::stack::Stack;
use crate::surroundings::{Randomness, Surroundings};
use crate::work::Work;
use crate::{Assignment, NoqFec, paths, settings};

/// Datagrams that are received before others are sent.
pub const BATCH: usize = 64;

/// The error code of a connection whose server has given up.
const FAILED: VarInt = VarInt::from_u32(1);

/// An endpoint that has read its assignment and its certificates, and has yet to start.
pub struct Prepared {
    assignment: Assignment,
    endpoint: EndpointConfig,
    end: End,
}

enum End {
    Client(ClientConfig),
    Server(ServerConfig, Randomness),
}

impl Prepared {
    /// An error is one line.
    pub fn new(assignment: Assignment, surroundings: &Surroundings) -> Result<Self, String> {
        let end = match assignment.role {
            Role::Client => End::Client(settings::client(&assignment, surroundings)?),
            Role::Server => End::Server(settings::server(&assignment, surroundings)?, surroundings.randomness),
        };
        Ok(Self { endpoint: settings::endpoint(surroundings), assignment, end })
    }

    /// Begins: a client dials, a server listens. An error is one line.
    pub fn start<W: Work>(self, host: &mut impl Host) -> Result<Endpoint<W>, String> {
        let make = match &self.end {
            End::Client(_) => W::of_client,
            End::Server(..) => W::of_server,
        };
        self.start_with(host, make)
    }

    /// The same with a function that makes the work of each connection, from when it began.
    pub fn start_with<W: Work>(
        self,
        host: &mut impl Host,
        make: impl Fn(&Assignment, Instant) -> W + 'static,
    ) -> Result<Endpoint<W>, String> {
        let Self { assignment, endpoint, end } = self;
        match end {
            End::Client(config) => {
                let start = host.now();
                let work = make(&assignment, start);
                let side = Side::new(assignment, Stack::new(endpoint, None));
                let mut client = Client { side, start, is_interrupted: false };
                client.dial(config, work)?;
                Ok(Endpoint::Client(client))
            }
            End::Server(config, randomness) => {
                let (first, options) = (config.clone(), assignment.options.clone());
                let mut stack = Stack::new(endpoint, Some(config));
                stack.configure_each(move || settings::of_connection(&first, &options, randomness));
                let server = Server { side: Side::new(assignment, stack), make: Box::new(make), is_interrupted: false };
                say(host, Event::Ready)?;
                Ok(Endpoint::Server(server))
            }
        }
    }
}

/// An endpoint that is at work. Errors are one line, and its end.
pub enum Endpoint<W> {
    Client(Client<W>),
    Server(Server<W>),
}

impl<W: Work> implementation::Endpoint for Endpoint<W> {
    fn turn(&mut self, host: &mut impl Host) -> Result<Turn, String> {
        match self {
            Self::Client(client) => client.turn(host),
            Self::Server(server) => server.turn(host),
        }
    }

    fn interrupt(&mut self) {
        match self {
            Self::Client(client) => client.is_interrupted = true,
            Self::Server(server) => server.is_interrupted = true,
        }
    }
}

impl<W: Work> Endpoint<W> {
    pub fn stack(&mut self) -> &mut Stack<W> {
        match self {
            Self::Client(client) => &mut client.side.stack,
            Self::Server(server) => &mut server.side.stack,
        }
    }

    /// Returns the time of its next turn, if nothing arrives before.
    pub fn timeout(&self) -> Option<Instant> {
        match self {
            Self::Client(Client { side, .. }) | Self::Server(Server { side, .. }) => side.stack.timeout(),
        }
    }

    /// Ends what has not ended by itself, and reports.
    pub fn leave(&mut self, host: &mut impl Host) -> Result<(), String> {
        match self {
            Self::Client(client) => client.side.end(host),
            Self::Server(server) => {
                server.is_interrupted = true;
                server.turn(host).map(drop)
            }
        }
    }
}

/// Transfers, until that has ended or its deadline has come.
pub struct Client<W> {
    side: Side<W>,
    start: Instant,
    is_interrupted: bool,
}

impl<W: Work> Client<W> {
    fn dial(&mut self, config: ClientConfig, work: W) -> Result<(), String> {
        let assignment = &self.side.assignment;
        let Assignment { address, server_name, .. } = assignment;
        let addresses = assignment.path_addresses::<NoqFec>();
        let dialled = self.side.stack.connect(self.start, config, addresses, *address, server_name, work);
        dialled.map_err(|error| format!("cannot connect to {address}: {error}"))
    }

    fn turn(&mut self, host: &mut impl Host) -> Result<Turn, String> {
        self.side.stack.applications().try_for_each(|work| work.read(host))?;
        self.side.receive(host, |_| unreachable!("a client accepts no connection"))?;
        self.side.transmit(host)?;
        self.side.stack.applications().try_for_each(|work| work.say(host))?;
        let deadline = self.start + self.side.assignment.deadline;
        match self.outcome(host.now(), deadline) {
            None => {
                let until = self.side.stack.timeout().map_or(deadline, |timeout| timeout.min(deadline));
                Ok(Turn::Until(Some(until)))
            }
            Some(outcome) => {
                let reported = self.end(host, outcome);
                // A transfer that failed leaves its series, too.
                reported.and(self.side.leave_series(host))?;
                Ok(Turn::Ended)
            }
        }
    }

    /// Returns the end of the transfer, or why it failed, if it has ended.
    fn outcome(&mut self, now: Instant, deadline: Instant) -> Option<Result<Instant, String>> {
        if let Some((end, outcome)) = self.side.stack.applications().find_map(W::take_outcome) {
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
        self.side.stack.close(host.now(), settings::no_error(&self.side.assignment), "");
        let connected = self.side.stack.applications().find_map(|work| work.connected());
        self.side.transmit(host)?;
        let end = outcome?;
        let connected = connected.expect("a transfer ends after its handshake");
        let mut metrics = self.side.metrics();
        metrics.insert("dct_s", (end - self.start).as_secs_f64());
        metrics.insert("handshake_s", (connected - self.start).as_secs_f64());
        say(host, Event::Done(metrics))
    }
}

/// Makes the work of a connection that begins.
type Make<W> = Box<dyn Fn(&Assignment, Instant) -> W>;

/// Answers, until it is interrupted.
pub struct Server<W> {
    side: Side<W>,
    make: Make<W>,
    is_interrupted: bool,
}

impl<W: Work> Server<W> {
    fn turn(&mut self, host: &mut impl Host) -> Result<Turn, String> {
        // Packets that arrived before the interruption count.
        let now = host.now();
        let make = &self.make;
        self.side.receive(host, |assignment| make(assignment, now))?;
        for work in self.side.stack.applications() {
            for refusal in work.take_refusals() {
                host.complain(&format!("{}: {refusal}", W::NAME));
            }
        }
        let outcome = self.side.stack.applications().find_map(W::take_outcome);
        if let Some((_, Err(failure))) = outcome {
            self.side.stack.close(host.now(), FAILED, "server failed");
            self.side.transmit(host)?;
            self.side.leave_series(host)?;
            return Err(failure);
        }
        if self.is_interrupted {
            let code = settings::no_error(&self.side.assignment);
            self.side.stack.close(host.now(), code, "server stopped");
        }
        self.side.transmit(host)?;
        if !self.is_interrupted {
            return Ok(Turn::Until(self.side.stack.timeout()));
        }
        say(host, Event::Done(self.side.metrics()))?;
        self.side.leave_series(host)?;
        Ok(Turn::Ended)
    }
}

/// The common part of client and server.
struct Side<W> {
    assignment: Assignment,
    stack: Stack<W>,
    /// All UDP payload that passed the host's network.
    bytes_sent: u64,
    bytes_received: u64,
    /// Datagrams that were sent with an ECN codepoint, and those that came with Congestion Experienced.
    capable_sent: u64,
    marks_received: u64,
    datagram: Vec<u8>,
}

impl<W: Work> Side<W> {
    fn new(assignment: Assignment, mut stack: Stack<W>) -> Self {
        if assignment.series(Congestion::NAME).is_some() {
            stack.record_congestion();
        }
        if assignment.series(Repair::NAME).is_some() {
            stack.record_repair();
        }
        if assignment.series(sent::NAME).is_some() {
            stack.record_contents(assignment.options.packet_size);
        }
        Self {
            assignment,
            stack,
            bytes_sent: 0,
            bytes_received: 0,
            capable_sent: 0,
            marks_received: 0,
            datagram: Vec::new(),
        }
    }

    /// Takes in what has arrived, and what time has brought.
    fn receive(&mut self, host: &mut impl Host, accept: impl Fn(&Assignment) -> W) -> Result<(), String> {
        for _ in 0..BATCH {
            let received = host.receive().map_err(|error| format!("cannot receive: {error}"))?;
            let Some(Received { at, from, to, ecn, datagram }) = received else {
                break;
            };
            self.bytes_received += datagram.len() as u64;
            // Each has its own time: the last one of a batch may be what ends the transfer.
            let mark = EcnCodepoint::from_bits(ecn).filter(|_| self.assignment.options.ecn);
            self.marks_received += u64::from(mark == Some(EcnCodepoint::Ce));
            self.stack.receive(at, from, to, mark, datagram, || accept(&self.assignment));
        }
        self.stack.on_timeout(host.now());
        if let Some(schemes) = &self.assignment.options.schemes
            && schemes.complaints.are_there()
        {
            for complaint in schemes.complaints.take() {
                host.complain(&format!("{}: {complaint}", W::NAME));
            }
        }
        Ok(())
    }

    /// Closes all connections, and reports.
    fn end(&mut self, host: &mut impl Host) -> Result<(), String> {
        self.stack.close(host.now(), settings::no_error(&self.assignment), "");
        self.transmit(host)?;
        say(host, Event::Done(self.metrics()))
    }

    fn transmit(&mut self, host: &mut impl Host) -> Result<(), String> {
        while let Some((from, to, mark)) = self.stack.transmit(host.now(), &mut self.datagram) {
            if self.assignment.options.ecn {
                let codepoint = mark.map_or(0, |mark| mark as u8);
                host.mark(codepoint).map_err(|error| format!("cannot mark datagrams: {error}"))?;
                self.capable_sent += u64::from(mark.is_some());
            }
            host.send(&self.datagram, from, to).map_err(|error| format!("cannot send to {to}: {error}"))?;
            self.bytes_sent += self.datagram.len() as u64;
        }
        Ok(())
    }

    /// Writes a series, if it was asked for.
    fn leave<S>(
        &self,
        name: &str,
        series: Option<&S>,
        write: impl Fn(&S, &mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), String> {
        let (Some(path), Some(series)) = (self.assignment.series(name), series) else {
            return Ok(());
        };
        let written = File::create(&path).and_then(|file| write(series, &mut BufWriter::new(file)));
        written.map_err(|error| format!("series {name}: {}: {error}", path.display()))
    }

    /// Writes the series that were asked for.
    fn leave_series(&self, host: &impl Host) -> Result<(), String> {
        self.leave(Congestion::NAME, self.stack.congestion(), Series::write)?;
        self.leave(Repair::NAME, self.stack.repair(), Series::write)?;
        self.leave(sent::NAME, self.stack.contents(), ContentSeries::write)?;
        W::leave_series(&self.assignment, &self.stack, host)
    }

    /// Returns the contract's metrics that both roles have.
    fn metrics(&mut self) -> Metrics {
        let counters = self.stack.counters();
        let never_came = counters.recovered - counters.recovered_spurious;
        let mut metrics = Metrics::from([
            ("packets_sent", counters.packets_sent as f64),
            ("packets_lost", counters.packets_lost as f64),
            ("losses_declared", counters.losses_declared as f64),
            ("packets_received", (counters.packets_received + never_came) as f64),
            ("bytes_sent", self.bytes_sent as f64),
            ("bytes_received", self.bytes_received as f64),
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
            ("recovered_by_peer", counters.recovered_by_peer as f64),
            ("useless_retransmissions", counters.useless_retransmissions as f64),
        ]);
        metrics.extend(counters.smoothed_rtt_ms.map(|rtt| ("smoothed_rtt_ms", rtt)));
        if counters.comparisons_forgone == 0 {
            metrics.insert("recovered_late", counters.recovered_late as f64);
            metrics.insert("recovered_in_time", (counters.recovered - counters.recovered_late) as f64);
        }
        if self.assignment.options.schemes.as_ref().is_some_and(Schemes::names_packets) {
            metrics.insert("sent_beyond_window", counters.sent_beyond_window as f64);
            // A receiver knows only of source symbols that repair symbols name, and none may have come.
            if counters.source_received == 0 {
                metrics.remove("source_received");
            }
        }
        if self.assignment.options.ecn {
            metrics.insert("ecn_capable_sent", self.capable_sent as f64);
            metrics.insert("ecn_marks_received", self.marks_received as f64);
        }
        let paths = self.assignment.options.paths;
        if paths > 1 {
            for (names, path) in PATH_METRICS.iter().zip(&counters.paths).take(paths) {
                metrics.extend(metrics_of(names, path));
            }
        }
        W::add_metrics(&self.assignment, &self.stack, &counters, &mut metrics);
        metrics
    }
}

macro_rules! path_metrics {
    ($path:literal) => {
        [
            concat!($path, ".packets_sent"),
            concat!($path, ".packets_lost"),
            concat!($path, ".bytes_sent"),
            concat!($path, ".source_sent"),
            concat!($path, ".repair_sent"),
            concat!($path, ".recovered"),
            concat!($path, ".smoothed_rtt_ms"),
        ]
    };
}

/// The names of what is told of each path.
const PATH_METRICS: [[&str; 7]; paths::MOST] = [path_metrics!("path1"), path_metrics!("path2"), path_metrics!("path3")];

/// A path whose round trip was never measured has no RTT.
fn metrics_of(names: &[&'static str; 7], path: &PathCounters) -> impl Iterator<Item = (&'static str, f64)> {
    let PathCounters { packets_sent, packets_lost, bytes_sent, source_sent, repair_sent, recovered, .. } = path;
    let counters = [packets_sent, packets_lost, bytes_sent, source_sent, repair_sent, recovered];
    let counted = counters.map(|counter| Some(*counter as f64)).into_iter().chain([path.smoothed_rtt_ms]);
    names.iter().zip(counted).filter_map(|(name, value)| Some((*name, value?)))
}

fn say(host: &mut impl Host, event: Event) -> Result<(), String> {
    host.say(event).map_err(|error| format!("standard output: {error}"))
}
