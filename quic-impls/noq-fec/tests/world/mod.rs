//! A client and a server over an emulated link, in one thread and in virtual time: a whole transfer takes
//! milliseconds, and the same seed gives the same transfer.

#![allow(dead_code)] // each test has its own use for this module

mod certificate;
pub mod decrypted;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fec::Code;
use noq_fec::content;
use noq_fec::contract::{Assignment, CongestionControl, Direction, Options, Role, Workload};
use noq_fec::hq::{Answers, Request};
use noq_fec::schemes::{Redundancy, Schemes};
use noq_fec::settings;
use noq_fec::stack::{Application, Counters, Stack};
use noq_proto::{ClientConfig, ConnectionId, EndpointConfig, ServerConfig};

const CLIENT: &str = "10.0.1.2:40000";
const SERVER: &str = "10.0.2.2:4433";
const SERVER_NAME: &str = "server.fecbench";

/// What is lost of a direction's datagrams, which are counted from 0.
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

/// One direction of the link.
#[derive(Debug, Clone)]
pub struct Way {
    pub loss: Loss,
    late: Option<(u64, Duration)>,
    pub sent: u64,
    lost: u64,
    is_bad: bool,
    free_at: Option<Instant>,
}

impl Way {
    pub fn new(loss: Loss, late: Option<(u64, Duration)>) -> Self {
        Self { loss, late, sent: 0, lost: 0, is_bad: false, free_at: None }
    }

    /// By how much the datagram is late that was sent last.
    fn lateness(&self) -> Duration {
        self.late.filter(|(n, _)| n + 1 == self.sent).map_or(Duration::ZERO, |(_, lateness)| lateness)
    }

    fn loses(&mut self) -> bool {
        let n = self.sent;
        self.sent += 1;
        let happens = |seed, j, probability: f64| {
            (content::word(seed, 2 * n + j) >> 32) < (probability * 4_294_967_296.0).round() as u64
        };
        match &self.loss {
            Loss::Nothing => false,
            Loss::These(these) => these.contains(&n),
            Loss::Uniform { rate, seed } => happens(*seed, 0, *rate),
            Loss::Bursts { p, r, seed } => {
                let is_lost = self.is_bad;
                self.is_bad = if self.is_bad { !happens(*seed, 1, *r) } else { happens(*seed, 1, *p) };
                is_lost
            }
        }
    }
}

/// What a transfer is made of.
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
    pub bandwidth_mbps: f64,
    pub owd: Duration,
    /// Each datagram is late by up to this, so that some overtake others.
    pub jitter: Duration,
    pub seed: u64,
}

impl Setting {
    /// A download over 10 Mbps with a one-way delay of 50 ms, both endpoints with the same schemes.
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
            bandwidth_mbps: 10.0,
            owd: Duration::from_millis(50),
            jitter: Duration::ZERO,
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
            workload: Workload { direction: self.direction, size: self.size },
            content_seed: self.seed,
            options: Options {
                schemes: schemes.clone(),
                congestion_control: self.congestion_control,
                initial_window: self.initial_window,
                packet_size: 1252,
            },
            certificate: certificate.clone(),
            private_key: certificate.clone(),
            authority: certificate,
            cwnd_series: None,
            deadline: Duration::from_secs(600),
        }
    }

    pub fn client_config(&self) -> ClientConfig {
        let mut config = settings::client(&self.assignment(Role::Client, &self.client)).unwrap();
        let id = content::word(self.seed, 1).to_le_bytes();
        config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&id)));
        config
    }

    pub fn server_config(&self) -> ServerConfig {
        settings::server(&self.assignment(Role::Server, &self.server)).unwrap()
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

    pub fn run(&self) -> Outcome {
        World::of_transfer(self, self.client_config(), self.server_config()).run()
    }
}

pub fn schemes(code: Code, n: usize, k: usize) -> Schemes {
    let redundancy = Redundancy::Constant;
    Schemes { code, n, k, window: 20, interleave: 1, redundancy, masks_losses: false }
}

/// One set of parameters for each code and controller.
pub fn all_schemes() -> Vec<Schemes> {
    vec![
        schemes(Code::Xor, 5, 4),
        Schemes { interleave: 3, ..schemes(Code::Xor, 5, 4) },
        schemes(Code::ReedSolomon, 9, 6),
        schemes(Code::RLC, 3, 2),
        schemes(Code::Tetrys, 3, 2),
        Schemes { redundancy: Redundancy::Tail, ..schemes(Code::RLC, 3, 2) },
        Schemes { masks_losses: true, ..schemes(Code::RLC, 3, 2) },
    ]
}

/// What came of a transfer.
#[derive(Debug)]
pub struct Outcome {
    /// How long it took, or why it failed.
    pub dct: Result<Duration, String>,
    pub client: Counters,
    pub server: Counters,
    /// Datagrams sent, up and down.
    pub sent: (u64, u64),
    /// Of those, the ones that were lost, or were still on their way at the end.
    pub missing: (u64, u64),
}

impl Outcome {
    /// What the sender of the content has counted, and what its receiver has.
    pub fn of(&self, direction: Direction) -> (&Counters, &Counters) {
        match direction {
            Direction::Download => (&self.server, &self.client),
            Direction::Upload => (&self.client, &self.server),
        }
    }
}

