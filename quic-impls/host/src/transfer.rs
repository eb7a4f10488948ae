//! A transfer over any protocol: its requested size, the content of a stream, and the body of an upload.

use crate::content::{self, Hash};

/// Bytes that a stream is given at once.
const STEP: usize = 16 << 10;

/// The largest transfer, in bytes.
const LARGEST: u64 = 1 << 40;

/// Returns how many bytes a path, "/SIZE", asks for or announces.
pub fn size(path: &str) -> Option<u64> {
    path.strip_prefix('/')?.parse().ok().filter(|size| *size <= LARGEST)
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

    /// Takes the bytes that follow those before. An error is one line.
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

/// The data of a stream: some first bytes, then content of `size` bytes.
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

    /// Returns the length of all of it in bytes.
    pub fn length(&self) -> u64 {
        self.first.len() as u64 + self.size
    }

    /// Bytes that the stream has taken.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Gives a stream as much as it takes; true when that was the rest. `write` tells how many bytes it took.
    pub fn give<E>(&mut self, mut write: impl FnMut(&[u8]) -> Result<usize, E>) -> Result<bool, E> {
        let mut buffer = [0; STEP];
        while self.sent < self.length() {
            match self.lend_next(&mut buffer, &mut write)? {
                0 => return Ok(false),
                written => self.sent += written as u64,
            }
        }
        Ok(true)
    }

    fn lend_next<T>(&self, buffer: &mut [u8], mut take: impl FnMut(&[u8]) -> T) -> T {
        let first = self.first.len() as u64;
        if self.sent < first {
            return take(&self.first[self.sent as usize..]);
        }
        let offset = self.sent - first;
        let step = (buffer.len() as u64).min(self.size - offset) as usize;
        content::lend(self.seed, offset, &mut buffer[..step], take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_little_a_stream_takes_it_is_given_all_once() {
        let mut content = vec![0; 40_000];
        content::make(7, 0, &mut content);
        for remembers in [false, true] {
            if remembers {
                content::remember();
            }
            let mut outgoing = Outgoing::content(7, 40_000).behind(b"first");
            let (mut given, mut room) = (Vec::new(), 0);
            for _ in 0.. {
                let step = |bytes: &[u8]| {
                    let taken = bytes.len().min(room);
                    given.extend_from_slice(&bytes[..taken]);
                    room -= taken;
                    Ok::<_, ()>(taken)
                };
                if outgoing.give(step).unwrap() {
                    break;
                }
                room = 3;
            }
            assert_eq!(given, [b"first", &content[..]].concat());
            assert_eq!(outgoing.sent(), outgoing.length());
        }
    }

    #[test]
    fn a_body_has_the_size_announced() {
        for (size, problem) in [(9, "the body has 9 bytes"), (11, "the body has more than the 10 bytes announced")] {
            let mut body = Body::new(10);
            let taken = body.take(&vec![0; size]).and_then(|()| body.answer().map(drop));
            assert!(taken.is_err_and(|why| why.starts_with(problem)));
        }
        let mut body = Body::new(10);
        body.take(&[0; 10]).unwrap();
        assert_eq!(body.answer().unwrap().length(), 64);
    }
}
