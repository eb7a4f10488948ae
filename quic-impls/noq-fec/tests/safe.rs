//! The cost of `safe`: nothing, until a repair symbol leaves; and then nothing that data waits for.

mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use host::coding::Redundancy;
use host::contract::{Direction, Role, Values, Workload};
use host::messages::Messages;
use noq_fec::messages::Exchange;
use noq_fec::options::CongestionControl;
use noq_fec::scheduler::Scheduling;
use noq_fec::schemes::{Schemes, SourceSymbols};
use noq_fec::stack::Counters;
use noq_fec::{Assignment, settings};
use serde_json::{Value, json};
use world::decrypted::{self, PACKET_REPAIR};
use world::{Link, Loss, Setting, World, coded, safe};

const DIRECTIONS: [Direction; 2] = [Direction::Download, Direction::Upload];
const CONTROLS: [CongestionControl; 2] = [CongestionControl::Cubic, CongestionControl::Bbr3];

fn with_safe(setting: &Setting) -> Setting {
    Setting { client: Some(safe()), server: Some(safe()), ..setting.clone() }
}

/// The frames of the 1-RTT packets that the receiver of the content gets.
fn packets(setting: &Setting) -> Vec<Vec<u8>> {
    let receiver = match setting.direction {
        Direction::Download => Role::Client,
        Direction::Upload => Role::Server,
    };
    let packets = Arc::new(Mutex::new(Vec::new()));
    let seen = packets.clone();
    let record = move |_, payload: &mut BytesMut| seen.lock().unwrap().push(payload.to_vec());
    decrypted::changed(setting, receiver, Arc::new(Mutex::new(record))).dct.unwrap();
    let packets = packets.lock().unwrap();
    packets.clone()
}

/// Whether a packet begins with a STREAM frame. The bytes of other packets are drawn, or depend on the time.
fn is_data(frames: &[u8]) -> bool {
    matches!(frames.first(), Some(0x08..=0x0f))
}

/// The same announcement, which makes the handshake longer, and no FEC.
fn unused() -> Schemes {
    coded(safe(), |coding| coding.redundancy = Redundancy::Policy("null"))
}

#[test]
fn packets_are_those_without_fec_until_a_repair_symbol_leaves() {
    for direction in DIRECTIONS {
        for (size, initial_window) in [(900, 10), (10_750, 10), (10_800, 10), (33_442, 10), (80_000, 32), (400_000, 10)]
        {
            let plain = Setting { direction, initial_window, ..Setting::download(size, Some(unused())) };
            let [plain, safe] = [packets(&plain), packets(&with_safe(&plain))];
            let same = safe.iter().position(|frames| frames.starts_with(&PACKET_REPAIR)).unwrap_or(safe.len());
            assert!(same > 0, "{direction:?} of {size}");
            for (plain, safe) in plain.iter().zip(&safe[..same]) {
                assert_eq!(plain.len(), safe.len(), "{direction:?} of {size}");
                let differ = plain.iter().zip(safe).position(|(one, other)| one != other);
                assert!(
                    !is_data(plain) || differ.is_none(),
                    "{direction:?} of {size}: {differ:?} of {}: {:02x?} {:02x?}",
                    plain.len(),
                    &plain[..12],
                    &safe[..12]
                );
            }
        }
    }
}

/// Returns the time that a transfer takes with `safe`, divided by the time that it takes without.
fn ratio(setting: &Setting) -> f64 {
    let [plain, safe] = [setting.run(), with_safe(setting).run()].map(|outcome| outcome.dct.unwrap().as_secs_f64());
    safe / plain
}

fn case(direction: Direction, mbps: f64, owd_ms: f64, queue_bdp: f64, size: u64) -> Setting {
    Setting {
        direction,
        bandwidth_mbps: mbps,
        owd: Duration::from_secs_f64(owd_ms / 1e3),
        queue_bdp,
        congestion_control: CongestionControl::Cubic,
        ..Setting::download(size, None)
    }
}

/// Twenty bytes less in a packet made one more, which waited for a round trip: 1.13 with Cubic, and 1.43 with BBRv3.
#[test]
fn no_size_needs_a_round_trip_more_at_the_boundary_of_a_window() {
    for congestion_control in CONTROLS {
        for size in (10_600..10_900).step_by(10).chain((33_300..33_500).step_by(10)) {
            let setting = Setting { congestion_control, ..case(Direction::Download, 10.0, 50.0, 1.0, size) };
            let ratio = ratio(&setting);
            assert!(ratio < 1.001, "{size} bytes with {congestion_control:?}: {ratio}");
        }
    }
}

