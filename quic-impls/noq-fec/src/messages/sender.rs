//! The sender of messages: hands each over when it is due, or as soon after that as it can, in order.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use host::content;
use host::messages::{Delivery, Log, Messages, Part};
use noq_proto::{Connection, Dir, Event, FinishError, SendDatagramError, StreamEvent, StreamId, VarInt, WriteError};

/// Bytes that a stream is given at once.
const STEP: u64 = 16 << 10;

/// The error code of streams whose message is too late.
const TOO_LATE: VarInt = VarInt::from_u32(0);

#[derive(Debug)]
pub struct Sending {
    messages: Arc<Messages>,
    content_seed: u64,
    /// Start of the timetable.
    pub begun: Option<Instant>,
    /// The message that is handed over next, and how many bytes of it were.
    next: u32,
    offset: u64,
    /// The stream that is being given content.
    stream: Option<StreamId>,
    /// Whether the message that is due can't be handed over now.
    is_blocked: bool,
    deadlines: Deadlines,
    pub messages_reset: u64,
    pub log: Log,
}

/// The streams that are reset at a time, unless all of them is acknowledged before.
#[derive(Debug, Default)]
struct Deadlines {
    queue: VecDeque<(Instant, StreamId)>,
    unacknowledged: BTreeSet<StreamId>,
}

impl Deadlines {
    fn add(&mut self, at: Instant, id: StreamId) {
        self.queue.push_back((at, id));
        self.unacknowledged.insert(id);
    }

    fn acknowledge(&mut self, id: StreamId) {
        self.unacknowledged.remove(&id);
        while self.queue.front().is_some_and(|(_, id)| !self.unacknowledged.contains(id)) {
            self.queue.pop_front();
        }
    }

    fn next(&self) -> Option<Instant> {
        self.queue.front().map(|(at, _)| *at)
    }

    /// The next stream whose time has come.
    fn expire(&mut self, now: Instant) -> Option<StreamId> {
        let (_, id) = *self.queue.front().filter(|(at, _)| *at <= now)?;
        self.acknowledge(id);
        Some(id)
    }
}

impl Sending {
    pub fn new(messages: Arc<Messages>, content_seed: u64) -> Self {
        Self {
            messages,
            content_seed,
            begun: None,
            next: 0,
            offset: 0,
            stream: None,
            is_blocked: false,
            deadlines: Deadlines::default(),
            messages_reset: 0,
            log: Log::default(),
        }
    }

    pub fn take(&mut self, event: &Event) {
        if let Event::Stream(StreamEvent::Finished { id }) = event {
            self.deadlines.acknowledge(*id);
        }
    }

    /// Returns the time at which [`Self::proceed`] has something to do that no event tells of.
    pub fn timeout(&self) -> Option<Instant> {
        let due = self.begun.filter(|_| !self.is_blocked && self.next < self.messages.count());
        let due = due.map(|begun| begun + self.messages.due(self.next));
        due.into_iter().chain(self.deadlines.next()).min()
    }

    /// Hands over what is due, and resets what is too late; true when nothing is left to do.
    pub fn proceed(&mut self, now: Instant, connection: &mut Connection) -> Result<bool, String> {
        let Some(begun) = self.begun else {
            return Ok(false);
        };
        while let Some(id) = self.deadlines.expire(now) {
            self.reset(connection, id);
        }
        self.is_blocked = false;
        while self.next < self.messages.count() && begun + self.messages.due(self.next) <= now {
            self.is_blocked = !self.hand_over(now, connection)?;
            if self.is_blocked {
                return Ok(false);
            }
        }
        Ok(self.next == self.messages.count() && self.deadlines.queue.is_empty())
    }

    /// Hands the next message over; false when not all of it can be now.
    fn hand_over(&mut self, now: Instant, connection: &mut Connection) -> Result<bool, String> {
        let is_done = match self.messages.delivery {
            Delivery::Datagram => self.send_datagrams(now, connection)?,
            _ => {
                if self.stream.is_none() && !self.open(now, connection) {
                    return Ok(false);
                }
                match self.stream {
                    Some(id) => self.write(now, connection, id)?,
                    None => return Ok(true), // it was too late
                }
            }
        };
        if is_done {
            self.advance();
        }
        Ok(is_done)
    }

    fn advance(&mut self) {
        self.next += 1;
        self.offset = 0;
        if self.messages.delivery != Delivery::Reliable {
            self.stream = None;
        }
    }

    fn send_datagrams(&mut self, now: Instant, connection: &mut Connection) -> Result<bool, String> {
        let begin = self.messages.begin_of(self.next);
        for number in 0..self.messages.parts_of(self.next) {
            let part = Part { message: self.next, part: number };
            let range = self.messages.range(part).expect("a part of this message");
            if range.start < self.offset {
                continue;
            }
            let length = (range.end - range.start) as usize;
            let datagram = part.packed(length, |bytes| content::fill(self.content_seed, begin + range.start, bytes));
            match connection.datagrams().send(datagram.into(), false) {
                Ok(()) => {}
                Err(SendDatagramError::Blocked(_)) => return Ok(false),
                Err(error) => return Err(format!("{part}: {error}")),
            }
            self.offset = range.end;
            self.log.add(now, part);
        }
        Ok(true)
    }

    /// Opens the stream of the next message, and resets it at once if that is too late; false when the peer allows none now.
    fn open(&mut self, now: Instant, connection: &mut Connection) -> bool {
        self.stream = connection.streams().open(Dir::Uni);
        let Some(id) = self.stream else {
            return false;
        };
        if let (Delivery::Deadline(deadline), Some(begun)) = (self.messages.delivery, self.begun) {
            match begun + self.messages.due(self.next) + deadline {
                expiry if expiry <= now => self.reset(connection, id),
                expiry => self.deadlines.add(expiry, id),
            }
        }
        true
    }

    /// Resets the stream of a message, and goes on with the next one if it was being written.
    fn reset(&mut self, connection: &mut Connection, id: StreamId) {
        // It is open: it was neither reset nor acknowledged.
        let _ = connection.send_stream(id).reset(TOO_LATE);
        self.messages_reset += 1;
        if self.stream == Some(id) {
            self.advance();
        }
    }

    /// Gives the stream what it takes of the next message; false when that is not all.
    fn write(&mut self, now: Instant, connection: &mut Connection, id: StreamId) -> Result<bool, String> {
        let (begin, bytes) = (self.messages.begin_of(self.next), self.messages.bytes_of(self.next));
        let mut stream = connection.send_stream(id);
        let mut buffer = [0; STEP as usize];
        while self.offset < bytes {
            let step = &mut buffer[..STEP.min(bytes - self.offset) as usize];
            content::fill(self.content_seed, begin + self.offset, step);
            let written = match stream.write(step) {
                Ok(written) => written as u64,
                Err(WriteError::Blocked) => return Ok(false),
                Err(error) => return Err(format!("message {}: {error}", self.next)),
            };
            for part in self.messages.ended_parts(self.next, self.offset..self.offset + written) {
                self.log.add(now, part);
            }
            self.offset += written;
        }
        if self.messages.delivery != Delivery::Reliable || self.next + 1 == self.messages.count() {
            match stream.finish() {
                Ok(()) | Err(FinishError::ClosedStream) => {}
                Err(error) => return Err(format!("message {}: {error}", self.next)),
            }
        }
        Ok(true)
    }
}
