//! The one request of a client, "GET /SIZE\r\n" or "PUT /SIZE\r\n" and the body, and its answer: the content, or the SHA-256 of the
//! body in hexadecimal.

use std::time::Instant;

use host::answer::Answer;
use host::contract::{Direction, Transfer};

use crate::outgoing::Outgoing;
use crate::stack::{Event, Stack, StreamId};

pub struct Request {
    transfer: Transfer,
    outgoing: Outgoing,
    stream: Option<StreamId>,
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
        let line = format!("{method} /{}\r\n", transfer.size).into_bytes();
        Self {
            transfer,
            outgoing: Outgoing::new(line, content_seed, body),
            stream: None,
            answer: Answer::new(transfer, content_seed),
            connected: None,
            outcome: None,
        }
    }

    pub fn on_event(&mut self, now: Instant, stack: &mut impl Stack, event: Event) {
        if self.outcome.is_some() {
            return;
        }
        match self.proceed(now, stack, event) {
            Ok(false) => {}
            Ok(true) => self.outcome = Some((now, Ok(()))),
            Err(what) => self.outcome = Some((now, Err(format!("{}: {what}", self.transfer)))),
        }
    }

    /// True when the transfer has ended.
    fn proceed(&mut self, now: Instant, stack: &mut impl Stack, event: Event) -> Result<bool, String> {
        match (event, self.stream) {
            (Event::Connected { connection }, _) => {
                self.connected = Some(now);
                let stream = stack.open(connection)?;
                self.stream = Some(stream);
                self.outgoing.proceed(stack, stream)?;
                Ok(false)
            }
            (Event::Lost { reason, .. }, None) => Err(format!("handshake: {reason}")),
            (Event::Lost { reason, .. }, Some(_)) => {
                Err(format!("connection lost after {} bytes: {reason}", self.answer.size()))
            }
            (Event::Stream(event), Some(stream)) if event == stream => {
                let is_end = stack.read(stream, &mut |bytes| self.answer.take(bytes))?;
                if is_end {
                    self.answer.verify()?;
                } else {
                    self.outgoing.proceed(stack, stream)?;
                }
                Ok(is_end)
            }
            (Event::Stream(_), _) => Ok(false),
        }
    }
}
