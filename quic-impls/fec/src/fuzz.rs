//! Laws that hold for whatever bytes: of a decoder under what any peer may send, and of a transfer under any losses.
//!
//! An input is a script: of choices first, then of steps, an opcode with its operands each, until the bytes end. `fuzz/` lets a
//! fuzzer write scripts, guided by coverage. `corpus/` has those worth keeping, each named by what it does, for each law.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use crate::decoder::{CREDIT, PAID_BY_BYTE};
use crate::kernel::work;
use crate::repair::Header;
use crate::{
    Block, Code, Context, Controller, Deadline, Decoder, Encoder, Kernel, Losses, MAX_SPAN, Malformed, POLICIES,
    Policy, Recovered, Sid, SlidingWindow, Slot,
};

const CODES: [Code; 4] = [Code::Xor, Code::ReedSolomon, Code::RLC, Code::Vandermonde];
/// The longest symbols of a decoder that is attacked: short ones, so that scripts are, or as long as packets are.
const SYMBOL_SIZES: [usize; 2] = [40, 1400];

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

    /// Chooses one of these.
    fn choice<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        Some(of[usize::from(self.byte()?) % of.len()])
    }

    /// Chooses a number from 1 to this.
    fn count(&mut self, most: usize) -> Option<usize> {
        Some(1 + usize::from(self.byte()?) % most)
    }

    /// Takes the bytes that are left, at most `length`.
    fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// No input makes a decoder panic, break its own rules, keep more than it should or do more arithmetic than is paid.
pub fn decoder(script: &[u8]) {
    attack(Script(script));
}

/// `None` when the script has ended.
fn attack(mut script: Script<'_>) -> Option<()> {
    let kind = usize::from(script.byte()?);
    let (code, symbol_size) = (CODES[kind % CODES.len()], SYMBOL_SIZES[kind / CODES.len() % SYMBOL_SIZES.len()]);
    let window = match usize::from(script.byte()?) {
        MAX_SPAN => MAX_SPAN,
        narrow => 1 + narrow % 16,
    };
    let mut decoder = Decoder::new(code, window, symbol_size);
    let mut newest: Sid = 0;
    let mut budget = Budget::new(window, symbol_size);
    loop {
        let before = decoder.clone();
        let arrival = Arrival::parse(&mut script, symbol_size, &mut newest)?;
        let outcome = budget.of(&arrival, || arrival.come(&mut decoder));
        decoder.assert_sound();
        match outcome {
            Ok(recovered) => {
                let acked = |sid: &Sid| decoder.acks().iter().any(|range| range.contains(sid));
                assert!(recovered.iter().all(|(sid, symbol)| acked(sid) && symbol.len() <= symbol_size));
            }
            Err(_) => assert_eq!(format!("{decoder:?}"), format!("{before:?}"), "what is refused changes nothing"),
        }
    }
}

/// The arithmetic that a decoder may do, in bytes that are multiplied and added, as README.md has it. Passes over what is paid that
/// are not counted there are no more than those that are.
struct Budget {
    step: u64,
    left: u64,
}

impl Budget {
    fn new(window: usize, symbol_size: usize) -> Budget {
        let step = (6 * window * symbol_size + 8 * window * window) as u64;
        Budget { step, left: step + 2 * CREDIT as u64 }
    }

    /// Checks the work of an arrival, which pays for itself except for what the decoder grants it.
    fn of<T>(&mut self, arrival: &Arrival, come: impl FnOnce() -> T) -> T {
        let before = work();
        let outcome = come();
        let work = work() - before;
        assert!(work <= self.step, "{work} bytes were added at once, and {} may be", self.step);
        // A source symbol is never ignored.
        let granted = if matches!(arrival, Arrival::Source(..)) { self.step } else { 0 };
        self.left += 2 * PAID_BY_BYTE as u64 * arrival.bytes() as u64 + granted;
        let rest = self.left.checked_sub(work);
        self.left = rest.unwrap_or_else(|| panic!("{work} bytes were added, and {} were paid", self.left));
        outcome
    }
}

