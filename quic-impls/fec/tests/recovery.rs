//! Whatever a code can recover of what was erased is recovered, and is what was sent.

use bytes::Bytes;
use fec::{Block, Code, Context, Controller, Decoder, Encoder, SlidingWindow};

const END_OF_DATA: Context = Context { app_limited: true };
const MORE_DATA: Context = Context { app_limited: false };

/// Symbol `sid` of a transfer: some bytes that tell it from others, none of them 0.
fn symbol(sid: u64) -> Vec<u8> {
    (0..20 + sid % 7).map(|place| ((sid * 37 + place * 11) % 255 + 1) as u8).collect()
}

fn encoder(code: Code, controller: impl Controller + 'static) -> Encoder {
    let mut encoder = Encoder::new(code, Box::new(controller));
    encoder.set_window(255);
    encoder
}

/// Every repair payload that the encoder wants sent now.
fn repairs(encoder: &mut Encoder, context: &Context) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    while encoder.wants_repair(context) {
        let mut payload = Vec::new();
        assert!(encoder.repair(context, &mut payload), "an encoder that wants a repair symbol makes one");
        payloads.push(payload);
    }
    assert!(!encoder.repair(context, &mut Vec::new()), "an encoder that wants no repair symbol makes none");
    payloads
}

#[track_caller]
fn assert_is_symbol(sid: u64, recovered: &Bytes) {
    let sent = symbol(sid);
    assert_eq!(recovered[..sent.len()], sent, "symbol {sid}");
    assert!(recovered[sent.len()..].iter().all(|padding| *padding == 0), "padding of symbol {sid}");
}

#[test]
fn xor_recovers_any_one_symbol_of_each_interleaved_block() {
    for (k, interleave) in [(1, 1), (4, 1), (4, 2), (2, 10), (20, 3)] {
        for erased in 0..k {
            let mut encoder = encoder(Code::Xor, Block::new(Code::Xor, k + 1, k, interleave).unwrap());
            let mut decoder = Decoder::new(Code::Xor, k * interleave, 100);
            let mut recovered = Vec::new();
            for sid in 0..3 * (k * interleave) as u64 {
                assert_eq!(encoder.protect(&symbol(sid)), sid);
                if sid as usize / interleave % k != erased {
                    recovered.extend(decoder.source(sid, symbol(sid).into()).unwrap());
                }
                for payload in repairs(&mut encoder, &MORE_DATA) {
                    recovered.extend(decoder.repair(&payload).unwrap());
                }
            }
            assert_eq!(recovered.len(), 3 * interleave);
            for (sid, symbol) in recovered {
                assert_eq!(sid as usize / interleave % k, erased);
                assert_is_symbol(sid, &symbol);
            }
        }
    }
}

#[test]
fn a_response_of_one_symbol_is_protected_at_once() {
    for (code, controller) in [
        (Code::Xor, Box::new(Block::new(Code::Xor, 21, 20, 1).unwrap()) as Box<dyn Controller>),
        (Code::ReedSolomon, Box::new(Block::new(Code::ReedSolomon, 30, 20, 1).unwrap())),
        (Code::RLC, Box::new(SlidingWindow::constant(Code::RLC, 3, 2, 20).unwrap())),
        (Code::Tetrys, Box::new(SlidingWindow::tail(Code::Tetrys, 3, 2, 20).unwrap())),
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
