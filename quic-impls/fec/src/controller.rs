//! When repair symbols are sent, how many, and over which source symbols.
//!
//! [`Block`] and [`SlidingWindow`] send a constant share of redundancy; each is a framework of the papers. What adapts
//! itself can be added through the same trait.

use std::collections::VecDeque;
use std::fmt;

use crate::code::Code;
use crate::repair::{MAX_SPAN, Protected, Sid};

/// What a controller is told when it is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The sender has no source symbol to send now, for want of data.
    pub app_limited: bool,
}

/// Decides on redundancy. The SIDs that it is told of are of symbols that were sent.
pub trait Controller: fmt::Debug + Send + Sync {
    /// A source symbol was sent. SIDs come in order, without a gap.
    fn on_sent(&mut self, sid: Sid);
    /// The receiver has the symbol, from its own packet.
    fn on_acked(&mut self, _sid: Sid) {}
    /// The symbol's packet was declared lost.
    fn on_lost(&mut self, _sid: Sid) {}
    /// The receiver has recovered the symbol.
    fn on_recovered(&mut self, _sid: Sid) {}
    /// The receiver now takes repair symbols that span at most `window` source symbols; 0 at first, when it takes none.
    fn on_window(&mut self, window: usize);
    /// Whether a repair symbol is to be sent now: whether [`Controller::next_repair`] would yield one.
    fn wants_repair(&self, context: &Context) -> bool;
    /// The symbols that the next repair symbol protects, which is then counted as sent.
    fn next_repair(&mut self, context: &Context) -> Option<Protected>;
    /// What [`Controller::next_repair`] would yield now.
    fn peek_repair(&self, context: &Context) -> Option<Protected>;
    /// How many repair symbols were due and were not asked for in time.
    fn given_up(&self) -> u64 {
        0
    }
    /// How many repair symbols over these source symbols come next, if nothing else happens before. They may then be made
    /// at once, which is faster than one by one; 0 is always right.
    fn more_over(&self, _protected: &Protected) -> usize {
        0
    }
}

/// Parameters that make no controller, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// n − k repair symbols for k source symbols.
#[derive(Clone, Copy, Debug)]
struct Rate {
    n: usize,
    k: usize,
}

impl Rate {
    fn new(n: usize, k: usize) -> Result<Rate, Refused> {
        if k == 0 || n <= k {
            return Err(Refused(format!("n = {n}, k = {k}: k must be 1 or more, and n more than k")));
        }
        Ok(Rate { n, k })
    }

    /// How many repair symbols `count` source symbols get: their share, rounded up.
    fn repairs_for(self, count: usize) -> usize {
        (count * (self.n - self.k)).div_ceil(self.k)
    }
}

/// `constant(n, k, interleave)`: blocks of k source symbols, each followed by its n − k repair symbols. Of `interleave`
/// blocks that are filled in turn, each gets every `interleave`-th symbol.
///
/// When the sender runs out of data, the open blocks end as they are, with their share of repair symbols, and new ones
/// begin. A receiver's window that is narrower than the blocks makes the next ones narrower.
#[derive(Debug)]
pub struct Block {
    code: Code,
    rate: Rate,
    interleave: usize,
    window: usize,
    /// The first symbol of the open blocks.
    start: Sid,
    /// How many symbols an open block takes, and how many blocks are open: k and `interleave`, as far as the window
    /// allowed when they began.
    size: usize,
    lanes: usize,
    /// The symbol that is sent next.
    next: Sid,
    /// Blocks that ended, and how many repair symbols each is still to get.
    due: VecDeque<(Protected, usize)>,
    given_up: u64,
}

impl Block {
    /// # Errors
    /// If the code has no such blocks, or they span more than [`MAX_SPAN`].
    pub fn new(code: Code, n: usize, k: usize, interleave: usize) -> Result<Block, Refused> {
        let rate = Rate::new(n, k)?;
        if interleave == 0 || k.saturating_mul(interleave) > MAX_SPAN {
            return Err(Refused(format!(
                "interleave = {interleave} with k = {k}: interleave must be 1 or more, and k times interleave at most \
                 {MAX_SPAN}"
            )));
        }
        if n - k > code.repairs_over(k) {
            let most = k + code.repairs_over(k);
            return Err(Refused(format!("n = {n} with k = {k}: this code has at most n = {most}")));
        }
        let due = VecDeque::new();
        Ok(Block { code, rate, interleave, window: 0, start: 0, size: 0, lanes: 0, next: 0, due, given_up: 0 })
    }

