//! What a transfer is over both protocols: what is asked for, what is sent, and whether what comes is right.

use host::content::{self, Hash};
use noq_proto::{SendStream, WriteError};

/// Bytes that a stream is given at once.
const STEP: usize = 16 << 10;

/// How many bytes a path, "/SIZE", asks for or announces.
pub fn size(path: &str) -> Option<u64> {
    path.strip_prefix('/')?.parse().ok().filter(|size| *size <= 1 << 40)
}

/// The body of a client's upload, at the server.
pub struct Body {
    announced: u64,
    hash: Hash,
}

impl Body {
    pub fn new(announced: u64) -> Self {
        Self { announced, hash: Hash::default() }
    }

    pub fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.hash.update(bytes);
        match self.hash.size > self.announced {
            true => Err(format!("the body has more than the {} bytes announced", self.announced)),
            false => Ok(()),
        }
    }

    /// The answer to all of it.
    pub fn answer(&mut self) -> Result<Outgoing, String> {
        let (size, announced) = (self.hash.size, self.announced);
        match size < announced {
            true => Err(format!("the body has {size} bytes, announced were {announced}")),
            false => Ok(Outgoing::text(std::mem::take(&mut self.hash).hex())),
        }
    }
}

/// What a stream has to send: some first bytes, then content of `size` bytes.
pub struct Outgoing {
    first: Vec<u8>,
    seed: u64,
    size: u64,
    sent: u64,
}

impl Outgoing {
    pub fn text(text: String) -> Self {
        Self { first: text.into_bytes(), seed: 0, size: 0, sent: 0 }
    }

    pub fn content(seed: u64, size: u64) -> Self {
        Self { first: Vec::new(), seed, size, sent: 0 }
    }

    /// The same behind these bytes.
    pub fn behind(mut self, first: &[u8]) -> Self {
        self.first.splice(..0, first.iter().copied());
        self
    }

    /// Whether it is the content of a transfer, and not a hash.
    pub fn is_content(&self) -> bool {
        self.size > 0
    }

    /// All of it in bytes.
    pub fn length(&self) -> u64 {
        self.first.len() as u64 + self.size
    }

    /// Bytes that the stream has taken.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Gives the stream as much as it takes; true when that was the rest.
    pub fn write(&mut self, stream: &mut SendStream<'_>) -> Result<bool, WriteError> {
        let mut buffer = [0; STEP];
        while self.sent < self.length() {
            let step = self.next(&mut buffer);
            match stream.write(step) {
                Ok(written) => self.sent += written as u64,
                Err(WriteError::Blocked) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn next<'a>(&'a self, buffer: &'a mut [u8]) -> &'a [u8] {
        let first = self.first.len() as u64;
        if self.sent < first {
            return &self.first[self.sent as usize..];
        }
        let offset = self.sent - first;
        let step = (buffer.len() as u64).min(self.size - offset) as usize;
        content::fill(self.seed, offset, &mut buffer[..step]);
        &buffer[..step]
    }
}
