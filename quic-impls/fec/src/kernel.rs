//! Arithmetic on whole symbols with the widest instructions that the processor has, chosen at run time.
//!
//! A product with a constant is looked up by halves: c·b = c·(high nibble of b) + c·(low nibble of b), two tables of
//! 16 bytes per constant, which one shuffle instruction reads for 16 or 32 bytes at once. Without such an instruction,
//! bytes are doubled and added bit by bit of the constant, in a loop that the compiler widens to whatever vectors there are.

use crate::field;

/// For each constant: its products with 0 to 15, then its products with 0, 16, …, 240.
#[cfg(target_arch = "x86_64")]
static NIBBLE_PRODUCTS: [[u8; 32]; 256] = nibble_products();

#[cfg(target_arch = "x86_64")]
const fn nibble_products() -> [[u8; 32]; 256] {
    let mut table = [[0; 32]; 256];
    let mut constant = 0;
    while constant < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            table[constant][nibble] = field::multiply(constant as u8, nibble as u8);
            table[constant][16 + nibble] = field::multiply(constant as u8, (nibble << 4) as u8);
            nibble += 1;
        }
        constant += 1;
    }
    table
}

/// One way to do the arithmetic. All give the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(Instructions);

// Private, so that no kernel exists but on a processor that has its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instructions {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Kernel {
    /// The one that runs on every processor.
    pub const PORTABLE: Kernel = Kernel(Instructions::Portable);

    /// The fastest one that this processor runs.
    #[must_use]
    pub fn fastest() -> Kernel {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                return Kernel(Instructions::Avx2);
            }
            if is_x86_feature_detected!("ssse3") {
                return Kernel(Instructions::Ssse3);
            }
        }
        Kernel::PORTABLE
    }

    /// All that this processor runs, the slowest first.
    #[must_use]
    pub fn all() -> Vec<Kernel> {
        #[allow(unused_mut, reason = "other processors have but one")]
        let mut kernels = vec![Kernel::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("ssse3") {
                kernels.push(Kernel(Instructions::Ssse3));
            }
            if is_x86_feature_detected!("avx2") {
                kernels.push(Kernel(Instructions::Avx2));
            }
        }
        kernels
    }

    /// `sum += constant · symbol`, byte by byte.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn multiply_add(self, sum: &mut [u8], constant: u8, symbol: &[u8]) {
        assert_eq!(sum.len(), symbol.len());
        match constant {
            0 => {}
            1 => self.add(sum, symbol),
            _ => self.add_product(sum, constant, symbol),
        }
    }

    /// As [`Kernel::multiply_add`], for symbols of any two lengths: the shorter one counts as padded with zeros on the
    /// right, and `sum` grows as needed.
    pub fn multiply_add_padded(self, sum: &mut Vec<u8>, constant: u8, symbol: &[u8]) {
        if sum.len() < symbol.len() {
            sum.resize(symbol.len(), 0);
        }
        self.multiply_add(&mut sum[..symbol.len()], constant, symbol);
    }

    fn add(self, sum: &mut [u8], symbol: &[u8]) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this kernel exists only where AVX2 was detected.
            Instructions::Avx2 => unsafe { x86::add_avx2(sum, symbol) },
            _ => add_portable(sum, symbol),
        }
    }

    fn add_product(self, sum: &mut [u8], constant: u8, symbol: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        let products = &NIBBLE_PRODUCTS[usize::from(constant)];
        match self.0 {
            Instructions::Portable => add_product_portable(sum, constant, symbol),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this kernel exists only where SSSE3 was detected, and the lengths are equal.
            Instructions::Ssse3 => unsafe { x86::add_product_ssse3(sum, products, symbol) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this kernel exists only where AVX2 was detected, and the lengths are equal.
            Instructions::Avx2 => unsafe { x86::add_product_avx2(sum, products, symbol) },
        }
    }
}

#[inline(always)]
fn add_portable(sum: &mut [u8], symbol: &[u8]) {
    for (total, byte) in sum.iter_mut().zip(symbol) {
        *total ^= byte;
    }
}

