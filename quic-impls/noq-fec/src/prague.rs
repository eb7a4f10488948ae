//! A sender for L4S (RFC 9331): packets have ECT(1), and the window follows the share of packets that queues mark, as that of
//! DCTCP (RFC 8257) and of Prague (draft-briscoe-iccrg-prague-congestion-control) does. Without marks it is Reno's.
//!
//! It meets the demands of RFC 9331, section 4.3, but for two: it doesn't look for queues that mark all flows alike with
//! ECT(1), as those of RFC 3168 do, and its window has two packets at least.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use noq_proto::{EcnCodepoint, RttEstimator};

/// Weight of the latest round trip in the share of marked packets (RFC 8257, section 3.3).
const GAIN: f64 = 1.0 / 16.0;

/// Share of a window that is left after a loss.
const LOSS_REDUCTION: f64 = 0.5;

/// In packets.
const LEAST_WINDOW: f64 = 2.0;

/// Senders with shorter round trips grow as if theirs were so long, so that they leave others their share (RFC 9331, section 4.3).
const REFERENCE_RTT: Duration = Duration::from_millis(25);

#[derive(Debug)]
pub struct PragueConfig {
    /// In bytes.
    pub initial_window: u64,
}

impl ControllerFactory for PragueConfig {
    fn build(self: Arc<Self>, _now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Prague::new(self.initial_window, mtu))
    }
}

#[derive(Debug, Clone)]
struct Prague {
    initial_window: u64,
    mtu: f64,
    /// In bytes.
    window: f64,
    threshold: f64,
    rtt: Duration,
    has_rtt: bool,
    /// The share of packets that are marked, a moving average over round trips; 1 until the first mark.
    share: f64,
    has_met_marks: bool,
    /// The round trip over which packets are counted.
    round_end: Option<Instant>,
    counted: u64,
    marked: u64,
    /// When the window was last reduced for marks, which happens once in a round trip of the reference or longer.
    reduced_at: Option<Instant>,
    /// Nothing that was sent before the last loss answers for one more, or lets the window grow.
    lost_at: Option<Instant>,
}

impl Prague {
    fn new(initial_window: u64, mtu: u16) -> Self {
        Self {
            initial_window,
            mtu: mtu.into(),
            window: initial_window as f64,
            threshold: f64::INFINITY,
            rtt: REFERENCE_RTT,
            has_rtt: false,
            share: 1.0,
            has_met_marks: false,
            round_end: None,
            counted: 0,
            marked: 0,
            reduced_at: None,
            lost_at: None,
        }
    }

    fn reduce(&mut self, now: Instant, share_left: f64) {
        self.window = (self.window * share_left).max(LEAST_WINDOW * self.mtu);
        self.threshold = self.window;
        self.reduced_at = Some(now);
    }

    fn round(&self) -> Duration {
        self.rtt.max(REFERENCE_RTT)
    }

    /// One packet for each window that is acknowledged, and less with a short round trip: then the window grows in a second as that
    /// of a sender with the reference, at the same rate.
    fn growth(&self, bytes: f64) -> f64 {
        let slowness = (self.rtt.as_secs_f64() / REFERENCE_RTT.as_secs_f64()).min(1.0);
        self.mtu * bytes / self.window * slowness * slowness
    }
}