    /// New blocks begin with the next symbol.
    fn begin(&mut self) {
        self.start = self.next;
        self.size = self.rate.k.min(self.window);
        self.lanes = self.window.checked_div(self.size).map_or(0, |blocks| blocks.min(self.interleave));
    }

    /// An open block as it is.
    fn block(&self, lane: usize, count: usize) -> Option<Protected> {
        Protected::new(self.start + lane as Sid, count, self.lanes)
    }

    fn end(&mut self, lane: usize, count: usize) {
        let Some(block) = self.block(lane, count) else { return };
        let repairs = self.rate.repairs_for(count).min(self.code.repairs_over(count));
        self.due.push_back((block, repairs));
    }

    fn sent(&self) -> usize {
        (self.next - self.start) as usize
    }

    /// The place of each block that has begun and not ended among those filled in turn, and how many symbols it has.
    fn open_blocks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (sent, lanes, size) = (self.sent(), self.lanes, self.size);
        (0..lanes.min(sent)).map(move |lane| (lane, (sent - lane).div_ceil(lanes))).filter(move |block| block.1 < size)
    }

    fn end_open_blocks(&mut self) {
        for (lane, count) in self.open_blocks() {
            self.end(lane, count);
        }
        self.begin();
    }
}

impl Controller for Block {
    fn on_sent(&mut self, sid: Sid) {
        debug_assert_eq!(sid, self.next);
        let place = self.sent();
        self.next += 1;
        if self.lanes > 0 && place / self.lanes + 1 == self.size {
            self.end(place % self.lanes, self.size);
        }
        if self.sent() >= self.size * self.lanes {
            self.begin();
        }
        // The encoder has forgotten what is this old.
        while self.due.front().is_some_and(|(block, _)| block.first() + (MAX_SPAN as Sid) < self.next) {
            self.given_up += self.due.pop_front().map_or(0, |(_, repairs)| repairs as u64);
        }
    }

    fn on_window(&mut self, window: usize) {
        self.window = window;
        self.due.retain(|(block, repairs)| {
            let is_taken = block.span() <= window;
            self.given_up += if is_taken { 0 } else { *repairs as u64 };
            is_taken
        });
        if self.size * self.lanes > window || self.lanes == 0 {
            self.begin();
        }
    }

    fn wants_repair(&self, context: &Context) -> bool {
        !self.due.is_empty() || context.app_limited && self.open_blocks().next().is_some()
    }

    fn next_repair(&mut self, context: &Context) -> Option<Protected> {
        if self.due.is_empty() && context.app_limited {
            self.end_open_blocks();
        }
        let (block, repairs) = self.due.front_mut()?;
        let block = *block;
        *repairs -= 1;
        if *repairs == 0 {
            self.due.pop_front();
        }
        Some(block)
    }

    fn peek_repair(&self, context: &Context) -> Option<Protected> {
        let open_block = || self.open_blocks().next().filter(|_| context.app_limited);
        self.due
            .front()
            .map(|(block, _)| *block)
            .or_else(|| open_block().and_then(|(lane, count)| self.block(lane, count)))
    }

    fn given_up(&self) -> u64 {
        self.given_up
    }

    fn more_over(&self, protected: &Protected) -> usize {
        self.due.front().filter(|(block, _)| block == protected).map_or(0, |(_, repairs)| *repairs)
    }
}

/// A window over the last `length` source symbols, without those at its beginning that the receiver has, unless it is
/// [whole](SlidingWindow::whole).
///
/// When the sender runs out of data, the symbols that were not counted yet get their share of repair symbols at once.
#[derive(Debug)]
pub struct SlidingWindow {
    code: Code,
    rate: Rate,
    length: usize,
    /// Whether k symbols get their repair symbols as soon as they are sent, and not only at the end of data.
    steady: bool,
    /// Whether symbols that the receiver has leave the window's beginning.
    trims: bool,
    window: usize,
    /// The symbol that is sent next.
    next: Sid,
    /// For each symbol in the window, whether the receiver has it. The first one is missing if `trims`.
    landed: VecDeque<bool>,
    /// Symbols sent that have not been counted for repair symbols yet.
    uncounted: usize,
    /// Repair symbols to send: no more than a whole window gets.
    due: usize,
    given_up: u64,
}

