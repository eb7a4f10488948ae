//! The workload `messages`: messages of a timetable, cut into parts. This module has the timetable that both ends know,
//! the parts that have arrived, and the series of their times. Each implementation decides how messages travel.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::content;
use crate::contract::{Direction, Refused, Result, Role, Values, wrong};
use crate::times::{self, Timetable};

/// The name of the workload, and of its series.
pub const NAME: &str = "messages";

const MOST_MESSAGES: usize = 100_000;
const LARGEST_MESSAGE: u64 = 16 << 20;
const LARGEST_PART: u64 = 1400;
const MOST_PARTS_OF_A_MESSAGE: u64 = 1 << 16;
/// Most parts of all messages: so many rows fit into the largest file that a series may have.
const MOST_PARTS: u64 = 1_000_000;

/// Time for which a receiver of datagrams waits for more after its sender has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// Bytes before the content of a part in a datagram: the number of its message, and its own.
pub const HEADER: usize = 6;

/// The messages as both ends know them: sender, timetable, and delivery.
#[derive(Debug)]
pub struct Messages {
    pub direction: Direction,
    pub delivery: Delivery,
    part_bytes: u64,
    timetable: Vec<Message>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// A datagram for each part.
    Datagram,
    /// A stream for each message, which is reset when the message has been due for so long.
    Deadline(Duration),
    /// A stream for each message.
    Stream,
    /// A single stream for all messages.
    Reliable,
}

impl Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Datagram => "datagram",
            Self::Deadline(_) => "deadline",
            Self::Stream => "stream",
            Self::Reliable => "reliable",
        })
    }
}

#[derive(Debug)]
struct Message {
    /// Since the sender began.
    due: Duration,
    bytes: u64,
    /// Place in the content at which it begins.
    begin: u64,
}

/// A part of a message, by the numbers of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    pub message: u32,
    pub part: u32,
}

impl Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {} of message {}", self.part, self.message)
    }
}

impl Part {
    /// Packs the part into a datagram: its numbers, big-endian, and so many bytes of content.
    pub fn packed(self, length: usize, fill: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let mut bytes = vec![0; HEADER + length];
        bytes[..4].copy_from_slice(&self.message.to_be_bytes());
        bytes[4..HEADER].copy_from_slice(&(self.part as u16).to_be_bytes());
        fill(&mut bytes[HEADER..]);
        bytes
    }

    /// Returns the part in a datagram, and its content.
    pub fn unpacked(datagram: &[u8]) -> Option<(Self, &[u8])> {
        let (message, rest) = datagram.split_first_chunk()?;
        let (part, content) = rest.split_first_chunk()?;
        Some((Self { message: u32::from_be_bytes(*message), part: u16::from_be_bytes(*part).into() }, content))
    }
}

impl Messages {
    /// Takes them out of the values of a workload.
    pub fn parse(values: &mut Values) -> Result<Self> {
        let direction = values.choice("direction", &[("down", Direction::Download), ("up", Direction::Upload)])?;
        let deliveries = [
            ("datagram", Delivery::Datagram),
            ("deadline", Delivery::Deadline(Duration::ZERO)),
            ("stream", Delivery::Stream),
            ("reliable", Delivery::Reliable),
        ];
        let deadline = values.take("deadline_ms");
        let delivery = match values.choice("delivery", &deliveries)? {
            Delivery::Deadline(_) => match deadline.as_f64().filter(|ms| *ms > 0.0 && *ms <= 1e9) {
                Some(ms) => Delivery::Deadline(Duration::from_secs_f64(ms / 1e3)),
                None => return wrong(format!("workload.deadline_ms: {deadline} is not above 0 and up to 1000000000")),
            },
            delivery => delivery,
        };
        let part_bytes = values.integer("part_bytes", 1, LARGEST_PART)?;
        let timetable = timetable(&values.take("timetable"), part_bytes)?;
        Ok(Self { direction, delivery, part_bytes, timetable })
    }

    pub fn sender(&self) -> Role {
        self.direction.sender()
    }

    /// Returns the number of messages.
    pub fn count(&self) -> u32 {
        self.timetable.len() as u32
    }

