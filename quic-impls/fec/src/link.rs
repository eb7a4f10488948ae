//! The slowest link of a path: its rate, and how long what was sent keeps it busy.

use std::time::Duration;

/// The slowest link of a path, as a sender sees it.
///
/// Its rate is learnt from trains of packets. Packets that are sent faster than the link carries them arrive as far apart as it makes
/// them. Nothing is known while no packets are sent so fast.
#[derive(Clone, Debug, Default)]
pub struct Link {
    train: Option<Train>,
    /// When the last trains ended, and the bytes per second that they have shown; the newest is last.
    shown: [Option<(Duration, f64)>; TRAINS],
    /// Bytes that waited for the link when the last packet was sent.
    waiting: f64,
    last_sent: Duration,
}

/// Packets one after the other, of which each has arrived later after the one before than it was sent.
#[derive(Clone, Copy, Debug)]
struct Train {
    first_sent: Duration,
    first_arrived: Duration,
    last_sent: Duration,
    last_arrived: Duration,
    /// Bytes behind the first packet.
    bytes: u64,
    /// The most bytes per second that its beginnings have shown.
    rate: f64,
}

/// The rate is the largest that so many trains have shown: lost packets make it smaller, and little makes it larger.
const TRAINS: usize = 4;
/// It is known from so many on. A single one may be a delay that has nothing to do with a queue.
const LEAST_TRAINS: usize = 2;
/// They ended within so long, likewise.
const RECENT: Duration = Duration::from_secs(2);
/// A train takes at least so many times as long to arrive as it took to be sent.
const STRETCH: f64 = 2.0;
/// It has so many bytes behind its first packet: two packets.
const LEAST_BYTES: u64 = 2_400;
/// The link is taken to carry this share of its rate. The rest empties its queue.
const SHARE: f64 = 0.9;

impl Link {
    /// A packet of so many bytes is sent.
    pub fn on_sent(&mut self, now: Duration, bytes: u64) {
        self.waiting = self.waiting(now) + bytes as f64;
        self.last_sent = now;
    }

    /// An ACK has come of so many bytes in all. The last of these packets was sent at one time and arrived at the other: when
    /// the ACK came, less the delay that it tells of.
    pub fn on_acked(&mut self, sent: Duration, arrived: Duration, bytes: u64) {
        match &mut self.train {
            Some(train) if train.goes_on(sent, arrived) => train.extend(sent, arrived, bytes),
            train => {
                if let Some(train) = train.filter(|train| train.rate > 0.0) {
                    self.shown.rotate_left(1);
                    self.shown[TRAINS - 1] = Some((train.last_arrived, train.rate));
                }
                *train = Some(Train::new(sent, arrived));
            }
        }
    }

    /// Returns how long what waits for the link takes; zero if the link's rate is unknown.
    #[must_use]
    pub fn queue(&self, now: Duration) -> Duration {
        let seconds = self.rate(now).map_or(0.0, |rate| self.waiting(now) / (SHARE * rate));
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Returns how many bytes per second the link carries, if that is known.
    #[must_use]
    pub fn rate(&self, now: Duration) -> Option<f64> {
        let (time, _) = self.shown[TRAINS - LEAST_TRAINS]?;
        let most = || self.shown.iter().flatten().map(|(_, rate)| *rate).fold(0.0, f64::max);
        (now.saturating_sub(time) <= RECENT).then(most)
    }

    fn waiting(&self, now: Duration) -> f64 {
        let carried = |rate| SHARE * rate * now.saturating_sub(self.last_sent).as_secs_f64();
        (self.waiting - self.rate(now).map_or(f64::INFINITY, carried)).max(0.0)
    }
}

impl Train {
    fn new(sent: Duration, arrived: Duration) -> Train {
        Train { first_sent: sent, first_arrived: arrived, last_sent: sent, last_arrived: arrived, bytes: 0, rate: 0.0 }
    }

    /// Whether a packet is one more.
    fn goes_on(&self, sent: Duration, arrived: Duration) -> bool {
        arrived.saturating_sub(self.last_arrived) > sent.saturating_sub(self.last_sent)
    }

