//! HTTP/3 (RFC 9114): requests and answers, without a socket or a clock. "GET /SIZE" and "PUT /SIZE" have the bodies of
//! hq-interop; a body is one DATA frame. Requests that cannot be served are answered with status 400 or 405.

mod streams;

use std::collections::BTreeMap;
use std::time::Instant;

use h3wire::{FieldRef, H3Code, HeadersKind, Role};
use host::answer::Answer;
use host::contract::{Direction, Transfer};
use host::requests;
use host::transfer::{self, Body, Outgoing};
use noq_proto::{Connection, Dir, Event, StreamEvent, StreamId, VarInt};

use crate::hq_interop::progress;
use crate::sent::Progress;
use crate::stack::Application;
use streams::{Head, News, Streams};

pub const ALPN: &[u8] = b"h3";

/// H3_NO_ERROR, with which a connection is closed that has served its purpose.
pub const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// One request of a client, and its answer.
pub struct Request {
    transfer: Transfer,
    content_seed: u64,
    authority: String,
    streams: Streams,
    stream: Option<StreamId>,
    /// Whether the answer's head has come: there is none without.
    has_status: bool,
    answer: Answer,
    /// Time at which the handshake was complete.
    pub connected: Option<Instant>,
    /// End and outcome of the transfer; an error is one line.
    pub outcome: Option<(Instant, Result<(), String>)>,
}

impl Request {
    pub fn new(transfer: Transfer, content_seed: u64, authority: &str) -> Self {
        Self {
            transfer,
            content_seed,
            authority: authority.into(),
            streams: Streams::new(Role::Client),
            stream: None,
            has_status: false,
            answer: Answer::new(transfer, content_seed),
            connected: None,
            outcome: None,
        }
    }

    /// True when the answer has come, and is right.
    fn proceed(&mut self, now: Instant, connection: &mut Connection, event: &Event) -> Result<bool, String> {
        if let Event::ConnectionLost { reason } = event {
            return Err(match self.stream {
                None => format!("handshake: {reason}"),
                Some(_) => format!("connection lost after {} bytes: {reason}", self.answer.size()),
            });
        }
        if matches!(event, Event::Connected) {
            self.streams.transmit(now, connection)?; // SETTINGS come first
            self.ask(connection)?;
        }
        let mut is_right = false;
        for news in self.streams.receive(connection, event) {
            is_right |= self.hear(news)?;
        }
        self.streams.transmit(now, connection)?;
        Ok(is_right)
    }

    fn ask(&mut self, connection: &mut Connection) -> Result<(), String> {
        let stream = connection.streams().open(Dir::Bi).ok_or("the server allows no stream")?;
        self.stream = Some(stream);
        let (method, size) = match self.transfer.direction {
            Direction::Download => ("GET", None),
            Direction::Upload => ("PUT", Some(self.transfer.size)),
        };
        let (path, length) = (format!("/{}", self.transfer.size), size.map(|size| size.to_string()));
        let mut fields = vec![
            field(":method", method),
            field(":scheme", "https"),
            field(":authority", &self.authority),
            field(":path", &path),
        ];
        fields.extend(length.as_deref().map(|length| field("content-length", length)));
        self.streams.send(stream, &fields, size.map(|size| Outgoing::content(self.content_seed, size)))
    }

    fn hear(&mut self, news: News) -> Result<bool, String> {
        match news {
            News::Head(_, HeadersKind::Response, Head { status, .. }) => {
                self.has_status = true;
                match status {
                    Some(200) => Ok(false),
                    status => Err(format!("the server answered with status {}", status.unwrap_or_default())),
                }
            }
            News::Body(_, bytes) => self.answer.take(&bytes).map(|()| false),
            News::End(_) => self.answer.verify().map(|()| true),
            News::Stopped(_, code) if code != H3Code::NO_ERROR => {
                Err(format!("the server stopped the request with code {:#x}", code.0))
            }
            News::Aborted(_, code, true) => Err(format!("the server reset its answer with code {:#x}", code.0)),
            News::Aborted(_, code, false) => {
                let what = if self.has_status { "answer" } else { "answer's head" };
                Err(format!("the server's {what} is no HTTP/3: code {:#x}", code.0))
            }
            _ => Ok(false), // interim answers and trailers mean nothing here, nor does a body that need not be sent
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
        match self.proceed(now, connection, &event) {
            Ok(false) => {}
            Ok(true) => self.outcome = Some((now, Ok(()))),
            Err(what) => self.outcome = Some((now, Err(format!("{}: {what}", self.transfer)))),
        }
    }

    fn content(&self, connection: &mut Connection) -> Progress {
        match (self.transfer.direction, self.stream) {
            (Direction::Upload, Some(id)) => progress(connection, id, self.streams.is_given(id)),
            _ => Progress::Nothing,
        }
    }
}

/// The requests of a client that is told what to ask for in the course of a trial.
pub struct Requests {
    pub list: requests::Requests<StreamId>,
    authority: String,
    streams: Streams,
}

impl Requests {
    pub fn new(content_seed: u64, authority: &str) -> Self {
        Self {
            list: requests::Requests::new(content_seed),
            authority: authority.into(),
            streams: Streams::new(Role::Client),
        }
    }

    /// Stops what is given up, and asks for what waits.
    fn ask(&mut self, now: Instant, connection: &mut Connection) -> Result<(), String> {
        for id in self.list.take_given_up() {
            self.streams.cancel(id);
        }
        while self.list.is_waiting() {
            let Some(id) = connection.streams().open(Dir::Bi) else {
                self.list.is_blocked = true;
                break;
            };
            let path = format!("/{}", self.list.open(id).expect("one waits"));
            self.streams.send(id, &get(&self.authority, &path), None)?;
        }
        self.streams.transmit(now, connection)
    }

