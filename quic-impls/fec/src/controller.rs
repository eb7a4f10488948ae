//! Over which source symbols repair symbols range, and when there are some: [`Block`](crate::Block) by its blocks,
//! [`SlidingWindow`](crate::SlidingWindow) as its [`Policy`](crate::Policy) decides.

use std::fmt;
use std::time::Duration;

use crate::context::{Context, Losses, Slot};
use crate::repair::{Protected, Sid};

/// Decides on redundancy. The SIDs that it is told of are of symbols that were sent.
pub trait Controller: fmt::Debug + Send + Sync {
    /// Whether what is sent next may need repair: only then is it a source symbol.
    fn protects(&self, _context: &Context) -> bool {
        true
    }
    /// Whether nothing is protected or repaired until a packet is lost, however many arrive.
    fn is_silent(&self, _losses: &Losses) -> bool {
        false
    }
    /// Whether [`Controller::protects`] may be true while so much data waits. Where it is false, nobody has to find out the context.
    fn may_protect(&self, _unsent: u64) -> bool {
        true
    }
    /// Whether [`Controller::wants_repair`] may be true, likewise.
    fn may_repair(&self, _slot: Slot) -> bool {
        true
    }
    /// Whether [`Controller::on_feedback`] and [`Controller::on_pause`] do anything.
    fn listens(&self) -> bool {
        false
    }
    /// Whether repair symbols wait until nothing else does, and grow no congestion window. The papers' do not.
    fn yields(&self) -> bool {
        false
    }
    /// Whether repair symbols that wait fill the congestion window, so that it grows as it does where data waits.
    fn fills_window(&self) -> bool {
        false
    }
    /// A source symbol was sent. SIDs come in order, without a gap.
    fn on_sent(&mut self, sid: Sid);
    /// The receiver has the symbol, from its own packet.
    fn on_acked(&mut self, _sid: Sid) {}
    /// The symbol's packet was declared lost.
    fn on_lost(&mut self, _sid: Sid) {}
    /// The receiver has recovered the symbol.
    fn on_recovered(&mut self, _sid: Sid) {}
    /// Acknowledgements came, or packets were declared lost, and this is known now. It is told after the news of each symbol.
    fn on_feedback(&mut self, _context: &Context) {}
    /// Handles a pause, in which nothing more can be sent. Returns after how long to ask again for repair symbols, if
    /// nothing happens before.
    fn on_pause(&mut self, _context: &Context) -> Option<Duration> {
        None
    }
    /// The receiver now takes repair symbols that span at most `window` source symbols; 0 at first, when it takes none.
    fn on_window(&mut self, window: usize);
    /// Whether a repair symbol is to be sent now: whether [`Controller::next_repair`] would yield one.
    fn wants_repair(&self, context: &Context) -> bool;
    /// The symbols that the next repair symbol protects, which is then counted as sent.
    fn next_repair(&mut self, context: &Context) -> Option<Protected>;
    /// The fate of a repair symbol is known, which are numbered from 0 as they are sent: it arrived, or was lost.
    fn on_repair_settled(&mut self, _number: u64) {}
    /// Returns what [`Controller::next_repair`] would yield now.
    fn peek_repair(&self, context: &Context) -> Option<Protected>;
    /// Returns how many repair symbols were due but were not requested in time.
    fn given_up(&self) -> u64 {
        0
    }
    /// Returns how many repair symbols over these source symbols come next, if nothing else happens before. They may
    /// then be made at once, which is faster than one by one; 0 is always right.
    fn more_over(&self, _protected: &Protected, _context: &Context) -> usize {
        0
    }
}

/// Parameters that make no controller, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub(crate) String);

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// n − k repair symbols for k source symbols.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Rate {
    pub(crate) fn new(n: usize, k: usize) -> Result<Rate, Refused> {
        if k == 0 || n <= k {
            return Err(Refused(format!("n = {n}, k = {k}: k must be 1 or more, and n more than k")));
        }
        Ok(Rate { n, k })
    }

    /// Returns how many repair symbols `count` source symbols get: their share, rounded up.
    pub(crate) fn repairs_for(self, count: usize) -> usize {
        (count * (self.n - self.k)).div_ceil(self.k)
    }
}
