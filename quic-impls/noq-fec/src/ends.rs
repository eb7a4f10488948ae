//! The ends of messages among the frames of source symbols, so that repair symbols can follow each of them.

use std::sync::Arc;

use host::messages::{Delivery, Messages, Part};

/// The ends of messages: the ends of streams, and in the workload `messages` the last part of a message in a datagram,
/// or its last byte in the stream of all.
#[derive(Debug, Clone, Default)]
pub struct MessageEnds(pub Option<Arc<Messages>>);

impl MessageEnds {
    /// Whether a symbol, which is frames, has the end of a message.
    pub fn is_in(&self, symbol: &[u8]) -> bool {
        Frames(symbol).any(|frame| self.is_end(&frame))
    }

    fn is_end(&self, frame: &Frame) -> bool {
        match (frame, &self.0) {
            (Frame::Stream { is_end: true, .. }, _) => true,
            (Frame::Stream { id, offset, length, .. }, Some(messages)) => {
                let is_of_all = messages.delivery == Delivery::Reliable && id & UNIDIRECTIONAL != 0;
                is_of_all && messages.has_end_in(*offset..offset + length)
            }
            (Frame::Datagram(datagram), Some(messages)) => {
                Part::unpacked(datagram).is_some_and(|(part, _)| messages.is_last(part))
            }
            _ => false,
        }
    }
}

/// The bit of a stream's ID (RFC 9000, section 2.1).
const UNIDIRECTIONAL: u64 = 2;

/// The frames that matter here, of RFC 9000 and RFC 9221.
#[derive(Debug, PartialEq, Eq)]
enum Frame<'a> {
    Padding,
    Token,
    Stream { id: u64, offset: u64, length: u64, is_end: bool },
    Datagram(&'a [u8]),
}

/// The frames of a symbol that we have made, up to one that is never in a symbol.
struct Frames<'a>(&'a [u8]);

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        match self.integer()? {
            0x00 => Some(Frame::Padding),
            0x07 => {
                let length = self.integer()?;
                self.bytes(length).map(|_| Frame::Token)
            }
            kind @ 0x08..=0x0f => {
                let id = self.integer()?;
                let offset = if kind & 4 != 0 { self.integer()? } else { 0 };
                let length = if kind & 2 != 0 { self.integer()? } else { self.0.len() as u64 };
                self.bytes(length)?;
                Some(Frame::Stream { id, offset, length, is_end: kind & 1 != 0 })
            }
            kind @ 0x30..=0x31 => {
                let length = if kind & 1 != 0 { self.integer()? } else { self.0.len() as u64 };
                self.bytes(length).map(Frame::Datagram)
            }
            _ => None,
        }
    }
}

impl<'a> Frames<'a> {
    fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A variable-length integer (RFC 9000, section 16).
    fn integer(&mut self) -> Option<u64> {
        let bytes = self.bytes(1 << (self.0.first()? >> 6))?;
        let first = u64::from(bytes[0] & 0x3f);
        Some(bytes[1..].iter().fold(first, |integer, byte| integer << 8 | u64::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_symbol_are_read_one_by_one() {
        let mut symbol = vec![0x00, 0x07, 2, 9, 9]; // PADDING, NEW_TOKEN
        symbol.extend([0x0e, 0x40, 0x43, 5, 3, 1, 2, 3]); // STREAM 67, offset 5, 3 bytes
        symbol.extend([0x31, 1, 8, 0x30, 7]); // DATAGRAM of 1 byte, and one without a length
        let frames: Vec<_> = Frames(&symbol).collect();
        let stream = Frame::Stream { id: 67, offset: 5, length: 3, is_end: false };
        assert_eq!(frames, [Frame::Padding, Frame::Token, stream, Frame::Datagram(&[8]), Frame::Datagram(&[7])]);
        for cut in 0..symbol.len() {
            assert!(Frames(&symbol[..cut]).count() <= frames.len());
        }
    }

    #[test]
    fn the_end_of_a_stream_ends_a_message() {
        let ends = MessageEnds::default();
        assert!(ends.is_in(&[0x0b, 4, 1, 7]));
        assert!(!ends.is_in(&[0x0a, 4, 1, 7]));
    }
}