    fn proceed(&mut self, now: Instant, connection: &mut Connection, event: &Event) -> Result<(), String> {
        match event {
            Event::ConnectionLost { reason } => return Err(self.list.lost(reason)),
            Event::Connected => {
                self.streams.transmit(now, connection)?; // SETTINGS come first
                self.list.connected = Some(now);
            }
            Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => self.list.is_blocked = false,
            _ => {}
        }
        for news in self.streams.receive(connection, event) {
            self.hear(now, news)?;
        }
        self.ask(now, connection)
    }

    fn hear(&mut self, now: Instant, news: News) -> Result<(), String> {
        match news {
            News::Head(_, HeadersKind::Response, Head { status: Some(200), .. }) => Ok(()),
            News::Head(_, HeadersKind::Response, Head { status, .. }) => {
                Err(format!("the server answered with status {}", status.unwrap_or_default()))
            }
            News::Body(stream, bytes) => self.list.take(now, stream, &bytes),
            News::End(stream) => self.list.end(now, stream),
            News::Stopped(_, code) if code != H3Code::NO_ERROR => {
                Err(format!("the server stopped a request with code {:#x}", code.0))
            }
            News::Aborted(stream, code, _) if self.list.is_open(stream) => {
                Err(format!("an answer was cut short with code {:#x}", code.0))
            }
            _ => Ok(()), // interim answers and trailers mean nothing here
        }
    }
}

impl Application for Requests {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        let result = self.proceed(now, connection, &event);
        self.list.note(now, result);
    }

    fn timeout(&self) -> Option<Instant> {
        self.list.due_since()
    }

    fn on_timeout(&mut self, now: Instant, connection: &mut Connection) {
        let result = self.ask(now, connection);
        self.list.note(now, result);
    }
}

/// The head of a request of a path.
fn get<'a>(authority: &'a str, path: &'a str) -> [FieldRef<'a>; 4] {
    [field(":method", "GET"), field(":scheme", "https"), field(":authority", authority), field(":path", path)]
}

/// Answers the requests of one connection.
pub struct Answers {
    content_seed: u64,
    streams: Streams,
    /// The stream of the first content that was asked for.
    download: Option<StreamId>,
    uploads: BTreeMap<StreamId, Body>,
    /// Why requests were refused, a line each.
    pub refusals: Vec<String>,
}

/// Why a request is refused: the status, and a line.
type Refusal = (&'static str, String);

impl Answers {
    pub fn new(content_seed: u64) -> Self {
        Self {
            content_seed,
            streams: Streams::new(Role::Server),
            download: None,
            uploads: BTreeMap::new(),
            refusals: Vec::new(),
        }
    }

    fn hear(&mut self, news: News) {
        let stream = news.stream();
        let heard = match news {
            News::Head(_, HeadersKind::Request, head) => self.requested(stream, &head),
            News::Body(_, bytes) => match self.uploads.get_mut(&stream) {
                Some(body) => body.take(&bytes).map_err(|what| ("400", what)),
                None => Err(("400", "a body that nobody asked for".into())),
            },
            News::End(_) => match self.uploads.remove(&stream) {
                Some(mut body) => body.answer().map_err(|what| ("400", what)).map(|hash| self.answer(stream, hash)),
                None => Ok(()),
            },
            News::Stopped(..) => Ok(()),
            News::Aborted(_, code, by_client) => {
                let who = if by_client { "the client reset it" } else { "it is no HTTP/3" };
                self.uploads.remove(&stream);
                self.refusals.push(format!("request of stream {stream}: {who}: code {:#x}", code.0));
                Ok(())
            }
            News::Head(..) => Ok(()), // trailers
        };
        if let Err((status, what)) = heard {
            self.uploads.remove(&stream);
            self.refusals.push(format!("request of stream {stream}: {what}"));
            self.streams.refuse(stream, status);
        }
    }

    fn requested(&mut self, stream: StreamId, head: &Head) -> Result<(), Refusal> {
        let size = transfer::size(&head.path)
            .ok_or_else(|| ("400", format!("path {:?} is not / and a number of bytes", head.path)))?;
        match head.method.as_str() {
            "GET" => {
                self.download.get_or_insert(stream);
                self.answer(stream, Outgoing::content(self.content_seed, size));
            }
            "PUT" => drop(self.uploads.insert(stream, Body::new(size))),
            method => return Err(("405", format!("method {method:?} is neither GET nor PUT"))),
        }
        Ok(())
    }

    fn answer(&mut self, stream: StreamId, body: Outgoing) {
        let length = body.length().to_string();
        let fields = [field(":status", "200"), field("content-length", &length)];
        if let Err(what) = self.streams.send(stream, &fields, Some(body)) {
            self.refusals.push(format!("request of stream {stream}: {what}"));
        }
    }
}

impl Application for Answers {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        for news in self.streams.receive(connection, &event) {
            self.hear(news);
        }
        if let Err(what) = self.streams.transmit(now, connection) {
            self.refusals.push(format!("connection: {what}"));
        }
    }

    fn content(&self, connection: &mut Connection) -> Progress {
        match self.download {
            Some(id) => progress(connection, id, self.streams.is_given(id)),
            None => Progress::Nothing,
        }
    }
}

fn field<'a>(name: &'a str, value: &'a str) -> FieldRef<'a> {
    FieldRef::new(name.as_bytes(), value.as_bytes())
}
