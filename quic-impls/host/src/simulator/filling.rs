//! The filling of a link by a transfer, after which another one may begin: the settings of the lane, and the interval
//! of questions.

use serde::Deserialize;

/// The condition for a full link.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filling {
    pub full_share: f64,
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

    pub fn window_ns(&self) -> u64 {
        (self.window_s * 1e9).round() as u64
    }
}
