//! A client and a server over one link or several, in one thread and in virtual time: a whole transfer takes milliseconds, and the
//! same seed gives the same transfer. Beyond what the emulated link does, it can bring datagrams late, so that others overtake them.

#![allow(dead_code)] // each test has its own use for this module

pub mod budget;
mod certificate;
pub mod decrypted;
pub mod reassembly;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use budget::Cost;
use fec::Code;
use host::coding::{Coding, Redundancy};
use host::content;
use host::contract::{Direction, Role, Transfer, Workload};
use host::lane::Lane;
use host::records::Records;
use host::surroundings::Seed;
use noq_fec::hq_interop::{Answers, Request};
use noq_fec::options::{CongestionControl, Http, Options};
use noq_fec::scheduler::Scheduling;
use noq_fec::schemes::{Schemes, SourceSymbols};
use noq_fec::settings;
use noq_fec::stack::{Application, Counters, Stack};
use noq_fec::surroundings::Surroundings;
use noq_fec::{Assignment, NoqFec};
use noq_proto::{AckPath, ClientConfig, ServerConfig, TransportConfig};

/// Addresses of the client, one for each link.
const CLIENTS: [&str; 3] = ["10.0.1.2:40000", "10.0.2.2:40000", "10.0.3.2:40000"];
const SERVER: &str = "10.0.100.2:4433";
const SERVER_NAME: &str = "server.fecbench";

/// Losses of a direction's datagrams, which are counted from 0 as they leave the link.
#[derive(Debug, Clone)]
pub enum Loss {
    Nothing,
    /// These.
    These(Vec<u64>),
    Uniform {
        rate: f64,
        seed: u64,
    },
    /// Gilbert-Elliott: p = P(good→bad), r = P(bad→good); nothing is delivered in the bad state, all in the good.
    Bursts {
        p: f64,
        r: f64,
        seed: u64,
    },
}

impl Loss {
    /// The lines of a lane's text.
    fn lines(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::These(these) => {
                let list: Vec<_> = these.iter().map(u64::to_string).collect();
                format!("model pattern\ndrop {}\n", list.join(","))
            }
            Self::Uniform { rate, seed } => format!("model uniform\np {rate}\nseed {seed}\n"),
            Self::Bursts { p, r, seed } => format!("model markov\np {p}\nr {r}\nseed {seed}\n"),
        }
    }
}

const PACKET_SIZE: u64 = 1252;

/// In bandwidth-delay products: a queue that is never full, whatever slow start makes of it.
pub const DEEP_QUEUE: f64 = 100.0;

/// The smallest queue that the harness makes, in bytes.
const SMALLEST_QUEUE: u64 = 10 * 1514;

/// One direction of a link.
struct Way {
    lane: Lane,
    late: Option<(u64, Duration)>,
    /// The largest delay of a datagram by jitter, and the seed that draws each.
    jitter: Duration,
    seed: u64,
    /// Datagrams that have left the link.
    left: u64,
}

impl Way {
    fn new(link: &Link, loss: &Loss, outage: Option<[Duration; 2]>, late: Option<(u64, Duration)>, seed: u64) -> Self {
        let mut lane = Lane::default();
        lane.begin(&link.text(loss, outage.filter(|[from, to]| from < to))).unwrap();
        lane.start(0);
        Self { lane, late, jitter: link.jitter, seed, left: 0 }
    }

    /// The next datagram that has left the link and was not lost, and how late it is.
    fn next_left(&mut self, now_ns: u64) -> Option<(Vec<u8>, Duration)> {
        loop {
            let exit = self.lane.receive(now_ns)?;
            let n = self.left;
            self.left += 1;
            if !exit.lost {
                let share = (content::word(self.seed, n) >> 32) as f64 / (1u64 << 32) as f64;
                let own = self.late.filter(|(late, _)| *late == n).map_or(Duration::ZERO, |(_, lateness)| lateness);
                return Some((exit.payload.to_vec(), self.jitter.mul_f64(share) + own));
            }
        }
    }

    /// Datagrams that were sent and have not left the link alive.
    fn missing(&self) -> u64 {
        let report = self.lane.report();
        report.outage_dropped + report.queue_dropped + report.oversize_dropped + report.in_flight + report.dropped
    }
}

/// One of the links between client and server.
#[derive(Debug, Clone)]
pub struct Link {
    pub bandwidth_mbps: f64,
    pub owd: Duration,
    /// The queue's limit in bandwidth-delay products.
    pub queue_bdp: f64,
    /// Whether CoDel drops from the queue besides.
    pub codel: bool,
    pub up: Loss,
    pub down: Loss,
    /// The outage of each direction: from, to.
    pub outage_up: Option<[Duration; 2]>,
    pub outage_down: Option<[Duration; 2]>,
    /// Each datagram is late by up to this, so that some overtake others.
    pub jitter: Duration,
}

