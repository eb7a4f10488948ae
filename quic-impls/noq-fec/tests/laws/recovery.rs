//! Whole transfers over a lossy link, in virtual time: the laws that FEC inside QUIC has to keep.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::world::{Loss, Outcome, Setting, World, all_schemes, coded, schemes};
use fec::Code;
use host::coding::Redundancy;
use host::content;
use host::contract::{Direction, Role, Transfer};
use noq_fec::hq_interop::{Answers, Request};
use noq_fec::options::CongestionControl;
use noq_fec::schemes::{Schemes, SourceSymbols};
use noq_fec::stack::Application;
use noq_proto::{Connection, Dir, Event, StreamEvent, VarInt};

/// A transfer that a seed makes up: its direction, its size, the link, and what is lost.
fn random(seed: u64, schemes: &Schemes) -> Setting {
    let draw = |j, below: u64| content::word(seed, j) % below;
    let loss = |j| match draw(0, 3) {
        0 => Loss::Uniform { rate: draw(1, 100) as f64 / 1000.0, seed: seed ^ j },
        1 => {
            Loss::Bursts { p: 0.01 + draw(2, 30) as f64 / 1000.0, r: 0.3 + draw(3, 70) as f64 / 100.0, seed: seed ^ j }
        }
        _ => Loss::These(vec![draw(4, 20) + 4, draw(5, 20) + 4, draw(6, 20) + 4]),
    };
    Setting {
        direction: if draw(7, 2) == 0 { Direction::Download } else { Direction::Upload },
        up: loss(8),
        down: loss(9),
        bandwidth_mbps: 0.3 + draw(10, 200) as f64 / 10.0,
        owd: Duration::from_millis(1 + draw(11, 300)),
        jitter: Duration::from_micros(if draw(12, 4) == 0 { draw(13, 20_000) } else { 0 }),
        congestion_control: [CongestionControl::Cubic, CongestionControl::NewReno, CongestionControl::Bbr3]
            [draw(14, 3) as usize],
        seed,
        ..Setting::download(draw(15, 60_000), Some(schemes.clone()))
    }
}

/// Checks the laws that hold for every transfer.
fn check(outcome: &Outcome, context: &str) {
    let dct = outcome.dct.as_ref().unwrap_or_else(|why| panic!("{context}: {why}"));
    assert!(*dct < Duration::from_secs(120), "{context}: stalled, {dct:?}");
    let (up, down) = outcome.missing;
    for (sender, receiver, missing) in
        [(&outcome.client, &outcome.server, up), (&outcome.server, &outcome.client, down)]
    {
        assert!(receiver.recovered_spurious <= receiver.recovered, "{context}");
        let never_came = receiver.recovered - receiver.recovered_spurious;
        assert!(never_came <= missing, "{context}: {never_came} recovered, {missing} were lost");
        assert!(receiver.source_received + never_came <= sender.source_sent, "{context}");
        assert!(receiver.packets_received + never_came <= sender.packets_sent, "{context}");
        assert!(receiver.source_received <= sender.source_sent, "{context}");
        assert!(receiver.repair_received <= sender.repair_sent, "{context}");
        assert!(receiver.recovered <= receiver.repair_received, "{context}: a repair symbol recovers at most one");
        assert!(receiver.recovered_late <= receiver.recovered, "{context}");
        assert!(sender.recovered_by_peer <= receiver.recovered, "{context}");
        assert!(sender.useless_retransmissions <= sender.recovered_by_peer, "{context}");
        assert!(sender.source_sent <= sender.packets_sent, "{context}");
        assert!(sender.spurious_losses <= sender.packets_lost, "{context}: {sender:?}");
        assert!(receiver.recovered_spurious <= receiver.recovered_late, "{context}: {receiver:?}");
    }
}

fn content_is_right_whatever_is_lost(parameters: Schemes) {
    let mut recovered = 0;
    let mut known_to_sender = 0;
    for seed in 0..600 {
        let setting = random(seed, &parameters);
        let outcome = setting.run();
        check(&outcome, &format!("{setting:?}"));
        let (sender, receiver) = outcome.of(setting.direction);
        recovered += receiver.recovered;
        known_to_sender += sender.recovered_by_peer;
    }
    assert!(recovered > 0);
    // At the tail, a transfer ends with the recovery.
    let is_tail = parameters.coding.redundancy == Redundancy::Tail;
    assert!(
        is_tail || known_to_sender * 10 > recovered * 6,
        "{known_to_sender} of {recovered} were acknowledged in time"
    );
}

