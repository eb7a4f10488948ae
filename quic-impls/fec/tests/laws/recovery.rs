//! Every erased symbol that can be recovered is recovered, and equals the one that was sent.

use std::collections::BTreeMap;

use bytes::Bytes;
use fec::field::{inverse, multiply};
use fec::{Block, Code, Controller, Decoder, Encoder, Kernel, Recovered, SlidingWindow};
use proptest::prelude::*;

use crate::transfer::{CODES, END_OF_DATA, MORE_DATA, encoder, repairs, symbol};

/// A message on its way to the receiver.
#[derive(Clone, Debug)]
enum Sent {
    Source(u64, Vec<u8>),
    Repair(Vec<u8>),
}

/// A whole transfer of `symbols`, with the repair symbols where the controller wants them.
fn transfer(mut encoder: Encoder, symbols: impl IntoIterator<Item = Vec<u8>>) -> Vec<Sent> {
    let mut sent = Vec::new();
    for symbol in symbols {
        let sid = encoder.protect(&symbol);
        sent.push(Sent::Source(sid, symbol));
        sent.extend(repairs(&mut encoder, &MORE_DATA).into_iter().map(Sent::Repair));
    }
    sent.extend(repairs(&mut encoder, &END_OF_DATA).into_iter().map(Sent::Repair));
    sent
}

fn receive(decoder: &mut Decoder, arrived: &Sent) -> Vec<Recovered> {
    match arrived {
        Sent::Source(sid, symbol) => decoder.source(*sid, symbol.clone().into()),
        Sent::Repair(payload) => decoder.repair(payload),
    }
    .expect("an encoder sends nothing malformed")
}

#[track_caller]
fn assert_is_symbol(sid: u64, recovered: &Bytes) {
    let sent = symbol(sid);
    assert_eq!(recovered[..sent.len()], sent, "symbol {sid}");
    assert!(recovered[sent.len()..].iter().all(|padding| *padding == 0), "padding of symbol {sid}");
}

/// Returns all ways to take `take` of `0..of`.
fn combinations(of: usize, take: usize) -> Vec<Vec<usize>> {
    if take == 0 {
        return vec![Vec::new()];
    }
    (take - 1..of)
        .flat_map(|last| combinations(last, take - 1).into_iter().map(move |rest| [rest, vec![last]].concat()))
        .collect()
}

#[test]
fn any_k_of_the_n_symbols_of_a_reed_solomon_block_yield_the_block() {
    for n in 2..=11 {
        for k in 1..n {
            let controller = Block::new(Code::ReedSolomon, n, k, 1).unwrap();
            let sent = transfer(encoder(Code::ReedSolomon, Box::new(controller)), (0..k as u64).map(symbol));
            assert_eq!(sent.len(), n);
            for arrived in combinations(n, k) {
                let mut decoder = Decoder::new(Code::ReedSolomon, k, 100);
                let erased = k - arrived.iter().filter(|place| **place < k).count();
                let recovered: Vec<_> = arrived.iter().flat_map(|place| receive(&mut decoder, &sent[*place])).collect();
                assert_eq!(recovered.len(), erased, "({n}, {k}) from {arrived:?}");
                recovered.iter().for_each(|(sid, symbol)| assert_is_symbol(*sid, symbol));
            }
        }
    }
}

#[test]
fn xor_recovers_any_one_symbol_of_each_interleaved_block() {
    for (k, interleave) in [(1, 1), (4, 1), (4, 2), (2, 10), (20, 3)] {
        let controller = || Block::new(Code::Xor, k + 1, k, interleave).unwrap();
        let sent = transfer(encoder(Code::Xor, Box::new(controller())), (0..3 * (k * interleave) as u64).map(symbol));
        for erased in 0..k {
            let is_erased = |sid: u64| sid as usize / interleave % k == erased;
            let mut decoder = Decoder::new(Code::Xor, k * interleave, 100);
            let arrived = sent.iter().filter(|sent| !matches!(sent, Sent::Source(sid, _) if is_erased(*sid)));
            let recovered: Vec<_> = arrived.flat_map(|sent| receive(&mut decoder, sent)).collect();
            assert_eq!(recovered.len(), 3 * interleave);
            for (sid, symbol) in recovered {
                assert!(is_erased(sid));
                assert_is_symbol(sid, &symbol);
            }
        }
    }
}

