//! Whole transfers over several links, in virtual time: the laws that hold with several paths.

mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fec::Code;
use host::coding::Redundancy;
use host::contract::{Direction, Role};
use noq_fec::options::CongestionControl;
use noq_fec::paths::PathCounters;
use noq_proto::PathId;
use world::decrypted::{self, Sent};
use world::{Link, Loss, Setting, World, all_schemes, schemes};

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
    for seed in 0..20 {
        let mut links = links.clone();
        for (n, link) in links.iter_mut().enumerate() {
            link.down = Loss::Uniform { rate: 0.02, seed: 3 * seed + n as u64 };
        }
        let setting = Setting { seed, ..Setting::over(&links, 300_000, Some(schemes(Code::RLC, 3, 2))) };
        let outcome = setting.run();
        assert!(outcome.dct.as_ref().is_ok_and(|dct| *dct < Duration::from_secs(60)), "seed {seed}: {outcome:?}");
    }
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

/// The outage is long enough for the path to be given up where it is not yet open, and for it to be opened again.
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

/// Of ten seeds, so that the order is no accident: in congestion avoidance, two equal paths with OLIA gain together what is
/// between one path and two that know nothing of each other.
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

#[test]
fn the_series_of_the_windows_has_their_sum() {
    let setting = Setting::over(&pair(), 1_000_000, None);
    let mut world = World::of_transfer(&setting, setting.client_config(), setting.server_config());
    world.server.record_congestion();
    let outcome = world.run();
    let mut file = Vec::new();
    world.server.congestion().unwrap().write(&mut file).unwrap();
    let text = String::from_utf8(file).unwrap();
    let windows: Vec<u64> = text.lines().skip(1).map(|row| row.split(',').nth(2).unwrap().parse().unwrap()).collect();
    assert_eq!(windows[0], 12_520);
    assert!(
        windows.contains(&25_040) || windows.iter().any(|window| *window > 25_040),
        "the second path has a window, too"
    );
    assert_eq!(*windows.last().unwrap(), outcome.server.congestion_window);
}
