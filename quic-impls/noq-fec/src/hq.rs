//! hq-interop: a stream for each request, "GET /SIZE\r\n" or "PUT /SIZE\r\n" and the body; the answer is the
//! content, or the SHA-256 of the body in hexadecimal. The end of the stream ends both.

use std::collections::BTreeMap;
use std::time::Instant;

use host::contract::{Direction, Transfer};
use noq_proto::{
    Connection, ConnectionError, Dir, Event, FinishError, ReadError, SendStream, StreamEvent, StreamId, VarInt,
    WriteError,
};

use crate::content::{self, Hash};
use crate::stack::Application;

pub const ALPN: &[u8] = b"hq-interop";

// Stream error codes of our hq-interop, which defines none.
const BAD_REQUEST: VarInt = VarInt::from_u32(1);
const NOT_RECEIVED: VarInt = VarInt::from_u32(2);

/// The longest request line that is read, in bytes.
const LONGEST_LINE: usize = 64;

/// The length of a SHA-256 in hexadecimal.
const HASH_LENGTH: usize = 64;

/// Bytes that a stream is given at once.
const STEP: usize = 16 << 10;

/// One request of a client, and its answer.
pub struct Request {
    transfer: Transfer,
    content_seed: u64,
    outgoing: Outgoing,
    stream: Option<StreamId>,
    received: Hash,
    answer: Vec<u8>,
    /// When the handshake was complete.
    pub connected: Option<Instant>,
    /// How and when the transfer ended; an error is one line.
    pub outcome: Option<(Instant, Result<(), String>)>,
}

impl Request {
    pub fn new(transfer: Transfer, content_seed: u64) -> Self {
        let (method, body) = match transfer.direction {
            Direction::Download => ("GET", 0),
            Direction::Upload => ("PUT", transfer.size),
        };
        Self {
            transfer,
            content_seed,
            outgoing: Outgoing {
                first: format!("{method} /{}\r\n", transfer.size).into_bytes(),
                seed: content_seed,
                size: body,
                sent: 0,
            },
            stream: None,
            received: Hash::default(),
            answer: Vec::new(),
            connected: None,
            outcome: None,
        }
    }

    fn proceed(&mut self, connection: &mut Connection, event: Event) -> Result<bool, String> {
        match event {
            Event::Connected => {
                let Some(id) = connection.streams().open(Dir::Bi) else {
                    return Err("the server allows no stream".into());
                };
                self.stream = Some(id);
                self.outgoing.proceed(&mut connection.send_stream(id))?;
            }
            Event::ConnectionLost { reason } => return Err(self.lost(&reason)),
            Event::Stream(StreamEvent::Writable { id }) => {
                self.outgoing.proceed(&mut connection.send_stream(id))?;
            }
            Event::Stream(StreamEvent::Stopped { error_code, .. }) => {
                return Err(format!("the server stopped the request with code {error_code}"));
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                let is_end = read(connection, id, |bytes| self.take(bytes))?;
                if is_end {
                    self.verify()?;
                }
                return Ok(is_end);
            }
            _ => {}
        }
        Ok(false)
    }

