//! Client and server over any stack, from their start to their report.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use host::contract::{Assignment, Event, Metrics, Role, Workload};
use host::implementation::{self, Host, Received, Turn};

use crate::answers::Answers;
use crate::request::Request;
use crate::requests::Requests;
use crate::stack::Stack;

/// Datagrams that are received before others are sent.
const BATCH: usize = 64;

/// An endpoint that is at work. Errors are one line, and its end.
pub struct Endpoint<S> {
    side: Side<S>,
    work: Work,
    is_interrupted: bool,
}

enum Work {
    Client { task: ClientTask, start: Instant, deadline: Duration, workload: Workload },
    Server(Answers),
}

/// The task of a client.
enum ClientTask {
    Transfer(Box<Request>),
    Requests(Box<Requests>),
}

impl ClientTask {
    /// Returns how and when it has ended, if it has.
    fn take_outcome(&mut self) -> Option<(Instant, Result<(), String>)> {
        match self {
            Self::Transfer(request) => request.outcome.take(),
            Self::Requests(requests) => requests.list.outcome(),
        }
    }

    fn connected(&self) -> Option<Instant> {
        match self {
            Self::Transfer(request) => request.connected,
            Self::Requests(requests) => requests.list.connected,
        }
    }
}

impl<S: Stack> Endpoint<S> {
    /// Begins with a stack that listens, or whose client has begun to connect at `start`. An error is one line.
    pub fn start<O>(
        assignment: &Assignment<O>,
        name: &'static str,
        stack: S,
        start: Instant,
        host: &mut impl Host,
    ) -> Result<Self, String> {
        Self::start_with(assignment, name, stack, None, start, host)
    }

    /// The same with counters of ECN: datagrams are sent with the codepoints of the stack, and those that come are looked
    /// at.
    pub fn start_marking<O>(
        assignment: &Assignment<O>,
        name: &'static str,
        stack: S,
        start: Instant,
        host: &mut impl Host,
    ) -> Result<Self, String> {
        Self::start_with(assignment, name, stack, Some(Marks::default()), start, host)
    }

    fn start_with<O>(
        assignment: &Assignment<O>,
        name: &'static str,
        stack: S,
        marks: Option<Marks>,
        start: Instant,
        host: &mut impl Host,
    ) -> Result<Self, String> {
        let seed = assignment.content_seed;
        let work = match assignment.role {
            Role::Client => Work::Client {
                task: match &assignment.workload {
                    Workload::Transfer(transfer) => ClientTask::Transfer(Box::new(Request::new(*transfer, seed))),
                    Workload::Requests => ClientTask::Requests(Box::new(Requests::new(seed))),
                    Workload::Messages(_) | Workload::Live(_) => {
                        unreachable!("the contract refuses a workload that an implementation does not name")
                    }
                },
                start,
                deadline: assignment.deadline,
                workload: assignment.workload.clone(),
            },
            Role::Server => {
                say(host, Event::Ready)?;
                Work::Server(Answers::new(seed))
            }
        };
        let side = Side { stack, name, marks, bytes_sent: 0, bytes_received: 0, datagram: Vec::new() };
        Ok(Self { side, work, is_interrupted: false })
    }
}

impl<S: Stack> implementation::Endpoint for Endpoint<S> {
    fn turn(&mut self, host: &mut impl Host) -> Result<Turn, String> {
        if let Work::Client { task: ClientTask::Requests(requests), .. } = &mut self.work {
            requests.list.read(host)?;
            requests.on_timeout(host.now(), &mut self.side.stack);
        }
        self.side.receive(&mut self.work, host)?;
        if let Work::Client { task: ClientTask::Requests(requests), .. } = &mut self.work {
            requests.list.say(host)?;
        }
        let outcome = self.outcome(host.now());
        if outcome.is_some() {
            self.side.stack.close(host.now(), "");
        }
        self.side.transmit(&mut self.work, host)?;
        let Some(outcome) = outcome else {
            let timeouts = [self.side.stack.timeout(), self.deadline()];
            return Ok(Turn::Until(timeouts.into_iter().flatten().min()));
        };
        let mut metrics = self.side.metrics();
        metrics.extend(outcome?);
        say(host, Event::Done(metrics))?;
        Ok(Turn::Ended)
    }

    fn interrupt(&mut self) {
        self.is_interrupted = true;
    }
}

impl<S> Endpoint<S> {
    fn deadline(&self) -> Option<Instant> {
        match &self.work {
            Work::Client { start, deadline, .. } => Some(*start + *deadline),
            Work::Server(_) => None,
        }
    }