/// When a datagram arrives, which it is, whether it goes to the server, and what it is.
type Flying = (Instant, u64, bool, Vec<u8>);

/// A client and a server, and what they serve.
pub struct World<C, S> {
    now: Instant,
    pub start: Instant,
    bandwidth_mbps: f64,
    owd: Duration,
    jitter: Duration,
    pub client: Stack<C>,
    pub server: Stack<S>,
    accept: Box<dyn Fn() -> S>,
    seed: u64,
    up: Way,
    down: Way,
    /// Datagrams on their way, the next to arrive first.
    flying: BinaryHeap<Reverse<Flying>>,
    count: u64,
}

impl World<Request, Answers> {
    pub fn of_transfer(setting: &Setting, client: ClientConfig, server: ServerConfig) -> Self {
        let workload = Workload { direction: setting.direction, size: setting.size };
        let seed = setting.seed;
        World::new(setting, client, server, Request::new(workload, seed), Box::new(move || Answers::new(seed)))
    }

    /// Until the transfer has ended, or an hour of virtual time is over.
    pub fn run(&mut self) -> Outcome {
        let dct = loop {
            if let Some((end, outcome)) = self.client.applications().find_map(|request| request.outcome.take()) {
                break outcome.map(|()| end - self.start);
            }
            if !self.step(Duration::from_secs(3600)) {
                break Err("not done within an hour".into());
            }
        };
        let sent = (self.up.sent, self.down.sent);
        let flying = |to_server| self.flying.iter().filter(|Reverse((_, _, up, _))| *up == to_server).count() as u64;
        let missing = (self.up.lost + flying(true), self.down.lost + flying(false));
        Outcome { dct, client: self.client.counters(), server: self.server.counters(), sent, missing }
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
        let endpoint = |salt: u8| {
            let mut config = EndpointConfig::default();
            let mut seed = [salt; 32];
            seed[..8].copy_from_slice(&setting.seed.to_le_bytes());
            config.rng_seed(Some(seed));
            config
        };
        let start = Instant::now();
        let mut stack = Stack::new(endpoint(1), None);
        stack.connect(start, client, SERVER.parse().unwrap(), SERVER_NAME, application).unwrap();
        Self {
            now: start,
            start,
            bandwidth_mbps: setting.bandwidth_mbps,
            owd: setting.owd,
            jitter: setting.jitter,
            client: stack,
            server: Stack::new(endpoint(2), Some(server)),
            accept,
            seed: setting.seed,
            up: Way::new(setting.up.clone(), setting.late_up),
            down: Way::new(setting.down.clone(), setting.late_down),
            flying: BinaryHeap::new(),
            count: 0,
        }
    }

    /// Goes on to the next thing that happens; false if nothing does before a time.
    pub fn step(&mut self, until: Duration) -> bool {
        self.transmit();
        let Some(next) = self.next().filter(|next| *next <= self.start + until) else {
            return false;
        };
        self.now = self.now.max(next);
        self.arrive();
        self.client.on_timeout(self.now);
        self.server.on_timeout(self.now);
        true
    }

    fn next(&self) -> Option<Instant> {
        let arrival = self.flying.peek().map(|Reverse((at, ..))| *at);
        [arrival, self.client.timeout(), self.server.timeout()].into_iter().flatten().min()
    }

    fn transmit(&mut self) {
        let mut datagram = Vec::new();
        while self.client.transmit(self.now, &mut datagram).is_some() {
            self.fly(true, &datagram);
        }
        while self.server.transmit(self.now, &mut datagram).is_some() {
            self.fly(false, &datagram);
        }
    }

    /// A datagram takes the link's time, is lost behind it or not, and then takes the delay.
    fn fly(&mut self, up: bool, datagram: &[u8]) {
        let way = if up { &mut self.up } else { &mut self.down };
        let bits = 8.0 * (datagram.len() + 28) as f64;
        let start = way.free_at.unwrap_or(self.now).max(self.now);
        let free_at = start + Duration::from_secs_f64(bits / (self.bandwidth_mbps * 1e6));
        way.free_at = Some(free_at);
        if way.loses() {
            way.lost += 1;
        } else {
            self.count += 1;
            let share = (content::word(self.seed, self.count) >> 32) as f64 / 4_294_967_296.0;
            let arrival = free_at + self.owd + self.jitter.mul_f64(share) + way.lateness();
            self.flying.push(Reverse((arrival, self.count, up, datagram.to_vec())));
        }
    }

    fn arrive(&mut self) {
        let (client, server): (SocketAddr, SocketAddr) = (CLIENT.parse().unwrap(), SERVER.parse().unwrap());
        while self.flying.peek().is_some_and(|Reverse((at, ..))| *at <= self.now) {
            let Some(Reverse((_, _, up, datagram))) = self.flying.pop() else { unreachable!() };
            match up {
                true => self.server.receive(self.now, client, &datagram, &self.accept),
                false => self.client.receive(self.now, server, &datagram, || unreachable!()),
            }
        }
    }
}