impl Controller for Prague {
    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, _pn: u64, app_limited: bool, rtt: &RttEstimator) {
        (self.rtt, self.has_rtt) = (rtt.get(), true);
        if app_limited || self.lost_at.is_some_and(|lost| sent <= lost) {
            return;
        }
        let is_slow_start = self.window < self.threshold;
        self.window += if is_slow_start { bytes as f64 } else { self.growth(bytes as f64) };
    }

    fn on_ecn_counts(&mut self, now: Instant, acked_packets: u64, marked_packets: u64) {
        self.counted += acked_packets;
        self.marked += marked_packets;
        self.has_met_marks |= marked_packets > 0;
        if self.round_end.is_some_and(|end| now < end) {
            return;
        }
        if self.has_met_marks && self.counted > 0 && self.round_end.is_some() {
            self.share += GAIN * (self.marked as f64 / self.counted as f64 - self.share);
        }
        (self.counted, self.marked) = (0, 0);
        self.round_end = Some(now + self.round());
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        if self.lost_at.is_some_and(|lost| sent <= lost) {
            return;
        }
        if is_ecn && self.reduced_at.is_some_and(|reduced| now < reduced + self.round()) {
            return;
        }
        self.reduce(now, if is_ecn { 1.0 - self.share / 2.0 } else { LOSS_REDUCTION });
        if !is_ecn {
            self.lost_at = Some(now);
        }
        if is_persistent_congestion {
            self.window = LEAST_WINDOW * self.mtu;
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu.into();
        self.window = self.window.max(LEAST_WINDOW * self.mtu);
    }

    fn ecn_codepoint(&self) -> EcnCodepoint {
        EcnCodepoint::Ect1
    }

    fn window(&self) -> u64 {
        self.window as u64
    }

    /// Packets come at the window's own rate, since a burst would be marked: a queue for L4S has room for a millisecond.
    fn metrics(&self) -> ControllerMetrics {
        let windows = if self.window < self.threshold { 2.0 } else { 1.0 };
        let rate = windows * self.window / self.rtt.as_secs_f64().max(1e-6);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = self.threshold.is_finite().then_some(self.threshold as u64);
        metrics.pacing_rate = self.has_rtt.then_some(rate as u64);
        metrics.send_quantum = Some(2 * self.mtu as u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u16 = 1000;

    /// Round trips of 25 ms, in each of which 100 packets are acknowledged and so many of them were marked.
    fn after(rounds: u32, marked: u64) -> Prague {
        let (mut prague, begun) = (Prague::new(100 * u64::from(MTU), MTU), Instant::now());
        for round in 0..rounds {
            let now = begun + round * REFERENCE_RTT;
            prague.on_ecn_counts(now, 100, marked);
            if marked > 0 {
                prague.on_congestion_event(now, now, false, true, 0, 0);
            }
        }
        prague
    }

    #[test]
    fn the_share_of_marked_packets_is_followed() {
        for (marked, share) in [(100, 1.0), (20, 0.2), (1, 0.01)] {
            assert!((after(300, marked).share - share).abs() < 0.01, "{marked}");
        }
    }

    #[test]
    fn a_first_mark_halves_the_window_and_ends_slow_start_and_later_ones_take_less() {
        let first = after(1, 10);
        assert_eq!((first.window(), first.threshold as u64), (50 * u64::from(MTU), 50 * u64::from(MTU)));
        let mut later = after(300, 10);
        later.window = 1e6;
        let now = Instant::now() + Duration::from_secs(3600);
        later.on_congestion_event(now, now, false, true, 0, 0);
        assert!((later.window / 1e6 - 0.95).abs() < 0.01, "{}", later.window);
    }

    #[test]
    fn a_round_trip_has_one_reduction() {
        let mut prague = after(1, 10);
        let reduced = prague.reduced_at.expect("it was marked");
        prague.on_congestion_event(reduced + REFERENCE_RTT / 2, reduced, false, true, 0, 0);
        assert_eq!(prague.window(), 50 * u64::from(MTU));
        prague.on_congestion_event(reduced, reduced, false, false, 1000, 0);
        prague.on_congestion_event(reduced, reduced, false, false, 1000, 0);
        assert_eq!(prague.window(), 25 * u64::from(MTU));
    }

    #[test]
    fn a_loss_takes_half_whatever_was_marked() {
        let mut prague = after(0, 0);
        let now = Instant::now();
        prague.on_congestion_event(now, now, false, false, 1000, 0);
        assert_eq!(prague.window(), 50 * u64::from(MTU));
    }
}
