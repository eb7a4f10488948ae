//! Frames that a peer must not send, at either side: the connection ends with the right error or goes on, and never
//! panics. Frames that a victim decrypts are replaced, so that its peer seems to have sent the new ones.

use std::sync::{Arc, Mutex};

use crate::world::budget::within_budget;
use crate::world::decrypted::{self, PACKET_REPAIR, REPAIR, SOURCE_SYMBOL};
use crate::world::{DEEP_QUEUE, Link, Outcome, Setting, schemes};
use bytes::BytesMut;
use fec::Code;
use host::content;
use host::contract::{Direction, Role};
use noq_fec::options::CongestionControl;
use noq_fec::schemes::{Schemes, SourceSymbols};

/// A transfer whose victim receives these frames in place of its third 1-RTT packet.
fn receiving(frames: &[u8], victim: Role, setting: &Setting) -> Result<(), String> {
    let frames = frames.to_vec();
    let change = move |n, payload: &mut BytesMut| {
        if n == 2 {
            payload.clear();
            payload.extend_from_slice(&frames);
        }
    };
    decrypted::changed(setting, victim, Arc::new(Mutex::new(change))).dct.map(drop)
}

/// A transfer whose victim receives these frames in front of the first 1-RTT packet that is no source symbol.
fn receiving_besides(frames: &[u8], victim: Role, setting: &Setting) -> Result<(), String> {
    let mut frames = Some(frames.to_vec());
    let change = move |_, payload: &mut BytesMut| {
        if !payload.windows(SOURCE_SYMBOL.len()).any(|window| window == SOURCE_SYMBOL) {
            let rest = payload.split();
            payload.extend_from_slice(&frames.take().unwrap_or_default());
            payload.extend_from_slice(&rest);
        }
    };
    decrypted::changed(setting, victim, Arc::new(Mutex::new(change))).dct.map(drop)
}

const SYMBOL_ACK: [u8; 8] = [0xc0, 0, 0, 0x32, 0xa8, 0x0f, 0xec, 0xac];
const FEC_WINDOW: [u8; 8] = [0xc0, 0, 0, 0x32, 0xa8, 0x0f, 0xec, 0xc0];
const SHORT_REPAIR: [u8; 1] = [0x2e];
const SHORT_SOURCE_SYMBOL: [u8; 1] = [0x2f];
const FORMS: [SourceSymbols; 3] = [SourceSymbols::Explicit, SourceSymbols::Implicit, SourceSymbols::Short];
const LARGE: [u8; 8] = [0xff; 8];
const PING: [u8; 1] = [1];

fn both(mut check: impl FnMut(Role)) {
    check(Role::Client);
    check(Role::Server);
}

/// FEC in both directions, and enough packets in both.
fn setting() -> Setting {
    Setting::download(60_000, Some(schemes(Code::RLC, 3, 2)))
}

#[test]
fn frames_that_break_a_rule_end_the_connection_with_the_error_that_names_it() {
    let cases: [(&str, Vec<u8>, &str); 8] = [
        ("a short type that was not announced", [&SHORT_SOURCE_SYMBOL[..], &[60], &PING[..]].concat(), "one byte"),
        ("the same of a repair symbol", [&SHORT_REPAIR[..], &[0; 9]].concat(), "one byte"),
        ("a repair symbol without a header", [&REPAIR[..], &PING[..]].concat(), "repair payload"),
        ("a symbol acknowledged that was never sent", [&SYMBOL_ACK[..], &LARGE[..], &[0, 0]].concat(), "unsent symbol"),
        ("an acknowledgement below 0", [&SYMBOL_ACK[..], &[1, 0, 5]].concat(), "malformed"),
        (
            "an acknowledgement with too few ranges",
            [&SYMBOL_ACK[..], &[0], &LARGE[..], &[0]].concat(),
            "unexpected end",
        ),
        (
            "two source symbols in a packet",
            [&SOURCE_SYMBOL[..], &[60], &SOURCE_SYMBOL[..], &[61], &PING[..]].concat(),
            "two SOURCE_SYMBOL",
        ),
        ("a window that isn't whole", [&FEC_WINDOW[..], &[0]].concat(), "unexpected end"),
    ];
    for (case, frames, error) in cases {
        both(|victim| {
            let why = receiving(&frames, victim, &setting()).unwrap_err();
            assert!(why.contains(error), "{case}, {victim}: {why}");
        });
    }
}

