//! NEON, which looks up the products of half bytes in tables of 16.

use std::arch::aarch64::{uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vshrq_n_u8, vst1q_u8};

use super::Term;
use super::vector::{self, NIBBLE_PRODUCTS, Vector};

#[derive(Clone, Copy)]
struct Neon(uint8x16_t);

// SAFETY of all: the caller vouches for the instructions and the addresses.
impl Vector for Neon {
    const BYTES: usize = size_of::<uint8x16_t>();

    /// The products of the low half, and of the high half.
    type Factor = [uint8x16_t; 2];

    #[inline(always)]
    unsafe fn factor(constant: u8) -> [uint8x16_t; 2] {
        let products = NIBBLE_PRODUCTS[usize::from(constant)].as_ptr();
        unsafe { [vld1q_u8(products), vld1q_u8(products.add(16))] }
    }

    #[inline(always)]
    unsafe fn zero() -> Neon {
        unsafe { Neon(vdupq_n_u8(0)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Neon {
        unsafe { Neon(vld1q_u8(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { vst1q_u8(to, self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Neon) -> Neon {
        unsafe { Neon(veorq_u8(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn times(self, [low, high]: [uint8x16_t; 2]) -> Neon {
        unsafe {
            let of_low = vqtbl1q_u8(low, vandq_u8(self.0, vdupq_n_u8(15)));
            let of_high = vqtbl1q_u8(high, vshrq_n_u8::<4>(self.0));
            Neon(veorq_u8(of_low, of_high))
        }
    }
}

/// # Safety
/// There is NEON, and no sum or symbol has fewer than `length` bytes.
#[target_feature(enable = "neon")]
pub(super) unsafe fn add_products_neon<const SUMS: usize>(
    sums: [&mut [u8]; SUMS],
    terms: &[Term<'_, SUMS>],
    length: usize,
) {
    // SAFETY: the caller vouches for it.
    unsafe { vector::add_products::<Neon, SUMS>(sums, terms, length) }
}
