//! The server's answer to the one request of a client: the content, or the hash of what the server has received.

use crate::content::{self, Verifier};
use crate::contract::{Direction, Transfer};

/// The length of a SHA-256 in hexadecimal.
const HASH_LENGTH: usize = 64;

pub struct Answer {
    transfer: Transfer,
    content_seed: u64,
    /// The content of a download, verified as it comes.
    content: Verifier,
    /// The hash of an upload.
    hash: Vec<u8>,
}

impl Answer {
    pub fn new(transfer: Transfer, content_seed: u64) -> Self {
        let content = Verifier::new(content_seed, transfer.size);
        Self { transfer, content_seed, content, hash: Vec::new() }
    }

    /// Bytes so far.
    pub fn size(&self) -> u64 {
        match self.transfer.direction {
            Direction::Download => self.content.received(),
            Direction::Upload => self.hash.len() as u64,
        }
    }

    /// Takes the bytes that follow those before. An error is one line.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.transfer.direction == Direction::Download {
            return self.content.take(bytes);
        }
        if self.hash.len() + bytes.len() > HASH_LENGTH {
            return Err(format!("the server sent more than the {HASH_LENGTH} bytes that are right"));
        }
        self.hash.extend_from_slice(bytes);
        Ok(())
    }

    /// Whether all of it came, and is right.
    pub fn verify(&self) -> Result<(), String> {
        if self.transfer.direction == Direction::Download {
            return match self.content.received() {
                all if all == self.transfer.size => Ok(()),
                size => Err(format!("the server sent {size} bytes")),
            };
        }
        match content::hash(self.content_seed, self.transfer.size) {
            right if self.hash == right.as_bytes() => Ok(()),
            right => Err(format!(
                "the server received content with SHA-256 {:?}, right is {right}",
                String::from_utf8_lossy(&self.hash)
            )),
        }
    }
}
