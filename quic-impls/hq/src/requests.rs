//! The requests of a client that is told in the course of a trial what to ask for.

use std::time::Instant;

use host::requests;

use crate::outgoing::Outgoing;
use crate::stack::{Event, Stack, StreamId};

/// The stream error code of a request that nobody wants answered any more.
const GIVEN_UP: u32 = 0;

pub struct Requests {
    pub list: requests::Requests<StreamId>,
    connection: Option<usize>,
    /// When the handshake was complete.
    pub connected: Option<Instant>,
    failure: Option<(Instant, String)>,
}

impl Requests {
    pub fn new(content_seed: u64) -> Self {
        Self { list: requests::Requests::new(content_seed), connection: None, connected: None, failure: None }
    }

    pub fn on_event(&mut self, now: Instant, stack: &mut impl Stack, event: Event) {
        if let Err(what) = self.proceed(now, stack, event) {
            self.failure.get_or_insert((now, format!("{}: {what}", requests::NAME)));
        }
    }

    fn proceed(&mut self, now: Instant, stack: &mut impl Stack, event: Event) -> Result<(), String> {
        match event {
            Event::Connected { connection } => {
                (self.connected, self.connection) = (Some(now), Some(connection));
                self.ask(stack)
            }
            Event::Lost { reason, .. } => Err(match self.connected {
                None => format!("handshake: {reason}"),
                Some(_) => format!("connection lost: {reason}"),
            }),
            Event::Stream(stream) if self.list.is_open(stream) => {
                match stack.read(stream, &mut |bytes| self.list.take(now, stream, bytes))? {
                    true => self.list.end(now, stream),
                    false => Ok(()),
                }
            }
            Event::Stream(_) => Ok(()),
        }
    }

    /// Stops what is given up, and asks for what waits.
    pub fn ask(&mut self, stack: &mut impl Stack) -> Result<(), String> {
        let Some(connection) = self.connection else {
            return Ok(());
        };
        for stream in self.list.take_given_up() {
            stack.refuse(stream, GIVEN_UP);
        }
        while self.list.waiting_since().is_some() {
            let stream = stack.open(connection)?;
            let size = self.list.open(stream).expect("one waits");
            let line = format!("GET /{size}\r\n").into_bytes();
            if !Outgoing::new(line, 0, 0).proceed(stack, stream)? {
                return Err("the server takes no request".into());
            }
        }
        Ok(())
    }

    /// How and when it has ended, if it has; an error is one line.
    pub fn take_outcome(&mut self) -> Option<(Instant, Result<(), String>)> {
        if let Some((at, what)) = self.failure.take() {
            return Some((at, Err(what)));
        }
        let ended = self.list.ended?;
        let never = || format!("{}: the input ended before the handshake", requests::NAME);
        Some((ended, self.connected.map(drop).ok_or_else(never)))
    }
}
