//! Peers that break the protocol of MoQ, at either end of a broadcast and at both sides of a relay: an end goes on, or ends with one
//! line, and takes no more memory than it should. QUIC's own frames are attacked in noq-fec's tests.

#[path = "../../noq-fec/tests/world/certificate.rs"]
mod certificate;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use host::contract::{self, Event, Metrics, Role};
use host::implementation::{Endpoint, Host, Implementation, Received, Turn};
use host::requests::Input;
use moq_noq_fec::Moq;
use moq_noq_fec::broadcast::Broadcast;
use noq_fec::stack::{Application, Stack};
use noq_fec::work::Work;
use noq_fec::{Assignment, settings};
use noq_proto::{Connection, Dir, Event as QuicEvent, StreamId};
use serde_json::{Map, Value, json};

const SERVER_NAME: &str = "server.fecbench";
const CLIENT: &str = "10.0.1.2:40000";
const RELAY: &str = "10.0.3.2:4433";
const SERVER: &str = "10.0.2.2:4433";
const DELAY: Duration = Duration::from_millis(1);

const LITE: &str = "moq-lite-06";
const PROTOCOLS: [&str; 2] = [LITE, "moq-transport-22"];

/// Time between two deeds of a peer.
const PAUSE: Duration = Duration::from_millis(5);

/// Bytes that this thread has allocated and not freed.
struct Counted;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.with(|held| held.set(held.get() + layout.size() as isize));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.with(|held| held.set(held.get() - layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// A deed of a peer with its connection, by how often it has been done before; false: it is done for the last time.
type Deed = fn(&mut Connection, u64) -> bool;

/// A peer that does what it should not, besides an honest broadcast or without one.
struct Hostile {
    honest: Option<Broadcast>,
    deed: Deed,
    times: u64,
    next: Option<Instant>,
}

impl Hostile {
    fn new(honest: Option<&Assignment>, deed: Deed, now: Instant) -> Self {
        Self { honest: honest.map(|task| Broadcast::of_client(task, now)), deed, times: 0, next: None }
    }
}

impl Application for Hostile {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: QuicEvent) {
        if matches!(event, QuicEvent::Connected) {
            // Its session, if it has one, is there by then.
            self.next = Some(now + 20 * PAUSE);
        }
        if let Some(honest) = &mut self.honest {
            honest.on_event(now, connection, event);
        }
    }

    fn timeout(&self) -> Option<Instant> {
        [self.next, self.honest.as_ref().and_then(Application::timeout)].into_iter().flatten().min()
    }

    fn on_timeout(&mut self, now: Instant, connection: &mut Connection) {
        if let Some(honest) = self.honest.as_mut().filter(|honest| honest.timeout().is_some_and(|at| at <= now)) {
            honest.on_timeout(now, connection);
        }
        if self.next.is_some_and(|next| next <= now) {
            self.next = (self.deed)(connection, self.times).then_some(now + PAUSE);
            self.times += 1;
        }
    }
}

/// The host of the victim.
struct Wire {
    now: Instant,
    inbox: VecDeque<(SocketAddr, Vec<u8>)>,
    outbox: Vec<(SocketAddr, Vec<u8>)>,
    current: Vec<u8>,
    complaints: Vec<String>,
    metrics: Metrics,
}

impl Host for Wire {
    fn now(&self) -> Instant {
        self.now
    }

    fn monotonic(&self, _time: Instant) -> Duration {
        Duration::ZERO
    }

    fn send(&mut self, datagram: &[u8], _from: Option<IpAddr>, to: SocketAddr) -> io::Result<()> {
        self.outbox.push((to, datagram.to_vec()));
        Ok(())
    }

    fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
        let Some((from, datagram)) = self.inbox.pop_front() else { return Ok(None) };
        self.current = datagram;
        Ok(Some(Received { at: self.now, from, to: None, ecn: 0, datagram: &self.current }))
    }

    fn read(&mut self) -> io::Result<Option<Input>> {
        Ok(None)
    }

    fn say(&mut self, event: Event) -> io::Result<()> {
        if let Event::Done(metrics) = event {
            self.metrics = metrics;
        }
        Ok(())
    }

    fn complain(&mut self, line: &str) {
        self.complaints.push(line.into());
    }
}

