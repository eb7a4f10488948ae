//! The workload `requests`: a client reads on its standard input what to ask for, and says what has arrived, until its input
//! ends. quic-impls/contract/requests.md has it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::content::difference;
use crate::contract::{Event, LARGEST};
use crate::implementation::Host;

pub const NAME: &str = "requests";

/// A part of standard input: a line, or the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Line(String),
    End,
}

/// A message of a client about an object. Times are those of the clock that both ends of a trial have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Said {
    /// The number of bytes of an object that have arrived.
    Progress {
        bytes: u64,
        requested_at: Duration,
        at: Duration,
    },
    Object(Object),
}

/// An object that has arrived, or was given up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Object {
    pub is_whole: bool,
    /// Bytes that have arrived.
    pub bytes: u64,
    pub requested_at: Duration,
    pub first_byte_at: Duration,
    pub done_at: Duration,
}

impl Said {
    /// The event of the contract.
    pub fn json(&self) -> String {
        match self {
            Self::Progress { bytes, requested_at, at } => {
                let [requested_at, at] = [requested_at, at].map(seconds);
                format!(r#"{{"event": "progress", "bytes": {bytes}, "requested_at": {requested_at}, "at": {at}}}"#)
            }
            Self::Object(Object { is_whole, bytes, requested_at, first_byte_at, done_at }) => {
                let event = if *is_whole { "object" } else { "stopped" };
                let [requested_at, first_byte_at, done_at] = [requested_at, first_byte_at, done_at].map(seconds);
                format!(
                    r#"{{"event": "{event}", "bytes": {bytes}, "requested_at": {requested_at}, "first_byte_at": {first_byte_at}, "done_at": {done_at}}}"#
                )
            }
        }
    }
}

fn seconds(time: &Duration) -> String {
    format!("{}.{:09}", time.as_secs(), time.subsec_nanos())
}

/// The request in a line.
#[derive(Debug, PartialEq)]
enum Asked {
    Get { size: u64, tell_every: Option<Duration> },
    Stop,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    get: Option<u64>,
    tell_every_s: Option<f64>,
    stop: Option<bool>,
}

fn asked(line: &str) -> Result<Asked, String> {
    match serde_json::from_str(line) {
        Ok(Line { get: Some(size), tell_every_s, stop: None })
            if size <= LARGEST && tell_every_s.is_none_or(|every_s| (0.0..=3600.0).contains(&every_s)) =>
        {
            Ok(Asked::Get { size, tell_every: tell_every_s.map(Duration::from_secs_f64) })
        }
        Ok(Line { get: None, tell_every_s: None, stop: Some(true) }) => Ok(Asked::Stop),
        _ => Err(format!(
            "standard input: {line:?} is neither {{\"get\": BYTES}} of at most {LARGEST} bytes, which may have \
             \"tell_every_s\" of at most 3600, nor {{\"stop\": true}}"
        )),
    }
}

/// The requests to a client, and the progress of their objects. A stream is named as its protocol does.
pub struct Requests<Stream> {
    content_seed: u64,
    /// Requests without a stream.
    waiting: VecDeque<Pending>,
    open: BTreeMap<Stream, Pending>,
    /// Streams of objects that were given up, which are to be stopped.
    given_up: Vec<Stream>,
    /// Time at which they were given up.
    stopped: Option<Instant>,
    /// News of objects, with their times.
    news: Vec<(News, Pending, Instant)>,
    /// Time at which the handshake was complete.
    pub connected: Option<Instant>,
    /// Whether the server allows no further stream for now.
    pub is_blocked: bool,
    /// Time at which the input ended.
    ended: Option<Instant>,
    /// Another reason for the end.
    failure: Option<(Instant, String)>,
    /// Room for the content that is right.
    right: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    size: u64,
    requested: Instant,
    /// Interval of progress reports.
    tell_every: Option<Duration>,
    told: Option<Instant>,
    received: u64,
    first_byte: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum News {
    Progress,
    Whole,
    GivenUp,
}

impl<Stream: Ord + Copy> Requests<Stream> {
    pub fn new(content_seed: u64) -> Self {
        Self {
            content_seed,
            waiting: VecDeque::new(),
            open: BTreeMap::new(),
            given_up: Vec::new(),
            stopped: None,
            news: Vec::new(),
            connected: None,
            is_blocked: false,
            ended: None,
            failure: None,
            right: Vec::new(),
        }
    }

