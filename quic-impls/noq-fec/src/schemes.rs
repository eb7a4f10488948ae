//! The codes and controllers of the crate `fec` as FEC schemes of noq-proto.
//!
//! Each endpoint announces the one code that its options name. Packets to a peer are coded as the peer has announced;
//! the endpoint's own options say how much.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fec::{Code, Context, Losses};
use host::coding::{Coding, Flush, Redundancy};
use noq_proto::VarInt;
use noq_proto::fec::{Announcement, Decoder, Encoder, Factory, Malformed, Opportunity, Recovered, RepairPath, Slot};

use crate::ends::MessageEnds;

/// The protection of sent packets, and the use of news of recovered ones.
#[derive(Debug, Clone)]
pub struct Schemes {
    pub coding: Coding,
    /// Ends of messages in the symbols that are sent.
    pub ends: MessageEnds,
    pub masks_losses: bool,
    /// Whether congestion control is told of a recovered loss by the peer's news of it, and not when the loss is declared.
    pub tells_losses_at_once: bool,
    /// Whether the peer is told of a recovered packet until it acknowledges that, and not in three frames.
    pub repeats_until_acknowledged: bool,
    /// Path on which repair symbols are sent, of several.
    pub repair_path: RepairPath,
    /// How packets are known to be source symbols.
    pub source_symbols: SourceSymbols,
    /// Number of source symbols over which the decoder looks back, if not twice the window; later symbols are
    /// complained of.
    pub look_back: Option<usize>,
    /// Reasons why nothing could be protected for a peer, or recovered.
    pub complaints: Complaints,
}

impl Schemes {
    /// Returns n − k repair symbols for k packets, with a window of 20 packets where the code has one.
    pub fn constant(code: Code, n: usize, k: usize) -> Self {
        Self {
            coding: Coding {
                code,
                n,
                k,
                window: 20,
                window_trim: true,
                interleave: 1,
                redundancy: Redundancy::Constant,
                flush: Flush::Idle,
            },
            ends: MessageEnds::default(),
            masks_losses: false,
            tells_losses_at_once: false,
            repeats_until_acknowledged: false,
            repair_path: RepairPath::Any,
            source_symbols: SourceSymbols::Explicit,
            look_back: None,
            complaints: Complaints::default(),
        }
    }
}

/// How packets are known to be source symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceSymbols {
    /// Packets say that they are, as in draft-michel-quic-fec-01.
    Explicit,
    /// The same in types of one byte, if the peer takes these. Where repair waits for data, a packet says so only where that takes no
    /// packet more.
    Short,
    /// Repair symbols name packets, if the peer keeps some.
    Implicit,
}

/// Complaints, a line each. Clones have their lines in common, so the holder of one hears what noq-proto met with
/// another.
#[derive(Debug, Clone, Default)]
pub struct Complaints(Arc<Lines>);

#[derive(Debug, Default)]
struct Lines {
    lines: Mutex<Vec<String>>,
    /// Whether there are any: that is asked at each turn of an endpoint, and takes no lock.
    any: AtomicBool,
}

impl Complaints {
    fn add(&self, line: String) {
        let mut lines = self.0.lines.lock().expect("nobody panics with it");
        lines.push(line);
        self.0.any.store(true, Ordering::Relaxed);
    }

    /// Whether there are lines since the last [`Complaints::take`].
    #[inline]
    pub fn are_there(&self) -> bool {
        self.0.any.load(Ordering::Relaxed)
    }

    /// Takes the lines since the last call.
    pub fn take(&self) -> Vec<String> {
        let mut lines = self.0.lines.lock().expect("nobody panics with it");
        self.0.any.store(false, Ordering::Relaxed);
        mem::take(&mut *lines)
    }
}

/// The number that announces each code. No numbers were ever assigned.
const NUMBERS: [(u32, Code); 4] = [(1, Code::Xor), (2, Code::ReedSolomon), (3, Code::RLC), (4, Code::Vandermonde)];

/// The largest UDP payload that an endpoint announces that it takes: an Ethernet frame less the headers of IP and UDP.
/// Neither the frames of a packet nor a recovered symbol is longer.
pub const LARGEST_PAYLOAD: u16 = 1500 - 28;

