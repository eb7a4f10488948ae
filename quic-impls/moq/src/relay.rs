//! A relay: a server of moq-net on the one side, a client on the other, and one origin for both. Each side has options of its
//! own, and so FEC on one hop, on both or on none.
//!
//! It has one address. Datagrams from its server's address are of the connection to it, and all others of its clients. It dials its
//! server when the first client has come.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use host::contract::{Event, Metrics, Role};
use host::implementation::{self, Host, Received, Turn};
use host::requests::Input;
use moq_net::{Hop, origin};
use noq_fec::surroundings::Surroundings;
use noq_fec::{Assignment, endpoint};
use noq_proto::VarInt;

use crate::broadcast::{self, Broadcast};
use crate::publisher::kept;
use crate::tasks::Tasks;

/// An endpoint that has yet to start.
pub struct Prepared {
    /// A client, a server, or the relay's side of its clients.
    end: endpoint::Prepared,
    /// The relay's side of its server.
    upstream: Option<Upstream>,
}

struct Upstream {
    server: SocketAddr,
    end: endpoint::Prepared,
    /// Whether either side uses ECN.
    has_ecn: bool,
    /// The time for which groups are kept.
    kept: Duration,
}

impl Prepared {
    /// An error is one line.
    pub fn new(mut assignment: Assignment, surroundings: &Surroundings) -> Result<Self, String> {
        let upstream = assignment.upstream.take().map(|upstream| {
            let (server, has_ecn) = (upstream.address, upstream.options.ecn || assignment.options.ecn);
            let kept = kept(upstream.workload.live().expect("the contract refuses all other workloads"));
            endpoint::Prepared::new(*upstream, surroundings).map(|end| Upstream { server, end, has_ecn, kept })
        });
        Ok(Self { upstream: upstream.transpose()?, end: endpoint::Prepared::new(assignment, surroundings)? })
    }

    /// Begins. An error is one line.
    pub fn start(self, host: &mut impl Host) -> Result<Endpoint, String> {
        match self.upstream {
            None => self.end.start(host).map(|end| Endpoint::End(Box::new(end))),
            Some(upstream) => Relay::start(self.end, upstream, host).map(|relay| Endpoint::Relay(Box::new(relay))),
        }
    }
}

/// An endpoint that is at work.
pub enum Endpoint {
    End(Box<endpoint::Endpoint<Broadcast>>),
    Relay(Box<Relay>),
}

impl implementation::Endpoint for Endpoint {
    fn turn(&mut self, host: &mut impl Host) -> Result<Turn, String> {
        match self {
            Self::End(end) => end.turn(host),
            Self::Relay(relay) => relay.turn(host),
        }
    }

    fn interrupt(&mut self) {
        match self {
            Self::End(end) => end.interrupt(),
            Self::Relay(relay) => relay.is_interrupted = true,
        }
    }
}

/// The code of a connection that has served its purpose.
const RECEIVED: VarInt = VarInt::from_u32(0);

pub struct Relay {
    origin: origin::Producer,
    /// The origin's own.
    tasks: Tasks,
    /// The connections of clients.
    access: Half,
    /// The connection to the server, from when there is one.
    backbone: Half,
    upstream: Option<endpoint::Prepared>,
    server: SocketAddr,
    is_interrupted: bool,
}

/// One side of the relay.
#[derive(Default)]
struct Half {
    end: Option<endpoint::Endpoint<Broadcast>>,
    arrived: VecDeque<Datagram>,
    /// ECN codepoint of what it sends; None: the relay uses no ECN.
    codepoint: Option<u8>,
    /// Metrics that it has reported.
    metrics: Option<Metrics>,
}

struct Datagram {
    at: Instant,
    from: SocketAddr,
    ecn: u8,
    bytes: Vec<u8>,
}

impl Relay {
    fn start(end: endpoint::Prepared, upstream: Upstream, host: &mut impl Host) -> Result<Self, String> {
        let now = host.now();
        let tasks = Tasks::new(now);
        let hop = Hop::new(broadcast::RELAY).expect("it is not zero");
        let mut config = origin::Config::new(hop);
        config.default_max_age = upstream.kept;
        let (origin, driver) = origin::Producer::new(config);
        tasks.drive(driver);
        let codepoint = upstream.has_ecn.then_some(0);
        let end = end.start_with(host, relaying(Role::Server, origin.clone()))?;
        Ok(Self {
            origin,
            tasks,
            access: Half { end: Some(end), codepoint, ..Half::default() },
            backbone: Half { codepoint, ..Half::default() },
            upstream: Some(upstream.end),
            server: upstream.server,
            is_interrupted: false,
        })
    }

    fn turn(&mut self, host: &mut impl Host) -> Result<Turn, String> {
        self.sort(host)?;
        self.tasks.turn(host.now());
        self.access.turn(host)?;
        self.dial(host)?;
        let has_ended = self.backbone.metrics.is_some();
        self.backbone.turn(host)?;
        if self.backbone.metrics.is_some() && !has_ended {
            // The server has received everything: whoever sent it is to know.
            self.access.close(host);
            self.access.turn(host)?;
        }
        self.tasks.turn(host.now());
        if self.is_interrupted {
            return self.end(host);
        }
        let timeouts = [self.access.timeout(), self.backbone.timeout(), self.tasks.timeout()];
        Ok(Turn::Until(timeouts.into_iter().flatten().min()))
    }

