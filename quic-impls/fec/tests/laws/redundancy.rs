//! Laws of redundancy: how many repair symbols there are, when, and over which source symbols.

use fec::{Block, Code, Context, Controller, Decoder, MAX_HEADER, Protected, SlidingWindow};
use proptest::prelude::*;

use crate::transfer::{CODES, END_OF_DATA, MORE_DATA, encoder, repairs, symbol};

/// Returns what the controller has protected now, as lists of SIDs.
fn protected(controller: &mut impl Controller, context: &Context) -> Vec<Vec<u64>> {
    let mut sets = Vec::new();
    while controller.wants_repair(context) {
        let peeked = controller.peek_repair(context);
        let set: Protected = controller.next_repair(context).expect("a wanted repair symbol is made");
        assert_eq!(peeked, Some(set));
        sets.push(set.sids().collect());
    }
    assert_eq!(controller.peek_repair(context), None);
    sets
}

#[test]
fn a_convolutional_code_3_2_4_is_that_of_figure_2_of_networking_2019() {
    let mut controller = SlidingWindow::constant(Code::RLC, 3, 2, 4).unwrap();
    controller.on_window(20);
    let mut sets = Vec::new();
    for sid in 0..8 {
        controller.on_sent(sid);
        sets.push(protected(&mut controller, &MORE_DATA));
    }
    let expected: [Vec<Vec<u64>>; 8] = [
        vec![],
        vec![vec![0, 1]],
        vec![],
        vec![vec![0, 1, 2, 3]],
        vec![],
        vec![vec![2, 3, 4, 5]],
        vec![],
        vec![vec![4, 5, 6, 7]],
    ];
    assert_eq!(sets, expected);
    assert!(!controller.wants_repair(&END_OF_DATA), "all had their share");
}

#[test]
fn an_interleaved_block_code_5_4_is_that_of_figure_4_2_of_the_thesis() {
    let mut controller = Block::new(Code::Xor, 5, 4, 2).unwrap();
    controller.on_window(20);
    for sid in 0..6 {
        controller.on_sent(sid);
        assert!(!controller.wants_repair(&MORE_DATA), "after symbol {sid}");
    }
    controller.on_sent(6);
    assert_eq!(protected(&mut controller, &MORE_DATA), [[0, 2, 4, 6]]);
    controller.on_sent(7);
    assert_eq!(protected(&mut controller, &MORE_DATA), [[1, 3, 5, 7]]);
    assert!(!controller.wants_repair(&END_OF_DATA));
}

#[test]
fn open_blocks_end_with_the_data_and_get_their_share_rounded_up() {
    let mut controller = Block::new(Code::ReedSolomon, 30, 20, 2).unwrap();
    controller.on_window(255);
    for sid in 0..5 {
        controller.on_sent(sid);
    }
    let (even, odd) = (vec![0, 2, 4], vec![1, 3]);
    assert_eq!(protected(&mut controller, &END_OF_DATA), [even.clone(), even, odd]);
    controller.on_sent(5);
    assert_eq!(protected(&mut controller, &END_OF_DATA), [[5]], "new blocks begin after the end of data");
}

#[test]
fn a_tail_waits_for_the_end_of_data_and_then_protects_each_symbol_once() {
    let mut controller = SlidingWindow::tail(Code::RLC, 3, 2, 10).unwrap();
    controller.on_window(20);
    for sid in 0..30 {
        controller.on_sent(sid);
        assert!(!controller.wants_repair(&MORE_DATA));
    }
    let window: Vec<u64> = (20..30).collect();
    assert_eq!(protected(&mut controller, &END_OF_DATA), vec![window; 5], "half as many as the last 10");
    assert!(!controller.wants_repair(&END_OF_DATA));
    controller.on_sent(30);
    assert_eq!(protected(&mut controller, &END_OF_DATA), [(21..31).collect::<Vec<_>>()]);
}