/// The fate of the victim.
#[derive(Debug)]
struct Fate {
    /// The line with which it ended, if it has.
    line: Option<String>,
    complaints: Vec<String>,
    metrics: Metrics,
    /// Bytes that both ends held at the end beyond those at the beginning.
    held: isize,
}

impl Fate {
    fn check(&self, case: &str) {
        for line in self.line.iter().chain(&self.complaints) {
            assert!(!line.is_empty() && !line.contains('\n'), "{case}: {line:?}");
        }
        assert!(self.complaints.len() <= 1, "{case}: {self:?}");
    }
}

/// The options of noq-fec's impl.toml with their defaults, and without FEC. Its values are JSON, too.
fn options() -> Map<String, Value> {
    let (mut options, mut name) = (Map::new(), "");
    for line in Moq::DECLARED.lines() {
        if let Some(of) = line.strip_prefix("[options.") {
            name = of.trim_end_matches(']');
        } else if let Some(value) = line.strip_prefix("default = ") {
            options.insert(name.into(), serde_json::from_str(value).unwrap());
        }
    }
    options.insert("scheme".into(), "none".into());
    options
}

fn workload(protocol: &str, tracks: &[&str], frames: usize) -> Value {
    let rows: Vec<_> = (0..frames).map(|number| json!([10_000 * number, 2000, u8::from(number % 5 == 0)])).collect();
    let tracks: Vec<_> =
        tracks.iter().map(|name| json!({"name": name, "priority": 1, "delivery": "group", "frames": rows})).collect();
    json!({"name": "live", "protocol": protocol, "direction": "down", "max_age_ms": 500, "deadline_us": 150_000,
           "send_buffer_bytes": 1 << 20, "tracks": tracks})
}

/// A track in parts, with a repair track beside it.
fn parted(frames: usize) -> Value {
    let mut workload = workload(LITE, &["video"], frames);
    workload["tracks"][0]["delivery"] = "parts".into();
    workload["tracks"][0]["repair"] = json!([21, 20]);
    workload
}

fn assignment(role: &str, address: &str, workload: &Value) -> Assignment {
    let file = certificate::certificate(SERVER_NAME);
    let address: SocketAddr = address.parse().unwrap();
    let mut document = json!({
        "version": 1, "role": role, "address": address.ip(), "port": address.port(), "server_name": SERVER_NAME,
        "workload": workload, "content_seed": 7, "options": options(), "authority": file, "certificate": file,
        "private_key": file, "log_folder": "/nowhere", "deadline_s": 60.0,
    });
    if role == contract::RELAY {
        document["upstream"] = json!({"address": "10.0.2.2", "port": 4433, "options": options()});
    }
    contract::parse_value::<Moq>(document).unwrap()
}

/// The hostile end: a client of an address, or a server at one.
struct Peer {
    own: SocketAddr,
    stack: Stack<Hostile>,
    deed: Deed,
    /// The broadcast that it takes part in besides.
    honest: Option<Assignment>,
}

impl Peer {
    /// It takes part in the broadcast besides, or speaks its protocol alone.
    fn new(
        role: Role,
        own: &str,
        victim: &str,
        (broadcast, is_honest): (&Value, bool),
        deed: Deed,
        now: Instant,
    ) -> Self {
        let surroundings = Moq::virtual_surroundings(3, own, None).unwrap();
        let (name, at) = if role == Role::Client { ("client", victim) } else { ("server", own) };
        let task = assignment(name, at, broadcast);
        let config = settings::endpoint(&surroundings);
        let stack = match role {
            Role::Client => Stack::new(config, None),
            Role::Server => Stack::new(config, Some(settings::server(&task, &surroundings).unwrap())),
        };
        let mut peer = Self { own: own.parse().unwrap(), stack, deed, honest: None };
        peer.honest = is_honest.then_some(task);
        if role == Role::Client {
            let task = assignment(name, at, broadcast);
            let config = settings::client(&task, &surroundings).unwrap();
            let hostile = Hostile::new(peer.honest.as_ref(), deed, now);
            peer.stack.connect(now, config, &[], victim.parse().unwrap(), SERVER_NAME, hostile).unwrap();
        }
        peer
    }

    fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let (honest, deed) = (self.honest.as_ref(), self.deed);
        self.stack.receive(now, from, None, None, datagram, || Hostile::new(honest, deed, now));
    }
}

