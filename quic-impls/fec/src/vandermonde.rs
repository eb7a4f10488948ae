//! Vandermonde coefficients: 2 to the power of source SID times repair symbol number.
//!
//! The rule is that of RFC 9407, Tetrys, of which nothing else is here: no elastic window, no acknowledgements that shorten it,
//! no packet formats. The exponent is taken modulo 255, the order of 2. Tetrys prints 256, with which powers of powers would not
//! be powers, and the matrix not one of Vandermonde's.

use crate::field::power_of_two;
use crate::repair::Protected;

/// Number of different repair symbols before their numbers begin again: the order of 2, times 257, which keeps
/// consecutive numbers consecutive powers when 16 bits are used up.
pub(crate) const ROWS: usize = 255 * 257;

/// Any m repair symbols with consecutive numbers yield any m of the symbols that all of them protect, because source SIDs
/// that are less than 255 apart have different powers. If numbers have a gap, as when a repair symbol is lost, nearly any m do.
pub(crate) fn coefficients(number: u16, protected: Protected) -> impl Iterator<Item = u8> {
    protected.sids().map(move |sid| power_of_two((sid % 255) * u64::from(number)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::multiply;

    #[test]
    fn the_coefficients_of_a_symbol_are_the_powers_of_one_element_that_no_other_symbol_of_a_window_has() {
        for first in [0, 1, 200, (1 << 62) - 255] {
            let window = Protected::new(first, 255, 1).unwrap();
            let row = |number| coefficients(number, window).collect::<Vec<_>>();
            let elements = row(1);
            let mut distinct = elements.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), 255);
            let mut powers = vec![1; 255];
            for number in 0..1000 {
                assert_eq!(row(number), powers, "row {number}");
                powers.iter_mut().zip(&elements).for_each(|(power, element)| *power = multiply(*power, *element));
            }
        }
    }
}
