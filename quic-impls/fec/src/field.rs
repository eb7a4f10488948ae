//! GF(2⁸) with the polynomial x⁸ + x⁴ + x³ + x² + 1 (0x11d), whose element 2 generates all others.
//! Addition is XOR. It is the field of RFC 8681 and of RFC 9407.

const POLYNOMIAL: u16 = 0x11d;

/// The value of x⁸.
pub(crate) const REDUCTION: u8 = (POLYNOMIAL & 0xff) as u8;

/// Powers of 2, twice over, so that a sum of two logarithms needs no reduction.
const EXP: [u8; 510] = powers();
const LOG: [u8; 256] = logarithms();

const fn powers() -> [u8; 510] {
    let mut table = [0; 510];
    let mut value: u16 = 1;
    let mut exponent = 0;
    while exponent < 255 {
        table[exponent] = value as u8;
        table[exponent + 255] = value as u8;
        value <<= 1;
        if value > 255 {
            value ^= POLYNOMIAL;
        }
        exponent += 1;
    }
    table
}

const fn logarithms() -> [u8; 256] {
    let mut table = [0; 256];
    let mut exponent = 0;
    while exponent < 255 {
        table[EXP[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    table
}

/// The product of `a` and `b`.
#[must_use]
pub const fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[LOG[a as usize] as usize + LOG[b as usize] as usize]
}

/// The element that yields 1 when multiplied by `a`.
///
/// # Panics
/// If `a` is 0, which has none.
#[must_use]
pub const fn inverse(a: u8) -> u8 {
    assert!(a != 0, "0 has no inverse");
    EXP[255 - LOG[a as usize] as usize]
}

/// 2 to the power of `exponent`.
#[must_use]
pub const fn power_of_two(exponent: u64) -> u8 {
    EXP[(exponent % 255) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication by shifting and adding, straight from the definition.
    fn long_multiplication(a: u8, b: u8) -> u8 {
        let mut product: u16 = 0;
        for bit in (0..8).rev() {
            product <<= 1;
            if product & 0x100 != 0 {
                product ^= POLYNOMIAL;
            }
            if b >> bit & 1 == 1 {
                product ^= u16::from(a);
            }
        }
        product as u8
    }

    #[test]
    fn every_product_is_that_of_polynomials_modulo_0x11d() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), long_multiplication(a, b), "{a} times {b}");
            }
        }
    }

    #[test]
    fn every_element_but_0_has_an_inverse() {
        for a in 1..=255 {
            assert_eq!(multiply(a, inverse(a)), 1, "{a}");
        }
    }

    #[test]
    fn powers_of_two_follow_from_each_other() {
        for exponent in 0..1000 {
            assert_eq!(multiply(power_of_two(exponent), 2), power_of_two(exponent + 1));
        }
    }
}
