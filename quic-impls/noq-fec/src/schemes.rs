//! The codes and controllers of the crate `fec` as FEC schemes of noq-proto.
//!
//! Each endpoint announces the one code that its options name. What it sends is coded as its peer has announced, with its own
//! options for how much.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fec::{Block, Code, Context, Controller, SlidingWindow};
use noq_proto::VarInt;
use noq_proto::fec::{Announcement, Decoder, Encoder, Factory, Malformed, Recovered};

/// What is sent, and how the news of recovered packets is taken.
#[derive(Debug, Clone)]
pub struct Schemes {
    pub code: Code,
    /// n − k repair symbols for k source symbols.
    pub n: usize,
    pub k: usize,
    /// The length of a sliding window.
    pub window: usize,
    /// Whether symbols that the receiver has leave a sliding window's beginning.
    pub window_trim: bool,
    /// How many blocks are filled in turn.
    pub interleave: usize,
    pub redundancy: Redundancy,
    pub masks_losses: bool,
    /// Whether congestion control is told of a recovered loss by the peer's news of it, and not when the loss is declared.
    pub tells_losses_at_once: bool,
    /// Why nothing could be protected for a peer.
    pub complaints: Complaints,
}

/// What is wrong, a line each. Clones have their lines in common, so that who holds one hears what noq-proto met with another.
#[derive(Debug, Clone, Default)]
pub struct Complaints(Arc<Mutex<Vec<String>>>);

impl Complaints {
    fn add(&self, line: String) {
        self.0.lock().expect("nobody panics with it").push(line);
    }

