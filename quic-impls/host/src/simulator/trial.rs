//! A trial: servers, then clients over the link, until the measured client has ended, like runners/trial/transfer.py
//! with processes.
//!
//! At one instant, datagrams that have left the link arrive first. Then the endpoints have their turns, in the order of
//! the answer.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use super::answer::{Answer, Competition, DirectionReport, LinkReport};
use super::filling::Filling;
use super::guest::{Clock, End, Guest, Location};
use super::processor::Way;
use super::task::{Link, Pair, Task};
use super::{Lanes, VIRTUAL_TIME_BEGINS};
use crate::capture::Capture;
use crate::contract::{self, Assignment, Exit, Refused, Role};
use crate::implementation::Implementation;
use crate::requests::{Question, Reply};

/// The names of the ends of each pair, the network of its client, and the folder of its captures. A relay is between the ends
/// of the first.
const PAIRS: [([&str; 2], u8, &str); 2] =
    [(["client", "server"], 1, "."), (["background_client", "background_server"], 3, "background")];
const CLIENT_PORT: u16 = 40_000;

/// The names beside a relay, in the order of the hops.
const CHAIN: [&str; 3] = ["client", contract::RELAY, "server"];

// Places of the guests.
const CLIENT: usize = 0;
const BACKGROUND_CLIENT: usize = 2;

pub struct Trial<'a, I: Implementation> {
    number: u64,
    links: Vec<Link>,
    /// The lanes of the links.
    lanes: &'a mut [Lanes],
    clock: Clock,
    timeout: Duration,
    filling: Option<Filling>,
    /// Client and server of each pair, or client, relay and server.
    guests: Vec<Guest<I>>,
    is_relayed: bool,
    /// The assignment of each guest, until it is started.
    told: Vec<Option<Told<I>>>,
    harness: &'a mut dyn Harness,
    /// Why the harness could not be asked, if it could not: the trial is over.
    unanswered: Option<String>,
}

/// The harness, which sends requests to clients during the trial.
pub trait Harness {
    /// The answer to a question, a line of JSON each. An error is one line.
    fn ask(&mut self, question: &str) -> Result<Reply, String>;
}

/// The values with which an endpoint is started.
struct Told<I: Implementation> {
    assignment: Result<Assignment<I::Options>, Refused>,
    surroundings: I::Surroundings,
}

/// The harness's observations of the transfers.
#[derive(Default)]
struct Seen {
    timed_out: bool,
    background_lasted: bool,
    competition: Option<Competition>,
    client_s: Option<f64>,
}

impl<'a, I: Implementation> Trial<'a, I> {
    /// An error is why there can be no such trial.
    pub fn new(
        task: Task<I>,
        lanes: &'a mut Vec<Lanes>,
        zero: Instant,
        harness: &'a mut dyn Harness,
    ) -> Result<Self, String> {
        lanes.resize_with(lanes.len().max(task.links.len()), Lanes::default);
        let lanes = &mut lanes[..task.links.len()];
        for (Link { name, directions }, lanes) in task.links.iter().zip(&mut *lanes) {
            lanes.up.begin(&directions.up).map_err(|why| format!("links.{name}.up: {why}"))?;
            lanes.down.begin(&directions.down).map_err(|why| format!("links.{name}.down: {why}"))?;
        }
        let is_relayed = task.pairs.iter().any(|pair| pair.relay.is_some());
        let (mut guests, mut told) = (Vec::new(), Vec::new());
        for (number, pair) in task.pairs.into_iter().enumerate() {
            let (_, network, folder) = PAIRS[number];
            for (ends, assignment) in located(pair, network, lanes.len()) {
                let place = guests.len();
                let role = role(place, is_relayed);
                let name = name(place, is_relayed);
                let title = if number > 0 { ["client", "server"][role as usize] } else { name };
                let location = Location { place: title, role, tag: number as u64, ends };
                let recorded = task.capture.as_ref().zip(assignment.as_ref().ok());
                let logs = recorded.map(|(_, assignment)| assignment.log_folder.as_path());
                let surroundings = I::virtual_surroundings(task.seed, name, logs)?;
                let capture = recorded.map(|(captures, _)| open_capture(&captures.join(folder), title));
                let capture = capture.transpose()?;
                guests.push(Guest::new(location, task.costs, capture));
                told.push(Some(Told { assignment, surroundings }));
            }
        }
        Ok(Self {
            number: task.number,
            filling: task.filling,
            links: task.links,
            lanes,
            clock: Clock { zero, now_ns: 0 },
            timeout: task.timeout,
            guests,
            is_relayed,
            told,
            harness,
            unanswered: None,
        })
    }