    /// Reads what there is to read.
    pub fn read(&mut self, host: &mut impl Host) -> Result<(), String> {
        while self.ended.is_none() {
            match host.read().map_err(|error| format!("standard input: {error}"))? {
                None => break,
                Some(Input::Line(line)) => self.ask(asked(&line)?, host.now()),
                Some(Input::End) => self.ended = Some(host.now()),
            }
        }
        Ok(())
    }

    fn ask(&mut self, asked: Asked, now: Instant) {
        match asked {
            Asked::Get { size, tell_every } => {
                let pending = Pending { size, requested: now, tell_every, told: None, received: 0, first_byte: None };
                self.waiting.push_back(pending);
            }
            Asked::Stop => {
                let open = std::mem::take(&mut self.open);
                self.given_up.extend(open.keys());
                self.stopped = Some(now);
                let all = open.into_values().chain(self.waiting.drain(..));
                self.news.extend(all.map(|pending| (News::GivenUp, pending, now)));
            }
        }
    }

    /// Whether a request waits for its stream.
    pub fn is_waiting(&self) -> bool {
        self.connected.is_some() && !self.waiting.is_empty()
    }

    /// Since when there has been something to do: a stream to stop, or one to open unless the server allows none.
    pub fn due_since(&self) -> Option<Instant> {
        if self.connected.is_none() || self.failure.is_some() {
            return None;
        }
        let stops = self.given_up.first().and(self.stopped);
        stops.or_else(|| self.waiting.front().filter(|_| !self.is_blocked).map(|pending| pending.requested))
    }

    /// Notes why it has ended, if it has.
    pub fn note(&mut self, now: Instant, result: Result<(), String>) {
        if let Err(what) = result {
            self.failure.get_or_insert((now, format!("{NAME}: {what}")));
        }
    }

    /// The connection is no more: why, in a line.
    pub fn lost(&self, reason: impl Display) -> String {
        match self.connected {
            None => format!("handshake: {reason}"),
            Some(_) => format!("connection lost: {reason}"),
        }
    }

    /// Returns how and when it has ended, if it has; an error is one line.
    pub fn outcome(&self) -> Option<(Instant, Result<(), String>)> {
        if let Some((at, what)) = &self.failure {
            return Some((*at, Err(what.clone())));
        }
        let never = || format!("{NAME}: the input ended before the handshake");
        Some((self.ended?, self.connected.map(drop).ok_or_else(never)))
    }

    /// The streams that are to be stopped: nobody wants any more what comes in them.
    pub fn take_given_up(&mut self) -> Vec<Stream> {
        std::mem::take(&mut self.given_up)
    }

    /// The size that is to be asked for next, which has this stream now.
    pub fn open(&mut self, stream: Stream) -> Option<u64> {
        let pending = self.waiting.pop_front()?;
        self.open.insert(stream, pending);
        Some(pending.size)
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
        if let Some(place) = difference(self.content_seed, pending.received, bytes, &mut self.right) {
            return Err(format!("byte {} is not that of the content", pending.received + place as u64));
        }
        pending.received += bytes.len() as u64;
        if let Some(every) = pending.tell_every
            && !bytes.is_empty()
            && pending.received < pending.size
            && pending.told.is_none_or(|told| now - told >= every)
        {
            pending.told = Some(now);
            self.news.push((News::Progress, *pending, now));
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
        self.news.push((News::Whole, pending, now));
        Ok(())
    }

    /// Says what has happened.
    pub fn say(&mut self, host: &mut impl Host) -> Result<(), String> {
        for (news, Pending { received: bytes, requested, first_byte, .. }, at) in self.news.drain(..) {
            let said = if news == News::Progress {
                Said::Progress { bytes, requested_at: host.monotonic(requested), at: host.monotonic(at) }
            } else {
                let [requested_at, first_byte_at, done_at] =
                    [requested, first_byte.unwrap_or(at), at].map(|time| host.monotonic(time));
                Said::Object(Object { is_whole: news == News::Whole, bytes, requested_at, first_byte_at, done_at })
            };
            host.say(Event::Said(said)).map_err(|error| format!("standard output: {error}"))?;
        }
        Ok(())
    }
}

/// A question of a simulator to the harness: the lines for its client to read, at first and after each message of it.
#[derive(Serialize)]
pub struct Question {
    pub number: u64,
    pub objects: Vec<serde_json::Value>,
    pub now_s: f64,
}

/// The lines for the client from then on, which replace those that it has not read yet; times are ns of the simulation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    pub number: u64,
    pub lines: Vec<(u64, Option<String>)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::fill;