/// Repair symbols went into a queue that overflowed: 1.21 and more.
#[test]
fn no_repair_symbol_goes_into_a_queue_that_overflows() {
    for size in (120_000..200_000).step_by(5000) {
        for (mbps, owd_ms) in [(10.0, 17.0), (9.0, 20.0), (13.0, 15.0)] {
            let ratio = ratio(&case(Direction::Download, mbps, owd_ms, 0.25, size));
            assert!(ratio < 1.02, "{size} bytes, {mbps} Mbit/s, {owd_ms} ms: {ratio}");
        }
    }
}

/// Repair symbols followed a first flight of which nothing was known, into the queue that it filled: 1.45.
#[test]
fn no_repair_symbol_follows_a_wide_first_flight() {
    for direction in DIRECTIONS {
        for size in (20_000..36_000).step_by(1003) {
            let (congestion_control, initial_window) = (CongestionControl::Bbr3, 32);
            let setting = case(direction, 0.45, 12.2, 1.76, size);
            let ratio = ratio(&Setting { congestion_control, initial_window, ..setting });
            assert!(ratio < 1.02, "{direction:?} of {size} bytes: {ratio}");
        }
    }
}

/// The first part of a repair symbol took the place of data in a queue of ten packets, and the ACK of the second one made a sample of
/// the round-trip time that put off the loss: 1.07.
#[test]
fn no_repair_symbol_fills_a_queue_of_ten_packets() {
    for seed in 0..8 {
        for size in (13_000..15_500).step_by(349) {
            let (congestion_control, initial_window) = (CongestionControl::Bbr3, 32);
            let setting = case(Direction::Upload, 0.6572, 23.28, 1.973, size);
            let ratio = ratio(&Setting { congestion_control, initial_window, seed, ..setting });
            assert!(ratio < 1.02, "{size} bytes, seed {seed}: {ratio}");
        }
    }
}

/// Repair symbols went ahead of retransmissions of what a queue had just dropped, and these waited behind them: 1.06.
#[test]
fn no_repair_symbol_goes_ahead_of_retransmissions() {
    for seed in 0..8 {
        for size in (50_000..56_000).step_by(614) {
            let setting = case(Direction::Download, 0.38, 131.0, 0.33, size);
            let ratio = ratio(&Setting { congestion_control: CongestionControl::Bbr3, seed, ..setting });
            assert!(ratio < 1.02, "{size} bytes, seed {seed}: {ratio}");
        }
    }
}

/// Repair symbols made CoDel drop data, from queues that took 100 ms to leave: 1.13 to 1.20.
#[test]
fn no_repair_symbol_makes_codel_drop_data() {
    let cases = [
        (Direction::Upload, 0.4874, 8.03, 1.455, 7132, 32),
        (Direction::Download, 0.3959, 9.636, 0.426, 6249, 10),
        (Direction::Upload, 0.352, 8.628, 1.3, 6442, 10),
        (Direction::Upload, 0.514, 9.685, 3.1, 15_087, 10),
    ];
    for (direction, mbps, owd_ms, queue_bdp, size, initial_window) in cases {
        let setting = case(direction, mbps, owd_ms, queue_bdp, size);
        let ratio = ratio(&Setting { codel: true, initial_window, ..setting });
        assert!(ratio < 1.01, "{direction:?} of {size} bytes, {mbps} Mbit/s: {ratio}");
    }
}

/// Repair symbols left among the retransmissions of what CoDel had dropped, and it dropped these, too: 1.16 and 1.08.
#[test]
fn no_repair_symbol_leaves_among_retransmissions_behind_codel() {
    let cases = [
        (Direction::Download, 0.3912, 398.6, 3.882, 109_076, 10),
        (Direction::Upload, 0.811, 261.9, 0.509, 245_229, 32),
    ];
    for (direction, mbps, owd_ms, queue_bdp, size, initial_window) in cases {
        for seed in 0..4 {
            let setting = case(direction, mbps, owd_ms, queue_bdp, size);
            let ratio = ratio(&Setting { codel: true, initial_window, seed, ..setting });
            assert!(ratio < 1.02, "{direction:?} of {size} bytes, seed {seed}: {ratio}");
        }
    }
}