#[test]
fn content_is_right_whatever_is_lost_with_xor() {
    content_is_right_whatever_is_lost(schemes(Code::Xor, 5, 4));
}

#[test]
fn content_is_right_whatever_is_lost_with_interleaved_xor() {
    content_is_right_whatever_is_lost(coded(schemes(Code::Xor, 5, 4), |coding| coding.interleave = 3));
}

#[test]
fn content_is_right_whatever_is_lost_with_reed_solomon() {
    content_is_right_whatever_is_lost(schemes(Code::ReedSolomon, 9, 6));
}

#[test]
fn content_is_right_whatever_is_lost_with_rlc() {
    content_is_right_whatever_is_lost(schemes(Code::RLC, 3, 2));
}

#[test]
fn content_is_right_whatever_is_lost_with_vandermonde() {
    content_is_right_whatever_is_lost(schemes(Code::Vandermonde, 3, 2));
}

#[test]
fn content_is_right_whatever_is_lost_with_repair_at_the_tail() {
    content_is_right_whatever_is_lost(coded(schemes(Code::RLC, 3, 2), |coding| coding.redundancy = Redundancy::Tail));
}

#[test]
fn content_is_right_whatever_is_lost_where_types_have_one_byte() {
    content_is_right_whatever_is_lost(Schemes { source_symbols: SourceSymbols::Short, ..schemes(Code::RLC, 3, 2) });
}

#[test]
fn content_is_right_whatever_is_lost_where_repair_names_packets() {
    content_is_right_whatever_is_lost(Schemes { source_symbols: SourceSymbols::Implicit, ..schemes(Code::RLC, 3, 2) });
}

#[test]
fn content_is_right_whatever_is_lost_with_losses_masked() {
    content_is_right_whatever_is_lost(Schemes { masks_losses: true, ..schemes(Code::RLC, 3, 2) });
}

#[test]
fn each_single_lost_packet_is_recovered_by_every_scheme() {
    for parameters in all_schemes().into_iter().filter(|schemes| schemes.coding.redundancy == Redundancy::Constant) {
        for direction in [Direction::Download, Direction::Upload] {
            let setting = Setting { direction, ..Setting::download(20_000, Some(parameters.clone())) };
            let sent = setting.run().sent;
            let mut recovered = 0;
            for n in 0..sent.0.min(sent.1) {
                let outcome = setting.losing(n);
                check(&outcome, &format!("{n} of {setting:?}"));
                let (sender, receiver) = outcome.of(direction);
                // It may be one of the handshake, without which nothing is received, or a repair symbol.
                // A receiver knows of a symbol that nothing in its packet names only by a repair symbol, which may be the lost packet.
                let missing = sender.source_sent - receiver.source_received;
                let is_told = !parameters.names_packets();
                assert!(missing > 1 || !is_told || receiver.recovered == missing, "{n} of {setting:?}: {outcome:?}");
                recovered += receiver.recovered;
            }
            assert!(recovered > 5, "{setting:?}");
        }
    }
}

/// A repair symbol that follows within two packets comes before the third, at which QUIC would declare the loss.
#[test]
fn what_is_recovered_in_time_is_not_sent_again() {
    for code in [Code::RLC, Code::Vandermonde] {
        let setting = Setting::download(200_000, Some(schemes(code, 3, 2)));
        let without = setting.run();
        for n in 5..100 {
            let outcome = setting.losing(n);
            assert_eq!(outcome.server.recovered_by_peer, outcome.client.recovered, "{n}");
            assert_eq!(outcome.server.source_sent, without.server.source_sent, "{n}: {outcome:?}");
            assert_eq!(outcome.server.useless_retransmissions, 0, "{n}");
        }
    }
}

