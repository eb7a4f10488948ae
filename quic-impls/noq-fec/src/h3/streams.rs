//! The streams of HTTP/3 in a connection of noq-proto: joins it to h3wire, which knows neither streams nor a clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bytes::{Buf, Bytes};
use h3wire::{
    AbortSource, Action, Config, Event as CoreEvent, FieldRef, H3Code, HeadersKind, Recv, Role, StreamId as CoreId,
};
use host::transfer::Outgoing;
use noq_proto::{Connection, Dir, Event, ReadError, StreamEvent, StreamId, VarInt, WriteError};

/// The longest fields that are read, in bytes as they come.
const LONGEST_FIELDS: usize = 16 << 10;

const NO_ERROR: H3Code = H3Code::NO_ERROR;
const CANCELLED: H3Code = H3Code::REQUEST_CANCELLED;

/// News of the stream of a request.
pub enum News {
    Head(StreamId, HeadersKind, Head),
    /// A part of the body.
    Body(StreamId, Bytes),
    /// The whole of a message has come.
    End(StreamId),
    /// The stream ended otherwise; whether the peer ended it.
    Aborted(StreamId, H3Code, bool),
    /// The peer wants no more of what is sent to it.
    Stopped(StreamId, H3Code),
}

impl News {
    pub fn stream(&self) -> StreamId {
        match self {
            Self::Head(stream, ..) | Self::Body(stream, _) | Self::End(stream) => *stream,
            Self::Aborted(stream, ..) | Self::Stopped(stream, _) => *stream,
        }
    }
}

/// The head of a request or an answer; fields that it lacks are empty.
#[derive(Default)]
pub struct Head {
    pub method: String,
    pub path: String,
    pub status: Option<u16>,
}

/// The streams of a connection.
pub struct Streams {
    core: h3wire::Connection,
    /// Bodies whose DATA frames wait for the fields before them.
    waiting: BTreeMap<StreamId, Outgoing>,
    /// DATA frames that are being sent.
    frames: BTreeMap<StreamId, Outgoing>,
    /// Streams of which nothing more is read once they are answered.
    refused: BTreeSet<StreamId>,
}