    /// Parts of all messages.
    pub fn parts(&self) -> u64 {
        self.timetable.iter().map(|message| message.bytes.div_ceil(self.part_bytes)).sum()
    }

    /// Bytes of all messages.
    pub fn bytes(&self) -> u64 {
        self.timetable.last().map_or(0, |last| last.begin + last.bytes)
    }

    /// Bytes of the longest part.
    pub fn longest_part(&self) -> u64 {
        let longest = self.timetable.iter().map(|message| message.bytes).max();
        longest.map_or(0, |bytes| bytes.min(self.part_bytes))
    }

    /// Returns when a message is due, since the sender began.
    pub fn due(&self, message: u32) -> Duration {
        self.timetable[message as usize].due
    }

    pub fn bytes_of(&self, message: u32) -> u64 {
        self.timetable[message as usize].bytes
    }

    pub fn parts_of(&self, message: u32) -> u32 {
        self.bytes_of(message).div_ceil(self.part_bytes) as u32
    }

    /// Returns the place in the content at which a message begins.
    pub fn begin_of(&self, message: u32) -> u64 {
        self.timetable[message as usize].begin
    }

    /// The bytes of its message that a part has; none if there is no such part.
    pub fn range(&self, part: Part) -> Option<Range<u64>> {
        let bytes = self.timetable.get(part.message as usize)?.bytes;
        let begin = u64::from(part.part) * self.part_bytes;
        (begin < bytes).then(|| begin..bytes.min(begin + self.part_bytes))
    }

    /// The parts of a message that end within some of its bytes.
    pub fn ended_parts(&self, message: u32, within: Range<u64>) -> impl Iterator<Item = Part> + use<> {
        let ended = |offset: u64, all: u64| {
            if offset == all { offset.div_ceil(self.part_bytes) } else { offset / self.part_bytes }
        };
        let bytes = self.bytes_of(message);
        (ended(within.start, bytes) as u32..ended(within.end, bytes) as u32).map(move |part| Part { message, part })
    }

    /// Whether some bytes of the content have the last byte of a message.
    pub fn has_end_in(&self, range: Range<u64>) -> bool {
        // The first message that ends behind the beginning.
        let first = self.timetable.partition_point(|message| message.begin + message.bytes <= range.start);
        self.timetable.get(first).is_some_and(|message| message.begin + message.bytes <= range.end)
    }

    /// Whether a part is its message's last one.
    pub fn is_last(&self, part: Part) -> bool {
        self.range(part).is_some_and(|range| range.end == self.bytes_of(part.message))
    }
}

impl Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} messages", self.count())
    }
}

fn timetable(value: &Value, part_bytes: u64) -> Result<Vec<Message>> {
    let rows = value.as_array().map_or(&[][..], Vec::as_slice);
    if rows.is_empty() || rows.len() > MOST_MESSAGES {
        let count = rows.len();
        return wrong(format!("workload.timetable: it has {count} messages, and must have 1 to {MOST_MESSAGES}"));
    }
    let (mut timetable, mut begin, mut parts) = (Vec::with_capacity(rows.len()), 0, 0);
    let mut before = 0;
    for (number, row) in rows.iter().enumerate() {
        let refused = |what: String| Refused::Wrong(format!("workload.timetable: message {number}: {what}"));
        let pair =
            row.as_array().filter(|pair| pair.len() == 2).and_then(|pair| Some((pair[0].as_u64()?, pair[1].as_u64()?)));
        let Some((due_us, bytes)) = pair else {
            return Err(refused(format!("{row} is not a pair of microseconds and bytes")));
        };
        if due_us < before || due_us > 1_000_000_000_000 {
            return Err(refused(format!("{due_us} us is not in {before} to 1000000000000")));
        }
        if bytes == 0 || bytes > LARGEST_MESSAGE {
            return Err(refused(format!("{bytes} bytes are not in 1 to {LARGEST_MESSAGE}")));
        }
        let parts_of = bytes.div_ceil(part_bytes);
        if parts_of > MOST_PARTS_OF_A_MESSAGE {
            return Err(refused(format!("{parts_of} parts are more than {MOST_PARTS_OF_A_MESSAGE}")));
        }
        timetable.push(Message { due: Duration::from_micros(due_us), bytes, begin });
        (before, begin, parts) = (due_us, begin + bytes, parts + parts_of);
    }
    match parts > MOST_PARTS {
        true => wrong(format!("workload.timetable: {parts} parts in all are more than {MOST_PARTS}")),
        false => Ok(timetable),
    }
}