#[test]
fn a_window_begins_with_a_symbol_that_the_receiver_lacks() {
    let mut controller = SlidingWindow::constant(Code::RLC, 2, 1, 10).unwrap();
    controller.on_window(20);
    for sid in 0..10 {
        controller.on_sent(sid);
        protected(&mut controller, &MORE_DATA);
    }
    controller.on_acked(1);
    controller.on_acked(3);
    controller.on_sent(10);
    assert_eq!(protected(&mut controller, &MORE_DATA), [(2..11).collect::<Vec<_>>()], "0 left by itself, 1 landed");
    controller.on_recovered(2);
    controller.on_sent(11);
    assert_eq!(protected(&mut controller, &MORE_DATA), [(4..12).collect::<Vec<_>>()]);
    (4..12).for_each(|sid| controller.on_acked(sid));
    assert!(!controller.wants_repair(&END_OF_DATA), "nothing is missing");
}

#[test]
fn a_whole_window_is_the_last_symbols_whatever_the_receiver_has() {
    let mut controller = SlidingWindow::constant(Code::RLC, 3, 2, 4).unwrap().whole();
    controller.on_window(20);
    for sid in 0..20 {
        controller.on_sent(sid);
        controller.on_acked(sid);
        controller.on_recovered(sid);
        let due = if sid % 2 == 0 { vec![] } else { vec![(sid.saturating_sub(3)..=sid).collect::<Vec<_>>()] };
        assert_eq!(protected(&mut controller, &MORE_DATA), due, "Networking 2019, Fig. 2: after symbol {sid}");
    }
}

#[test]
fn an_encoder_that_was_long_not_asked_protects_what_it_still_has() {
    for count in 1..600u64 {
        let mut encoder = encoder(Code::ReedSolomon, Box::new(Block::new(Code::ReedSolomon, 4, 2, 3).unwrap()));
        (0..count).for_each(|sid| assert_eq!(encoder.protect(&symbol(sid)), sid));
        let mut decoder = Decoder::new(Code::ReedSolomon, 255, 26);
        let payloads = repairs(&mut encoder, &END_OF_DATA);
        let recovered = payloads.iter().flat_map(|payload| decoder.repair(payload).unwrap()).count() as u64;
        assert!(recovered >= count.min(250), "{recovered} of {count}");
    }
}

#[test]
fn a_window_that_is_long_not_asked_owes_no_more_than_a_whole_one_and_counts_the_rest() {
    let mut controller = SlidingWindow::constant(Code::RLC, 3, 2, 10).unwrap().whole();
    controller.on_window(20);
    for sid in 0..100 {
        controller.on_sent(sid);
    }
    assert_eq!(protected(&mut controller, &MORE_DATA).len(), 5);
    assert_eq!(controller.given_up(), 45);
}

#[test]
fn blocks_that_an_encoder_has_forgotten_count_as_given_up() {
    let mut controller = Block::new(Code::ReedSolomon, 6, 4, 1).unwrap();
    controller.on_window(20);
    for sid in 0..400 {
        controller.on_sent(sid);
    }
    let sent = protected(&mut controller, &MORE_DATA).len() as u64;
    assert_eq!(sent + controller.given_up(), 200);
    assert!((120..=130).contains(&sent), "{sent} of the last 255 symbols");
}

#[test]
fn a_receiver_without_a_window_gets_no_repair_symbol() {
    for code in CODES {
        let controllers: [Box<dyn Controller>; 3] = [
            Box::new(Block::new(code, 5, 4, 1).unwrap()),
            Box::new(SlidingWindow::constant(code, 3, 2, 20).unwrap()),
            Box::new(SlidingWindow::tail(code, 3, 2, 20).unwrap()),
        ];
        for mut controller in controllers {
            for sid in 0..100 {
                controller.on_sent(sid);
                assert!(!controller.wants_repair(&END_OF_DATA), "{controller:?}");
            }
            controller.on_window(20);
            controller.on_sent(100);
            let set = controller.next_repair(&END_OF_DATA).expect("a receiver with a window");
            assert_eq!((set.last(), set.span()), (100, 1), "{controller:?}");
        }
    }
}