/// Number of the newest packets with data that are kept of each path, in case repair symbols name them: more than a
/// window has.
const KEPT_PACKETS: u32 = 256;

impl Schemes {
    /// Whether repair symbols name packets, if the peer keeps some.
    pub fn names_packets(&self) -> bool {
        self.source_symbols == SourceSymbols::Implicit
    }

    /// Returns the encoding for a peer; none if its code is unknown.
    ///
    /// # Errors
    /// If these parameters don't fit the code that the peer decodes.
    fn encoding(&self, peer: Announcement) -> Result<Option<Encoding>, String> {
        let Some((_, code)) = NUMBERS.iter().find(|(number, _)| VarInt::from_u32(*number) == peer.scheme) else {
            return Ok(None);
        };
        let controller =
            self.coding.controller(*code).map_err(|refused| format!("the peer decodes {code:?}: {refused}"))?;
        let mut encoder = fec::Encoder::new(*code, controller);
        encoder.set_window(window(peer.window.into_inner()));
        Ok(Some(Encoding {
            encoder,
            flush: self.coding.flush,
            ends: self.ends.clone(),
            has_ended: false,
            begun: OnceLock::new(),
        }))
    }
}

impl Factory for Schemes {
    fn decodes(&self) -> Option<Announcement> {
        let (number, _) = NUMBERS.iter().find(|(_, code)| *code == self.coding.code)?;
        Some(Announcement {
            scheme: VarInt::from_u32(*number),
            window: VarInt::from_u32(self.coding.span() as u32),
            kept_packets: VarInt::from_u32(if self.names_packets() { KEPT_PACKETS } else { 0 }),
            short_symbols: self.source_symbols == SourceSymbols::Short,
        })
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        let longest = LARGEST_PAYLOAD.into();
        let decoding = match self.look_back {
            Some(look_back) => self.coding.decoding_back_over(look_back, longest),
            None => self.coding.decoding(longest),
        };
        Box::new(Decoding {
            decoding,
            look_back: self.look_back,
            has_told_of_ignored: false,
            complaints: self.complaints.clone(),
        })
    }

    fn encoder(&self, peer: Announcement) -> Option<Box<dyn Encoder>> {
        match self.encoding(peer) {
            Ok(encoding) => Some(Box::new(encoding?)),
            Err(why) => {
                self.complaints.add(format!("nothing that is sent is protected: {why}"));
                None
            }
        }
    }

    fn masks_losses(&self) -> bool {
        self.masks_losses
    }

    fn names_packets(&self) -> bool {
        self.names_packets()
    }

    fn is_frugal(&self) -> bool {
        self.source_symbols != SourceSymbols::Explicit
    }

    fn repair_path(&self) -> RepairPath {
        self.repair_path
    }

    fn tells_losses_at_once(&self) -> bool {
        self.tells_losses_at_once
    }

    fn repeats_until_acknowledged(&self) -> bool {
        self.repeats_until_acknowledged
    }
}

fn window(announced: u64) -> usize {
    usize::try_from(announced).unwrap_or(usize::MAX)
}

fn losses(of: &noq_proto::fec::Losses) -> Losses {
    let noq_proto::fec::Losses { arrived, lost, runs } = *of;
    Losses { arrived, lost, runs }
}

#[derive(Debug)]
struct Encoding {
    encoder: fec::Encoder,
    flush: Flush,
    ends: MessageEnds,
    /// Whether a message has ended whose last packets may be unprotected.
    has_ended: bool,
    /// Time at which noq-proto asked first.
    begun: OnceLock<Instant>,
}

impl Encoding {
    /// Returns the slot for the policy. The option `flush` says when unprotected symbols get their repair symbols.
    fn slot(&self, slot: Slot) -> fec::Slot {
        let idle_if = |is_idle| if is_idle { fec::Slot::Idle } else { fec::Slot::Data };
        match (slot, self.flush) {
            (Slot::Probe, _) => fec::Slot::Probe,
            (slot, Flush::Idle) => idle_if(slot == Slot::Idle),
            (_, Flush::Message) => idle_if(self.has_ended),
            (_, Flush::Never) => fec::Slot::Data,
        }
    }

