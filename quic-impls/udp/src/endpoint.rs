//! Client and server, over any host. A client has one session, a server one for each client that it has met.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use host::contract::{Event, Metrics, Role};
use host::implementation::{self, Host, Received, Turn};
use host::messages::{self, Recorded};
use host::times;

use crate::Assignment;
use crate::sending::Outlet;
use crate::session::{Counters, Session};
use crate::wire::Datagram;

/// Datagrams that are received before others are sent.
const BATCH: usize = 64;

/// Most clients that a server serves. Later ones are ignored.
const MOST_CLIENTS: usize = 16;

pub struct Endpoint {
    assignment: Assignment,
    start: Instant,
    /// Sessions by the address of the other end.
    sessions: BTreeMap<SocketAddr, Session>,
    is_interrupted: bool,
}

impl implementation::Endpoint for Endpoint {
    fn turn(&mut self, host: &mut impl Host) -> Result<Turn, String> {
        let reported = match self.proceed(host) {
            Ok(None) => return Ok(Turn::Until(self.timeout())),
            Ok(Some(metrics)) => say(host, Event::Done(metrics)),
            Err(failure) => Err(failure),
        };
        // An endpoint that failed leaves its series, too.
        reported.and(self.leave_series(host))?;
        Ok(Turn::Ended)
    }

    fn interrupt(&mut self) {
        self.is_interrupted = true;
    }
}

impl Endpoint {
    /// Begins. An error is one line.
    pub fn start(assignment: Assignment, host: &mut impl Host) -> Result<Self, String> {
        let start = host.now();
        let mut sessions = BTreeMap::new();
        match assignment.role {
            Role::Client => drop(sessions.insert(assignment.address, Session::new(&assignment, 0, start)?)),
            Role::Server => say(host, Event::Ready)?,
        }
        Ok(Self { assignment, start, sessions, is_interrupted: false })
    }

    /// Does what there is to do; tells the metrics when it has ended. An error is one line.
    fn proceed(&mut self, host: &mut impl Host) -> Result<Option<Metrics>, String> {
        self.receive(host)?;
        for (peer, session) in &mut self.sessions {
            session
                .proceed(&mut Towards { peer: *peer, host })
                .map_err(|error| format!("cannot send to {peer}: {error}"))?;
        }
        match self.assignment.role {
            Role::Server => Ok(self.is_interrupted.then(|| self.counted())),
            Role::Client => self.client_outcome(host.now()),
        }
    }

    fn client_outcome(&self, now: Instant) -> Result<Option<Metrics>, String> {
        let Assignment { workload, deadline, address, .. } = &self.assignment;
        let session = &self.sessions[address];
        if let (Some(met), Some(done)) = (session.met, session.done) {
            let mut metrics = self.counted();
            metrics.insert("dct_s", (done - self.start).as_secs_f64());
            metrics.insert("handshake_s", (met - self.start).as_secs_f64());
            return Ok(Some(metrics));
        }
        if self.is_interrupted {
            return Err(format!("{workload}: ended by a signal"));
        }
        if now >= self.start + *deadline {
            return Err(format!("{workload}: not done within the deadline of {} s", deadline.as_secs_f64()));
        }
        match session.unanswered(now) {
            Some(what) => Err(format!("{workload}: no answer from {address} to {what}")),
            None => Ok(None),
        }
    }

    /// Takes in what has arrived.
    fn receive(&mut self, host: &mut impl Host) -> Result<(), String> {
        for _ in 0..BATCH {
            let received = host.receive().map_err(|error| format!("cannot receive: {error}"))?;
            let Some(Received { at, from, datagram, .. }) = received else {
                break;
            };
            let is_server = self.assignment.role == Role::Server;
            let number = self.sessions.len();
            let is_new = is_server && number < MOST_CLIENTS && !self.sessions.contains_key(&from);
            if is_new && Datagram::parse(datagram) == Some(Datagram::Hello) {
                self.sessions.insert(from, Session::new(&self.assignment, number, at)?);
            }
            // Datagrams from elsewhere are ignored.
            if let Some(session) = self.sessions.get_mut(&from) {
                session.receive(at, datagram)?;
            }
        }
        Ok(())
    }

    /// Returns when it has something to do even if nothing arrives.
    fn timeout(&self) -> Option<Instant> {
        let deadline = (self.assignment.role == Role::Client).then(|| self.start + self.assignment.deadline);
        self.sessions.values().filter_map(Session::timeout).chain(deadline).min()
    }

    fn leave_series(&self, host: &impl Host) -> Result<(), String> {
        let Some(path) = self.assignment.series(messages::NAME) else {
            return Ok(());
        };
        let Assignment { role, workload, .. } = &self.assignment;
        let recorded = self.sessions.values().map(|session| {
            let (log, begun) = session.log();
            Recorded { connection: session.number, begun, log }
        });
        let recorded: Vec<_> = recorded.collect();
        let start = self.sessions.values().map(|session| session.start).min().unwrap_or(self.start);
        times::write_series(&path, *role, workload.messages(), start, &recorded, |time| host.monotonic(time))
    }

    /// The counters of the contract that both roles have.
    fn counted(&self) -> Metrics {
        let counters: Counters = self.sessions.values().map(Session::counters).sum();
        counters.metrics()
    }
}

fn say(host: &mut impl Host, event: Event) -> Result<(), String> {
    host.say(event).map_err(|error| format!("standard output: {error}"))
}

/// The way to the other end.
struct Towards<'a, H> {
    peer: SocketAddr,
    host: &'a mut H,
}

impl<H: Host> Outlet for Towards<'_, H> {
    fn now(&self) -> Instant {
        self.host.now()
    }

    fn send(&mut self, datagram: &Datagram) -> std::io::Result<u64> {
        let datagram = datagram.write();
        self.host.send(&datagram, None, self.peer)?;
        Ok(datagram.len() as u64)
    }
}