/// The receiver of content: it verifies it against the seed, and records it part by part.
#[derive(Debug)]
pub struct Receiver {
    messages: Arc<Messages>,
    content_seed: u64,
    /// The parts of each message that are there; nothing for a message of which none is.
    present: Vec<Option<Box<[u64]>>>,
    missing: u64,
    /// Time at which the last new part came in a datagram, and at which the sender reported its end.
    last_news: Option<Instant>,
    sender_ended: Option<Instant>,
    pub log: Log,
    expected: Vec<u8>,
}

impl Receiver {
    pub fn new(messages: Arc<Messages>, content_seed: u64) -> Self {
        let present = (0..messages.count()).map(|_| None).collect();
        let missing = messages.parts();
        Self {
            messages,
            content_seed,
            present,
            missing,
            last_news: None,
            sender_ended: None,
            log: Log::default(),
            expected: Vec::new(),
        }
    }

    /// The sender has sent all.
    pub fn end(&mut self, now: Instant) {
        self.sender_ended.get_or_insert(now);
    }

    /// Returns when no more datagrams are expected.
    pub fn drained_at(&self) -> Option<Instant> {
        let ended = self.sender_ended?;
        Some(self.last_news.map_or(ended, |news| news.max(ended)) + DRAIN)
    }

    /// Whether no more datagrams are waited for: every part is there, or nothing more is to be expected.
    pub fn is_drained(&self, now: Instant) -> bool {
        self.is_complete() || self.drained_at().is_some_and(|time| time <= now)
    }

    /// Whether every part is there.
    pub fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Takes in what a datagram has; a part that was there before is ignored. An error is one line.
    pub fn take_packed(&mut self, now: Instant, datagram: &[u8]) -> std::result::Result<(), String> {
        let Some((part, bytes)) = Part::unpacked(datagram) else {
            return Err(format!("{} bytes are too short for a part", datagram.len()));
        };
        let range = self.messages.range(part).ok_or_else(|| format!("{part}: there is none"))?;
        if bytes.len() as u64 != range.end - range.start {
            return Err(format!("{part}: {} bytes, right are {}", bytes.len(), range.end - range.start));
        }
        self.verify(part.message, range.start, bytes)?;
        if self.note(now, part) {
            self.last_news = Some(now);
        }
        Ok(())
    }

    /// Takes bytes of a message that follow those before. An error is one line.
    pub fn take_bytes(
        &mut self,
        now: Instant,
        message: u32,
        offset: u64,
        bytes: &[u8],
    ) -> std::result::Result<(), String> {
        self.verify(message, offset, bytes)?;
        let messages = self.messages.clone();
        for part in messages.ended_parts(message, offset..offset + bytes.len() as u64) {
            self.note(now, part);
        }
        Ok(())
    }

    fn verify(&mut self, message: u32, offset: u64, bytes: &[u8]) -> std::result::Result<(), String> {
        let begin = self.messages.begin_of(message) + offset;
        match content::difference(self.content_seed, begin, bytes, &mut self.expected) {
            None => Ok(()),
            Some(place) => Err(format!("message {message}: byte {} is not that of the content", offset + place as u64)),
        }
    }

    /// Notes that a part is there; false when it was before.
    fn note(&mut self, now: Instant, part: Part) -> bool {
        let words = self.messages.parts_of(part.message).div_ceil(64) as usize;
        let present = self.present[part.message as usize].get_or_insert_with(|| vec![0; words].into());
        let (word, bit) = ((part.part / 64) as usize, 1 << (part.part % 64));
        let is_new = present[word] & bit == 0;
        if is_new {
            present[word] |= bit;
            self.missing -= 1;
            self.log.add(now, part);
        }
        is_new
    }
}

/// Times at which parts were sent or arrived on a connection.
pub type Log = times::Log<Part>;

