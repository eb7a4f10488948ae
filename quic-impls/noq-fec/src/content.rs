//! The bytes of a transfer, and their SHA-256.

use ring::digest::{Context, SHA256};

pub use host::content::{fill, word};

/// The SHA-256 of `size` bytes of content, in hexadecimal.
pub fn hash(seed: u64, size: u64) -> String {
    let mut hash = Hash::default();
    let mut buffer = vec![0; 64 << 10];
    while hash.size < size {
        let step = buffer.len().min((size - hash.size) as usize);
        fill(seed, hash.size, &mut buffer[..step]);
        hash.update(&buffer[..step]);
    }
    hash.hex()
}

/// Hashes what is received.
pub struct Hash {
    context: Context,
    /// Bytes so far.
    pub size: u64,
}

impl Default for Hash {
    fn default() -> Self {
        Self { context: Context::new(&SHA256), size: 0 }
    }
}

impl Hash {
    pub fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
        self.size += bytes.len() as u64;
    }

    /// The SHA-256 in hexadecimal.
    pub fn hex(self) -> String {
        let digest = self.context.finish();
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_nothing_is_that_of_sha256() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash(1, 0), empty);
    }
}
