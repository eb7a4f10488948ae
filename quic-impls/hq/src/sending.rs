//! Sending on a stream, up to its end.

use host::transfer::Outgoing;

use crate::stack::{StreamId, Streams};

pub struct Sending {
    outgoing: Outgoing,
    is_finished: bool,
}

impl Sending {
    pub fn new(outgoing: Outgoing) -> Self {
        Self { outgoing, is_finished: false }
    }

    /// Whether it is the content of a transfer, and not a hash.
    pub fn is_content(&self) -> bool {
        self.outgoing.is_content()
    }

    /// Whether the stream has been given all of it, and its end.
    pub fn is_given(&self) -> bool {
        self.is_finished
    }

    /// Gives the stream as much as it takes; true when that was the rest.
    pub fn proceed(&mut self, streams: &mut impl Streams, stream: StreamId) -> Result<bool, String> {
        if !self.is_finished && self.outgoing.give(|bytes| streams.write(stream, bytes))? {
            streams.finish(stream)?;
            self.is_finished = true;
        }
        Ok(self.is_finished)
    }
}
