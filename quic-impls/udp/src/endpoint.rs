//! Client and server: how they find each other, and tell each other when they are done.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use host::contract::{Event, Metrics, Role, Workload};
use host::implementation::{self, Host, Received, Turn};
use host::messages::{self, Recorded};

use crate::Assignment;
use crate::receiving::Receiving;
use crate::sending::{Outlet, Sending};
use crate::wire::Datagram;

/// Datagrams that are received before others are sent.
const BATCH: usize = 64;

/// How often, and how many times, what waits for an answer is sent.
const INTERVAL: Duration = Duration::from_millis(100);
const MOST_TIMES: u32 = 100;

pub struct Endpoint {
    assignment: Assignment,
    start: Instant,
    /// The other end; of a server, whoever asked first.
    peer: Option<SocketAddr>,
    /// When the peer's first datagram came.
    met: Option<Instant>,
    content: Content,
    /// What is repeated until it is answered, and what is an answer.
    asking: Option<Repeated>,
    answers: Vec<Datagram<'static>>,
    /// When the receiver was done, here or at the other end.
    done: Option<Instant>,
    counters: Counters,
    is_interrupted: bool,
}

enum Content {
    Sending(Sending),
    Receiving(Receiving),
}

#[derive(Default)]
struct Counters {
    datagrams_sent: u64,
    datagrams_received: u64,
    bytes_sent: u64,
    bytes_received: u64,
}

/// Something that is sent time and again.
struct Repeated {
    datagram: Datagram<'static>,
    times: u32,
    next: Instant,
}

impl Repeated {
    fn new(datagram: Datagram<'static>, now: Instant) -> Self {
        Self { datagram, times: 0, next: now }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.times < MOST_TIMES && self.next <= now
    }
}

impl implementation::Endpoint for Endpoint {
    fn turn(&mut self, host: &mut impl Host) -> Result<Turn, String> {
        let outcome = self.proceed(host);
        if let Ok(None) = outcome {
            return Ok(Turn::Until(self.timeout()));
        }
        let reported = outcome.and_then(|metrics| {
            let metrics = metrics.unwrap_or_default();
            host.say(Event::Done(metrics)).map_err(|error| format!("standard output: {error}"))
        });
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
        let (role, start) = (assignment.role, host.now());
        let Workload::Messages(messages) = &assignment.workload else {
            return Err(format!("{} is not of messages", assignment.workload));
        };
        let coding = assignment.options.as_ref();
        let content = match messages.sender() == role {
            true => Content::Sending(Sending::new(messages.clone(), assignment.content_seed, coding)?),
            false => Content::Receiving(Receiving::new(messages.clone(), assignment.content_seed, coding)),
        };
        if role == Role::Server {
            host.say(Event::Ready).map_err(|error| format!("standard output: {error}"))?;
        }
        Ok(Self {
            start,
            peer: (role == Role::Client).then_some(assignment.address),
            met: None,
            content,
            asking: (role == Role::Client).then(|| Repeated::new(Datagram::Hello, start)),
            answers: Vec::new(),
            done: None,
            counters: Counters::default(),
            is_interrupted: false,
            assignment,
        })
    }

    /// Does what there is to do; tells the metrics when it has ended. An error is one line.
    fn proceed(&mut self, host: &mut impl Host) -> Result<Option<Metrics>, String> {
        self.receive(host)?;
        self.send(host).map_err(|error| format!("cannot send: {error}"))?;
        match self.assignment.role {
            Role::Server => Ok(self.is_interrupted.then(|| self.metrics())),
            Role::Client => self.client_outcome(host.now()),
        }
    }

