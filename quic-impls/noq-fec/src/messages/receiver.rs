//! The receiver of messages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use host::messages::{Delivery, Log, Messages, Receiver};
use noq_proto::{Connection, Dir, Event, StreamEvent, StreamId};

use super::{Ended, read};

#[derive(Debug)]
pub struct Receiving {
    messages: Arc<Messages>,
    receiver: Receiver,
    streams: BTreeMap<StreamId, Reading>,
    /// Streams that have ended.
    ended: u32,
}

/// The place up to which a stream has been read.
#[derive(Debug, Clone, Copy)]
struct Reading {
    message: u32,
    offset: u64,
    /// The last message on this stream.
    last: u32,
}

impl Receiving {
    pub fn new(messages: Arc<Messages>, content_seed: u64) -> Self {
        let receiver = Receiver::new(messages.clone(), content_seed);
        Self { messages, receiver, streams: BTreeMap::new(), ended: 0 }
    }

    pub fn log(&self) -> &Log {
        &self.receiver.log
    }

    /// The sender has sent all.
    pub fn end(&mut self, now: Instant) {
        self.receiver.end(now);
    }

    /// Takes in what an event tells of. An error is one line.
    pub fn take(&mut self, now: Instant, connection: &mut Connection, event: Event) -> Result<(), String> {
        match event {
            Event::DatagramReceived => {
                while let Some(datagram) = connection.datagrams().recv() {
                    self.take_datagram(now, &datagram)?;
                }
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                while let Some(id) = connection.streams().accept(Dir::Uni) {
                    let reading = self.reading(id)?;
                    self.streams.insert(id, reading);
                    self.read(now, connection, id)?;
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(now, connection, id)?,
            _ => {}
        }
        Ok(())
    }

    fn take_datagram(&mut self, now: Instant, datagram: &[u8]) -> Result<(), String> {
        if self.messages.delivery != Delivery::Datagram {
            return Err(format!("a datagram of {} bytes, and messages travel on streams", datagram.len()));
        }
        self.receiver.take_packed(now, datagram).map_err(|what| format!("datagram: {what}"))
    }

    fn reading(&self, id: StreamId) -> Result<Reading, String> {
        let count = self.messages.count();
        let (message, last) = match self.messages.delivery {
            Delivery::Datagram => return Err(format!("stream {id}, and messages travel in datagrams")),
            Delivery::Reliable if id.index() == 0 => (0, count - 1),
            Delivery::Deadline(_) | Delivery::Stream if id.index() < count.into() => {
                (id.index() as u32, id.index() as u32)
            }
            _ => return Err(format!("stream {id}, and there are {count} messages")),
        };
        Ok(Reading { message, offset: 0, last })
    }

    fn read(&mut self, now: Instant, connection: &mut Connection, id: StreamId) -> Result<(), String> {
        let Some(mut reading) = self.streams.remove(&id) else {
            return Ok(());
        };
        let (messages, receiver) = (&self.messages, &mut self.receiver);
        let ended = read(connection, id, |bytes| reading.take(messages, receiver, now, bytes))?;
        match ended {
            None => {
                self.streams.insert(id, reading);
            }
            Some(Ended::Reset) if matches!(messages.delivery, Delivery::Deadline(_)) => self.ended += 1,
            Some(Ended::Reset) => return Err(format!("message {} was reset", reading.message)),
            Some(Ended::Finished) => {
                reading.check_end(messages)?;
                self.ended += 1;
            }
        }
        Ok(())
    }

    pub fn is_done(&self, now: Instant) -> bool {
        match self.messages.delivery {
            Delivery::Datagram => self.receiver.is_drained(now),
            Delivery::Deadline(_) => self.ended == self.messages.count(),
            Delivery::Stream | Delivery::Reliable => self.receiver.is_complete(),
        }
    }

    /// Returns the time at which it is done though parts are missing.
    pub fn timeout(&self) -> Option<Instant> {
        self.receiver.drained_at().filter(|_| self.messages.delivery == Delivery::Datagram)
    }
}

impl Reading {
    fn take(
        &mut self,
        messages: &Messages,
        receiver: &mut Receiver,
        now: Instant,
        mut bytes: &[u8],
    ) -> Result<(), String> {
        while !bytes.is_empty() {
            let left = messages.bytes_of(self.message) - self.offset;
            if left == 0 {
                if self.message == self.last {
                    return Err(format!("message {} is longer than {} bytes", self.message, self.offset));
                }
                (self.message, self.offset) = (self.message + 1, 0);
                continue;
            }
            let (now_taken, rest) = bytes.split_at(bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
            receiver.take_bytes(now, self.message, self.offset, now_taken)?;
            self.offset += now_taken.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    fn check_end(&self, messages: &Messages) -> Result<(), String> {
        let bytes = messages.bytes_of(self.message);
        match self.message == self.last && self.offset == bytes {
            true => Ok(()),
            false => Err(format!("message {} ended after {} of {bytes} bytes", self.message, self.offset)),
        }
    }
}
