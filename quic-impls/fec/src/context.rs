//! The sender's state when it asks for repair symbols.

use std::time::Duration;

/// The possible use of the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Data waits to be sent.
    Data,
    /// No data waits.
    Idle,
    /// Nothing was heard for long: a packet is sent to provoke an answer.
    Probe,
}

/// The sender's state when it asks for repair symbols. Unknown numbers are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The possible use of the next packet.
    pub slot: Slot,
    /// The time since the sender asked first.
    pub now: Duration,
    /// Bytes of data that wait to be sent for the first time.
    pub unsent: u64,
    /// Whether no more data than this will come: all streams with data are finished.
    pub is_ending: bool,
    /// Acknowledgements wait to be sent.
    pub has_acks: bool,
    /// The congestion window in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// The last round-trip time that was measured, or the smoothed one if that is longer. Of several paths: as many times `min_rtt` as it
    /// is on that path of all where it is most.
    pub recent_rtt: Duration,
    /// The least round-trip time that was measured.
    pub min_rtt: Duration,
    /// Bytes per second that the path delivers, if congestion control has measured that.
    pub delivers: Option<u64>,
    /// How long what waits for the slowest link of the path takes, as a [`Link`](crate::Link) tells.
    pub queue: Duration,
    /// Source symbols take nothing from packets, and repair symbols nothing from data.
    pub is_free: bool,
    /// Bytes per second that the path delivers, as congestion control estimates it.
    pub rate: u64,
    /// Bytes of a packet with a repair symbol.
    pub packet_size: u64,
    /// Bytes of a repair symbol, and of the longest source symbol.
    pub symbol_size: u64,
    /// Fates of packets so far.
    pub losses: Losses,
}

/// The fates of packets so far, with or without source symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// Number of runs in which these were lost: packets that were sent one after the other count as one run.
    pub runs: u64,
}

impl Context {
    /// Data waits to be sent, and nothing else is known.
    pub const MORE_DATA: Context = Context {
        slot: Slot::Data,
        now: Duration::ZERO,
        unsent: 0,
        is_ending: false,
        has_acks: false,
        window: 0,
        in_flight: 0,
        smoothed_rtt: Duration::ZERO,
        recent_rtt: Duration::ZERO,
        min_rtt: Duration::ZERO,
        delivers: None,
        queue: Duration::ZERO,
        is_free: false,
        rate: 0,
        packet_size: 0,
        symbol_size: 0,
        losses: Losses { arrived: 0, lost: 0, runs: 0 },
    };
    /// The context without data to send, in which nothing else is known.
    pub const END_OF_DATA: Context = Context { slot: Slot::Idle, ..Context::MORE_DATA };

    pub(crate) fn is_idle(&self) -> bool {
        self.slot == Slot::Idle
    }
}