fn add_product_portable(sum: &mut [u8], constant: u8, symbol: &[u8]) {
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

/// What is left of a symbol behind whole vectors.
#[cfg(target_arch = "x86_64")]
fn add_product_bytewise(sum: &mut [u8], products: &[u8; 32], symbol: &[u8]) {
    for (total, byte) in sum.iter_mut().zip(symbol) {
        *total ^= products[usize::from(byte & 15)] ^ products[16 + usize::from(byte >> 4)];
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_and_si128, _mm_loadu_si128, _mm_set1_epi8, _mm_shuffle_epi8, _mm_srli_epi64,
        _mm_storeu_si128, _mm_xor_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_loadu_si256,
        _mm256_set1_epi8, _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
    };

    /// The portable loop, which the compiler widens to 32 bytes here.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn add_avx2(sum: &mut [u8], symbol: &[u8]) {
        super::add_portable(sum, symbol);
    }

    /// `sum` and `symbol` are of the same length.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn add_product_avx2(sum: &mut [u8], products: &[u8; 32], symbol: &[u8]) {
        const WIDTH: usize = size_of::<__m256i>();
        let whole = symbol.len() / WIDTH * WIDTH;
        // SAFETY: every access is within `whole` bytes of both slices or within the 32 bytes of `products`, unaligned
        // accesses are allowed, and the caller vouches for the instructions.
        unsafe {
            let low = _mm256_broadcastsi128_si256(_mm_loadu_si128(products.as_ptr().cast()));
            let high = _mm256_broadcastsi128_si256(_mm_loadu_si128(products.as_ptr().add(16).cast()));
            let nibble = _mm256_set1_epi8(15);
            for at in (0..whole).step_by(WIDTH) {
                let bytes = _mm256_loadu_si256(symbol.as_ptr().add(at).cast());
                let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(bytes, nibble));
                let of_high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(bytes), nibble));
                let total = sum.as_mut_ptr().add(at).cast();
                let product = _mm256_xor_si256(of_low, of_high);
                _mm256_storeu_si256(total, _mm256_xor_si256(_mm256_loadu_si256(total), product));
            }
        }
        super::add_product_bytewise(&mut sum[whole..], products, &symbol[whole..]);
    }

    /// `sum` and `symbol` are of the same length.
    #[target_feature(enable = "ssse3")]
    pub(super) unsafe fn add_product_ssse3(sum: &mut [u8], products: &[u8; 32], symbol: &[u8]) {
        const WIDTH: usize = size_of::<__m128i>();
        let whole = symbol.len() / WIDTH * WIDTH;
        // SAFETY: as above.
        unsafe {
            let low = _mm_loadu_si128(products.as_ptr().cast());
            let high = _mm_loadu_si128(products.as_ptr().add(16).cast());
            let nibble = _mm_set1_epi8(15);
            for at in (0..whole).step_by(WIDTH) {
                let bytes = _mm_loadu_si128(symbol.as_ptr().add(at).cast());
                let of_low = _mm_shuffle_epi8(low, _mm_and_si128(bytes, nibble));
                let of_high = _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi64::<4>(bytes), nibble));
                let total = sum.as_mut_ptr().add(at).cast();
                let product = _mm_xor_si128(of_low, of_high);
                _mm_storeu_si128(total, _mm_xor_si128(_mm_loadu_si128(total), product));
            }
        }
        super::add_product_bytewise(&mut sum[whole..], products, &symbol[whole..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_multiplies_and_adds_as_the_field_does() {
        let symbol: Vec<u8> = (0..1003u32).map(|i| ((i * 167) >> 2) as u8).collect();
        let before: Vec<u8> = (0..1003u32).map(|i| ((i * 59) >> 1) as u8).collect();
        for kernel in Kernel::all() {
            for constant in 0..=255 {
                for length in [0, 1, 15, 16, 17, 31, 32, 33, 63, 1000, 1003] {
                    let mut sum = before[..length].to_vec();
                    kernel.multiply_add(&mut sum, constant, &symbol[..length]);
                    let expected: Vec<u8> =
                        (0..length).map(|i| before[i] ^ field::multiply(constant, symbol[i])).collect();
                    assert_eq!(sum, expected, "{kernel:?}, {constant}, {length} bytes");
                }
            }
        }
    }

    #[test]
    fn a_shorter_symbol_counts_as_padded_with_zeros() {
        let mut sum = vec![1, 2];
        Kernel::fastest().multiply_add_padded(&mut sum, 1, &[4, 8, 16]);
        assert_eq!(sum, [5, 10, 16]);
        Kernel::fastest().multiply_add_padded(&mut sum, 1, &[1]);
        assert_eq!(sum, [4, 10, 16]);
    }
}
