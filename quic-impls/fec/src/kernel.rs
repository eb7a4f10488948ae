//! Arithmetic on whole symbols with the widest instructions that the processor has, chosen at run time.
//!
//! All of it is one operation: to each of a few sums, each of many symbols is added, multiplied by a constant that it has for
//! this sum. Sums stay in registers while symbols are added, and a symbol is loaded once for all sums.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod portable;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

/// A symbol, and what it is multiplied by for each of the sums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term<'a, const SUMS: usize> {
    pub constants: [u8; SUMS],
    pub symbol: &'a [u8],
}

/// An implementation of the arithmetic. All give the same results.
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
    /// GFNI on vectors of 32 bytes.
    #[cfg(target_arch = "x86_64")]
    GfniAvx2,
    /// GFNI on vectors of 64 bytes.
    #[cfg(target_arch = "x86_64")]
    GfniAvx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Kernel {
    /// The one that runs on every processor.
    pub const PORTABLE: Kernel = Kernel(Instructions::Portable);

    /// The fastest one that this processor runs.
    #[must_use]
    pub fn fastest() -> Kernel {
        *Kernel::all().last().expect("one runs on every processor")
    }

    /// Returns all kernels that this processor can run, the slowest first.
    #[must_use]
    pub fn all() -> Vec<Kernel> {
        let all = [
            (Instructions::Portable, true),
            #[cfg(target_arch = "x86_64")]
            (Instructions::Ssse3, is_x86_feature_detected!("ssse3")),
            #[cfg(target_arch = "x86_64")]
            (Instructions::Avx2, is_x86_feature_detected!("avx2")),
            #[cfg(target_arch = "x86_64")]
            (Instructions::GfniAvx2, is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx2")),
            #[cfg(target_arch = "x86_64")]
            (Instructions::GfniAvx512, is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx512bw")),
            #[cfg(target_arch = "aarch64")]
            (Instructions::Neon, std::arch::is_aarch64_feature_detected!("neon")),
        ];
        all.into_iter().filter(|(_, runs)| *runs).map(|(instructions, _)| Kernel(instructions)).collect()
    }

    /// `sum += constant · symbol`, byte by byte.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn multiply_add(self, sum: &mut [u8], constant: u8, symbol: &[u8]) {
        assert_eq!(sum.len(), symbol.len());
        if constant != 0 {
            self.add_of_length([sum], &[Term { constants: [constant], symbol }]);
        }
    }

    /// Like [`Kernel::multiply_add`], for symbols of any two lengths: the shorter one counts as padded with zeros on
    /// the right, and `sum` grows as needed.
    pub fn multiply_add_padded(self, sum: &mut Vec<u8>, constant: u8, symbol: &[u8]) {
        if sum.len() < symbol.len() {
            sum.resize(symbol.len(), 0);
        }
        self.multiply_add(&mut sum[..symbol.len()], constant, symbol);
    }

    /// `sum += constant · symbol` for each sum and each term. Shorter symbols count as padded with zeros on the right.
    ///
    /// # Panics
    /// If a symbol is longer than a sum.
    pub(crate) fn add_products<const SUMS: usize>(self, mut sums: [&mut [u8]; SUMS], terms: &[Term<'_, SUMS>]) {
        let common = terms.iter().map(|term| term.symbol.len()).min().unwrap_or(0);
        self.add_of_length(part(&mut sums, 0, common), terms);
        for Term { constants, symbol } in terms.iter().filter(|term| term.symbol.len() > common) {
            let rest = Term { constants: *constants, symbol: &symbol[common..] };
            self.add_of_length(part(&mut sums, common, symbol.len()), &[rest]);
        }
    }

    /// Like [`Kernel::add_products`], over as many bytes of each symbol as the sums have.
    fn add_of_length<const SUMS: usize>(self, sums: [&mut [u8]; SUMS], terms: &[Term<'_, SUMS>]) {
        let length = sums.first().map_or(0, |sum| sum.len());
        debug_assert!(sums.iter().all(|sum| sum.len() == length));
        debug_assert!(terms.iter().all(|term| term.symbol.len() >= length));
        #[cfg(any(test, fuzzing))]
        WORK.set(WORK.get() + (SUMS * terms.len() * length) as u64);
        match self.0 {
            Instructions::Portable => portable::add_products(sums, terms),
            // SAFETY: these kernels exist only where their instructions were detected, and no sum or symbol is shorter.
            #[cfg(target_arch = "x86_64")]
            Instructions::Ssse3 => unsafe { x86::add_products_ssse3(sums, terms, length) },
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { x86::add_products_avx2(sums, terms, length) },
            #[cfg(target_arch = "x86_64")]
            Instructions::GfniAvx2 => unsafe { x86::add_products_gfni_avx2(sums, terms, length) },
            #[cfg(target_arch = "x86_64")]
            Instructions::GfniAvx512 => unsafe { x86::add_products_gfni_avx512(sums, terms, length) },
            #[cfg(target_arch = "aarch64")]
            Instructions::Neon => unsafe { aarch64::add_products_neon(sums, terms, length) },
        }
    }
}

#[cfg(any(test, fuzzing))]
thread_local! {
    static WORK: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Returns how many bytes were multiplied and added on this thread.
#[cfg(any(test, fuzzing))]
pub(crate) fn work() -> u64 {
    WORK.get()
}

/// Returns these bytes of each sum.
fn part<'a, const SUMS: usize>(sums: &'a mut [&mut [u8]; SUMS], from: usize, to: usize) -> [&'a mut [u8]; SUMS] {
    sums.each_mut().map(|sum| &mut sum[from..to])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::field;

    /// Bytes before and behind what is added to, which have to stay.
    const MARGIN: usize = 70;

    fn bytes(length: usize, seed: usize) -> Vec<u8> {
        (0..length).map(|place| ((place * 167 + seed * 59) >> 2) as u8).collect()
    }

    fn expected(sum: &[u8], constant: u8, symbol: &[u8]) -> Vec<u8> {
        let padded = symbol.iter().chain(std::iter::repeat(&0));
        sum.iter().zip(padded).map(|(total, byte)| total ^ field::multiply(constant, *byte)).collect()
    }

    fn check(kernel: Kernel, constant: u8, length: usize, alignment_of_sum: usize, alignment_of_symbol: usize) {
        let before = bytes(length + 2 * MARGIN, 1);
        let symbol = &bytes(length + 2 * MARGIN, 2)[alignment_of_symbol..][..length];
        let mut sums = before.clone();
        kernel.multiply_add(&mut sums[alignment_of_sum..][..length], constant, symbol);
        let (head, rest) = before.split_at(alignment_of_sum);
        let (sum, tail) = rest.split_at(length);
        let right = [head, &expected(sum, constant, symbol), tail].concat();
        assert_eq!(
            sums, right,
            "{kernel:?}, {constant}, {length} bytes at {alignment_of_sum} and {alignment_of_symbol}"
        );
    }

    #[test]
    fn every_kernel_multiplies_by_every_constant_as_the_field_does() {
        for kernel in Kernel::all() {
            for constant in 0..=255 {
                for length in [1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1003] {
                    check(kernel, constant, length, 0, 0);
                }
            }
        }
    }

    #[test]
    fn every_kernel_takes_symbols_of_every_length() {
        for kernel in Kernel::all() {
            for length in 0..=600 {
                for constant in [0, 1, 2, 0x8e, 255] {
                    check(kernel, constant, length, 3, 1);
                }
            }
        }
    }

    #[test]
    fn every_kernel_takes_symbols_at_every_alignment() {
        for kernel in Kernel::all() {
            for alignment_of_sum in 0..=64 {
                for alignment_of_symbol in 0..=64 {
                    for length in [7, 40, 100] {
                        check(kernel, 0x53, length, alignment_of_sum, alignment_of_symbol);
                    }
                }
            }
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn neon_is_there_and_preferred() {
        assert_eq!(Kernel::fastest(), Kernel(Instructions::Neon));
    }

    #[test]
    fn a_shorter_symbol_counts_as_padded_with_zeros() {
        let mut sum = vec![1, 2];
        Kernel::fastest().multiply_add_padded(&mut sum, 1, &[4, 8, 16]);
        assert_eq!(sum, [5, 10, 16]);
        Kernel::fastest().multiply_add_padded(&mut sum, 1, &[1]);
        assert_eq!(sum, [4, 10, 16]);
    }

    /// Symbols with their constants.
    type Terms<const SUMS: usize> = Vec<([u8; SUMS], Vec<u8>)>;

    /// The length of the sums, and what is added.
    fn any_terms<const SUMS: usize>() -> impl Strategy<Value = (usize, Terms<SUMS>)> {
        (0..700usize).prop_flat_map(|length| {
            let symbol = prop_oneof![
                2 => prop::collection::vec(any::<u8>(), length),
                1 => prop::collection::vec(any::<u8>(), 0..=length),
            ];
            let constants = prop_oneof![3 => any::<[u8; SUMS]>(), 1 => Just([1; SUMS])];
            (Just(length), prop::collection::vec((constants, symbol), 0..50))
        })
    }

    fn check_terms<const SUMS: usize>(length: usize, terms: &[([u8; SUMS], Vec<u8>)]) {
        let before: [Vec<u8>; SUMS] = std::array::from_fn(|sum| bytes(length, sum));
        let mut right = before.clone();
        for (constants, symbol) in terms {
            for (sum, constant) in right.iter_mut().zip(constants) {
                *sum = expected(sum, *constant, symbol);
            }
        }
        let terms: Vec<_> = terms.iter().map(|(constants, symbol)| Term { constants: *constants, symbol }).collect();
        for kernel in Kernel::all() {
            let mut sums = before.clone();
            kernel.add_products(sums.each_mut().map(Vec::as_mut_slice), &terms);
            assert_eq!(sums, right, "{kernel:?}");
        }
    }

    proptest! {
        #[test]
        fn one_sum_of_many_products_is_that_of_the_field((length, terms) in any_terms::<1>()) {
            check_terms(length, &terms);
        }

        #[test]
        fn two_sums_of_many_products_are_those_of_the_field((length, terms) in any_terms::<2>()) {
            check_terms(length, &terms);
        }

        #[test]
        fn three_sums_of_many_products_are_those_of_the_field((length, terms) in any_terms::<3>()) {
            check_terms(length, &terms);
        }

        #[test]
        fn four_sums_of_many_products_are_those_of_the_field((length, terms) in any_terms::<4>()) {
            check_terms(length, &terms);
        }
    }
}
