//! Whole transfers over several links, in virtual time: the laws that hold with several paths.

mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fec::Code;
use host::contract::{Direction, Role};
use noq_fec::paths::PathCounters;
use noq_proto::PathId;
use world::decrypted::{self, Sent};
use world::{Link, Loss, Setting, schemes};

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
