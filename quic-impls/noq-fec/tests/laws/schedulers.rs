//! Laws of schedulers and of repair over several paths: the path of each packet, and what is recovered of it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::world::decrypted::{self, Sent};
use crate::world::{DEEP_QUEUE, Link, Loss, Setting, World, coded, schemes};
use bytes::Bytes;
use fec::Code;
use host::coding::Flush;
use host::content;
use host::contract::Role;
use noq_fec::options::CongestionControl;
use noq_fec::scheduler::Scheduling;
use noq_fec::schemes::Schemes;
use noq_fec::stack::Application;
use noq_proto::fec::RepairPath;
use noq_proto::{Connection, Event, PathId};

/// Time at which all paths are open.
const BEGIN: Duration = Duration::from_secs(1);

const BETWEEN: Duration = Duration::from_millis(3);

fn datagram(n: u64) -> Bytes {
    let mut bytes = vec![0; 1000];
    content::fill(n, 0, &mut bytes);
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    bytes.into()
}

/// Sends datagrams one by one: each is a packet, and there is never more than one to send.
struct Sender {
    count: u64,
    sent: u64,
    next: Option<Instant>,
}

impl Application for Sender {
    fn on_event(&mut self, now: Instant, _: &mut Connection, event: Event) {
        if matches!(event, Event::Connected) {
            self.next = Some(now + BEGIN);
        }
    }

    fn timeout(&self) -> Option<Instant> {
        self.next
    }

    fn on_timeout(&mut self, now: Instant, connection: &mut Connection) {
        connection.datagrams().send(datagram(self.sent), false).unwrap();
        self.sent += 1;
        self.next = Some(now + BETWEEN).filter(|_| self.sent < self.count);
    }
}

/// The numbers of the datagrams received; each is right, and comes once.
#[derive(Default)]
struct Receiver(BTreeSet<u64>);

impl Application for Receiver {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, _: Event) {
        while let Some(bytes) = connection.datagrams().recv() {
            let n = u64::from_be_bytes(bytes[..8].try_into().unwrap());
            assert_eq!(bytes, datagram(n));
            assert!(self.0.insert(n), "datagram {n} came twice");
        }
    }
}

/// A packet with a source symbol or a repair symbol.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Symbol {
    Source(u64),
    /// Over these symbols, one after the other.
    Repair(u64, u64),
}

/// The fates of datagrams.
struct Outcome {
    /// The client's packets with symbols: their path, which of the path's datagrams they were, and what they carried.
    symbols: Vec<(PathId, u64, Symbol)>,
    received: BTreeSet<u64>,
    /// Source symbols that were recovered and did not come.
    recovered: u64,
    /// Packets that were declared lost.
    lost: u64,
    /// The round-trip time that the client measured on each path, in milliseconds.
    rtt_ms: Vec<f64>,
}

impl Outcome {
    fn paths(&self) -> Vec<PathId> {
        self.symbols.iter().map(|(path, ..)| *path).collect()
    }
}

/// The path of each packet, and its symbol.
type Seen = Arc<Mutex<Vec<(PathId, Option<Symbol>)>>>;

/// The client sends datagrams, without congestion control.
fn send(setting: &Setting, count: u64) -> Outcome {
    let seen: Seen = Arc::default();
    let seeing = seen.clone();
    let watch = move |sent: Sent| {
        let repair = sent.repair().map(|(first, count)| Symbol::Repair(first, count));
        seeing.lock().unwrap().push((sent.path, sent.source_symbol().map(Symbol::Source).or(repair)));
    };
    let (client, server) = decrypted::watched_configs(setting, Role::Client, Arc::new(Mutex::new(watch)));
    let sender = Sender { count, sent: 0, next: None };
    let mut world = World::new(setting, client, server, sender, Box::new(Receiver::default));
    while world.step(BEGIN + BETWEEN * count as u32 + Duration::from_secs(10)) {}
    let seen = seen.lock().unwrap();
    let mut symbols = Vec::new();
    // The datagrams of the handshake are the first path's.
    let packets = |path| seen.iter().filter(|(of, _)| *of == path).count() as u64;
    let mut numbers = [world.sent_up(0) - packets(PathId::ZERO), 0, 0];
    for (path, symbol) in seen.iter() {
        let number = &mut numbers[(0..3u32).find(|id| PathId::from(*id) == *path).unwrap() as usize];
        symbols.extend(symbol.map(|symbol| (*path, *number, symbol)));
        *number += 1;
    }
    let (received, counters) =
        (world.server.applications().flat_map(|receiver| receiver.0.clone()).collect(), world.server.counters());
    let client = world.client.counters();
    Outcome {
        symbols,
        received,
        recovered: counters.recovered - counters.recovered_spurious,
        lost: client.losses_declared,
        rtt_ms: client.paths.iter().filter_map(|path| path.smoothed_rtt_ms).collect(),
    }
}

