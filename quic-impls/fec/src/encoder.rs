//! The sender's side.

use std::time::Duration;
use std::{array, iter, mem};

use crate::code::Code;
use crate::context::{Context, Losses, Slot};
use crate::controller::Controller;
use crate::kernel::{Kernel, Term};
use crate::repair::{MAX_HEADER, MAX_SPAN, Protected, Sid};

/// Keeps the last [`MAX_SPAN`] source symbols, and makes repair symbols of them as its controller wants.
#[derive(Debug)]
pub struct Encoder {
    code: Code,
    controller: Box<dyn Controller>,
    kernel: Kernel,
    /// The symbol of each SID at SID modulo [`MAX_SPAN`].
    symbols: Vec<Vec<u8>>,
    next: Sid,
    repairs: u64,
    /// Symbols that the last repair symbol protects, and the number of repair symbols before it, each with a symbol in
    /// common with the next.
    last: Option<(Protected, usize)>,
    ahead: Ahead,
    /// The coefficients of the repair symbols that are made at once, one after the other.
    rows: Vec<u8>,
}

/// Number of repair symbols over the same source symbols that are made at once.
const AT_ONCE: usize = 4;

/// Repair symbols that were made with the last one, and are to follow it if they protect the same.
#[derive(Debug, Default)]
struct Ahead {
    /// The symbols, one after the other.
    symbols: Vec<u8>,
    /// Bytes of them that have been sent.
    sent: usize,
}

impl Ahead {
    fn next(&mut self, length: usize) -> Option<&[u8]> {
        let symbol = self.symbols.get(self.sent..self.sent + length)?;
        self.sent += length;
        Some(symbol)
    }

    /// Room for other ones, with zeros.
    fn begin(&mut self, count: usize, length: usize) {
        self.symbols.clear();
        self.symbols.resize(count * length, 0);
        self.sent = 0;
    }
}

impl Encoder {
    /// An encoder for a receiver that takes no repair symbols until [`Encoder::set_window`].
    #[must_use]
    pub fn new(code: Code, controller: Box<dyn Controller>) -> Encoder {
        Encoder {
            code,
            controller,
            kernel: Kernel::fastest(),
            symbols: Vec::new(),
            next: 0,
            repairs: 0,
            last: None,
            ahead: Ahead::default(),
            rows: Vec::new(),
        }
    }

    /// The same encoder with other instructions.
    #[must_use]
    pub fn with_kernel(mut self, kernel: Kernel) -> Encoder {
        self.kernel = kernel;
        self
    }

    /// The receiver takes repair symbols that span at most `window` source symbols.
    pub fn set_window(&mut self, window: usize) {
        self.controller.on_window(window);
    }

    /// Takes a copy of a source symbol that is being sent, and numbers it.
    pub fn protect(&mut self, symbol: &[u8]) -> Sid {
        let sid = self.next;
        let place = (sid % MAX_SPAN as Sid) as usize;
        if self.symbols.len() == place {
            self.symbols.push(Vec::with_capacity(symbol.len()));
        }
        let kept = &mut self.symbols[place];
        kept.clear();
        kept.extend_from_slice(symbol);
        self.next += 1;
        self.controller.on_sent(sid);
        sid
    }

    /// The SID that the next source symbol gets.
    #[must_use]
    pub fn next_sid(&self) -> Sid {
        self.next
    }

    /// The packet with this symbol was acknowledged.
    pub fn acked(&mut self, sid: Sid) {
        if sid < self.next {
            self.controller.on_acked(sid);
        }
    }

    /// The packet with this symbol was declared lost.
    pub fn lost(&mut self, sid: Sid) {
        if sid < self.next {
            self.controller.on_lost(sid);
        }
    }

    /// The receiver says that it recovered this symbol.
    pub fn recovered(&mut self, sid: Sid) {
        if sid < self.next {
            self.controller.on_recovered(sid);
        }
    }

    /// Whether what is sent next is to be a source symbol.
    #[must_use]
    pub fn protects(&self, context: &Context) -> bool {
        self.controller.protects(context)
    }

    /// Whether nothing is protected or repaired until a packet is lost, however many arrive.
    #[must_use]
    pub fn is_silent(&self, losses: &Losses) -> bool {
        self.controller.is_silent(losses)
    }

    /// Whether [`Encoder::protects`] may be true while so much data waits. Where it is false, nobody has to find out the context.
    #[must_use]
    pub fn may_protect(&self, unsent: u64) -> bool {
        self.controller.may_protect(unsent)
    }

    /// Whether [`Encoder::wants_repair`] may be true, likewise.
    #[must_use]
    pub fn may_repair(&self, slot: Slot) -> bool {
        self.controller.may_repair(slot)
    }