    /// Returns how it has ended, if it has: with the metrics that only its role has, or an error.
    fn outcome(&mut self, now: Instant) -> Option<Result<Metrics, String>> {
        let Work::Client { task, start, deadline, workload } = &mut self.work else {
            return self.is_interrupted.then(|| Ok(Metrics::new()));
        };
        if let Some((end, outcome)) = task.take_outcome() {
            let connected = task.connected();
            let since = |time: Instant| time.duration_since(*start).as_secs_f64();
            return Some(outcome.map(|()| {
                let connected = connected.expect("a transfer ends after its handshake");
                Metrics::from([("dct_s", since(end)), ("handshake_s", since(connected))])
            }));
        }
        if self.is_interrupted {
            return Some(Err(format!("{workload}: ended by a signal")));
        }
        let limit = deadline.as_secs_f64();
        (now >= *start + *deadline).then(|| Err(format!("{workload}: not done within the deadline of {limit} s")))
    }
}

/// Congestion Experienced, as a codepoint.
const CE: u8 = 3;

/// Datagrams with ECN codepoints.
#[derive(Default)]
struct Marks {
    capable_sent: u64,
    received: u64,
}

/// The common part of client and server.
struct Side<S> {
    stack: S,
    /// The implementation's name.
    name: &'static str,
    /// Counters of ECN; None: it is off.
    marks: Option<Marks>,
    /// UDP payload in all that passed the host's network.
    bytes_sent: u64,
    bytes_received: u64,
    datagram: Vec<u8>,
}

impl<S: Stack> Side<S> {
    /// Takes in what has arrived, and what time has brought.
    fn receive(&mut self, work: &mut Work, host: &mut impl Host) -> Result<(), String> {
        for _ in 0..BATCH {
            let received = host.receive().map_err(|error| format!("cannot receive: {error}"))?;
            let Some(Received { at, from, ecn, datagram, .. }) = received else {
                break;
            };
            self.bytes_received += datagram.len() as u64;
            // Each has its own time: the last one of a batch may be what ends the transfer.
            if let Some(marks) = &mut self.marks {
                marks.received += u64::from(ecn == CE);
            }
            self.stack.receive(at, from, self.marks.as_ref().map(|_| ecn), datagram);
            self.proceed(work, at, host);
        }
        let now = host.now();
        self.stack.on_timeout(now);
        self.proceed(work, now, host);
        Ok(())
    }

    fn transmit(&mut self, work: &mut Work, host: &mut impl Host) -> Result<(), String> {
        while let Some(to) = self.next_datagram(work, host)? {
            if let Some(marks) = &mut self.marks {
                let codepoint = self.stack.codepoint();
                host.mark(codepoint).map_err(|error| format!("cannot mark datagrams: {error}"))?;
                marks.capable_sent += u64::from(codepoint != 0);
            }
            host.send(&self.datagram, None, to).map_err(|error| format!("cannot send to {to}: {error}"))?;
            self.bytes_sent += self.datagram.len() as u64;
        }
        Ok(())
    }

    fn next_datagram(&mut self, work: &mut Work, host: &mut impl Host) -> Result<Option<SocketAddr>, String> {
        loop {
            let now = host.now();
            let to = self.stack.transmit(now, &mut self.datagram)?;
            // Sending may have made room for more.
            if to.is_some() || !self.proceed(work, now, host) {
                return Ok(to);
            }
        }
    }

    /// Passes on what has happened; true when something has.
    fn proceed(&mut self, work: &mut Work, now: Instant, host: &mut impl Host) -> bool {
        let mut has_happened = false;
        while let Some(event) = self.stack.next_event() {
            has_happened = true;
            match work {
                Work::Client { task: ClientTask::Transfer(request), .. } => {
                    request.on_event(now, &mut self.stack, event);
                }
                Work::Client { task: ClientTask::Requests(requests), .. } => {
                    requests.on_event(now, &mut self.stack, event);
                }
                Work::Server(answers) => {
                    if let Some(refusal) = answers.on_event(&mut self.stack, event) {
                        host.complain(&format!("{}: {refusal}", self.name));
                    }
                }
            }
        }
        has_happened
    }

    /// Returns the contract's metrics that both roles have.
    fn metrics(&self) -> Metrics {
        let mut metrics = self.stack.metrics();
        metrics.insert("bytes_sent", self.bytes_sent as f64);
        metrics.insert("bytes_received", self.bytes_received as f64);
        if let Some(marks) = &self.marks {
            metrics.insert("ecn_capable_sent", marks.capable_sent as f64);
            metrics.insert("ecn_marks_received", marks.received as f64);
        }
        metrics
    }
}

fn say(host: &mut impl Host, event: Event) -> Result<(), String> {
    host.say(event).map_err(|error| format!("standard output: {error}"))
}