fn setting(owd_ms: &[u64], scheduler: Scheduling, schemes: Schemes) -> Setting {
    let links: Vec<_> = owd_ms.iter().map(|owd_ms| Link::new(10.0, *owd_ms)).collect();
    let congestion_control = CongestionControl::None;
    Setting { scheduler, congestion_control, ..Setting::over(&links, 0, Some(schemes)) }
}

/// Blocks that end with their last symbol alone.
fn blocks(n: usize, k: usize) -> Schemes {
    Schemes { look_back: Some(1024), ..coded(schemes(Code::ReedSolomon, n, k), |coding| coding.flush = Flush::Never) }
}

fn count(paths: &[PathId], path: u32) -> usize {
    paths.iter().filter(|of| **of == PathId::from(path)).count()
}

#[test]
fn round_robin_alternates_whatever_the_delays() {
    for owd_ms in [[25, 25], [100, 10], [10, 100]] {
        let paths = send(&setting(&owd_ms, Scheduling::RoundRobin, blocks(6, 4)), 400).paths();
        assert_eq!(paths.len(), 600);
        for end in 1..paths.len() {
            let (first, second) = (count(&paths[..end], 0), count(&paths[..end], 1));
            assert!(first.abs_diff(second) <= 1, "{first} and {second} of {end}");
        }
    }
    let paths = send(&setting(&[25, 50, 10], Scheduling::RoundRobin, blocks(6, 4)), 400).paths();
    assert_eq!([0, 1, 2].map(|path| count(&paths, path)), [200; 3]);
}

#[test]
fn the_lowest_rtt_takes_nearly_all_that_it_can() {
    for (owd_ms, fast) in [([10, 100], 0), ([100, 10], 1), ([25, 30], 0)] {
        let paths = send(&setting(&owd_ms, Scheduling::LowestRtt, blocks(6, 4)), 400).paths();
        assert!(
            count(&paths, fast) * 100 >= paths.len() * 99,
            "{} of {} with {owd_ms:?}",
            count(&paths, fast),
            paths.len()
        );
    }
}

#[test]
fn highrb_uses_both_paths_without_losses_and_the_better_one_with_them() {
    let paths = send(&setting(&[25, 25], Scheduling::HighRb, blocks(6, 4)), 2000).paths();
    let share = count(&paths, 0) as f64 / paths.len() as f64;
    assert!((0.4..0.6).contains(&share), "{share} on the first path");
    let mut lossy = setting(&[25, 25], Scheduling::HighRb, blocks(6, 4));
    lossy.further_links[0].up = Loss::Uniform { rate: 0.1, seed: 1 };
    let paths = send(&lossy, 2000).paths();
    assert!(count(&paths, 0) > 2 * count(&paths, 1), "{} and {}", count(&paths, 0), count(&paths, 1));
}

