//! A client and its server: how they find each other, and tell each other when they are done.

use std::io;
use std::iter::Sum;
use std::time::{Duration, Instant};

use host::contract::{Metrics, Role, Workload};
use host::messages::Log;

use crate::Assignment;
use crate::receiving::Receiving;
use crate::sending::{Outlet, Sending};
use crate::wire::Datagram;

/// Interval and number of repetitions of a datagram that waits for an answer.
const INTERVAL: Duration = Duration::from_millis(100);
const MOST_TIMES: u32 = 100;

/// An end of a session.
pub struct Session {
    role: Role,
    /// Number in the order of beginnings.
    pub number: usize,
    pub start: Instant,
    content: Content,
    /// The datagram that is repeated until its answer comes, and the form of this answer.
    asking: Option<Repeated>,
    answers: Vec<Datagram<'static>>,
    /// Time at which the peer's first datagram came.
    pub met: Option<Instant>,
    /// Time at which the receiver was done, here or at the other end.
    pub done: Option<Instant>,
    counters: Counters,
}

enum Content {
    Sending(Sending),
    Receiving(Receiving),
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

impl Session {
    /// An error is one line.
    pub fn new(assignment: &Assignment, number: usize, start: Instant) -> Result<Self, String> {
        let Workload::Messages(messages) = &assignment.workload else {
            return Err(format!("{} is not of messages", assignment.workload));
        };
        let (role, seed, coding) = (assignment.role, assignment.content_seed, assignment.options.as_ref());
        let content = match messages.sender() == role {
            true => Content::Sending(Sending::new(messages.clone(), seed, coding)?),
            false => Content::Receiving(Receiving::new(messages.clone(), seed, coding)),
        };
        Ok(Self {
            role,
            number,
            start,
            content,
            asking: (role == Role::Client).then(|| Repeated::new(Datagram::Hello, start)),
            answers: Vec::new(),
            met: None,
            done: None,
            counters: Counters::default(),
        })
    }

