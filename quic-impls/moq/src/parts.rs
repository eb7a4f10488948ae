//! Frames that are cut into parts, a datagram each, and put together again. A frame that lacks a part never comes.
//!
//! A part begins with 12 bytes, big-endian: the number of its frame (4), the bytes of the whole frame (4), the number of the part
//! (2), and the number of parts (2). Parts of a frame are as long as each other, but for a byte.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use host::live::Live;
use noq_fec::messages;
use noq_fec::options::Options;

/// Bytes before the content of a part.
const HEADER: usize = 12;

/// A frame of several parts has at least so many bytes in each.
const SHORTEST: u64 = 256;

/// Frames of which some parts are there and others are not; older ones are given up.
const MOST_INCOMPLETE: usize = 64;

/// Returns the most bytes of a part with its header, so that a repair symbol over it fits into a datagram, too.
pub fn longest(options: &Options) -> usize {
    (messages::longest_part(options) - crate::DATAGRAM_HEADER) as usize - fec::MAX_HEADER
}

/// The place of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    frame: u32,
    bytes: u32,
    number: u16,
    count: u16,
}

impl Part {
    /// Returns the bytes of its frame that it has.
    fn range(self) -> Range<usize> {
        let place = |number: u64| (u64::from(self.bytes) * number / u64::from(self.count)) as usize;
        place(self.number.into())..place(u64::from(self.number) + 1)
    }

    fn pack(self, frame: &[u8]) -> Vec<u8> {
        let content = &frame[self.range()];
        let mut packed = Vec::with_capacity(HEADER + content.len());
        packed.extend(self.frame.to_be_bytes());
        packed.extend(self.bytes.to_be_bytes());
        packed.extend(self.number.to_be_bytes());
        packed.extend(self.count.to_be_bytes());
        packed.extend(content);
        packed
    }

    /// Returns the part and its content. A recovered part may be longer: it is padded with zeros.
    fn parse(packed: &Bytes) -> Option<(Self, Bytes)> {
        let (head, content) = packed.split_at_checked(HEADER)?;
        let long = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let short = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let part = Self { frame: long(0), bytes: long(4), number: short(8), count: short(10) };
        let length = if part.number < part.count { part.range().len() } else { return None };
        (length <= content.len()).then(|| (part, packed.slice(HEADER..HEADER + length)))
    }
}

/// Cuts a frame into as few parts as can be, of at most so many bytes with their headers.
pub fn cut(number: usize, frame: &[u8], longest: usize) -> impl Iterator<Item = Vec<u8>> + '_ {
    let count = frame.len().div_ceil(longest - HEADER) as u16;
    (0..count).map(move |of| Part { frame: number as u32, bytes: frame.len() as u32, number: of, count }.pack(frame))
}

/// The parts of a track that have come.
#[derive(Debug)]
pub struct Assembly {
    live: Arc<Live>,
    track: usize,
    /// Number of parts of each frame, and those that are there.
    incomplete: BTreeMap<u32, (u16, BTreeMap<u16, Bytes>)>,
    complete: BTreeSet<u32>,
}

impl Assembly {
    pub fn new(live: Arc<Live>, track: usize) -> Self {
        Self { live, track, incomplete: BTreeMap::new(), complete: BTreeSet::new() }
    }

    /// Takes in a part, and returns its number and its frame if that is complete. An error is one line; nothing has changed then.
    pub fn take(&mut self, packed: &Bytes) -> Result<Option<(u32, Vec<u8>)>, String> {
        let Some((part, content)) = Part::parse(packed).filter(|(part, _)| self.is_right(*part)) else {
            return Err(format!("track {}: a datagram is no part of its frames", self.live.tracks[self.track].name));
        };
        if self.complete.contains(&part.frame) {
            return Ok(None);
        }
        let (count, there) = self.incomplete.entry(part.frame).or_insert((part.count, BTreeMap::new()));
        if *count == part.count {
            there.insert(part.number, content);
        }
        if there.len() == usize::from(*count) {
            let frame = there.values().flat_map(|content| content.iter().copied()).collect();
            self.incomplete.remove(&part.frame);
            self.complete.insert(part.frame);
            return Ok(Some((part.frame, frame)));
        }
        if self.incomplete.len() > MOST_INCOMPLETE {
            self.incomplete.pop_first();
        }
        Ok(None)
    }