/// A message of a peer.
enum Arrival {
    Source(Sid, Bytes),
    Repair(Vec<u8>),
}

impl Arrival {
    fn bytes(&self) -> usize {
        match self {
            Arrival::Source(_, symbol) => symbol.len(),
            Arrival::Repair(payload) => payload.len(),
        }
    }

    fn come(&self, decoder: &mut Decoder) -> Result<Vec<Recovered>, Malformed> {
        match self {
            Arrival::Source(sid, symbol) => decoder.source(*sid, symbol.clone()),
            Arrival::Repair(payload) => decoder.repair(payload),
        }
    }

    /// `None` when the script has ended. `newest` is the last symbol that is near the one before.
    fn parse(script: &mut Script<'_>, symbol_size: usize, newest: &mut Sid) -> Option<Arrival> {
        // A byte more than is legal among them.
        let scale = (symbol_size + 1).div_ceil(255);
        let length = |byte: u8| usize::from(byte) * scale % (symbol_size + 2);
        Some(match script.byte()? % 4 {
            // A source symbol near the newest.
            0 => {
                let [ahead, size, content] = script.take()?;
                *newest = newest.saturating_add_signed(i64::from(ahead as i8));
                Arrival::Source(*newest, Bytes::from(vec![content; length(size)]))
            }
            // A source symbol anywhere.
            1 => {
                let sid = Sid::from_be_bytes(script.take()?);
                Arrival::Source(sid, Bytes::copy_from_slice(script.bytes(3)))
            }
            // A repair symbol that begins near the newest source symbol.
            2 => {
                let [behind, count, stride, key_high, key_low, density, size, content] = script.take()?;
                let first = newest.saturating_add_signed(-i64::from(behind as i8)) & ((1 << 62) - 1);
                let mut payload = (first | 3 << 62).to_be_bytes().to_vec();
                payload.extend([count, stride, key_high, key_low, density]);
                payload.resize(payload.len() + length(size), content);
                Arrival::Repair(payload)
            }
            // Any bytes as a repair payload.
            _ => {
                let length = script.byte()?;
                Arrival::Repair(script.bytes(usize::from(length)).to_vec())
            }
        })
    }
}

/// Recovered symbols are those that were sent, padded with zeros, and come once, whatever is lost, late or repeated. A
/// repair symbol over one unknown symbol yields that, unless the sender owes.
pub fn round_trip(script: &[u8]) {
    let mut script = Script(script);
    if let Some(mut transfer) = Transfer::begin(&mut script) {
        while transfer.step(&mut script).is_some() {}
        transfer.decoder.assert_sound();
    }
}

struct Transfer {
    encoder: Encoder,
    decoder: Decoder,
    /// The symbol of each SID.
    sent: Vec<Vec<u8>>,
    /// Packets on their way.
    travelling: Vec<Travelling>,
    /// Symbols that the receiver has, and whether they were recovered.
    known: BTreeMap<Sid, bool>,
    repairs_arrived: usize,
}

enum Travelling {
    Source(Sid),
    Repair(Vec<u8>),
}

impl Transfer {
    fn begin(script: &mut Script<'_>) -> Option<Transfer> {
        let code = script.choice(&CODES)?;
        let controller = Self::controller(code, script)?;
        let kernels = Kernel::all();
        let mut encoder = Encoder::new(code, controller).with_kernel(script.choice(&kernels)?);
        encoder.set_window(MAX_SPAN);
        let decoder = Decoder::new(code, MAX_SPAN, 256).with_kernel(script.choice(&kernels)?);
        let (travelling, known) = (Vec::new(), BTreeMap::new());
        Some(Transfer { encoder, decoder, sent: Vec::new(), travelling, known, repairs_arrived: 0 })
    }