    /// Takes in what the peer has sent. An error is one line.
    pub fn receive(&mut self, now: Instant, datagram: &[u8]) -> Result<(), String> {
        self.counters.datagrams_received += 1;
        self.counters.bytes_received += datagram.len() as u64;
        let length = datagram.len();
        let datagram = Datagram::parse(datagram)
            .ok_or_else(|| format!("a datagram of {length} bytes is none of this protocol"))?;
        self.met.get_or_insert(now);
        // Whatever the server sends is its answer.
        self.asking.take_if(|asking| asking.datagram == Datagram::Hello);
        match (self.role, &mut self.content, datagram) {
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

    /// Sends what there is to send now.
    pub fn proceed(&mut self, outlet: &mut impl Outlet) -> io::Result<()> {
        let mut outlet = Counting { outlet, counters: &mut self.counters };
        let now = outlet.now();
        for answer in self.answers.drain(..) {
            outlet.send(&answer)?;
        }
        match &mut self.content {
            Content::Sending(sending) => {
                let was_done = sending.is_done();
                sending.proceed(&mut outlet)?;
                if sending.is_done() && !was_done {
                    self.asking = Some(Repeated::new(Datagram::End, now));
                }
            }
            Content::Receiving(receiving) => {
                if self.done.is_none() && receiving.receiver.is_drained(now) {
                    self.done = Some(now);
                    outlet.send(&Datagram::Done)?;
                }
            }
        }
        if let Some(asking) = self.asking.as_mut().filter(|asking| asking.is_due(now)) {
            asking.times += 1;
            asking.next = now + INTERVAL;
            outlet.send(&asking.datagram)?;
        }
        Ok(())
    }

    /// Returns when [`Self::proceed`] has something to do even if nothing arrives.
    pub fn timeout(&self) -> Option<Instant> {
        let content = match &self.content {
            Content::Sending(sending) => sending.timeout(),
            Content::Receiving(receiving) => receiving.receiver.drained_at().filter(|_| self.done.is_none()),
        };
        // A server that has asked often enough waits in silence.
        let is_client = self.role == Role::Client;
        let asking = self.asking.as_ref().filter(|asking| is_client || asking.times < MOST_TIMES);
        content.into_iter().chain(asking.map(|asking| asking.next)).min()
    }

    /// Returns the datagram that was repeated often enough without an answer.
    pub fn unanswered(&self, now: Instant) -> Option<String> {
        let asking = self.asking.as_ref().filter(|asking| asking.times == MOST_TIMES && asking.next <= now)?;
        Some(format!("{} times {}", asking.times, asking.datagram))
    }

    /// Returns when parts were sent or arrived; and when the timetable began, for the sender.
    pub fn log(&self) -> (&Log, Option<Instant>) {
        match &self.content {
            Content::Sending(sending) => (&sending.log, sending.begun),
            Content::Receiving(receiving) => (&receiving.receiver.log, None),
        }
    }

    pub fn counters(&self) -> Counters {
        match &self.content {
            Content::Sending(sending) => {
                Counters { source_sent: sending.source_sent, repair_sent: sending.repair_sent, ..self.counters }
            }
            Content::Receiving(receiving) => Counters {
                source_received: receiving.source_received,
                repair_received: receiving.repair_received,
                recovered: receiving.recovered,
                recovered_spurious: receiving.recovered_spurious,
                ..self.counters
            },
        }
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

/// An outlet that counts.
struct Counting<'a, O> {
    outlet: &'a mut O,
    counters: &'a mut Counters,
}

impl<O: Outlet> Outlet for Counting<'_, O> {
    fn now(&self) -> Instant {
        self.outlet.now()
    }

    fn send(&mut self, datagram: &Datagram) -> io::Result<u64> {
        let bytes = self.outlet.send(datagram)?;
        self.counters.datagrams_sent += 1;
        self.counters.bytes_sent += bytes;
        Ok(bytes)
    }
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Counters {
    datagrams_sent: u64,
    datagrams_received: u64,
    bytes_sent: u64,
    bytes_received: u64,
    source_sent: u64,
    repair_sent: u64,
    source_received: u64,
    repair_received: u64,
    /// Symbols rebuilt, and those of them that came after all.
    recovered: u64,
    recovered_spurious: u64,
}

impl Sum for Counters {
    fn sum<I: Iterator<Item = Self>>(counters: I) -> Self {
        counters.fold(Self::default(), |sum, one| Self {
            datagrams_sent: sum.datagrams_sent + one.datagrams_sent,
            datagrams_received: sum.datagrams_received + one.datagrams_received,
            bytes_sent: sum.bytes_sent + one.bytes_sent,
            bytes_received: sum.bytes_received + one.bytes_received,
            source_sent: sum.source_sent + one.source_sent,
            repair_sent: sum.repair_sent + one.repair_sent,
            source_received: sum.source_received + one.source_received,
            repair_received: sum.repair_received + one.repair_received,
            recovered: sum.recovered + one.recovered,
            recovered_spurious: sum.recovered_spurious + one.recovered_spurious,
        })
    }
}

impl Counters {
    /// Returns metrics by the contract's names.
    pub fn metrics(self) -> Metrics {
        let never_came = self.recovered - self.recovered_spurious;
        let counts = [
            ("packets_sent", self.datagrams_sent - self.repair_sent),
            ("packets_received", self.datagrams_received - self.repair_received + never_came),
            ("bytes_sent", self.bytes_sent),
            ("bytes_received", self.bytes_received),
            ("source_sent", self.source_sent),
            ("repair_sent", self.repair_sent),
            ("source_received", self.source_received),
            ("repair_received", self.repair_received),
            ("packets_recovered", never_came),
            ("recovered_spurious", self.recovered_spurious),
            // Each symbol rebuilt took one repair symbol: one equation for one unknown.
            ("repair_useless", self.repair_received - self.recovered),
            // Nothing is sent twice, so only what came itself was rebuilt for nothing.
            ("recovered_late", self.recovered_spurious),
            ("recovered_in_time", never_came),
        ];
        counts.into_iter().map(|(name, count)| (name, count as f64)).collect()
    }
}
