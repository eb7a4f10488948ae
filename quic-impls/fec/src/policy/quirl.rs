//! The policies of QUIRL, as its public source has them. README.md names the commit that was read.

use std::time::Duration;

use crate::context::{Context, Losses, Slot};
use crate::policy::Policy;
use crate::repair::{MAX_SPAN, Sid};
use crate::window::Flight;

/// Fewer bytes than this get the larger share.
const SHORT: u64 = 15_000;
/// Time without data before there are repair symbols.
const SILENCE: Duration = Duration::from_millis(2);
/// Largest number of repair symbols before a first loss.
const BEFORE_LOSSES: u64 = 5;

/// Three fifths: the most repair that fewer than [`SHORT`] bytes get.
fn share_of_few(bytes: u64) -> u64 {
    bytes * 3 / 5
}

/// Returns how many repair symbols make so many bytes, rounded up.
fn symbols_in(bytes: u64, context: &Context) -> usize {
    bytes.div_ceil(context.symbol_size.max(1)) as usize
}

/// The numbers of packets lost in rounds that lose some. A round begins with a loss, and ends with the first
/// acknowledgement after more than a round-trip time.
#[derive(Debug, Default)]
struct LossyRounds {
    /// Fates that were known before.
    known: Losses,
    /// The round that is going on: its start, and the number of packets lost in it.
    current: Option<(Duration, u64)>,
    /// The mean of the rounds that ended and their mean deviation from it, with weights of 1/8 and 1/4 for the last
    /// one.
    seen: Option<(f64, f64)>,
}

impl LossyRounds {
    fn on_feedback(&mut self, context: &Context) {
        let lost = context.losses.lost.saturating_sub(self.known.lost);
        let is_acked = context.losses.arrived > self.known.arrived;
        self.known = context.losses;
        if lost > 0 {
            self.current.get_or_insert((context.now, 0)).1 += lost;
        }
        if let Some((began, lost)) = self.current
            && is_acked
            && context.now.saturating_sub(began) > context.smoothed_rtt
        {
            self.seen = Some(self.with(lost as f64));
            self.current = None;
        }
    }

    /// The mean and the deviation after a round with so many losses.
    fn with(&self, lost: f64) -> (f64, f64) {
        let Some((mean, deviation)) = self.seen else { return (lost, 1.0) };
        (mean + (lost - mean) / 8.0, deviation + ((lost - mean).abs() - deviation) / 4.0)
    }

    /// Returns how many losses QUIRL is prepared for; `None` before a round with losses has ended.
    fn expected(&self) -> Option<u64> {
        self.seen.map(|(mean, deviation)| (mean + 2.0 * deviation.ceil()) as u64)
    }
}

/// QUIRL's `background`: when no data waits, and none was sent for [`SILENCE`], three fifths of the bytes in flight as repair.
/// From [`SHORT`] on it is as many symbols as it expects losses, and at most a third of the bytes in flight; before a first
/// loss it is 5 symbols, and at most a quarter. Repair symbols count among the bytes in flight.
#[derive(Debug, Default)]
pub struct Quirl {
    rounds: LossyRounds,
    /// Since when repair symbols have waited for silence.
    waiting: Option<Duration>,
}

impl Quirl {
    /// Returns how many bytes of repair symbols may be in flight.
    fn most(&self, context: &Context) -> u64 {
        let (bytes, size) = (context.in_flight, context.symbol_size);
        match self.rounds.expected() {
            _ if bytes < size => 0,
            _ if bytes < SHORT => share_of_few(bytes),
            None => (BEFORE_LOSSES * size).min(bytes / 4),
            Some(losses) => (losses * size).min(bytes / 3),
        }
    }

    /// Returns how many repair symbols the flight lacks, if no data waits.
    fn lacking(&self, context: &Context, flight: &Flight) -> usize {
        if context.slot != Slot::Idle {
            return 0;
        }
        // A flight knows of no more.
        let most = symbols_in(self.most(context), context).min(MAX_SPAN);
        most.saturating_sub(flight.repairs().len()).min(flight.most_repairs())
    }
}

