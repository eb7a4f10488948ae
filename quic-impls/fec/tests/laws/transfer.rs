//! Symbols and transfers for all tests.

use fec::{Code, Context, Controller, Encoder};

pub const END_OF_DATA: Context = Context::END_OF_DATA;
pub const MORE_DATA: Context = Context::MORE_DATA;

pub const CODES: [Code; 5] = [Code::Xor, Code::ReedSolomon, Code::RLC, Code::Rlc { density: 4 }, Code::Vandermonde];

/// Source symbol `sid` of a transfer: up to 26 bytes, none of them 0, unlike those of the symbols around it.
pub fn symbol(sid: u64) -> Vec<u8> {
    (0..20 + sid % 7).map(|place| ((sid * 37 + place * 11) % 255 + 1) as u8).collect()
}

/// An encoder whose receiver takes the widest spans.
pub fn encoder(code: Code, controller: Box<dyn Controller>) -> Encoder {
    let mut encoder = Encoder::new(code, controller);
    encoder.set_window(255);
    encoder
}

/// Returns every repair payload that the encoder wants sent now.
pub fn repairs(encoder: &mut Encoder, context: &Context) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    while encoder.wants_repair(context) {
        let mut payload = Vec::new();
        assert!(encoder.repair(context, &mut payload), "an encoder that wants a repair symbol makes one");
        payloads.push(payload);
    }
    assert!(!encoder.repair(context, &mut Vec::new()), "an encoder that wants no repair symbol makes none");
    payloads
}