impl Link {
    /// One without losses, and with the queue that the harness gives a link.
    pub fn new(bandwidth_mbps: f64, owd_ms: u64) -> Self {
        Self {
            bandwidth_mbps,
            owd: Duration::from_millis(owd_ms),
            queue_bdp: 1.5,
            codel: false,
            up: Loss::Nothing,
            down: Loss::Nothing,
            outage_up: None,
            outage_down: None,
            jitter: Duration::ZERO,
        }
    }

    /// A direction of it, as a lane reads it.
    fn text(&self, loss: &Loss, outage: Option<[Duration; 2]>) -> String {
        let round_trip_bytes = self.bandwidth_mbps * 1e6 / 8.0 * 2.0 * self.owd.as_secs_f64();
        let queue_bytes = ((self.queue_bdp * round_trip_bytes).round() as u64).max(SMALLEST_QUEUE);
        let (rate_bps, delay_ns) = ((self.bandwidth_mbps * 1e6).round(), self.owd.as_nanos());
        let outage =
            outage.map(|[from, to]| format!("outage_ns {} {}\n", from.as_nanos(), to.as_nanos())).unwrap_or_default();
        let queue = if self.codel { "codel" } else { "droptail" };
        let limits = format!("queue_bytes {queue_bytes}\nqueue {queue}\n");
        format!("rate_bps {rate_bps}\ndelay_ns {delay_ns}\n{limits}{outage}{}", loss.lines())
    }
}

/// The parameters of a transfer.
#[derive(Debug, Clone)]
pub struct Setting {
    pub direction: Direction,
    pub size: u64,
    pub client: Option<Schemes>,
    pub server: Option<Schemes>,
    pub congestion_control: CongestionControl,
    pub up: Loss,
    pub down: Loss,
    /// One datagram of each direction that is late, and by how much.
    pub late_up: Option<(u64, Duration)>,
    pub late_down: Option<(u64, Duration)>,
    /// In packets.
    pub initial_window: u64,
    /// In quarters of a window per round-trip time.
    pub slow_start_pacing: u32,
    pub http: Http,
    pub bandwidth_mbps: f64,
    pub owd: Duration,
    /// The queue's limit in bandwidth-delay products.
    pub queue_bdp: f64,
    /// Whether CoDel drops from the queue besides.
    pub codel: bool,
    /// Each datagram is late by up to this, so that some overtake others.
    pub jitter: Duration,
    /// The links of further paths. The fields above describe the first link.
    pub further_links: Vec<Link>,
    /// Number of paths that the two may use; the client has an address for each link.
    pub paths: usize,
    pub scheduler: Scheduling,
    pub ack_path: AckPath,
    /// The outages of the first link, upwards and downwards.
    pub outage_up: Option<[Duration; 2]>,
    pub outage_down: Option<[Duration; 2]>,
    pub seed: u64,
}

impl Setting {
    /// A download over these links, with a path over each.
    pub fn over(links: &[Link], size: u64, schemes: Option<Schemes>) -> Self {
        let (first, further) = links.split_first().expect("there is a link");
        let Link { bandwidth_mbps, owd, queue_bdp, codel, up, down, outage_up, outage_down, jitter } = first.clone();
        let (paths, further_links) = (links.len(), further.to_vec());
        let setting = Self::download(size, schemes);
        Self {
            bandwidth_mbps,
            owd,
            queue_bdp,
            codel,
            up,
            down,
            outage_up,
            outage_down,
            jitter,
            paths,
            further_links,
            ..setting
        }
    }

    /// All links, the first one's included.
    pub fn links(&self) -> Vec<Link> {
        let Self { bandwidth_mbps, owd, queue_bdp, codel, outage_up, outage_down, jitter, .. } = *self;
        let (up, down) = (self.up.clone(), self.down.clone());
        let first = Link { bandwidth_mbps, owd, queue_bdp, codel, up, down, outage_up, outage_down, jitter };
        [&[first], &self.further_links[..]].concat()
    }

