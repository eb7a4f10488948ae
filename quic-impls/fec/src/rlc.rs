//! Random linear coefficients by RFC 8681 §3.6, over GF(2⁸).

use std::iter::repeat_with;

use crate::tinymt::TinyMt32;

/// The density threshold with which no coefficient is 0.
pub(crate) const MAX_DENSITY: u8 = 15;

/// Number of repair keys.
pub(crate) const KEYS: usize = 1 << 16;

/// Coefficients without end. A coefficient is drawn until it is not 0; with a density threshold below 15 it is 0 from the
/// start unless a draw of 4 bits is at most the threshold.
pub(crate) fn coefficients(key: u16, density: u8) -> impl Iterator<Item = u8> {
    let mut generator = TinyMt32::new(u32::from(key));
    let coefficient = move || {
        if density < MAX_DENSITY && generator.next_below_16() > density {
            return 0;
        }
        loop {
            let drawn = generator.next_below_256();
            if drawn != 0 {
                return drawn;
            }
        }
    };
    repeat_with(coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Output of irtf-nwcrg/swif-codec's generator for key 1.
    #[test]
    fn coefficients_are_those_of_the_research_groups_codec() {
        let first = |density, count| coefficients(1, density).take(count).collect::<Vec<_>>();
        assert_eq!(first(15, 8), [37, 225, 177, 176, 21, 246, 54, 139]);
        assert_eq!(first(7, 16), [225, 176, 246, 139, 0, 0, 187, 0, 0, 0, 210, 176, 0, 0, 40, 179]);
    }

    #[test]
    fn the_share_of_coefficients_that_are_not_0_is_the_threshold_plus_1_in_16() {
        for density in 0..=MAX_DENSITY {
            let draws = 64 * 255;
            let drawn = (0..64).flat_map(|key| coefficients(key, density).take(255)).filter(|each| *each != 0).count();
            let probability = (f64::from(density) + 1.0) / 16.0;
            let deviation = (probability * (1.0 - probability) / f64::from(draws)).sqrt();
            let share = drawn as f64 / f64::from(draws);
            assert!((share - probability).abs() <= 4.0 * deviation, "{share} at threshold {density}");
        }
    }
}