#[test]
fn wrong_parameters_are_refused_in_one_line_that_names_them() {
    let refusals = [
        Block::new(Code::Xor, 4, 4, 1).map(drop),
        Block::new(Code::Xor, 5, 0, 1).map(drop),
        Block::new(Code::Xor, 6, 4, 1).map(drop),
        Block::new(Code::ReedSolomon, 257, 200, 1).map(drop),
        Block::new(Code::ReedSolomon, 30, 20, 13).map(drop),
        Block::new(Code::ReedSolomon, 30, 20, 0).map(drop),
        Block::new(Code::ReedSolomon, usize::MAX, usize::MAX - 1, 2).map(drop),
        SlidingWindow::constant(Code::RLC, 3, 2, 1).map(drop),
        SlidingWindow::constant(Code::RLC, 3, 2, 256).map(drop),
        SlidingWindow::constant(Code::Xor, 4, 2, 20).map(drop),
        SlidingWindow::tail(Code::RLC, 3, 2, 0).map(drop),
    ];
    let lines = refusals.map(|refused| refused.expect_err("wrong parameters").to_string());
    for line in &lines {
        assert!(line.contains("must be") || line.contains("at most"), "{line}");
        assert_eq!(line.lines().count(), 1);
    }
    assert_eq!(lines[2], "n = 6 with k = 4: this code has at most n = 5");
}

/// An event at a sender.
#[derive(Clone, Debug)]
enum Event {
    Protect,
    Acked(u64),
    Lost(u64),
    Recovered(u64),
    Window(usize),
    Repairs(bool),
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        10 => Just(Event::Protect),
        3 => (0..300u64).prop_map(Event::Acked),
        1 => (0..300u64).prop_map(Event::Lost),
        1 => (0..300u64).prop_map(Event::Recovered),
        1 => (0..=300usize).prop_map(Event::Window),
        5 => any::<bool>().prop_map(Event::Repairs),
    ]
}

proptest! {
    /// Whatever an encoder is told, it never wants what it cannot make, and never exceeds the receiver's window.
    #[test]
    fn a_decoder_accepts_every_repair_symbol_that_fits_its_window(
        code in prop::sample::select(&CODES[..]),
        (k, interleave, length) in (1..8usize, 1..8usize, 8..=255usize),
        kind in 0..3,
        events in prop::collection::vec(any_event(), 1..800),
    ) {
        let n = k + 1;
        let mut encoder = match kind {
            0 => encoder(code, Box::new(Block::new(code, n, k, interleave).unwrap())),
            1 => encoder(code, Box::new(SlidingWindow::constant(code, n, k, length).unwrap())),
            _ => encoder(code, Box::new(SlidingWindow::tail(code, n, k, length).unwrap())),
        };
        let mut window = 255;
        for event in events {
            match event {
                Event::Protect => {
                    let sid = encoder.next_sid();
                    prop_assert_eq!(encoder.protect(&symbol(sid)), sid);
                }
                Event::Acked(sid) => encoder.acked(sid),
                Event::Lost(sid) => encoder.lost(sid),
                Event::Recovered(sid) => encoder.recovered(sid),
                Event::Window(announced) => {
                    window = announced;
                    encoder.set_window(window);
                }
                Event::Repairs(is_idle) => {
                    let context = if is_idle { END_OF_DATA } else { MORE_DATA };
                    let payloads = repairs(&mut encoder, &context);
                    prop_assert!(window > 0 || payloads.is_empty());
                    for payload in payloads {
                        prop_assert!(payload.len() <= MAX_HEADER + 26);
                        let mut decoder = Decoder::new(code, window.min(255), 26);
                        prop_assert!(decoder.repair(&payload).is_ok(), "{:?}", decoder.repair(&payload));
                    }
                }
            }
        }
    }

    #[test]
    fn a_constant_code_sends_its_share_of_repair_symbols(
        (k, extra, length) in (1..20usize, 1..10usize, 20..100usize),
        interleave in 1..10usize,
        count in 1..500usize,
    ) {
        let block = Block::new(Code::ReedSolomon, k + extra, k, interleave).unwrap();
        let window = SlidingWindow::constant(Code::RLC, k + extra, k, length).unwrap();
        // Rounded up once for each block that the end of data finds open.
        for (mut encoder, rounded) in [(encoder(Code::ReedSolomon, Box::new(block)), interleave), (encoder(Code::RLC, Box::new(window)), 1)] {
            let mut sent = 0;
            for sid in 0..count as u64 {
                encoder.protect(&symbol(sid));
                sent += repairs(&mut encoder, &MORE_DATA).len();
                prop_assert!(sent * k <= (sid as usize + 1) * extra);
            }
            sent += repairs(&mut encoder, &END_OF_DATA).len();
            prop_assert!(sent * k >= count * extra);
            prop_assert!(sent * k < count * extra + rounded * k);
        }
    }
}