    /// A download over 10 Mbps with a one-way delay of 50 ms and the queue that the harness gives a link, both endpoints with
    /// the same schemes.
    pub fn download(size: u64, schemes: Option<Schemes>) -> Self {
        Self {
            direction: Direction::Download,
            size,
            client: schemes.clone(),
            server: schemes,
            congestion_control: CongestionControl::NewReno,
            up: Loss::Nothing,
            down: Loss::Nothing,
            late_up: None,
            late_down: None,
            initial_window: 10,
            slow_start_pacing: 5,
            http: Http::Hq,
            bandwidth_mbps: 10.0,
            owd: Duration::from_millis(50),
            queue_bdp: 1.5,
            codel: false,
            jitter: Duration::ZERO,
            further_links: Vec::new(),
            paths: 1,
            scheduler: Scheduling::LowestId,
            ack_path: AckPath::Same,
            outage_up: None,
            outage_down: None,
            seed: 1,
        }
    }

    /// A download whose repair symbols come after the third packet behind a lost one, and so after its loss was declared;
    /// masked or not.
    pub fn late_repair(masks_losses: bool) -> Self {
        let schemes = Schemes { masks_losses, ..schemes(Code::ReedSolomon, 21, 20) };
        Self { congestion_control: CongestionControl::Cubic, ..Self::download(200_000, Some(schemes)) }
    }

    pub fn assignment(&self, role: Role, schemes: &Option<Schemes>) -> Assignment {
        let certificate = certificate::certificate(SERVER_NAME);
        Assignment {
            role,
            address: SERVER.parse().unwrap(),
            server_name: SERVER_NAME.into(),
            workload: Workload::Transfer(Transfer { direction: self.direction, size: self.size }),
            content_seed: self.seed,
            options: Options {
                paths: self.paths,
                scheduler: self.scheduler,
                ack_path: self.ack_path,
                schemes: schemes.clone(),
                congestion_control: self.congestion_control,
                initial_window: self.initial_window * PACKET_SIZE,
                slow_start_pacing: self.slow_start_pacing,
                http: self.http,
                packet_size: PACKET_SIZE as u16,
                ecn: false,
            },
            certificate: certificate.clone(),
            private_key: certificate.clone(),
            authority: certificate,
            log_folder: PathBuf::new(),
            series: Vec::new(),
            local_addresses: CLIENTS[..self.paths].iter().map(|client| address(client).ip()).collect(),
            deadline: Duration::from_secs(600),
            upstream: None,
        }
    }

    pub fn surroundings(&self, role: Role) -> Surroundings {
        Surroundings::virtual_time(Seed::of(self.seed, &role.to_string()), Records::default())
    }

    pub fn transport(&self, role: Role, schemes: &Option<Schemes>) -> TransportConfig {
        settings::transport(&self.assignment(role, schemes), &self.surroundings(role))
    }

    pub fn client_config(&self) -> ClientConfig {
        settings::client(&self.assignment(Role::Client, &self.client), &self.surroundings(Role::Client)).unwrap()
    }

    pub fn server_config(&self) -> ServerConfig {
        settings::server(&self.assignment(Role::Server, &self.server), &self.surroundings(Role::Server)).unwrap()
    }

    /// The transfer with the n-th lost of the datagrams that carry its content.
    pub fn losing(&self, n: u64) -> Outcome {
        self.losing_these(vec![n])
    }

    pub fn losing_these(&self, these: Vec<u64>) -> Outcome {
        let loss = Loss::These(these);
        match self.direction {
            Direction::Download => Self { down: loss, ..self.clone() }.run(),
            Direction::Upload => Self { up: loss, ..self.clone() }.run(),
        }
    }

