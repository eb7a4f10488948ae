//! A sliding window over the newest source symbols.

use std::collections::VecDeque;
use std::time::Duration;

use crate::code::Code;
use crate::context::{Context, Losses, Slot};
use crate::controller::{Controller, Refused};
use crate::policy::{Policy, Share};
use crate::repair::{MAX_SPAN, Protected, Sid};

/// The source symbols in a window, and the repair symbols on their way.
#[derive(Debug)]
pub struct Flight {
    code: Code,
    /// The symbol that is sent next.
    next: Sid,
    /// Whether each symbol is settled: the receiver has it, or its data is sent again.
    settled: VecDeque<bool>,
    /// Repair symbols whose fate is unknown: the number of each, and the first symbol that was sent after it.
    repairs: VecDeque<(u64, Sid)>,
}

impl Flight {
    /// Returns how many symbols the window has.
    #[must_use]
    pub fn span(&self) -> usize {
        self.settled.len()
    }

    /// Returns how many symbols from `sid` on the receiver may lack.
    #[must_use]
    pub fn missing_from(&self, sid: Sid) -> usize {
        let place = sid.saturating_sub(self.first()) as usize;
        self.settled.iter().skip(place).filter(|is_settled| !**is_settled).count()
    }

    /// Whether a symbol may be missing before one that is settled, in a window that is trimmed.
    #[must_use]
    pub fn has_gaps(&self) -> bool {
        self.missing_from(self.first()) < self.span()
    }

    /// The first symbol.
    #[must_use]
    pub fn first(&self) -> Sid {
        self.next - self.span() as Sid
    }

    /// The symbol that is sent next.
    #[must_use]
    pub fn end(&self) -> Sid {
        self.next
    }

    /// Returns for each repair symbol that is on its way the first symbol that was sent after it, the oldest first.
    pub fn repairs(&self) -> impl DoubleEndedIterator<Item = Sid> + ExactSizeIterator + '_ {
        self.repairs.iter().map(|(_, next)| *next)
    }

    /// Returns how many repair symbols the code has over them.
    #[must_use]
    pub fn most_repairs(&self) -> usize {
        self.code.repairs_over(self.span())
    }

    fn protected(&self) -> Option<Protected> {
        Protected::new(self.first(), self.span(), 1)
    }
}

/// A window over the last `length` source symbols, without those at its beginning that the receiver has, unless it is
/// [whole](SlidingWindow::whole).
#[derive(Debug)]
pub struct SlidingWindow {
    policy: Box<dyn Policy>,
    length: usize,
    /// Whether symbols that are settled leave the window's beginning.
    trims: bool,
    /// Over how many symbols the receiver takes repair symbols.
    taken: usize,
    flight: Flight,
    /// Repair symbols sent.
    repairs: u64,
}

impl SlidingWindow {
    /// `constant(n, k, length)`: after every k source symbols n − k repair symbols. [Whole](SlidingWindow::whole), it is the
    /// papers' (n, k, L). When no data waits, the symbols that got none yet get their share at once.
    ///
    /// # Errors
    /// If there is no such window, or it spans more than [`MAX_SPAN`].
    pub fn constant(code: Code, n: usize, k: usize, length: usize) -> Result<SlidingWindow, Refused> {
        let policy = Share::new(n, k, length, true)?;
        if !(k..=MAX_SPAN).contains(&length) {
            return Err(Refused(format!(
                "window = {length} with k = {k}: the window must be k or more, and at most {MAX_SPAN}"
            )));
        }
        if n - k > code.repairs_over(length) {
            let most = k + code.repairs_over(length);
            return Err(Refused(format!("n = {n} with k = {k}, window = {length}: this code has at most n = {most}")));
        }
        SlidingWindow::new(code, length, Box::new(policy))
    }

    /// `tail(n, k, length)`: repair symbols only when no data waits, in the room that the data left: n − k for each k of the
    /// last `length` source symbols that got none yet.
    ///
    /// # Errors
    /// If there is no such window, or it spans more than [`MAX_SPAN`].
    pub fn tail(code: Code, n: usize, k: usize, length: usize) -> Result<SlidingWindow, Refused> {
        SlidingWindow::new(code, length, Box::new(Share::new(n, k, length, false)?))
    }

