//! The policies of a sliding window: how many repair symbols it gets, and when.

mod aim;
mod deadline;
mod flec;
mod quirl;
mod safe;

use std::fmt;
use std::time::Duration;

pub use deadline::Deadline;
pub use flec::{Flec, FlecLimited};
pub use quirl::{Quirl, QuirlBursts};
pub use safe::Safe;

use crate::context::{Context, Losses, Slot};
use crate::controller::{Rate, Refused};
use crate::repair::Sid;
use crate::window::Flight;

/// Makes a policy.
pub type MakePolicy = fn() -> Box<dyn Policy>;

/// The policies without parameters, by the names that options have for them. [`Deadline`] has one, and [`Share`] is what
/// [`SlidingWindow::constant`](crate::SlidingWindow::constant) makes.
pub const POLICIES: [(&str, MakePolicy); 8] = [
    ("safe", || Box::new(Safe)),
    ("probe", || Box::new(Probe)),
    ("quirl", || Box::<Quirl>::default()),
    ("quirl-bursts", || Box::<QuirlBursts>::default()),
    ("flec", || Box::new(Flec)),
    ("flec-limited", || Box::<FlecLimited>::default()),
    ("null", || Box::new(Null)),
    ("protect-only", || Box::new(ProtectOnly)),
];

/// Decides on the repair symbols of a [`SlidingWindow`](crate::SlidingWindow). The window decides what they protect.
pub trait Policy: fmt::Debug + Send + Sync {
    /// Whether what is sent next may need repair: only then is it a source symbol.
    fn protects(&self, _context: &Context) -> bool {
        true
    }
    /// Whether repair symbols wait until nothing else does, and grow no congestion window; symbols that are lost then leave
    /// the window, since their data is sent again.
    fn yields(&self) -> bool {
        true
    }
    /// Whether repair symbols that wait fill the congestion window, so that it grows as it does where data waits.
    fn fills_window(&self) -> bool {
        false
    }
    /// Whether repair symbols leave only when there is no data to send.
    fn waits_for_idleness(&self) -> bool {
        true
    }
    /// Whether nothing is protected or repaired until a packet is lost, however many arrive.
    fn is_silent(&self, _losses: &Losses) -> bool {
        false
    }
    /// Whether [`Policy::protects`] may be true while so much data waits. Where it is false, nobody has to find out the context.
    fn may_protect(&self, _unsent: u64) -> bool {
        true
    }
    /// Whether [`Policy::due`] may be more than 0, likewise.
    fn may_repair(&self, _slot: Slot) -> bool {
        true
    }
    /// Whether [`Policy::on_feedback`] and [`Policy::on_pause`] do anything.
    fn listens(&self) -> bool {
        false
    }
    /// Returns how many repair symbols are due now.
    fn due(&self, context: &Context, flight: &Flight) -> usize;
    /// A source symbol was sent.
    fn on_sent(&mut self, _sid: Sid) {}
    /// A source symbol was lost, and its data is sent again.
    fn on_lost(&mut self) {}
    /// One of the due repair symbols is sent.
    fn on_repair(&mut self, _context: &Context, _flight: &Flight) {}
    /// Acknowledgements came, or packets were declared lost. Symbols and repair symbols among them have been told of.
    fn on_feedback(&mut self, _context: &Context, _flight: &Flight) {}
    /// Nothing more can be sent now. Returns after how long to ask again, if nothing happens before.
    fn on_pause(&mut self, _context: &Context, _flight: &Flight) -> Option<Duration> {
        None
    }
    /// The receiver lacks nothing.
    fn on_empty(&mut self) {}
    /// Returns how many repair symbols were due but were not requested in time.
    fn given_up(&self) -> u64 {
        0
    }
}

/// A constant share: n − k repair symbols for k source symbols. The papers' redundancy.
#[derive(Debug)]
pub struct Share {
    rate: Rate,
    /// Number of source symbols whose repair symbols are due at most.
    length: usize,
    /// Whether k symbols get their repair symbols as soon as they are sent, and not only when no data waits.
    is_steady: bool,
    /// Symbols that got none yet.
    uncounted: usize,
    due: usize,
    given_up: u64,
}

impl Share {
    pub(crate) fn new(n: usize, k: usize, length: usize, is_steady: bool) -> Result<Share, Refused> {
        Ok(Share { rate: Rate::new(n, k)?, length, is_steady, uncounted: 0, due: 0, given_up: 0 })
    }

    fn at_end(&self, flight: &Flight) -> usize {
        self.rate.repairs_for(self.uncounted.min(flight.span())).min(flight.most_repairs())
    }
}

impl Policy for Share {
    fn yields(&self) -> bool {
        false
    }

    fn due(&self, context: &Context, flight: &Flight) -> usize {
        match context.slot {
            Slot::Idle if self.due == 0 => self.at_end(flight),
            Slot::Data | Slot::Idle => self.due,
            Slot::Probe => 0,
        }
    }

    fn on_sent(&mut self, _sid: Sid) {
        self.uncounted += 1;
        if self.is_steady && self.uncounted == self.rate.k {
            let due = self.due + self.rate.n - self.rate.k;
            self.due = due.min(self.rate.repairs_for(self.length));
            self.given_up += (due - self.due) as u64;
            self.uncounted = 0;
        }
    }

    fn on_repair(&mut self, context: &Context, flight: &Flight) {
        if self.due == 0 {
            self.due = self.due(context, flight);
            self.uncounted = 0;
        }
        self.due -= 1;
    }

    fn on_empty(&mut self) {
        (self.uncounted, self.due) = (0, 0);
    }

    fn given_up(&self) -> u64 {
        self.given_up
    }
}

/// No source symbols and no repair symbols: the cost of FEC that is negotiated and not used.
#[derive(Debug, Default)]
pub struct Null;

impl Policy for Null {
    fn waits_for_idleness(&self) -> bool {
        false
    }

    fn protects(&self, _context: &Context) -> bool {
        false
    }

    fn is_silent(&self, _losses: &Losses) -> bool {
        true
    }

    fn due(&self, _context: &Context, _flight: &Flight) -> usize {
        0
    }
}

/// Source symbols and no repair symbols: the cost of protection alone.
#[derive(Debug, Default)]
pub struct ProtectOnly;

impl Policy for ProtectOnly {
    fn waits_for_idleness(&self) -> bool {
        false
    }

    fn due(&self, _context: &Context, _flight: &Flight) -> usize {
        0
    }
}

/// A repair symbol over all that is in flight as the first of two loss probes, and none otherwise.
#[derive(Debug, Default)]
pub struct Probe;

impl Policy for Probe {
    fn waits_for_idleness(&self) -> bool {
        false
    }

    fn protects(&self, context: &Context) -> bool {
        context.unsent <= safe::END_BYTES
    }

    fn due(&self, context: &Context, flight: &Flight) -> usize {
        let is_covered = flight.repairs().next_back() == Some(flight.end());
        let is_worth_it = flight.missing_from(flight.first()) > 1 && !is_covered;
        usize::from(context.slot == Slot::Probe && is_worth_it)
    }
}