    /// An error is a capture that is not whole, in one line.
    pub fn run(mut self) -> Result<Answer, String> {
        let servers: Vec<_> =
            (0..self.guests.len()).filter(|place| role(*place, self.is_relayed) == Role::Server).collect();
        for place in &servers {
            self.start(*place);
        }
        let mut seen = Seen { background_lasted: true, ..Seen::default() };
        if servers.iter().all(|place| self.guests[*place].is_ready()) {
            self.transfer(&mut seen);
        }
        self.end();
        if let Some(problem) = self.unanswered {
            return Err(problem);
        }
        let ended = self.guests.into_iter().enumerate().filter(|(_, guest)| guest.has_ended());
        let endpoints = ended.map(|(place, guest)| Ok((name(place, self.is_relayed), guest.into_report()?)));
        let links = self.links.into_iter().zip(self.lanes).map(|(link, lanes)| {
            (link.name, LinkReport { up: DirectionReport::of(&lanes.up), down: DirectionReport::of(&lanes.down) })
        });
        Ok(Answer {
            number: self.number,
            endpoints: endpoints.collect::<Result<_, String>>()?,
            timed_out: seen.timed_out,
            background_lasted: seen.background_lasted,
            competition: seen.competition,
            links: links.collect::<BTreeMap<_, _>>(),
            client_s: seen.client_s,
            virtual_s: seconds(self.clock.now_ns),
        })
    }

    /// The measured transfer, beside that of the second pair if there is one.
    fn transfer(&mut self, seen: &mut Seen) {
        if let Some(filling) = self.filling {
            let begun_ns = self.clock.now_ns;
            self.start(BACKGROUND_CLIENT);
            if !self.fill(filling) {
                seen.background_lasted = !self.guests[BACKGROUND_CLIENT].has_ended();
                seen.timed_out = self.has_timed_out(BACKGROUND_CLIENT);
                return;
            }
            let filling_s = seconds(self.clock.now_ns - begun_ns);
            seen.competition = Some(Competition { filling_s, foreground_mbps: None, background_mbps: None });
        }
        let (begun_ns, before) = (self.clock.now_ns, self.arrived());
        self.start_links();
        self.start(CLIENT);
        self.go_on(self.deadline_ns(), |trial| trial.guests[CLIENT].has_ended());
        let lasted_s = seconds(self.clock.now_ns - begun_ns);
        seen.client_s = Some(lasted_s);
        seen.timed_out = self.has_timed_out(CLIENT);
        let arrived = self.arrived();
        if let Some(competition) = &mut seen.competition {
            seen.background_lasted = !self.guests[BACKGROUND_CLIENT].has_ended();
            if lasted_s > 0.0 {
                let mbps = |place: usize| Some(8e-6 * (arrived[place] - before[place]) as f64 / lasted_s);
                competition.foreground_mbps = mbps(CLIENT);
                competition.background_mbps = mbps(BACKGROUND_CLIENT);
            }
        }
    }

    /// The measured client starts now.
    fn start_links(&mut self) {
        for lanes in &mut *self.lanes {
            lanes.up.start(self.clock.now_ns);
            lanes.down.start(self.clock.now_ns);
        }
    }