    /// A window with another policy.
    ///
    /// # Errors
    /// If it spans nothing, or more than [`MAX_SPAN`].
    pub fn new(code: Code, length: usize, policy: Box<dyn Policy>) -> Result<SlidingWindow, Refused> {
        if !(1..=MAX_SPAN).contains(&length) {
            return Err(Refused(format!("window = {length}: the window must be 1 or more, and at most {MAX_SPAN}")));
        }
        let flight = Flight { code, next: 0, settled: VecDeque::new(), repairs: VecDeque::new() };
        Ok(SlidingWindow { policy, length, trims: true, taken: 0, flight, repairs: 0 })
    }

    /// The same window, but always over the last `length` symbols, whatever the receiver has of them: the convolutional code
    /// of Networking 2019, §II-A and Fig. 2.
    #[must_use]
    pub fn whole(mut self) -> SlidingWindow {
        self.trims = false;
        self
    }

    fn shorten(&mut self) {
        let settled = &mut self.flight.settled;
        while settled.len() > self.length.min(self.taken) || self.trims && settled.front() == Some(&true) {
            settled.pop_front();
        }
        if settled.is_empty() {
            self.policy.on_empty();
        }
    }

    fn settle(&mut self, sid: Sid) {
        let place = sid.checked_sub(self.flight.first());
        if let Some(is_settled) = place.and_then(|place| self.flight.settled.get_mut(place as usize)) {
            *is_settled = true;
            self.shorten();
        }
    }
}

impl Controller for SlidingWindow {
    fn protects(&self, context: &Context) -> bool {
        self.policy.protects(context)
    }

    fn is_silent(&self, losses: &Losses) -> bool {
        self.policy.is_silent(losses)
    }

    fn may_protect(&self, unsent: u64) -> bool {
        self.policy.may_protect(unsent)
    }

    fn may_repair(&self, slot: Slot) -> bool {
        self.flight.span() > 0 && self.policy.may_repair(slot)
    }

    fn listens(&self) -> bool {
        self.policy.listens()
    }

    fn yields(&self) -> bool {
        self.policy.yields()
    }

    fn fills_window(&self) -> bool {
        self.policy.fills_window()
    }

    fn on_sent(&mut self, sid: Sid) {
        debug_assert_eq!(sid, self.flight.next);
        self.flight.next += 1;
        self.flight.settled.push_back(false);
        self.policy.on_sent(sid);
        self.shorten();
    }

    fn on_acked(&mut self, sid: Sid) {
        self.settle(sid);
    }

    fn on_lost(&mut self, sid: Sid) {
        if self.policy.yields() {
            self.policy.on_lost();
            self.settle(sid);
        }
    }

    fn on_recovered(&mut self, sid: Sid) {
        self.settle(sid);
    }

    fn on_repair_settled(&mut self, number: u64) {
        self.flight.repairs.retain(|(of, _)| *of != number);
    }

    fn on_feedback(&mut self, context: &Context) {
        self.policy.on_feedback(context, &self.flight);
    }

    fn on_pause(&mut self, context: &Context) -> Option<Duration> {
        self.policy.on_pause(context, &self.flight)
    }

    fn on_window(&mut self, window: usize) {
        self.taken = window;
        self.shorten();
    }

    fn wants_repair(&self, context: &Context) -> bool {
        self.flight.span() > 0 && self.policy.due(context, &self.flight) > 0
    }

    fn next_repair(&mut self, context: &Context) -> Option<Protected> {
        let protected = self.peek_repair(context)?;
        self.policy.on_repair(context, &self.flight);
        if self.flight.repairs.len() == MAX_SPAN {
            self.flight.repairs.pop_front();
        }
        self.flight.repairs.push_back((self.repairs, self.flight.next));
        self.repairs += 1;
        Some(protected)
    }

    fn peek_repair(&self, context: &Context) -> Option<Protected> {
        self.flight.protected().filter(|_| self.wants_repair(context))
    }

    fn given_up(&self) -> u64 {
        self.policy.given_up()
    }

    fn more_over(&self, protected: &Protected, context: &Context) -> usize {
        if self.flight.protected().as_ref() == Some(protected) { self.policy.due(context, &self.flight) } else { 0 }
    }
}
