//! Arithmetic on vectors, for any instructions that have them.
//!
//! Everything is inlined into a function that is compiled for its instructions, where a vector is one register.

use super::Term;
use crate::field;

/// The most bytes that a vector has.
const LARGEST: usize = 64;

/// Bytes that one instruction takes.
///
/// # Safety
/// All of these functions may be called only where the processor has the instructions. Addresses need not be aligned.
pub(super) trait Vector: Copy {
    const BYTES: usize;

    /// A constant, as it is needed to multiply by it.
    type Factor: Copy;

    unsafe fn factor(constant: u8) -> Self::Factor;

    unsafe fn zero() -> Self;

    /// There are `BYTES` at the address.
    unsafe fn load(from: *const u8) -> Self;

    /// There is room for `BYTES` at the address.
    unsafe fn store(self, to: *mut u8);

    unsafe fn add(self, other: Self) -> Self;

    unsafe fn times(self, factor: Self::Factor) -> Self;

    /// The first bytes of a vector whose others are 0. There are `length` at the address, fewer than `BYTES`.
    #[inline(always)]
    unsafe fn load_first(from: *const u8, length: usize) -> Self {
        let mut bytes = [0; LARGEST];
        // SAFETY: the caller vouches for it.
        unsafe {
            from.copy_to_nonoverlapping(bytes.as_mut_ptr(), length);
            Self::load(bytes.as_ptr())
        }
    }

    /// There is room for `length` at the address, fewer than `BYTES`.
    #[inline(always)]
    unsafe fn store_first(self, to: *mut u8, length: usize) {
        let mut bytes = [0; LARGEST];
        // SAFETY: the caller vouches for it.
        unsafe {
            self.store(bytes.as_mut_ptr());
            to.copy_from_nonoverlapping(bytes.as_ptr(), length);
        }
    }
}

/// # Safety
/// The processor has the instructions, and no sum or symbol has fewer than `length` bytes.
#[inline(always)]
pub(super) unsafe fn add_products<V: Vector, const SUMS: usize>(
    sums: [&mut [u8]; SUMS],
    terms: &[Term<'_, SUMS>],
    length: usize,
) {
    let sums = sums.map(<[u8]>::as_mut_ptr);
    // SAFETY: the caller vouches for it.
    unsafe {
        if terms.iter().all(|term| term.constants == [1; SUMS]) {
            add_all::<V, SUMS, true>(sums, terms, length);
        } else {
            add_all::<V, SUMS, false>(sums, terms, length);
        }
    }
}

/// `PLAIN` if all constants are 1.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn add_all<V: Vector, const SUMS: usize, const PLAIN: bool>(
    sums: [*mut u8; SUMS],
    terms: &[Term<'_, SUMS>],
    length: usize,
) {
    // SAFETY: the caller vouches for the instructions; all that is read and written is within `length` bytes.
    unsafe {
        if length < V::BYTES {
            let totals = totals::<V, SUMS, 1, PLAIN>(sums, terms, 0, Some(length));
            for (sum, [total]) in sums.into_iter().zip(totals) {
                total.store_first(sum, length);
            }
            return;
        }
        // The last vector may begin within the one before it, and is of what the sums are before any is stored.
        let last = length - V::BYTES;
        let totals_of_last = totals::<V, SUMS, 1, PLAIN>(sums, terms, last, None);
        let mut at = 0;
        // The registers hold so many vectors.
        if SUMS == 1 {
            at = add_while_there_are::<V, SUMS, 4, PLAIN>(sums, terms, at, length);
        }
        at = add_while_there_are::<V, SUMS, 2, PLAIN>(sums, terms, at, length);
        if at < last {
            store(sums, at, totals::<V, SUMS, 1, PLAIN>(sums, terms, at, None));
        }
        store(sums, last, totals_of_last);
    }
}

/// Adds so many vectors at a time as long as there are as many, and returns where it has ended.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn add_while_there_are<V: Vector, const SUMS: usize, const VECTORS: usize, const PLAIN: bool>(
    sums: [*mut u8; SUMS],
    terms: &[Term<'_, SUMS>],
    mut at: usize,
    length: usize,
) -> usize {
    while at + VECTORS * V::BYTES <= length {
        // SAFETY: as above.
        unsafe { store(sums, at, totals::<V, SUMS, VECTORS, PLAIN>(sums, terms, at, None)) };
        at += VECTORS * V::BYTES;
    }
    at
}

/// The new values of vectors from a place of each sum on; with a length, of the first bytes of one.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn totals<V: Vector, const SUMS: usize, const VECTORS: usize, const PLAIN: bool>(
    sums: [*mut u8; SUMS],
    terms: &[Term<'_, SUMS>],
    at: usize,
    first: Option<usize>,
) -> [[V; VECTORS]; SUMS] {
    // SAFETY: the caller vouches for it.
    unsafe {
        let mut totals = [[V::zero(); VECTORS]; SUMS];
        for (totals, sum) in totals.iter_mut().zip(sums) {
            for (place, total) in totals.iter_mut().enumerate() {
                *total = load(sum.add(at + place * V::BYTES), first);
            }
        }
        for Term { constants, symbol } in terms {
            let mut bytes = [V::zero(); VECTORS];
            for (place, bytes) in bytes.iter_mut().enumerate() {
                *bytes = load(symbol.as_ptr().add(at + place * V::BYTES), first);
            }
            for (totals, constant) in totals.iter_mut().zip(constants) {
                let factor = V::factor(*constant);
                for (total, bytes) in totals.iter_mut().zip(bytes) {
                    *total = total.add(if PLAIN { bytes } else { bytes.times(factor) });
                }
            }
        }
        totals
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn load<V: Vector>(from: *const u8, first: Option<usize>) -> V {
    // SAFETY: the caller vouches for it.
    unsafe {
        match first {
            None => V::load(from),
            Some(length) => V::load_first(from, length),
        }
    }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn store<V: Vector, const SUMS: usize, const VECTORS: usize>(
    sums: [*mut u8; SUMS],
    at: usize,
    totals: [[V; VECTORS]; SUMS],
) {
    for (sum, totals) in sums.into_iter().zip(totals) {
        for (place, total) in totals.into_iter().enumerate() {
            // SAFETY: the caller vouches for it.
            unsafe { total.store(sum.add(at + place * V::BYTES)) };
        }
    }
}

/// For each constant: its products with 0 to 15, then its products with 0, 16, …, 240. A product is the sum of those of a byte's
/// halves, and one instruction looks up a vector of them.
pub(super) static NIBBLE_PRODUCTS: [[u8; 32]; 256] = nibble_products();

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