/// A recovery that comes after the loss was declared spares nothing: a block code's repair symbols are late.
#[test]
fn what_is_recovered_too_late_is_counted() {
    let setting = Setting::download(100_000, Some(schemes(Code::ReedSolomon, 30, 20)));
    let outcomes: Vec<_> = (5..60).map(|n| setting.losing(n)).collect();
    assert!(outcomes.iter().all(|outcome| outcome.client.recovered <= 1));
    assert!(outcomes.iter().any(|outcome| outcome.server.useless_retransmissions == 1), "{outcomes:?}");
}

/// Nothing is lost, but one packet comes after its repair symbols, and after the decoder has forgotten it, which looks back
/// over 8 symbols.
#[test]
fn a_packet_that_was_merely_late_counts_apart() {
    for code in [Code::Xor, Code::ReedSolomon, Code::RLC, Code::Vandermonde] {
        let schemes = coded(schemes(code, 4, 3), |coding| coding.window = 4);
        for lateness in [15, 30, 60, 90].map(Duration::from_millis) {
            let setting = Setting { initial_window: 64, ..Setting::download(400_000, Some(schemes.clone())) };
            let mut spurious = 0;
            for n in 40..60 {
                let setting = Setting { late_down: Some((n, lateness)), ..setting.clone() };
                let outcome = setting.run();
                check(&outcome, &format!("{n} of {setting:?}"));
                let receiver = &outcome.client;
                assert_eq!(receiver.recovered, receiver.recovered_spurious, "{n} of {setting:?}: {receiver:?}");
                spurious += receiver.recovered_spurious;
            }
            // Every fourth packet is a repair symbol.
            assert!((12..=15).contains(&spurious), "{spurious} of {setting:?}, late by {lateness:?}");
        }
    }
}

/// A whole initial window may come before the handshake ends at the server, whose datagram was lost: all of it is kept.
#[test]
fn what_overtakes_the_end_of_the_handshake_is_not_lost() {
    for code in [Code::Xor, Code::ReedSolomon, Code::RLC, Code::Vandermonde] {
        let upload = Setting {
            direction: Direction::Upload,
            initial_window: 64,
            bandwidth_mbps: 100.0,
            ..Setting::download(100_000, Some(schemes(code, 4, 3)))
        };
        for n in 1..5 {
            let outcome = upload.losing(n);
            check(&outcome, &format!("{n} of {upload:?}"));
            assert!(outcome.server.source_received + 1 >= outcome.client.source_sent, "{n}: {outcome:?}");
        }
    }
}

/// A request, and when the server has confirmed the handshake.
struct Confirmed {
    request: Request,
    at: Option<Instant>,
}

impl Application for Confirmed {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        if matches!(event, Event::HandshakeConfirmed) {
            self.at = Some(now);
        }
        self.request.on_event(now, connection, event);
    }
}

/// HANDSHAKE_DONE stands in front of SOURCE_SYMBOL, in the packet that begins the answer.
#[test]
fn what_is_not_protected_is_sent_again_when_its_packet_is_recovered() {
    for masks_losses in [false, true] {
        let schemes = Schemes { masks_losses, ..schemes(Code::RLC, 2, 1) };
        let confirmed = |n: Option<u64>| {
            let setting =
                Setting { down: Loss::These(Vec::from_iter(n)), ..Setting::download(20_000, Some(schemes.clone())) };
            let (client, server) = (setting.client_config(), setting.server_config());
            let transfer = Transfer { direction: setting.direction, size: setting.size };
            let application = Confirmed { request: Request::new(transfer, setting.seed), at: None };
            let answers = Box::new(move || Answers::new(setting.seed));
            let mut world = World::new(&setting, client, server, application, answers);
            while world.step(Duration::from_secs(60)) {}
            let at = world.client.applications().find_map(|application| application.at);
            (at.unwrap_or_else(|| panic!("{n:?}: never confirmed")) - world.start, world.client.counters().recovered)
        };
        let (unharmed, _) = confirmed(None);
        let harmed =
            (0..10).map(|n| confirmed(Some(n))).filter(|(at, recovered)| *recovered == 1 && *at > unharmed).count();
        assert!(harmed > 0, "no packet with HANDSHAKE_DONE was recovered");
    }
}

