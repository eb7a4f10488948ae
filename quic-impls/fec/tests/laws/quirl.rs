//! QUIRL's schedulers in a flight as a transport has it: it grows with the repair that is sent, and shrinks with what is
//! acknowledged and lost.

use std::time::Duration;

use fec::{Code, Context, Controller, Losses, Policy, Quirl, QuirlBursts, SlidingWindow, Slot};
use proptest::prelude::*;

const RTT: Duration = Duration::from_millis(100);
/// The longest span of the window.
const LENGTH: u64 = 128;

/// A packet that is on its way: the number of its source symbol, or of its repair symbol.
#[derive(Clone, Copy, Debug)]
enum Packet {
    Source(u64),
    Repair(u64),
}

/// A sender, and what is on its way.
struct Transport {
    window: SlidingWindow,
    /// Bytes of each packet, and of a symbol in it.
    packet_size: u64,
    symbol_size: u64,
    in_flight: Vec<Packet>,
    sent: u64,
    repairs: u64,
    now: Duration,
    losses: Losses,
}

impl Transport {
    fn new(policy: impl Policy + 'static, packet_size: u64, symbol_size: u64) -> Transport {
        let mut window = SlidingWindow::new(Code::RLC, LENGTH as usize, Box::new(policy)).unwrap();
        window.on_window(255);
        let (now, losses) = (Duration::ZERO, Losses::default());
        Transport { window, packet_size, symbol_size, in_flight: Vec::new(), sent: 0, repairs: 0, now, losses }
    }

    fn context(&self, slot: Slot) -> Context {
        Context {
            slot,
            now: self.now,
            in_flight: self.bytes(),
            smoothed_rtt: RTT,
            min_rtt: RTT,
            packet_size: self.packet_size,
            symbol_size: self.symbol_size,
            losses: self.losses,
            ..Context::END_OF_DATA
        }
    }

    fn bytes(&self) -> u64 {
        self.in_flight.len() as u64 * self.packet_size
    }

    fn repairs_in_flight(&self) -> u64 {
        self.in_flight.iter().filter(|packet| matches!(packet, Packet::Repair(_))).count() as u64
    }

    /// Whether the window spans a source symbol.
    fn has_sources(&self) -> bool {
        let is_in_window = |packet: &Packet| matches!(packet, Packet::Source(sid) if sid + LENGTH >= self.sent);
        self.in_flight.iter().any(is_in_window)
    }

    fn send(&mut self, packets: u64) {
        for _ in 0..packets {
            self.window.on_sent(self.sent);
            self.in_flight.push(Packet::Source(self.sent));
            self.sent += 1;
        }
    }

    /// Sends one repair symbol, if one is due.
    fn repair(&mut self, slot: Slot) -> bool {
        let is_due = self.window.next_repair(&self.context(slot)).is_some();
        if is_due {
            self.in_flight.push(Packet::Repair(self.repairs));
            self.repairs += 1;
        }
        is_due
    }

    /// Pauses sending until it is time to ask again, if the policy sets a time.
    fn pause(&mut self, slot: Slot) {
        let context = self.context(slot);
        self.now += self.window.on_pause(&context).unwrap_or_default();
    }

    /// Returns how many repair symbols are sent after a pause.
    fn repair_all(&mut self, slot: Slot) -> usize {
        self.pause(slot);
        (0..1000).take_while(|_| self.repair(slot)).count()
    }

    /// The fates of the oldest packets are known, so long after the last ones: whether each arrived.
    fn learn(&mut self, after: Duration, fates: &[bool]) {
        self.now += after;
        let known = fates.len().min(self.in_flight.len());
        for (packet, arrived) in self.in_flight.drain(..known).zip(fates) {
            match (packet, arrived) {
                (Packet::Repair(number), _) => self.window.on_repair_settled(number),
                (Packet::Source(sid), true) => self.window.on_acked(sid),
                (Packet::Source(sid), false) => self.window.on_lost(sid),
            }
            self.losses.arrived += u64::from(*arrived);
            self.losses.lost += u64::from(!arrived);
        }
        let context = self.context(Slot::Idle);
        self.window.on_feedback(&context);
    }

    /// A round-trip time in which so many packets are lost, with two more to acknowledge. All others stay in flight.
    fn lose(&mut self, lost: usize) {
        self.learn(Duration::ZERO, &vec![false; lost]);
        self.learn(RTT, &[true]);
        self.learn(Duration::from_millis(1), &[true]);
    }
}