#[test]
fn a_burst_as_long_as_the_interleaving_is_recovered_by_xor_wherever_it_begins_within_a_group() {
    let (k, interleave) = (4, 5);
    let sent = transfer(
        encoder(Code::Xor, Box::new(Block::new(Code::Xor, k + 1, k, interleave).unwrap())),
        (0..(k * interleave) as u64).map(symbol),
    );
    for first in 0..=(k - 1) * interleave {
        let burst = first as u64..(first + interleave) as u64;
        let mut decoder = Decoder::new(Code::Xor, 20, 100);
        let arrived = sent.iter().filter(|sent| !matches!(sent, Sent::Source(sid, _) if burst.contains(sid)));
        let mut recovered: Vec<u64> =
            arrived.flat_map(|sent| receive(&mut decoder, sent)).map(|(sid, _)| sid).collect();
        recovered.sort_unstable();
        assert_eq!(recovered, burst.collect::<Vec<_>>());
    }
}

#[test]
fn consecutive_vandermonde_symbols_over_a_window_recover_as_many_source_symbols() {
    for erased in combinations(8, 4) {
        let sent = transfer(
            encoder(Code::Vandermonde, Box::new(SlidingWindow::tail(Code::Vandermonde, 12, 8, 8).unwrap())),
            (0..8).map(symbol),
        );
        let mut decoder = Decoder::new(Code::Vandermonde, 8, 100);
        let arrived =
            sent.iter().filter(|sent| !matches!(sent, Sent::Source(sid, _) if erased.contains(&(*sid as usize))));
        let recovered: Vec<_> = arrived.flat_map(|sent| receive(&mut decoder, sent)).collect();
        assert_eq!(recovered.len(), 4, "{erased:?}");
        recovered.iter().for_each(|(sid, symbol)| assert_is_symbol(*sid, symbol));
    }
}

#[test]
fn two_adjacent_losses_are_recovered_from_two_repair_symbols_of_a_window_that_slides() {
    for code in [Code::ReedSolomon, Code::RLC, Code::Vandermonde] {
        for first in 20..40 {
            let controller = SlidingWindow::constant(code, 3, 2, 20).unwrap();
            let sent = transfer(encoder(code, Box::new(controller)), (0..first + 4).map(symbol));
            let mut decoder = Decoder::new(code, 20, 100);
            let is_lost = |sid| (first..first + 2).contains(&sid);
            let arrived = sent.iter().filter(|sent| !matches!(sent, Sent::Source(sid, _) if is_lost(*sid)));
            let recovered: Vec<_> = arrived.flat_map(|sent| receive(&mut decoder, sent)).collect();
            assert_eq!(recovered.len(), 2, "{code:?}: {first} and the next");
            recovered.iter().for_each(|(sid, symbol)| assert_is_symbol(*sid, symbol));
        }
    }
}

/// Four repair symbols, two from each of two tails that share their source symbols.
#[test]
fn reed_solomon_symbols_of_two_tails_recover_as_many_losses_as_they_are() {
    for erased in combinations(8, 4) {
        let mut encoder =
            encoder(Code::ReedSolomon, Box::new(SlidingWindow::tail(Code::ReedSolomon, 6, 4, 20).unwrap()));
        let mut decoder = Decoder::new(Code::ReedSolomon, 20, 100);
        let mut recovered = Vec::new();
        for sid in 0..12 {
            encoder.protect(&symbol(sid));
            if !erased.contains(&(sid as usize)) {
                recovered.extend(decoder.source(sid, symbol(sid).into()).unwrap());
            }
            if sid == 7 || sid == 11 {
                // After 7 the half of what 8 symbols get arrives, after 11 all that 4 more get.
                let payloads = repairs(&mut encoder, &END_OF_DATA);
                let arrived = payloads.iter().take(2);
                recovered.extend(arrived.flat_map(|payload| decoder.repair(payload).unwrap()));
            }
        }
        assert_eq!(recovered.len(), 4, "{erased:?}");
        recovered.iter().for_each(|(sid, symbol)| assert_is_symbol(*sid, symbol));
    }
}

#[test]
fn a_response_of_one_symbol_is_protected_at_once() {
    for (code, controller) in [
        (Code::Xor, Box::new(Block::new(Code::Xor, 21, 20, 1).unwrap()) as Box<dyn Controller>),
        (Code::ReedSolomon, Box::new(Block::new(Code::ReedSolomon, 30, 20, 1).unwrap())),
        (Code::RLC, Box::new(SlidingWindow::constant(Code::RLC, 3, 2, 20).unwrap())),
        (Code::Vandermonde, Box::new(SlidingWindow::tail(Code::Vandermonde, 3, 2, 20).unwrap())),
    ] {
        let mut encoder = Encoder::new(code, controller);
        encoder.set_window(20);
        encoder.protect(&symbol(0));
        assert!(!encoder.wants_repair(&MORE_DATA));
        let payloads = repairs(&mut encoder, &END_OF_DATA);
        assert_eq!(payloads.len(), 1, "{code:?}");
        let recovered = Decoder::new(code, 20, 100).repair(&payloads[0]).unwrap();
        assert_eq!(recovered, [(0, symbol(0).into())], "{code:?}");
    }
}