/// On the path that carried fewest of the symbols that it protects. Of several such paths it is the one that carried fewest repair
/// symbols: they take turns.
#[test]
fn a_repair_symbol_with_other_is_on_the_path_that_carried_least_of_what_it_protects() {
    let cases: [(_, &[u64]); 5] = [
        (Scheduling::LowestRtt, &[10, 100]),
        (Scheduling::RoundRobin, &[25, 25]),
        (Scheduling::HighRb, &[25, 25]),
        (Scheduling::LowestRtt, &[25, 10, 25]),
        (Scheduling::RoundRobin, &[25, 25, 25]),
    ];
    for (scheduler, owd_ms) in cases {
        for rlc in [false, true] {
            let schemes = if rlc { schemes(Code::RLC, 3, 2) } else { blocks(6, 4) };
            let schemes = Schemes { look_back: Some(1024), repair_path: RepairPath::Other, ..schemes };
            let outcome = send(&setting(owd_ms, scheduler, schemes), 300);
            let paths = 0..owd_ms.len() as u32;
            let (mut carriers, mut repairs) = (Vec::new(), Vec::new());
            for (path, _, symbol) in &outcome.symbols {
                match *symbol {
                    Symbol::Source(sid) => {
                        assert_eq!(sid, carriers.len() as u64);
                        carriers.push(*path);
                    }
                    Symbol::Repair(first, protected) => {
                        let protected = &carriers[first as usize..(first + protected) as usize];
                        let burden = |path: &u32| (count(protected, *path), count(&repairs, *path));
                        let least = paths.clone().map(|path| burden(&path)).min().unwrap();
                        let own =
                            paths.clone().find(|id| PathId::from(*id) == *path).map(|path| burden(&path)).unwrap();
                        assert_eq!(own, least, "{path:?} of {owd_ms:?}, {scheduler:?}: {protected:?} and {repairs:?}");
                        repairs.push(*path);
                    }
                }
            }
            assert!(repairs.len() >= 140, "{} repair symbols", repairs.len());
            if scheduler == Scheduling::RoundRobin {
                let counts: Vec<_> = paths.clone().map(|path| count(&carriers, path)).collect();
                let (most, fewest) = (counts.iter().max().unwrap(), counts.iter().min().unwrap());
                assert!(most - fewest <= 1, "{counts:?}: repair symbols are not in turn");
            }
            if scheduler == Scheduling::LowestRtt && owd_ms.len() == 3 {
                let counts = [0, 1, 2].map(|path| count(&repairs, path));
                assert!(counts[1] == 0 && counts[0].abs_diff(counts[2]) <= 1, "{counts:?}: they take turns");
            }
            assert_eq!(outcome.lost, 0);
        }
    }
}

/// Each ACK travels on the path of what it acknowledges.
#[test]
fn each_path_has_the_round_trip_time_of_its_link() {
    for owd_ms in [[100, 10], [10, 100]] {
        let outcome = send(&setting(&owd_ms, Scheduling::RoundRobin, schemes(Code::RLC, 3, 2)), 300);
        assert_eq!(outcome.rtt_ms.len(), 2);
        for (rtt_ms, owd_ms) in outcome.rtt_ms.iter().zip(owd_ms) {
            let ratio = rtt_ms / (2 * owd_ms) as f64;
            assert!((1.0..1.1).contains(&ratio), "{owd_ms} ms: {rtt_ms}");
        }
    }
}

/// The transfer without losses, and what is lost of another one: the datagrams of a path with these of its symbols.
fn losing(setting: &Setting, count: u64, symbols: &[(PathId, u64, Symbol)]) -> Outcome {
    let mut setting = setting.clone();
    let of = |path| Loss::These(symbols.iter().filter(|(of, ..)| *of == path).map(|(_, number, _)| *number).collect());
    setting.up = of(PathId::ZERO);
    for (further, link) in setting.further_links.iter_mut().enumerate() {
        link.up = of(PathId::from(further as u32 + 1));
    }
    send(&setting, count)
}

fn on_path(outcome: &Outcome, path: u32) -> Vec<(PathId, u64, Symbol)> {
    outcome.symbols.iter().filter(|(of, ..)| *of == PathId::from(path)).copied().collect()
}

/// Thesis, Fig. 5.20: RS (6, 4), and bursts of three on one path.
#[test]
fn two_paths_recover_bursts_that_one_does_not() {
    for (owd_ms, places, recovered) in [(&[25][..], 12, vec![4, 5, 10, 11]), (&[25, 25], 6, vec![1, 2, 4, 5])] {
        let setting = setting(owd_ms, Scheduling::RoundRobin, blocks(6, 4));
        let lossless = send(&setting, 12);
        assert_eq!(lossless.symbols.len(), 18);
        assert_eq!(lossless.received.len(), 12);
        let symbols = on_path(&lossless, 0);
        let is_recovered = |place: &usize| losing(&setting, 12, &symbols[*place..place + 3]).received.len() == 12;
        let places: Vec<_> = (0..places).filter(is_recovered).collect();
        assert_eq!(places, recovered, "with {} paths", owd_ms.len());
    }
}