    fn controller(code: Code, script: &mut Script<'_>) -> Option<Box<dyn Controller>> {
        let (kind, k, repairs, length) = (script.byte()? % 13, script.count(40)?, script.count(10)?, script.count(60)?);
        let n = k + if code == Code::Xor { 1 } else { repairs };
        let length = length.max(k);
        let fits = "the code has as many repair symbols";
        let controller: Box<dyn Controller> = match kind {
            0 => Box::new(Block::new(code, n, k, 1 + length % 4).expect(fits)),
            1 => Box::new(SlidingWindow::constant(code, n, k, length).expect(fits)),
            2 => Box::new(SlidingWindow::constant(code, n, k, length).expect(fits).whole()),
            3 => Box::new(SlidingWindow::tail(code, n, k, length).expect(fits)),
            kind => Box::new(SlidingWindow::new(code, length, Self::policy(kind - 4)).expect(fits)),
        };
        Some(controller)
    }

    fn policy(kind: u8) -> Box<dyn Policy> {
        match POLICIES.get(usize::from(kind)) {
            Some((_, make)) => make(),
            None => Box::new(Deadline::new(Duration::from_millis(400))),
        }
    }

    /// `None` when the script has ended.
    fn step(&mut self, script: &mut Script<'_>) -> Option<()> {
        match script.byte()? % 8 {
            // A symbol is sent, and what is due.
            0..=2 => {
                let [length, content] = script.take()?;
                let symbol: Vec<u8> = (0..length).map(|place| content.wrapping_mul(place | 1)).collect();
                self.travelling.push(Travelling::Source(self.encoder.protect(&symbol)));
                self.sent.push(symbol);
                self.send_repairs(&Context::MORE_DATA);
            }
            3 => {
                let [slot, lost, rtt, which] = script.take()?;
                let losses = Losses { arrived: 100, lost: lost.into(), runs: u64::from(lost).div_ceil(2) };
                let slot = [Slot::Idle, Slot::Idle, Slot::Data, Slot::Probe][usize::from(slot) % 4];
                let min_rtt = Duration::from_millis(200);
                let smoothed_rtt = min_rtt + Duration::from_millis(rtt.into());
                let context = Context {
                    slot,
                    now: Duration::from_millis(100 * self.sent.len() as u64),
                    in_flight: 1000 * self.travelling.len() as u64,
                    smoothed_rtt,
                    recent_rtt: smoothed_rtt,
                    min_rtt,
                    rate: 1_000_000,
                    symbol_size: 1000,
                    losses,
                    ..Context::END_OF_DATA
                };
                self.encoder.repair_settled(which.into());
                self.encoder.feedback(&context);
                let wait = self.encoder.pause(&context).unwrap_or_default();
                self.send_repairs(&Context { now: context.now + wait, ..context });
            }
            // One thing arrives, or is lost, or arrives and may arrive again later.
            4..=6 => {
                let [which, fate] = script.take()?;
                if let Some(index) = usize::from(which).checked_rem(self.travelling.len()) {
                    if fate % 3 > 0 {
                        self.arrive(index);
                    }
                    if fate % 3 < 2 {
                        self.travelling.swap_remove(index);
                    }
                }
            }
            // The sender hears of a symbol.
            _ => {
                let sid = Sid::from(script.byte()?);
                match self.known.get(&sid) {
                    Some(true) => self.encoder.recovered(sid),
                    Some(false) => self.encoder.acked(sid),
                    None => self.encoder.lost(sid),
                }
            }
        }
        Some(())
    }

    fn send_repairs(&mut self, context: &Context) {
        while self.encoder.wants_repair(context) {
            let mut payload = Vec::new();
            assert!(self.encoder.repair(context, &mut payload));
            self.travelling.push(Travelling::Repair(payload));
        }
    }

    fn arrive(&mut self, index: usize) {
        match &self.travelling[index] {
            Travelling::Source(sid) => {
                let sid = *sid;
                let symbol = Bytes::copy_from_slice(&self.sent[sid as usize]);
                let recovered = self.decoder.source(sid, symbol).expect("an encoder's symbols are legal");
                self.known.entry(sid).or_insert(false);
                self.learn(recovered);
            }
            Travelling::Repair(payload) => {
                self.repairs_arrived += 1;
                let (header, _) = Header::parse(payload).expect("an encoder's repair symbols are legal");
                let unknown = header.protected.sids().filter(|sid| !self.known.contains_key(sid)).collect::<Vec<_>>();
                let ignored = self.decoder.ignored();
                let recovered = self.decoder.repair(payload).expect("an encoder's repair symbols are legal");
                let is_used = self.decoder.ignored() == ignored && self.is_kept(header.protected.first());
                if let ([one], true) = (&unknown[..], is_used) {
                    assert!(recovered.iter().any(|(sid, _)| sid == one), "{one} was not recovered");
                }
                self.learn(recovered);
            }
        }
    }