/// Repair symbols of what the first path carried went to a second, slow one, and data waited there behind them: 1.74.
#[test]
fn no_repair_symbol_takes_a_further_path_of_which_nothing_is_known() {
    let links = [Link::new(1.481, 10), Link::new(0.3, 5)];
    for scheduler in [Scheduling::LowestId, Scheduling::LowestRtt, Scheduling::RoundRobin, Scheduling::Ecf] {
        for size in (20_000..28_000).step_by(997) {
            let congestion_control = CongestionControl::Cubic;
            let setting = Setting {
                direction: Direction::Upload,
                initial_window: 32,
                scheduler,
                congestion_control,
                ..Setting::over(&links, size, None)
            };
            let ratio = ratio(&setting);
            assert!(ratio < 1.1, "{scheduler:?}, {size} bytes: {ratio}");
        }
    }
}

/// While a repair symbol waited for the pacer, the client asked for connection IDs of the second path without end, in packets of their
/// own, which filled CoDel's queue: 1.85.
#[test]
fn no_packet_follows_a_repair_symbol_that_waits_for_the_pacer() {
    let links = [(0.3313, 20), (50.0, 200)].map(|(mbps, owd_ms)| Link { codel: true, ..Link::new(mbps, owd_ms) });
    for scheduler in [Scheduling::LowestId, Scheduling::LowestRtt, Scheduling::RoundRobin, Scheduling::Ecf] {
        for size in (2000..9000).step_by(997) {
            let (direction, congestion_control) = (Direction::Upload, CongestionControl::Cubic);
            let ratio =
                ratio(&Setting { direction, scheduler, congestion_control, ..Setting::over(&links, size, None) });
            assert!(ratio < 1.02, "{scheduler:?}, {size} bytes: {ratio}");
        }
    }
}

/// Repair symbols took a path without a queue while the queue of another one dropped data, and retransmissions waited behind them: 1.08.
#[test]
fn no_repair_symbol_takes_a_path_while_another_has_a_queue() {
    let links = [(3.5, 20), (5.54, 5)].map(|(mbps, owd_ms)| Link::new(mbps, owd_ms));
    for scheduler in [Scheduling::RoundRobin, Scheduling::LowestRtt] {
        for size in (85_000..125_000).step_by(1997) {
            let congestion_control = CongestionControl::Cubic;
            let ratio = ratio(&Setting { scheduler, congestion_control, ..Setting::over(&links, size, None) });
            assert!(ratio < 1.02, "{scheduler:?}, {size} bytes: {ratio}");
        }
    }
}

/// The gain: losses of the last packets cost no time-out.
#[test]
fn losses_at_the_end_are_repaired_without_a_retransmission() {
    let mut sums = [0.0; 2];
    for seed in 0..60 {
        for direction in DIRECTIONS {
            let loss = Loss::Uniform { rate: 0.05, seed };
            let setting = Setting { up: loss.clone(), down: loss, seed, ..case(direction, 10.0, 50.0, 1.0, 10_000) };
            let outcomes = [setting.run(), with_safe(&setting).run()];
            for (sum, outcome) in sums.iter_mut().zip(outcomes) {
                *sum += outcome.dct.unwrap().as_secs_f64();
            }
        }
    }
    assert!(sums[1] < 0.93 * sums[0], "{sums:?}");
}

/// Where nothing was lost of 100 packets, nothing is protected, until something is.
#[test]
fn a_loss_ends_the_silence() {
    let setting = with_safe(&case(Direction::Download, 100.0, 20.0, 1.0, 400_000));
    let sent = [vec![], vec![120]].map(|lost| setting.losing_these(lost).server.repair_sent);
    assert!(sent[0] == 0 && sent[1] > 0, "{sent:?} packets with repair");
}

/// Retransmissions take the place of repair symbols in the congestion window: repair in flight holds none of them back.
#[test]
fn data_does_not_wait_for_repair_in_flight() {
    let mut beyond = 0;
    for n in 4..20 {
        let setting = case(Direction::Download, 100.0, 50.0, 1.0, 11_500);
        let [plain, safe] = [setting.losing_these(vec![n, n + 1]), with_safe(&setting).losing_these(vec![n, n + 1])];
        beyond += safe.server.sent_beyond_window;
        assert!(safe.dct.unwrap() <= plain.dct.unwrap() + Duration::from_millis(2), "{n}");
    }
    assert!(beyond > 0);
}

fn with_forms(client: SourceSymbols, server: SourceSymbols, setting: &Setting) -> Setting {
    let [client, server] = [client, server].map(|source_symbols| Some(Schemes { source_symbols, ..safe() }));
    Setting { client, server, ..setting.clone() }
}