impl Streams {
    pub fn new(role: Role) -> Self {
        let mut config = Config::default();
        config.max_encoded_field_section_size = LONGEST_FIELDS;
        config.grease = false; // reserved settings and frames would differ from run to run
        Self {
            core: h3wire::Connection::new(role, config),
            waiting: BTreeMap::new(),
            frames: BTreeMap::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Fields, and a body or none behind them. Nothing is sent before [`Self::transmit`].
    pub fn send(&mut self, stream: StreamId, fields: &[FieldRef<'_>], body: Option<Outgoing>) -> Result<(), String> {
        self.core.send_headers(core_id(stream), fields, body.is_none()).map_err(|error| error.to_string())?;
        if let Some(body) = body {
            self.waiting.insert(stream, body);
        }
        Ok(())
    }

    /// Whether a stream has been given all that was to be sent in it.
    pub fn is_given(&self, stream: StreamId) -> bool {
        !self.waiting.contains_key(&stream) && !self.frames.contains_key(&stream)
    }

    /// Answers with a status alone, or resets a stream that has been answered before, and reads nothing more of it.
    pub fn refuse(&mut self, stream: StreamId, status: &str) {
        let status = FieldRef::new(b":status", status.as_bytes());
        if self.send(stream, &[status], None).is_ok() {
            self.refused.insert(stream);
        } else {
            self.cancel(stream);
        }
    }

    /// Wants nothing more of an exchange.
    pub fn cancel(&mut self, stream: StreamId) {
        self.forget(stream);
        let _ = self.core.abort(core_id(stream), CANCELLED); // it may be over
    }

    /// Takes an event of the connection; returns its news of requests and answers, in order.
    pub fn receive(&mut self, connection: &mut Connection, event: &Event) -> Vec<News> {
        let mut news = Vec::new();
        match event {
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = connection.streams().accept(*dir) {
                    self.read(connection, id, &mut news);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(connection, *id, &mut news),
            Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                // Without a reset, the data that the stream holds would be sent all the same.
                let _ = connection.send_stream(*id).reset(*error_code); // all of it may have been acknowledged
                // An error closes the connection, which is an action.
                let _ = self.core.stop_sending_received(core_id(*id), H3Code(error_code.into_inner()));
                self.tell(&mut news);
            }
            Event::ConnectionLost { .. } => self.core.transport_closed(),
            _ => {}
        }
        news
    }

    fn read(&mut self, connection: &mut Connection, id: StreamId, news: &mut Vec<News>) {
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return; // read to its end before
        };
        // An error of the core closes the connection, which is an action.
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    if !self.take(id, chunk.bytes, news) {
                        break;
                    }
                }
                Err(ReadError::Blocked) => break,
                Ok(None) => {
                    let _ = self.core.recv(core_id(id), &[], true);
                    break;
                }
                Err(ReadError::Reset(code)) => {
                    let _ = self.core.stream_reset_received(core_id(id), H3Code(code.into_inner()));
                    break;
                }
            }
        }
        self.tell(news);
    }

    /// False when that was the end of the connection.
    fn take(&mut self, id: StreamId, mut bytes: Bytes, news: &mut Vec<News>) -> bool {
        while !bytes.is_empty() {
            let consumed = match self.core.recv(core_id(id), &bytes, false) {
                Ok(Recv::Body { consumed, range }) => {
                    news.push(News::Body(id, bytes.slice(range)));
                    consumed
                }
                Ok(Recv::Consumed(consumed) | Recv::Frame { consumed, .. } | Recv::Raw { consumed, .. }) => consumed,
                Ok(Recv::Paused) => unreachable!("fields are released at once"),
                Err(_) => return false,
            };
            bytes.advance(consumed);
            self.tell(news);
        }
        true
    }

    fn tell(&mut self, news: &mut Vec<News>) {
        while let Some(event) = self.core.poll_event() {
            match event {
                CoreEvent::Headers { stream, block, kind } => {
                    let head = self.core.headers(block).map(|fields| {
                        let text = |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or_default()).into();
                        let fields = fields.pseudo();
                        Head { method: text(fields.method), path: text(fields.path), status: fields.status }
                    });
                    self.core.release(block);
                    news.push(News::Head(quic_id(stream), kind, head.unwrap_or_default()));
                }
                CoreEvent::Finished(stream) => news.push(News::End(quic_id(stream))),
                // The abort is ours, of a stream that was refused.
                CoreEvent::StreamAborted { source: AbortSource::Local, code: NO_ERROR | CANCELLED, .. } => {}
                CoreEvent::StreamAborted { stream, code, source } => {
                    self.forget(quic_id(stream));
                    news.push(News::Aborted(quic_id(stream), code, source != AbortSource::Local));
                }
                CoreEvent::SendStopped { stream, code } => {
                    self.forget(quic_id(stream));
                    news.push(News::Stopped(quic_id(stream), code));
                }
                _ => {} // SETTINGS and GOAWAY change nothing for the one request, nor do streams of other kinds
            }
        }
    }

    /// Drops what is still to be sent.
    fn forget(&mut self, id: StreamId) {
        self.waiting.remove(&id);
        self.frames.remove(&id);
    }

    /// Sends as much as the connection takes. An error is why the connection has been closed, in a line.
    pub fn transmit(&mut self, now: Instant, connection: &mut Connection) -> Result<(), String> {
        loop {
            self.act(now, connection)?;
            let mut has_moved = false;
            for id in self.core.sendable().collect::<Vec<_>>() {
                has_moved |= self.send_fields(connection, id);
            }
            self.begin_frames();
            for id in self.frames.keys().copied().collect::<Vec<_>>() {
                has_moved |= self.send_frame(connection, id);
            }
            if !has_moved {
                return self.act(now, connection);
            }
        }
    }

    fn act(&mut self, now: Instant, connection: &mut Connection) -> Result<(), String> {
        while let Some(action) = self.core.poll_action() {
            // A stream that is no more has nothing to end.
            match action {
                Action::OpenUni(kind) => {
                    let opened = connection.streams().open(Dir::Uni).ok_or("the peer allows no control stream")?;
                    self.core.bind_uni(kind, core_id(opened)).map_err(|error| error.to_string())?;
                }
                Action::ResetStream { stream, code } => {
                    let _ = connection.send_stream(quic_id(stream)).reset(varint(code));
                }
                Action::StopSending { stream, code } => {
                    let _ = connection.recv_stream(quic_id(stream)).stop(varint(code));
                }
                Action::FinishStream(stream) => {
                    let _ = connection.send_stream(quic_id(stream)).finish();
                    if self.refused.remove(&quic_id(stream)) {
                        let _ = self.core.abort(stream, NO_ERROR);
                    }
                }
                Action::CloseConnection { code, reason } => {
                    connection.close(now, varint(code), Bytes::from_static(reason.as_bytes()));
                    return Err(format!("HTTP/3 error {:#x}: {reason}", code.0));
                }
            }
        }
        Ok(())
    }

    /// Fields, and what is in the control streams; whether the connection took anything.
    fn send_fields(&mut self, connection: &mut Connection, id: CoreId) -> bool {
        let mut has_moved = false;
        while let Some(bytes) = self.core.poll_send(id)
            && let Ok(written) = connection.send_stream(quic_id(id)).write(bytes)
        {
            has_moved |= self.core.sent(id, written).is_ok();
        }
        has_moved
    }

    /// DATA frames begin as soon as the fields before them have been sent.
    fn begin_frames(&mut self) {
        for (id, body) in std::mem::take(&mut self.waiting) {
            match self.core.send_data(core_id(id), body.length(), true) {
                Ok(frame) => drop(self.frames.insert(id, body.behind(frame.prefix()))),
                Err(h3wire::UsageError::Blocked) => drop(self.waiting.insert(id, body)),
                Err(_) => {} // the stream is over
            }
        }
    }

    fn send_frame(&mut self, connection: &mut Connection, id: StreamId) -> bool {
        let Some(frame) = self.frames.get_mut(&id) else {
            return false;
        };
        let before = frame.sent();
        let written = frame.give(|bytes| match connection.send_stream(id).write(bytes) {
            Err(WriteError::Blocked) => Ok(0),
            written => written,
        });
        let step = frame.sent() - before;
        if step > 0 {
            let _ = self.core.data_written(core_id(id), step as usize); // of a stream that is over, nobody minds
        }
        if !matches!(written, Ok(false)) {
            self.frames.remove(&id);
        }
        step > 0
    }
}

fn core_id(id: StreamId) -> CoreId {
    CoreId(id.into())
}

fn quic_id(id: CoreId) -> StreamId {
    VarInt::from_u64(id.0).expect("IDs come from QUIC").into()
}

fn varint(code: H3Code) -> VarInt {
    VarInt::from_u64(code.0).expect("codes come from QUIC or from the RFC")
}