/// An empty symbol occurs in a packet that has no room for data to protect.
#[test]
fn repair_symbols_over_empty_symbols_are_taken() {
    for code in [Code::Xor, Code::ReedSolomon, Code::RLC, Code::Vandermonde] {
        let controller = Block::new(code, 3, 2, 1).unwrap();
        let sent = transfer(encoder(code, Box::new(controller)), [Vec::new(), Vec::new()]);
        let mut decoder = Decoder::new(code, 2, 100);
        let recovered: Vec<_> = sent[1..].iter().flat_map(|sent| receive(&mut decoder, sent)).collect();
        assert_eq!(recovered, [(0, Bytes::from_static(&[0]))], "{code:?}");
    }
}

#[test]
fn a_symbol_that_arrives_after_its_recovery_changes_nothing() {
    let sent = transfer(encoder(Code::Xor, Box::new(Block::new(Code::Xor, 5, 4, 1).unwrap())), (0..4).map(symbol));
    let mut decoder = Decoder::new(Code::Xor, 4, 100);
    let recovered: Vec<_> = sent[1..].iter().flat_map(|sent| receive(&mut decoder, sent)).collect();
    assert_eq!(recovered.len(), 1);
    assert_eq!(decoder.acks(), [0..=0]);
    for late in &sent {
        assert_eq!(receive(&mut decoder, late), []);
        assert_eq!(decoder.acks(), [0..=0]);
    }
}

#[test]
fn a_symbol_that_is_as_late_as_a_slow_path_counts_if_the_decoder_looks_back_so_far() {
    let code = Code::ReedSolomon;
    let sent = transfer(encoder(code, Box::new(Block::new(code, 6, 4, 1).unwrap())), (0..400).map(symbol));
    // The first block's first two symbols are on the slow path, and its second repair symbol is lost.
    let (slow, rest) = (&sent[..2], &sent[2..]);
    let fast: Vec<_> = rest.iter().enumerate().filter(|(place, _)| *place != 3).map(|(_, arrived)| arrived).collect();
    for (looks_back, recovered, outdated) in [(8, 0, 1), (1024, 1, 0)] {
        let mut decoder = Decoder::new(code, 4, 64).looking_back(looks_back);
        for arrived in &fast {
            assert_eq!(receive(&mut decoder, arrived), []);
        }
        assert_eq!(receive(&mut decoder, &slow[0]).len(), recovered, "looks back over {looks_back}");
        assert_eq!(decoder.outdated(), outdated);
    }
}

#[test]
fn acks_are_ranges_with_the_newest_first_and_go_with_the_window() {
    let mut decoder = Decoder::new(Code::Xor, 5, 100);
    let mut encoder = encoder(Code::Xor, Box::new(Block::new(Code::Xor, 2, 1, 1).unwrap()));
    for sid in 0..10 {
        encoder.protect(&symbol(sid));
        let payload = repairs(&mut encoder, &MORE_DATA).remove(0);
        if [1, 2, 3, 5, 8, 9].contains(&sid) {
            decoder.repair(&payload).unwrap();
        }
    }
    assert_eq!(decoder.acks(), [8..=9, 5..=5, 1..=3]);
    decoder.source(12, Bytes::new()).unwrap();
    assert_eq!(decoder.acks(), [8..=9, 5..=5, 3..=3], "twice the window, from 3 to 12");
}

/// Any controller that the code has enough repair symbols for, with windows and groups of at most 40 symbols.
fn any_controller(code: Code) -> BoxedStrategy<Box<dyn Controller>> {
    let most = if code == Code::Xor { 1 } else { 5usize };
    let block = (1..=10usize, 1..=most, 1..=4usize).prop_map(move |(k, extra, interleave)| {
        Box::new(Block::new(code, k + extra, k, interleave).unwrap()) as Box<dyn Controller>
    });
    let window = (1..=5usize, 1..=most, 5..=40usize, any::<bool>()).prop_map(move |(k, extra, length, steady)| {
        let make = if steady { SlidingWindow::constant } else { SlidingWindow::tail };
        Box::new(make(code, k + extra, k, length).unwrap()) as Box<dyn Controller>
    });
    prop_oneof![block, window].boxed()
}

fn any_code_and_controller() -> impl Strategy<Value = (Code, Box<dyn Controller>)> {
    prop::sample::select(&CODES[..]).prop_flat_map(|code| (Just(code), any_controller(code)))
}

/// Draws for each message whether it is lost, whether it arrives twice, and how late it is.
fn any_journey() -> impl Strategy<Value = Vec<(bool, bool, usize)>> {
    let step = (prop::bool::weighted(0.3), prop::bool::weighted(0.1), prop_oneof![4 => Just(0usize), 1 => 1..40usize]);
    prop::collection::vec(step, 400)
}