/// Source symbols that say so need no packet more, in types of one byte or, where the peer knows only the draft's, of eight. The
/// draft's form itself does at some sizes.
#[test]
fn source_symbols_that_say_so_need_no_packet_more() {
    let of_peers = [
        (SourceSymbols::Short, SourceSymbols::Short),
        (SourceSymbols::Explicit, SourceSymbols::Implicit),
        (SourceSymbols::Implicit, SourceSymbols::Short),
    ];
    let mut worst_of_draft: f64 = 0.0;
    for congestion_control in CONTROLS {
        let mut protected = [0; 3];
        for size in (10_600..10_900).step_by(10).chain((33_300..33_500).step_by(10)) {
            let setting = Setting { congestion_control, ..case(Direction::Download, 10.0, 50.0, 1.0, size) };
            let plain = setting.run().dct.unwrap().as_secs_f64();
            for ((client, server), protected) in of_peers.into_iter().zip(&mut protected) {
                let outcome = with_forms(client, server, &setting).run();
                let ratio = outcome.dct.unwrap().as_secs_f64() / plain;
                assert!(ratio < 1.002, "{size} bytes, {congestion_control:?}, {client:?} and {server:?}: {ratio}");
                *protected += outcome.server.source_sent;
            }
            let draft = with_forms(SourceSymbols::Explicit, SourceSymbols::Explicit, &setting).run();
            worst_of_draft = worst_of_draft.max(draft.dct.unwrap().as_secs_f64() / plain);
        }
        assert!(protected.iter().all(|count| *count > 100), "{congestion_control:?}: {protected:?}");
    }
    assert!(worst_of_draft > 1.1, "{worst_of_draft}");
}

/// Windows count bytes, so full packets that are source symbols have as many as others.
#[test]
fn full_packets_that_say_that_they_are_source_symbols_are_as_long_as_others() {
    let setting = case(Direction::Download, 10.0, 50.0, 1.0, 33_000);
    let [plain, short] = [
        Setting { client: Some(unused()), server: Some(unused()), ..setting.clone() },
        with_forms(SourceSymbols::Short, SourceSymbols::Short, &setting),
    ]
    .map(|setting| packets(&setting));
    let is_symbol = |frames: &&Vec<u8>| frames.starts_with(&[0x2f]);
    assert!(short.iter().filter(is_symbol).count() > 10);
    let longest = plain.iter().map(Vec::len).max().unwrap();
    let (last, full) =
        short.iter().filter(is_symbol).collect::<Vec<_>>().split_last().map(|(l, f)| (*l, f.to_vec())).unwrap();
    assert!(full.iter().all(|frames| frames.len() == longest) && last.len() < longest);
}

/// An end that keeps no packets gets source symbols that say so, and both transfer what they should.
#[test]
fn a_peer_that_keeps_no_packets_gets_named_source_symbols() {
    let draft = Schemes { source_symbols: SourceSymbols::Explicit, ..safe() };
    for (client, server) in [(safe(), draft.clone()), (draft, safe())] {
        let loss = Loss::Uniform { rate: 0.05, seed: 7 };
        let setting =
            Setting { down: loss, client: Some(client), server: Some(server), ..Setting::download(50_000, None) };
        let outcome = setting.run();
        assert!(outcome.dct.is_ok() && outcome.client.source_received > 0, "{outcome:?}");
    }
}

/// Returns the time of the end of messages of so many bytes, due at these times in µs, and the server's counters. The round-trip time is
/// 100 ms, and nothing is in the way.
fn messages(timetable: &[(u64, u64)], schemes: Schemes) -> (Duration, Counters) {
    messages_over(&case(Direction::Download, 100.0, 50.0, 4.0, 0), timetable, schemes)
}

fn messages_over(setting: &Setting, timetable: &[(u64, u64)], schemes: Schemes) -> (Duration, Counters) {
    let workload = json!({
        "direction": "down", "delivery": "stream", "deadline_ms": 1000.0, "part_bytes": 1200, "timetable": timetable,
    });
    let Value::Object(values) = workload else { unreachable!() };
    let messages = Arc::new(Messages::parse(&mut Values::new("workload", values)).unwrap());
    let assignment = |role| {
        let workload = Workload::Messages(messages.clone());
        Assignment { workload, ..setting.assignment(role, &Some(schemes.clone())) }
    };
    let client = settings::client(&assignment(Role::Client), &setting.surroundings(Role::Client)).unwrap();
    let server = settings::server(&assignment(Role::Server), &setting.surroundings(Role::Server)).unwrap();
    let seed = setting.seed;
    let exchange = Exchange::new(Role::Client, messages.clone(), seed);
    let accept = move || Exchange::new(Role::Server, messages.clone(), seed);
    let mut world = World::new(setting, client, server, exchange, Box::new(accept));
    loop {
        if let Some((end, outcome)) = world.client.applications().find_map(|exchange| exchange.outcome.take()) {
            assert_eq!(outcome, Ok(()));
            return (end - world.start, world.server.counters());
        }
        assert!(world.step(Duration::from_secs(5)), "the messages ended within seconds");
    }
}