    /// Those since it was last asked.
    pub fn take(&self) -> Vec<String> {
        mem::take(&mut *self.0.lock().expect("nobody panics with it"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redundancy {
    Constant,
    /// Only when there is no data to send.
    Tail,
}

/// What is announced for each code. No numbers were ever assigned.
const NUMBERS: [(u32, Code); 4] = [(1, Code::Xor), (2, Code::ReedSolomon), (3, Code::RLC), (4, Code::Vandermonde)];

/// How many of the newest symbols that were recovered and haven't come are remembered, lest one that was merely late counts
/// as lost, and its datagrams come twice. QUIC itself takes no packet that is 129 packets late.
const REMEMBERED: usize = 4096;

/// The largest UDP payload that an endpoint announces that it takes: an Ethernet frame less the headers of IP and UDP. What is in
/// a packet is no longer, and what is recovered neither.
pub const LARGEST_PAYLOAD: u16 = 1500 - 28;

impl Schemes {
    /// Refuses parameters that make no controller, in one line.
    pub fn check(&self) -> Result<(), String> {
        self.controller(self.code).map(drop)
    }

    fn is_block(&self, code: Code) -> bool {
        self.redundancy == Redundancy::Constant && matches!(code, Code::Xor | Code::ReedSolomon)
    }

    fn controller(&self, code: Code) -> Result<Box<dyn Controller>, String> {
        let refused = |refused: fec::Refused| refused.to_string();
        if self.is_block(code) {
            return Ok(Box::new(Block::new(code, self.n, self.k, self.interleave).map_err(refused)?));
        }
        if self.interleave != 1 {
            return Err(format!("interleave = {}: only blocks are interleaved, so it must be 1", self.interleave));
        }
        let sliding_window = match self.redundancy {
            Redundancy::Constant => SlidingWindow::constant,
            Redundancy::Tail => SlidingWindow::tail,
        };
        let trimmed = sliding_window(code, self.n, self.k, self.window).map_err(refused)?;
        Ok(Box::new(if self.window_trim { trimmed } else { trimmed.whole() }))
    }

    /// What protects for a peer; nothing if its code is unknown.
    ///
    /// # Errors
    /// If these parameters don't fit the code that the peer decodes.
    fn encoding(&self, peer: Announcement) -> Result<Option<fec::Encoder>, String> {
        let Some((_, code)) = NUMBERS.iter().find(|(number, _)| VarInt::from_u32(*number) == peer.scheme) else {
            return Ok(None);
        };
        let controller = self.controller(*code).map_err(|refused| format!("the peer decodes {code:?}: {refused}"))?;
        let mut encoder = fec::Encoder::new(*code, controller);
        encoder.set_window(window(peer.window.into_inner()));
        Ok(Some(encoder))
    }

    /// Over how many source symbols a repair symbol ranges.
    fn span(&self) -> usize {
        match self.is_block(self.code) {
            true => self.k * self.interleave,
            false => self.window,
        }
    }
}

impl Factory for Schemes {
    fn decodes(&self) -> Option<Announcement> {
        let (number, _) = NUMBERS.iter().find(|(_, code)| *code == self.code)?;
        Some(Announcement { scheme: VarInt::from_u32(*number), window: VarInt::from_u32(self.span() as u32) })
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        let decoder = fec::Decoder::new(self.code, self.span(), LARGEST_PAYLOAD.into());
        Box::new(Decoding { decoder, recovered: BTreeSet::new() })
    }

    fn encoder(&self, peer: Announcement) -> Option<Box<dyn Encoder>> {
        match self.encoding(peer) {
            Ok(encoder) => Some(Box::new(Encoding(encoder?))),
            Err(why) => {
                self.complaints.add(format!("nothing that is sent is protected: {why}"));
                None
            }
        }
    }

    fn masks_losses(&self) -> bool {
        self.masks_losses
    }

    fn tells_losses_at_once(&self) -> bool {
        self.tells_losses_at_once
    }
}

fn window(announced: u64) -> usize {
    usize::try_from(announced).unwrap_or(usize::MAX)
}

#[derive(Debug)]
struct Encoding(fec::Encoder);

impl Encoder for Encoding {
    fn protect(&mut self, symbol: &[u8]) {
        self.0.protect(symbol);
    }

    fn overhead(&self) -> usize {
        fec::MAX_HEADER
    }

    fn wants_repair(&self, app_limited: bool) -> bool {
        self.0.wants_repair(&Context { app_limited })
    }

    fn repair(&mut self, app_limited: bool, payload: &mut Vec<u8>) {
        self.0.repair(&Context { app_limited }, payload);
    }

    fn on_acked(&mut self, sid: u64) {
        self.0.acked(sid);
    }

    fn on_lost(&mut self, sid: u64) {
        self.0.lost(sid);
    }

    fn on_recovered(&mut self, sid: u64) {
        self.0.recovered(sid);
    }

    fn on_window(&mut self, size: u64) {
        self.0.set_window(window(size));
    }
}

#[derive(Debug)]
struct Decoding {
    decoder: fec::Decoder,
    /// Those of the symbols recovered that haven't come.
    recovered: BTreeSet<u64>,
}

impl Decoding {
    fn remember(
        &mut self,
        recovered: Result<Vec<fec::Recovered>, fec::Malformed>,
    ) -> Result<Vec<Recovered>, Malformed> {
        let recovered = match recovered {
            // A receiver may ignore repair symbols, and the window may have become smaller when this one was on its way.
            Err(fec::Malformed::Window) => Vec::new(),
            recovered => recovered.map_err(|malformed| Malformed(malformed.to_string()))?,
        };
        self.recovered.extend(recovered.iter().map(|(sid, _)| *sid));
        while self.recovered.len() > REMEMBERED {
            self.recovered.pop_first();
        }
        Ok(recovered.into_iter().map(|(sid, symbol)| Recovered { sid, symbol }).collect())
    }
}

impl Decoder for Decoding {
    fn source(&mut self, sid: u64, symbol: Bytes) -> Result<Vec<Recovered>, Malformed> {
        let recovered = self.decoder.source(sid, symbol);
        self.remember(recovered)
    }

    fn repair(&mut self, payload: &[u8]) -> Result<Vec<Recovered>, Malformed> {
        let recovered = self.decoder.repair(payload);
        self.remember(recovered)
    }

    fn take_recovered(&mut self, sid: u64) -> bool {
        self.recovered.remove(&sid)
    }

    fn window(&self) -> u64 {
        self.decoder.window() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemes(code: Code, n: usize, k: usize) -> Schemes {
        Schemes {
            code,
            n,
            k,
            window: 20,
            window_trim: true,
            interleave: 1,
            redundancy: Redundancy::Constant,
            masks_losses: false,
            tells_losses_at_once: false,
            complaints: Complaints::default(),
        }
    }

    fn peer(scheme: u32) -> Announcement {
        Announcement { scheme: VarInt::from_u32(scheme), window: VarInt::from_u32(40) }
    }

    #[test]
    fn only_a_window_that_is_trimmed_leaves_out_what_the_receiver_has() {
        for (window_trim, protected) in [(true, [2, 2]), (false, [2, 4])] {
            let schemes = Schemes { window_trim, ..schemes(Code::RLC, 3, 2) };
            let mut encoder = schemes.encoding(peer(3)).unwrap().expect("RLC");
            for count in protected {
                for _ in 0..2 {
                    let sid = encoder.protect(b"symbol");
                    encoder.acked(sid.wrapping_sub(2));
                }
                let mut payload = Vec::new();
                assert!(encoder.repair(&Context { app_limited: false }, &mut payload));
                assert_eq!(payload[1], count, "symbols that are protected, window_trim = {window_trim}");
            }
        }
    }

    #[test]
    fn parameters_that_do_not_fit_the_code_of_the_peer_are_named() {
        let schemes = schemes(Code::ReedSolomon, 30, 20);
        assert!(schemes.encoding(peer(2)).unwrap().is_some(), "Reed-Solomon");
        assert!(schemes.encoding(peer(99)).unwrap().is_none(), "a code that nobody knows");
        let why = schemes.encoding(peer(1)).unwrap_err();
        assert_eq!(why, "the peer decodes Xor: n = 30 with k = 20: this code has at most n = 21");
    }
}
