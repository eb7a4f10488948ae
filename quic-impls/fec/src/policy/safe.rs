//! As much repair as the losses so far call for, where it delays nothing.

use crate::context::{Context, Losses, Slot};
use crate::policy::Policy;
use crate::policy::aim::Aim;
use crate::window::Flight;

/// Repair symbols over what is in flight when no data waits: so many that, with those on their way, all but 2 % of the
/// flights can be repaired, if losses come as they came so far.
///
/// - There are none where a queue has begun to grow, behind a wide first flight, where nothing was lost for long, or where a third was.
/// - There is none among the retransmissions of several packets that a queue may have dropped.
/// - There is one at most behind a first flight that may be a slow path's queue, and none while its first fates come.
/// - They take no more than half a round-trip time.
/// - Only the end of data is protected. Elsewhere a retransmission is in time.
#[derive(Debug, Default)]
pub struct Safe;

const AIM: Aim = Aim { failures: 0.02, per: 2, clean: 100 };
/// A queue has begun to grow where the last round-trip time is more than so many times the least one: with 1.3, short queues
/// overflow before.
const QUEUEING: f64 = 1.15;
/// It may be one that start-up has made, which at most doubles the round-trip time, and that is gone since, where congestion control
/// measures what the path delivers: no more is in flight than it delivers in the least round-trip time. Where 1.5 times as much is,
/// short queues overflow. Nor where packets have come that others, sent before, have not: a queue overflows, and retransmissions are to
/// find it short.
const OWN_QUEUEING: f64 = 2.0;
/// Nothing is known of a path until the fates of so many packets are.
const TELLING: u64 = 3;
/// Then repair symbols follow no more packets than this: the shortest queue of a bandwidth-delay product has room for so many.
const MOST_BLIND: u64 = 10;
/// CoDel drops from a queue that has taken so long to leave, but no packet with no more than another behind it (RFC 8289, section
/// 5.2). A second repair symbol makes one of data another one.
const LONG_QUEUE: f64 = 0.1;
/// In the least round-trip time a path has carried so many full packets, by the handshake: so fast it is at least.
const OF_HANDSHAKE: f64 = 2.0;
/// Where round trips take longer, in seconds for each packet of the congestion window, packets are paced so slowly that even a path of
/// 0.3 Mbit/s has a short queue.
const LONG_ROUND_TRIP: f64 = 0.025;
/// Whether there is a queue is known when the fates of so many packets are: those of the handshake, and more than one ACK of data.
const TELLING_OF_QUEUE: u64 = 5;
/// Repair symbols take at most this share of a round-trip time.
const MOST_TIME: f64 = 0.5;
/// Number of bytes at the end of data that are protected.
pub(super) const END_BYTES: u64 = 70_000;
/// Where so many packets were lost, a queue may have dropped them. CoDel's goes on to drop until it is empty, and where round trips are
/// long, a few packets in it are not seen in them.
const SEVERAL_LOST: u64 = 6;
/// Where more than this share of many packets were lost, something drops what exceeds a rate, without a queue that could tell of it, and
/// repair takes from the rate what data needs.
const POLICED: f64 = 1.0 / 3.0;
/// So many lost packets are many. With 20, a wide first flight into a short queue would get no repair behind its retransmissions.
const MANY_LOST: u64 = 40;

/// Whether a repair symbol finds no queue. A flight `has_gaps` where a packet is missing before one that came.
pub(super) fn finds_no_queue(context: &Context, has_gaps: bool) -> bool {
    let (recent, least) = (context.recent_rtt.as_secs_f64(), context.min_rtt.as_secs_f64());
    let with_it = context.in_flight + context.packet_size;
    let is_gone = |delivers| with_it as f64 <= delivers as f64 * least;
    recent <= QUEUEING * least || !has_gaps && recent <= OWN_QUEUEING * least && context.delivers.is_some_and(is_gone)
}

/// Whether more packets are on their way than a queue is sure to take, and nothing is known of any.
fn is_blind(context: &Context) -> bool {
    let told = context.losses.arrived + context.losses.lost;
    told < TELLING && context.in_flight > MOST_BLIND * context.packet_size
}

