//! The ends of messages among the frames of source symbols, so that repair symbols can follow each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use host::messages::{Delivery, Messages, Part};

/// Number of the newest streams whose noted ends are kept.
const STREAMS: usize = 256;

/// The ends of messages: the ends of streams, and what the workload knows besides.
#[derive(Debug, Clone, Default)]
pub enum MessageEnds {
    #[default]
    Streams,
    /// The last part of a message in a datagram, or its last byte in the stream of all.
    Messages(Arc<Messages>),
    /// Places in streams that the sender notes. A datagram is a message.
    Noted(NotedEnds),
}

/// Places in streams at which frames of media end. Clones have them in common.
#[derive(Debug, Clone, Default)]
pub struct NotedEnds(Arc<Mutex<BTreeMap<u64, BTreeSet<u64>>>>);

impl NotedEnds {
    /// Notes that a message ends before this place of a stream.
    pub fn add(&self, stream: u64, end: u64) {
        let mut streams = self.0.lock().expect("nobody panics with it");
        streams.entry(stream).or_default().insert(end);
        if streams.len() > STREAMS {
            streams.pop_first();
        }
    }

    /// Whether a message ends with one of these bytes of a stream.
    fn is_in(&self, stream: u64, from: u64, length: u64) -> bool {
        let streams = self.0.lock().expect("nobody panics with it");
        let ends = streams.get(&stream);
        ends.is_some_and(|ends| length > 0 && ends.range(from + 1..=from + length).next().is_some())
    }
}

impl MessageEnds {
    /// Whether a symbol, which is frames, has the end of a message.
    pub fn is_in(&self, symbol: &[u8]) -> bool {
        Frames(symbol).any(|frame| self.is_end(&frame))
    }

    fn is_end(&self, frame: &Frame) -> bool {
        match (frame, self) {
            (Frame::Stream { is_end: true, .. }, _) => true,
            (Frame::Stream { id, offset, length, .. }, Self::Messages(messages)) => {
                let is_of_all = messages.delivery == Delivery::Reliable && id & UNIDIRECTIONAL != 0;
                is_of_all && messages.has_end_in(*offset..offset + length)
            }
            (Frame::Datagram(datagram), Self::Messages(messages)) => {
                Part::unpacked(datagram).is_some_and(|(part, _)| messages.is_last(part))
            }
            (Frame::Stream { id, offset, length, .. }, Self::Noted(noted)) => noted.is_in(*id, *offset, *length),
            (Frame::Datagram(_), Self::Noted(_)) => true,
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

    #[test]
    fn a_noted_end_is_in_the_packet_that_has_the_last_byte_before_it() {
        let noted = NotedEnds::default();
        let ends = MessageEnds::Noted(noted.clone());
        noted.add(2, 8);
        let stream = |id: u8, offset: u8| [0x0e, id, offset, 3, 1, 2, 3];
        let is_in = [4, 5, 7, 8].map(|offset| ends.is_in(&stream(2, offset)));
        assert_eq!(is_in, [false, true, true, false], "bytes from 4, 5, 7 and 8 on");
        assert!(!ends.is_in(&stream(6, 5)), "another stream");
        assert!(ends.is_in(&[0x30, 7]), "a datagram");
        assert!(!ends.is_in(&[0x0e, 2, 8, 0]), "no byte at all");
    }

    #[test]
    fn the_oldest_streams_are_forgotten() {
        let noted = NotedEnds::default();
        for stream in 0..=STREAMS as u64 {
            noted.add(stream, 1);
        }
        assert!(!noted.is_in(0, 0, 1));
        assert!(noted.is_in(1, 0, 1) && noted.is_in(STREAMS as u64, 0, 1));
    }
}
