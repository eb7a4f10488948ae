//! Congestion control with FEC: news of packets that are lost and recovered, their effect on its window, and repair
//! symbols that obey it.

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::world::{DEEP_QUEUE, Loss, Outcome, Setting, World, all_schemes, safe, schemes};
use fec::Code;
use host::contract::Role;
use noq_fec::options::CongestionControl;
use noq_fec::schemes::Schemes;
use noq_fec::settings;
use noq_fec::stack::Counters;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

#[test]
fn congestion_control_is_told_of_recovered_losses_unless_they_are_masked() {
    for congestion_control in [CongestionControl::NewReno, CongestionControl::Cubic] {
        let setting =
            |schemes| Setting { congestion_control, queue_bdp: DEEP_QUEUE, ..Setting::download(400_000, schemes) };
        // Little repair, so that the windows have grown alike when the packet is lost.
        let plain = setting(None);
        let notify = setting(Some(schemes(Code::RLC, 21, 20)));
        // Prompt repair, so that the loss is mended before it is declared.
        let mask = setting(Some(Schemes { masks_losses: true, ..schemes(Code::RLC, 3, 2) }));
        let mut recovered = 0;
        for n in 30..60 {
            let [plain, notify, mask] = [&plain, &notify, &mask].map(|setting| setting.losing(n));
            if notify.client.recovered == 1 {
                recovered += 1;
                assert_eq!((plain.server.window_reductions, notify.server.window_reductions), (1, 1));
                let ratio = notify.server.congestion_window as f64 / plain.server.congestion_window as f64;
                assert!((0.9..1.1).contains(&ratio), "{n}: {ratio}: {notify:?}, {plain:?}");
            }
            assert_eq!(mask.server.window_reductions, 1 - mask.client.recovered, "{n}: {mask:?}");
        }
        // The others were repair symbols, of which there is one for 20 packets.
        assert!(recovered >= 28, "{recovered} of 30");
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

/// Told when SYMBOL_ACK comes, congestion control answers sooner than to a loss that is declared, and once.
#[test]
fn a_recovered_loss_counts_at_once_if_that_is_asked_for() {
    let setting = |tells_losses_at_once| {
        Setting::download(200_000, Some(Schemes { tells_losses_at_once, ..schemes(Code::RLC, 3, 2) }))
    };
    let mut earlier = 0;
    let sent = setting(false).run().sent.1;
    for n in 10..sent {
        let run = |tells_losses_at_once| {
            let setting = Setting { down: Loss::These(vec![n]), ..setting(tells_losses_at_once) };
            let (client, server) = (setting.client_config(), setting.server_config());
            let mut world = World::of_transfer(&setting, client, server);
            let mut reduced = None;
            while world.step(Duration::from_secs(60)) {
                if reduced.is_none() && world.server.counters().window_reductions > 0 {
                    reduced = Some(world.elapsed());
                }
            }
            (reduced, world.server.counters(), world.client.counters().recovered)
        };
        let [(declared, _, _), (at_once, counters, recovered)] = [run(false), run(true)];
        if recovered == 0 {
            continue;
        }
        assert_eq!(counters.window_reductions, 1, "{n}: {counters:?}");
        assert_eq!(counters.losses_declared, 1, "{n}: {counters:?}");
        assert_eq!(counters.packets_lost, counters.spurious_losses, "{n}: {counters:?}");
        earlier += u32::from(at_once.expect("counted") < declared.expect("as any other"));
    }
    assert!(earlier > 100, "{earlier} earlier");
}

/// The second loss is declared when the first was answered already.
#[test]
fn losses_of_one_round_trip_make_the_window_smaller_once() {
    for congestion_control in [CongestionControl::NewReno, CongestionControl::Cubic] {
        for schemes in [None, Some(schemes(Code::RLC, 21, 20))] {
            let setting = Setting { congestion_control, ..Setting::download(200_000, schemes) };
            for n in 20..60 {
                let outcome = setting.losing_these(vec![n, n + 5]);
                let counted = (outcome.server.losses_declared, outcome.server.window_reductions);
                assert_eq!(counted, (2, 1), "{n}: {outcome:?}");
            }
        }
    }
}

/// News of the recovery cancels the rest of a queued retransmission; the part that was sent already is useless.
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

/// A congestion controller that notes what it is told.
#[derive(Debug)]
struct Noting {
    inner: Box<dyn Controller>,
    /// Bytes sent that were neither acknowledged nor lost.
    open: i64,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Debug, Default)]
struct Notes {
    /// For each packet sent: its time, the open bytes without and with it, and the bytes of the window.
    sent: Vec<(Instant, i64, i64, i64)>,
    /// Open bytes less bytes in flight, each time that it was told. A server forgets its packets of the handshake when
    /// that is complete, so there is a difference, and always the same.
    differences: Vec<i64>,
}

impl Controller for Noting {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let before = self.open;
        self.open += i64::from(bytes);
        self.notes.lock().unwrap().sent.push((now, before, self.open, self.inner.window() as i64));
        self.inner.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
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
            self.notes.lock().unwrap().differences.push(self.open - in_flight as i64);
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

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), open: self.open, notes: self.notes.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Makes [`Noting`] of another.
struct Noted(Arc<dyn ControllerFactory + Send + Sync>, Arc<Mutex<Notes>>);

impl ControllerFactory for Noted {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Noting { inner: self.0.clone().build(now, current_mtu), open: 0, notes: self.1.clone() })
    }
}

