//! Whole transfers over several links, in virtual time: the laws that hold with several paths.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::world::decrypted::{self, Sent};
use crate::world::{DEEP_QUEUE, Link, Loss, Setting, World, all_schemes, safe, schemes};
use fec::Code;
use host::coding::Redundancy;
use host::content;
use host::contract::{Direction, Role};
use noq_fec::options::CongestionControl;
use noq_fec::paths::PathCounters;
use noq_fec::scheduler::Scheduling;
use noq_proto::PathId;

const INITIAL_WINDOW: u64 = 12_520;

/// The frame that asks for the first connection ID of the second path.
const PATH_CIDS_BLOCKED: [u8; 4] = [0x7e, 0x7c, 1, 0];

fn pair() -> [Link; 2] {
    [Link::new(10.0, 25), Link::new(10.0, 25)]
}

#[test]
fn both_paths_carry_a_transfer_and_its_sums_are_the_totals() {
    for direction in [Direction::Download, Direction::Upload] {
        let setting = Setting { direction, ..Setting::over(&pair(), 2_000_000, Some(schemes(Code::RLC, 3, 2))) };
        let outcome = setting.run();
        outcome.dct.clone().unwrap();
        let (sender, _) = outcome.of(direction);
        for path in &sender.paths[..2] {
            assert!(path.packets_sent > 300 && path.source_sent > 300, "{path:?}");
            assert!(path.smoothed_rtt_ms.is_some_and(|rtt| rtt >= 50.0), "{path:?}");
        }
        for end in [&outcome.client, &outcome.server] {
            let sum = |of: fn(&PathCounters) -> u64| end.paths.iter().map(of).sum::<u64>();
            assert_eq!(sum(|path| path.packets_sent), end.packets_sent);
            assert_eq!(sum(|path| path.source_sent), end.source_sent);
            assert_eq!(sum(|path| path.repair_sent), end.repair_sent);
        }
        assert_eq!(outcome.client.paths[2], PathCounters::default());
    }
}

#[test]
fn packets_of_each_path_take_its_link() {
    let paths = Arc::new(Mutex::new([0; 2]));
    let seen = paths.clone();
    let count = move |sent: Sent| seen.lock().unwrap()[usize::from(sent.path != PathId::ZERO)] += 1;
    let setting = Setting::over(&pair(), 500_000, None);
    let outcome = decrypted::watched(&setting, Role::Server, Arc::new(Mutex::new(count)));
    outcome.dct.unwrap();
    let seen = *paths.lock().unwrap();
    assert!(seen[1] > 100, "{seen:?}");
    assert_eq!(outcome.server.paths[1].packets_sent, seen[1]);
    let all = Setting { paths: 1, ..setting }.run();
    assert_eq!(all.server.paths[1], PathCounters::default());
}

#[test]
fn three_paths_lose_and_recover_and_the_content_is_right() {
    let links = [Link::new(10.0, 25), Link::new(5.0, 50), Link::new(20.0, 10)];
    let mut recovered = [0; 3];
    for seed in 0..20 {
        let mut links = links.clone();
        for (n, link) in links.iter_mut().enumerate() {
            link.down = Loss::Uniform { rate: 0.02, seed: 3 * seed + n as u64 };
        }
        let setting = Setting { seed, ..Setting::over(&links, 300_000, Some(schemes(Code::RLC, 3, 2))) };
        let outcome = setting.run();
        assert!(outcome.dct.as_ref().is_ok_and(|dct| *dct < Duration::from_secs(60)), "seed {seed}: {outcome:?}");
        for (of_path, path) in recovered.iter_mut().zip(&outcome.server.paths) {
            *of_path += path.recovered;
        }
    }
    assert!(recovered.iter().all(|of_path| *of_path > 0), "{recovered:?}");
}