/// An answer, and how many bytes its sender could send anew each time that one was known to have landed.
struct Measured {
    answers: Answers,
    room: Vec<usize>,
}

impl Application for Measured {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        if matches!(event, Event::Stream(StreamEvent::Finished { .. })) {
            let id = connection.streams().open(Dir::Uni).unwrap();
            let mut stream = connection.send_stream(id);
            self.room.push(stream.write(&[0; 2 * SEND_WINDOW]).unwrap());
            stream.reset(VarInt::from_u32(0)).unwrap();
        }
        self.answers.on_event(now, connection, event);
    }
}

/// In bytes: more than the answer has.
const SEND_WINDOW: usize = 400_000;

/// Answers, and notes how many frames have told of recovered packets.
struct Told {
    answers: Answers,
    frames: u64,
}

impl Application for Told {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        self.answers.on_event(now, connection, event);
        self.frames = connection.stats().frame_rx.symbol_ack;
    }
}

/// A silence upwards takes the three frames that tell of a recovered packet. Frames that are repeated until they
/// are acknowledged arrive once, and no other one is sent once that is known.
#[test]
fn the_news_of_a_recovered_packet_arrives_if_it_is_repeated_until_it_is_acknowledged() {
    let run = |repeats_until_acknowledged, silence: [u64; 2]| {
        let schemes = Schemes { repeats_until_acknowledged, ..schemes(Code::RLC, 3, 2) };
        let setting = Setting {
            down: Loss::These(vec![100]),
            outage_up: Some(silence.map(Duration::from_millis)),
            ..Setting::download(1_000_000, Some(schemes))
        };
        let transfer = Transfer { direction: setting.direction, size: setting.size };
        let seed = setting.seed;
        let accept = move || Told { answers: Answers::new(seed), frames: 0 };
        let (client, server) = (setting.client_config(), setting.server_config());
        let mut world = World::new(&setting, client, server, Request::new(transfer, seed), Box::new(accept));
        while world.step(Duration::from_secs(60)) {}
        assert_eq!(world.client.counters().recovered, 1, "{silence:?}");
        world.server.applications().map(|told| told.frames).sum::<u64>()
    };
    assert_eq!([false, true].map(|repeats| run(repeats, [0, 0])), [3, 1]);
    let silences: Vec<_> = (400..600).step_by(20).map(|start| [start, start + 60]).collect();
    assert!(silences.iter().any(|silence| run(false, *silence) == 0), "none took all three");
    for silence in silences {
        assert!(run(true, silence) > 0, "{silence:?}");
    }
}

#[test]
fn what_is_recovered_is_kept_no_longer() {
    for masks_losses in [false, true] {
        let early = Schemes { masks_losses, ..schemes(Code::RLC, 3, 2) };
        for setting in [Setting::download(200_000, Some(early)), Setting::late_repair(masks_losses)] {
            for n in 10..80 {
                let setting = Setting { down: Loss::These(vec![n]), ..setting.clone() };
                let mut transport = setting.transport(Role::Server, &setting.server);
                transport.send_window(SEND_WINDOW as u64);
                let mut server = setting.server_config();
                server.transport_config(Arc::new(transport));
                let transfer = Transfer { direction: setting.direction, size: setting.size };
                let request = Request::new(transfer, setting.seed);
                let answers = Box::new(move || Measured { answers: Answers::new(setting.seed), room: Vec::new() });
                let mut world = World::new(&setting, setting.client_config(), server, request, answers);
                while world.step(Duration::from_secs(60)) {}
                let room: Vec<_> = world.server.applications().map(|measured| measured.room.clone()).collect();
                assert_eq!(room, [[SEND_WINDOW]], "{n} of {setting:?}");
            }
        }
    }
}