/// A sender with packets of 1,250 bytes that are all symbol, and so many in flight after rounds with losses.
fn after(policy: impl Policy + 'static, rounds: &[usize], packets: u64) -> Transport {
    let mut transport = Transport::new(policy, 1250, 1250);
    for lost in rounds {
        transport.send(*lost as u64 + 2);
        transport.lose(*lost);
    }
    assert!(transport.in_flight.is_empty());
    transport.send(packets);
    transport
}

#[test]
fn background_repair_is_a_share_of_a_flight_that_grows_with_it() {
    let sent = |rounds: &[usize], packets| after(Quirl::default(), rounds, packets).repair_all(Slot::Idle);
    // 9 repair symbols would be three fifths of 6 + 9 packets, but with 6 there are 15 kB in flight, and they are above a quarter.
    let short = [1, 2, 6].map(|packets| sent(&[], packets));
    assert_eq!(short, [2, 3, 6], "up to three fifths of what is in flight");
    // 4 are a quarter of 12 + 4 packets.
    assert_eq!([10, 12, 16, 100].map(|packets| sent(&[], packets)), [4, 4, 5, 5], "a quarter, and at most five");
    // A mean of 2 and a deviation of 1; then 2 + 8/8 and 1 + 7/4, which counts as 3.
    assert_eq!([12, 100].map(|packets| sent(&[2], packets)), [4, 4], "2 + 2 · 1, below a third");
    assert_eq!([12, 100].map(|packets| sent(&[2, 10], packets)), [6, 9], "a third of 12 + 6, and 3 + 2 · 3");
    assert_eq!(sent(&[300], 2000), 255, "302 would be, and a window knows of no more on their way");
}

#[test]
fn background_repair_waits_for_two_milliseconds_without_data() {
    for slot in [Slot::Data, Slot::Probe] {
        assert_eq!(after(Quirl::default(), &[], 20).repair_all(slot), 0);
    }
    let mut transport = after(Quirl::default(), &[], 20);
    let wait = |transport: &mut Transport| {
        let context = transport.context(Slot::Idle);
        transport.window.on_pause(&context)
    };
    assert!(!transport.repair(Slot::Idle), "the silence has just begun");
    assert_eq!(wait(&mut transport), Some(Duration::from_millis(2)));
    transport.now += Duration::from_micros(1500);
    assert!(!transport.repair(Slot::Idle), "it has not been long");
    assert_eq!(wait(&mut transport), Some(Duration::from_micros(500)));
    transport.send(1);
    transport.now += Duration::from_micros(500);
    assert!(!transport.repair(Slot::Idle), "data broke it");
    assert_eq!(transport.repair_all(Slot::Idle), 5);
    assert_eq!(wait(&mut transport), None, "there are enough");
    transport.learn(RTT, &[true; 21]);
    assert_eq!(wait(&mut transport), None, "all of it arrived");
}

#[test]
fn bursts_are_repaired_by_their_bytes_in_flight_and_the_losses_so_far() {
    let repaired = |acked, packets| {
        let mut transport = after(QuirlBursts::default(), &[], packets);
        // Data still waits when these are acknowledged: nothing was asked.
        for _ in 0..acked {
            transport.in_flight.remove(0);
        }
        transport.repair_all(Slot::Idle)
    };
    assert_eq!([1, 12].map(|packets| repaired(0, packets)), [0, 0], "15 kB are no burst");
    assert_eq!([13, 100].map(|packets| repaired(0, packets)), [7, 50], "half of its bytes");
    assert_eq!(repaired(5, 13), 5, "three fifths of the 10 kB that are in flight");
    let lossy = [&[2][..], &[2, 10]].map(|rounds| after(QuirlBursts::default(), rounds, 30).repair_all(Slot::Idle));
    assert_eq!(lossy, [4, 9], "2 + 2 · 1, and 3 + 2 · 3");
}

#[test]
fn a_burst_is_repaired_once_and_before_data_that_comes_later() {
    let mut transport = after(QuirlBursts::default(), &[], 20);
    assert_eq!(transport.repair_all(Slot::Data), 0, "the burst goes on");
    assert!(transport.repair(Slot::Idle));
    assert_eq!(transport.repair_all(Slot::Data), 9, "half, with the first");
    for _ in 0..2 {
        transport.send(12);
        assert_eq!(transport.repair_all(Slot::Idle), 0, "15 kB and then a pause are no burst");
    }
    transport.send(13);
    transport.pause(Slot::Idle);
    assert!(transport.repair(Slot::Data), "it ended, and data that came later waits");
    transport.learn(RTT, &[true; 67]);
    assert_eq!(transport.repair_all(Slot::Idle), 0, "all of it arrived");
}

