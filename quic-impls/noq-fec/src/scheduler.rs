//! Schedulers choose which of several paths takes the next packet of data. noq-proto itself takes the path with the
//! lowest number that can send; here are the others.

use std::time::Duration;

use noq_proto::PathId;
use noq_proto::scheduler::{Factory, Outlook, PathView, Scheduler};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// The path with the lowest number that can send.
    #[default]
    LowestId,
    RoundRobin,
    LowestRtt,
    HighRb,
    Redundant,
    Ecf,
}

impl Factory for Scheduling {
    fn build(&self) -> Box<dyn Scheduler> {
        match self {
            Self::LowestId => Box::new(LowestId),
            Self::RoundRobin => Box::new(RoundRobin::default()),
            Self::LowestRtt => Box::new(LowestRtt),
            Self::HighRb => Box::new(HighRb),
            Self::Redundant => Box::new(Redundant),
            Self::Ecf => Box::new(Ecf::default()),
        }
    }
}

#[derive(Debug)]
struct LowestId;

impl Scheduler for LowestId {
    fn schedule(&mut self, _: &Outlook, _: &mut Vec<PathView>, _: &mut dyn FnMut() -> f64) {}
}

/// The paths in turn, beginning with the one after the path that sent last.
#[derive(Debug, Default)]
struct RoundRobin {
    last: Option<PathId>,
}

impl Scheduler for RoundRobin {
    fn schedule(&mut self, _: &Outlook, paths: &mut Vec<PathView>, _: &mut dyn FnMut() -> f64) {
        paths.sort_by_key(|path| Some(path.id) <= self.last);
    }

    fn on_sent(&mut self, path: PathId) {
        self.last = Some(path);
    }
}

/// The path with the lowest RTT of those that can send.
#[derive(Debug)]
struct LowestRtt;

impl Scheduler for LowestRtt {
    fn schedule(&mut self, _: &Outlook, paths: &mut Vec<PathView>, _: &mut dyn FnMut() -> f64) {
        paths.sort_by_key(|path| path.rtt);
    }
}

/// A path that is drawn, with the remaining bytes of the congestion windows as weights: Algorithm 1 of Michel's thesis. If it
/// can't send, the next one does that follows it.
#[derive(Debug)]
struct HighRb;

impl Scheduler for HighRb {
    fn schedule(&mut self, _: &Outlook, paths: &mut Vec<PathView>, draw: &mut dyn FnMut() -> f64) {
        let mut weights: Vec<u64> = paths.iter().map(remaining_bytes).collect();
        if weights.iter().all(|weight| *weight == 0) {
            weights.fill(1);
        }
        let total: u64 = weights.iter().sum();
        let mut point = draw() * total as f64;
        let is_hit = |weight: &u64| {
            point -= *weight as f64;
            point < 0.0
        };
        let chosen = weights.iter().position(is_hit).unwrap_or(paths.len() - 1);
        paths.rotate_left(chosen);
    }
}

fn remaining_bytes(path: &PathView) -> u64 {
    path.congestion_window.saturating_sub(path.bytes_in_flight)
}

/// The data of streams on all paths: first on the path with the lowest RTT of those that can send.
#[derive(Debug)]
struct Redundant;

impl Scheduler for Redundant {
    fn schedule(&mut self, outlook: &Outlook, paths: &mut Vec<PathView>, draw: &mut dyn FnMut() -> f64) {
        LowestRtt.schedule(outlook, paths, draw);
    }

    fn is_redundant(&self) -> bool {
        true
    }
}

/// Earliest completion first (Lim et al., CoNEXT 2017, Algorithm 1): a slower path is used only if the queued data
/// arrives earlier with it than if all of it waits for the fastest one.
#[derive(Debug, Default)]
struct Ecf {
    is_waiting: bool,
}

/// Share by which the slower path's time counts more once a sender waits for the fastest path.
const HYSTERESIS: f64 = 0.25;