impl Policy for Quirl {
    fn due(&self, context: &Context, flight: &Flight) -> usize {
        let is_silent = self.waiting.is_some_and(|since| context.now >= since + SILENCE);
        if is_silent { self.lacking(context, flight) } else { 0 }
    }

    fn on_sent(&mut self, _sid: Sid) {
        self.waiting = None;
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_feedback(&mut self, context: &Context, _flight: &Flight) {
        self.rounds.on_feedback(context);
    }

    fn on_pause(&mut self, context: &Context, flight: &Flight) -> Option<Duration> {
        let waiting = self.waiting.unwrap_or(context.now);
        self.waiting = (self.lacking(context, flight) > 0).then_some(waiting);
        let wait = (self.waiting? + SILENCE).saturating_sub(context.now);
        (wait > Duration::ZERO).then_some(wait)
    }
}

/// QUIRL's `bursts`: repair symbols after more than [`SHORT`] bytes without a pause, for what was sent since the last repair
/// symbol and is in flight. Three fifths of these bytes if they are few; else half, and at most as many symbols as it expects
/// losses. Once begun, data that comes later waits for them.
#[derive(Debug, Default)]
pub struct QuirlBursts {
    rounds: LossyRounds,
    /// Symbols sent since no data waited, and since the last repair symbol.
    burst: u64,
    unrepaired: u64,
    repairing: Option<Repairing>,
}

/// A burst that gets repair symbols.
#[derive(Clone, Copy, Debug)]
struct Repairing {
    /// Its last symbol.
    last: Sid,
    /// Bytes of repair that it gets, and number of symbols that it has got.
    most: u64,
    sent: u64,
}

impl QuirlBursts {
    /// Returns how many bytes of repair symbols the symbols without repair get.
    fn most(&self, context: &Context) -> u64 {
        let size = context.symbol_size;
        let bytes = context.in_flight.min(self.unrepaired * size);
        match self.rounds.expected() {
            _ if bytes < SHORT => share_of_few(bytes),
            None => bytes / 2,
            Some(losses) => (losses * size).min(bytes / 2),
        }
    }

    /// The burst that is repaired now, until it has got its repair, or the receiver has it.
    fn repairing(&self, context: &Context, flight: &Flight) -> Option<Repairing> {
        let size = context.symbol_size;
        let goes_on = |burst: &Repairing| burst.sent * size < burst.most && burst.last >= flight.first();
        let begins = context.slot == Slot::Idle && self.burst * size > SHORT && flight.span() > 0;
        let begun = || begins.then(|| Repairing { last: flight.end() - 1, most: 0, sent: 0 });
        let mut burst = self.repairing.filter(goes_on).or_else(begun)?;
        burst.most = burst.most.max(self.most(context));
        Some(burst)
    }

    /// Takes notice of a burst that ends: where no data waits.
    fn note(&mut self, context: &Context, flight: &Flight) {
        self.repairing = self.repairing(context, flight);
        if context.slot == Slot::Idle {
            self.burst = 0;
        }
    }
}

impl Policy for QuirlBursts {
    fn due(&self, context: &Context, flight: &Flight) -> usize {
        let Some(burst) = self.repairing(context, flight).filter(|_| context.slot != Slot::Probe) else { return 0 };
        symbols_in(burst.most, context).saturating_sub(burst.sent as usize).min(flight.most_repairs())
    }

    fn on_sent(&mut self, _sid: Sid) {
        self.burst += 1;
        self.unrepaired += 1;
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_feedback(&mut self, context: &Context, _flight: &Flight) {
        self.rounds.on_feedback(context);
    }

    fn on_pause(&mut self, context: &Context, flight: &Flight) -> Option<Duration> {
        self.note(context, flight);
        None
    }

    fn on_repair(&mut self, context: &Context, flight: &Flight) {
        self.note(context, flight);
        if let Some(burst) = &mut self.repairing {
            burst.sent += 1;
        }
        self.unrepaired = 0;
    }
}