    fn lost(&self, reason: &ConnectionError) -> String {
        match self.stream {
            None => format!("handshake: {reason}"),
            Some(_) => format!("connection lost after {} bytes: {reason}", self.received.size),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.received.update(bytes);
        let limit = match self.transfer.direction {
            Direction::Download => self.transfer.size,
            Direction::Upload => HASH_LENGTH as u64,
        };
        if self.received.size > limit {
            return Err(format!("the server sent more than the {limit} bytes that are right"));
        }
        if self.transfer.direction == Direction::Upload {
            self.answer.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<(), String> {
        // Not before: a transfer that fills a link for others is large, and never ends.
        let right = content::hash(self.content_seed, self.transfer.size);
        match self.transfer.direction {
            Direction::Download if self.received.size < self.transfer.size => {
                Err(format!("the server sent {} bytes", self.received.size))
            }
            Direction::Download => match std::mem::take(&mut self.received).hex() {
                got if got == right => Ok(()),
                got => Err(format!("the content received has SHA-256 {got}, right is {right}")),
            },
            Direction::Upload if self.answer == right.as_bytes() => Ok(()),
            Direction::Upload => Err(format!(
                "the server received content with SHA-256 {:?}, right is {right}",
                String::from_utf8_lossy(&self.answer)
            )),
        }
    }
}

impl Application for Request {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        if self.outcome.is_some() {
            return;
        }
        if matches!(event, Event::Connected) {
            self.connected = Some(now);
        }
        match self.proceed(connection, event) {
            Ok(false) => {}
            Ok(true) => self.outcome = Some((now, Ok(()))),
            Err(what) => self.outcome = Some((now, Err(format!("{}: {what}", self.transfer)))),
        }
    }
}

/// Answers the requests of one connection.
pub struct Answers {
    content_seed: u64,
    exchanges: BTreeMap<StreamId, Exchange>,
    /// Why requests were refused, a line each.
    pub refusals: Vec<String>,
}

enum Exchange {
    /// The request line is still being read.
    Line(Vec<u8>),
    /// A body of this size is being received.
    Body(u64, Hash),
    Answer(Outgoing),
}

/// Why a request is refused: an error code of its stream, and a line.
type Refusal = (VarInt, String);

impl Answers {
    pub fn new(content_seed: u64) -> Self {
        Self { content_seed, exchanges: BTreeMap::new(), refusals: Vec::new() }
    }

    fn proceed(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(mut exchange) = self.exchanges.remove(&id) else {
            return;
        };
        match exchange.proceed(connection, id, self.content_seed) {
            Ok(false) => {
                self.exchanges.insert(id, exchange);
            }
            Ok(true) => {}
            Err((code, what)) => {
                self.refusals.push(format!("request of stream {id}: {what}"));
                // Either half may have ended before; there is nothing to refuse then.
                let _ = connection.recv_stream(id).stop(code);
                let _ = connection.send_stream(id).reset(code);
            }
        }
    }
}

impl Application for Answers {
    fn on_event(&mut self, _now: Instant, connection: &mut Connection, event: Event) {
        match event {
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(id) = connection.streams().accept(Dir::Bi) {
                    self.exchanges.insert(id, Exchange::Line(Vec::new()));
                    self.proceed(connection, id);
                }
            }
            Event::Stream(
                StreamEvent::Readable { id } | StreamEvent::Writable { id } | StreamEvent::Stopped { id, .. },
            ) => self.proceed(connection, id),
            _ => {}
        }
    }
}

impl Exchange {
    /// Goes on as far as possible; true when all of the answer was given to the stream.
    fn proceed(&mut self, connection: &mut Connection, id: StreamId, seed: u64) -> Result<bool, Refusal> {
        if !matches!(self, Self::Answer(_)) {
            let mut bad = None;
            let is_end = read(connection, id, |bytes| {
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
        match self {
            Self::Answer(outgoing) => {
                outgoing.proceed(&mut connection.send_stream(id)).map_err(|what| (NOT_RECEIVED, what))
            }
            _ => Ok(false),
        }
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
            Self::Answer(_) => Err((BAD_REQUEST, "more than a request line".into())),
        }
    }

    fn requested(line: &[u8], seed: u64) -> Result<Self, Refusal> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        let size = |path: &str| path.parse().ok().filter(|size| *size <= 1 << 40);
        if let Some(size) = text.strip_prefix("GET /").and_then(size) {
            return Ok(Self::Answer(Outgoing { first: Vec::new(), seed, size, sent: 0 }));
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
                *self = Self::Answer(Outgoing {
                    first: std::mem::take(hash).hex().into_bytes(),
                    seed: 0,
                    size: 0,
                    sent: 0,
                });
                Ok(())
            }
            Self::Answer(_) => Ok(()),
        }
    }
}

/// What a stream has to send: some first bytes, then content of `size` bytes, then its end.
struct Outgoing {
    first: Vec<u8>,
    seed: u64,
    size: u64,
    sent: u64,
}

impl Outgoing {
    /// Gives the stream as much as it takes; true when that was the rest.
    fn proceed(&mut self, stream: &mut SendStream<'_>) -> Result<bool, String> {
        let mut buffer = [0; STEP];
        while self.sent < self.first.len() as u64 + self.size {
            let step = self.next(&mut buffer);
            match stream.write(step) {
                Ok(written) => self.sent += written as u64,
                Err(WriteError::Blocked) => return Ok(false),
                Err(error) => return Err(error.to_string()),
            }
        }
        match stream.finish() {
            // A stream that was finished before is told of the peer's opinion of it.
            Ok(()) | Err(FinishError::ClosedStream) => Ok(true),
            Err(error) => Err(error.to_string()),
        }
    }

    fn next<'a>(&'a self, buffer: &'a mut [u8]) -> &'a [u8] {
        let first = self.first.len() as u64;
        if self.sent < first {
            return &self.first[self.sent as usize..];
        }
        let offset = self.sent - first;
        let step = (buffer.len() as u64).min(self.size - offset) as usize;
        content::fill(self.seed, offset, &mut buffer[..step]);
        &buffer[..step]
    }
}

/// Reads what a stream has received; true at its end.
fn read(
    connection: &mut Connection,
    id: StreamId,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<bool, String> {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else {
        return Ok(false); // read to its end before
    };
    loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => take(&chunk.bytes)?,
            Ok(None) => return Ok(true),
            Err(ReadError::Blocked) => return Ok(false),
            Err(error) => return Err(error.to_string()),
        }
    }
}
