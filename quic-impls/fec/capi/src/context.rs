//! The transport's state when it asks.

use std::time::Duration;

use crate::border::{Failure, MAX_SYMBOL};

/// The possible use of the next packet.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Data waits to be sent.
    Data = 1,
    /// No data waits.
    Idle = 2,
    /// Nothing was heard for long: a packet is sent to provoke an answer.
    Probe = 3,
}

/// The transport's state when it asks. Set all to 0 first: unknown values stay so. Only slot must be set; each number
/// is below 2^60.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    /// The possible use of the next packet, a fec_slot.
    pub slot: u32,
    /// No more data than this will come: 1, else 0.
    pub is_ending: u8,
    /// Acknowledgements wait to be sent: 1, else 0.
    pub has_acks: u8,
    /// Protection takes nothing from packets, and repair nothing from the congestion window and the pacer of data: 1, else 0.
    pub is_free: u8,
    /// The time since the transport asked first.
    pub now_ns: u64,
    /// Bytes of data that wait to be sent for the first time.
    pub unsent_bytes: u64,
    /// The congestion window.
    pub window_bytes: u64,
    /// Bytes that were sent, and neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// The smoothed round-trip time.
    pub smoothed_rtt_ns: u64,
    /// The last round-trip time that was measured, or the smoothed one if that is longer.
    pub recent_rtt_ns: u64,
    /// The least round-trip time that was measured.
    pub min_rtt_ns: u64,
    /// Bytes per second that the path delivers, if congestion control measures that, as BBR does.
    pub delivers_bytes_per_s: u64,
    /// Bytes per second that the path delivers by estimate: window_bytes for each smoothed_rtt_ns, if nothing better is
    /// known.
    pub rate_bytes_per_s: u64,
    /// The size of a packet with a repair symbol, at most 131,070.
    pub packet_bytes: u64,
    /// Packets that arrived so far, with or without source symbols.
    pub arrived: u64,
    /// Packets that were lost so far.
    pub lost: u64,
    /// Number of runs in which these were lost: packets that were sent one after the other count as one run.
    pub runs: u64,
}

const LIMIT: u64 = 1 << 60;

impl Context {
    pub(crate) fn checked(&self, symbol_size: usize) -> Result<codes::Context, Failure> {
        let slot = match self.slot {
            slot if slot == Slot::Data as u32 => codes::Slot::Data,
            slot if slot == Slot::Idle as u32 => codes::Slot::Idle,
            slot if slot == Slot::Probe as u32 => codes::Slot::Probe,
            slot => return Err(Failure::argument(format!("slot = {slot}: must be data (1), idle (2) or probe (3)"))),
        };
        for (name, number, limit) in [
            ("now_ns", self.now_ns, LIMIT),
            ("unsent_bytes", self.unsent_bytes, LIMIT),
            ("window_bytes", self.window_bytes, LIMIT),
            ("in_flight_bytes", self.in_flight_bytes, LIMIT),
            ("smoothed_rtt_ns", self.smoothed_rtt_ns, LIMIT),
            ("recent_rtt_ns", self.recent_rtt_ns, LIMIT),
            ("min_rtt_ns", self.min_rtt_ns, LIMIT),
            ("delivers_bytes_per_s", self.delivers_bytes_per_s, LIMIT),
            ("rate_bytes_per_s", self.rate_bytes_per_s, LIMIT),
            ("packet_bytes", self.packet_bytes, 2 * MAX_SYMBOL as u64 + 1),
            ("arrived", self.arrived, LIMIT),
            ("lost", self.lost, LIMIT),
            ("runs", self.runs, self.lost.saturating_add(1)),
        ] {
            if number >= limit {
                return Err(Failure::argument(format!("{name} = {number}: must be below {limit}")));
            }
        }
        let delivers = Some(self.delivers_bytes_per_s).filter(|rate| *rate > 0);
        let losses = codes::Losses { arrived: self.arrived, lost: self.lost, runs: self.runs };
        Ok(codes::Context {
            slot,
            now: Duration::from_nanos(self.now_ns),
            unsent: self.unsent_bytes,
            is_ending: self.is_ending != 0,
            has_acks: self.has_acks != 0,
            window: self.window_bytes,
            in_flight: self.in_flight_bytes,
            smoothed_rtt: Duration::from_nanos(self.smoothed_rtt_ns),
            recent_rtt: Duration::from_nanos(self.recent_rtt_ns),
            min_rtt: Duration::from_nanos(self.min_rtt_ns),
            delivers,
            queue: Duration::ZERO,
            is_free: self.is_free != 0,
            rate: self.rate_bytes_per_s,
            packet_size: self.packet_bytes,
            symbol_size: symbol_size as u64,
            losses,
        })
    }
}
