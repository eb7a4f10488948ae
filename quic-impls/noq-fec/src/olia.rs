//! OLIA, the congestion control that the paths of a connection have in common (Khalili et al., "MPTCP is not Pareto-optimal",
//! CoNEXT 2012; draft-khalili-mptcp-congestion-control-05). Slow start and the reaction to losses are those of RFC 9002 on each
//! path; in congestion avoidance, what a path's window gains depends on all.
//!
//! One factory serves one connection: its controllers know each other.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// Share of a window that is left after a loss.
const REDUCTION: f64 = 0.5;

/// In packets: RFC 9002, section 7.2. The draft's one packet would leave each waiting for a delayed acknowledgement.
const LEAST_WINDOW: f64 = 2.0;

/// Packets of a window that may be free while it still is what limits the sender.
const BURST: f64 = 3.0;

/// Window and pacing rate of a sender that obeys no window, as in the thesis behind QUIC-FEC: its scheduler HIGHRB
/// reads windows that nothing obeys. noq-proto doesn't pace windows of more than 2³² bytes, and paces by a controller's
/// own rate if there is one.
const UNLIMITED: u64 = 1 << 40;

/// Makes the controllers of one connection.
#[derive(Debug)]
pub struct Olia {
    /// In bytes.
    initial_window: u64,
    /// Whether the sender obeys the windows.
    is_obeyed: bool,
    paths: Shared,
}

impl Olia {
    pub fn new(initial_window: u64, is_obeyed: bool) -> Self {
        Self { initial_window, is_obeyed, paths: Shared::default() }
    }
}

impl ControllerFactory for Olia {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let path = Path::new(self.initial_window as f64);
        Box::new(OfPath {
            initial_window: self.initial_window,
            is_obeyed: self.is_obeyed,
            mtu: mtu.into(),
            threshold: f64::INFINITY,
            recovery_start: now,
            in_flight: 0,
            id: self.paths.enter(path),
            paths: self.paths.clone(),
        })
    }
}

/// The table of a connection's paths, which its controllers share.
#[derive(Debug, Clone, Default)]
struct Shared(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    next_id: u64,
    paths: BTreeMap<u64, Path>,
}

impl Shared {
    fn enter(&self, path: Path) -> u64 {
        let mut table = self.table();
        let id = table.next_id;
        table.next_id += 1;
        table.paths.insert(id, path);
        id
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().expect("nobody panics with it")
    }
}

#[derive(Debug, Clone, Copy)]
struct Path {
    /// In bytes.
    window: f64,
    /// None before the first acknowledgement.
    rtt: Option<Duration>,
    /// Bytes that were acknowledged between the two last losses, and since the last one.
    between_losses: u64,
    since_loss: u64,
}

impl Path {
    fn new(window: f64) -> Self {
        Self { window, rtt: None, between_losses: 0, since_loss: 0 }
    }

    /// The rate at which its window is sent, in bytes per second.
    fn rate(&self) -> f64 {
        self.rtt.map_or(0.0, |rtt| self.window / rtt.as_secs_f64())
    }

    /// The quality of the path: l² / RTT, where l estimates the bytes between two losses.
    fn quality(&self) -> f64 {
        let bytes = self.between_losses.max(self.since_loss) as f64;
        self.rtt.map_or(0.0, |rtt| bytes * bytes / rtt.as_secs_f64())
    }
}

impl Table {
    /// Bytes that a path's window gains for each byte that is acknowledged in congestion avoidance.
    fn gain(&self, id: u64, mtu: f64) -> f64 {
        let path = &self.paths[&id];
        let Some(rtt) = path.rtt else {
            return 0.0;
        };
        let total: f64 = self.paths.values().map(Path::rate).sum();
        let packets = |bytes: f64| bytes / mtu;
        packets(path.window) / (rtt.as_secs_f64() * packets(total)).powi(2) + self.alpha(id) / packets(path.window)
    }

    /// Moves windows from the largest ones to the best paths with smaller ones; the sum over all paths is 0.
    fn alpha(&self, id: u64) -> f64 {
        let in_use: BTreeMap<_, _> = self.paths.iter().filter(|(_, path)| path.rtt.is_some()).collect();
        let greatest = |of: fn(&Path) -> f64| {
            let most = in_use.values().map(|path| of(path)).fold(0.0, f64::max);
            in_use.iter().filter(move |(_, path)| of(path) >= most).map(|(id, _)| **id).collect::<Vec<_>>()
        };
        let (largest, best) = (greatest(|path| path.window), greatest(Path::quality));
        let collected: Vec<_> = best.into_iter().filter(|id| !largest.contains(id)).collect();
        let share = |of: &[u64]| 1.0 / (in_use.len() * of.len()) as f64;
        match () {
            () if collected.contains(&id) => share(&collected),
            () if largest.contains(&id) && !collected.is_empty() => -share(&largest),
            () => 0.0,
        }
    }
}

