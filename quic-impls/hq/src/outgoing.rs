//! What a stream has to send: some first bytes, then content, then its end.

use host::content::fill;

use crate::stack::{Stack, StreamId};

/// Bytes that a stream is given at once.
const STEP: usize = 16 << 10;

pub struct Outgoing {
    first: Vec<u8>,
    content_seed: u64,
    content_size: u64,
    sent: u64,
    is_finished: bool,
}

impl Outgoing {
    pub fn new(first: Vec<u8>, content_seed: u64, content_size: u64) -> Self {
        Self { first, content_seed, content_size, sent: 0, is_finished: false }
    }

    /// Gives the stream as much as it takes; true when that was the rest.
    pub fn proceed(&mut self, stack: &mut impl Stack, stream: StreamId) -> Result<bool, String> {
        let mut buffer = [0; STEP];
        while self.sent < self.first.len() as u64 + self.content_size {
            match stack.write(stream, self.next(&mut buffer))? {
                0 => return Ok(false),
                written => self.sent += written as u64,
            }
        }
        if !self.is_finished {
            stack.finish(stream)?;
            self.is_finished = true;
        }
        Ok(true)
    }

    fn next<'a>(&'a self, buffer: &'a mut [u8]) -> &'a [u8] {
        let first = self.first.len() as u64;
        if self.sent < first {
            return &self.first[self.sent as usize..];
        }
        let offset = self.sent - first;
        let step = (buffer.len() as u64).min(self.content_size - offset) as usize;
        fill(self.content_seed, offset, &mut buffer[..step]);
        &buffer[..step]
    }
}
