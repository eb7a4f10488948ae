//! The workload `requests`: a client reads on its standard input what to ask for, and says what has arrived, until its input
//! ends. quic-impls/contract/requests.md has it.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::content::fill;
use crate::contract::{Event, LARGEST};
use crate::implementation::Host;

pub const NAME: &str = "requests";

/// What a line of standard input is: some text, or its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Line(String),
    End,
}

/// What a client says of an object that has arrived. Times are those of the clock that both ends of a trial have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Object {
    pub bytes: u64,
    pub requested_at: Duration,
    pub first_byte_at: Duration,
    pub done_at: Duration,
}

impl Object {
    /// The event of the contract.
    pub fn json(&self) -> String {
        let Self { bytes, requested_at, first_byte_at, done_at } = self;
        let [requested_at, first_byte_at, done_at] = [requested_at, first_byte_at, done_at].map(seconds);
        format!(
            r#"{{"event": "object", "bytes": {bytes}, "requested_at": {requested_at}, "first_byte_at": {first_byte_at}, "done_at": {done_at}}}"#
        )
    }
}

fn seconds(time: &Duration) -> String {
    format!("{}.{:09}", time.as_secs(), time.subsec_nanos())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Get {
    get: u64,
}

/// How many bytes a line asks for.
fn size(line: &str) -> Result<u64, String> {
    let asked: Result<Get, _> = serde_json::from_str(line);
    match asked {
        Ok(Get { get }) if get <= LARGEST => Ok(get),
        _ => Err(format!("standard input: {line:?} is not {{\"get\": BYTES}} of at most {LARGEST} bytes")),
    }
}

/// What a client is asked for, and what of it has arrived. A stream is named as its protocol does.
pub struct Requests<Stream> {
    content_seed: u64,
    /// Those that have no stream yet.
    waiting: VecDeque<(u64, Instant)>,
    open: BTreeMap<Stream, Pending>,
    arrived: Vec<(Pending, Instant)>,
    /// When the input ended.
    pub ended: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    size: u64,
    requested: Instant,
    received: u64,
    first_byte: Option<Instant>,
}

impl<Stream: Ord + Copy> Requests<Stream> {
    pub fn new(content_seed: u64) -> Self {
        Self { content_seed, waiting: VecDeque::new(), open: BTreeMap::new(), arrived: Vec::new(), ended: None }
    }

    /// Reads what there is to read.
    pub fn read(&mut self, host: &mut impl Host) -> Result<(), String> {
        while self.ended.is_none() {
            match host.read().map_err(|error| format!("standard input: {error}"))? {
                None => break,
                Some(Input::Line(line)) => self.waiting.push_back((size(&line)?, host.now())),
                Some(Input::End) => self.ended = Some(host.now()),
            }
        }
        Ok(())
    }

    /// Since when a request has waited for its stream.
    pub fn waiting_since(&self) -> Option<Instant> {
        self.waiting.front().map(|(_, requested)| *requested)
    }

    /// The size that is to be asked for next, which has this stream now.
    pub fn open(&mut self, stream: Stream) -> Option<u64> {
        let (size, requested) = self.waiting.pop_front()?;
        self.open.insert(stream, Pending { size, requested, received: 0, first_byte: None });
        Some(size)
    }

    /// Whether it is a stream of an object that has not arrived.
    pub fn is_open(&self, stream: Stream) -> bool {
        self.open.contains_key(&stream)
    }

    /// Takes what has come of an object.
    pub fn take(&mut self, now: Instant, stream: Stream, bytes: &[u8]) -> Result<(), String> {
        let Some(pending) = self.open.get_mut(&stream) else {
            return Ok(());
        };
        if pending.received + bytes.len() as u64 > pending.size {
            return Err(format!("the server sent more than the {} bytes that are right", pending.size));
        }
        if !bytes.is_empty() {
            pending.first_byte.get_or_insert(now);
        }
        let mut right = [0; 4 << 10];
        for part in bytes.chunks(right.len()) {
            let right = &mut right[..part.len()];
            fill(self.content_seed, pending.received, right);
            if part != right {
                return Err(format!(
                    "the content received is wrong within {} bytes from {}",
                    part.len(),
                    pending.received
                ));
            }
            pending.received += part.len() as u64;
        }
        Ok(())
    }

    /// The stream of an object has ended.
    pub fn end(&mut self, now: Instant, stream: Stream) -> Result<(), String> {
        let Some(pending) = self.open.remove(&stream) else {
            return Ok(());
        };
        if pending.received < pending.size {
            return Err(format!("the server sent {} of {} bytes", pending.received, pending.size));
        }
        self.arrived.push((pending, now));
        Ok(())
    }

    /// Says what has arrived.
    pub fn say(&mut self, host: &mut impl Host) -> Result<(), String> {
        for (Pending { size, requested, first_byte, .. }, done) in self.arrived.drain(..) {
            let [requested_at, first_byte_at, done_at] =
                [requested, first_byte.unwrap_or(done), done].map(|time| host.monotonic(time));
            let object = Object { bytes: size, requested_at, first_byte_at, done_at };
            host.say(Event::Object(object)).map_err(|error| format!("standard output: {error}"))?;
        }
        Ok(())
    }
}

/// What a simulator asks the harness: what its client is to read, at first and after each object.
#[derive(Serialize)]
pub struct Question {
    pub number: u64,
    pub objects: Vec<serde_json::Value>,
    pub now_s: f64,
}

/// What it is to read from then on, in the place of what it has not read yet; times are ns of the simulation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    pub number: u64,
    pub lines: Vec<(u64, Option<String>)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_asks_for_a_number_of_bytes_or_is_refused() {
        assert_eq!(size(r#"{"get": 1000}"#), Ok(1000));
        for wrong in ["", "get", "{}", r#"{"get": -1}"#, r#"{"get": 1, "put": 2}"#, r#"{"get": 1099511627777}"#] {
            assert!(size(wrong).unwrap_err().starts_with("standard input: "), "{wrong}");
        }
    }

    #[test]
    fn an_object_is_said_with_nine_decimals() {
        let at = Duration::new(3, 7);
        let object = Object { bytes: 5, requested_at: at, first_byte_at: at, done_at: Duration::new(12, 100_000_000) };
        let times = r#""requested_at": 3.000000007, "first_byte_at": 3.000000007, "done_at": 12.100000000"#;
        assert_eq!(object.json(), format!(r#"{{"event": "object", "bytes": 5, {times}}}"#));
    }

    #[test]
    fn content_that_is_wrong_or_too_much_or_too_little_is_refused() {
        let now = Instant::now();
        let mut content = vec![0; 10_000];
        fill(7, 0, &mut content);
        let begun = || {
            let mut requests = Requests::new(7);
            requests.waiting.push_back((10_000, now));
            assert_eq!(requests.open(1), Some(10_000));
            requests
        };
        let mut right = begun();
        right.take(now, 1, &content[..6_000]).and_then(|()| right.take(now, 1, &content[6_000..])).unwrap();
        right.end(now, 1).unwrap();
        assert!(right.arrived.len() == 1 && !right.is_open(1));
        let mut wrong = content.clone();
        wrong[9_000] ^= 1;
        assert!(begun().take(now, 1, &wrong).unwrap_err().contains("is wrong"));
        content.push(0);
        assert!(begun().take(now, 1, &content).unwrap_err().contains("more than"));
        assert!(begun().end(now, 1).unwrap_err().contains("0 of 10000 bytes"));
    }
}
