//! The sender's side.

use crate::code::Code;
use crate::controller::{Context, Controller};
use crate::kernel::Kernel;
use crate::repair::{MAX_SPAN, Protected, Sid};

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
    /// What the last repair symbol protects, and how many there are before it, each with a symbol in common with the next.
    last: Option<(Protected, usize)>,
}

impl Encoder {
    /// An encoder for a receiver that takes no repair symbols until [`Encoder::set_window`].
    #[must_use]
    pub fn new(code: Code, controller: Box<dyn Controller>) -> Encoder {
        let kernel = Kernel::fastest();
        Encoder { code, controller, kernel, symbols: Vec::new(), next: 0, repairs: 0, last: None }
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

    /// Whether a repair symbol is to be sent now: whether [`Encoder::repair`] would make one.
    #[must_use]
    pub fn wants_repair(&self, context: &Context) -> bool {
        self.controller.wants_repair(context)
    }

    /// Appends the repair payload that is to be sent now; false if there is none. Its length is at most
    /// [`MAX_HEADER`](crate::MAX_HEADER) more than that of the longest symbol.
    pub fn repair(&mut self, context: &Context, payload: &mut Vec<u8>) -> bool {
        let Some(protected) = self.controller.next_repair(context) else { return false };
        let index = match self.last {
            Some((last, index)) if last.meets(&protected) => index + 1,
            _ => 0,
        };
        let header = self.code.header(protected, index, self.repairs);
        header.write(payload);
        let coefficients = self.code.coefficients(&header).expect("an encoder's headers are its code's");
        let begin = payload.len();
        payload.resize(begin + protected.sids().map(|sid| self.symbol(sid).len()).max().unwrap_or(0), 0);
        for (sid, coefficient) in protected.sids().zip(coefficients) {
            let symbol = self.symbol(sid);
            self.kernel.multiply_add(&mut payload[begin..begin + symbol.len()], coefficient, symbol);
        }
        self.last = Some((protected, index));
        self.repairs += 1;
        true
    }

    fn symbol(&self, sid: Sid) -> &[u8] {
        assert!(sid < self.next && self.next - sid <= MAX_SPAN as Sid, "symbol {sid} is not kept");
        &self.symbols[(sid % MAX_SPAN as Sid) as usize]
    }
}
