//! The bytes of a transfer, made from a seed, so that both endpoints know what is right without sharing a
//! file: the little-endian words mix(seed + (j + 1) · 0x9E3779B97F4A7C15) for j = 0, 1, …, where mix is
//! SplitMix64's output function.

use ring::digest::{Context, SHA256};

const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The j-th word that SplitMix64 puts out when it starts with a seed.
pub fn word(seed: u64, j: u64) -> u64 {
    let mut z = seed.wrapping_add(j.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Fills a buffer with the content that begins `offset` bytes into what a seed makes.
pub fn fill(seed: u64, offset: u64, buffer: &mut [u8]) {
    let (mut j, within) = (offset / 8, (offset % 8) as usize);
    let head = buffer.len().min(if within == 0 { 0 } else { 8 - within });
    let (first, rest) = buffer.split_at_mut(head);
    if head > 0 {
        first.copy_from_slice(&word(seed, j).to_le_bytes()[within..within + head]);
        j += 1;
    }
    for chunk in rest.chunks_mut(8) {
        chunk.copy_from_slice(&word(seed, j).to_le_bytes()[..chunk.len()]);
        j += 1;
    }
}

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

    /// The first words of SplitMix64 for seed 1234567, as its author published them.
    #[test]
    fn words_are_those_of_splitmix64() {
        let published = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        assert_eq!([0, 1, 2].map(|j| word(1234567, j)), published);
    }

    #[test]
    fn a_piece_is_the_same_wherever_it_is_cut() {
        let mut whole = [0; 40];
        fill(7, 0, &mut whole);
        for start in 0..40 {
            for end in start..40 {
                let mut piece = vec![0; end - start];
                fill(7, start as u64, &mut piece);
                assert_eq!(piece, whole[start..end], "{start}..{end}");
            }
        }
    }

    #[test]
    fn the_hash_of_nothing_is_that_of_sha256() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash(1, 0), empty);
    }
}