#[test]
fn every_scheme_recovers_over_two_paths_and_the_content_is_right() {
    let mut links = pair();
    links[0].down = Loss::Uniform { rate: 0.03, seed: 1 };
    links[1].down = Loss::Bursts { p: 0.02, r: 0.4, seed: 2 };
    for schemes in all_schemes().into_iter().filter(|schemes| !schemes.masks_losses) {
        let outcome = Setting::over(&links, 500_000, Some(schemes.clone())).run();
        assert!(outcome.dct.is_ok(), "{schemes:?}: {outcome:?}");
        let (server, client) = (&outcome.server, &outcome.client);
        // A tail alone has few repair symbols.
        let is_tail = schemes.coding.redundancy == Redundancy::Tail;
        let have_recovered = server.paths.iter().take(2).all(|path| path.recovered > 0);
        assert!(is_tail || have_recovered, "{schemes:?}: {:?}", server.paths);
        assert_eq!(server.paths.iter().map(|path| path.recovered).sum::<u64>(), server.recovered_by_peer);
        assert_eq!(server.paths.iter().map(|path| path.packets_lost).sum::<u64>(), server.packets_lost);
        assert!(client.recovered - client.recovered_spurious <= outcome.missing.1, "{schemes:?}");
    }
}

#[test]
fn a_path_that_cannot_be_opened_at_first_is_opened_when_its_link_is_there() {
    for (up, down) in [(true, true), (true, false), (false, true)] {
        let mut links = pair();
        let outage = Some([Duration::ZERO, Duration::from_secs(3)]);
        links[1].outage_up = outage.filter(|_| up);
        links[1].outage_down = outage.filter(|_| down);
        let outcome = Setting::over(&links, 10_000_000, None).run();
        assert!(outcome.dct.is_ok(), "{up} {down}: {outcome:?}");
        assert!(outcome.server.paths[1].packets_sent > 500, "{up} {down}: {:?}", outcome.server.paths);
    }
}

/// Each try puts PATH_CIDS_BLOCKED into a packet. When the pacer's timer was reason enough to try again, packets of that frame alone took
/// all tokens, so that the timer was set anew: 160 of them in 30 ms.
#[test]
fn a_client_asks_once_for_connection_ids_of_a_further_path() {
    for parameters in [None, Some(safe())] {
        let asking = Arc::new(Mutex::new(0));
        let count = asking.clone();
        let watch = move |sent: Sent| {
            let asks = sent.frames.windows(PATH_CIDS_BLOCKED.len()).any(|window| window == PATH_CIDS_BLOCKED);
            *count.lock().unwrap() += u64::from(asks);
        };
        let links = [Link { codel: true, ..Link::new(0.3313, 20) }, Link { codel: true, ..Link::new(50.0, 200) }];
        let (direction, congestion_control) = (Direction::Upload, CongestionControl::Cubic);
        let setting = Setting { direction, congestion_control, ..Setting::over(&links, 5870, parameters) };
        decrypted::watched(&setting, Role::Client, Arc::new(Mutex::new(watch))).dct.unwrap();
        assert_eq!(*asking.lock().unwrap(), 1, "packets that ask: {setting:?}");
    }
}

/// The server gives up a path of which it hears nothing for half a second. That it allows another one it tells before or after
/// the client is done with that path, whose round-trip time may be shorter. A client with more addresses than that may use another.
#[test]
fn a_path_that_the_peer_gave_up_is_opened_again_and_its_counts_go_on() {
    for (owd_ms, addresses) in [([25, 25], 2), ([150, 5], 2), ([25, 25], 3), ([150, 5], 3)] {
        let mut links = owd_ms.map(|owd_ms| Link::new(10.0, owd_ms)).to_vec();
        links[1].outage_up = Some([2, 4].map(Duration::from_secs));
        links[1].outage_down = links[1].outage_up;
        links.resize(addresses, Link::new(10.0, 25));
        let setting = Setting::over(&links, 15_000_000, None);
        let of_two = Setting { paths: 2, ..setting.clone() };
        let mut transport = of_two.transport(Role::Server, &None);
        transport.default_path_max_idle_timeout(Some(Duration::from_millis(500)));
        let mut server = of_two.server_config();
        server.transport_config(Arc::new(transport));
        let mut world = World::of_transfer(&setting, setting.client_config(), server);
        while world.step(Duration::from_secs(4)) {}
        let at_outage = world.server.counters().paths[1].packets_sent;
        let outcome = world.run();
        let why = format!("{owd_ms:?}, {addresses} addresses: {outcome:?}");
        assert!(outcome.dct.is_ok(), "{why}");
        let [first, second, third] = outcome.server.paths;
        let further = second.packets_sent + third.packets_sent;
        assert!(at_outage > 500 && further > at_outage + 1000, "{why}");
        assert_eq!(first.packets_sent + further, outcome.server.packets_sent, "{why}");
        assert!(addresses == 3 || third == PathCounters::default(), "{why}");
    }
}

