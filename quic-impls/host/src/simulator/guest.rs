//! An endpoint in its host: the datagrams that have arrived for it, those that it sends, and its end.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::Lanes;
use super::answer::EndpointReport;
use super::processor::{Costs, Processor, Way};
use crate::capture::Capture;
use crate::contract::{Assignment, Event, Exit, Role, Workload};
use crate::implementation::{Endpoint, Host, Implementation, Received, Turn};
use crate::lane;
use crate::requests::{Input, Said};

/// Virtual time, in ns since its instant 0.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    pub zero: Instant,
    pub now_ns: u64,
}

impl Clock {
    fn now(&self) -> Instant {
        self.zero + Duration::from_nanos(self.now_ns)
    }

    fn ns(&self, time: Instant) -> u64 {
        u64::try_from(time.duration_since(self.zero).as_nanos()).expect("no timer is 500 years ahead")
    }
}

/// The host of an endpoint, and the endpoint when it is at work.
pub struct Guest<I: Implementation> {
    endpoint: Option<I::Endpoint>,
    /// Time of its next turn, unless a datagram arrives before.
    next_turn_ns: Option<u64>,
    room: Room,
}

/// The location of an endpoint.
#[derive(Debug, Clone)]
pub struct Location {
    /// Its name in a line about its end.
    pub place: &'static str,
    pub role: Role,
    /// Tag of its datagrams, by which they find the other end of the pair.
    pub tag: u64,
    /// The links that it is at, the first one for what names none.
    pub ends: Vec<End>,
}

/// The end of a link at which an endpoint is.
#[derive(Debug, Clone, Copy)]
pub struct End {
    pub link: usize,
    /// The end of the link; a relay is at the server's of one and at the client's of another.
    pub role: Role,
    pub own: SocketAddr,
    pub peer: SocketAddr,
}

impl Location {
    /// Returns its end of a link.
    fn end(&self, link: usize) -> &End {
        self.ends.iter().find(|end| end.link == link).expect("nothing comes from elsewhere")
    }

    /// Returns the link over which a datagram goes.
    fn link(&self, from: Option<IpAddr>, to: SocketAddr) -> usize {
        let leads = |end: &&End| to == end.peer && from.is_none_or(|from| from == end.own.ip());
        self.ends.iter().find(leads).unwrap_or(&self.ends[0]).link
    }
}

/// Input and messages of a client of the workload `requests` in a trial.
#[derive(Default)]
struct Dialogue {
    /// Whether it waits to be told what to read at first.
    asks: bool,
    said: VecDeque<Said>,
    /// Lines for it, and their times.
    lines: VecDeque<(u64, Input)>,
}

/// The part of a host that an endpoint deals with.
struct Room {
    location: Location,
    /// Whether it is a client of several paths.
    has_paths: bool,
    capture: Option<Capture>,
    /// Datagrams, and how each came.
    arrived: VecDeque<(Way, Vec<u8>)>,
    /// ECN codepoint of what it sends.
    ecn: u8,
    /// The datagram that the endpoint is taking in.
    received: Vec<u8>,
    /// Room for datagrams, that of those which it has taken in.
    spare: Vec<Vec<u8>>,
    has_received: bool,
    /// Bytes of the frames that have arrived.
    frame_bytes: u64,
    processor: Processor,
    dialogue: Dialogue,
    report: EndpointReport,
}

impl<I: Implementation> Guest<I> {
    pub fn new(location: Location, costs: Costs, capture: Option<Capture>) -> Self {
        Self {
            endpoint: None,
            next_turn_ns: None,
            room: Room {
                location,
                has_paths: false,
                capture,
                arrived: VecDeque::new(),
                ecn: 0,
                received: Vec::new(),
                spare: Vec::new(),
                has_received: false,
                frame_bytes: 0,
                processor: Processor::new(if I::HAS_CERTIFICATES { costs } else { costs.without_handshake() }),
                dialogue: Dialogue::default(),
                report: EndpointReport::default(),
            },
        }
    }