/// The controller of a path.
#[derive(Debug)]
struct OfPath {
    initial_window: u64,
    is_obeyed: bool,
    mtu: f64,
    /// Threshold of slow start, in bytes.
    threshold: f64,
    /// Losses of what was sent before belong to the one that began then.
    recovery_start: Instant,
    /// Bytes.
    in_flight: u64,
    id: u64,
    paths: Shared,
}

impl OfPath {
    fn path(&self) -> Path {
        self.paths.table().paths[&self.id]
    }

    fn change(&self, change: impl FnOnce(&mut Path)) {
        change(self.paths.table().paths.get_mut(&self.id).expect("it has entered"));
    }

    fn least_window(&self) -> f64 {
        LEAST_WINDOW * self.mtu
    }

    /// Whether the window is what limits the sender. Where nothing obeys it, no sender tells.
    fn is_limited(&self, app_limited: bool) -> bool {
        if self.is_obeyed {
            return !app_limited;
        }
        let (window, in_flight) = (self.path().window, self.in_flight as f64);
        in_flight + BURST * self.mtu >= window || (window < self.threshold && in_flight > window / 2.0)
    }

    fn on_acked(&mut self, bytes: u64, is_limited: bool, is_recovering: bool, rtt: Duration) {
        self.change(|path| {
            path.rtt = Some(rtt);
            path.since_loss += bytes;
        });
        if !is_limited || is_recovering {
            return;
        }
        let gain = match self.path().window < self.threshold {
            true => 1.0,
            false => self.paths.table().gain(self.id, self.mtu),
        };
        let least = self.least_window();
        self.change(|path| path.window = (path.window + gain * bytes as f64).max(least));
    }
}

impl Controller for OfPath {
    fn on_sent(&mut self, _now: Instant, bytes: u64, _largest_pn: u64) {
        self.in_flight += bytes;
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, _pn: u64, app_limited: bool, rtt: &RttEstimator) {
        let is_limited = self.is_limited(app_limited);
        self.on_acked(bytes, is_limited, sent <= self.recovery_start, rtt.get());
    }

    fn on_end_acks(&mut self, _now: Instant, in_flight: u64, _app_limited: bool, _largest_acked: Option<u64>) {
        self.in_flight = in_flight;
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        _is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        if sent <= self.recovery_start {
            return;
        }
        self.recovery_start = now;
        let least = self.least_window();
        let reduced = (self.path().window * REDUCTION).max(least);
        self.threshold = reduced;
        self.change(|path| {
            path.window = if is_persistent_congestion { least } else { reduced };
            path.between_losses = path.since_loss;
            path.since_loss = 0;
        });
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu.into();
        let least = self.least_window();
        self.change(|path| path.window = path.window.max(least));
    }

    fn window(&self) -> u64 {
        if self.is_obeyed { self.path().window as u64 } else { UNLIMITED }
    }

