//! Systematic Reed-Solomon codes by a Cauchy matrix.
//!
//! Row r of the matrix makes repair symbol r. A Cauchy matrix has no singular square part, so any k symbols of a block of
//! k source and n − k repair symbols yield all others (maximum distance separable), for every n up to 256. Its
//! coefficients depend neither on n nor on k: one matrix, kept for the process's life, serves all codes, and there is
//! nothing to invert when a new (n, k) comes.

use std::sync::LazyLock;

use crate::field::{inverse, multiply};

/// n is at most this.
pub(crate) const MAX_SYMBOLS: usize = 256;

static MATRIX: LazyLock<Vec<[u8; 255]>> = LazyLock::new(|| matrix(255, 255));

/// The coefficients of repair symbol `index`, by a source symbol's place in its block. Only the first
/// `MAX_SYMBOLS − 1 − index` are coefficients of the code.
pub(crate) fn row(index: usize) -> &'static [u8; 255] {
    &MATRIX[index]
}

/// The first `rows` rows and `columns` columns of the matrix, made anew.
#[must_use]
pub fn matrix(rows: usize, columns: usize) -> Vec<[u8; 255]> {
    let coefficients = |index| {
        let mut row = [0; 255];
        for place in (0..columns).take_while(|place| place + index < MAX_SYMBOLS - 1) {
            row[place] = coefficient(index as u8, place as u8);
        }
        row
    };
    (0..rows).map(coefficients).collect()
}

/// 1/(x + y) is the Cauchy matrix's, with x = 255 − index for the row and y = place for the column. Each column is divided
/// by its first coefficient, which leaves no square part singular and makes the first repair symbol a plain XOR.
fn coefficient(index: u8, place: u8) -> u8 {
    multiply(255 ^ place, inverse((255 - index) ^ place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_repair_symbol_is_a_plain_xor() {
        assert_eq!(row(0), &[1; 255]);
    }

    #[test]
    fn no_coefficient_of_a_code_is_0() {
        for index in 0..255 {
            assert!(row(index)[..255 - index].iter().all(|coefficient| *coefficient != 0), "row {index}");
        }
    }

    #[test]
    fn a_part_of_the_matrix_is_that_of_the_whole() {
        for (ours, whole) in matrix(5, 15).iter().zip(0..) {
            assert_eq!(ours[..15], row(whole)[..15]);
        }
    }
}
