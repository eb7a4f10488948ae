//! The one request of a client, "GET /SIZE\r\n" or "PUT /SIZE\r\n" and the body, and its answer: the content, or the SHA-256 of the
//! body in hexadecimal.

use std::time::Instant;

use host::answer::Answer;
use host::contract::{Direction, Transfer};
use host::transfer::Outgoing;

use crate::sending::Sending;
use crate::stack::{Event, StreamId, Streams};

pub struct Request {
    transfer: Transfer,
    sending: Sending,
    stream: Option<StreamId>,
    answer: Answer,
    /// Time at which the handshake was complete.
    pub connected: Option<Instant>,
    /// Result of the transfer and its time; an error is one line.
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
            sending: Sending::new(Outgoing::content(content_seed, body).behind(line.as_bytes())),
            stream: None,
            answer: Answer::new(transfer, content_seed),
            connected: None,
            outcome: None,
        }
    }

    /// The stream of an upload's content, and whether it has been given all of it.
    pub fn upload(&self) -> Option<(StreamId, bool)> {
        let stream = self.stream.filter(|_| self.transfer.direction == Direction::Upload)?;
        Some((stream, self.sending.is_given()))
    }

    pub fn on_event(&mut self, now: Instant, streams: &mut impl Streams, event: Event) {
        if self.outcome.is_some() {
            return;
        }
        match self.proceed(now, streams, event) {
            Ok(false) => {}
            Ok(true) => self.outcome = Some((now, Ok(()))),
            Err(what) => self.outcome = Some((now, Err(format!("{}: {what}", self.transfer)))),
        }
    }

    /// True when the transfer has ended.
    fn proceed(&mut self, now: Instant, streams: &mut impl Streams, event: Event) -> Result<bool, String> {
        match (event, self.stream) {
            (Event::Connected { connection }, _) => {
                self.connected = Some(now);
                let stream = streams.open(connection)?.ok_or("the server allows no stream")?;
                self.stream = Some(stream);
                self.sending.proceed(streams, stream)?;
                Ok(false)
            }
            (Event::Lost { reason, .. }, None) => Err(format!("handshake: {reason}")),
            (Event::Lost { reason, .. }, Some(_)) => {
                Err(format!("connection lost after {} bytes: {reason}", self.answer.size()))
            }
            (Event::Stream(event), Some(stream)) if event == stream => {
                let is_end = streams.read(stream, |bytes| self.answer.take(bytes))?;
                if is_end {
                    self.answer.verify()?;
                } else {
                    self.sending.proceed(streams, stream)?;
                }
                Ok(is_end)
            }
            (Event::Stopped { stream: stopped, code }, Some(stream)) if stopped == stream => {
                Err(format!("the server stopped the request with code {code}"))
            }
            _ => Ok(false),
        }
    }
}
