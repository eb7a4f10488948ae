//! When a transfer has filled the link, so that another one may begin beside it: when the link has carried a share of what its
//! rate allows, for a while. As the harness tells it of emulated links (runners/trial/competition.py), by readings in intervals.

use std::collections::VecDeque;

use serde::Deserialize;

/// When a link counts as full.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filling {
    full_share: f64,
    window_s: f64,
    interval_s: f64,
}

impl Filling {
    /// Refuses what would never or always be full, in one line.
    pub fn check(&self) -> Result<(), String> {
        if !(self.full_share > 0.0 && self.full_share <= 1.0) {
            return Err(format!("filling.full_share: {} is not above 0 and up to 1", self.full_share));
        }
        for (name, value) in [("window_s", self.window_s), ("interval_s", self.interval_s)] {
            if !(1e-6..=1e6).contains(&value) {
                return Err(format!("filling.{name}: {value} is not in 0.000001 to 1000000"));
            }
        }
        Ok(())
    }

    pub fn interval_ns(&self) -> u64 {
        (self.interval_s * 1e9).round() as u64
    }

    fn window_ns(&self) -> u64 {
        (self.window_s * 1e9).round() as u64
    }
}

/// The readings of a link while it fills.
#[derive(Debug)]
pub struct Readings {
    filling: Filling,
    full_bytes_per_s: f64,
    /// When, and what it had carried by then, in bytes.
    readings: VecDeque<(u64, u64)>,
}

impl Readings {
    pub fn new(filling: Filling, rate_bps: u64) -> Self {
        let full_bytes_per_s = filling.full_share * rate_bps as f64 / 8.0;
        Self { filling, full_bytes_per_s, readings: VecDeque::new() }
    }

    /// Whether the link is full at a time by which it has carried so much.
    pub fn is_full(&mut self, now_ns: u64, carried_bytes: u64) -> bool {
        self.readings.push_back((now_ns, carried_bytes));
        let window_ns = self.filling.window_ns();
        while self.readings.get(1).is_some_and(|(at, _)| at + window_ns <= now_ns) {
            self.readings.pop_front();
        }
        let (begun, carried_before) = self.readings[0];
        let passed_s = (now_ns - begun) as f64 / 1e9;
        now_ns - begun >= window_ns && (carried_bytes - carried_before) as f64 >= self.full_bytes_per_s * passed_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILLING: Filling = Filling { full_share: 0.95, window_s: 1.0, interval_s: 0.02 };

    /// When a link of 8 Mbps is found full that carries so many bytes in an interval up to a time, and then as much as it can.
    fn full_at(share: f64, until: u64) -> Option<u64> {
        let mut readings = Readings::new(FILLING, 8_000_000);
        let mut carried = 0;
        (0..500).map(|n| n * FILLING.interval_ns()).find(|now| {
            carried += if *now <= until { (20_000.0 * share) as u64 } else { 20_000 };
            readings.is_full(*now, carried)
        })
    }

    #[test]
    fn a_link_is_full_when_it_has_carried_its_share_for_the_window() {
        assert_eq!(full_at(1.0, 0), Some(1_000_000_000));
        assert_eq!(full_at(0.96, u64::MAX), Some(1_000_000_000));
        assert_eq!(full_at(0.94, u64::MAX), None);
    }

    /// Half of a window at nothing leaves too little; a twentieth of it does not.
    #[test]
    fn what_it_carried_before_the_window_does_not_count() {
        assert_eq!(full_at(0.0, 3_000_000_000), Some(3_960_000_000));
    }
}
