//! Repair above QUIC: repair symbols over the parts of a track, on a track of their own beside it.
//!
//! A source symbol is a part as it is in its datagram, and its number that of the datagram in its track. A repair symbol is a
//! datagram, too: a repair payload of the crate `fec`, whose header names the source symbols. They are the last k of the track,
//! whichever frames they are of. Nobody acknowledges anything: the sender knows of no loss.

use bytes::Bytes;
use fec::{Code, Context, Decoder, Encoder, Sid, SlidingWindow};
use host::live::Rate;

/// Most bytes of a symbol: no packet is longer.
const LONGEST: usize = 1500;

/// Source symbols that a receiver looks back over, at least: datagrams of a moment come track after track.
const LOOK_BACK: usize = 256;

/// A repair symbol that is further ahead of the newest source symbol is ignored: there is no such gap in a track that is alive.
const FURTHEST_AHEAD: Sid = 1024;

/// The name of a track's repair symbols.
pub fn name(track: &str) -> String {
    format!("{track}.repair")
}

/// The sender of repair symbols.
pub struct Repairing(Encoder);

impl Repairing {
    pub fn new(rate: Rate) -> Self {
        let window = SlidingWindow::constant(Code::RLC, rate.n, rate.k, rate.k).expect("a rate has such a window");
        let mut encoder = Encoder::new(Code::RLC, Box::new(window));
        encoder.set_window(rate.k);
        Self(encoder)
    }

    /// Takes in a part, and returns the repair symbols that follow it; after the last of a frame, all of it is protected.
    pub fn protect(&mut self, part: &[u8], is_last: bool) -> Vec<Vec<u8>> {
        self.0.protect(part);
        let context = if is_last { Context::END_OF_DATA } else { Context::MORE_DATA };
        let mut symbols = Vec::new();
        while self.0.wants_repair(&context) {
            let mut payload = Vec::new();
            self.0.repair(&context, &mut payload);
            symbols.push(payload);
        }
        symbols
    }
}

/// The receiver of repair symbols.
pub struct Recovering {
    decoder: Decoder,
    /// The newest source symbol, and one more.
    next: Sid,
    /// Repair symbols received.
    pub received: u64,
    /// Parts recovered.
    pub recovered: u64,
}

impl Recovering {
    pub fn new(rate: Rate) -> Self {
        let decoder = Decoder::new(Code::RLC, rate.k, LONGEST).looking_back(LOOK_BACK.max(2 * rate.k));
        Self { decoder, next: 0, received: 0, recovered: 0 }
    }

    /// Takes in a part, by the number of its datagram, and returns those that are recovered with it.
    pub fn source(&mut self, sid: Sid, part: &Bytes) -> Vec<Bytes> {
        self.next = self.next.max(sid.saturating_add(1));
        let recovered = self.decoder.source(sid, part.clone());
        self.count(recovered.unwrap_or_default())
    }

    /// Takes in a repair symbol, and returns the parts that are recovered by it. Nonsense is ignored.
    pub fn repair(&mut self, payload: &[u8]) -> Vec<Bytes> {
        self.received += 1;
        if first(payload).is_none_or(|first| first > self.next + FURTHEST_AHEAD) {
            return Vec::new();
        }
        let recovered = self.decoder.repair(payload);
        self.count(recovered.unwrap_or_default())
    }

    fn count(&mut self, recovered: Vec<fec::Recovered>) -> Vec<Bytes> {
        self.recovered += recovered.len() as u64;
        recovered.into_iter().map(|(_, part)| part).collect()
    }
}

/// Returns the first source symbol that a payload names: a variable-length integer of RFC 9000, section 16.
fn first(payload: &[u8]) -> Option<Sid> {
    let length = 1 << (payload.first()? >> 6);
    let tagged = payload.get(..length)?.iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
    Some(tagged & !(0b11 << (8 * length - 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { n: 21, k: 20 };

    fn part(number: u8, bytes: usize) -> Bytes {
        (0..bytes).map(|place| number.wrapping_mul(31) ^ place as u8).collect::<Vec<_>>().into()
    }

    /// The parts of frames of so many parts each, and the repair symbols after each part.
    fn sent(rate: Rate, frames: &[usize]) -> Vec<(Bytes, Vec<Vec<u8>>)> {
        let mut repairing = Repairing::new(rate);
        let ends = frames.iter().flat_map(|count| (1..=*count).map(move |number| number == *count));
        let numbered = ends.enumerate().map(|(number, is_last)| (part(number as u8, 500 + number % 3), is_last));
        numbered.map(|(part, is_last)| (part.clone(), repairing.protect(&part, is_last))).collect()
    }

    #[test]
    fn a_repair_symbol_follows_each_k_parts_and_the_end_of_each_frame() {
        let repairs = |frames: &[usize]| -> Vec<usize> { sent(RATE, frames).iter().map(|(_, of)| of.len()).collect() };
        let at = |counts: Vec<usize>| -> Vec<usize> {
            counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(place, _)| place + 1).collect()
        };
        assert_eq!(at(repairs(&[7, 6])), [7, 13]);
        assert_eq!(at(repairs(&[41])), [20, 40, 41]);
        assert!(repairs(&[7, 6, 41]).iter().all(|count| *count <= 1));
    }

    #[test]
    fn any_part_that_is_lost_alone_in_its_frame_is_recovered_by_its_repair_symbol() {
        let frames = [1, 7, 6, 30];
        let sent = sent(RATE, &frames);
        for lost in 0..sent.len() {
            let mut recovering = Recovering::new(RATE);
            let mut recovered = Vec::new();
            for (sid, (part, repairs)) in sent.iter().enumerate() {
                if sid != lost {
                    recovered.extend(recovering.source(sid as Sid, part));
                }
                for repair in repairs {
                    recovered.extend(recovering.repair(repair));
                }
            }
            let [only] = &recovered[..] else { panic!("{lost}: {} parts", recovered.len()) };
            let right = &sent[lost].0;
            assert_eq!(only[..right.len()], right[..], "{lost}");
            assert!(only[right.len()..].iter().all(|byte| *byte == 0));
            assert_eq!(recovering.recovered, 1);
        }
    }

    #[test]
    fn a_repair_symbol_that_names_nonsense_hides_none_that_is_right() {
        let sent = sent(RATE, &[7]);
        let mut recovering = Recovering::new(RATE);
        for (sid, (part, _)) in sent.iter().enumerate().skip(1) {
            recovering.source(sid as Sid, part);
        }
        let right = &sent[6].1[0];
        let far = [&[0xff; 8][..], &right[1..]].concat();
        let near = [&[0x80, 1, 0, 0][..], &right[1..]].concat();
        let wide = [&[0, 255][..], &right[2..]].concat();
        for nonsense in [&far[..], &near, &wide, &[], &[0xc0], &right[..6], &[0, 0, 0, 0, 0, 0, 0]] {
            assert!(recovering.repair(nonsense).is_empty(), "{:?}", &nonsense[..nonsense.len().min(10)]);
        }
        assert_eq!(recovering.repair(right).len(), 1);
        assert_eq!((recovering.received, recovering.recovered), (8, 1));
    }
}