#[test]
fn the_last_packet_of_a_transfer_costs_less_than_a_round_trip_when_it_is_lost() {
    for direction in [Direction::Download, Direction::Upload] {
        for size in [1000, 10_000, 30_000] {
            for parameters in all_schemes() {
                let setting = Setting { direction, ..Setting::download(size, Some(parameters)) };
                let unharmed = setting.run();
                // The last source packet, found by its loss: the receiver misses one, and nothing followed it but repair.
                let sent = match direction {
                    Direction::Download => unharmed.sent.1,
                    Direction::Upload => unharmed.sent.0,
                };
                let outcome = (0..sent)
                    .map(|n| setting.losing(n))
                    .rfind(|outcome| {
                        let (sender, receiver) = outcome.of(direction);
                        sender.source_sent == receiver.source_received + 1 && receiver.recovered == 1
                    })
                    .unwrap_or_else(|| panic!("nothing was ever recovered: {setting:?}"));
                let dct = outcome.dct.unwrap();
                assert!(dct < unharmed.dct.clone().unwrap() + 2 * setting.owd, "{dct:?}, {unharmed:?}");
            }
        }
    }
}

#[test]
fn fec_is_used_in_a_direction_if_its_receiver_announces_it() {
    let xor = || Some(schemes(Code::Xor, 2, 1));
    let rlc = || Some(schemes(Code::RLC, 2, 1));
    for (client, server) in [(None, None), (xor(), None), (None, rlc()), (xor(), xor()), (xor(), rlc()), (rlc(), xor())]
    {
        let setting = Setting { client, server, ..Setting::download(20_000, None) };
        let is_used = setting.client.is_some() && setting.server.is_some();
        for n in 4..15 {
            let outcome = setting.losing(n);
            check(&outcome, &format!("{setting:?}"));
            for end in [&outcome.client, &outcome.server] {
                assert_eq!(end.source_sent > 0, is_used, "{setting:?}: {end:?}");
                assert_eq!(end.repair_received > 0, is_used, "{setting:?}: {end:?}");
            }
        }
    }
}

/// As in the papers, whose implementation has an initial window of 32 packets: FEC shortens short downloads over a long
/// delay, and long ones pay for it.
#[test]
fn fec_shortens_short_downloads_under_losses() {
    let mean = |size, schemes: &Option<Schemes>, rate| {
        let dct = |seed| {
            let loss = |salt| Loss::Uniform { rate, seed: 2 * seed + salt };
            let setting = Setting {
                up: loss(0),
                down: loss(1),
                owd: Duration::from_millis(200),
                initial_window: 32,
                seed,
                ..Setting::download(size, schemes.clone())
            };
            setting.run().dct.unwrap().as_secs_f64()
        };
        (0..50).map(dct).sum::<f64>() / 50.0
    };
    let codes = [None, Some(schemes(Code::RLC, 3, 2)), Some(schemes(Code::ReedSolomon, 30, 20))];
    for (size, rate) in [(1000, 0.06), (10_000, 0.02), (10_000, 0.06), (50_000, 0.06), (1_000_000, 0.02)] {
        let [none, rlc, rs] = codes.each_ref().map(|schemes| mean(size, schemes, rate));
        println!("{size} bytes, {rate}: none {none:.2} s, RLC {rlc:.2} s, Reed-Solomon {rs:.2} s");
        assert_eq!(rlc < none, size < 1_000_000, "{size} bytes at {rate}: {rlc} s with RLC, {none} s without");
    }
}

/// The request mostly shares a datagram with the end of the handshake. When that is lost, the server keeps the repair symbol
/// until the handshake has ended after all.
#[test]
fn a_request_that_is_lost_with_the_end_of_the_handshake_is_recovered() {
    let lost = |schemes| Setting { up: Loss::These(vec![1]), ..Setting::download(1000, schemes) }.run();
    let (plain, fec) = (lost(None), lost(Some(schemes(Code::RLC, 3, 2))));
    assert_eq!(fec.server.recovered, 1, "{fec:?}");
    let (dct, plain) = (fec.dct.unwrap(), plain.dct.unwrap());
    let round_trip = Duration::from_millis(100);
    assert!(dct + 2 * round_trip < plain, "{dct:?}, {plain:?}");
}

#[test]
fn the_same_seed_gives_the_same_transfer() {
    for seed in 0..20 {
        for parameters in all_schemes() {
            let setting = random(seed, &parameters);
            let [first, second] = [setting.run(), setting.run()];
            assert_eq!(format!("{first:?}"), format!("{second:?}"), "{setting:?}");
        }
    }
}
