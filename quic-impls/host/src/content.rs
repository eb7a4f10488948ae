//! The bytes of a transfer, made from a seed, so that both endpoints know what is right without sharing a
//! file: the little-endian words mix(seed + (j + 1) · 0x9E3779B97F4A7C15) for j = 0, 1, …, where mix is
//! SplitMix64's output function. Received content is checked here, too.

use std::cell::RefCell;

use sha2::{Digest, Sha256};

const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The j-th word that SplitMix64 puts out when it starts with a seed.
pub fn word(seed: u64, j: u64) -> u64 {
    let mut z = seed.wrapping_add(j.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The bytes of content that a simulator remembers.
const MEMORY_BYTES: u64 = 4 << 20;

/// The beginning of the content of a seed, and a size with the hash of so much of it.
#[derive(Default)]
struct Memory {
    seed: u64,
    bytes: Vec<u8>,
    hash: Option<(u64, String)>,
}

thread_local! {
    static MEMORY: RefCell<Option<Memory>> = const { RefCell::new(None) };
}

/// Lets this thread remember content from now on: in a simulator both ends of a trial, and many trials, have the same.
pub fn remember() {
    MEMORY.set(Some(Memory::default()));
}

/// Does something with what this thread remembers of a seed, if it remembers.
fn recall<T>(seed: u64, work: impl FnOnce(&mut Memory) -> Option<T>) -> Option<T> {
    MEMORY.with_borrow_mut(|memory| {
        let memory = memory.as_mut()?;
        if memory.seed != seed {
            memory.bytes.clear();
            (memory.seed, memory.hash) = (seed, None);
        }
        work(memory)
    })
}

impl Memory {
    /// Returns a piece of the content, if it is one that is remembered.
    fn piece(&mut self, offset: u64, length: usize) -> Option<&[u8]> {
        let end = offset + length as u64;
        if end > MEMORY_BYTES {
            return None;
        }
        let (there, end) = (self.bytes.len(), end as usize);
        if end > there {
            self.bytes.resize(end, 0);
            make(self.seed, there as u64, &mut self.bytes[there..]);
        }
        Some(&self.bytes[offset as usize..end])
    }
}

/// Fills a buffer with the content that begins `offset` bytes into what a seed makes.
pub fn fill(seed: u64, offset: u64, buffer: &mut [u8]) {
    let copied = recall(seed, |memory| memory.piece(offset, buffer.len()).map(|piece| buffer.copy_from_slice(piece)));
    if copied.is_none() {
        make(seed, offset, buffer);
    }
}

/// Lends a piece of the content to `take`: what is remembered, or else the buffer, which it fills then.
pub(crate) fn lend<T>(seed: u64, offset: u64, buffer: &mut [u8], mut take: impl FnMut(&[u8]) -> T) -> T {
    let taken = recall(seed, |memory| Some(take(memory.piece(offset, buffer.len())?)));
    taken.unwrap_or_else(|| {
        make(seed, offset, buffer);
        take(buffer)
    })
}

/// The same, each time anew.
pub(crate) fn make(seed: u64, offset: u64, buffer: &mut [u8]) {
    let (mut j, within) = (offset / 8, (offset % 8) as usize);
    let head = buffer.len().min(if within == 0 { 0 } else { 8 - within });
    let (first, rest) = buffer.split_at_mut(head);
    if head > 0 {
        first.copy_from_slice(&word(seed, j).to_le_bytes()[within..within + head]);
        j += 1;
    }
    let (words, tail) = rest.as_chunks_mut::<8>();
    for (bytes, j) in words.iter_mut().zip(j..) {
        *bytes = word(seed, j).to_le_bytes();
    }
    tail.copy_from_slice(&word(seed, j + words.len() as u64).to_le_bytes()[..tail.len()]);
}

/// The SHA-256 of `size` bytes of content, in hexadecimal.
pub fn hash(seed: u64, size: u64) -> String {
    let remembered = recall(seed, |memory| memory.hash.clone().filter(|(hashed, _)| *hashed == size));
    if let Some((_, hash)) = remembered {
        return hash;
    }
    let hash = hash_anew(seed, size);
    recall(seed, |memory| memory.hash.replace((size, hash.clone())));
    hash
}

fn hash_anew(seed: u64, size: u64) -> String {
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

/// Compares what is received with the content that a seed makes.
pub struct Verifier {
    seed: u64,
    size: u64,
    /// Bytes that were right.
    received: u64,
    right: Vec<u8>,
}

impl Verifier {
    /// Verifies content of `size` bytes.
    pub fn new(seed: u64, size: u64) -> Self {
        Self { seed, size, received: 0, right: Vec::new() }
    }

    /// Bytes so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Takes the bytes that follow those before. An error is one line, and names the first that is wrong.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() as u64 > self.size - self.received {
            return Err(format!("the server sent more than the {} bytes that are right", self.size));
        }
        if let Some(place) = difference(self.seed, self.received, bytes, &mut self.right) {
            return Err(format!("byte {} is not that of the content", self.received + place as u64));
        }
        self.received += bytes.len() as u64;
        Ok(())
    }
}

/// The first place in which bytes differ from the content that begins `offset` bytes into what a seed makes. `right` is room for
/// that content.
pub fn difference(seed: u64, offset: u64, bytes: &[u8], right: &mut Vec<u8>) -> Option<usize> {
    let compared = recall(seed, |memory| Some(first_difference(bytes, memory.piece(offset, bytes.len())?)));
    compared.unwrap_or_else(|| {
        right.resize(bytes.len(), 0);
        make(seed, offset, right);
        first_difference(bytes, right)
    })
}

fn first_difference(bytes: &[u8], right: &[u8]) -> Option<usize> {
    if bytes == right {
        return None;
    }
    bytes.iter().zip(right).position(|(got, right)| got != right)
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
    fn content_that_is_remembered_is_the_same_as_far_as_it_is_and_beyond() {
        let whole = |seed| {
            let mut whole = vec![0; 1_000];
            make(seed, MEMORY_BYTES - 500, &mut whole);
            whole
        };
        remember();
        for seed in [7, 8, 7] {
            for (first, last) in [(0, 10), (490, 500), (495, 505), (500, 1_000), (3, 4)] {
                let mut piece = vec![0; last - first];
                fill(seed, MEMORY_BYTES - 500 + first as u64, &mut piece);
                assert_eq!(piece, whole(seed)[first..last], "{seed}: {first} to {last}");
            }
        }
    }

    #[test]
    fn the_hash_of_nothing_is_that_of_sha256() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash(1, 0), empty);
    }

    #[test]
    fn the_hash_is_that_of_the_content_however_it_is_cut() {
        let hashed = |seed, size| {
            let mut content = vec![0; size];
            make(seed, 0, &mut content);
            let mut hashed = Hash::default();
            content.chunks(1_009).for_each(|piece| hashed.update(piece));
            hashed.hex()
        };
        assert_eq!(hash(7, 100_003), hashed(7, 100_003));
        remember();
        for (seed, size) in [(7, 100_003), (7, 100_003), (7, 99), (8, 99), (7, 100_003)] {
            assert_eq!(hash(seed, size as u64), hashed(seed, size), "{seed}: {size}");
        }
    }

    #[test]
    fn content_is_verified_however_it_is_cut_up_to_its_size() {
        let mut content = vec![0; 1_000];
        fill(7, 0, &mut content);
        let mut verifier = Verifier::new(7, 1_000);
        assert!(content.chunks(33).all(|piece| verifier.take(piece).is_ok()));
        assert_eq!(verifier.received(), 1_000);
        assert_eq!(verifier.take(&[0]), Err("the server sent more than the 1000 bytes that are right".into()));
    }

    #[test]
    fn each_byte_that_is_wrong_is_named() {
        let mut content = vec![0; 100];
        make(7, 0, &mut content);
        for remembers in [false, true] {
            if remembers {
                remember();
            }
            for place in 0..100 {
                content[place] ^= 1;
                let mut verifier = Verifier::new(7, 100);
                let (first, rest) = content.split_at(50);
                let error = verifier.take(first).and_then(|()| verifier.take(rest));
                assert_eq!(error, Err(format!("byte {place} is not that of the content")));
                content[place] ^= 1;
            }
        }
    }
}