    /// Whether the timetable has its frame, and a sender can have cut it so.
    fn is_right(&self, part: Part) -> bool {
        let frame = self.live.tracks[self.track].frames.get(part.frame as usize);
        frame.is_some_and(|frame| {
            frame.bytes == u64::from(part.bytes) && u64::from(part.count) <= 1 + frame.bytes / SHORTEST
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use host::contract::Values;
    use serde_json::json;

    /// A broadcast of a track of parts, of frames of these bytes.
    pub fn live(sizes: &[u64]) -> Arc<Live> {
        let frames: Vec<_> = sizes.iter().map(|size| json!([0, size, 1])).collect();
        let track = json!({"name": "video", "priority": 1, "delivery": "parts", "repair": [21, 20], "frames": frames});
        let workload = json!({"direction": "down", "max_age_ms": 500, "deadline_us": 1, "send_buffer_bytes": 65536,
                              "tracks": [track]});
        let serde_json::Value::Object(values) = workload else { panic!("no object") };
        Arc::new(Live::parse(&mut Values::new("workload", values)).unwrap())
    }

    fn frame(bytes: u64) -> Vec<u8> {
        (0..bytes).map(|byte| byte as u8 ^ (byte >> 8) as u8).collect()
    }

    #[test]
    fn a_frame_is_put_together_of_parts_in_any_order_with_padding_and_once() {
        for (size, longest) in [(1, 1000), (988, 1000), (989, 1000), (60_000, 1131), (16 << 20, 1131)] {
            let mut assembly = Assembly::new(live(&[1, size]), 0);
            let content = frame(size);
            let mut parts: Vec<_> = cut(1, &content, longest).collect();
            assert!(parts.iter().all(|part| part.len() <= longest), "{size}");
            assert_eq!(parts.len(), (size as usize).div_ceil(longest - HEADER));
            let last = parts.remove(parts.len() / 2);
            for mut part in parts.into_iter().rev() {
                part.extend([0; 5]);
                let part = Bytes::from(part);
                assert_eq!(assembly.take(&part), Ok(None));
                assert_eq!(assembly.take(&part), Ok(None));
            }
            let last = Bytes::from(last);
            assert_eq!(assembly.take(&last), Ok(Some((1, content))), "{size}");
            assert_eq!(assembly.take(&last), Ok(None));
        }
    }

    #[test]
    fn what_is_no_part_of_a_frame_is_refused() {
        let mut assembly = Assembly::new(live(&[5000]), 0);
        let right = Part { frame: 0, bytes: 5000, number: 4, count: 5 };
        let content = frame(5000);
        for (part, what) in [
            (Part { frame: 1, ..right }, "a frame that nobody sends"),
            (Part { bytes: 4999, ..right }, "another length"),
            (Part { number: 5, ..right }, "a number beyond the last"),
            (Part { number: 0, count: 0, ..right }, "no parts"),
            (Part { count: 21, ..right }, "parts that nobody makes so short"),
        ] {
            let mut packed = Part { bytes: 5000, number: 0, count: 1, ..part }.pack(&content);
            packed[4..8].copy_from_slice(&part.bytes.to_be_bytes());
            packed[8..10].copy_from_slice(&part.number.to_be_bytes());
            packed[10..12].copy_from_slice(&part.count.to_be_bytes());
            assert!(assembly.take(&packed.into()).unwrap_err().contains("is no part"), "{what}");
        }
        let packed = right.pack(&content);
        for short in [0, HEADER - 1, HEADER, packed.len() - 1] {
            assert!(assembly.take(&Bytes::from(packed[..short].to_vec())).is_err(), "{short} bytes");
        }
        assert_eq!(assembly.take(&packed.into()), Ok(None));
    }

    #[test]
    fn frames_that_lack_a_part_are_given_up_when_newer_ones_have_come() {
        let mut assembly = Assembly::new(live(&[2000; 300]), 0);
        for number in 0..300 {
            let part = cut(number, &frame(2000), 1131).next().unwrap();
            assert_eq!(assembly.take(&part.into()), Ok(None));
            assert!(assembly.incomplete.len() <= MOST_INCOMPLETE);
        }
    }
}
