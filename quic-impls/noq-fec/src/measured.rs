//! Congestion control that knows the slowest link of a path, too: FEC by deadline minds its queue.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fec::Link;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use noq_proto::{EcnCodepoint, RttEstimator};

/// Makes controllers of another factory that know the slowest link.
pub struct Measuring(pub Arc<dyn ControllerFactory + Send + Sync>);

impl ControllerFactory for Measuring {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Measured {
            control: self.0.clone().build(now, mtu),
            link: Link::default(),
            begun: now,
            acked: None,
            delay: None,
        })
    }
}

/// A controller of a path, and the slowest link there.
#[derive(Debug)]
struct Measured {
    control: Box<dyn Controller>,
    link: Link,
    begun: Instant,
    /// When the last packet of an ACK was sent, and the bytes of all of them.
    acked: Option<(Instant, u64)>,
    /// How long before its ACK that packet had arrived; None in the handshake.
    delay: Option<Duration>,
}

impl Measured {
    fn since(&self, time: Instant) -> Duration {
        time.saturating_duration_since(self.begun)
    }
}

impl Controller for Measured {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.control.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.link.on_sent(self.since(now), bytes.into());
        self.control.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.control.on_cwnd_limited();
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, pn: u64, app_limited: bool, rtt: &RttEstimator) {
        let (last, acked) = self.acked.unwrap_or((sent, 0));
        self.acked = Some((last.max(sent), acked + bytes));
        self.control.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_ack_delay(&mut self, delay: Duration) {
        self.delay = Some(delay);
        self.control.on_ack_delay(delay);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest_acked: Option<u64>) {
        if let (Some((sent, bytes)), Some(delay)) = (self.acked.take(), self.delay.take()) {
            self.link.on_acked(self.since(sent), self.since(now).saturating_sub(delay), bytes);
        }
        self.control.on_end_acks(now, in_flight, app_limited, largest_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        self.control.on_congestion_event(now, sent, is_persistent_congestion, is_ecn, lost_bytes, largest_lost_pn);
    }

    fn on_ecn_counts(&mut self, now: Instant, acked_packets: u64, marked_packets: u64) {
        self.control.on_ecn_counts(now, acked_packets, marked_packets);
    }

    fn ecn_codepoint(&self) -> EcnCodepoint {
        self.control.ecn_codepoint()
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.control.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.control.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.control.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, max_ack_delay: Duration) {
        self.control.on_ack_frequency_update(threshold, max_ack_delay);
    }

    fn window(&self) -> u64 {
        self.control.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.control.metrics()
    }

    fn queue(&self, now: Instant) -> Duration {
        self.link.queue(self.since(now))
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { control: self.control.clone_box(), link: self.link.clone(), ..*self })
    }

    fn initial_window(&self) -> u64 {
        self.control.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