impl SlidingWindow {
    /// `constant(n, k, length)`: after every k source symbols n − k repair symbols. [Whole](SlidingWindow::whole), it is the
    /// papers' (n, k, L).
    ///
    /// # Errors
    /// If there is no such window, or it spans more than [`MAX_SPAN`].
    pub fn constant(code: Code, n: usize, k: usize, length: usize) -> Result<SlidingWindow, Refused> {
        SlidingWindow::new(code, n, k, length, true)
    }

    /// `tail(n, k, length)`: repair symbols only when the sender has no more data, in the room that the data left: n − k
    /// for each k of the last `length` source symbols that got none yet.
    ///
    /// # Errors
    /// If there is no such window, or it spans more than [`MAX_SPAN`].
    pub fn tail(code: Code, n: usize, k: usize, length: usize) -> Result<SlidingWindow, Refused> {
        SlidingWindow::new(code, n, k, length, false)
    }

    fn new(code: Code, n: usize, k: usize, length: usize, steady: bool) -> Result<SlidingWindow, Refused> {
        let rate = Rate::new(n, k)?;
        if !(1..=MAX_SPAN).contains(&length) || steady && length < k {
            return Err(Refused(format!(
                "window = {length} with k = {k}: the window must be k or more, and at most {MAX_SPAN}"
            )));
        }
        if steady && n - k > code.repairs_over(length) {
            let most = k + code.repairs_over(length);
            return Err(Refused(format!("n = {n} with k = {k}, window = {length}: this code has at most n = {most}")));
        }
        let landed = VecDeque::new();
        Ok(SlidingWindow {
            code,
            rate,
            length,
            steady,
            trims: true,
            window: 0,
            next: 0,
            landed,
            uncounted: 0,
            due: 0,
            given_up: 0,
        })
    }

    /// The same window, but always over the last `length` symbols, whatever the receiver has of them: the convolutional code
    /// of Networking 2019, §II-A and Fig. 2.
    #[must_use]
    pub fn whole(mut self) -> SlidingWindow {
        self.trims = false;
        self
    }

    fn shorten(&mut self) {
        while self.landed.len() > self.length.min(self.window) || self.trims && self.landed.front() == Some(&true) {
            self.landed.pop_front();
        }
        if self.landed.is_empty() {
            (self.uncounted, self.due) = (0, 0);
        }
    }

    fn land(&mut self, sid: Sid) {
        let first = self.next - self.landed.len() as Sid;
        if let Some(landed) = sid.checked_sub(first).and_then(|place| self.landed.get_mut(place as usize)) {
            *landed = true;
            self.shorten();
        }
    }

    /// What a repair symbol protects now.
    fn protected(&self) -> Option<Protected> {
        let count = self.landed.len();
        Protected::new(self.next - count as Sid, count, 1)
    }

    fn repairs_at_end(&self) -> usize {
        let count = self.landed.len();
        self.rate.repairs_for(self.uncounted.min(count)).min(self.code.repairs_over(count))
    }
}

impl Controller for SlidingWindow {
    fn on_sent(&mut self, sid: Sid) {
        debug_assert_eq!(sid, self.next);
        self.next += 1;
        self.landed.push_back(false);
        self.uncounted += 1;
        if self.steady && self.uncounted == self.rate.k {
            let most = self.rate.repairs_for(self.length);
            let due = self.due + self.rate.n - self.rate.k;
            self.due = due.min(most);
            self.given_up += (due - self.due) as u64;
            self.uncounted = 0;
        }
        self.shorten();
    }

    fn on_acked(&mut self, sid: Sid) {
        self.land(sid);
    }

    fn on_recovered(&mut self, sid: Sid) {
        self.land(sid);
    }

    fn on_window(&mut self, window: usize) {
        self.window = window;
        self.shorten();
    }

    fn wants_repair(&self, context: &Context) -> bool {
        self.due > 0 || context.app_limited && self.repairs_at_end() > 0
    }

    fn next_repair(&mut self, context: &Context) -> Option<Protected> {
        if self.due == 0 && context.app_limited {
            self.due = self.repairs_at_end();
            self.uncounted = 0;
        }
        self.due = self.due.checked_sub(1)?;
        self.protected()
    }

    fn peek_repair(&self, context: &Context) -> Option<Protected> {
        self.protected().filter(|_| self.wants_repair(context))
    }

    fn given_up(&self) -> u64 {
        self.given_up
    }

    fn more_over(&self, protected: &Protected) -> usize {
        if self.protected().as_ref() == Some(protected) { self.due } else { 0 }
    }
}