/// A transfer, and what its server's congestion controller was told.
fn noted(setting: &Setting) -> (Outcome, Notes) {
    let assignment = setting.assignment(Role::Server, &setting.server);
    let notes = Arc::new(Mutex::new(Notes::default()));
    let mut transport = setting.transport(Role::Server, &setting.server);
    let controller =
        settings::congestion_controller(&assignment.options, setting.surroundings(Role::Server).randomness);
    transport.congestion_controller_factory(Arc::new(Noted(controller, notes.clone())));
    let mut server = setting.server_config();
    server.transport_config(Arc::new(transport));
    let outcome = World::of_transfer(setting, setting.client_config(), server).run();
    (outcome, std::mem::take(&mut notes.lock().unwrap()))
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
                congestion_control: CongestionControl::Cubic,
                seed,
                ..Setting::download(150_000, Some(Schemes { masks_losses, ..schemes(Code::RLC, 3, 2) }))
            };
            let (outcome, Notes { differences, .. }) = noted(&setting);
            recovered += outcome.client.recovered;
            late += outcome.server.spurious_losses;
            assert!(differences.len() > 20, "{setting:?}");
            assert!(differences.iter().all(|bytes| *bytes == differences[0]), "{setting:?}: {differences:?}");
        }
    }
    assert!(recovered > 0 && late > 0, "{recovered} packets were recovered, {late} acknowledged late");
}

/// Also of repair symbols: a window that losses have made small is full of both.
#[test]
fn what_is_in_flight_never_exceeds_the_window() {
    for congestion_control in [CongestionControl::NewReno, CongestionControl::Cubic, CongestionControl::Bbr3] {
        for parameters in all_schemes() {
            let mut full = 0;
            for seed in 0..10 {
                let down = Loss::Uniform { rate: 0.02, seed };
                let schemes = Some(parameters.clone());
                let setting = Setting { congestion_control, down, seed, ..Setting::download(300_000, schemes) };
                let (outcome, notes) = noted(&setting);
                assert!(outcome.server.repair_sent > 0, "{setting:?}");
                for (_, _, open, window) in &notes.sent {
                    let in_flight = open - notes.differences[0];
                    assert!(in_flight <= *window, "{in_flight} bytes of {window}: {setting:?}");
                    full += u64::from(in_flight + PACKET > *window);
                }
            }
            assert!(full > 500, "the window was full {full} times only: {congestion_control:?}, {parameters:?}");
        }
    }
}

/// A connection asks twice whether a packet may be sent, where the one before it fills what leaves at once.
#[test]
fn packets_that_leave_beyond_the_window_count_once() {
    let mut counted = 0;
    for n in 20..60 {
        let setting = Setting {
            down: Loss::These(vec![n, n + 1]),
            congestion_control: CongestionControl::Cubic,
            ..Setting::download(60_000, Some(safe()))
        };
        let (outcome, notes) = noted(&setting);
        let is_beyond = |(_, before, _, window): &&(_, i64, i64, i64)| before - notes.differences[0] + PACKET > *window;
        let beyond = notes.sent.iter().filter(is_beyond).count() as u64;
        assert!(outcome.server.sent_beyond_window <= beyond, "{n}: {outcome:?}, {beyond} packets");
        counted += outcome.server.sent_beyond_window;
    }
    assert!(counted > 0);
}