    /// Whether the link is full downwards before the background has ended or the deadline has passed.
    fn fill(&mut self, filling: Filling) -> bool {
        self.lanes[0].down.begin_filling(filling.full_share, filling.window_ns());
        while !self
            .go_on(self.clock.now_ns + filling.interval_ns(), |trial| trial.guests[BACKGROUND_CLIENT].has_ended())
        {
            if self.lanes[0].down.is_full(self.clock.now_ns) {
                return true;
            }
            if self.clock.now_ns > self.deadline_ns() {
                return false;
            }
        }
        false
    }

    /// Bytes that have come in at each guest.
    fn arrived(&self) -> Vec<u64> {
        self.guests.iter().map(Guest::<I>::frame_bytes).collect()
    }

    fn deadline_ns(&self) -> u64 {
        self.timeout.as_nanos() as u64
    }

    /// Whether a client ran out of time; it may have given up itself.
    fn has_timed_out(&self, place: usize) -> bool {
        let is_late = self.clock.now_ns >= self.deadline_ns();
        self.guests[place].exit_code().is_none_or(|code| code != 0 && is_late)
    }

    /// Starts an endpoint; a client has what is left of the time.
    fn start(&mut self, place: usize) {
        let Told { assignment, surroundings } = self.told[place].take().expect("each is started once");
        let left = self.timeout.saturating_sub(Duration::from_nanos(self.clock.now_ns));
        let guest = &mut self.guests[place];
        match assignment {
            Err(refused) => guest.end(Exit::refusing::<I>(refused)),
            Ok(mut assignment) => {
                if role(place, self.is_relayed) == Role::Client {
                    assignment.deadline = assignment.deadline.min(left);
                }
                guest.start(assignment, &surroundings, self.clock, self.lanes);
            }
        }
    }

    /// Goes on until something is so (true), or else until a time (false).
    fn go_on(&mut self, until_ns: u64, is_over: impl Fn(&Self) -> bool) -> bool {
        loop {
            self.turns();
            self.converse();
            if is_over(self) || self.unanswered.is_some() {
                return true;
            }
            match self.next_ns().filter(|next_ns| *next_ns <= until_ns) {
                Some(next_ns) => {
                    self.clock.now_ns = next_ns.max(self.clock.now_ns);
                    self.arrive();
                }
                None => {
                    self.clock.now_ns = until_ns.max(self.clock.now_ns);
                    return false;
                }
            }
        }
    }

    fn next_ns(&self) -> Option<u64> {
        let exits = self.lanes.iter().flat_map(|lanes| [lanes.up.next_exit(), lanes.down.next_exit()]);
        exits.chain(self.guests.iter().map(Guest::<I>::next_ns)).flatten().min()
    }

    /// Delivers datagrams that have left the link, and sends those that processors have finished.
    fn arrive(&mut self) {
        let now_ns = self.clock.now_ns;
        for (link, lanes) in self.lanes.iter_mut().enumerate() {
            for (lane, role) in [(&mut lanes.up, Role::Server), (&mut lanes.down, Role::Client)] {
                while let Some(exit) = lane.receive(now_ns) {
                    if !exit.lost {
                        let first = if self.is_relayed { link } else { 2 * exit.tag as usize };
                        self.guests[first + role as usize].arrive(Way { link, ecn: exit.ecn }, exit.payload, now_ns);
                    }
                }
            }
        }
        self.send(now_ns);
    }

    fn send(&mut self, now_ns: u64) {
        for guest in &mut self.guests {
            guest.send(now_ns, self.lanes);
        }
    }

    fn turns(&mut self) {
        for guest in &mut self.guests {
            guest.turn(self.clock, self.lanes);
        }
    }

    /// Asks what the measured client is to read, when it has something to say.
    fn converse(&mut self) {
        while let Some(said) = self.guests[CLIENT].question() {
            let objects = said.iter().map(|said| said.json().parse().expect("it is JSON")).collect();
            let question = Question { number: self.number, objects, now_s: seconds(self.clock.now_ns) };
            let asked = serde_json::to_string(&question).map_err(|error| error.to_string());
            match asked.and_then(|asked| self.harness.ask(&asked)) {
                Ok(Reply { number, lines }) if number == self.number => self.guests[CLIENT].reply(lines),
                Ok(Reply { number, .. }) => self.unanswered = Some(format!("the reply is to task {number}")),
                Err(problem) => self.unanswered = Some(problem),
            }
            if self.unanswered.is_some() {
                break;
            }
        }
    }

