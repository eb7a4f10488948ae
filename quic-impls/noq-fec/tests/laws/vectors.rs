//! The test vectors of README.md, from what it says of the format and the crate `fec` alone; and a transfer, read in the same way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::world::decrypted::{self, PACKET_REPAIR, Sent};
use crate::world::{Setting, schemes};
use bytes::Bytes;
use fec::{Code, Context, Decoder, Encoder, SlidingWindow};
use host::contract::Role;
use noq_fec::schemes::{Schemes, SourceSymbols};

/// The packets of path 0, from the first frame with data on.
const PACKETS: [(u64, &[u8]); 3] =
    [(7, &[0x0a, 0, 3, b'a', b'b', b'c']), (8, &[0x30, b'd', b'e']), (10, &[0x0e, 0, 3, 1, b'f', 0])];

/// First symbol 5; two ranges of path 0: two packets from 7 on, and packet 10.
const NAMES: [u8; 8] = [5, 2, 0, 7, 2, 0, 10, 1];

fn symbol(frames: &[u8]) -> Vec<u8> {
    [frames, &[0x80]].concat()
}

/// The repair payload of the second repair symbol that is sent, over source symbols 5 to 7.
fn repair_payload(code: Code) -> Vec<u8> {
    let window = SlidingWindow::constant(code, 2, 1, 3).unwrap().whole();
    let mut encoder = Encoder::new(code, Box::new(window));
    encoder.set_window(3);
    let older = (0..5).map(|_| vec![0]);
    let mut payload = Vec::new();
    for source in older.chain(PACKETS.iter().map(|(_, frames)| symbol(frames))) {
        encoder.protect(&source);
    }
    for _ in 0..2 {
        payload.clear();
        assert!(encoder.repair(&Context::MORE_DATA, &mut payload), "{code:?}");
    }
    payload
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_vectors_of_the_readme_are_what_it_describes() {
    let readme = include_str!("../../README.md");
    let rlc = [&NAMES[..], &repair_payload(Code::RLC)].concat();
    let part = |offset: usize, end: usize| {
        let header = [0x4f, 0xec, 9, rlc.len() as u8, offset as u8, (end - offset) as u8];
        hex(&[&header, &rlc[offset..end]].concat())
    };
    let vectors = [
        PACKETS.map(|(_, frames)| hex(frames)).to_vec(),
        vec![
            hex(&symbol(PACKETS[2].1)),
            hex(&[&NAMES[..], &repair_payload(Code::Xor)].concat()),
            hex(&rlc),
            format!("{}`, `{}", part(0, 12), part(12, rlc.len())),
        ],
    ];
    for vector in vectors.concat() {
        assert!(readme.contains(&format!("`{vector}`")), "README.md lacks `{vector}`");
    }
}

/// An integer, and what is behind it.
fn varint(bytes: &mut &[u8]) -> u64 {
    let (integer, rest) = bytes.split_at(1 << (bytes[0] >> 6));
    *bytes = rest;
    integer[1..].iter().fold(u64::from(integer[0] & 0x3f), |value, byte| value << 8 | u64::from(*byte))
}

/// The frames from the first one with data on. Frames before it are skipped: those that a server sends with data.
fn data_of(mut frames: &[u8]) -> Option<&[u8]> {
    loop {
        let all = frames;
        match *frames.first()? {
            0x08..=0x0f | 0x30 | 0x31 => return Some(all),
            _ => {}
        }
        match varint(&mut frames) {
            0 | 1 | 0x1e => {}
            2 => {
                let numbers: Vec<u64> = (0..4).map(|_| varint(&mut frames)).collect();
                (0..2 * numbers[2]).for_each(|_| _ = varint(&mut frames));
            }
            6 => {
                let [_, length] = [(); 2].map(|()| varint(&mut frames));
                frames = &frames[length as usize..];
            }
            7 => {
                let length = varint(&mut frames) as usize;
                frames = &frames[length..];
            }
            0x10 | 0x12 | 0x13 => _ = varint(&mut frames),
            0x11 => (0..2).for_each(|_| _ = varint(&mut frames)),
            0x18 => {
                (0..2).for_each(|_| _ = varint(&mut frames));
                frames = &frames[1 + usize::from(frames[0]) + 16..];
            }
            0x19 => _ = varint(&mut frames),
            _ => return None,
        }
    }
}

/// The parts of a packet with repair symbols: number, length of the whole, offset, and part.
fn parts(mut frames: &[u8]) -> Vec<(u64, u64, u64, Vec<u8>)> {
    let mut parts = Vec::new();
    while frames.starts_with(&PACKET_REPAIR) {
        frames = &frames[2..];
        let [number, length, offset, count] = [(); 4].map(|()| varint(&mut frames));
        let (part, rest) = frames.split_at(count as usize);
        parts.push((number, length, offset, part.to_vec()));
        frames = rest;
    }
    parts
}

/// An end that was built from README.md alone reads the packets of a transfer.
#[test]
fn what_a_transfer_sends_is_what_the_readme_describes() {
    let setting = Setting::download(
        60_000,
        Some(Schemes { source_symbols: SourceSymbols::Implicit, ..schemes(Code::RLC, 6, 5) }),
    );
    let sent = Arc::new(Mutex::new(BTreeMap::new()));
    let seen = sent.clone();
    let watch = move |Sent { number, frames, .. }: Sent| drop(seen.lock().unwrap().insert(number, frames.to_vec()));
    decrypted::watched(&setting, Role::Server, Arc::new(Mutex::new(watch))).dct.unwrap();
    let sent = sent.lock().unwrap();

    let mut symbols: BTreeMap<u64, BTreeMap<u64, Vec<u8>>> = BTreeMap::new();
    for (number, _, offset, part) in sent.values().flat_map(|frames| parts(frames)) {
        symbols.entry(number).or_default().insert(offset, part);
    }
    let mut recovered = 0;
    for parts in symbols.values() {
        let whole = parts.values().flatten().copied().collect::<Vec<u8>>();
        let mut rest = &whole[..];
        let (first, ranges) = (varint(&mut rest), varint(&mut rest));
        let packets = (0..ranges).flat_map(|_| {
            let [path, begin, count] = [(); 3].map(|()| varint(&mut rest));
            assert_eq!(path, 0);
            begin..begin + count
        });
        let packets: Vec<u64> = packets.collect();
        let sources: Vec<Vec<u8>> = packets.iter().map(|number| symbol(data_of(&sent[number]).unwrap())).collect();
        for missing in 0..packets.len() {
            let mut decoder = Decoder::new(Code::RLC, 255, 1500);
            for (place, source) in sources.iter().enumerate().filter(|(place, _)| *place != missing) {
                decoder.source(first + place as u64, Bytes::from(source.clone())).unwrap();
            }
            let [(sid, found)] = &decoder.repair(rest).unwrap()[..] else { panic!("nothing was recovered") };
            assert_eq!(*sid, first + missing as u64);
            let zeros = found.len() - sources[missing].len();
            assert_eq!(found[..], [&sources[missing][..], &vec![0; zeros]].concat());
            recovered += 1;
        }
    }
    assert!(recovered > 50, "{recovered}");
}
