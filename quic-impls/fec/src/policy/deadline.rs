//! Repair where a retransmission would be too late.

use std::time::Duration;

use crate::context::{Context, Slot};
use crate::policy::Policy;
use crate::policy::aim::{Aim, is_queue_short};
use crate::policy::safe::finds_no_queue;
use crate::repair::Sid;
use crate::window::Flight;

/// Repair symbols over what is in flight when no data waits: so many that all but a share [`FAILURES`] of the flights arrive
/// within a time, with the retransmissions that are in time, if losses come as they came so far.
///
/// - The more rounds of retransmissions are in time, the fewer repair symbols are sent. Data that is sent again has a
///   round less.
/// - There are none where a queue as long as the path has grown. Where data does not wait for repair, nothing but this keeps repair from
///   filling the queue: there are none where one has begun to grow. Round-trip times tell of that late, so there are none, either, where
///   what was sent keeps the slowest link busy for long.
/// - Messages take little of a link, so repair need not wait for a first loss.
#[derive(Debug)]
pub struct Deadline {
    /// Time within which data is to arrive; zero: as soon as possible.
    within: Duration,
    /// Symbols that were lost, and whose data waits to be sent again.
    waiting: usize,
    /// The last symbol with data that was sent again.
    repeated: Option<Sid>,
}

/// The share of flights that may be late.
const FAILURES: f64 = 1e-4;
/// Time from a packet to the one that repeats it, in round-trip times. RFC 9002 waits for 9/8 of one where other
/// packets follow, and longer where none does; acknowledgements are delayed, too.
const ROUND: f64 = 2.5;
/// There is no repair where the smoothed round-trip time is more than so many times the least one.
const QUEUEING: f64 = 2.0;
/// There is none where what waits for the slowest link takes longer: the next messages would wait for it, too.
const LONGEST_QUEUE: Duration = Duration::from_millis(20);
/// Data is protected only where a flight of so many packets would need repair.
const FLIGHT: usize = 20;

impl Deadline {
    /// Data is to arrive within so long; zero: as soon as possible.
    #[must_use]
    pub fn new(within: Duration) -> Deadline {
        Deadline { within, waiting: 0, repeated: None }
    }

    /// Returns how often data that is sent now can be sent again, and arrive in time.
    fn rounds(&self, context: &Context) -> i32 {
        let rtt = context.smoothed_rtt.as_secs_f64();
        let left = self.within.as_secs_f64() - rtt / 2.0;
        (left / (ROUND * rtt).max(1e-6)) as i32
    }

    /// Whether a repair symbol finds a queue that is short enough.
    fn finds_short_queue(context: &Context, flight: &Flight) -> bool {
        let is_short = match context.is_free {
            true => finds_no_queue(context, flight.has_gaps()),
            false => is_queue_short(context, QUEUEING),
        };
        is_short && context.queue <= LONGEST_QUEUE
    }

    /// Returns the goal of repair: data that is not repaired at once is late only if it is lost in each round, too.
    fn aim(context: &Context, rounds: i32) -> Aim {
        let (share, _) = context.losses.estimated();
        Aim { failures: FAILURES / share.powi(rounds.max(0)), per: 1, clean: u64::MAX }
    }
}

impl Policy for Deadline {
    /// Messages take little of the window, which would not grow for them, and shrinks for repair that is lost.
    fn fills_window(&self) -> bool {
        true
    }

    fn protects(&self, context: &Context) -> bool {
        Deadline::aim(context, self.rounds(context)).needed(FLIGHT, &context.losses) > 0
    }

    fn due(&self, context: &Context, flight: &Flight) -> usize {
        if context.slot != Slot::Idle || context.has_acks || !Deadline::finds_short_queue(context, flight) {
            return 0;
        }
        let is_repeated = self.repeated.is_some_and(|sid| sid >= flight.first());
        let rounds = self.rounds(context) - i32::from(is_repeated);
        Deadline::aim(context, rounds).lacking(context, flight)
    }

    fn listens(&self) -> bool {
        true
    }

    /// Where only the slowest link's queue keeps repair back, it is asked for again when the queue is short enough.
    fn on_pause(&mut self, context: &Context, flight: &Flight) -> Option<Duration> {
        let wait = context.queue.saturating_sub(LONGEST_QUEUE);
        let later = Context { queue: LONGEST_QUEUE, ..*context };
        (wait > Duration::ZERO && self.due(&later, flight) > 0).then_some(wait)
    }

    fn on_sent(&mut self, sid: Sid) {
        if self.waiting > 0 {
            self.waiting -= 1;
            self.repeated = Some(sid);
        }
    }

    fn on_lost(&mut self) {
        self.waiting += 1;
    }
}
