//! Blocks of source symbols, each with its repair symbols.

use std::collections::VecDeque;

use crate::code::Code;
use crate::context::{Context, Slot};
use crate::controller::{Controller, Rate, Refused};
use crate::repair::{MAX_SPAN, Protected, Sid};

/// `constant(n, k, interleave)`: blocks of k source symbols, each followed by its n − k repair symbols. `interleave`
/// blocks are filled in turn: each gets every `interleave`-th symbol.
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
    /// Number of symbols that an open block takes, and number of open blocks: k and `interleave`, as far as the window
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
        let is_due = !self.due.is_empty() || context.is_idle() && self.open_blocks().next().is_some();
        is_due && context.slot != Slot::Probe
    }

    fn next_repair(&mut self, context: &Context) -> Option<Protected> {
        if self.due.is_empty() && context.is_idle() {
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
        if context.slot == Slot::Probe {
            return None;
        }
        let open_block = || self.open_blocks().next().filter(|_| context.is_idle());
        self.due
            .front()
            .map(|(block, _)| *block)
            .or_else(|| open_block().and_then(|(lane, count)| self.block(lane, count)))
    }

    fn given_up(&self) -> u64 {
        self.given_up
    }

    fn more_over(&self, protected: &Protected, _: &Context) -> usize {
        self.due.front().filter(|(block, _)| block == protected).map_or(0, |(_, repairs)| *repairs)
    }
}
