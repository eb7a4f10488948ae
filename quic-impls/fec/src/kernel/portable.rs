//! Arithmetic on every processor: bytes are doubled and added bit by bit of the constant, in a loop that the compiler widens to
//! whatever vectors there are.

use super::Term;
use crate::field;

pub(super) fn add_products<const SUMS: usize>(sums: [&mut [u8]; SUMS], terms: &[Term<'_, SUMS>]) {
    for (place, sum) in sums.into_iter().enumerate() {
        for term in terms {
            match term.constants[place] {
                0 => {}
                1 => add(sum, term.symbol),
                constant => add_product(sum, constant, term.symbol),
            }
        }
    }
}

fn add(sum: &mut [u8], symbol: &[u8]) {
    for (total, byte) in sum.iter_mut().zip(symbol) {
        *total ^= byte;
    }
}

fn add_product(sum: &mut [u8], constant: u8, symbol: &[u8]) {
    // All ones where the constant has a bit.
    let bits: [u8; 8] = std::array::from_fn(|bit| (constant >> bit & 1).wrapping_neg());
    for (total, byte) in sum.iter_mut().zip(symbol) {
        let (mut power, mut product) = (*byte, 0);
        for bit in bits {
            product ^= power & bit;
            power = power << 1 ^ (power >> 7).wrapping_neg() & field::REDUCTION;
        }
        *total ^= product;
    }
}