    /// Returns the context for the policy.
    fn context(&self, opportunity: &Opportunity) -> Context {
        Context {
            slot: self.slot(opportunity.slot),
            now: opportunity.now.saturating_duration_since(*self.begun.get_or_init(|| opportunity.now)),
            unsent: opportunity.unsent,
            is_ending: opportunity.is_ending,
            has_acks: opportunity.has_acks,
            window: opportunity.window,
            in_flight: opportunity.in_flight,
            smoothed_rtt: opportunity.smoothed_rtt,
            recent_rtt: opportunity.recent_rtt,
            min_rtt: opportunity.min_rtt,
            delivers: opportunity.delivers,
            queue: opportunity.queue,
            is_free: opportunity.is_free,
            rate: opportunity.rate,
            packet_size: opportunity.packet_size,
            symbol_size: opportunity.symbol_size,
            losses: losses(&opportunity.losses),
        }
    }
}

impl Encoder for Encoding {
    fn protect(&mut self, symbol: &[u8]) {
        let is_owed = self.encoder.wants_repair(&Context::MORE_DATA);
        self.encoder.protect(symbol);
        self.has_ended = self.flush == Flush::Message && (self.has_ended && is_owed || self.ends.is_in(symbol));
    }

    fn overhead(&self, largest_sid: u64) -> usize {
        fec::longest_header(largest_sid)
    }

    fn frames(&self, opportunity: &Opportunity) -> bool {
        self.encoder.protects(&self.context(opportunity))
    }

    fn is_silent(&self, of: &noq_proto::fec::Losses) -> bool {
        self.encoder.is_silent(&losses(of))
    }

    fn may_frame(&self, unsent: u64) -> bool {
        self.encoder.may_protect(unsent)
    }

    fn may_repair(&self, slot: Slot) -> bool {
        self.encoder.may_repair(self.slot(slot))
    }

    fn listens(&self) -> bool {
        self.encoder.listens()
    }

    fn is_background(&self) -> bool {
        self.encoder.yields()
    }

    fn fills_window(&self) -> bool {
        self.encoder.fills_window()
    }

    fn on_repair_settled(&mut self, number: u64) {
        self.encoder.repair_settled(number);
    }

    fn on_feedback(&mut self, opportunity: &Opportunity) {
        self.encoder.feedback(&self.context(opportunity));
    }

    fn on_pause(&mut self, opportunity: &Opportunity) -> Option<Duration> {
        self.encoder.pause(&self.context(opportunity))
    }

    fn wants_repair(&self, opportunity: &Opportunity) -> bool {
        self.encoder.wants_repair(&self.context(opportunity))
    }

    fn protects(&self, opportunity: &Opportunity) -> Vec<u64> {
        let protected = self.encoder.peek_repair(&self.context(opportunity));
        protected.map_or_else(Vec::new, |protected| protected.sids().collect())
    }

    fn given_up(&self) -> u64 {
        self.encoder.given_up()
    }

    fn repair(&mut self, opportunity: &Opportunity, payload: &mut Vec<u8>) {
        self.encoder.repair(&self.context(opportunity), payload);
    }

    fn on_acked(&mut self, sid: u64) {
        self.encoder.acked(sid);
    }

    fn on_lost(&mut self, sid: u64) {
        self.encoder.lost(sid);
    }

    fn on_recovered(&mut self, sid: u64) {
        self.encoder.recovered(sid);
    }

    fn on_window(&mut self, size: u64) {
        self.encoder.set_window(window(size));
    }
}

#[derive(Debug)]
struct Decoding {
    decoding: host::coding::Decoding,
    /// The look-back that is too short if symbols come too late, until a complaint says so.
    look_back: Option<usize>,
    has_told_of_ignored: bool,
    complaints: Complaints,
}

