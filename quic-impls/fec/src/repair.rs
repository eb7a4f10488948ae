//! The repair payload: which source symbols a repair symbol protects, how its coefficients are made, and the symbol.
//! README.md describes the bytes.

use std::fmt;

/// The number of a source symbol: 0 for the first, then one more for each.
pub type Sid = u64;

/// SIDs are below this, so that they fit a variable-length integer of RFC 9000 §16.
pub const SID_LIMIT: Sid = 1 << 62;

/// Largest span of a repair symbol, from its first to its last source symbol.
pub const MAX_SPAN: usize = 255;

/// The longest header of a repair payload, in bytes.
pub const MAX_HEADER: usize = longest_header(SID_LIMIT - 1);

/// Returns the longest header of a repair payload, in bytes, if no protected symbol has a larger SID.
pub const fn longest_header(largest: Sid) -> usize {
    length_of_varint(largest) + 5
}

/// The source symbols that a repair symbol protects: `first`, `first + stride`, …, `count` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protected {
    first: Sid,
    count: u8,
    stride: u8,
}

impl Protected {
    /// `count` symbols from `first` on, each `stride` after the one before; `None` if there are none, if they span more
    /// than [`MAX_SPAN`], or if one's SID is not below [`SID_LIMIT`].
    #[must_use]
    pub fn new(first: Sid, count: usize, stride: usize) -> Option<Protected> {
        let set = Protected { first, count: u8::try_from(count).ok()?, stride: u8::try_from(stride).ok()? };
        let legal = count > 0 && stride > 0 && set.span() <= MAX_SPAN && first < SID_LIMIT && set.last() < SID_LIMIT;
        legal.then_some(set)
    }

    /// The first symbol.
    #[must_use]
    pub fn first(&self) -> Sid {
        self.first
    }

    /// The last symbol.
    #[must_use]
    pub fn last(&self) -> Sid {
        self.first + self.span() as Sid - 1
    }

    /// Returns how many symbols there are; never 0.
    #[must_use]
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// Returns how many SIDs lie between the first and the last, both included.
    #[must_use]
    pub fn span(&self) -> usize {
        usize::from(self.count.saturating_sub(1)) * usize::from(self.stride) + 1
    }

    /// Whether a symbol is in both sets.
    pub(crate) fn meets(&self, other: &Protected) -> bool {
        let (stride, sids) = (Sid::from(other.stride), other.first..=other.last());
        self.sids().any(|sid| sids.contains(&sid) && (sid - other.first).is_multiple_of(stride))
    }

    /// The SIDs, in order.
    pub fn sids(&self) -> impl Iterator<Item = Sid> + use<> {
        let (first, stride) = (self.first, Sid::from(self.stride));
        (0..Sid::from(self.count)).map(move |place| first + place * stride)
    }
}

/// The header before the repair symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub protected: Protected,
    /// Number of the repair symbol among those over these source symbols: see [`Code`](crate::Code).
    pub key: u16,
    /// RFC 8681's density threshold; 0 in the other codes.
    pub density: u8,
}

impl Header {
    pub(crate) fn write(&self, payload: &mut Vec<u8>) {
        write_varint(self.protected.first, payload);
        payload.extend([self.protected.count, self.protected.stride]);
        payload.extend(self.key.to_be_bytes());
        payload.push(self.density);
    }

    /// The header and the repair symbol after it.
    pub(crate) fn parse(payload: &[u8]) -> Result<(Header, &[u8]), Malformed> {
        let (first, rest) = parse_varint(payload).ok_or(Malformed::Truncated)?;
        let [count, stride, key_high, key_low, density, symbol @ ..] = rest else {
            return Err(Malformed::Truncated);
        };
        if symbol.is_empty() {
            return Err(Malformed::Truncated);
        }
        let protected = Protected::new(first, usize::from(*count), usize::from(*stride)).ok_or(Malformed::Protected)?;
        Ok((Header { protected, key: u16::from_be_bytes([*key_high, *key_low]), density: *density }, symbol))
    }
}

