//! A server's answers to the requests of its clients. The end of a stream ends a request, and an answer.

use std::collections::BTreeMap;

use host::transfer::{self, Body, Outgoing};

use crate::sending::Sending;
use crate::stack::{Event, StreamId, Streams};

// Stream error codes of our hq-interop, which defines none.
const BAD_REQUEST: u32 = 1;
const NOT_RECEIVED: u32 = 2;

/// The longest request line that is read, in bytes.
const LONGEST_LINE: usize = 64;

pub struct Answers {
    content_seed: u64,
    /// The stream of the first content that was asked for.
    download: Option<StreamId>,
    /// The exchange of each stream that was opened. A finished one stays, so that it is not taken for a new one.
    exchanges: BTreeMap<StreamId, Exchange>,
}

enum Exchange {
    /// The request line is still being read.
    Line(Vec<u8>),
    Body(Body),
    /// The request was read up to its end or not, and is answered.
    Answer {
        sending: Sending,
        is_read: bool,
    },
    /// The request was refused, or nobody wants the answer any more.
    Ended,
}

/// The reason to refuse a request: an error code of its stream, and a line.
type Refusal = (u32, String);

impl Answers {
    pub fn new(content_seed: u64) -> Self {
        Self { content_seed, download: None, exchanges: BTreeMap::new() }
    }

    /// The stream of the first content that was asked for, and whether it has been given all of it.
    pub fn download(&self) -> Option<(StreamId, bool)> {
        let stream = self.download?;
        let is_given = match self.exchanges.get(&stream) {
            Some(Exchange::Answer { sending, .. }) => sending.is_given(),
            _ => true,
        };
        Some((stream, is_given))
    }

    /// Goes on with what an event is about. Tells why a request is refused, in one line, if it is.
    pub fn on_event(&mut self, streams: &mut impl Streams, event: Event) -> Option<String> {
        match event {
            Event::Connected { .. } | Event::Available { .. } => None,
            Event::Lost { connection, .. } => {
                self.exchanges.retain(|stream, _| stream.connection != connection);
                None
            }
            Event::Stopped { stream, .. } => {
                self.exchanges.insert(stream, Exchange::Ended);
                None
            }
            Event::Stream(stream) => {
                let exchange = self.exchanges.entry(stream).or_insert_with(|| Exchange::Line(Vec::new()));
                let proceeded = exchange.proceed(streams, stream, self.content_seed);
                if matches!(exchange, Exchange::Answer { sending, .. } if sending.is_content()) {
                    self.download.get_or_insert(stream);
                }
                let (code, what) = proceeded.err()?;
                streams.stop(stream, code);
                streams.reset(stream, code);
                *exchange = Exchange::Ended;
                Some(format!("request of stream {}: {what}", stream.stream))
            }
        }
    }
}

impl Exchange {
    /// Goes on as far as possible.
    fn proceed(&mut self, streams: &mut impl Streams, stream: StreamId, seed: u64) -> Result<(), Refusal> {
        if !matches!(self, Self::Answer { is_read: true, .. } | Self::Ended) {
            let mut bad = None;
            let is_end = streams
                .read(stream, |bytes| {
                    self.take(bytes, seed).map_err(|(code, what)| {
                        bad = Some(code);
                        what
                    })
                })
                .map_err(|what| (bad.unwrap_or(NOT_RECEIVED), what))?;
            if is_end {
                self.end()?;
            }
        }
        if let Self::Answer { sending, .. } = self {
            sending.proceed(streams, stream).map_err(|what| (NOT_RECEIVED, what))?;
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], seed: u64) -> Result<(), Refusal> {
        match self {
            Self::Line(line) => {
                line.extend_from_slice(bytes);
                let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
                    return match line.len() > LONGEST_LINE {
                        true => Err((BAD_REQUEST, "no request line".into())),
                        false => Ok(()),
                    };
                };
                let rest = line.split_off(end + 1);
                *self = Self::requested(line, seed)?;
                match rest.is_empty() {
                    true => Ok(()),
                    false => self.take(&rest, seed),
                }
            }
            Self::Body(body) => body.take(bytes).map_err(|what| (NOT_RECEIVED, what)),
            Self::Answer { .. } | Self::Ended => Err((BAD_REQUEST, "more than a request line".into())),
        }
    }

    fn requested(line: &[u8], seed: u64) -> Result<Self, Refusal> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if let Some(size) = text.strip_prefix("GET ").and_then(transfer::size) {
            return Ok(Self::Answer { sending: Sending::new(Outgoing::content(seed, size)), is_read: false });
        }
        match text.strip_prefix("PUT ").and_then(transfer::size) {
            Some(size) => Ok(Self::Body(Body::new(size))),
            None => Err((BAD_REQUEST, format!("{text:?} is neither GET nor PUT with / and a number of bytes"))),
        }
    }

    /// Handles the end of the request.
    fn end(&mut self) -> Result<(), Refusal> {
        match self {
            Self::Line(_) => Err((BAD_REQUEST, "no request line".into())),
            Self::Body(body) => {
                let answer = body.answer().map_err(|what| (NOT_RECEIVED, what))?;
                *self = Self::Answer { sending: Sending::new(answer), is_read: true };
                Ok(())
            }
            Self::Answer { is_read, .. } => {
                *is_read = true;
                Ok(())
            }
            Self::Ended => Ok(()),
        }
    }
}