/// The same with repair symbols that name packets.
fn naming() -> Setting {
    Setting::download(60_000, Some(Schemes { source_symbols: SourceSymbols::Implicit, ..schemes(Code::RLC, 3, 2) }))
}

#[test]
fn repair_symbols_that_name_packets_wrongly_end_the_connection() {
    // The frame's number, and then the length of the symbol, an offset, and the part's length.
    let frame = |numbers: &[u8], part: &[u8]| [&PACKET_REPAIR[..], &[0], numbers, part].concat();
    let cases: [(&str, Vec<u8>); 6] = [
        ("an empty part", frame(&[9, 0, 0], &[])),
        ("a part beyond the end", frame(&[9, 8, 2], &[0; 2])),
        ("a symbol that is too long", frame(&[0x50, 1, 0, 2], &[0; 2])),
        ("nothing named", frame(&[3, 0, 3], &[0, 0, 7])),
        ("too many named", packet_repair(0, &[&[0, 1, 0, 0, 0x41, 0][..], &[7]].concat())),
        (
            "a packet that is two source symbols",
            [packet_repair(0, &twice()), packet_repair(1, &[&[90], &twice()[1..]].concat())].concat(),
        ),
    ];
    for (case, frames) in cases {
        both(|victim| {
            let why = receiving(&frames, victim, &naming()).unwrap_err();
            assert!(why.contains("malformed PACKET_REPAIR"), "{case}, {victim}: {why}");
        });
    }
    both(|victim| {
        let why = receiving(&packet_repair(0, &twice()), victim, &setting()).unwrap_err();
        assert!(why.contains("was not announced"), "{victim}: {why}");
        let both_forms = [&SOURCE_SYMBOL[..], &[60], &PING].concat();
        let both_forms = [packet_repair(0, &far()), both_forms].concat();
        let why = receiving(&both_forms, victim, &naming()).unwrap_err();
        assert!(why.contains("two forms"), "{victim}: {why}");
    });
}

/// A repair symbol over packet 100 of the first path as source symbol 70.
fn twice() -> Vec<u8> {
    [&two(70)[..], &[1, 0], &two(100), &[1], &two(70), &[1, 1, 0, 0, 15, 7]].concat()
}

/// A repair symbol over packets that are far ahead.
fn far() -> Vec<u8> {
    [&two(5000)[..], &[1, 0], &two(9000), &two(100), &two(5000), &[100, 1, 0, 0, 15, 7]].concat()
}

#[test]
fn repair_symbols_that_name_what_there_is_not_change_nothing() {
    let part = |number: u8| [&PACKET_REPAIR[..], &[number, 9, 0, 1, 7]].concat();
    let cases = [
        ("packets far ahead", packet_repair(0, &far())),
        (
            "a path that there is not",
            packet_repair(0, &[&two(5000)[..], &[1, 9, 0, 2], &two(5000), &[2, 1, 0, 0, 15, 7]].concat()),
        ),
        ("parts of many symbols", (0..60).flat_map(part).collect()),
    ];
    for (case, frames) in cases {
        both(|victim| {
            receiving_besides(&frames, victim, &naming()).unwrap_or_else(|why| panic!("{case}, {victim}: {why}"))
        });
    }
}

