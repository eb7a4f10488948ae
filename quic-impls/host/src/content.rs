//! The bytes of a transfer, made from a seed, so that both endpoints know what is right without sharing a
//! file: the little-endian words mix(seed + (j + 1) · 0x9E3779B97F4A7C15) for j = 0, 1, …, where mix is
//! SplitMix64's output function.

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
}