/// Either path, at any time, in one direction or both: it costs no more than the other path alone and finding out.
#[test]
fn a_path_that_dies_costs_two_probes_and_three_round_trips_at_most() {
    const SIZE: u64 = 2_000_000;
    let for_good = |from| Some([from, Duration::from_secs(3600)]);
    for scheduler in
        [Scheduling::LowestId, Scheduling::RoundRobin, Scheduling::LowestRtt, Scheduling::HighRb, Scheduling::Ecf]
    {
        let alone = Setting { scheduler, ..Setting::over(&pair()[..1], SIZE, None) }.run().dct.unwrap();
        for seed in 0..60 {
            let (dead, ways) = (seed as usize % 2, seed / 2 % 3);
            let from = Duration::from_millis(300 + content::word(seed, 0) % 500);
            let mut links = pair();
            links[dead].outage_up = for_good(from).filter(|_| ways != 0);
            links[dead].outage_down = for_good(from).filter(|_| ways != 1);
            let outcome = Setting { seed, scheduler, ..Setting::over(&links, SIZE, None) }.run();
            let why = format!("{scheduler:?}, path {dead} from {from:?}, {ways}");
            assert!(outcome.server.paths[dead].packets_sent > 20, "{why}: it was used");
            // Behind a full queue; RFC 9002, 6.2.1 with the deviation that a path begins with.
            let round_trip = Duration::from_millis(50).mul_f64(2.5);
            let probe = 3 * round_trip + Duration::from_millis(25);
            let dct = outcome.dct.unwrap();
            assert!(dct <= alone + 2 * probe + 3 * round_trip, "{why}: {dct:?}, alone {alone:?}");
        }
    }
}

/// In congestion avoidance, two equal paths with OLIA gain together what is between one path and two that know nothing of
/// each other. Ten seeds are tried, so that the order is no accident.
#[test]
fn paths_with_olia_gain_less_than_paths_on_their_own_and_more_than_one_alone() {
    let seconds = |congestion_control, paths| -> f64 {
        let dct = |seed| {
            let mut links = [Link::new(20.0, 25), Link::new(20.0, 25)];
            for (n, link) in links.iter_mut().enumerate() {
                link.down = Loss::Uniform { rate: 0.01, seed: 2 * seed + n as u64 };
            }
            let setting = Setting::over(&links, 2_000_000, None);
            Setting { seed, congestion_control, paths, ..setting }.run().dct.unwrap().as_secs_f64()
        };
        (0..10).map(dct).sum()
    };
    let coupled = seconds(CongestionControl::Olia, 2);
    let (apart, alone) = (seconds(CongestionControl::NewReno, 2), seconds(CongestionControl::NewReno, 1));
    assert!(apart < coupled && coupled < alone, "{apart} {coupled} {alone}");
    let single = seconds(CongestionControl::Olia, 1);
    assert!((single / alone - 1.0).abs() < 0.05, "one path: {single}, with New Reno {alone}");
}

/// Without losses, windows never shrink, and once one comes with the second path.
#[test]
fn the_series_of_the_windows_has_their_sum() {
    let links = pair().map(|link| Link { queue_bdp: DEEP_QUEUE, ..link });
    let setting = Setting::over(&links, 1_000_000, None);
    let mut world = World::of_transfer(&setting, setting.client_config(), setting.server_config());
    world.server.record_congestion();
    let outcome = world.run();
    let mut file = Vec::new();
    world.server.congestion().unwrap().write(&mut file).unwrap();
    let text = String::from_utf8(file).unwrap();
    let windows: Vec<u64> = text.lines().skip(1).map(|row| row.split(',').nth(2).unwrap().parse().unwrap()).collect();
    assert_eq!(windows[0], INITIAL_WINDOW);
    assert!(windows.is_sorted(), "{windows:?}");
    let comes = windows.windows(2).filter(|pair| pair[1] - pair[0] == INITIAL_WINDOW).count();
    assert_eq!(comes, 1, "{windows:?}");
    assert_eq!(*windows.last().unwrap(), outcome.server.congestion_window);
}