/// Lets a victim and its peers talk to each other for so long.
fn meet(workload: &Value, victim: &str, at: &str, peers: &mut [Peer], lasting: Duration, start: Instant) -> Fate {
    let before = HELD.get();
    let surroundings = Moq::virtual_surroundings(1, victim, None).unwrap();
    let address = if victim == "client" { SERVER } else { at };
    let task = assignment(victim, address, workload);
    let mut wire = Wire {
        now: start,
        inbox: VecDeque::new(),
        outbox: Vec::new(),
        current: Vec::new(),
        complaints: Vec::new(),
        metrics: Metrics::new(),
    };
    let at: SocketAddr = at.parse().unwrap();
    let mut endpoint = Moq::prepare(task, &surroundings).and_then(|prepared| Moq::start(prepared, &mut wire)).unwrap();
    let mut on_way: VecDeque<(Instant, SocketAddr, SocketAddr, Vec<u8>)> = VecDeque::new();
    let mut line = None;
    let mut buffer = Vec::new();
    while wire.now < start + lasting && line.is_none() {
        let now = wire.now;
        let mut next = start + lasting;
        match endpoint.turn(&mut wire) {
            Ok(Turn::Until(time)) => next = next.min(time.unwrap_or(next)),
            Ok(Turn::Ended) => line = Some("success".into()),
            Err(why) => line = Some(why),
        }
        on_way.extend(wire.outbox.drain(..).map(|(to, datagram)| (now + DELAY, at, to, datagram)));
        for peer in &mut *peers {
            peer.stack.on_timeout(now);
            while let Some((_, to, _)) = peer.stack.transmit(now, &mut buffer) {
                on_way.push_back((now + DELAY, peer.own, to, buffer.clone()));
            }
            next = next.min(peer.stack.timeout().unwrap_or(next));
        }
        next = on_way.front().map_or(next, |(time, ..)| next.min(*time)).max(now);
        wire.now = next;
        while on_way.front().is_some_and(|(time, ..)| *time <= next) {
            let (_, from, to, datagram) = on_way.pop_front().expect("there is one");
            if to == at {
                wire.inbox.push_back((from, datagram));
            } else if let Some(peer) = peers.iter_mut().find(|peer| peer.own == to) {
                peer.receive(next, from, &datagram);
            }
        }
    }
    Fate { line, complaints: wire.complaints, metrics: wire.metrics, held: HELD.get() - before }
}

// Deeds.

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    host::content::fill(seed, 0, &mut noise);
    noise
}

fn open(connection: &mut Connection, dir: Dir, bytes: &[u8]) -> Option<StreamId> {
    let id = connection.streams().open(dir)?;
    // As much as there is room for.
    let _ = connection.send_stream(id).write(bytes);
    Some(id)
}

fn nothing(_connection: &mut Connection, _time: u64) -> bool {
    false
}

fn garbage(connection: &mut Connection, time: u64, dir: Dir) -> bool {
    for kind in 0..=8 {
        let bytes = [&[kind][..], &noise(100 * time + u64::from(kind), 80)].concat();
        if let Some(id) = open(connection, dir, &bytes) {
            let _ = connection.send_stream(id).finish();
        }
    }
    time < 10
}

fn garbage_on_control_streams(connection: &mut Connection, time: u64) -> bool {
    garbage(connection, time, Dir::Bi)
}

fn garbage_on_data_streams(connection: &mut Connection, time: u64) -> bool {
    garbage(connection, time, Dir::Uni)
}

/// A length of 2^62 - 1 bytes, and 1,000 of them, of each kind of message.
fn endless_messages(connection: &mut Connection, time: u64) -> bool {
    for dir in [Dir::Bi, Dir::Uni] {
        for kind in 0..=6 {
            open(connection, dir, &[&[kind][..], &[0xff; 8], &noise(time, 1000)].concat());
        }
    }
    time < 10
}

fn resets_in_the_middle(connection: &mut Connection, time: u64) -> bool {
    for dir in [Dir::Bi, Dir::Uni] {
        for kind in 0..=6 {
            if let Some(id) = open(connection, dir, &[kind, 40, 1, 2, 3, 4, 5]) {
                let _ = connection.send_stream(id).reset(7_u32.into());
            }
        }
    }
    time < 20
}