    /// Whether [`Encoder::feedback`] and [`Encoder::pause`] do anything.
    #[must_use]
    pub fn listens(&self) -> bool {
        self.controller.listens()
    }

    /// Whether repair symbols wait until nothing else does, and grow no congestion window.
    #[must_use]
    pub fn yields(&self) -> bool {
        self.controller.yields()
    }

    /// Whether repair symbols that wait fill the congestion window, so that it grows as it does where data waits.
    #[must_use]
    pub fn fills_window(&self) -> bool {
        self.controller.fills_window()
    }

    /// The fate of a repair symbol is known, which are numbered from 0 as they are sent: it arrived, or was lost.
    pub fn repair_settled(&mut self, number: u64) {
        self.controller.on_repair_settled(number);
    }

    /// Acknowledgements came, or packets were declared lost, and this is known now. It is told after the news of each symbol.
    pub fn feedback(&mut self, context: &Context) {
        self.controller.on_feedback(context);
    }

    /// Handles a pause, in which nothing more can be sent. Returns after how long to ask again for repair symbols, if
    /// nothing happens before.
    pub fn pause(&mut self, context: &Context) -> Option<Duration> {
        self.controller.on_pause(context)
    }

    /// Whether a repair symbol is to be sent now: whether [`Encoder::repair`] would make one.
    #[must_use]
    pub fn wants_repair(&self, context: &Context) -> bool {
        self.controller.wants_repair(context)
    }

    /// The source symbols that [`Encoder::repair`] would protect now.
    #[must_use]
    pub fn peek_repair(&self, context: &Context) -> Option<Protected> {
        self.controller.peek_repair(context)
    }

    /// Returns how many repair symbols were due but were not requested in time.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.controller.given_up()
    }

    /// Appends the repair payload that is to be sent now; false if there is none. Its length is at most
    /// [`MAX_HEADER`](crate::MAX_HEADER) more than that of the longest symbol.
    pub fn repair(&mut self, context: &Context, payload: &mut Vec<u8>) -> bool {
        let Some(protected) = self.controller.next_repair(context) else { return false };
        let index = match self.last {
            Some((last, index)) if last.meets(&protected) => index + 1,
            _ => 0,
        };
        // A repair symbol of nothing would be refused.
        let length = protected.sids().map(|sid| self.symbol(sid).len()).fold(1, usize::max);
        payload.reserve(MAX_HEADER + length);
        self.code.header(protected, index, self.repairs).write(payload);
        if self.last.is_none_or(|(last, _)| last != protected) {
            self.ahead.begin(0, 0);
        }
        match self.ahead.next(length) {
            Some(symbol) => payload.extend_from_slice(symbol),
            None => self.make(protected, index, length, context, payload),
        }
        self.last = Some((protected, index));
        self.repairs += 1;
        true
    }

    /// Appends a repair symbol, and makes those that are to follow it.
    fn make(&mut self, protected: Protected, index: usize, length: usize, context: &Context, payload: &mut Vec<u8>) {
        let begin = payload.len();
        payload.resize(begin + length, 0);
        let symbol = &mut payload[begin..];
        match self.controller.more_over(&protected, context).min(AT_ONCE - 1) {
            0 => self.make_at_once::<1>(protected, index, symbol),
            1 => self.make_at_once::<2>(protected, index, symbol),
            2 => self.make_at_once::<3>(protected, index, symbol),
            _ => self.make_at_once::<AT_ONCE>(protected, index, symbol),
        }
    }

    fn make_at_once<const COUNT: usize>(&mut self, protected: Protected, index: usize, first: &mut [u8]) {
        self.rows.clear();
        for ahead in 0..COUNT {
            let header = self.code.header(protected, index + ahead, self.repairs + ahead as u64);
            self.code.coefficients(&header, &mut self.rows).expect("an encoder's headers are its code's");
        }
        let mut ahead = mem::take(&mut self.ahead);
        let length = first.len();
        ahead.begin(COUNT - 1, length);
        let mut symbols = iter::once(first).chain(ahead.symbols.chunks_exact_mut(length));
        let sums = array::from_fn(|_| symbols.next().expect("there is room for each"));
        let constants = |place| array::from_fn(|row| self.rows[row * protected.count() + place]);
        let term = |(place, sid)| Term::<COUNT> { constants: constants(place), symbol: self.symbol(sid) };
        let terms: Vec<_> = protected.sids().enumerate().map(term).collect();
        self.kernel.add_products(sums, &terms);
        self.ahead = ahead;
    }

    fn symbol(&self, sid: Sid) -> &[u8] {
        assert!(sid < self.next && self.next - sid <= MAX_SPAN as Sid, "symbol {sid} is not kept");
        &self.symbols[(sid % MAX_SPAN as Sid) as usize]
    }
}
