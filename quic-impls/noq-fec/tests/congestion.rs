//! What congestion control is told of packets that are lost and recovered, and what becomes of its window.

mod world;

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fec::Code;
use noq_fec::contract::{CongestionControl, Role};
use noq_fec::schemes::Schemes;
use noq_fec::settings;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, CubicConfig};
use world::{Loss, Setting, World, schemes};

#[test]
fn congestion_control_is_told_of_recovered_losses_unless_they_are_masked() {
    for congestion_control in [CongestionControl::NewReno, CongestionControl::Cubic] {
        let setting = |schemes| Setting { congestion_control, ..Setting::download(400_000, schemes) };
        // Little repair, so that the windows have grown alike when the packet is lost.
        let plain = setting(None);
        let notify = setting(Some(schemes(Code::RLC, 21, 20)));
        // Prompt repair, so that the loss is mended before it is declared.
        let mask = setting(Some(Schemes { masks_losses: true, ..schemes(Code::RLC, 3, 2) }));
        for n in 30..60 {
            let [plain, notify, mask] = [&plain, &notify, &mask].map(|setting| setting.losing(n));
            if notify.client.recovered == 1 {
                assert_eq!((plain.server.window_reductions, notify.server.window_reductions), (1, 1));
                let ratio = notify.server.congestion_window as f64 / plain.server.congestion_window as f64;
                assert!((0.9..1.1).contains(&ratio), "{n}: {ratio}: {notify:?}, {plain:?}");
            }
            assert_eq!(mask.server.window_reductions, 1 - mask.client.recovered, "{n}: {mask:?}");
        }
    }
}

#[test]
fn a_window_comes_back_when_a_declared_loss_is_recovered_and_masked() {
    let mut declared = 0;
    for n in 10..80 {
        let [notify, mask] = [false, true].map(|masks_losses| Setting::late_repair(masks_losses).losing(n));
        if notify.client.recovered == 1 {
            let window = (notify.server.window_reductions, notify.server.window_restorations);
            assert_eq!(window, (1, 0), "{n}: {notify:?}");
        }
        if mask.client.recovered == 1 {
            let window = (mask.server.window_reductions, mask.server.window_restorations);
            let lost = mask.server.packets_lost;
            assert_eq!(window, (lost, lost), "{n}: {mask:?}");
            assert!(mask.server.congestion_window > notify.server.congestion_window, "{n}: {mask:?}, {notify:?}");
            declared += lost;
        }
    }
    assert!(declared > 0, "each loss was recovered before it was declared");
}

/// The second loss is declared when the first was answered already.
#[test]
fn losses_of_one_round_trip_make_the_window_smaller_once() {
    for congestion_control in [CongestionControl::NewReno, CongestionControl::Cubic] {
        for schemes in [None, Some(schemes(Code::RLC, 21, 20))] {
            let setting = Setting { congestion_control, ..Setting::download(200_000, schemes) };
            for n in 20..60 {
                let outcome = setting.losing_these(vec![n, n + 5]);
                let counted = (outcome.server.packets_lost, outcome.server.window_reductions);
                assert_eq!(counted, (2, 1), "{n}: {outcome:?}");
            }
        }
    }
}

/// What of a queued retransmission was not sent yet is cancelled by the news of the recovery; what was sent is useless.
#[test]
fn a_declared_loss_that_is_recovered_is_sent_again_only_if_it_was_at_once() {
    let setting = Setting::late_repair(true);
    let unharmed = setting.run().server.source_sent;
    let (mut cancelled, mut useless) = (0, 0);
    for n in 10..80 {
        let outcome = setting.losing(n);
        if (outcome.client.recovered, outcome.server.packets_lost) == (1, 1) {
            let was_sent_again = outcome.server.source_sent > unharmed;
            assert_eq!(was_sent_again, outcome.server.useless_retransmissions == 1, "{n}: {outcome:?}");
            *if was_sent_again { &mut useless } else { &mut cancelled } += 1;
        }
    }
    assert!(cancelled > 0 && useless > 0, "{cancelled} retransmissions were cancelled, {useless} were useless");
}

/// Cubic, which compares the bytes in flight that it is told of with those that it was told were sent, acknowledged and lost.
#[derive(Debug)]
struct Comparing {
    inner: Box<dyn Controller>,
    /// Bytes sent that were neither acknowledged nor lost.
    open: i64,
    /// By how many bytes more that is than what is in flight, each time that it was told. A server forgets its packets of the
    /// handshake when that is complete, so there is a difference, and always the same.
    differences: Arc<Mutex<Vec<i64>>>,
}

impl Controller for Comparing {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.open += i64::from(bytes);
        self.inner.on_packet_sent(now, bytes, pn);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, pn: u64, app_limited: bool, rtt: &RttEstimator) {
        self.open -= bytes as i64;
        self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.open -= i64::from(lost_bytes);
        self.inner.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        // The handshake has fewer packets.
        if largest > Some(10) {
            self.differences.lock().unwrap().push(self.open - in_flight as i64);
        }
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, is_ecn, lost_bytes, largest_lost_pn);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), open: self.open, differences: self.differences.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Makes [`Comparing`].
struct Compared(Arc<Mutex<Vec<i64>>>);

impl ControllerFactory for Compared {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::new(CubicConfig::default()).build(now, current_mtu);
        Box::new(Comparing { inner, open: 0, differences: self.0.clone() })
    }
}

/// Acknowledgements come late: for packets that were recovered, or declared lost, or both.
#[test]
fn each_byte_leaves_the_flight_once() {
    let (mut recovered, mut late) = (0, 0);
    for seed in 0..100 {
        for masks_losses in [false, true] {
            let setting = Setting {
                up: Loss::Uniform { rate: 0.03, seed },
                down: Loss::Uniform { rate: 0.03, seed: seed + 1000 },
                jitter: Duration::from_millis(20),
                seed,
                ..Setting::download(150_000, Some(Schemes { masks_losses, ..schemes(Code::RLC, 3, 2) }))
            };
            let differences = Arc::new(Mutex::new(Vec::new()));
            let mut transport = settings::transport(&setting.assignment(Role::Server, &setting.server)).unwrap();
            transport.congestion_controller_factory(Arc::new(Compared(differences.clone())));
            let mut server = setting.server_config();
            server.transport_config(Arc::new(transport));
            let outcome = World::of_transfer(&setting, setting.client_config(), server).run();
            recovered += outcome.client.recovered;
            late += outcome.server.spurious_losses;
            let differences = differences.lock().unwrap();
            assert!(differences.len() > 20, "{setting:?}");
            assert!(differences.iter().all(|bytes| *bytes == differences[0]), "{setting:?}: {differences:?}");
        }
    }
    assert!(recovered > 0 && late > 0, "{recovered} packets were recovered, {late} acknowledged late");
}
