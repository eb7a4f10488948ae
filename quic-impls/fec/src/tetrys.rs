//! Vandermonde coefficients, as Tetrys (RFC 9407) has them: 2 to the power of source SID times repair symbol number.

use crate::field::power_of_two;
use crate::repair::Protected;

/// How many different repair symbols there are before their numbers begin again: the order of 2, times 257, which keeps
/// consecutive numbers consecutive powers when 16 bits are used up.
pub(crate) const ROWS: usize = 255 * 257;

/// Any m repair symbols with consecutive numbers yield any m of the symbols that all of them protect, because source SIDs
/// that are less than 255 apart have different powers.
pub(crate) fn coefficients(number: u16, protected: Protected) -> Vec<u8> {
    protected.sids().map(|sid| power_of_two((sid % 255) * u64::from(number))).collect()
}