#[test]
fn frames_that_break_no_rule_change_nothing() {
    let cases = [
        ("a source symbol far ahead", [&SOURCE_SYMBOL[..], &LARGE[..]].concat()),
        ("a window of any size", [&FEC_WINDOW[..], &[0], &LARGE[..]].concat()),
        ("a window of nothing", [&FEC_WINDOW[..], &[7], &[0]].concat()),
    ];
    for (case, frames) in cases {
        both(|victim| {
            receiving_besides(&frames, victim, &setting()).unwrap_or_else(|why| panic!("{case}, {victim}: {why}"))
        });
    }
}

/// It may have been on its way when the window became smaller.
#[test]
fn a_repair_symbol_over_more_than_the_window_is_ignored() {
    both(|victim| {
        let replaced = Arc::new(Mutex::new(0));
        let count = replaced.clone();
        let change = move |_, payload: &mut BytesMut| {
            if payload.starts_with(&REPAIR) {
                payload.clear();
                payload.extend_from_slice(&[&REPAIR[..], &[0, 255, 1, 0, 0, 15, 1]].concat());
                *count.lock().unwrap() += 1;
            }
        };
        let outcome = decrypted::changed(&setting(), victim, Arc::new(Mutex::new(change)));
        assert!(outcome.dct.is_ok(), "{victim}: {:?}", outcome.dct);
        let received = if victim == Role::Client { outcome.client } else { outcome.server };
        assert_eq!(received.repair_received, *replaced.lock().unwrap(), "{victim}");
        assert!(received.repair_received > 0 && received.recovered == 0, "{victim}: {received:?}");
    });
}

#[test]
fn fec_frames_without_fec_end_the_connection() {
    let plain = Setting::download(60_000, None);
    for frame in [&REPAIR[..], &SOURCE_SYMBOL, &SYMBOL_ACK, &FEC_WINDOW, &PACKET_REPAIR] {
        both(|victim| {
            let why = receiving(&[frame, &[0, 0, 0, 0]].concat(), victim, &plain).unwrap_err();
            assert!(why.contains("FEC was not announced"), "{why}");
        });
    }
}

/// Bytes that the longest packets have for frames.
const FULL: usize = 1200;

/// Frames that a seed makes up: FEC frames with any content, short or as long as packets are, and cuts and changes of what was there.
fn any_frames(seed: u64, payload: &mut BytesMut) {
    let draw = |j, below: u64| content::word(seed, j) % below;
    let longest = if draw(6, 2) == 0 { 40 } else { FULL as u64 };
    let mut bytes = vec![0; draw(1, longest) as usize];
    content::fill(seed, 8, &mut bytes);
    // Small numbers are likelier to mean something.
    for byte in bytes.iter_mut().step_by(2) {
        *byte &= 0x3f;
    }
    let rest = payload.split();
    match draw(0, 13) {
        11 => payload.extend_from_slice(&[&SHORT_REPAIR[..], &bytes].concat()),
        12 => payload.extend_from_slice(&[&SHORT_SOURCE_SYMBOL[..], &[draw(5, 60) as u8], &bytes].concat()),
        9 => payload.extend_from_slice(&packet_repair(draw(2, 3), &bytes)),
        10 => payload
            .extend_from_slice(&packet_repair(draw(2, 3), &[&names(draw(3, 60), draw(4, 60)), &bytes[..]].concat())),
        0 => payload.extend_from_slice(&[&REPAIR[..], &bytes].concat()),
        1 => payload.extend_from_slice(&[&SOURCE_SYMBOL[..], &bytes].concat()),
        2 => payload.extend_from_slice(&[&SYMBOL_ACK[..], &bytes].concat()),
        3 => payload.extend_from_slice(&[&FEC_WINDOW[..], &bytes].concat()),
        4 => payload.extend_from_slice(&rest[..rest.len().min(draw(2, 60) as usize + 1)]),
        5 => {
            payload.extend_from_slice(&rest);
            let place = draw(3, rest.len() as u64) as usize;
            payload[place] ^= 1 << draw(4, 8);
        }
        6 => payload.extend_from_slice(&[&bytes[..], &rest].concat()),
        7 => payload.extend_from_slice(&many_frames(seed, draw(7, 100))),
        _ => {
            // A symbol of the peer's, with a number of our own: symbols recovered with it are wrong.
            payload.extend_from_slice(&[&SOURCE_SYMBOL[..], &[draw(5, 60) as u8], &bytes].concat());
        }
    }
    if payload.is_empty() {
        payload.extend_from_slice(&PING);
    }
}