/// BBRv3 sends at the rate at which packets arrive, where losses below 2 % make the windows of the others small.
#[test]
fn with_bbr_random_losses_hardly_slow_a_transfer() {
    let seconds = |congestion_control, rate, schemes: &Option<Schemes>| {
        let dct = |seed| {
            let down = Loss::Uniform { rate, seed };
            let setting = Setting { congestion_control, down, seed, ..Setting::download(SIZE, schemes.clone()) };
            setting.run().dct.unwrap().as_secs_f64()
        };
        (0..10).map(dct).sum::<f64>() / 10.0
    };
    for schemes in [None, Some(schemes(Code::RLC, 21, 20))] {
        let [cubic, bbr] = [CongestionControl::Cubic, CongestionControl::Bbr3].map(|congestion_control| {
            seconds(congestion_control, 0.01, &schemes) / seconds(congestion_control, 0.0, &schemes)
        });
        assert!(bbr < 1.3 && cubic > 2.0, "{bbr:.2} times as long with BBRv3, {cubic:.2} with Cubic: {schemes:?}");
    }
}

/// In bytes: the largest.
const PACKET: i64 = 1252;

/// All fits into the first window, so that pacing alone spreads it. Blocks have 20 repair symbols that are due at once.
#[test]
fn repair_symbols_are_paced() {
    let bursts = |schemes| {
        let setting = Setting { initial_window: 64, ..Setting::download(40_000, schemes) };
        let (outcome, notes) = noted(&setting);
        let bursts = notes.sent.chunk_by(|(one, ..), (next, ..)| one == next).map(<[_]>::len);
        (outcome.server.repair_sent, bursts.max().unwrap())
    };
    let ((none, plain), (repair, fec)) = (bursts(None), bursts(Some(schemes(Code::ReedSolomon, 40, 20))));
    assert_eq!(none, 0);
    assert!(repair > 30, "{repair}");
    assert!(fec <= plain, "{fec} packets at once with FEC, {plain} without");
}

/// FEC adds packets, which meet losses of their own, and so makes the window smaller than without. Nothing else does: a plain
/// transfer of as many packets, of which the same are lost, has as many reductions and ends with the same window.
#[test]
fn congestion_control_answers_to_losses_as_without_fec() {
    let codes = [(Code::RLC, 3, 2), (Code::RLC, 7, 6), (Code::ReedSolomon, 30, 20), (Code::ReedSolomon, 7, 6)];
    for congestion_control in [CongestionControl::NewReno, CongestionControl::Cubic] {
        let run = |size, seed, schemes| {
            let down = Loss::Uniform { rate: 0.01, seed };
            let setting = Setting { congestion_control, down, seed, ..Setting::download(size, schemes) };
            setting.run().server
        };
        let plain: Vec<_> = (0..SEEDS).map(|seed| run(SIZE, seed, None)).collect();
        for (code, n, k) in codes {
            let fec: Vec<_> = (0..SEEDS).map(|seed| run(SIZE, seed, Some(schemes(code, n, k)))).collect();
            let as_many = |(seed, (fec, plain)): (u64, (&Counters, &Counters))| {
                run(SIZE * (fec.packets_sent + fec.repair_sent) / plain.packets_sent, seed, None)
            };
            let longer: Vec<_> = (0..).zip(fec.iter().zip(&plain)).map(as_many).collect();

            let counted = [&plain, &longer, &fec].map(|runs| reductions(runs));
            let ratios = [&plain, &longer].map(|other| median_window_ratio(&fec, other));
            let mean = window_ratios(&fec, &longer).iter().map(|ratio| ratio.ln()).sum::<f64>() / SEEDS as f64;
            println!(
                "{congestion_control:?}, {code:?} ({n}, {k}): reductions {counted:?}, windows {ratios:.3?}, \
                 geometric mean {:.3}",
                mean.exp()
            );
            let share = counted[2] as f64 / counted[1] as f64;
            assert!((0.95..1.05).contains(&share), "{share} of the reductions");
            assert!((0.98..1.02).contains(&ratios[1]), "{} of the window", ratios[1]);
        }
    }
}

const SEEDS: u64 = 40;

/// In bytes.
const SIZE: u64 = 1_000_000;

fn reductions(runs: &[Counters]) -> u64 {
    runs.iter().map(|counters| counters.window_reductions).sum()
}

fn window_ratios(runs: &[Counters], others: &[Counters]) -> Vec<f64> {
    let pairs = runs.iter().zip(others);
    pairs.map(|(one, other)| one.congestion_window as f64 / other.congestion_window as f64).collect()
}

fn median_window_ratio(runs: &[Counters], others: &[Counters]) -> f64 {
    let mut ratios = window_ratios(runs, others);
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}