/// RFC 9000 §16: the two highest bits of the first byte say whether 1, 2, 4 or 8 bytes hold the value.
fn write_varint(value: u64, out: &mut Vec<u8>) {
    debug_assert!(value < 1 << 62);
    let length = length_of_varint(value);
    let tagged = value | u64::from(length.ilog2()) << (length * 8 - 2);
    out.extend(&tagged.to_be_bytes()[8 - length..]);
}

const fn length_of_varint(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

fn parse_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = 1 << (bytes.first()? >> 6);
    let (value, rest) = bytes.split_at_checked(length)?;
    let tagged = value.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    Some((tagged & !(0b11 << (length * 8 - 2)), rest))
}

/// The reason to refuse a peer's message. A decoder that refused something is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The payload ends before its repair symbol begins.
    Truncated,
    /// The header names no source symbol, spans more than [`MAX_SPAN`], or exceeds [`SID_LIMIT`].
    Protected,
    /// The repair symbol spans more source symbols than the window that the decoder announced.
    Window,
    /// The key or the density threshold is none of the code's.
    Key,
    /// A symbol is longer than the decoder takes.
    Length,
    /// A source symbol's SID is not below [`SID_LIMIT`].
    Sid,
}

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Malformed::Truncated => "repair payload without a repair symbol",
            Malformed::Protected => "repair payload that names no legal source symbols",
            Malformed::Window => "repair symbol over more source symbols than the announced window",
            Malformed::Key => "repair symbol with a key that its code does not have",
            Malformed::Length => "symbol longer than announced",
            Malformed::Sid => "source symbol with an SID of 2^62 or more",
        })
    }
}

impl std::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_parsed_as_it_was_written() {
        for first in [0, 1, 63, 64, 16383, 16384, (1 << 30) - 1, 1 << 30, SID_LIMIT - 255] {
            let protected = Protected::new(first, 85, 3).unwrap();
            let header = Header { protected, key: 0xabcd, density: 15 };
            let mut payload = Vec::new();
            header.write(&mut payload);
            assert!(payload.len() <= longest_header(protected.first()) && payload.len() <= MAX_HEADER);
            payload.extend(b"symbol");
            assert_eq!(Header::parse(&payload), Ok((header, &b"symbol"[..])));
            for cut in 0..payload.len() - b"symbol".len() + 1 {
                assert_eq!(Header::parse(&payload[..cut]), Err(Malformed::Truncated), "{cut} bytes");
            }
        }
    }

    #[test]
    fn varints_are_those_of_rfc_9000_appendix_a_1() {
        let examples: [(u64, &[u8]); 4] = [
            (151_288_809_941_952_652, &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (15293, &[0x7b, 0xbd]),
            (37, &[0x25]),
        ];
        for (value, bytes) in examples {
            let mut written = Vec::new();
            write_varint(value, &mut written);
            assert_eq!(written, bytes);
            assert_eq!(parse_varint(bytes), Some((value, &[][..])));
        }
    }

    #[test]
    fn sets_of_source_symbols_are_within_their_bounds() {
        for (first, count, stride) in
            [(0, 0, 1), (0, 1, 0), (0, 256, 1), (0, 128, 3), (SID_LIMIT, 1, 1), (SID_LIMIT - 1, 2, 1), (u64::MAX, 2, 1)]
        {
            assert_eq!(Protected::new(first, count, stride), None, "{count} from {first} by {stride}");
        }
        let set = Protected::new(7, 3, 10).unwrap();
        assert_eq!(set.sids().collect::<Vec<_>>(), [7, 17, 27]);
        assert_eq!((set.last(), set.span()), (27, 21));
    }

    #[test]
    fn sets_meet_in_a_symbol_and_not_in_a_span() {
        let set = |first, count, stride| Protected::new(first, count, stride).unwrap();
        for (one, other, common) in [
            (set(0, 20, 1), set(2, 20, 1), true),
            (set(0, 20, 1), set(20, 20, 1), false),
            (set(0, 4, 2), set(1, 4, 2), false),
            (set(0, 4, 2), set(6, 4, 2), true),
            (set(0, 4, 3), set(4, 4, 5), true),
            (set(0, 4, 3), set(4, 1, 5), false),
        ] {
            assert_eq!((one.meets(&other), other.meets(&one)), (common, common), "{one:?}, {other:?}");
        }
    }
}