    /// Starts its endpoint.
    pub fn start(
        &mut self,
        assignment: Assignment<I::Options>,
        surroundings: &I::Surroundings,
        clock: Clock,
        links: &mut [Lanes],
    ) {
        self.room.has_paths = !assignment.path_addresses::<I>().is_empty();
        self.room.dialogue.asks = assignment.role == Role::Client && matches!(assignment.workload, Workload::Requests);
        let mut port = Port { clock, links, room: &mut self.room };
        match I::prepare(assignment, surroundings).and_then(|prepared| I::start(prepared, &mut port)) {
            Ok(endpoint) => {
                self.endpoint = Some(endpoint);
                self.next_turn_ns = Some(clock.now_ns);
            }
            Err(error) => self.end(Exit::of::<I>(self.room.location.place, Err(error))),
        }
    }

    /// Notes how its endpoint has ended.
    pub fn end(&mut self, exit: Exit) {
        self.endpoint = None;
        self.next_turn_ns = None;
        self.room.arrived.clear();
        self.room.report.exit_code = Some(exit.code);
        if let Some(line) = exit.line {
            self.room.report.complain(&line);
        }
    }

    pub fn is_ready(&self) -> bool {
        self.room.report.ready
    }

    pub fn has_ended(&self) -> bool {
        self.room.report.exit_code.is_some()
    }

    pub fn exit_code(&self) -> Option<u8> {
        self.room.report.exit_code
    }

    /// Returns the report of its endpoint. An error is a capture that is incomplete, in one line.
    pub fn into_report(self) -> Result<EndpointReport, String> {
        self.room.capture.map_or(Ok(()), Capture::close)?;
        Ok(self.room.report)
    }

    /// Bytes of the Ethernet frames that have arrived.
    pub fn frame_bytes(&self) -> u64 {
        self.room.frame_bytes
    }

    /// A datagram arrives over a link.
    pub fn arrive(&mut self, way: Way, datagram: &[u8], now_ns: u64) {
        let End { own, peer, .. } = *self.room.location.end(way.link);
        self.room.frame_bytes += datagram.len() as u64 + lane::OVERHEADS[usize::from(own.is_ipv6())];
        if let Some(capture) = &mut self.room.capture {
            capture.packet(now_ns, peer, own, datagram);
        }
        if self.endpoint.is_some() {
            let mut arrived = self.room.spare.pop().unwrap_or_default();
            arrived.clear();
            arrived.extend_from_slice(datagram);
            self.room.arrived.push_back((way, arrived));
        }
    }

    /// The question that it has, if any: which lines is it to read, now that it has said this, or at first?
    pub fn question(&mut self) -> Option<Option<Said>> {
        self.endpoint.as_ref()?;
        let dialogue = &mut self.room.dialogue;
        match dialogue.said.pop_front() {
            Some(said) => Some(Some(said)),
            None => mem::take(&mut dialogue.asks).then_some(None),
        }
    }

    /// Replaces the lines that the client has not read yet.
    pub fn reply(&mut self, lines: Vec<(u64, Option<String>)>) {
        let inputs = lines.into_iter().map(|(at_ns, text)| (at_ns, text.map_or(Input::End, Input::Line)));
        self.room.dialogue.lines = inputs.collect();
    }

    /// Returns when the next event happens here; it may be overdue.
    pub fn next_ns(&self) -> Option<u64> {
        let left_over = (!self.room.arrived.is_empty()).then_some(0);
        let line = self.room.dialogue.lines.front().map(|(at_ns, _)| *at_ns).filter(|_| self.endpoint.is_some());
        [left_over, line, self.next_turn_ns, self.room.processor.next_ns()].into_iter().flatten().min()
    }