/// The pacer lets data go as if no repair symbol had been sent before: five packets came 5.6 ms later, once one was charged.
#[test]
fn data_does_not_wait_for_the_pace_of_repair() {
    let [(plain, none), (with_repair, some)] =
        [unused(), safe()].map(|schemes| messages(&[(0, 1100), (10_000, 5600)], schemes));
    assert!(none.repair_sent == 0 && some.repair_sent > 0, "{some:?}");
    assert!(with_repair <= plain + Duration::from_millis(1), "{with_repair:?} and {plain:?} without repair");
}

/// A window that messages do not fill hardly grows. Where repair by deadline waits for it, it does: what is lost makes it smaller, repair
/// included.
#[test]
fn repair_by_deadline_that_waits_fills_the_window() {
    let timetable: Vec<_> = (0..50).map(|n| (n * 40_000, 3300)).collect();
    let by_deadline = coded(safe(), |coding| coding.redundancy = Redundancy::Deadline(Duration::ZERO));
    let [plain, filled] = [unused(), by_deadline].map(|schemes| messages(&timetable, schemes).1.congestion_window);
    assert!(2 * filled > 3 * plain, "{filled} and {plain} bytes");
}

/// In slow start a window grows by the bytes that are acknowledged, and half of these are of repair.
#[test]
fn repair_by_deadline_that_is_acknowledged_makes_the_window_grow() {
    let timetable: Vec<_> = (0..20).map(|n| (n * 40_000, 3300)).collect();
    let by_deadline = coded(safe(), |coding| coding.redundancy = Redundancy::Deadline(Duration::ZERO));
    let [plain, grown] = [unused(), by_deadline].map(|schemes| messages(&timetable, schemes).1.congestion_window);
    assert!(grown > 3 * plain, "{grown} and {plain} bytes");
}

/// Frames of eight packets take two thirds of a link, and its queue is short. The repair of a frame took the rest and more: the queue
/// dropped packets, so that more repair was sent, which it dropped, too.
#[test]
fn repair_by_deadline_leaves_room_for_the_next_frames() {
    let timetable: Vec<_> = (0..60).map(|n| (n * 33_333, 8_000)).collect();
    for (mbps, owd_ms, queue_bdp) in [(3.0, 50.0, 0.3), (3.493, 73.75, 0.4077)] {
        let setting = Setting {
            congestion_control: CongestionControl::Bbr3,
            ..case(Direction::Download, mbps, owd_ms, queue_bdp, 0)
        };
        let by_deadline = coded(safe(), |coding| coding.redundancy = Redundancy::Deadline(Duration::ZERO));
        let counters = messages_over(&setting, &timetable, by_deadline).1;
        assert!(counters.repair_sent > 60, "{counters:?}");
        assert!(counters.losses_declared < 20, "{} packets lost at {mbps} Mbit/s", counters.losses_declared);
    }
}

/// A long frame keeps the link busy for longer than repair by deadline minds. Repair left when the next ACK came, a round trip later.
#[test]
fn repair_by_deadline_follows_a_long_frame_as_soon_as_there_is_room() {
    let setting = Setting {
        congestion_control: CongestionControl::Bbr3,
        down: Loss::These((20..200).step_by(20).collect()),
        ..case(Direction::Download, 10.0, 120.0, 1.5, 0)
    };
    let repairs = [1_000, 40_000].map(|last| {
        let frames = (0..30).map(|n| (n * 33_333, 8_000));
        let timetable: Vec<_> = frames.chain([(1_600_000, last)]).collect();
        let by_deadline = coded(safe(), |coding| coding.redundancy = Redundancy::Deadline(Duration::ZERO));
        messages_over(&setting, &timetable, by_deadline).1.repair_sent
    });
    assert!(repairs[1] > repairs[0] + 5, "{repairs:?} when the last frame of 1,000 and of 40,000 bytes is there");
}