impl Decoding {
    fn complain_of_outdated(&mut self) {
        if self.decoding.outdated() > 0
            && let Some(look_back) = self.look_back.take()
        {
            self.complaints.add(format!(
                "look_back = {look_back}: symbols came later than that, and could not be used: it must be as many packets as \
                 the paths carry in the difference of their delays"
            ));
        }
    }

    /// Complains of ignored repair symbols once: no honest sender's are.
    fn complain_of_ignored(&mut self) {
        if self.decoding.ignored() > 0 && !mem::replace(&mut self.has_told_of_ignored, true) {
            self.complaints
                .add("the peer's repair symbols are so small for what they protect that some are ignored".into());
        }
    }
}

fn taken(recovered: Result<Vec<fec::Recovered>, fec::Malformed>) -> Result<Vec<Recovered>, Malformed> {
    let recovered = recovered.map_err(|malformed| Malformed(malformed.to_string()))?;
    Ok(recovered.into_iter().map(|(sid, symbol)| Recovered { sid, symbol }).collect())
}

impl Decoder for Decoding {
    fn source(&mut self, sid: u64, symbol: Bytes) -> Result<Vec<Recovered>, Malformed> {
        let recovered = taken(self.decoding.source(sid, symbol));
        self.complain_of_outdated();
        recovered
    }

    fn repair(&mut self, payload: &[u8]) -> Result<Vec<Recovered>, Malformed> {
        let recovered = taken(self.decoding.repair(payload));
        self.complain_of_outdated();
        self.complain_of_ignored();
        recovered
    }

    fn take_recovered(&mut self, sid: u64) -> bool {
        self.decoding.take_recovered(sid)
    }

    fn window(&self) -> u64 {
        self.decoding.window() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(scheme: u32) -> Announcement {
        Announcement {
            scheme: VarInt::from_u32(scheme),
            window: VarInt::from_u32(40),
            kept_packets: VarInt::from_u32(0),
            short_symbols: false,
        }
    }

    #[test]
    fn only_a_window_that_is_trimmed_leaves_out_what_the_receiver_has() {
        for (window_trim, protected) in [(true, [2, 2]), (false, [2, 4])] {
            let mut schemes = Schemes::constant(Code::RLC, 3, 2);
            schemes.coding.window_trim = window_trim;
            let mut encoder = schemes.encoding(peer(3)).unwrap().expect("RLC").encoder;
            for count in protected {
                for _ in 0..2 {
                    let sid = encoder.protect(b"symbol");
                    encoder.acked(sid.wrapping_sub(2));
                }
                let mut payload = Vec::new();
                assert!(encoder.repair(&Context::MORE_DATA, &mut payload));
                assert_eq!(payload[1], count, "symbols that are protected, window_trim = {window_trim}");
            }
        }
    }

    /// Repair symbols of one byte, after long ones over as many source symbols, none of which has come.
    #[test]
    fn that_repair_symbols_are_ignored_is_told_once() {
        let mut schemes = Schemes::constant(Code::RLC, 3, 2);
        schemes.coding.window = fec::MAX_SPAN;
        let mut decoder = schemes.decoder();
        let mut repair = |sid: u64, length: usize| {
            let header = [&(sid | 1 << 31).to_be_bytes()[4..], &[255, 1, (sid >> 8) as u8, sid as u8, 15]].concat();
            decoder.repair(&[header, vec![1; length]].concat()).unwrap();
            schemes.complaints.take().len()
        };
        let long: usize = (0..255).map(|sid| repair(1000 + sid, 1400)).sum();
        assert_eq!(long, 0);
        let small: usize = (255..1000).map(|sid| repair(1000 + sid, 1)).sum();
        assert_eq!(small, 1);
    }

    #[test]
    fn parameters_that_do_not_fit_the_code_of_the_peer_are_named() {
        let schemes = Schemes::constant(Code::ReedSolomon, 30, 20);
        assert!(schemes.encoding(peer(2)).unwrap().is_some(), "Reed-Solomon");
        assert!(schemes.encoding(peer(99)).unwrap().is_none(), "a code that nobody knows");
        let why = schemes.encoding(peer(1)).unwrap_err();
        assert_eq!(why, "the peer decodes Xor: n = 30 with k = 20: this code has at most n = 21");
    }
}
