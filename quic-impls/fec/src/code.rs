//! The codes. Each is linear: a repair symbol is the sum of the source symbols that it protects, each multiplied by a
//! coefficient that both sides compute from the repair payload's header. All that differs is the coefficients.

use std::iter::repeat_n;

use crate::repair::{Header, Malformed, Protected};
use crate::{reed_solomon, rlc, vandermonde};

/// The coefficients of repair symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// All 1: one repair symbol, which recovers one source symbol.
    Xor,
    /// Rows of a Cauchy matrix; the key is the row. Any k of the n symbols over a block yield the block. Over a window that
    /// slides, each repair symbol has the next row.
    ReedSolomon,
    /// Random, by RFC 8681 §3.6; the key seeds them.
    Rlc {
        /// RFC 8681's density threshold, 0 to 15: a coefficient is not 0 with a probability of (density + 1)/16.
        density: u8,
    },
    /// Rows of a Vandermonde matrix, whose coefficients are much like those of Tetrys (RFC 9407); the key is the row.
    Vandermonde,
}

impl Code {
    /// RLC as it is best at recovering: without a coefficient that is 0.
    pub const RLC: Code = Code::Rlc { density: rlc::MAX_DENSITY };

    /// Returns how many different repair symbols there are over the same `count` source symbols.
    #[must_use]
    pub fn repairs_over(self, count: usize) -> usize {
        match self {
            Code::Xor => 1,
            Code::ReedSolomon => reed_solomon::MAX_SYMBOLS.saturating_sub(count),
            Code::Rlc { .. } => rlc::KEYS,
            Code::Vandermonde => vandermonde::ROWS,
        }
    }

    /// The header of a repair symbol, the `serial`-th of all, and the `index`-th in a row over symbols in common.
    pub(crate) fn header(self, protected: Protected, index: usize, serial: u64) -> Header {
        let (key, density) = match self {
            Code::Xor => (0, 0),
            Code::ReedSolomon => ((index % self.repairs_over(protected.count())) as u16, 0),
            Code::Rlc { density } => ((serial % rlc::KEYS as u64) as u16, density),
            Code::Vandermonde => ((serial % vandermonde::ROWS as u64) as u16, 0),
        };
        Header { protected, key, density }
    }

    /// Appends the coefficients of the protected symbols, in their order.
    pub(crate) fn coefficients(self, header: &Header, row: &mut Vec<u8>) -> Result<(), Malformed> {
        let count = header.protected.count();
        let key = usize::from(header.key);
        let no_density = header.density == 0;
        match self {
            Code::Xor if key == 0 && no_density => row.extend(repeat_n(1, count)),
            Code::ReedSolomon if key < self.repairs_over(count) && no_density => {
                row.extend_from_slice(&reed_solomon::row(key)[..count]);
            }
            Code::Rlc { .. } if header.density <= rlc::MAX_DENSITY => {
                row.extend(rlc::coefficients(header.key, header.density).take(count));
            }
            Code::Vandermonde if key < vandermonde::ROWS && no_density => {
                row.extend(vandermonde::coefficients(header.key, header.protected));
            }
            _ => return Err(Malformed::Key),
        }
        Ok(())
    }
}