/// Whether so many packets were lost that repair is likely to be dropped in the place of data.
fn is_policed(losses: &Losses) -> bool {
    losses.lost >= MANY_LOST && losses.lost as f64 > POLICED * (losses.arrived + losses.lost) as f64
}

/// Whether retransmissions are likely to leave soon of what a queue has dropped: a packet is missing before one that came.
fn awaits_retransmissions(context: &Context, flight: &Flight) -> bool {
    context.losses.lost >= SEVERAL_LOST && flight.has_gaps()
}

/// Whether what is in flight may be a long queue, for all that is known.
fn may_be_long_queue(context: &Context) -> bool {
    let least = context.min_rtt.as_secs_f64();
    let [packets, window] =
        [context.in_flight, context.window].map(|bytes| bytes as f64 / context.packet_size.max(1) as f64);
    let told = context.losses.arrived + context.losses.lost;
    told < TELLING_OF_QUEUE && least < LONG_ROUND_TRIP * window && packets * least >= LONG_QUEUE * OF_HANDSHAKE
}

/// Returns how many repair symbols a queue takes behind data.
fn taken_by_queue(context: &Context, flight: &Flight) -> usize {
    let is_first = flight.first() == 0 && flight.missing_from(0) == flight.span();
    match (may_be_long_queue(context), is_first) {
        (false, _) => usize::MAX,
        (true, true) => 1_usize.saturating_sub(flight.repairs().len()),
        (true, false) => 0,
    }
}

/// Returns how many packets leave in the time that repair symbols may take.
fn affordable(context: &Context) -> usize {
    let bytes = context.rate as f64 * context.smoothed_rtt.as_secs_f64() * MOST_TIME;
    (bytes / context.packet_size.max(1) as f64) as usize
}

impl Policy for Safe {
    fn protects(&self, context: &Context) -> bool {
        let most = (END_BYTES / context.packet_size.max(1)) as usize;
        context.unsent <= END_BYTES
            && (context.is_free || finds_no_queue(context, false))
            && AIM.needed(most, &context.losses) > 0
    }

    fn is_silent(&self, losses: &Losses) -> bool {
        AIM.is_clean(losses)
    }

    fn may_protect(&self, unsent: u64) -> bool {
        unsent <= END_BYTES
    }

    fn may_repair(&self, slot: Slot) -> bool {
        slot == Slot::Idle
    }

    fn due(&self, context: &Context, flight: &Flight) -> usize {
        if context.slot != Slot::Idle
            || context.has_acks
            || !finds_no_queue(context, flight.has_gaps())
            || awaits_retransmissions(context, flight)
            || is_blind(context)
            || is_policed(&context.losses)
        {
            return 0;
        }
        let affordable = affordable(context).saturating_sub(flight.repairs().len());
        AIM.lacking(context, flight).min(affordable).min(taken_by_queue(context, flight))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::code::Code;
    use crate::controller::Controller;
    use crate::window::SlidingWindow;

    /// Whether a window of ten symbols gets a repair symbol, after so many fates.
    fn repairs_after(arrived: u64, lost: u64) -> bool {
        let mut window = SlidingWindow::new(Code::RLC, 128, Box::new(Safe)).unwrap();
        window.on_window(128);
        (0..10).for_each(|sid| window.on_sent(sid));
        let [recent_rtt, min_rtt, smoothed_rtt] = [Duration::from_millis(100); 3];
        window.wants_repair(&Context {
            rate: 1_000_000,
            packet_size: 1000,
            recent_rtt,
            min_rtt,
            smoothed_rtt,
            losses: Losses { arrived, lost, runs: lost.min(1) },
            ..Context::END_OF_DATA
        })
    }

    #[test]
    fn there_is_no_repair_where_more_than_a_third_of_many_packets_was_lost() {
        assert_eq!([(79, 40), (5, 40), (199, 100)].map(|(arrived, lost)| repairs_after(arrived, lost)), [false; 3]);
        assert_eq!([(80, 40), (5, 39), (200, 100)].map(|(arrived, lost)| repairs_after(arrived, lost)), [true; 3]);
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
