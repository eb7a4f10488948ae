//! Frames that a peer must not send, at either side: the connection ends with the right error or goes on, and never
//! panics. What a victim decrypts is replaced, so that its peer seems to have sent it.

mod world;

use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use fec::Code;
use host::contract::{Direction, Role};
use noq_fec::content;
use world::decrypted::{self, REPAIR, SOURCE_SYMBOL};
use world::{Link, Setting, schemes};

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
    let cases: [(&str, Vec<u8>, &str); 6] = [
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
    for frame in [&REPAIR[..], &SOURCE_SYMBOL, &SYMBOL_ACK, &FEC_WINDOW] {
        both(|victim| {
            let why = receiving(&[frame, &[0, 0, 0, 0]].concat(), victim, &plain).unwrap_err();
            assert!(why.contains("FEC was not announced"), "{why}");
        });
    }
}

/// Frames that a seed makes up: FEC frames with any content, and cuts and changes of what was there.
fn any_frames(seed: u64, payload: &mut BytesMut) {
    let draw = |j, below: u64| content::word(seed, j) % below;
    let mut bytes = vec![0; draw(1, 40) as usize];
    content::fill(seed, 8, &mut bytes);
    // Small numbers are likelier to mean something.
    for byte in bytes.iter_mut().step_by(2) {
        *byte &= 0x3f;
    }
    let rest = payload.split();
    match draw(0, 8) {
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
        _ => {
            // A symbol of the peer's, with a number of our own: what is recovered with it is wrong.
            payload.extend_from_slice(&[&SOURCE_SYMBOL[..], &[draw(5, 60) as u8], &bytes].concat());
        }
    }
    if payload.is_empty() {
        payload.extend_from_slice(&PING);
    }
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

#[test]
fn whatever_a_peer_sends_over_two_paths_the_connection_ends_or_goes_on() {
    let cases = std::env::var("FUZZ_CASES").map_or(1000, |cases| cases.parse().expect("FUZZ_CASES is a number"));
    let mut ended = 0;
    for seed in 0..cases {
        let links = [Link::new(10.0, 25), Link::new(10.0, 10)];
        let schemes = (seed % 3 != 0).then(|| schemes(Code::RLC, 3, 2));
        let direction = if seed % 4 < 2 { Direction::Download } else { Direction::Upload };
        let setting = Setting { seed, direction, ..Setting::over(&links, 60_000, schemes) };
        let change = move |n, payload: &mut BytesMut| match content::word(seed, 100 + n) % 16 {
            0 => any_frames(content::word(seed, n), payload),
            1 => any_frame_of_paths(content::word(seed, n), payload),
            _ => {}
        };
        let victim = if seed % 2 == 0 { Role::Client } else { Role::Server };
        let outcome = decrypted::changed(&setting, victim, Arc::new(Mutex::new(change)));
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
        let setting = Setting { seed, ..Setting::download(20_000, Some(schemes(code, 3, 2))) };
        let change = move |n, payload: &mut BytesMut| {
            if content::word(seed, 100 + n).is_multiple_of(4) {
                any_frames(content::word(seed, n), payload);
            }
        };
        let victim = if seed % 2 == 0 { Role::Client } else { Role::Server };
        let outcome = decrypted::changed(&setting, victim, Arc::new(Mutex::new(change)));
        ended += u64::from(outcome.dct.is_err());
    }
    // Neither all nor none: the attack got past the first check, and met one.
    assert!((cases / 15..cases).contains(&ended), "{ended} of {cases} connections ended");
}
