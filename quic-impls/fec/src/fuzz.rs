//! Decoders under whatever a peer may send: no input makes one panic, break its own rules or keep more than it should.
//!
//! An input of any bytes is a script. Its first byte chooses the code, the second the window; then come steps, of an
//! opcode and its operands, until the bytes end. `corpus/` has scripts worth keeping, each named by what it does.

use bytes::Bytes;
use proptest::prelude::*;

use crate::{Code, Decoder, MAX_SPAN, Malformed, Recovered, Sid};

const SYMBOL_SIZE: usize = 40;

struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// As many bytes as there still are, at most `length`.
    fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

fn run(script: &[u8]) -> Option<()> {
    let mut script = Script(script);
    let codes = [Code::Xor, Code::ReedSolomon, Code::RLC, Code::Vandermonde];
    let code = codes[usize::from(script.byte()?) % codes.len()];
    let window = match usize::from(script.byte()?) {
        MAX_SPAN => MAX_SPAN,
        narrow => 1 + narrow % 16,
    };
    let mut decoder = Decoder::new(code, window, SYMBOL_SIZE);
    let mut newest: Sid = 0;
    loop {
        let before = format!("{decoder:?}");
        let outcome = step(&mut script, &mut decoder, &mut newest)?;
        decoder.assert_sound();
        match outcome {
            Ok(recovered) => {
                let acked = |sid: &Sid| decoder.acks().iter().any(|range| range.contains(sid));
                assert!(recovered.iter().all(|(sid, symbol)| acked(sid) && symbol.len() <= SYMBOL_SIZE));
            }
            Err(_) => assert_eq!(format!("{decoder:?}"), before, "what is refused changes nothing"),
        }
    }
}

fn step(script: &mut Script<'_>, decoder: &mut Decoder, newest: &mut Sid) -> Option<Result<Vec<Recovered>, Malformed>> {
    Some(match script.byte()? % 4 {
        // A source symbol near the newest.
        0 => {
            let [ahead, length, content] = script.take()?;
            *newest = newest.saturating_add_signed(i64::from(ahead as i8));
            decoder.source(*newest, Bytes::from(vec![content; usize::from(length) % (SYMBOL_SIZE + 2)]))
        }
        // A source symbol anywhere.
        1 => {
            let sid = Sid::from_be_bytes(script.take()?);
            decoder.source(sid, Bytes::copy_from_slice(script.bytes(3)))
        }
        // A repair symbol that begins near the newest source symbol.
        2 => {
            let [behind, count, stride, key_high, key_low, density, length, content] = script.take()?;
            let first = newest.saturating_add_signed(-i64::from(behind as i8)) & ((1 << 62) - 1);
            let mut payload = (first | 3 << 62).to_be_bytes().to_vec();
            payload.extend([count, stride, key_high, key_low, density]);
            payload.resize(payload.len() + usize::from(length) % (SYMBOL_SIZE + 2), content);
            decoder.repair(&payload)
        }
        // Any bytes as a repair payload.
        _ => {
            let length = script.byte()?;
            decoder.repair(script.bytes(usize::from(length)))
        }
    })
}

#[test]
fn the_corpus_breaks_no_decoder() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
    let scripts: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!scripts.is_empty(), "{folder} is empty");
    for script in scripts {
        println!("{}", script.display());
        run(&std::fs::read(script).unwrap());
    }
}

/// Scripts that are mostly of well-formed steps, so that decoders come to hold many equations.
fn plausible_script() -> impl Strategy<Value = Vec<u8>> {
    let source = (-3..5i8, any::<[u8; 2]>()).prop_map(|(ahead, rest)| vec![0, ahead as u8, rest[0], rest[1]]);
    let repair = (0..16u8, 1..17u8, prop_oneof![8 => Just(1u8), 1 => any::<u8>()], 0..20u8, any::<[u8; 2]>()).prop_map(
        |(behind, count, stride, key, [length, content])| vec![2, behind, count, stride, 0, key, 0, length, content],
    );
    let steps = prop::collection::vec(prop_oneof![source, repair], 0..100);
    (0..4u8, prop_oneof![9 => any::<u8>(), 1 => Just(255)], steps)
        .prop_map(|(code, window, steps)| [vec![code, window], steps.concat()].concat())
}

proptest! {
    #[test]
    fn no_bytes_break_a_decoder(script in prop::collection::vec(any::<u8>(), 0..2000)) {
        run(&script);
    }

    #[test]
    fn no_plausible_peer_breaks_a_decoder(script in plausible_script()) {
        run(&script);
    }
}