    /// A transfer between two honest ends: the bytes that they send pay for all that is done on their account.
    pub fn run(&self) -> Outcome {
        let outcome = World::of_transfer(self, self.client_config(), self.server_config()).run();
        for counted in [&outcome.client, &outcome.server] {
            assert_eq!((counted.comparisons_forgone, counted.recovered_unpaid), (0, 0), "{self:?}: {counted:?}");
        }
        outcome
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub fn schemes(code: Code, n: usize, k: usize) -> Schemes {
    Schemes::constant(code, n, k)
}

/// The schemes of `safe`: its repair symbols name packets.
pub fn safe() -> Schemes {
    let schemes = coded(schemes(Code::RLC, 3, 2), |coding| coding.redundancy = Redundancy::SAFE);
    Schemes { source_symbols: SourceSymbols::Implicit, ..schemes }
}

/// The same with other parameters of its code.
pub fn coded(mut schemes: Schemes, change: impl FnOnce(&mut Coding)) -> Schemes {
    change(&mut schemes.coding);
    schemes
}

/// One set of parameters for each code and controller.
pub fn all_schemes() -> Vec<Schemes> {
    vec![
        schemes(Code::Xor, 5, 4),
        coded(schemes(Code::Xor, 5, 4), |coding| coding.interleave = 3),
        schemes(Code::ReedSolomon, 9, 6),
        schemes(Code::RLC, 3, 2),
        schemes(Code::Vandermonde, 3, 2),
        coded(schemes(Code::RLC, 3, 2), |coding| coding.redundancy = Redundancy::Tail),
        Schemes { masks_losses: true, ..schemes(Code::RLC, 3, 2) },
        Schemes { tells_losses_at_once: true, ..schemes(Code::RLC, 3, 2) },
        Schemes { tells_losses_at_once: true, repeats_until_acknowledged: true, ..schemes(Code::RLC, 3, 2) },
        coded(schemes(Code::RLC, 3, 2), |coding| coding.window_trim = false),
        Schemes { source_symbols: SourceSymbols::Implicit, ..schemes(Code::RLC, 3, 2) },
        Schemes {
            source_symbols: SourceSymbols::Implicit,
            ..coded(schemes(Code::Xor, 3, 2), |coding| coding.interleave = 2)
        },
    ]
}

/// The outcome of a transfer.
#[derive(Debug)]
pub struct Outcome {
    /// The time that it took, or why it failed.
    pub dct: Result<Duration, String>,
    pub client: Counters,
    pub server: Counters,
    /// Datagrams sent, up and down.
    pub sent: (u64, u64),
    /// Packets sent that were lost, or were still on their way at the end.
    pub missing: (u64, u64),
    /// The cost of received packets for the client, and for the server: of an end with hooks.
    pub costs: [Cost; 2],
}

impl Outcome {
    /// Returns the counters of the content's sender, and of its receiver.
    pub fn of(&self, direction: Direction) -> (&Counters, &Counters) {
        match direction {
            Direction::Download => (&self.server, &self.client),
            Direction::Upload => (&self.client, &self.server),
        }
    }
}

/// A late datagram: its time of arrival, its number, its link, whether it goes to the server, and its bytes.
type Late = (u64, u64, usize, bool, Vec<u8>);

// The directions of a link.
const UP: usize = 0;
const DOWN: usize = 1;

/// The link of one of the client's addresses; no address means the first link.
fn link_of(client: Option<IpAddr>) -> usize {
    CLIENTS.iter().position(|known| Some(address(known).ip()) == client).unwrap_or_default()
}

/// A client and a server, and what they serve.
pub struct World<C, S> {
    /// Since the start.
    now_ns: u64,
    pub start: Instant,
    pub client: Stack<C>,
    pub server: Stack<S>,
    accept: Box<dyn Fn() -> S>,
    /// Directions of each link, up and down.
    links: Vec<[Way; 2]>,
    /// Whether the client tells its connection to which of its addresses a datagram came.
    has_paths: bool,
    /// Datagrams that have left the link and are late, the next to arrive first.
    late: BinaryHeap<Reverse<Late>>,
    count: u64,
    /// Costs of the client and of the server, where they have hooks.
    costs: [Cost; 2],
}

impl World<Request, Answers> {
    pub fn of_transfer(setting: &Setting, client: ClientConfig, server: ServerConfig) -> Self {
        let transfer = Transfer { direction: setting.direction, size: setting.size };
        let seed = setting.seed;
        World::new(setting, client, server, Request::new(transfer, seed), Box::new(move || Answers::new(seed)))
    }

    /// Until the transfer has ended, or an hour of virtual time is over.
    pub fn run(&mut self) -> Outcome {
        let dct = loop {
            if let Some((end, outcome)) = self.client.applications().find_map(|request| request.0.outcome.take()) {
                break outcome.map(|()| end - self.start);
            }
            if !self.step(Duration::from_secs(3600)) {
                break Err("not done within an hour".into());
            }
        };
        let sum = |way: usize, of: &dyn Fn(&Way) -> u64| self.links.iter().map(|link| of(&link[way])).sum::<u64>();
        let sent = |way: &Way| way.lane.report().frames_in;
        let sent = (sum(UP, &sent), sum(DOWN, &sent));
        let late = |to_server| self.late.iter().filter(|Reverse((_, _, _, up, _))| *up == to_server).count() as u64;
        let missing = (sum(UP, &Way::missing) + late(true), sum(DOWN, &Way::missing) + late(false));
        let (client, server) = (self.client.counters(), self.server.counters());
        Outcome { dct, client, server, sent, missing, costs: self.costs }
    }
}

impl<C: Application, S: Application> World<C, S> {
    pub fn new(
        setting: &Setting,
        client: ClientConfig,
        server: ServerConfig,
        application: C,
        accept: Box<dyn Fn() -> S>,
    ) -> Self {
        let start = Instant::now();
        let mut stack = Stack::new(settings::endpoint(&setting.surroundings(Role::Client)), None);
        let assignment = setting.assignment(Role::Client, &setting.client);
        let paths = assignment.path_addresses::<NoqFec>();
        stack.connect(start, client, paths, address(SERVER), SERVER_NAME, application).unwrap();
        let links = setting.links();
        let links = links.iter().enumerate().map(|(number, link)| {
            let late = |late| if number == 0 { late } else { None };
            let seed = |direction| content::word(setting.seed, 2 * number as u64 + direction as u64);
            [
                Way::new(link, &link.up, link.outage_up, late(setting.late_up), seed(UP)),
                Way::new(link, &link.down, link.outage_down, late(setting.late_down), seed(DOWN)),
            ]
        });
        Self {
            now_ns: 0,
            start,
            client: stack,
            server: Stack::new(settings::endpoint(&setting.surroundings(Role::Server)), Some(server)),
            accept,
            links: links.collect(),
            has_paths: !paths.is_empty(),
            late: BinaryHeap::new(),
            count: 0,
            costs: [Cost::default(); 2],
        }
    }

    /// Returns how many datagrams the client has sent over a link.
    pub fn sent_up(&self, link: usize) -> u64 {
        self.links[link][UP].lane.report().frames_in
    }

    /// Since the start.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.now_ns)
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_nanos(self.now_ns)
    }

    /// Goes on to the next thing that happens; false if nothing does before a time.
    pub fn step(&mut self, until: Duration) -> bool {
        self.transmit();
        let Some(next_ns) = self.next_ns().filter(|next_ns| u128::from(*next_ns) <= until.as_nanos()) else {
            return false;
        };
        self.now_ns = self.now_ns.max(next_ns);
        self.leave();
        self.arrive_late();
        self.client.on_timeout(self.now());
        self.server.on_timeout(self.now());
        true
    }

    fn next_ns(&self) -> Option<u64> {
        let timer = |timeout: Option<Instant>| timeout.map(|time| (time - self.start).as_nanos() as u64);
        let late = self.late.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let exits = self.links.iter().flatten().map(|way| way.lane.next_exit());
        let timers = [timer(self.client.timeout()), timer(self.server.timeout())];
        exits.chain(timers).chain([late]).flatten().min()
    }

    fn transmit(&mut self) {
        let (now, mut datagram) = (self.now(), Vec::new());
        while let Some((from, ..)) = self.client.transmit(now, &mut datagram) {
            self.links[link_of(from)][UP].lane.send(&datagram, 0, 0, self.now_ns);
        }
        while let Some((_, to, _)) = self.server.transmit(now, &mut datagram) {
            self.links[link_of(Some(to.ip()))][DOWN].lane.send(&datagram, 0, 0, self.now_ns);
        }
    }

    /// Delivers the datagrams that leave the link, or keeps them as late.
    fn leave(&mut self) {
        for (link, way) in (0..self.links.len()).flat_map(|link| [(link, UP), (link, DOWN)]) {
            while let Some((datagram, lateness)) = self.links[link][way].next_left(self.now_ns) {
                if lateness.is_zero() {
                    self.arrive(link, way == UP, &datagram);
                } else {
                    let at_ns = self.now_ns + lateness.as_nanos() as u64;
                    self.late.push(Reverse((at_ns, self.count, link, way == UP, datagram)));
                    self.count += 1;
                }
            }
        }
    }

    fn arrive_late(&mut self) {
        while self.late.peek().is_some_and(|Reverse((at_ns, ..))| *at_ns <= self.now_ns) {
            let Some(Reverse((_, _, link, up, datagram))) = self.late.pop() else { unreachable!() };
            self.arrive(link, up, &datagram);
        }
    }

    fn arrive(&mut self, link: usize, up: bool, datagram: &[u8]) {
        let (client, server) = (address(CLIENTS[link]), address(SERVER));
        let to = self.has_paths.then(|| client.ip());
        let (begin, decrypted) = (budget::thread_time(), decrypted::bytes());
        match up {
            true => self.server.receive(self.now(), client, None, None, datagram, &self.accept),
            false => self.client.receive(self.now(), server, to, None, datagram, || unreachable!()),
        }
        let time = budget::thread_time() - begin;
        let bytes = decrypted::bytes() - decrypted;
        if bytes > 0 {
            self.costs[usize::from(up)].add(bytes, time);
        }
    }
}