/// A repair symbol that names packets, whole.
fn packet_repair(number: u64, symbol: &[u8]) -> Vec<u8> {
    let length = two(symbol.len() as u64);
    [&PACKET_REPAIR[..], &two(number), &length, &[0], &length, symbol].concat()
}

/// The names of packets of the first path, and of source symbols, both from a number on.
fn names(sid: u64, number: u64) -> Vec<u8> {
    [&two(sid)[..], &[1, 0], &two(number), &[20]].concat()
}

/// As many frames as a packet holds, of one kind, or that packet as a symbol with this number, whole or recovered.
fn many_frames(seed: u64, sid: u64) -> Vec<u8> {
    let draw = |j, below: u64| content::word(seed, j) % below;
    let (kind, first, gap) = (draw(30, 6), draw(31, 4000), 1 + draw(32, 3));
    let frame = |n| match kind {
        // An empty one of the client's first stream, and some of a byte.
        0 => vec![STREAM, 0, 0, 0],
        1 | 2 => [&[STREAM, 0][..], &two(first + gap * n), &[1, 7]].concat(),
        // The same in a stream each.
        3 => vec![STREAM, 4 * (n % 16) as u8, 0, 1, 7],
        4 => vec![DATAGRAM, 0],
        // Every second symbol.
        _ => [&SYMBOL_ACK[..], &two(120), &[40, 0], &[0; 80]].concat(),
    };
    let each = frame(0).len();
    let frames = (0..(FULL / each) as u64).flat_map(frame).collect::<Vec<u8>>();
    match draw(33, 4) {
        0 => frames,
        1 => [&SOURCE_SYMBOL[..], &two(sid), &frames].concat(),
        _ => [&repair_alone(sid)[..], &frames].concat(),
    }
}

/// A STREAM frame with an offset and a length, and a DATAGRAM frame with a length.
const STREAM: u8 = 0x0e;
const DATAGRAM: u8 = 0x31;

/// An integer in two bytes: RFC 9000, section 16.
fn two(value: u64) -> [u8; 2] {
    (0x4000 | (value % 0x4000) as u16).to_be_bytes()
}

/// The head of a REPAIR frame before a symbol that is repaired with nothing but itself.
fn repair_alone(sid: u64) -> Vec<u8> {
    let (count, stride, key, density) = (1, 1, [0, 0], 0);
    [&REPAIR[..], &two(sid), &[count, stride], &key, &[density]].concat()
}

/// Frames of QUIC multipath, as they are encoded: PATH_ACK, PATH_ABANDON, PATH_STATUS_BACKUP and PATH_STATUS_AVAILABLE, those of
/// connection IDs, and those of limits.
const OF_PATHS: [&[u8]; 11] = [
    &[0x3e],
    &[0x3f],
    &[0x80, 0, 0x3e, 0x75],
    &[0x80, 0, 0x3e, 0x76],
    &[0x80, 0, 0x3e, 0x77],
    &[0x80, 0, 0x3e, 0x78],
    &[0x80, 0, 0x3e, 0x79],
    &[0x80, 0, 0x3e, 0x7a],
    &[0x80, 0, 0x3e, 0x7b],
    &[0x80, 0, 0x3e, 0x7c],
    &[0x1a],
];

