//! The requests of a client that is told in the course of a trial what to ask for.

use std::time::Instant;

use host::requests;
use host::transfer::Outgoing;

use crate::sending::Sending;
use crate::stack::{Event, StreamId, Streams};

/// The stream error code of a request that nobody wants answered any more.
const GIVEN_UP: u32 = 0;

pub struct Requests {
    pub list: requests::Requests<StreamId>,
    connection: usize,
}

impl Requests {
    pub fn new(content_seed: u64) -> Self {
        Self { list: requests::Requests::new(content_seed), connection: 0 }
    }

    pub fn on_event(&mut self, now: Instant, streams: &mut impl Streams, event: Event) {
        let result = self.proceed(now, streams, event);
        self.list.note(now, result);
    }

    /// Does what waits, though nothing happens.
    pub fn on_timeout(&mut self, now: Instant, streams: &mut impl Streams) {
        let result = self.ask(streams);
        self.list.note(now, result);
    }

    fn proceed(&mut self, now: Instant, streams: &mut impl Streams, event: Event) -> Result<(), String> {
        match event {
            Event::Connected { connection } => {
                (self.list.connected, self.connection) = (Some(now), connection);
                self.ask(streams)
            }
            Event::Lost { reason, .. } => Err(self.list.lost(reason)),
            Event::Available { .. } => {
                self.list.is_blocked = false;
                self.ask(streams)
            }
            Event::Stopped { stream, code } if self.list.is_open(stream) => {
                Err(format!("the server stopped a request with code {code}"))
            }
            Event::Stream(stream) if self.list.is_open(stream) => {
                match streams.read(stream, |bytes| self.list.take(now, stream, bytes))? {
                    true => self.list.end(now, stream),
                    false => Ok(()),
                }
            }
            Event::Stream(_) | Event::Stopped { .. } => Ok(()),
        }
    }

    /// Stops what is given up, and asks for what waits.
    fn ask(&mut self, streams: &mut impl Streams) -> Result<(), String> {
        for stream in self.list.take_given_up() {
            streams.stop(stream, GIVEN_UP);
        }
        while self.list.is_waiting() {
            let Some(stream) = streams.open(self.connection)? else {
                self.list.is_blocked = true;
                break;
            };
            let size = self.list.open(stream).expect("one waits");
            let line = Outgoing::text(format!("GET /{size}\r\n"));
            if !Sending::new(line).proceed(streams, stream)? {
                return Err("the server takes no request".into());
            }
        }
        Ok(())
    }
}
