//! The options of erasure codes that implementations have in common, and the controllers and decoders that they make.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use fec::{Block, Code, Controller, Deadline, Decoder, Malformed, POLICIES, Policy, Recovered, SlidingWindow};

use crate::contract::{Result, Values, wrong};

/// The repair that is sent besides the source symbols.
#[derive(Debug, Clone)]
pub struct Coding {
    pub code: Code,
    /// n − k repair symbols for k source symbols.
    pub n: usize,
    pub k: usize,
    /// The length of a sliding window.
    pub window: usize,
    /// Whether symbols that the receiver has leave a sliding window's beginning.
    pub window_trim: bool,
    /// Number of blocks that are filled in turn.
    pub interleave: usize,
    pub redundancy: Redundancy,
    pub flush: Flush,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redundancy {
    Constant,
    /// Repair only when there is no data to send.
    Tail,
    /// As much repair as the losses so far require, where a retransmission would come later than this; zero: as soon as
    /// possible.
    Deadline(Duration),
    /// The policy that has this name in [`fec::POLICIES`].
    Policy(&'static str),
}

impl Redundancy {
    pub const SAFE: Self = Self::Policy("safe");

    /// Whether it is our own, which takes nothing from data where repair symbols name packets.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::SAFE | Self::Deadline(_))
    }

    /// Returns the values of the option `controller`.
    pub fn choices() -> Vec<(&'static str, Self)> {
        let mut choices =
            vec![("constant", Self::Constant), ("tail", Self::Tail), ("deadline", Self::Deadline(Duration::ZERO))];
        choices.extend(POLICIES.iter().map(|(name, _)| (*name, Self::Policy(name))));
        choices
    }

    /// Returns the policy that decides by the losses so far; None for a fixed share of what is sent.
    ///
    /// # Panics
    ///
    /// If there is no policy of this name.
    fn policy(self) -> Option<Box<dyn Policy>> {
        match self {
            Self::Constant | Self::Tail => None,
            Self::Deadline(within) => Some(Box::new(Deadline::new(within))),
            Self::Policy(name) => {
                let (_, make) = POLICIES.iter().find(|(named, _)| *named == name).expect("a policy of this name");
                Some(make())
            }
        }
    }
}

/// The time at which unprotected symbols get repair symbols, before there are enough of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// When there is no data to send.
    Idle,
    /// When a message has been sent.
    Message,
    Never,
}

/// The values of the option `flush`.
const FLUSHES: [(&str, Flush); 3] = [("idle", Flush::Idle), ("message", Flush::Message), ("never", Flush::Never)];

/// The length of an adaptive policy's window: more than the end of data has packets.
const ADAPTIVE_WINDOW: usize = 128;

/// Number of the newest recovered symbols that are remembered until they come. A symbol that was merely late then does
/// not count as lost, and its content does not come twice. QUIC itself takes no packet that is 129 packets late.
const REMEMBERED: usize = 4096;

impl Coding {
    /// Takes the options that all have out of the values: a constant redundancy, whose windows are whole.
    pub fn parse(values: &mut Values, code: Code) -> Result<Self> {
        Ok(Self {
            code,
            n: values.option("n")? as usize,
            k: values.option("k")? as usize,
            window: values.option("window")? as usize,
            window_trim: false,
            interleave: values.option("interleave")? as usize,
            redundancy: Redundancy::Constant,
            flush: values.choice("flush", &FLUSHES)?,
        })
    }

    /// Refuses parameters that make no controller.
    pub fn check(&self) -> Result<()> {
        match self.controller(self.code) {
            Ok(_) => Ok(()),
            Err(why) => wrong(format!("options: {why}")),
        }
    }

    /// Whether the losses so far decide how much is sent, and not `n`, `k` and `window`.
    fn is_adaptive(&self) -> bool {
        !matches!(self.redundancy, Redundancy::Constant | Redundancy::Tail)
    }

    fn is_block(&self, code: Code) -> bool {
        self.redundancy == Redundancy::Constant && matches!(code, Code::Xor | Code::ReedSolomon)
    }