/// Groups of the first subscriptions, with frames that are none: too long, cut off, empty, and noise. In turn, they are of moq-lite and,
/// with each set of flags, of moq-transport.
fn groups_of_nonsense(connection: &mut Connection, time: u64) -> bool {
    for subscription in 0..3 {
        for frames in [vec![0xff; 16], vec![0x44, 0], vec![0; 30], noise(time, 200), Vec::new()] {
            let group = 30 + time as u8 % 8;
            let head = match time % 4 {
                0 | 1 => [0, 3, subscription, group, 0],
                _ => [0x50 + time as u8 / 4 % 16, subscription, group, 0, 0],
            };
            if let Some(id) = open(connection, Dir::Uni, &[&head[..], &frames].concat()) {
                let _ = if time.is_multiple_of(2) {
                    connection.send_stream(id).finish().is_ok()
                } else {
                    connection.send_stream(id).reset(1_u32.into()).is_ok()
                };
            }
        }
    }
    time < 64
}

fn datagrams_of_nonsense(connection: &mut Connection, time: u64) -> bool {
    for bytes in [0, 1, 5, 900] {
        let _ = connection.datagrams().send(noise(time, bytes).into(), true);
    }
    time < 20
}

/// A datagram of a subscription: its number, that of the datagram, and the time.
fn datagram(subscription: u8, number: &[u8], payload: &[u8]) -> bytes::Bytes {
    [&[subscription], number, &[0], payload].concat().into()
}

/// The subscription to the only track, and that to its repair track.
const VIDEO: u8 = 0;
const REPAIR: u8 = 1;

/// Repair symbols that name far symbols, too many, none, and of random bytes; datagrams with numbers as far as they go.
fn repairs_of_nonsense(connection: &mut Connection, time: u64) -> bool {
    let far = [0xff; 8];
    let cut = [0, 20, 1, 0, 0, 15];
    let wide = [&[0, 255, 1, 0, 0, 15][..], &noise(time, 900)].concat();
    let near = [&[0x40 | (time >> 8) as u8, time as u8, 20, 1, 0, 0, 0][..], &noise(time, 1000)].concat();
    let ahead = [&[0x80, 0, 1, 0, 20, 1, 0, 0, 15][..], &noise(time, 900)].concat();
    for symbol in [&far[..], &cut, &wide, &near, &ahead, &[], &noise(time, 1000)] {
        for number in [&far[..], &[7]] {
            let _ = connection.datagrams().send(datagram(REPAIR, number, symbol), true);
        }
    }
    time < 300
}

/// Parts of frames that nobody sends.
fn parts_of_nonsense(connection: &mut Connection, time: u64) -> bool {
    for bytes in [0, 11, 12, 900] {
        let _ = connection.datagrams().send(datagram(VIDEO, &[9], &noise(time, bytes)), true);
    }
    time < 20
}

/// As many streams as there may be at a time, again and again.
fn thousands_of_streams(connection: &mut Connection, time: u64) -> bool {
    for dir in [Dir::Bi, Dir::Uni] {
        while let Some(id) = open(connection, dir, &[2, 200, 1]) {
            if dir == Dir::Bi {
                // It keeps nothing of them itself.
                let _ = connection.recv_stream(id).stop(0_u32.into());
            }
            if time.is_multiple_of(2) {
                let _ = connection.send_stream(id).reset(0_u32.into());
            } else {
                let _ = connection.send_stream(id).finish();
            }
        }
    }
    time < 700
}

const DEEDS: [(&str, Deed); 7] = [
    ("garbage on control streams", garbage_on_control_streams),
    ("garbage on data streams", garbage_on_data_streams),
    ("endless messages", endless_messages),
    ("resets in the middle", resets_in_the_middle),
    ("groups of nonsense", groups_of_nonsense),
    ("datagrams of nonsense", datagrams_of_nonsense),
    ("thousands of streams", thousands_of_streams),
];

/// Bytes that two ends may hold after anything.
const MOST_HELD: isize = 5 << 19;

#[test]
fn a_server_outlives_whatever_a_client_does() {
    each_case(|case, broadcast, deed| {
        for is_honest in [false, true] {
            let case = format!("{case}, with a session: {is_honest}");
            let start = Instant::now();
            let mut peers = [Peer::new(Role::Client, CLIENT, SERVER, (broadcast, is_honest), deed, start)];
            let fate = meet(broadcast, "server", SERVER, &mut peers, Duration::from_secs(4), start);
            fate.check(&case);
            assert_eq!(fate.line, None, "{case}");
            assert!(fate.held < MOST_HELD, "{case}: {fate:?}");
        }
    });
}

