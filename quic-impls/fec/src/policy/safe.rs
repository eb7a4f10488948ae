//! As much repair as the losses so far call for, where it delays nothing.

use crate::context::{Context, Slot};
use crate::policy::Policy;
use crate::policy::aim::{Aim, is_queue_short};
use crate::window::Flight;

/// Repair symbols over what is in flight when no data waits: so many that, with those on their way, all but 2 % of the
/// flights can be repaired, if losses come as they came so far.
///
/// - There are none where a queue has begun to grow, or where nothing was lost for long.
/// - They take no more than half a round-trip time.
/// - Only the end of data is protected. Elsewhere a retransmission is in time, and source symbols cost some bytes.
#[derive(Debug, Default)]
pub struct Safe;

const AIM: Aim = Aim { failures: 0.02, per: 2, clean: 100 };
/// A queue has begun to grow where the smoothed round-trip time is more than so many times the least one.
const QUEUEING: f64 = 1.3;
/// Repair symbols take at most this share of a round-trip time.
const MOST_TIME: f64 = 0.5;
/// Only the last bytes of data are protected: so many.
pub(super) const END_BYTES: u64 = 70_000;

/// How many packets leave in the time that repair symbols may take.
fn affordable(context: &Context) -> usize {
    let bytes = context.rate as f64 * context.smoothed_rtt.as_secs_f64() * MOST_TIME;
    (bytes / context.packet_size.max(1) as f64) as usize
}

impl Policy for Safe {
    fn protects(&self, context: &Context) -> bool {
        let most = (END_BYTES / context.packet_size.max(1)) as usize;
        context.unsent <= END_BYTES && is_queue_short(context, QUEUEING) && AIM.needed(most, &context.losses) > 0
    }

    fn due(&self, context: &Context, flight: &Flight) -> usize {
        if context.slot != Slot::Idle || context.has_acks || !is_queue_short(context, QUEUEING) {
            return 0;
        }
        AIM.lacking(context, flight).min(affordable(context).saturating_sub(flight.repairs().len()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
