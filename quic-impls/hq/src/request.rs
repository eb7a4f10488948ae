//! The one request of a client, "GET /SIZE\r\n" or "PUT /SIZE\r\n" and the body, and its answer: the content, or the SHA-256 of the
//! body in hexadecimal.

use std::time::Instant;

use host::contract::{Direction, Transfer};

use crate::content::{self, Hash};
use crate::outgoing::Outgoing;
use crate::stack::{Event, Stack, StreamId};

/// The length of a SHA-256 in hexadecimal.
const HASH_LENGTH: u64 = 64;

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
        let line = format!("{method} /{}\r\n", transfer.size).into_bytes();
        Self {
            transfer,
            content_seed,
            outgoing: Outgoing::new(line, content_seed, body),
            stream: None,
            received: Hash::default(),
            answer: Vec::new(),
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
                Err(format!("connection lost after {} bytes: {reason}", self.received.size))
            }
            (Event::Stream(event), Some(stream)) if event == stream => {
                let is_end = stack.read(stream, &mut |bytes| self.take(bytes))?;
                if is_end {
                    self.verify()?;
                } else {
                    self.outgoing.proceed(stack, stream)?;
                }
                Ok(is_end)
            }
            (Event::Stream(_), _) => Ok(false),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.received.update(bytes);
        let limit = match self.transfer.direction {
            Direction::Download => self.transfer.size,
            Direction::Upload => HASH_LENGTH,
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