    /// Hands what has arrived to its side.
    fn sort(&mut self, host: &mut impl Host) -> Result<(), String> {
        for _ in 0..endpoint::BATCH {
            let received = host.receive().map_err(|error| format!("cannot receive: {error}"))?;
            let Some(Received { at, from, ecn, datagram, .. }) = received else {
                break;
            };
            let half = if from == self.server { &mut self.backbone } else { &mut self.access };
            half.arrived.push_back(Datagram { at, from, ecn, bytes: datagram.to_vec() });
        }
        Ok(())
    }

    /// Dials the server when the first client has come.
    fn dial(&mut self, host: &mut impl Host) -> Result<(), String> {
        let has_client = self.access.end.as_mut().is_some_and(|end| end.stack().start().is_some());
        if let Some(prepared) = self.upstream.take_if(|_| has_client) {
            self.backbone.end = Some(prepared.start_with(host, relaying(Role::Client, self.origin.clone()))?);
        }
        Ok(())
    }

    /// Ends both sides, and reports.
    fn end(&mut self, host: &mut impl Host) -> Result<Turn, String> {
        let mut metrics = Metrics::new();
        for (half, own) in [(&mut self.access, 1), (&mut self.backbone, 2)] {
            half.leave(host)?;
            let counted = half.metrics.take().unwrap_or_default();
            metrics.extend(NAMES.iter().filter_map(|names| Some((names[own], *counted.get(names[0])?))));
        }
        host.say(Event::Done(metrics)).map_err(|error| format!("standard output: {error}"))?;
        Ok(Turn::Ended)
    }
}

/// Returns what makes the work of a relay's connections.
fn relaying(role: Role, origin: origin::Producer) -> impl Fn(&Assignment, Instant) -> Broadcast {
    move |assignment, now| Broadcast::relaying(role, assignment, origin.clone(), now)
}

impl Half {
    /// Gives it a turn, if it is at work.
    fn turn(&mut self, host: &mut impl Host) -> Result<(), String> {
        let Some(mut end) = self.end.take().filter(|_| self.metrics.is_none()) else {
            self.arrived.clear();
            return Ok(());
        };
        let turn = implementation::Endpoint::turn(&mut end, &mut Side { host, half: self, received: Vec::new() });
        self.end = Some(end).filter(|_| self.metrics.is_none());
        turn.map(drop)
    }

    fn timeout(&self) -> Option<Instant> {
        self.end.as_ref().and_then(endpoint::Endpoint::timeout)
    }

    fn close(&mut self, host: &mut impl Host) {
        if let Some(end) = &mut self.end {
            end.stack().close(host.now(), RECEIVED, "received");
        }
    }

    fn leave(&mut self, host: &mut impl Host) -> Result<(), String> {
        let Some(mut end) = self.end.take().filter(|_| self.metrics.is_none()) else {
            return Ok(());
        };
        end.leave(&mut Side { host, half: self, received: Vec::new() })
    }
}

/// The host as one side of the relay sees it: its own datagrams alone, and a report that is a part of the relay's.
struct Side<'a, H> {
    host: &'a mut H,
    half: &'a mut Half,
    received: Vec<u8>,
}

impl<H: Host> Host for Side<'_, H> {
    fn now(&self) -> Instant {
        self.host.now()
    }

    fn monotonic(&self, time: Instant) -> Duration {
        self.host.monotonic(time)
    }

    fn send(&mut self, datagram: &[u8], from: Option<IpAddr>, to: SocketAddr) -> io::Result<()> {
        if let Some(codepoint) = self.half.codepoint {
            self.host.mark(codepoint)?;
        }
        self.host.send(datagram, from, to)
    }

    fn mark(&mut self, codepoint: u8) -> io::Result<()> {
        self.half.codepoint = Some(codepoint);
        Ok(())
    }

    fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
        let Some(Datagram { at, from, ecn, bytes }) = self.half.arrived.pop_front() else {
            return Ok(None);
        };
        self.received = bytes;
        Ok(Some(Received { at, from, to: None, ecn, datagram: &self.received }))
    }

    fn read(&mut self) -> io::Result<Option<Input>> {
        Ok(None)
    }

    fn say(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Done(metrics) => self.half.metrics = Some(metrics),
            // The side of clients begins as the relay does.
            Event::Ready | Event::Said(_) => {}
        }
        Ok(())
    }

    fn complain(&mut self, line: &str) {
        self.host.complain(line);
    }
}

macro_rules! by_hop {
    ($($name:literal),* $(,)?) => {
        [$([$name, concat!("access.", $name), concat!("backbone.", $name)]),*]
    };
}

/// The metrics of each side, and their names in the report: by the link that the side is at.
const NAMES: [[&str; 3]; 11] = by_hop![
    "packets_sent",
    "packets_lost",
    "packets_received",
    "bytes_sent",
    "bytes_received",
    "source_sent",
    "source_received",
    "repair_sent",
    "repair_received",
    "packets_recovered",
    "smoothed_rtt_ms",
];