    #[test]
    fn a_line_asks_for_a_number_of_bytes_or_gives_up_or_is_refused() {
        assert_eq!(asked(r#"{"get": 1000}"#), Ok(Asked::Get { size: 1000, tell_every: None }));
        let told = Asked::Get { size: 1, tell_every: Some(Duration::from_millis(100)) };
        assert_eq!(asked(r#"{"get": 1, "tell_every_s": 0.1}"#), Ok(told));
        assert_eq!(asked(r#"{"stop": true}"#), Ok(Asked::Stop));
        for wrong in [
            "",
            "get",
            "{}",
            r#"{"get": -1}"#,
            r#"{"get": 1, "put": 2}"#,
            r#"{"get": 1099511627777}"#,
            r#"{"get": 1, "tell_every_s": -1}"#,
            r#"{"get": 1, "stop": true}"#,
            r#"{"stop": false}"#,
        ] {
            assert!(asked(wrong).unwrap_err().starts_with("standard input: "), "{wrong}");
        }
    }

    #[test]
    fn progress_is_told_as_often_as_asked_and_what_is_given_up_with_what_has_come() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut content = vec![0; 1_000];
        fill(7, 0, &mut content);
        let mut requests = Requests::new(7);
        requests.ask(asked(r#"{"get": 1000, "tell_every_s": 0.1}"#).unwrap(), begun);
        requests.connected = Some(begun);
        requests.open(1);
        for (ms, part) in [(50, 0..100), (149, 100..200), (150, 200..300), (260, 300..400)] {
            requests.take(at(ms), 1, &content[part]).unwrap();
        }
        requests.ask(asked(r#"{"get": 5}"#).unwrap(), at(300));
        requests.ask(Asked::Stop, at(300));
        let news: Vec<_> = requests.news.iter().map(|(news, pending, at)| (*news, pending.received, *at)).collect();
        let [progress, up] = [News::Progress, News::GivenUp];
        let right = [
            (progress, 100, at(50)),
            (progress, 300, at(150)),
            (progress, 400, at(260)),
            (up, 400, at(300)),
            (up, 0, at(300)),
        ];
        assert_eq!(news, right);
        requests.is_blocked = true;
        assert_eq!(requests.due_since(), Some(at(300)));
        assert_eq!(requests.take_given_up(), [1]);
        requests.is_blocked = false;
        assert!(requests.due_since().is_none() && !requests.is_open(1));
        requests.take(at(310), 1, b"what comes later").unwrap();
    }

    #[test]
    fn an_object_is_said_with_nine_decimals() {
        let at = Duration::new(3, 7);
        let done_at = Duration::new(12, 100_000_000);
        let object = Object { is_whole: true, bytes: 5, requested_at: at, first_byte_at: at, done_at };
        let times = r#""requested_at": 3.000000007, "first_byte_at": 3.000000007, "done_at": 12.100000000"#;
        assert_eq!(Said::Object(object).json(), format!(r#"{{"event": "object", "bytes": 5, {times}}}"#));
        let stopped = Said::Object(Object { is_whole: false, ..object });
        assert_eq!(stopped.json(), format!(r#"{{"event": "stopped", "bytes": 5, {times}}}"#));
        let progress = Said::Progress { bytes: 3, requested_at: at, at };
        assert_eq!(
            progress.json(),
            r#"{"event": "progress", "bytes": 3, "requested_at": 3.000000007, "at": 3.000000007}"#
        );
    }

    #[test]
    fn content_that_is_wrong_or_too_much_or_too_little_is_refused() {
        let now = Instant::now();
        let mut content = vec![0; 10_000];
        fill(7, 0, &mut content);
        let begun = || {
            let mut requests = Requests::new(7);
            requests.ask(Asked::Get { size: 10_000, tell_every: None }, now);
            assert_eq!(requests.open(1), Some(10_000));
            requests
        };
        let mut right = begun();
        right.take(now, 1, &content[..6_000]).and_then(|()| right.take(now, 1, &content[6_000..])).unwrap();
        right.end(now, 1).unwrap();
        assert!(right.news.len() == 1 && right.news[0].0 == News::Whole && !right.is_open(1));
        let mut wrong = content.clone();
        wrong[9_000] ^= 1;
        assert!(begun().take(now, 1, &wrong).unwrap_err().contains("byte 9000 is not that"));
        content.push(0);
        assert!(begun().take(now, 1, &content).unwrap_err().contains("more than"));
        assert!(begun().end(now, 1).unwrap_err().contains("0 of 10000 bytes"));
    }
}