impl Scheduler for Ecf {
    fn schedule(&mut self, outlook: &Outlook, paths: &mut Vec<PathView>, _: &mut dyn FnMut() -> f64) {
        paths.sort_by_key(|path| path.rtt);
        let (fast, slower) = paths.split_first().expect("there are two paths or more");
        let Some(slow) = slower.iter().find(|path| !path.is_blocked).filter(|_| fast.is_blocked) else {
            return;
        };
        let seconds = |duration: Duration| duration.as_secs_f64();
        let windows = |path: &PathView| outlook.queued_bytes as f64 / path.congestion_window.max(1) as f64;
        let margin = seconds(fast.rtt_variance.max(slow.rtt_variance));
        let patience = 1.0 + if self.is_waiting { HYSTERESIS } else { 0.0 };
        let is_fast_earlier = (1.0 + windows(fast)) * seconds(fast.rtt) < patience * (seconds(slow.rtt) + margin);
        if !is_fast_earlier {
            self.is_waiting = false;
        } else if windows(slow).max(1.0) * seconds(slow.rtt) >= 2.0 * seconds(fast.rtt) + margin {
            self.is_waiting = true;
            paths.truncate(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use host::content;

    const MS: Duration = Duration::from_millis(1);

    fn path(id: u32, window: u64, in_flight: u64, rtt: Duration) -> PathView {
        PathView {
            id: PathId::from(id),
            rtt,
            rtt_variance: rtt / 10,
            congestion_window: window,
            bytes_in_flight: in_flight,
            is_blocked: window < in_flight + 1252,
        }
    }

    fn first(scheduler: &mut dyn Scheduler, paths: &[PathView], queued_bytes: u64, draw: f64) -> Vec<u32> {
        let mut paths = paths.to_vec();
        scheduler.schedule(&Outlook::new(Instant::now(), queued_bytes), &mut paths, &mut || draw);
        let id = |path: &PathView| (0..9).find(|id| PathId::from(*id) == path.id).unwrap();
        paths.iter().map(id).collect()
    }

    #[test]
    fn round_robin_takes_the_paths_in_turn_and_begins_again_where_one_is_gone() {
        let paths = [path(0, 9000, 0, MS), path(2, 9000, 0, MS), path(5, 9000, 0, MS)];
        let mut scheduler = RoundRobin::default();
        let mut sent = Vec::new();
        for _ in 0..7 {
            let chosen = first(&mut scheduler, &paths, 1, 0.0)[0];
            scheduler.on_sent(PathId::from(chosen));
            sent.push(chosen);
        }
        assert_eq!(sent, [0, 2, 5, 0, 2, 5, 0]);
        assert_eq!(first(&mut scheduler, &paths[..2], 1, 0.0), [2, 0]);
        assert_eq!(first(&mut scheduler, &paths[2..], 1, 0.0), [5]);
    }

    #[test]
    fn the_lowest_rtt_comes_first() {
        let paths = [path(0, 9000, 0, 30 * MS), path(1, 9000, 0, 10 * MS), path(2, 9000, 0, 20 * MS)];
        assert_eq!(first(&mut LowestRtt, &paths, 1, 0.0), [1, 2, 0]);
    }

    /// χ² of counts against shares.
    fn chi_squared(counts: &[f64], weights: &[f64]) -> f64 {
        let (draws, total) = (counts.iter().sum::<f64>(), weights.iter().sum::<f64>());
        let expected = weights.iter().map(|weight| weight / total * draws);
        counts.iter().zip(expected).map(|(count, expected)| (count - expected).powi(2) / expected).sum()
    }

    #[test]
    fn highrb_draws_each_path_as_often_as_it_has_remaining_bytes() {
        let cases = [
            ([path(0, 12_000, 2_000, MS), path(1, 90_000, 60_000, MS), path(2, 5_000, 0, MS)], [10.0, 30.0, 5.0]),
            ([path(0, 12_000, 12_000, MS), path(1, 9_000, 10_000, MS), path(2, 5_000, 5_000, MS)], [1.0, 1.0, 1.0]),
        ];
        for (paths, weights) in &cases {
            let of_seed = |seed| {
                let mut counts = [0.0; 3];
                for n in 0..10_000 {
                    let draw = (content::word(seed, n) >> 11) as f64 / (1u64 << 53) as f64;
                    counts[first(&mut HighRb, paths, 1, draw)[0] as usize] += 1.0;
                }
                chi_squared(&counts, weights)
            };
            // Exceeded once in a thousand times, with two degrees of freedom for each seed.
            let sum: f64 = (0..8).map(of_seed).sum();
            assert!(sum < 39.25, "{sum} with {weights:?}");
        }
    }

    #[test]
    fn highrb_never_draws_a_full_window_while_another_has_room() {
        let paths = [path(0, 12_000, 12_000, MS), path(1, 9_000, 1_000, MS)];
        for draw in [0.0, 0.5, 0.999_999] {
            assert_eq!(first(&mut HighRb, &paths, 1, draw)[0], 1);
        }
    }

    /// Lim et al., §3.1: with a fast path of 10 ms and a slow one of 100 ms, one packet that is left waits for the fast one.
    #[test]
    fn ecf_waits_for_the_fast_path_if_what_is_left_comes_earlier_with_it() {
        let slow_and_fast = |in_flight| [path(0, 12_000, 0, 100 * MS), path(1, 12_000, in_flight, 10 * MS)];
        let mut scheduler = Ecf::default();
        assert_eq!(first(&mut scheduler, &slow_and_fast(0), 1_000, 0.0), [1, 0], "it has room");
        assert_eq!(first(&mut scheduler, &slow_and_fast(12_000), 1_000, 0.0), [1], "one packet waits");
        assert_eq!(first(&mut scheduler, &slow_and_fast(12_000), 1_000_000, 0.0), [1, 0], "much doesn't");
    }

    /// Beyond the point where it stops to pay, a sender that waits does so for a while.
    #[test]
    fn ecf_goes_on_to_wait_a_little_longer() {
        let paths = [path(0, 12_000, 0, 100 * MS), path(1, 12_000, 12_000, 10 * MS)];
        // 1 + queued / 12,000 windows of 10 ms against 110 ms, and against 137.5 ms.
        let queued = 140_000;
        assert_eq!(first(&mut Ecf::default(), &paths, queued, 0.0), [1, 0]);
        assert_eq!(first(&mut Ecf { is_waiting: true }, &paths, queued, 0.0), [1]);
    }
}