/// A connection's contribution to the series.
pub type Recorded<'a> = times::Recorded<'a, Part>;

impl Timetable for Messages {
    const NAME: &'static str = NAME;
    const COLUMNS: &'static str = "message,part";
    type Part = Part;

    fn sender(&self) -> Role {
        self.sender()
    }

    fn due(&self, part: Part) -> Duration {
        self.due(part.message)
    }

    fn bytes(&self, part: Part) -> u64 {
        let range = self.range(part).expect("a part that was noted");
        range.end - range.start
    }

    fn name(&self, part: Part, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{},{}", part.message, part.part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times::write_rows;
    use serde_json::json;

    fn parsed(workload: Value) -> std::result::Result<Messages, String> {
        let Value::Object(values) = workload else { panic!("no object") };
        Messages::parse(&mut Values::new("workload", values)).map_err(|refused| refused.to_string())
    }

    fn workload(timetable: Value) -> Value {
        json!({"direction": "down", "delivery": "datagram", "deadline_ms": null, "part_bytes": 1000,
               "timetable": timetable})
    }

    fn messages(timetable: Value) -> Arc<Messages> {
        Arc::new(parsed(workload(timetable)).unwrap())
    }

    #[test]
    fn parts_cover_each_message_once_and_all_but_the_last_are_of_one_length() {
        let messages = messages(json!([[0, 2500], [0, 1000], [7, 1]]));
        let ranges = |message| (0..3).map(|part| messages.range(Part { message, part })).collect::<Vec<_>>();
        assert_eq!(ranges(0), [Some(0..1000), Some(1000..2000), Some(2000..2500)]);
        assert_eq!(ranges(1), [Some(0..1000), None, None]);
        assert_eq!(ranges(2), [Some(0..1), None, None]);
        assert_eq!(ranges(3), [None, None, None]);
    }

    #[test]
    fn bytes_in_any_pieces_end_each_part_once() {
        let messages = messages(json!([[0, 2500]]));
        for step in [1, 7, 999, 1000, 1001, 2500] {
            let mut ended = Vec::new();
            for begin in (0..2500).step_by(step) {
                ended.extend(messages.ended_parts(0, begin..2500.min(begin + step as u64)).map(|part| part.part));
            }
            assert_eq!(ended, [0, 1, 2], "steps of {step}");
        }
    }

    #[test]
    fn bytes_of_the_content_have_an_end_if_a_last_byte_is_among_them() {
        let messages = messages(json!([[0, 10], [0, 1], [0, 5]]));
        for begin in 0..=16 {
            for end in begin..=16 {
                let right = (begin..end).any(|byte| [9, 10, 15].contains(&byte));
                assert_eq!(messages.has_end_in(begin..end), right, "{begin}..{end}");
            }
        }
    }

    #[test]
    fn what_is_wrong_in_a_workload_is_named() {
        let cases = [
            (workload(json!([])), "timetable: it has 0 messages"),
            (workload(json!([[5, 1], [4, 1]])), "message 1: 4 us is not in 5 to"),
            (workload(json!([[0, 0]])), "message 0: 0 bytes"),
            (workload(json!([[0, 16777217]])), "message 0: 16777217 bytes"),
            (workload(json!([[0]])), "message 0: [0] is not a pair"),
            (
                json!({"direction": "down", "delivery": "deadline", "part_bytes": 1, "timetable": [[0, 1]]}),
                "deadline_ms: null",
            ),
            (
                json!({"direction": "down", "delivery": "stream", "part_bytes": 1, "timetable": [[0, 65537]]}),
                "65537 parts",
            ),
            (
                json!({"direction": "across", "delivery": "stream", "part_bytes": 1, "timetable": [[0, 1]]}),
                "direction: \"across\"",
            ),
        ];
        for (workload, why) in cases {
            let refused = parsed(workload).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        let many = Value::Array((0..16).map(|_| json!([0, 65536])).collect());
        let refused = parsed(json!({"direction": "up", "delivery": "stream", "part_bytes": 1, "timetable": many}));
        assert!(refused.unwrap_err().contains("1048576 parts in all"));
    }

    #[test]
    fn a_receiver_takes_each_part_once_and_refuses_what_no_sender_has() {
        let messages = messages(json!([[0, 1500], [0, 10]]));
        let mut receiver = Receiver::new(messages, 7);
        let mut content = vec![0; 1510];
        content::fill(7, 0, &mut content);
        let now = Instant::now();
        let packed =
            |message, part, bytes: &[u8]| Part { message, part }.packed(bytes.len(), |to| to.copy_from_slice(bytes));
        for _ in 0..2 {
            assert_eq!(receiver.take_packed(now, &packed(1, 0, &content[1500..])), Ok(()));
        }
        assert_eq!(receiver.take_packed(now, &packed(0, 1, &content[1000..1500])), Ok(()));
        assert_eq!((receiver.log.rows.len(), receiver.is_complete()), (2, false));
        for (datagram, why) in [
            (packed(2, 0, &content[..10]), "part 0 of message 2: there is none"),
            (packed(0, 65535, &content[..10]), "part 65535 of message 0: there is none"),
            (packed(0, 0, &content[..10]), "part 0 of message 0: 10 bytes, right are 1000"),
            (packed(0, 0, &content[1..1001]), "message 0: byte 0 is not that of the content"),
            (vec![0; 5], "5 bytes are too short for a part"),
        ] {
            assert_eq!(receiver.take_packed(now, &datagram), Err(why.into()));
        }
        assert_eq!(receiver.take_packed(now, &packed(0, 0, &content[..1000])), Ok(()));
        assert_eq!((receiver.log.rows.len(), receiver.is_complete()), (3, true));
    }

    #[test]
    fn a_receiver_waits_for_more_until_nothing_new_has_come_for_a_second_after_the_end() {
        let mut receiver = Receiver::new(messages(json!([[0, 1], [0, 1], [0, 1]])), 7);
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut content = [0; 3];
        content::fill(7, 0, &mut content);
        let packed = |message: u32| Part { message, part: 0 }.packed(1, |to| to[0] = content[message as usize]);
        receiver.take_packed(at(0), &packed(0)).unwrap();
        assert!(!receiver.is_drained(at(5000)));
        receiver.end(at(6000));
        receiver.end(at(6900));
        assert_eq!((receiver.is_drained(at(6999)), receiver.is_drained(at(7000))), (false, true));
        receiver.take_packed(at(6500), &packed(1)).unwrap();
        receiver.take_packed(at(6600), &packed(1)).unwrap();
        assert_eq!((receiver.is_drained(at(7499)), receiver.is_drained(at(7500))), (false, true));
        receiver.take_packed(at(6700), &packed(2)).unwrap();
        assert!(receiver.is_drained(at(6700)));
    }

    #[test]
    fn the_series_has_a_row_for_each_part_in_the_order_of_time() {
        let messages = messages(json!([[0, 1500], [20, 10]]));
        let start = Instant::now();
        let at = |us| start + Duration::from_micros(us);
        let (mut first, mut second) = (Log::default(), Log::default());
        first.add(at(2), Part { message: 0, part: 0 });
        first.add(at(31), Part { message: 1, part: 0 });
        second.add(at(5), Part { message: 0, part: 1 });
        let text = |role| {
            let begun = (role == Role::Server).then(|| at(1));
            let recorded =
                [Recorded { connection: 0, begun, log: &first }, Recorded { connection: 1, begun, log: &second }];
            let mut out = Vec::new();
            let clock = |time: Instant| Duration::from_secs(9) + (time - start);
            write_rows(&mut out, role, Some(&*messages), start, &recorded, clock).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            text(Role::Server),
            "t_s,connection,message,part,due_s,sent_s,bytes\n\
             0.000002,0,0,0,9.000001000,9.000002000,1000\n\
             0.000005,1,0,1,9.000001000,9.000005000,500\n\
             0.000031,0,1,0,9.000021000,9.000031000,10\n"
        );
        assert_eq!(
            text(Role::Client).lines().take(2).collect::<Vec<_>>(),
            ["t_s,connection,message,part,arrived_s,bytes", "0.000002,0,0,0,9.000002000,1000"]
        );
    }
}