    fn client_outcome(&self, now: Instant) -> Result<Option<Metrics>, String> {
        let Assignment { workload, deadline, address, .. } = &self.assignment;
        if let (Some(met), Some(done)) = (self.met, self.done) {
            let mut metrics = self.metrics();
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
        match &self.asking {
            Some(Repeated { datagram, times: MOST_TIMES, next }) if *next <= now => {
                Err(format!("{workload}: no answer from {address} to {MOST_TIMES} times {datagram}"))
            }
            _ => Ok(None),
        }
    }

    /// Takes in what has arrived.
    fn receive(&mut self, host: &mut impl Host) -> Result<(), String> {
        for _ in 0..BATCH {
            let received = host.receive().map_err(|error| format!("cannot receive: {error}"))?;
            let Some(Received { at, from, datagram }) = received else {
                break;
            };
            let length = datagram.len();
            let datagram = Datagram::parse(datagram);
            if self.peer.is_none() && datagram == Some(Datagram::Hello) {
                self.peer = Some(from);
                self.start = at;
            }
            // Whoever else sends something is ignored.
            if self.peer != Some(from) {
                continue;
            }
            self.counters.datagrams_received += 1;
            self.counters.bytes_received += length as u64;
            let datagram = datagram.ok_or_else(|| format!("a datagram of {length} bytes is none of this protocol"))?;
            self.met.get_or_insert(at);
            self.take(at, datagram)?;
        }
        Ok(())
    }

    fn take(&mut self, now: Instant, datagram: Datagram) -> Result<(), String> {
        // Whatever the server sends is its answer.
        self.asking.take_if(|asking| asking.datagram == Datagram::Hello);
        match (self.assignment.role, &mut self.content, datagram) {
            (Role::Server, content, Datagram::Hello) => {
                content.begin(now);
                self.answers.push(Datagram::Welcome);
            }
            (Role::Client, content, Datagram::Welcome) => content.begin(now),
            (_, Content::Sending(sending), Datagram::Done) if sending.is_done() => {
                self.asking = None;
                self.done.get_or_insert(now);
            }
            (_, Content::Sending(_), other) => return Err(format!("{other} is not what a receiver sends now")),
            (_, Content::Receiving(receiving), datagram) => {
                if datagram == Datagram::End && self.done.is_some() {
                    self.answers.push(Datagram::Done);
                }
                receiving.take(now, datagram)?;
            }
        }
        Ok(())
    }

    /// Sends what that and the time have brought.
    fn send(&mut self, host: &mut impl Host) -> io::Result<()> {
        let Some(peer) = self.peer else {
            return Ok(());
        };
        let mut outlet = Towards { peer, host, counters: &mut self.counters };
        let now = outlet.now();
        match &mut self.content {
            Content::Sending(sending) => {
                let was_done = sending.is_done();
                sending.proceed(&mut outlet)?;
                if sending.is_done() && !was_done {
                    self.asking = Some(Repeated::new(Datagram::End, now));
                }
            }
            Content::Receiving(receiving) => {
                if self.done.is_none() && receiving.is_done(now) {
                    self.done = Some(now);
                    self.answers.push(Datagram::Done);
                }
            }
        }
        for answer in self.answers.drain(..) {
            outlet.send(&answer)?;
        }
        match &mut self.asking {
            Some(asking) if asking.is_due(now) => {
                asking.times += 1;
                asking.next = now + INTERVAL;
                outlet.send(&asking.datagram)
            }
            _ => Ok(()),
        }
    }

    /// When it has something to do though nothing arrives.
    fn timeout(&self) -> Option<Instant> {
        let content = match &self.content {
            Content::Sending(sending) => sending.timeout(),
            Content::Receiving(receiving) => receiving.timeout().filter(|_| self.done.is_none()),
        };
        let is_client = self.assignment.role == Role::Client;
        // A server that has asked often enough waits in silence.
        let asking = self.asking.as_ref().filter(|asking| is_client || asking.times < MOST_TIMES);
        let deadline = is_client.then(|| self.start + self.assignment.deadline);
        [content, asking.map(|asking| asking.next), deadline].into_iter().flatten().min()
    }

    fn leave_series(&self, host: &impl Host) -> Result<(), String> {
        let Some(path) = self.assignment.series(messages::NAME) else {
            return Ok(());
        };
        let (log, begun) = match &self.content {
            Content::Sending(sending) => (&sending.log, sending.begun),
            Content::Receiving(receiving) => (&receiving.receiver.log, None),
        };
        let Assignment { role, workload, .. } = &self.assignment;
        let recorded = [Recorded { connection: 0, begun, log }];
        messages::write_series(&path, *role, workload, self.start, &recorded, |time| host.monotonic(time))
    }

    fn metrics(&self) -> Metrics {
        let Counters { datagrams_sent, datagrams_received, bytes_sent, bytes_received } = self.counters;
        let (source_sent, repair_sent) = match &self.content {
            Content::Sending(sending) => (sending.source_sent, sending.repair_sent),
            Content::Receiving(_) => (0, 0),
        };
        let (source_received, repair_received, recovered, spurious) = match &self.content {
            Content::Sending(_) => (0, 0, 0, 0),
            Content::Receiving(receiving) => (
                receiving.source_received,
                receiving.repair_received,
                receiving.recovered,
                receiving.recovered_spurious,
            ),
        };
        let never_came = recovered - spurious;
        Metrics::from([
            ("packets_sent", (datagrams_sent - repair_sent) as f64),
            ("packets_received", (datagrams_received - repair_received + never_came) as f64),
            ("bytes_sent", bytes_sent as f64),
            ("bytes_received", bytes_received as f64),
            ("source_sent", source_sent as f64),
            ("repair_sent", repair_sent as f64),
            ("source_received", source_received as f64),
            ("repair_received", repair_received as f64),
            ("packets_recovered", never_came as f64),
            ("recovered_spurious", spurious as f64),
            // Each symbol rebuilt took one repair symbol: one equation for one unknown.
            ("repair_useless", (repair_received - recovered) as f64),
            // Nothing is sent twice, so only what came itself was rebuilt for nothing.
            ("recovered_late", spurious as f64),
            ("recovered_in_time", never_came as f64),
        ])
    }
}

impl Content {
    /// Has a sender begin its timetable, unless it has begun.
    fn begin(&mut self, now: Instant) {
        if let Self::Sending(sending) = self {
            sending.begun.get_or_insert(now);
        }
    }
}

/// The way to the other end.
struct Towards<'a, H> {
    peer: SocketAddr,
    host: &'a mut H,
    counters: &'a mut Counters,
}

impl<H: Host> Outlet for Towards<'_, H> {
    fn now(&self) -> Instant {
        self.host.now()
    }

    fn send(&mut self, datagram: &Datagram) -> io::Result<()> {
        let datagram = datagram.write();
        self.host.send(&datagram, self.peer)?;
        self.counters.datagrams_sent += 1;
        self.counters.bytes_sent += datagram.len() as u64;
        Ok(())
    }
}