/// An event at a sender.
#[derive(Clone, Debug)]
enum Event {
    Sent(u64),
    /// No data waits.
    Idle,
    Learnt(u64, Vec<bool>),
}

fn any_event() -> impl Strategy<Value = Event> {
    let fates = prop::collection::vec(prop::bool::weighted(0.8), 1..30);
    prop_oneof![
        (1..40u64).prop_map(Event::Sent),
        Just(Event::Idle),
        (0..150u64, fates).prop_map(|(ms, fates)| Event::Learnt(ms, fates)),
    ]
}

/// A report of packets' fates: its time, lost packets, and arrived packets.
type Feedback = (Duration, u64, u64);

/// QUIRL's ⌊a + 2⌈v⌉⌋ after these; `None` before a round with losses has ended.
fn expected(feedback: &[Feedback]) -> Option<u64> {
    let mut rounds = Vec::new();
    let mut rest = feedback;
    while let Some(begin) = rest.iter().position(|(_, lost, _)| *lost > 0) {
        let since = |(at, _, arrived): &Feedback| *arrived > 0 && *at > rest[begin].0 + RTT;
        let Some(length) = rest[begin..].iter().position(since) else { break };
        let (round, later) = rest[begin..].split_at(length + 1);
        rounds.push(round.iter().map(|(_, lost, _)| *lost as f64).sum::<f64>());
        rest = later;
    }
    let (first, later) = rounds.split_first()?;
    let (a, v) = later
        .iter()
        .fold((*first, 1.0), |(a, v): (f64, f64), lost| (0.875 * a + 0.125 * lost, 0.75 * v + 0.25 * (a - lost).abs()));
    Some((a + 2.0 * v.ceil()).floor() as u64)
}

/// Returns how many bytes of repair symbols of QUIRL's `background` may be in flight.
fn bound(bytes: u64, symbol_size: u64, feedback: &[Feedback]) -> u64 {
    match expected(feedback) {
        _ if bytes < symbol_size => 0,
        _ if bytes < 15_000 => bytes * 3 / 5,
        None => (5 * symbol_size).min(bytes / 4),
        Some(losses) => (losses * symbol_size).min(bytes / 3),
    }
}

proptest! {
    /// Whatever the transport does, repair symbols are sent as long as those in flight are below QUIRL's bound, and no longer.
    #[test]
    fn background_repair_in_flight_reaches_quirls_bound_and_goes_no_further(
        events in prop::collection::vec(any_event(), 1..60),
        packet_size in 1200..1452u64,
        header in 0..60u64,
    ) {
        let mut transport = Transport::new(Quirl::default(), packet_size, packet_size - header);
        let mut feedback = Vec::new();
        for event in events {
            match event {
                Event::Sent(packets) => transport.send(packets),
                Event::Learnt(ms, fates) => {
                    let Losses { lost, arrived, .. } = transport.losses;
                    transport.learn(Duration::from_millis(ms), &fates);
                    let after = transport.losses;
                    feedback.push((transport.now, after.lost - lost, after.arrived - arrived));
                }
                Event::Idle => loop {
                    transport.pause(Slot::Idle);
                    let most = bound(transport.bytes(), transport.symbol_size, &feedback);
                    let repairs = transport.repairs_in_flight() * transport.symbol_size;
                    if !transport.repair(Slot::Idle) {
                        prop_assert!(repairs >= most || !transport.has_sources(), "{repairs} of {most}");
                        break;
                    }
                    prop_assert!(repairs < most, "one more than {repairs} of {most}");
                },
            }
        }
    }

    /// Whatever the transport does, a burst gets repair symbols for three fifths of what was sent since the last, at most.
    #[test]
    fn repair_of_bursts_is_bounded_by_what_was_sent_since_the_last(
        events in prop::collection::vec(any_event(), 1..60),
    ) {
        let mut transport = Transport::new(QuirlBursts::default(), 1250, 1200);
        // Symbols since the last repair symbol, and the most repair symbols that are still to come for those before.
        let (mut sent, mut most) = (0, 0);
        for event in events {
            match event {
                Event::Sent(packets) => {
                    transport.send(packets);
                    sent += packets;
                }
                Event::Learnt(ms, fates) => transport.learn(Duration::from_millis(ms), &fates),
                Event::Idle => for _ in 0..transport.repair_all(Slot::Idle) {
                    most = (most + (sent * 3).div_ceil(5)).checked_sub(1).expect("one too many");
                    sent = 0;
                },
            }
        }
    }
}