    /// The window that was computed, whether or not it is obeyed.
    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.path().window as u64;
        metrics.ssthresh = self.threshold.is_finite().then_some(self.threshold as u64);
        metrics.pacing_rate = (!self.is_obeyed).then_some(UNLIMITED);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let Self { initial_window, is_obeyed, mtu, threshold, recovery_start, in_flight, .. } = *self;
        let (id, paths) = (self.paths.enter(self.path()), self.paths.clone());
        Box::new(Self { initial_window, is_obeyed, mtu, threshold, recovery_start, in_flight, id, paths })
    }

    fn initial_window(&self) -> u64 {
        if self.is_obeyed { self.initial_window } else { UNLIMITED }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Drop for OfPath {
    fn drop(&mut self) {
        self.paths.table().paths.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: f64 = 1000.0;

    /// Paths with windows in packets, RTTs in ms, and packets since the last loss.
    fn table(paths: &[(f64, u64, u64)]) -> Table {
        let path = |&(window, rtt_ms, since_loss): &(f64, u64, u64)| Path {
            window: window * MTU,
            rtt: Some(Duration::from_millis(rtt_ms)),
            between_losses: 0,
            since_loss: since_loss * MTU as u64,
        };
        Table { next_id: paths.len() as u64, paths: (0..).zip(paths.iter().map(path)).collect() }
    }

    fn assert_close(value: f64, right: f64) {
        assert!((value - right).abs() < 1e-9, "{value} is not {right}");
    }

    #[test]
    fn a_single_path_gains_a_packet_per_window_as_reno() {
        assert_close(table(&[(20.0, 50, 100)]).gain(0, MTU), 1.0 / 20.0);
    }

    #[test]
    fn equal_paths_together_gain_what_the_formula_says() {
        // (w/rtt²) / (2w/rtt)² = 1 / 4w for each.
        for id in 0..2 {
            assert_close(table(&[(20.0, 50, 100), (20.0, 50, 100)]).gain(id, MTU), 1.0 / 80.0);
        }
    }

    #[test]
    fn a_good_path_with_a_small_window_gains_what_the_largest_loses() {
        // The second has more between losses: it is the best, the first the largest.
        let table = table(&[(40.0, 50, 100), (10.0, 50, 500)]);
        assert_close(table.alpha(0), -0.5);
        assert_close(table.alpha(1), 0.5);
        let rate = 50.0 / 0.050;
        assert_close(table.gain(1, MTU), 10.0 / (0.050f64 * rate).powi(2) + 0.5 / 10.0);
        assert_close(table.gain(0, MTU), 40.0 / (0.050f64 * rate).powi(2) - 0.5 / 40.0);
    }

    #[test]
    fn alphas_are_zero_where_the_best_is_the_largest_and_sum_up_to_zero_otherwise() {
        assert_close(table(&[(40.0, 50, 500), (10.0, 50, 100)]).alpha(0), 0.0);
        for paths in [[(40.0, 50, 100), (40.0, 80, 90), (10.0, 20, 500)], [(9.0, 10, 7), (3.0, 10, 7), (3.0, 10, 7)]] {
            let table = table(&paths);
            assert_close((0..3).map(|id| table.alpha(id)).sum(), 0.0);
        }
    }

    fn controllers(is_obeyed: bool, count: usize) -> Vec<OfPath> {
        let factory = Arc::new(Olia::new(10_000, is_obeyed));
        let build = || *factory.clone().build(Instant::now(), MTU as u16).into_any().downcast::<OfPath>().unwrap();
        (0..count).map(|_| build()).collect()
    }

    #[test]
    fn a_path_that_is_no_more_does_not_slow_the_others() {
        let mut paths = controllers(true, 2);
        for path in &mut paths {
            path.threshold = 0.0;
            path.on_acked(1000, false, false, Duration::from_millis(50));
        }
        let coupled = paths[0].paths.table().gain(0, MTU);
        paths.pop();
        let alone = paths[0].paths.table().gain(0, MTU);
        assert_close(alone, 4.0 * coupled);
        let copy = paths[0].clone_box();
        assert_close(copy.window() as f64, 10_000.0);
        drop(copy);
        assert_close(paths[0].paths.table().gain(0, MTU), alone);
    }

    #[test]
    fn one_loss_of_many_halves_the_window_once_and_never_below_two_packets() {
        let mut paths = controllers(true, 1);
        let (path, start) = (&mut paths[0], Instant::now() + Duration::from_secs(1));
        for n in 0..5 {
            path.on_congestion_event(start + Duration::from_millis(100), start, false, false, 1000, n);
        }
        assert_eq!((path.window(), path.threshold), (5000, 5000.0));
        for n in 0..9 {
            let sent = start + Duration::from_secs(n + 1);
            path.on_congestion_event(sent, sent, false, false, 1000, n);
        }
        assert_eq!(path.window(), 2000);
    }

    #[test]
    fn a_window_that_nothing_obeys_is_computed_and_shown_and_limits_nothing() {
        let mut paths = controllers(false, 1);
        let (path, now) = (&mut paths[0], Instant::now() + Duration::from_secs(1));
        path.on_sent(now, 1000, 0);
        assert!(!path.is_limited(false), "nine of ten packets are free");
        path.on_sent(now, 20_000, 1);
        assert!(path.is_limited(true));
        path.on_acked(4000, true, false, Duration::from_millis(50));
        assert_eq!((path.metrics().congestion_window, path.window()), (14_000, UNLIMITED));
        path.on_congestion_event(now, now, false, false, 1000, 2);
        assert_eq!((path.metrics().congestion_window, path.window()), (7_000, UNLIMITED));
    }
}