    /// Ends the clients first: a server that is ended serves nobody any more. The last packets of the guests enter the
    /// link, and no packet leaves it any more.
    fn end(&mut self) {
        for guest in &mut self.guests {
            guest.interrupt(self.clock, self.lanes);
        }
        while let Some(ready_ns) = self.guests.iter().filter_map(Guest::<I>::next_ns).min() {
            self.send(ready_ns);
        }
    }
}

/// Returns an address of the client for each link; a client with only one address is at the pair's own.
fn client_addresses<O>(client: Option<&Assignment<O>>, own: IpAddr, links: usize) -> Vec<SocketAddr> {
    let given = client.map_or(&[][..], |client| &client.local_addresses);
    let addresses = if links > 1 && !given.is_empty() { given } else { &[own] };
    addresses.iter().map(|address| SocketAddr::new(*address, CLIENT_PORT)).collect()
}

/// Returns the address of a pair's client: 10.0.1.2, or its twin in IPv6, in network 1.
fn client_address(network: u8, is_ipv6: bool) -> IpAddr {
    if is_ipv6 {
        Ipv6Addr::new(0xfd00, 0xfec, 0xa00, network.into(), 0, 0, 0, 2).into()
    } else {
        Ipv4Addr::new(10, 0, network, 2).into()
    }
}

/// The ends of links at which an endpoint is, and its assignment.
type Located<I> = (Vec<End>, Result<Assignment<<I as Implementation>::Options>, Refused>);

/// Returns the location of each endpoint of a pair, in the order of the answer, and its assignment.
fn located<I: Implementation>(pair: Pair<I>, network: u8, links: usize) -> Vec<Located<I>> {
    let Pair { client, relay, server } = pair;
    let hops = if relay.is_some() { 1 } else { links };
    let is_ipv6 = server.as_ref().is_ok_and(|assignment| assignment.address.is_ipv6());
    let clients = client_addresses(client.as_ref().ok(), client_address(network, is_ipv6), hops);
    // One whose assignment is refused is never started, and so nor is the client.
    let listening = |assignment: &Result<Assignment<I::Options>, Refused>| {
        assignment.as_ref().map_or(clients[0], |assignment| assignment.address)
    };
    let end = |link, role, own, peer| End { link, role, own, peer };
    let server_address = listening(&server);
    let Some(relay) = relay else {
        let numbered = || clients.iter().enumerate();
        let of_client = numbered().map(|(link, own)| end(link, Role::Client, *own, server_address));
        let of_server = numbered().map(|(link, peer)| end(link, Role::Server, server_address, *peer));
        return vec![(of_client.collect(), client), (of_server.collect(), server)];
    };
    let address = listening(&relay);
    vec![
        (vec![end(0, Role::Client, clients[0], address)], client),
        (vec![end(0, Role::Server, address, clients[0]), end(1, Role::Client, address, server_address)], relay),
        (vec![end(1, Role::Server, server_address, address)], server),
    ]
}

fn open_capture(folder: &Path, place: &str) -> Result<Capture, String> {
    fs::create_dir_all(folder).map_err(|error| format!("capture: {}: {error}", folder.display()))?;
    Capture::open(folder.join(format!("{place}.pcapng")), VIRTUAL_TIME_BEGINS)
}

fn role(place: usize, is_relayed: bool) -> Role {
    let is_client = if is_relayed { place == CLIENT } else { place.is_multiple_of(2) };
    if is_client { Role::Client } else { Role::Server }
}

fn name(place: usize, is_relayed: bool) -> &'static str {
    if is_relayed { CHAIN[place] } else { PAIRS[place / 2].0[place % 2] }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
