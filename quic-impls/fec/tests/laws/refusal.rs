//! Forbidden messages of a peer are refused, for the true reason.

use bytes::Bytes;
use fec::{Code, Decoder, Malformed, SID_LIMIT};

/// A repair payload with a header of our choice and a symbol of `length` bytes.
fn payload(first: u8, count: u8, stride: u8, key: u16, density: u8, length: usize) -> Vec<u8> {
    let [key_high, key_low] = key.to_be_bytes();
    [vec![first, count, stride, key_high, key_low, density], vec![7; length]].concat()
}

fn refusal(code: Code, window: usize, payload: &[u8]) -> Option<Malformed> {
    Decoder::new(code, window, 30).repair(payload).err()
}

#[test]
fn a_repair_payload_without_a_symbol_is_truncated() {
    assert_eq!(refusal(Code::Xor, 8, &[]), Some(Malformed::Truncated));
    assert_eq!(refusal(Code::Xor, 8, &payload(0, 2, 1, 0, 0, 0)), Some(Malformed::Truncated));
    assert_eq!(refusal(Code::Xor, 8, &payload(0, 2, 1, 0, 0, 1)), None);
}

#[test]
fn a_repair_symbol_over_no_or_impossible_symbols_is_refused() {
    for (count, stride) in [(0, 1), (2, 0), (255, 2), (3, 255)] {
        assert_eq!(refusal(Code::Xor, 255, &payload(0, count, stride, 0, 0, 9)), Some(Malformed::Protected));
    }
}

#[test]
fn a_repair_symbol_that_spans_more_than_the_announced_window_is_refused() {
    for (count, stride, span) in [(8, 1, 8), (4, 3, 10), (255, 1, 255)] {
        assert_eq!(refusal(Code::RLC, span - 1, &payload(0, count, stride, 0, 15, 9)), Some(Malformed::Window));
        assert_eq!(refusal(Code::RLC, span, &payload(0, count, stride, 0, 15, 9)), None);
    }
}

#[test]
fn keys_and_densities_that_a_code_does_not_have_are_refused() {
    for (code, key, density) in [
        (Code::Xor, 1, 0),
        (Code::Xor, 0, 1),
        (Code::ReedSolomon, 56, 0),
        (Code::ReedSolomon, 0, 15),
        (Code::RLC, 0, 16),
        (Code::Vandermonde, 65535, 0),
        (Code::Vandermonde, 0, 15),
    ] {
        let refused = refusal(code, 255, &payload(0, 200, 1, key, density, 9));
        assert_eq!(refused, Some(Malformed::Key), "{code:?}, {key}, {density}");
    }
    for (code, key, density) in [
        (Code::ReedSolomon, 55, 0),
        (Code::RLC, 65535, 0),
        (Code::Rlc { density: 3 }, 0, 15),
        (Code::Vandermonde, 65534, 0),
    ] {
        assert_eq!(refusal(code, 255, &payload(0, 200, 1, key, density, 9)), None, "{code:?}, {key}, {density}");
    }
}

#[test]
fn symbols_longer_than_agreed_are_refused() {
    assert_eq!(refusal(Code::Xor, 8, &payload(0, 2, 1, 0, 0, 31)), Some(Malformed::Length));
    assert_eq!(refusal(Code::Xor, 8, &payload(0, 2, 1, 0, 0, 30)), None);
    let mut decoder = Decoder::new(Code::Xor, 8, 30);
    assert_eq!(decoder.source(0, Bytes::from(vec![7; 31])), Err(Malformed::Length));
    assert_eq!(decoder.source(0, Bytes::from(vec![7; 30])), Ok(vec![]));
}

#[test]
fn source_symbols_with_sids_that_do_not_exist_are_refused() {
    let mut decoder = Decoder::new(Code::Xor, 8, 30);
    assert_eq!(decoder.source(SID_LIMIT, Bytes::new()), Err(Malformed::Sid));
    assert_eq!(decoder.source(u64::MAX, Bytes::new()), Err(Malformed::Sid));
    assert_eq!(decoder.source(SID_LIMIT - 1, Bytes::new()), Ok(vec![]));
}

#[test]
#[should_panic(expected = "window of 256: must be 1 to 255")]
fn a_decoder_announces_no_window_that_no_repair_symbol_spans() {
    let _ = Decoder::new(Code::Xor, 256, 30);
}
