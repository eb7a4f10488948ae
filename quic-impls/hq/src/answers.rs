//! A server's answers to the requests of its clients. The end of a stream ends a request, and an answer.

use std::collections::BTreeMap;

use host::content::Hash;

use crate::outgoing::Outgoing;
use crate::stack::{Event, Stack, StreamId};

// Stream error codes of our hq-interop, which defines none.
const BAD_REQUEST: u32 = 1;
const NOT_RECEIVED: u32 = 2;

/// The longest request line that is read, in bytes.
const LONGEST_LINE: usize = 64;

/// The largest transfer, in bytes.
const LARGEST: u64 = 1 << 40;

pub struct Answers {
    content_seed: u64,
    /// Of each stream that was opened. One that has ended stays, so that it is not taken for a new one.
    exchanges: BTreeMap<StreamId, Exchange>,
}

enum Exchange {
    /// The request line is still being read.
    Line(Vec<u8>),
    /// A body of this size is being received.
    Body(u64, Hash),
    /// The request was read up to its end or not, and is answered.
    Answer {
        outgoing: Outgoing,
        is_read: bool,
    },
    Ended,
}

/// Why a request is refused: an error code of its stream, and a line.
type Refusal = (u32, String);

impl Answers {
    pub fn new(content_seed: u64) -> Self {
        Self { content_seed, exchanges: BTreeMap::new() }
    }

    /// Goes on with what an event is about. Tells why a request is refused, in one line, if it is.
    pub fn on_event(&mut self, stack: &mut impl Stack, event: Event) -> Option<String> {
        match event {
            Event::Connected { .. } => None,
            Event::Lost { connection, .. } => {
                self.exchanges.retain(|stream, _| stream.connection != connection);
                None
            }
            Event::Stream(stream) => {
                let exchange = self.exchanges.entry(stream).or_insert_with(|| Exchange::Line(Vec::new()));
                let (code, what) = exchange.proceed(stack, stream, self.content_seed).err()?;
                stack.refuse(stream, code);
                *exchange = Exchange::Ended;
                Some(format!("request of stream {}: {what}", stream.stream))
            }
        }
    }
}

impl Exchange {
    /// Goes on as far as possible.
    fn proceed(&mut self, stack: &mut impl Stack, stream: StreamId, seed: u64) -> Result<(), Refusal> {
        if !matches!(self, Self::Answer { is_read: true, .. } | Self::Ended) {
            let mut bad = None;
            let is_end = stack
                .read(stream, &mut |bytes| {
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
        if let Self::Answer { outgoing, is_read } = self {
            let is_sent = outgoing.proceed(stack, stream).map_err(|what| (NOT_RECEIVED, what))?;
            if is_sent && *is_read {
                *self = Self::Ended;
            }
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
            Self::Body(size, hash) => {
                hash.update(bytes);
                match hash.size > *size {
                    true => Err((NOT_RECEIVED, format!("the body has more than the {size} bytes announced"))),
                    false => Ok(()),
                }
            }
            Self::Answer { .. } | Self::Ended => Err((BAD_REQUEST, "more than a request line".into())),
        }
    }

    fn requested(line: &[u8], seed: u64) -> Result<Self, Refusal> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        let size = |path: &str| path.parse().ok().filter(|size| *size <= LARGEST);
        if let Some(size) = text.strip_prefix("GET /").and_then(size) {
            return Ok(Self::Answer { outgoing: Outgoing::new(Vec::new(), seed, size), is_read: false });
        }
        match text.strip_prefix("PUT /").and_then(size) {
            Some(size) => Ok(Self::Body(size, Hash::default())),
            None => Err((BAD_REQUEST, format!("{text:?} is neither GET nor PUT with / and a number of bytes"))),
        }
    }

    /// What the end of the request means.
    fn end(&mut self) -> Result<(), Refusal> {
        match self {
            Self::Line(_) => Err((BAD_REQUEST, "no request line".into())),
            Self::Body(size, hash) if hash.size < *size => {
                Err((NOT_RECEIVED, format!("the body has {} bytes, announced were {size}", hash.size)))
            }
            Self::Body(_, hash) => {
                let answer = std::mem::take(hash).hex().into_bytes();
                *self = Self::Answer { outgoing: Outgoing::new(answer, 0, 0), is_read: true };
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