fn arrivals(sent: &[Sent], journey: &[(bool, bool, usize)]) -> Vec<Sent> {
    let mut arrivals: Vec<(usize, Sent)> = Vec::new();
    for (place, (sent, (lost, twice, late))) in sent.iter().zip(journey.iter().cycle()).enumerate() {
        if !lost {
            arrivals.push((place + late, sent.clone()));
        }
        if *twice {
            arrivals.push((place + 2 * late, sent.clone()));
        }
    }
    arrivals.sort_by_key(|(arrival, _)| *arrival);
    arrivals.into_iter().map(|(_, sent)| sent).collect()
}

/// The symbols that a system of equations determines, and how, by elimination in the simplest way.
fn determined(mut rows: Vec<Vec<u8>>, unknowns: usize) -> Vec<u64> {
    let mut done = 0;
    for column in 0..unknowns {
        let Some(found) = (done..rows.len()).find(|row| rows[*row][column] != 0) else { continue };
        rows.swap(done, found);
        let scale = inverse(rows[done][column]);
        rows[done].iter_mut().for_each(|each| *each = multiply(*each, scale));
        let pivot = rows[done].clone();
        for (place, row) in rows.iter_mut().enumerate() {
            if place != done {
                let factor = row[column];
                row.iter_mut().zip(&pivot).for_each(|(each, other)| *each ^= multiply(factor, *other));
            }
        }
        done += 1;
    }
    let single = |row: &Vec<u8>| row.iter().filter(|each| **each != 0).count() == 1;
    rows.iter().filter(|row| single(row)).map(|row| row.iter().position(|each| *each != 0).unwrap() as u64).collect()
}

proptest! {
    /// With unit vectors as source symbols, a repair symbol is its own row of coefficients.
    #[test]
    fn a_symbol_is_known_as_soon_as_what_arrived_determines_it(
        (code, controller) in any_code_and_controller(),
        journey in any_journey(),
        count in 1..60usize,
    ) {
        let unit = |sid| (0..count).map(|place| u8::from(place == sid)).collect::<Vec<u8>>();
        let sent = transfer(encoder(code, controller), (0..count).map(unit));
        let mut decoder = Decoder::new(code, 60, count);
        let mut known = BTreeMap::new();
        let mut rows = Vec::new();
        for arrived in arrivals(&sent, &journey) {
            for (sid, symbol) in receive(&mut decoder, &arrived) {
                prop_assert_eq!(known.insert(sid, symbol), None, "symbol {} is recovered twice", sid);
            }
            match arrived {
                Sent::Source(sid, symbol) => {
                    known.entry(sid).or_insert_with(|| symbol.clone().into());
                    rows.push(symbol);
                }
                Sent::Repair(payload) => rows.push(payload[payload.len() - count..].to_vec()),
            }
            prop_assert_eq!(known.keys().copied().collect::<Vec<_>>(), determined(rows.clone(), count));
        }
        for (sid, symbol) in known {
            prop_assert_eq!(symbol.to_vec(), unit(sid as usize));
        }
    }

    #[test]
    fn what_is_recovered_is_what_was_sent_and_no_more_than_was_repaired(
        (code, controller) in any_code_and_controller(),
        journey in any_journey(),
        count in 1..600u64,
        window in 40..=255usize,
    ) {
        let sent = transfer(encoder(code, controller), (0..count).map(symbol));
        let mut decoder = Decoder::new(code, window, 100);
        let (mut repairs, mut recovered) = (0, 0);
        for arrived in arrivals(&sent, &journey) {
            repairs += usize::from(matches!(arrived, Sent::Repair(_)));
            for (sid, symbol) in receive(&mut decoder, &arrived) {
                assert_is_symbol(sid, &symbol);
                recovered += 1;
                prop_assert!(decoder.acks().iter().any(|range| range.contains(&sid)));
            }
            prop_assert!(recovered <= repairs);
        }
    }

    #[test]
    fn all_kernels_send_and_recover_the_same(
        code in prop::sample::select(&CODES[..]),
        k in 1..20usize,
        lost in prop::collection::vec(prop::bool::weighted(0.2), 100),
    ) {
        let seen_with = |kernel| {
            let controller = Block::new(code, k + 1, k, 2).unwrap();
            let sent = transfer(encoder(code, Box::new(controller)).with_kernel(kernel), (0..60).map(symbol));
            let mut decoder = Decoder::new(code, 40, 100).with_kernel(kernel);
            let arrived = sent.iter().zip(lost.iter().cycle()).filter(|(_, lost)| !**lost);
            arrived.flat_map(|(sent, _)| receive(&mut decoder, sent)).collect::<Vec<_>>()
        };
        let portable = seen_with(Kernel::PORTABLE);
        for kernel in Kernel::all() {
            prop_assert_eq!(&seen_with(kernel), &portable);
        }
    }
}
