//! hq-interop over one connection of noq-proto: its events and its streams, as the crate `hq` asks for them.

use std::time::Instant;

use host::contract::Transfer;
use hq::stack::{Event, StreamId, Streams};
use noq_proto::{Connection, Dir, FinishError, ReadError, StreamEvent, VarInt, WriteError};

use crate::sent::Progress;
use crate::stack::Application;

/// To `hq`, each connection is the only one.
const ONLY: usize = 0;

/// One request of a client, and its answer.
pub struct Request(pub hq::request::Request);

impl Request {
    pub fn new(transfer: Transfer, content_seed: u64) -> Self {
        Self(hq::request::Request::new(transfer, content_seed))
    }
}

impl Application for Request {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: noq_proto::Event) {
        pass_on(connection, event, |streams, event| self.0.on_event(now, streams, event));
    }

    fn content(&self, connection: &mut Connection) -> Progress {
        of_stream(connection, self.0.upload())
    }
}

/// The requests of a client that is told what to ask for in the course of a trial.
pub struct Requests(pub hq::requests::Requests);

impl Application for Requests {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: noq_proto::Event) {
        pass_on(connection, event, |streams, event| self.0.on_event(now, streams, event));
    }

    fn timeout(&self) -> Option<Instant> {
        self.0.list.due_since()
    }

    fn on_timeout(&mut self, now: Instant, connection: &mut Connection) {
        self.0.on_timeout(now, &mut Only(connection));
    }
}

/// Answers the requests of one connection.
pub struct Answers {
    answers: hq::answers::Answers,
    /// Why requests were refused, a line each.
    pub refusals: Vec<String>,
}

impl Answers {
    pub fn new(content_seed: u64) -> Self {
        Self { answers: hq::answers::Answers::new(content_seed), refusals: Vec::new() }
    }
}

impl Application for Answers {
    fn on_event(&mut self, _now: Instant, connection: &mut Connection, event: noq_proto::Event) {
        pass_on(connection, event, |streams, event| self.refusals.extend(self.answers.on_event(streams, event)));
    }

    fn content(&self, connection: &mut Connection) -> Progress {
        of_stream(connection, self.answers.download())
    }
}

/// Returns the progress of a stream with content, if there is one; the boolean says whether it has been given all of
/// it.
fn of_stream(connection: &mut Connection, stream: Option<(StreamId, bool)>) -> Progress {
    stream.map_or(Progress::Nothing, |(stream, is_given)| progress(connection, noqs(stream), is_given))
}

/// Returns the progress of a stream with content; `is_given` says whether it has been given all of it.
pub fn progress(connection: &mut Connection, stream: noq_proto::StreamId, is_given: bool) -> Progress {
    match is_given && connection.send_stream(stream).is_sent() {
        true => Progress::Sent,
        false => Progress::Begun,
    }
}

/// Passes on what an event of noq-proto means to `hq`.
fn pass_on(connection: &mut Connection, event: noq_proto::Event, mut take: impl FnMut(&mut Only<'_>, Event)) {
    let event = match event {
        noq_proto::Event::Connected => Event::Connected { connection: ONLY },
        noq_proto::Event::ConnectionLost { reason } => Event::Lost { connection: ONLY, reason: reason.to_string() },
        noq_proto::Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => Event::Available { connection: ONLY },
        noq_proto::Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
            while let Some(id) = connection.streams().accept(Dir::Bi) {
                take(&mut Only(connection), Event::Stream(numbered(id)));
            }
            return;
        }
        noq_proto::Event::Stream(StreamEvent::Readable { id } | StreamEvent::Writable { id }) => {
            Event::Stream(numbered(id))
        }
        noq_proto::Event::Stream(StreamEvent::Stopped { id, error_code }) => {
            // Without a reset, the data that the stream holds would be sent all the same.
            let _ = connection.send_stream(id).reset(error_code); // all of it may have been acknowledged
            Event::Stopped { stream: numbered(id), code: error_code.into_inner() }
        }
        _ => return,
    };
    take(&mut Only(connection), event);
}

fn numbered(id: noq_proto::StreamId) -> StreamId {
    StreamId { connection: ONLY, stream: VarInt::from(id).into_inner() }
}

fn noqs(stream: StreamId) -> noq_proto::StreamId {
    VarInt::from_u64(stream.stream).expect("it was one of noq-proto").into()
}

/// The streams of the only connection.
struct Only<'a>(&'a mut Connection);

impl Streams for Only<'_> {
    fn open(&mut self, _connection: usize) -> Result<Option<StreamId>, String> {
        Ok(self.0.streams().open(Dir::Bi).map(numbered))
    }

    fn read(&mut self, stream: StreamId, mut take: impl FnMut(&[u8]) -> Result<(), String>) -> Result<bool, String> {
        let mut receiving = self.0.recv_stream(noqs(stream));
        let Ok(mut chunks) = receiving.read(true) else {
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

    fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<usize, String> {
        match self.0.send_stream(noqs(stream)).write(bytes) {
            Err(WriteError::Blocked) => Ok(0),
            written => written.map_err(|error| error.to_string()),
        }
    }

    fn finish(&mut self, stream: StreamId) -> Result<(), String> {
        match self.0.send_stream(noqs(stream)).finish() {
            // A stream that was finished before is told of the peer's opinion of it.
            Ok(()) | Err(FinishError::ClosedStream) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn stop(&mut self, stream: StreamId, code: u32) {
        let _ = self.0.recv_stream(noqs(stream)).stop(code.into());
    }

    fn reset(&mut self, stream: StreamId, code: u32) {
        let _ = self.0.send_stream(noqs(stream)).reset(code.into());
    }
}