/// A frame of paths, with small numbers, before what was there.
fn any_frame_of_paths(seed: u64, payload: &mut BytesMut) {
    let kind = OF_PATHS[content::word(seed, 20) as usize % OF_PATHS.len()];
    let mut numbers = vec![0; content::word(seed, 21) as usize % 8 + 1];
    content::fill(seed, 160, &mut numbers);
    numbers.iter_mut().for_each(|byte| *byte &= 0x07);
    let rest = payload.split();
    payload.extend_from_slice(&[kind, &numbers, &PING, &rest].concat());
}

/// A transfer of which the client or the server receives what this makes of its packets. They cost no more than they may.
fn attacked(setting: &Setting, seed: u64, change: impl FnMut(u64, &mut BytesMut) + Clone + Send + 'static) -> Outcome {
    let victim = if seed.is_multiple_of(2) { Role::Client } else { Role::Server };
    let run = || decrypted::changed(setting, victim, Arc::new(Mutex::new(change.clone())));
    within_budget(|outcome: &Outcome| outcome.costs, run)
}

#[test]
fn whatever_a_peer_sends_over_two_paths_the_connection_ends_or_goes_on() {
    let cases = std::env::var("FUZZ_CASES").map_or(1000, |cases| cases.parse().expect("FUZZ_CASES is a number"));
    let mut ended = 0;
    for seed in 0..cases {
        let links = [Link::new(10.0, 25), Link::new(10.0, 10)];
        let source_symbols = FORMS[seed as usize % FORMS.len()];
        let schemes = (seed % 4 != 0).then(|| Schemes { source_symbols, ..schemes(Code::RLC, 3, 2) });
        let direction = if seed % 4 < 2 { Direction::Download } else { Direction::Upload };
        let setting = Setting { seed, direction, ..Setting::over(&links, 60_000, schemes) };
        let change = move |n, payload: &mut BytesMut| match content::word(seed, 100 + n) % 16 {
            0 => any_frames(content::word(seed, n), payload),
            1 => any_frame_of_paths(content::word(seed, n), payload),
            _ => {}
        };
        let outcome = attacked(&setting, seed, change);
        let stuck = outcome.dct.as_ref().is_err_and(|why| why.contains("within an hour"));
        assert!(!stuck, "seed {seed}: {outcome:?}");
        ended += u64::from(outcome.dct.is_err());
    }
    assert!((cases / 15..cases).contains(&ended), "{ended} of {cases} connections ended");
}

#[test]
fn whatever_a_peer_sends_the_connection_ends_or_goes_on() {
    let cases = std::env::var("FUZZ_CASES").map_or(1500, |cases| cases.parse().expect("FUZZ_CASES is a number"));
    let mut ended = 0;
    for seed in 0..cases {
        let codes = [Code::Xor, Code::ReedSolomon, Code::RLC, Code::Vandermonde];
        let code = codes[seed as usize % codes.len()];
        let schemes = Schemes { source_symbols: FORMS[seed as usize % FORMS.len()], ..schemes(code, 3, 2) };
        let setting = Setting { seed, ..Setting::download(20_000, Some(schemes)) };
        let change = move |n, payload: &mut BytesMut| {
            if content::word(seed, 100 + n).is_multiple_of(4) {
                any_frames(content::word(seed, n), payload);
            }
        };
        let outcome = attacked(&setting, seed, change);
        ended += u64::from(outcome.dct.is_err());
    }
    // Neither all nor none: the attack got past the first check, and met one.
    assert!((cases / 15..cases).contains(&ended), "{ended} of {cases} connections ended");
}

/// The client's packets of a flood that lasts less than half a round-trip time. Each of these takes the place of a long one.
fn flooded(packets: impl Iterator<Item = Vec<u8>> + Clone + Send + 'static) -> Outcome {
    let setting = Setting {
        bandwidth_mbps: 10_000.0,
        queue_bdp: DEEP_QUEUE,
        congestion_control: CongestionControl::None,
        ..Setting::download(10_000_000, Some(schemes(Code::Xor, 21, 20)))
    };
    let mut packets = packets;
    let change = move |_, payload: &mut BytesMut| {
        if payload.len() >= FULL - 100 {
            payload.clear();
            payload.extend_from_slice(&packets.next().unwrap_or(PING.to_vec()));
        }
    };
    attacked(&setting, 0, change)
}

