//! TinyMT32, the pseudorandom generator of RFC 8682 with that document's parameters.

const MAT1: u32 = 0x8f70_11ee;
const MAT2: u32 = 0xfc78_ff1f;
const TMAT: u32 = 0x3793_fdff;
const ROUNDS: u32 = 8;

#[derive(Debug)]
pub(crate) struct TinyMt32([u32; 4]);

impl TinyMt32 {
    pub(crate) fn new(seed: u32) -> TinyMt32 {
        let mut state = [seed, MAT1, MAT2, TMAT];
        for round in 1..ROUNDS {
            let previous = state[(round as usize - 1) & 3];
            let mixed = (previous ^ previous >> 30).wrapping_mul(1_812_433_253);
            state[round as usize & 3] ^= mixed.wrapping_add(round);
        }
        let mut generator = TinyMt32(state);
        for _ in 0..ROUNDS {
            generator.step();
        }
        generator
    }

    fn step(&mut self) {
        let [s0, s1, s2, s3] = self.0;
        let mut x = (s0 & 0x7fff_ffff) ^ s1 ^ s2;
        x ^= x << 1;
        let y = s3 ^ s3 >> 1 ^ x;
        let odd = (y & 1).wrapping_neg();
        self.0 = [s1, s2 ^ odd & MAT1, x ^ y << 10 ^ odd & MAT2, y];
    }

    fn next(&mut self) -> u32 {
        self.step();
        let [s0, _, s2, s3] = self.0;
        let sum = s0.wrapping_add(s2 >> 8);
        s3 ^ sum ^ (sum & 1).wrapping_neg() & TMAT
    }

    /// RFC 8681 §3.5: the 4 lowest bits of a draw.
    pub(crate) fn next_below_16(&mut self) -> u8 {
        self.next() as u8 & 15
    }

    /// RFC 8681 §3.5: the 8 lowest bits of a draw.
    pub(crate) fn next_below_256(&mut self) -> u8 {
        self.next() as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_those_of_rfc_8682() {
        let mut generator = TinyMt32::new(1);
        let expected = [
            2545341989, 981918433, 3715302833, 2387538352, 3591001365, 3820442102, 2114400566, 2196103051, 2783359912,
            764534509,
        ];
        for (place, draw) in expected.into_iter().enumerate() {
            assert_eq!(generator.next(), draw, "draw {place}");
        }
    }

    #[test]
    fn draws_of_few_bits_are_those_of_rfc_8681() {
        let mut generator = TinyMt32::new(1);
        let nibbles = [5, 1, 1, 0, 5, 6, 6, 11, 8, 13, 3, 11, 14, 14, 8, 7, 2, 3, 0, 11];
        assert_eq!([(); 20].map(|()| generator.next_below_16()), nibbles);
        let mut generator = TinyMt32::new(1);
        let bytes = [37, 225, 177, 176, 21, 246, 54, 139, 168, 237, 211, 187, 62, 190, 104, 135];
        assert_eq!([(); 16].map(|()| generator.next_below_256()), bytes);
    }
}
