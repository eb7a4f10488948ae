//! As much repair as the losses so far call for, where it delays nothing.

use crate::context::{Context, Losses, Slot};
use crate::policy::Policy;
use crate::window::Flight;

/// Repair symbols over what is in flight when no data waits: so many that, with those on their way, all but a share
/// [`FAILURES`] of the flights can be repaired, if losses come as they came so far.
///
/// - There are none where a queue has begun to grow, or where nothing was lost for long.
/// - They take no more than half a round-trip time.
/// - Only the end of data is protected. Elsewhere a retransmission is in time, and source symbols cost some bytes.
#[derive(Debug, Default)]
pub struct Safe;

/// The share of flights that may need a retransmission.
const FAILURES: f64 = 0.02;
/// The estimate of losses begins with one lost packet in so many.
const ASSUMED: f64 = 20.0;
/// Without a loss among so many packets, nothing is protected.
const CLEAN: u64 = 100;
/// So many runs of losses tell how long they are.
const TELLING_RUNS: u64 = 3;
/// A queue has begun to grow where the smoothed round-trip time is so many times the least one.
const QUEUEING: f64 = 1.3;
/// Repair symbols take at most this share of a round-trip time.
const MOST_TIME: f64 = 0.5;
/// Only the last bytes of data are protected: so many.
pub(super) const END_BYTES: u64 = 70_000;

impl Losses {
    /// The share of packets that are lost, and how many are lost in a run, as estimated.
    fn estimated(&self) -> (f64, f64) {
        let seen = (self.arrived + self.lost) as f64;
        let share = (self.lost as f64 + 1.0) / (seen + ASSUMED);
        let length = if self.runs < TELLING_RUNS { 1.0 } else { self.lost as f64 / self.runs as f64 };
        (share, length)
    }
}

/// The least number of losses that at most a share [`FAILURES`] of flights exceed, or `most` if that is less. Runs of losses
/// begin as a Poisson process, and their lengths are geometric. The recursion is Panjer's (ASTIN Bulletin 12, 1981).
fn losses_to_expect(packets: usize, (share, length): (f64, f64), most: usize) -> usize {
    let runs = packets as f64 * share / length;
    let mut exactly = vec![(-runs).exp()];
    let mut exceeded = 1.0 - exactly[0];
    while exceeded > FAILURES && exactly.len() <= most {
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

/// How many repair symbols are needed for so many symbols whose fate is unknown; at most half as many.
fn needed(missing: usize, losses: &Losses) -> usize {
    if losses.lost == 0 && losses.arrived >= CLEAN {
        return 0;
    }
    let most = missing.div_ceil(2);
    let (share, length) = losses.estimated();
    let to_arrive = losses_to_expect(missing, (share, length), most);
    // Repair symbols are lost as well.
    ((to_arrive as f64 / (1.0 - share)).ceil() as usize).min(most)
}

/// How many packets leave in the time that repair symbols may take.
fn affordable(context: &Context) -> usize {
    let bytes = context.rate as f64 * context.smoothed_rtt.as_secs_f64() * MOST_TIME;
    (bytes / context.packet_size.max(1) as f64) as usize
}

fn is_queue_empty(context: &Context) -> bool {
    context.smoothed_rtt.as_secs_f64() <= QUEUEING * context.min_rtt.as_secs_f64()
}

impl Policy for Safe {
    fn protects(&self, context: &Context) -> bool {
        let most = (END_BYTES / context.packet_size.max(1)) as usize;
        context.unsent <= END_BYTES && is_queue_empty(context) && needed(most, &context.losses) > 0
    }

    fn due(&self, context: &Context, flight: &Flight) -> usize {
        if context.slot != Slot::Idle || context.has_acks || !is_queue_empty(context) {
            return 0;
        }
        // A repair symbol does not protect what was sent after it.
        let begins = flight.repairs().chain([flight.first()]);
        let lacking = begins.map(|begin| {
            let on_their_way = flight.repairs().filter(|next| *next > begin).count();
            needed(flight.missing_from(begin), &context.losses).saturating_sub(on_their_way)
        });
        let affordable = affordable(context).saturating_sub(flight.repairs().len());
        lacking.max().unwrap_or(0).min(affordable).min(flight.most_repairs())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Of a Poisson distribution with mean 2, 5 is the least number that is exceeded in less than 2 % of the cases (1.66 %).
    #[test]
    fn single_losses_are_poissons_and_in_runs_there_may_be_more() {
        assert_eq!(losses_to_expect(40, (0.05, 1.0), 99), 5);
        assert_eq!(losses_to_expect(40, (0.05, 1.0), 4), 4, "no more are asked for");
        assert_eq!(losses_to_expect(40, (0.0004, 1.0), 99), 0, "1.6 % of flights lose anything");
        let by_length = [1.0, 2.0, 4.0].map(|length| losses_to_expect(40, (0.05, length), 99));
        assert!(by_length.is_sorted() && by_length[0] < by_length[2], "{by_length:?}");
    }

    #[test]
    fn more_losses_longer_runs_and_longer_flights_need_more_repair() {
        let of = |arrived, lost, runs| Losses { arrived, lost, runs };
        let by_losses = [of(99, 0, 0), of(100, 0, 0), of(900, 10, 10), of(900, 100, 100), of(900, 100, 25)];
        assert!(needed(10, &by_losses[0]) > 0);
        assert_eq!(needed(10, &by_losses[1]), 0, "nothing was lost for long");
        let needed_for = |missing| by_losses.map(|losses| needed(missing, &losses));
        assert!(needed_for(20)[1..].is_sorted() && needed_for(40)[1..].is_sorted());
        assert!(needed_for(20).iter().zip(needed_for(40)).all(|(short, long)| *short <= long));
        assert_eq!((needed(0, &by_losses[4]), needed(3, &of(0, 9, 1))), (0, 2), "at most half");
    }

    #[test]
    fn repair_takes_half_a_round_trip_time() {
        let context = Context {
            rate: 100_000,
            smoothed_rtt: Duration::from_millis(100),
            packet_size: 1000,
            ..Context::END_OF_DATA
        };
        assert_eq!(affordable(&context), 5);
    }
}
