//! The SHA-256 of a transfer's content.

use host::content::fill;
use sha2::{Digest, Sha256};

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
#[derive(Default)]
pub struct Hash {
    hasher: Sha256,
    /// Bytes so far.
    pub size: u64,
}

impl Hash {
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
    }

    /// The SHA-256 in hexadecimal.
    pub fn hex(self) -> String {
        self.hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
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

    #[test]
    fn the_hash_is_that_of_the_content_however_it_is_cut() {
        let mut content = vec![0; 100_003];
        fill(7, 0, &mut content);
        let mut hashed = Hash::default();
        content.chunks(1_009).for_each(|piece| hashed.update(piece));
        assert_eq!(hash(7, 100_003), hashed.hex());
    }
}