    /// Returns the controller that decides on redundancy with a code. An error is one line.
    pub fn controller(&self, code: Code) -> std::result::Result<Box<dyn Controller>, String> {
        let refused = |refused: fec::Refused| refused.to_string();
        let policy = self.redundancy.policy();
        let waits = policy.as_ref().map_or(self.redundancy == Redundancy::Tail, |policy| policy.waits_for_idleness());
        if waits && self.flush == Flush::Never {
            return Err(
                "flush = \"never\": this controller sends repair symbols only when there is no data to send, so there \
                        would be none"
                    .into(),
            );
        }
        if self.is_block(code) {
            return Ok(Box::new(Block::new(code, self.n, self.k, self.interleave).map_err(refused)?));
        }
        if self.interleave != 1 {
            return Err(format!("interleave = {}: only blocks are interleaved, so it must be 1", self.interleave));
        }
        let window = match policy {
            Some(policy) => SlidingWindow::new(code, ADAPTIVE_WINDOW, policy),
            None if self.redundancy == Redundancy::Tail => SlidingWindow::tail(code, self.n, self.k, self.window),
            None => SlidingWindow::constant(code, self.n, self.k, self.window),
        }
        .map_err(refused)?;
        Ok(Box::new(if self.window_trim { window } else { window.whole() }))
    }

    /// Over how many source symbols a repair symbol ranges.
    pub fn span(&self) -> usize {
        match self.is_block(self.code) {
            true => self.k * self.interleave,
            false if self.is_adaptive() => ADAPTIVE_WINDOW,
            false => self.window,
        }
    }

    /// Returns the decoding of symbols of at most so many bytes.
    pub fn decoding(&self, longest_symbol: usize) -> Decoding {
        Decoding { decoder: Decoder::new(self.code, self.span(), longest_symbol), recovered: BTreeSet::new() }
    }

    /// The same, looking back over so many source symbols: twice its span or more.
    pub fn decoding_back_over(&self, look_back: usize, longest_symbol: usize) -> Decoding {
        let Decoding { decoder, recovered } = self.decoding(longest_symbol);
        Decoding { decoder: decoder.looking_back(look_back), recovered }
    }
}

/// A decoder, and what it recovered that has not come.
#[derive(Debug)]
pub struct Decoding {
    decoder: Decoder,
    recovered: BTreeSet<u64>,
}

impl Decoding {
    /// Takes a source symbol.
    pub fn source(&mut self, sid: u64, symbol: Bytes) -> std::result::Result<Vec<Recovered>, Malformed> {
        let recovered = self.decoder.source(sid, symbol);
        self.remember(recovered)
    }

    /// Takes a repair payload.
    pub fn repair(&mut self, payload: &[u8]) -> std::result::Result<Vec<Recovered>, Malformed> {
        let recovered = self.decoder.repair(payload);
        self.remember(recovered)
    }

    /// Whether this symbol, which has come now, was recovered before. It is asked once.
    pub fn take_recovered(&mut self, sid: u64) -> bool {
        self.recovered.remove(&sid)
    }

    /// Over how many source symbols a repair symbol may range.
    pub fn window(&self) -> usize {
        self.decoder.window()
    }

    /// Returns how many symbols came too late: the decoder no longer looked back at them, or at what they protect.
    pub fn outdated(&self) -> u64 {
        self.decoder.outdated()
    }

    /// Returns how many repair symbols were ignored, because using them would have cost more arithmetic than the peer
    /// has paid for.
    pub fn ignored(&self) -> u64 {
        self.decoder.ignored()
    }

    fn remember(
        &mut self,
        recovered: std::result::Result<Vec<Recovered>, Malformed>,
    ) -> std::result::Result<Vec<Recovered>, Malformed> {
        let recovered = match recovered {
            // A receiver may ignore repair symbols, and the window may have become smaller when this one was on its way.
            Err(Malformed::Window) => Vec::new(),
            recovered => recovered?,
        };
        self.recovered.extend(recovered.iter().map(|(sid, _)| *sid));
        while self.recovered.len() > REMEMBERED {
            self.recovered.pop_first();
        }
        Ok(recovered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sends_repair_when_no_data_waits_is_refused_where_that_never_counts() {
        let refused = [Redundancy::Constant, Redundancy::Tail, Redundancy::SAFE, Redundancy::Policy("protect-only")]
            .map(|redundancy| {
                let (code, flush) = (Code::RLC, Flush::Never);
                let coding =
                    Coding { code, n: 3, k: 2, window: 20, window_trim: true, interleave: 1, redundancy, flush };
                coding.controller(code).is_err()
            });
        assert_eq!(refused, [false, true, true, false]);
    }

    #[test]
    fn a_repair_symbol_ranges_over_all_interleaved_blocks_or_over_the_window() {
        let spans = [Code::Xor, Code::RLC].map(|code| {
            let (n, k, window, interleave) = (3, 2, 7, 5);
            let (redundancy, flush) = (Redundancy::Constant, Flush::Never);
            Coding { code, n, k, window, window_trim: false, interleave, redundancy, flush }.span()
        });
        assert_eq!(spans, [10, 7]);
    }
}
