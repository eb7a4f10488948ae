//! The instructions of x86-64: SSSE3 and AVX2 look up the products of half bytes in tables of 16, GFNI multiplies each byte by a
//! matrix of bits.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_and_si128, _mm_loadu_si128, _mm_set1_epi8, _mm_setzero_si128, _mm_shuffle_epi8,
    _mm_srli_epi64, _mm_storeu_si128, _mm_xor_si128, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_set1_epi64x, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256, _mm512_gf2p8affine_epi64_epi8,
    _mm512_loadu_si512, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_xor_si512,
};

use super::Term;
use super::vector::{self, NIBBLE_PRODUCTS, Vector};
use crate::field;

/// The matrix of multiplication by each constant. Its byte 7 − i has the bits of the other factor whose sum is bit i of the product.
static MATRICES: [u64; 256] = matrices();

const fn matrices() -> [u64; 256] {
    let mut matrices = [0; 256];
    let mut constant = 0;
    while constant < 256 {
        let mut bit = 0;
        while bit < 8 {
            let product = field::multiply(constant as u8, 1 << bit);
            let mut row = 0;
            while row < 8 {
                matrices[constant] |= ((product >> row & 1) as u64) << (8 * (7 - row) + bit);
                row += 1;
            }
            bit += 1;
        }
        constant += 1;
    }
    matrices
}

#[derive(Clone, Copy)]
struct Ssse3(__m128i);

// SAFETY of all implementations: the caller vouches for the instructions and the addresses.
impl Vector for Ssse3 {
    const BYTES: usize = size_of::<__m128i>();

    /// The products of the low half, and of the high half.
    type Factor = [__m128i; 2];

    #[inline(always)]
    unsafe fn factor(constant: u8) -> [__m128i; 2] {
        let products = NIBBLE_PRODUCTS[usize::from(constant)].as_ptr();
        unsafe { [_mm_loadu_si128(products.cast()), _mm_loadu_si128(products.add(16).cast())] }
    }

    #[inline(always)]
    unsafe fn zero() -> Ssse3 {
        unsafe { Ssse3(_mm_setzero_si128()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Ssse3 {
        unsafe { Ssse3(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm_storeu_si128(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Ssse3) -> Ssse3 {
        unsafe { Ssse3(_mm_xor_si128(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn times(self, [low, high]: [__m128i; 2]) -> Ssse3 {
        unsafe {
            let nibble = _mm_set1_epi8(15);
            let of_low = _mm_shuffle_epi8(low, _mm_and_si128(self.0, nibble));
            let of_high = _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi64::<4>(self.0), nibble));
            Ssse3(_mm_xor_si128(of_low, of_high))
        }
    }
}

#[derive(Clone, Copy)]
struct Avx2(__m256i);

impl Vector for Avx2 {
    const BYTES: usize = size_of::<__m256i>();

    /// The factor of SSSE3, twice each.
    type Factor = [__m256i; 2];

    #[inline(always)]
    unsafe fn factor(constant: u8) -> [__m256i; 2] {
        unsafe {
            let [low, high] = Ssse3::factor(constant);
            [_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high)]
        }
    }

    #[inline(always)]
    unsafe fn zero() -> Avx2 {
        unsafe { Avx2(_mm256_setzero_si256()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Avx2 {
        unsafe { Avx2(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Avx2) -> Avx2 {
        unsafe { Avx2(_mm256_xor_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn times(self, [low, high]: [__m256i; 2]) -> Avx2 {
        unsafe {
            let nibble = _mm256_set1_epi8(15);
            let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(self.0, nibble));
            let of_high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), nibble));
            Avx2(_mm256_xor_si256(of_low, of_high))
        }
    }
}

#[derive(Clone, Copy)]
struct GfniAvx2(__m256i);

impl Vector for GfniAvx2 {
    const BYTES: usize = Avx2::BYTES;

    /// The matrix, four times.
    type Factor = __m256i;

    #[inline(always)]
    unsafe fn factor(constant: u8) -> __m256i {
        unsafe { _mm256_set1_epi64x(MATRICES[usize::from(constant)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn zero() -> GfniAvx2 {
        unsafe { GfniAvx2(Avx2::zero().0) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> GfniAvx2 {
        unsafe { GfniAvx2(Avx2::load(from).0) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { Avx2(self.0).store(to) }
    }

    #[inline(always)]
    unsafe fn add(self, other: GfniAvx2) -> GfniAvx2 {
        unsafe { GfniAvx2(Avx2(self.0).add(Avx2(other.0)).0) }
    }

    #[inline(always)]
    unsafe fn times(self, matrix: __m256i) -> GfniAvx2 {
        unsafe { GfniAvx2(_mm256_gf2p8affine_epi64_epi8::<0>(self.0, matrix)) }
    }
}

#[derive(Clone, Copy)]
struct GfniAvx512(__m512i);

impl GfniAvx512 {
    /// A bit for each of the first bytes, of which there are fewer than in a vector.
    #[inline(always)]
    fn first(length: usize) -> u64 {
        (1 << length) - 1
    }
}

impl Vector for GfniAvx512 {
    const BYTES: usize = size_of::<__m512i>();

    /// The matrix, eight times.
    type Factor = __m512i;

    #[inline(always)]
    unsafe fn factor(constant: u8) -> __m512i {
        unsafe { _mm512_set1_epi64(MATRICES[usize::from(constant)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn zero() -> GfniAvx512 {
        unsafe { GfniAvx512(_mm512_setzero_si512()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> GfniAvx512 {
        unsafe { GfniAvx512(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: GfniAvx512) -> GfniAvx512 {
        unsafe { GfniAvx512(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn times(self, matrix: __m512i) -> GfniAvx512 {
        unsafe { GfniAvx512(_mm512_gf2p8affine_epi64_epi8::<0>(self.0, matrix)) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u8, length: usize) -> GfniAvx512 {
        unsafe { GfniAvx512(_mm512_maskz_loadu_epi8(GfniAvx512::first(length), from.cast())) }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u8, length: usize) {
        unsafe { _mm512_mask_storeu_epi8(to.cast(), GfniAvx512::first(length), self.0) }
    }
}

macro_rules! kernel {
    ($name:ident, $vector:ty, $features:literal) => {
        /// # Safety
        /// There are these instructions, and no sum or symbol has fewer than `length` bytes.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name<const SUMS: usize>(
            sums: [&mut [u8]; SUMS],
            terms: &[Term<'_, SUMS>],
            length: usize,
        ) {
            // SAFETY: the caller vouches for it.
            unsafe { vector::add_products::<$vector, SUMS>(sums, terms, length) }
        }
    };
}

kernel!(add_products_ssse3, Ssse3, "ssse3");
kernel!(add_products_avx2, Avx2, "avx2");
kernel!(add_products_gfni_avx2, GfniAvx2, "gfni,avx2");
kernel!(add_products_gfni_avx512, GfniAvx512, "gfni,avx512bw");