/// A packet of STREAM frames with a byte each: from an offset on, every so many bytes.
fn pieces(stream: u8, from: u64, gap: u64) -> Vec<u8> {
    (0..FULL as u64 / 6).flat_map(|n| [&[STREAM, stream][..], &two(from + gap * n), &[1, 7]].concat()).collect()
}

/// A connection pays for each byte that came, and may have some in advance.
fn assert_work_is_paid(outcome: &Outcome) {
    let paid = (1 << 18) + 32 * outcome.costs[0].bytes;
    assert!(outcome.client.comparisons <= paid, "{} comparisons, {paid} were paid", outcome.client.comparisons);
}

/// Each of four such packets took two seconds.
#[test]
fn frames_that_repeat_nothing_are_not_compared_with_all_that_was_recovered() {
    let empty = [0x0a, 0, 0].repeat(FULL / 3);
    let symbols = (0..4000).map({
        let empty = empty.clone();
        move |sid| [&repair_alone(sid)[..], &empty].concat()
    });
    let outcome = flooded(symbols.chain(std::iter::repeat_n(empty, 100)));
    assert_eq!(outcome.client.recovered, 4000);
    assert_work_is_paid(&outcome);
}

#[test]
fn no_more_is_compared_than_a_peer_has_paid_for_in_bytes() {
    // All that is recovered brings a byte, and nothing of it is repeated.
    let symbol = |sid, more: &[u8]| [&repair_alone(sid)[..], &[STREAM, 0], &two(1000 + sid), &[1, 7], more].concat();
    let (many, few) = (pieces(0, 1, 2), pieces(0, 10_000, 2));
    let symbols = (0..4000).map(move |sid| symbol(sid, if sid < 2000 { &many } else { &[] }));
    let (long, short) = (std::iter::repeat_n(few.clone(), 500), std::iter::repeat_n(few[..6].to_vec(), 500));
    let outcome = flooded(symbols.chain(long).chain(short));
    assert_eq!(outcome.client.recovered, 4000);
    assert!(outcome.client.comparisons_forgone > 0, "{outcome:?}");
    assert_work_is_paid(&outcome);
}

#[test]
fn whether_much_was_there_is_not_sought_in_all_that_waits_to_be_read() {
    // Thousands of pieces that cannot be read, and symbols of the last ones.
    let waiting = (0..35).map(|n| pieces(0, 1 + 400 * n, 2));
    let symbols = (0..1000).map(|sid| [&repair_alone(sid)[..], &pieces(0, 1 + 400 * 34, 2)].concat());
    let outcome = flooded(waiting.chain(symbols));
    assert_eq!(outcome.client.recovered, 1000);
    assert!(outcome.client.comparisons_forgone > 0, "{outcome:?}");
    assert_work_is_paid(&outcome);
}

/// Repair symbols of a byte over two unknown symbols each, and then a long one that all are.
#[test]
fn short_repair_symbols_do_not_yield_more_bytes_than_came() {
    let rounds = (0..200).flat_map(|round| {
        let first = 38 * round;
        let short = (first..first + 36).map(|sid| [&REPAIR[..], &two(sid), &[2, 1, 0, 0, 0, 0]].concat());
        short.chain([[&SOURCE_SYMBOL[..], &two(first + 36), &pieces(0, 1, 2)].concat()])
    });
    let outcome = flooded(rounds);
    let bytes = FULL as u64 * (outcome.client.recovered - outcome.client.recovered_unpaid);
    assert!(outcome.client.recovered_unpaid > 0, "{outcome:?}");
    assert!(bytes <= (1 << 16) + outcome.costs[0].bytes, "{bytes} were recovered: {outcome:?}");
}