    fn extend(&mut self, sent: Duration, arrived: Duration, bytes: u64) {
        (self.last_sent, self.last_arrived) = (sent, arrived);
        self.bytes += bytes;
        let took = sent.saturating_sub(self.first_sent).as_secs_f64();
        let came = arrived.saturating_sub(self.first_arrived).as_secs_f64();
        if self.bytes >= LEAST_BYTES && came >= STRETCH * took {
            self.rate = self.rate.max(self.bytes as f64 / came);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1_200;
    /// Bytes per second of the slowest link: 3 Mbit/s.
    const RATE: f64 = 375_000.0;
    const DELAY: Duration = Duration::from_millis(50);
    const FRAME: Duration = Duration::from_micros(33_333);

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Sends frames of so many packets at an interval, in each of which packets are so far apart, over the slowest link. The receiver
    /// acknowledges every second packet, and the last one of a frame. Returns the time of the last ACK.
    fn send(link: &mut Link, frames: u32, packets: u32, apart: Duration, is_lost: fn(u32) -> bool) -> Duration {
        let mut free = Duration::ZERO;
        for frame in 0..frames {
            let mut unacknowledged = 0;
            for packet in 0..packets {
                let sent = frame * FRAME + packet * apart;
                link.on_sent(sent, PACKET);
                free = free.max(sent) + seconds(PACKET as f64 / RATE);
                unacknowledged += u64::from(!is_lost(frame * packets + packet)) * PACKET;
                if (unacknowledged >= 2 * PACKET || packet + 1 == packets) && unacknowledged > 0 {
                    link.on_acked(sent, free + DELAY, unacknowledged);
                    unacknowledged = 0;
                }
            }
        }
        free + DELAY
    }

    #[test]
    fn trains_tell_the_rate_of_the_slowest_link_even_where_packets_are_lost() {
        for is_lost in [|_| false, |packet| packet % 10 == 3] {
            let mut link = Link::default();
            let now = send(&mut link, 10, 8, Duration::ZERO, is_lost);
            let rate = link.rate(now).expect("eight packets at once are a train");
            assert!((rate / RATE - 1.0).abs() < 1e-6, "{rate}");
        }
    }

    #[test]
    fn packets_that_are_sent_as_fast_as_the_link_carries_them_tell_nothing() {
        let mut link = Link::default();
        let now = send(&mut link, 10, 8, seconds(PACKET as f64 / RATE), |_| false);
        assert_eq!((link.rate(now), link.queue(now)), (None, Duration::ZERO));
    }

    #[test]
    fn one_train_or_old_ones_tell_nothing() {
        let mut link = Link::default();
        let now = send(&mut link, 2, 8, Duration::ZERO, |_| false);
        assert_eq!(link.rate(now), None, "the second train has no end yet");
        let now = send(&mut link, 3, 8, Duration::ZERO, |_| false);
        assert!(link.rate(now).is_some());
        assert_eq!(link.rate(now + RECENT), None);
    }

    #[test]
    fn what_waits_takes_its_time_and_is_gone_then() {
        let mut link = Link::default();
        let now = send(&mut link, 10, 8, Duration::ZERO, |_| false) + FRAME;
        assert_eq!(link.queue(now), Duration::ZERO);
        (0..10).for_each(|_| link.on_sent(now, PACKET));
        let takes = 10.0 * PACKET as f64 / (SHARE * RATE);
        for [later, left] in [[0.0, takes], [0.01, takes - 0.01], [takes, 0.0], [2.0 * takes, 0.0]] {
            assert!((link.queue(now + seconds(later)).as_secs_f64() - left).abs() < 1e-6, "{later}");
        }
    }

    #[test]
    fn times_that_cannot_be_are_borne() {
        let mut link = Link::default();
        let times = [Duration::MAX, Duration::ZERO, seconds(1.0)];
        for (sent, arrived) in times.iter().flat_map(|sent| times.iter().map(move |arrived| (*sent, *arrived))) {
            link.on_sent(sent, PACKET);
            link.on_acked(sent, arrived, u64::from(u32::MAX));
            let _ = (link.queue(sent), link.queue(arrived));
        }
    }
}