#[test]
fn a_client_goes_on_or_ends_with_a_line_whatever_its_server_does() {
    each_case(|case, broadcast, deed| {
        for is_honest in [false, true] {
            let case = format!("{case}, with a session: {is_honest}");
            let start = Instant::now();
            let mut peers = [Peer::new(Role::Server, SERVER, CLIENT, (broadcast, is_honest), deed, start)];
            let fate = meet(broadcast, "client", CLIENT, &mut peers, Duration::from_secs(4), start);
            fate.check(&case);
            assert!(fate.held < MOST_HELD, "{case}: {fate:?}");
        }
    });
}

#[test]
fn a_relay_goes_on_or_ends_with_a_line_between_a_hostile_client_and_a_hostile_server() {
    each_case(|case, broadcast, deed| {
        for hostile in [Role::Client, Role::Server] {
            let case = format!("{case} by the {hostile}");
            let start = Instant::now();
            let of = |role| if role == hostile { deed } else { nothing };
            let mut peers = [
                Peer::new(Role::Client, CLIENT, RELAY, (broadcast, true), of(Role::Client), start),
                Peer::new(Role::Server, SERVER, RELAY, (broadcast, true), of(Role::Server), start),
            ];
            let fate = meet(broadcast, contract::RELAY, RELAY, &mut peers, Duration::from_secs(4), start);
            fate.check(&case);
            assert!(hostile == Role::Server || fate.line.is_none(), "{case}: {fate:?}");
            assert!(fate.held < MOST_HELD, "{case}: {fate:?}");
        }
    });
}

/// Calls with a name, the broadcast and the deed of each case: every deed, in every protocol.
fn each_case(check: impl Fn(&str, &Value, Deed)) {
    for protocol in PROTOCOLS {
        let broadcast = workload(protocol, &["video"], 100);
        for (name, deed) in DEEDS {
            check(&format!("{protocol}: {name}"), &broadcast, deed);
        }
    }
}

/// The fate of a client of a broadcast in parts whose server does this besides.
fn fate_beside(deed: Deed) -> Fate {
    let (broadcast, start) = (parted(100), Instant::now());
    let mut peers = [Peer::new(Role::Server, SERVER, CLIENT, (&broadcast, true), deed, start)];
    meet(&broadcast, "client", CLIENT, &mut peers, Duration::from_secs(4), start)
}

#[test]
fn repair_symbols_of_nonsense_cost_a_client_neither_a_frame_nor_memory() {
    let fate = fate_beside(repairs_of_nonsense);
    fate.check("repair symbols of nonsense");
    assert_eq!(fate.line.as_deref(), Some("success"), "{fate:?}");
    // They came as symbols of the repair track: two a frame are honest at most, and many more came.
    assert!(fate.metrics["repair_track_received"] > 1000.0, "{fate:?}");
    assert!(fate.held < MOST_HELD, "{fate:?}");
}

#[test]
fn a_datagram_that_is_no_part_of_a_frame_ends_a_client_with_its_track() {
    let fate = fate_beside(parts_of_nonsense);
    let line = fate.line.as_deref().unwrap_or_default();
    assert!(line.ends_with("track video: a datagram is no part of its frames"), "{fate:?}");
    assert!(fate.held < MOST_HELD, "{fate:?}");
}

#[test]
fn tracks_that_do_not_exist_are_refused_to_who_asks_and_others_are_served() {
    let start = Instant::now();
    let (unknown, known) = (workload(LITE, &["nothing", "nobody"], 100), workload(LITE, &["video"], 100));
    let mut peers = [
        Peer::new(Role::Client, CLIENT, SERVER, (&unknown, true), nothing, start),
        Peer::new(Role::Client, "10.0.1.3:40000", SERVER, (&known, true), nothing, start),
    ];
    let fate = meet(&known, "server", SERVER, &mut peers, Duration::from_secs(4), start);
    fate.check("unknown tracks");
    assert_eq!(fate.line, None);
    let outcomes: Vec<_> = peers
        .iter_mut()
        .map(|peer| peer.stack.applications().find_map(|hostile| hostile.honest.as_mut()?.take_outcome()))
        .collect();
    assert!(matches!(&outcomes[0], Some((_, Err(why))) if why.contains("subscription")), "{outcomes:?}");
    assert!(matches!(&outcomes[1], Some((_, Ok(())))), "{outcomes:?}");
}
