//! hq-interop: a stream for each request, "GET /SIZE\r\n" or "PUT /SIZE\r\n" and the body; the answer is the
//! content, or the SHA-256 of the body in hexadecimal. The end of the stream ends both.

use std::collections::BTreeMap;
use std::time::Instant;

use host::answer::Answer;
use host::contract::{Direction, Transfer};
use host::requests;
use noq_proto::{
    Connection, ConnectionError, Dir, Event, FinishError, ReadError, SendStream, StreamEvent, StreamId, VarInt,
};

use crate::sent::Progress;
use crate::stack::Application;
use crate::transfer::{self, Body, Outgoing};

pub const ALPN: &[u8] = b"hq-interop";

// Stream error codes of our hq-interop, which defines none.
const BAD_REQUEST: VarInt = VarInt::from_u32(1);
const NOT_RECEIVED: VarInt = VarInt::from_u32(2);
/// Nobody wants the answer any more.
const GIVEN_UP: VarInt = VarInt::from_u32(0);

/// The longest request line that is read, in bytes.
const LONGEST_LINE: usize = 64;

/// One request of a client, and its answer.
pub struct Request {
    transfer: Transfer,
    outgoing: Outgoing,
    stream: Option<StreamId>,
    /// Whether the stream has been given all of the request.
    is_given: bool,
    answer: Answer,
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
        let line = format!("{method} /{}\r\n", transfer.size);
        Self {
            transfer,
            outgoing: Outgoing::content(content_seed, body).behind(line.as_bytes()),
            stream: None,
            is_given: false,
            answer: Answer::new(transfer, content_seed),
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
                self.is_given = send(&mut self.outgoing, &mut connection.send_stream(id))?;
            }
            Event::ConnectionLost { reason } => return Err(self.lost(&reason)),
            Event::Stream(StreamEvent::Writable { id }) => {
                self.is_given = send(&mut self.outgoing, &mut connection.send_stream(id))?;
            }
            Event::Stream(StreamEvent::Stopped { error_code, .. }) => {
                return Err(format!("the server stopped the request with code {error_code}"));
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                let is_end = read(connection, id, |bytes| self.answer.take(bytes))?;
                if is_end {
                    self.answer.verify()?;
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
            Some(_) => format!("connection lost after {} bytes: {reason}", self.answer.size()),
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

    fn content(&self, connection: &mut Connection) -> Progress {
        match (self.transfer.direction, self.stream) {
            (Direction::Upload, Some(id)) => progress(connection, id, self.is_given),
            _ => Progress::Nothing,
        }
    }
}

/// The requests of a client that is told what to ask for in the course of a trial.
pub struct Requests {
    pub list: requests::Requests<StreamId>,
    /// Whether the server allows no further stream for now.
    is_blocked: bool,
    /// When the handshake was complete.
    pub connected: Option<Instant>,
    /// Why it has ended, if it has.
    pub failure: Option<(Instant, String)>,
}

impl Requests {
    pub fn new(content_seed: u64) -> Self {
        Self { list: requests::Requests::new(content_seed), is_blocked: false, connected: None, failure: None }
    }

    /// Stops what is given up, and asks for what waits.
    fn ask(&mut self, connection: &mut Connection) -> Result<(), String> {
        for id in self.list.take_given_up() {
            let _ = connection.recv_stream(id).stop(GIVEN_UP); // it may have ended
        }
        while self.connected.is_some() && self.list.waiting_since().is_some() {
            let Some(id) = connection.streams().open(Dir::Bi) else {
                self.is_blocked = true;
                break;
            };
            let size = self.list.open(id).expect("one waits");
            let mut line = Outgoing::text(format!("GET /{size}\r\n"));
            if !send(&mut line, &mut connection.send_stream(id))? {
                return Err("the server takes no request".into());
            }
        }
        Ok(())
    }

    fn proceed(&mut self, now: Instant, connection: &mut Connection, event: Event) -> Result<(), String> {
        match event {
            Event::Connected => {
                self.connected = Some(now);
                self.ask(connection)
            }
            Event::ConnectionLost { reason } => Err(match self.connected {
                None => format!("handshake: {reason}"),
                Some(_) => format!("connection lost: {reason}"),
            }),
            Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => {
                self.is_blocked = false;
                self.ask(connection)
            }
            Event::Stream(StreamEvent::Stopped { id, error_code }) if self.list.is_open(id) => {
                Err(format!("the server stopped a request with code {error_code}"))
            }
            Event::Stream(StreamEvent::Readable { id }) if self.list.is_open(id) => {
                match read(connection, id, |bytes| self.list.take(now, id, bytes))? {
                    true => self.list.end(now, id),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn note(&mut self, now: Instant, result: Result<(), String>) {
        if let Err(what) = result {
            self.failure.get_or_insert((now, what));
        }
    }
}

impl Application for Requests {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        let result = self.proceed(now, connection, event);
        self.note(now, result);
    }

    fn timeout(&self) -> Option<Instant> {
        let is_ready = self.connected.is_some() && self.failure.is_none();
        self.list.due_since(self.is_blocked).filter(|_| is_ready)
    }

    fn on_timeout(&mut self, now: Instant, connection: &mut Connection) {
        let result = self.ask(connection);
        self.note(now, result);
    }
}

/// How far a stream has come with content that it is given.
pub fn progress(connection: &mut Connection, stream: StreamId, is_given: bool) -> Progress {
    match is_given && connection.send_stream(stream).is_sent() {
        true => Progress::Sent,
        false => Progress::Begun,
    }
}

/// Answers the requests of one connection.
pub struct Answers {
    content_seed: u64,
    /// The stream of the first content that was asked for.
    download: Option<StreamId>,
    exchanges: BTreeMap<StreamId, Exchange>,
    /// Why requests were refused, a line each.
    pub refusals: Vec<String>,
}

enum Exchange {
    /// The request line is still being read.
    Line(Vec<u8>),
    Body(Body),
    Answer(Outgoing),
}

/// Why a request is refused: an error code of its stream, and a line.
type Refusal = (VarInt, String);

impl Answers {
    pub fn new(content_seed: u64) -> Self {
        Self { content_seed, download: None, exchanges: BTreeMap::new(), refusals: Vec::new() }
    }

    fn proceed(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(mut exchange) = self.exchanges.remove(&id) else {
            return;
        };
        let outcome = exchange.proceed(connection, id, self.content_seed);
        if matches!(&exchange, Exchange::Answer(answer) if answer.is_content()) {
            self.download.get_or_insert(id);
        }
        match outcome {
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
            Event::Stream(StreamEvent::Readable { id } | StreamEvent::Writable { id }) => {
                self.proceed(connection, id);
            }
            // What the stream holds would be sent all the same, without a reset.
            Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                self.exchanges.remove(&id);
                let _ = connection.send_stream(id).reset(error_code); // all of it may have been acknowledged
            }
            _ => {}
        }
    }

    fn content(&self, connection: &mut Connection) -> Progress {
        match self.download {
            Some(id) => progress(connection, id, !self.exchanges.contains_key(&id)),
            None => Progress::Nothing,
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
                send(outgoing, &mut connection.send_stream(id)).map_err(|what| (NOT_RECEIVED, what))
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
            Self::Body(body) => body.take(bytes).map_err(|what| (NOT_RECEIVED, what)),
            Self::Answer(_) => Err((BAD_REQUEST, "more than a request line".into())),
        }
    }

    fn requested(line: &[u8], seed: u64) -> Result<Self, Refusal> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if let Some(size) = text.strip_prefix("GET ").and_then(transfer::size) {
            return Ok(Self::Answer(Outgoing::content(seed, size)));
        }
        match text.strip_prefix("PUT ").and_then(transfer::size) {
            Some(size) => Ok(Self::Body(Body::new(size))),
            None => Err((BAD_REQUEST, format!("{text:?} is neither GET nor PUT with / and a number of bytes"))),
        }
    }

    /// What the end of the request means.
    fn end(&mut self) -> Result<(), Refusal> {
        match self {
            Self::Line(_) => Err((BAD_REQUEST, "no request line".into())),
            Self::Body(body) => {
                *self = Self::Answer(body.answer().map_err(|what| (NOT_RECEIVED, what))?);
                Ok(())
            }
            Self::Answer(_) => Ok(()),
        }
    }
}

/// Gives a stream as much as it takes, and its end; true when that was the rest.
fn send(outgoing: &mut Outgoing, stream: &mut SendStream<'_>) -> Result<bool, String> {
    if !outgoing.write(stream).map_err(|error| error.to_string())? {
        return Ok(false);
    }
    match stream.finish() {
        // A stream that was finished before is told of the peer's opinion of it.
        Ok(()) | Err(FinishError::ClosedStream) => Ok(true),
        Err(error) => Err(error.to_string()),
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
