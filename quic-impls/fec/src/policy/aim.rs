//! The number of repair symbols that the losses so far call for.

use crate::context::{Context, Losses};
use crate::window::Flight;

/// The estimate of losses begins with one lost packet in so many.
const ASSUMED: f64 = 20.0;
/// Number of runs of losses that tell their length.
const TELLING_RUNS: u64 = 3;

impl Losses {
    /// The share of packets that are lost, and the number that are lost in a run, as estimated.
    pub(super) fn estimated(&self) -> (f64, f64) {
        let seen = (self.arrived + self.lost) as f64;
        let share = (self.lost as f64 + 1.0) / (seen + ASSUMED);
        let length = if self.runs < TELLING_RUNS { 1.0 } else { self.lost as f64 / self.runs as f64 };
        (share, length)
    }
}

/// Whether the smoothed round-trip time is at most so many times the least one.
pub(super) fn is_queue_short(context: &Context, times: f64) -> bool {
    context.smoothed_rtt.as_secs_f64() <= times * context.min_rtt.as_secs_f64()
}

/// The goal of repair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    /// Share of flights that may lack something.
    pub(super) failures: f64,
    /// There is one repair symbol at most for so many symbols.
    pub(super) per: usize,
    /// There is none if no packet was lost of so many.
    pub(super) clean: u64,
}

impl Aim {
    /// Whether so many packets arrived without a loss that there is no repair.
    pub(super) fn is_clean(&self, losses: &Losses) -> bool {
        losses.lost == 0 && losses.arrived >= self.clean
    }

    /// Returns how many repair symbols are needed for so many symbols whose fate is unknown.
    pub(super) fn needed(&self, missing: usize, losses: &Losses) -> usize {
        if self.is_clean(losses) {
            return 0;
        }
        let most = missing.div_ceil(self.per);
        let (share, length) = losses.estimated();
        let to_arrive = self.losses_to_expect(missing, (share, length), most);
        // Repair symbols are lost as well.
        ((to_arrive as f64 / (1.0 - share)).ceil() as usize).min(most)
    }

    /// Returns how many repair symbols a flight lacks besides those on their way.
    pub(super) fn lacking(&self, context: &Context, flight: &Flight) -> usize {
        // A repair symbol does not protect what was sent after it.
        let begins = flight.repairs().chain([flight.first()]);
        let lacking = begins.map(|begin| {
            let on_their_way = flight.repairs().filter(|next| *next > begin).count();
            self.needed(flight.missing_from(begin), &context.losses).saturating_sub(on_their_way)
        });
        lacking.max().unwrap_or(0).min(flight.most_repairs())
    }

    /// The least number of losses that at most the share `failures` of flights exceed, or `most` if that is less. Runs of
    /// losses begin as a Poisson process, and their lengths are geometric. The recursion is Panjer's (ASTIN Bulletin 12, 1981).
    fn losses_to_expect(&self, packets: usize, (share, length): (f64, f64), most: usize) -> usize {
        let runs = packets as f64 * share / length;
        let mut exactly = vec![(-runs).exp()];
        let mut exceeded = 1.0 - exactly[0];
        while exceeded > self.failures && exactly.len() <= most {
            let lost = exactly.len();
            let mut sum = 0.0;
            let mut of_length = 1.0 / length;
            for run in 1..=lost {
                sum += run as f64 * of_length * exactly[lost - run];
                of_length *= 1.0 - 1.0 / length;
            }
            exactly.push(runs / lost as f64 * sum);
            exceeded -= exactly[lost];
        }
        exactly.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AIM: Aim = Aim { failures: 0.02, per: 2, clean: 100 };

    /// A Poisson variable with mean 2 exceeds 5 in 1.66 % of the cases, and 4 in more than 2 %.
    #[test]
    fn single_losses_are_poissons_and_in_runs_there_may_be_more() {
        assert_eq!(AIM.losses_to_expect(40, (0.05, 1.0), 99), 5);
        assert_eq!(AIM.losses_to_expect(40, (0.05, 1.0), 4), 4, "no more are asked for");
        assert_eq!(AIM.losses_to_expect(40, (0.0004, 1.0), 99), 0, "1.6 % of flights lose anything");
        let by_length = [1.0, 2.0, 4.0].map(|length| AIM.losses_to_expect(40, (0.05, length), 99));
        assert!(by_length.is_sorted() && by_length[0] < by_length[2], "{by_length:?}");
    }

    #[test]
    fn more_losses_longer_runs_and_longer_flights_need_more_repair() {
        let of = |arrived, lost, runs| Losses { arrived, lost, runs };
        let by_losses = [of(99, 0, 0), of(100, 0, 0), of(900, 10, 10), of(900, 100, 100), of(900, 100, 25)];
        assert!(AIM.needed(10, &by_losses[0]) > 0);
        assert_eq!(AIM.needed(10, &by_losses[1]), 0, "nothing was lost for long");
        let needed_for = |missing| by_losses.map(|losses| AIM.needed(missing, &losses));
        assert!(needed_for(20)[1..].is_sorted() && needed_for(40)[1..].is_sorted());
        assert!(needed_for(20).iter().zip(needed_for(40)).all(|(short, long)| *short <= long));
        assert_eq!((AIM.needed(0, &by_losses[4]), AIM.needed(3, &of(0, 9, 1))), (0, 2), "at most half");
    }
}