#[test]
fn each_single_loss_and_each_run_of_ten_on_a_path_is_recovered_by_rs_30_20() {
    const COUNT: u64 = 80;
    for owd_ms in [[25, 25], [60, 10]] {
        let setting = setting(&owd_ms, Scheduling::RoundRobin, blocks(30, 20));
        let lossless = send(&setting, COUNT);
        assert_eq!((lossless.recovered, lossless.lost), (0, 0));
        for path in [0, 1] {
            let symbols = on_path(&lossless, path);
            assert_eq!(symbols.len() as u64, COUNT * 30 / 20 / 2);
            for run in [1, 10] {
                for lost in symbols.windows(run) {
                    let outcome = losing(&setting, COUNT, lost);
                    let sources = lost.iter().filter(|(.., symbol)| matches!(symbol, Symbol::Source(_))).count() as u64;
                    assert_eq!(outcome.received.len() as u64, COUNT, "{lost:?}");
                    assert_eq!(outcome.recovered, sources, "{lost:?}");
                }
            }
        }
    }
}

/// Key updates, reordering between paths, ACKs on their own paths: nothing of it looks like a loss.
#[test]
fn without_losses_none_is_seen() {
    let schedulers =
        [Scheduling::LowestId, Scheduling::RoundRobin, Scheduling::LowestRtt, Scheduling::HighRb, Scheduling::Ecf];
    for seed in 0..200 {
        let scheduler = schedulers[seed as usize % 5];
        let owd_ms = [[25, 25], [100, 10], [10, 100], [40, 60]][seed as usize % 4];
        let links = owd_ms.map(|owd_ms| Link { queue_bdp: DEEP_QUEUE, ..Link::new(10.0, owd_ms) });
        let coded = Schemes { look_back: Some(1024), ..schemes(Code::RLC, 3, 2) };
        let schemes = (seed % 2 == 0).then_some(coded);
        let outcome = Setting { seed, scheduler, ..Setting::over(&links, 2_000_000, schemes) }.run();
        outcome.dct.clone().unwrap();
        let (sender, receiver) = (&outcome.server, &outcome.client);
        assert_eq!(
            (sender.losses_declared, receiver.losses_declared),
            (0, 0),
            "seed {seed}: {scheduler:?}, {owd_ms:?}"
        );
        let never_came = receiver.recovered - receiver.recovered_spurious;
        assert!(
            never_came <= outcome.missing.1,
            "seed {seed}: {never_came} never came, {} under way",
            outcome.missing.1
        );
    }
}

/// Paths die and come back, either, both, one way or both ways: the transfer ends, and with the right bytes.
#[test]
fn transfers_survive_random_outages() {
    for seed in 0..1000 {
        let draw = |n: u64, below: u64| content::word(seed, n) % below;
        let mut links = [Link::new(10.0, 10 + draw(0, 50)), Link::new(10.0, 10 + draw(1, 50))];
        for (number, link) in links.iter_mut().enumerate() {
            let n = 10 * (1 + number as u64);
            let from = Duration::from_millis(draw(n, 700));
            let outage = Some([from, from + Duration::from_millis(50 + draw(n + 1, 3000))]);
            link.outage_up = outage.filter(|_| draw(n + 2, 2) == 0);
            link.outage_down = outage.filter(|_| draw(n + 3, 2) == 0);
        }
        let schedulers = [
            Scheduling::LowestId,
            Scheduling::RoundRobin,
            Scheduling::LowestRtt,
            Scheduling::HighRb,
            Scheduling::Redundant,
            Scheduling::Ecf,
        ];
        let scheduler = schedulers[draw(40, 6) as usize];
        let coded = Schemes { look_back: Some(1024), ..schemes(Code::RLC, 3, 2) };
        let repair_path = if draw(41, 2) == 0 { RepairPath::Any } else { RepairPath::Other };
        let schemes = (draw(42, 2) == 0).then_some(Schemes { repair_path, ..coded });
        let outcome = Setting { seed, scheduler, ..Setting::over(&links, 200_000, schemes) }.run();
        let dct = outcome.dct.clone().unwrap_or_else(|error| panic!("seed {seed}: {error}: {links:?}"));
        assert!(dct < Duration::from_secs(20), "seed {seed}: {dct:?} with {scheduler:?}, {links:?}");
    }
}