    /// Gives its endpoint a turn if it is time.
    pub fn turn(&mut self, clock: Clock, links: &mut [Lanes]) {
        let Some(endpoint) = &mut self.endpoint else {
            return;
        };
        let has_line = self.room.dialogue.lines.front().is_some_and(|(at_ns, _)| *at_ns <= clock.now_ns);
        let is_time = self.next_turn_ns.is_some_and(|time| time <= clock.now_ns);
        if self.room.arrived.is_empty() && !has_line && !is_time {
            return;
        }
        let mut port = Port { clock, links, room: &mut self.room };
        match endpoint.turn(&mut port) {
            Ok(Turn::Until(time)) => self.next_turn_ns = time.map(|time| clock.ns(time)),
            Ok(Turn::Ended) => self.end(Exit::of::<I>(self.room.location.place, Ok(()))),
            Err(error) => self.end(Exit::of::<I>(self.room.location.place, Err(error))),
        }
    }

    /// Has its endpoint end now, if it is at work.
    pub fn interrupt(&mut self, clock: Clock, links: &mut [Lanes]) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.interrupt();
            self.next_turn_ns = Some(clock.now_ns);
            self.turn(clock, links);
        }
    }

    /// Sends what its processor is ready with.
    pub fn send(&mut self, now_ns: u64, links: &mut [Lanes]) {
        while let Some((ready_ns, way, datagram)) = self.room.processor.ready(now_ns) {
            self.room.send(&datagram, way, ready_ns, links);
        }
    }
}

impl Room {
    fn send(&mut self, datagram: &[u8], way: Way, now_ns: u64, links: &mut [Lanes]) {
        let End { role, own, peer, .. } = *self.location.end(way.link);
        if let Some(capture) = &mut self.capture {
            capture.packet(now_ns, own, peer, datagram);
        }
        links[way.link].of_sender(role).send(datagram, self.location.tag, way.ecn, now_ns);
    }
}

/// A host as its endpoint sees it.
struct Port<'a> {
    clock: Clock,
    links: &'a mut [Lanes],
    room: &'a mut Room,
}

impl Host for Port<'_> {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn monotonic(&self, time: Instant) -> Duration {
        Duration::from_nanos(self.clock.ns(time))
    }

    fn send(&mut self, datagram: &[u8], from: Option<IpAddr>, to: SocketAddr) -> io::Result<()> {
        let room = &mut *self.room;
        let way = Way { link: room.location.link(from, to), ecn: room.ecn };
        if room.processor.take(datagram, way, self.clock.now_ns, room.location.role, room.has_received) {
            room.send(datagram, way, self.clock.now_ns, self.links);
        }
        Ok(())
    }

    fn mark(&mut self, codepoint: u8) -> io::Result<()> {
        self.room.ecn = codepoint;
        Ok(())
    }

    fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
        let room = &mut *self.room;
        let Some((way, datagram)) = room.arrived.pop_front() else {
            return Ok(None);
        };
        room.has_received = true;
        room.spare.push(mem::replace(&mut room.received, datagram));
        let End { own, peer, .. } = *room.location.end(way.link);
        let to = room.has_paths.then(|| own.ip());
        Ok(Some(Received { at: self.clock.now(), from: peer, to, ecn: way.ecn, datagram: &room.received }))
    }

    fn read(&mut self) -> io::Result<Option<Input>> {
        let lines = &mut self.room.dialogue.lines;
        let is_due = lines.front().is_some_and(|(at_ns, _)| *at_ns <= self.clock.now_ns);
        Ok(if is_due { lines.pop_front().map(|(_, input)| input) } else { None })
    }

    fn say(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Ready => self.room.report.ready = true,
            Event::Said(said) => self.room.dialogue.said.push_back(said),
            Event::Done(metrics) => self.room.report.metrics = Some(metrics),
        }
        Ok(())
    }

    fn complain(&mut self, line: &str) {
        self.room.report.complain(line);
    }
}