    /// Whether the decoder looks back as far for certain.
    fn is_kept(&self, sid: Sid) -> bool {
        sid + MAX_SPAN as Sid >= self.encoder.next_sid()
    }

    fn learn(&mut self, recovered: Vec<Recovered>) {
        for (sid, symbol) in recovered {
            assert_eq!(self.known.insert(sid, true), None, "symbol {sid} was known");
            let (content, padding) = symbol.split_at(self.sent[sid as usize].len());
            assert_eq!(content, self.sent[sid as usize], "symbol {sid}");
            assert!(padding.iter().all(|byte| *byte == 0), "padding of symbol {sid}");
        }
        let recovered = self.known.values().filter(|was_recovered| **was_recovered).count();
        assert!(recovered <= self.repairs_arrived, "{recovered} of {} repair symbols", self.repairs_arrived);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replay(law: fn(&[u8]), name: &str) {
        let folder = format!("{}/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
        let scripts: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!scripts.is_empty(), "{folder} is empty");
        for script in scripts {
            println!("{}", script.display());
            law(&std::fs::read(script).unwrap());
        }
    }

    #[test]
    fn the_corpus_breaks_no_decoder() {
        replay(decoder, "decoder");
    }

    #[test]
    fn the_corpus_breaks_no_round_trip() {
        replay(round_trip, "round_trip");
    }

    /// Scripts that are mostly of well-formed steps, so that decoders come to hold many equations.
    fn plausible_attack() -> impl Strategy<Value = Vec<u8>> {
        let source = (-3..5i8, any::<[u8; 2]>()).prop_map(|(ahead, rest)| vec![0, ahead as u8, rest[0], rest[1]]);
        let repair = (0..16u8, 1..17u8, prop_oneof![8 => Just(1u8), 1 => any::<u8>()], 0..20u8, any::<[u8; 2]>())
            .prop_map(|(behind, count, stride, key, [length, content])| {
                vec![2, behind, count, stride, 0, key, 0, length, content]
            });
        let steps = prop::collection::vec(prop_oneof![source, repair], 0..100);
        (0..8u8, prop_oneof![9 => any::<u8>(), 1 => Just(255)], steps)
            .prop_map(|(kind, window, steps)| [vec![kind, window], steps.concat()].concat())
    }

    /// Repair symbols as long as packets over the widest window, of which each has one more unknown symbol, and then these as empty
    /// source symbols, or more repair symbols of a byte.
    #[test]
    fn no_arithmetic_of_full_windows_is_more_than_is_paid() {
        let repair = |n: u8, size: u8| [2, 0, 255, 1, n, n, 15, size, 7];
        let filled = (0..=255).flat_map(|n| [&[0, 1, 0, 0][..], &repair(n, 233)].concat());
        let sources = (0..255).flat_map(|_| [0, 255, 0, 0]);
        let repairs = (0..4000).flat_map(|n| repair((n % 251) as u8, 167));
        for kind in [6, 7] {
            let begin = [kind, 255].into_iter().chain(filled.clone());
            decoder(&begin.clone().chain(sources.clone()).collect::<Vec<_>>());
            decoder(&begin.chain(repairs.clone()).collect::<Vec<_>>());
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_a_decoder(script in prop::collection::vec(any::<u8>(), 0..2000)) {
            decoder(&script);
        }

        #[test]
        fn no_plausible_peer_breaks_a_decoder(script in plausible_attack()) {
            decoder(&script);
        }

        #[test]
        fn no_bytes_break_a_round_trip(script in prop::collection::vec(any::<u8>(), 0..2000)) {
            round_trip(&script);
        }
    }
}
