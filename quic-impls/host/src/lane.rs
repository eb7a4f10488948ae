//! One direction of the emulated link in virtual time, with the losses behind it: `quic-impls/lane`, which is written in C and
//! shared by all simulators.

use std::ptr::{self, NonNull};
use std::slice;

/// The largest payload of a datagram over a link with an MTU of 1500 bytes.
const PAYLOAD_MAX: usize = 1472;

/// What a datagram over IPv4 has more on the link, in bytes.
pub const OVERHEAD: u64 = 42;

/// The verdicts of so many packets are recorded.
const RECORDED: u64 = 1 << 20;

const NEVER: u64 = u64::MAX;

/// What a direction of the link is.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub rate_bps: u64,
    pub delay_ns: u64,
    pub queue: Queue,
    /// Frames that have waited too long are dropped besides (RFC 8289).
    pub codel: bool,
    pub losses: Losses,
    /// How rate and delay change once the lane has been started.
    pub schedule: Option<Schedule>,
    /// What each datagram is delayed besides.
    pub jitter: Option<Jitter>,
    /// A datagram that is delayed by less may overtake.
    pub reorder: bool,
}

/// Noise of the delay: its law, its mean, and the seed that decides it for each datagram by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    pub law: JitterLaw,
    pub mean_ns: u64,
    pub seed: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JitterLaw {
    Uniform = 1,
    Normal,
    Pareto,
}

/// Steps, which a lane follows from a place in them on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    pub steps: Vec<Step>,
    pub repeat: Repeat,
    pub offset_ns: u64,
}

/// Until when a step lasts, its rate and delay, and what may leave at its end besides.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct Step(pub u64, pub u64, pub u64, pub u64);

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repeat {
    Loop,
    Hold,
    End,
}

/// The queue's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    Bytes(u64),
    Packets(u64),
    /// What the present rate sends in so many ns; with a schedule.
    Time(u64),
}

/// From the one time until the other, since the first client's start, a link takes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// What is lost behind the link.
#[derive(Debug, Clone, PartialEq)]
pub enum Losses {
    Model(Thresholds),
    Pattern(Pattern),
}

impl Losses {
    pub const NONE: Self = Self::Model(Thresholds {
        seed: 0,
        loss_good: 0,
        loss_bad: 0,
        good_to_bad: 0,
        bad_to_good: 0,
        good_us: 0,
        bad_us: 0,
    });
}

/// A Gilbert-Elliott chain that begins in the good state: an event happens iff a draw of 32 bits is below its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    pub seed: u64,
    pub loss_good: u64,
    pub loss_bad: u64,
    pub good_to_bad: u64,
    pub bad_to_good: u64,
    /// The mean time in each state, if the clock ends it; both are 0 if packets do.
    #[serde(default)]
    pub good_us: u64,
    #[serde(default)]
    pub bad_us: u64,
}

/// Verdicts one by one: bit n % 8 of byte n / 8 is set when packet n is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pub bits: Vec<u8>,
    pub packets: u64,
    /// Begins again at its end; otherwise all pass from there on.
    pub repeats: bool,
    /// The verdicts are those of slots of time that last so long; 0: of packets.
    pub slot_ns: u64,
    /// Draws the first slot of those that begin again.
    pub seed: u64,
}

/// What a direction has done.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    pub frames_in: u64,
    pub bytes_in: u64,
    pub frames_out: u64,
    pub bytes_out: u64,
    pub queue_dropped: u64,
    pub oversize_dropped: u64,
    pub in_flight: u64,
    pub max_queue_bytes: u64,
    pub max_queue_packets: u64,
    /// Lost behind the link, of `frames_out`.
    pub dropped: u64,
    pub conserved: bool,
}

/// A datagram that has left the link.
#[derive(Debug, PartialEq, Eq)]
pub struct Exit<'a> {
    /// As it was sent.
    pub tag: u64,
    pub payload: &'a [u8],
    /// Nobody receives it.
    pub lost: bool,
}

/// One direction of the link. It is made once, and used for one trial after another.
#[derive(Debug)]
pub struct Lane {
    raw: NonNull<RawLane>,
    payload: [u8; PAYLOAD_MAX],
}

impl Default for Lane {
    fn default() -> Self {
        // SAFETY: it takes nothing.
        let raw = NonNull::new(unsafe { lane_new() }).expect("there is memory for a lane");
        Self { raw, payload: [0; PAYLOAD_MAX] }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // SAFETY: it came from lane_new, and nobody has it after this.
        unsafe { lane_free(self.raw.as_ptr()) }
    }
}

impl Lane {
    /// Begins a trial: what was in the lane, counted or recorded is gone.
    ///
    /// # Errors
    /// In one line, when there is no link like that.
    pub fn begin(&mut self, settings: &Settings) -> Result<(), String> {
        settings.check()?;
        let (queue_bytes, queue_packets, queue_ns) = match settings.queue {
            Queue::Bytes(bytes) => (bytes, 0, 0),
            Queue::Packets(packets) => (0, packets, 0),
            Queue::Time(time_ns) => (0, 0, time_ns),
        };
        let schedule = match &settings.schedule {
            Some(Schedule { steps, repeat, offset_ns }) => RawSchedule {
                steps: steps.as_ptr(),
                count: steps.len() as u64,
                repeat: *repeat as u32,
                offset_ns: *offset_ns,
            },
            None => RawSchedule { steps: ptr::null(), count: 0, repeat: 0, offset_ns: 0 },
        };
        let mut raw = RawSettings {
            rate_bps: settings.rate_bps,
            delay_ns: settings.delay_ns,
            queue_bytes,
            queue_packets,
            queue_ns,
            schedule,
            codel: settings.codel,
            seed: 0,
            loss_good: 0,
            loss_bad: 0,
            good_to_bad: 0,
            bad_to_good: 0,
            pattern: ptr::null(),
            pattern_packets: 0,
            pattern_repeats: false,
            slot_ns: 0,
            good_us: 0,
            bad_us: 0,
            jitter: settings.jitter.map_or(RawJitter { law: 0, mean_ns: 0, seed: 0 }, |jitter| RawJitter {
                law: jitter.law as u32,
                mean_ns: jitter.mean_ns,
                seed: jitter.seed,
            }),
            reorder: settings.reorder,
        };
        match &settings.losses {
            Losses::Model(model) => {
                raw.seed = model.seed;
                raw.loss_good = model.loss_good;
                raw.loss_bad = model.loss_bad;
                raw.good_to_bad = model.good_to_bad;
                raw.bad_to_good = model.bad_to_good;
                raw.good_us = model.good_us;
                raw.bad_us = model.bad_us;
            }
            Losses::Pattern(pattern) => {
                raw.pattern = pattern.bits.as_ptr();
                raw.pattern_packets = pattern.packets;
                raw.pattern_repeats = pattern.repeats;
                raw.slot_ns = pattern.slot_ns;
                raw.seed = pattern.seed;
            }
        }
        // SAFETY: the lane is ours, a pattern has the bits of all its packets, which was checked, and what is pointed at is
        // copied.
        match unsafe { lane_begin(self.raw.as_ptr(), &raw) } {
            true => Ok(()),
            false if settings.schedule.is_some() => {
                Err("schedule: its steps must end one after another, and carry something".into())
            }
            false => Err(format!("the lane takes no {settings:?}")),
        }
    }

    /// Sends a datagram, at a time that never decreases. False when the link drops it.
    pub fn send(&mut self, payload: &[u8], tag: u64, now_ns: u64) -> bool {
        let length = u32::try_from(payload.len()).expect("a datagram has at most 64 KiB");
        // SAFETY: the lane is ours, and the payload has that length.
        unsafe { lane_send(self.raw.as_ptr(), payload.as_ptr(), length, tag, now_ns) }
    }

    /// When the next datagram leaves, if there is one.
    pub fn next_exit(&self) -> Option<u64> {
        // SAFETY: the lane is ours.
        match unsafe { lane_next_exit(self.raw.as_ptr()) } {
            NEVER => None,
            time => Some(time),
        }
    }

    /// The next datagram that has left at a time.
    pub fn receive(&mut self, now_ns: u64) -> Option<Exit<'_>> {
        let mut exit = RawExit { at_ns: 0, tag: 0, length: 0, lost: false };
        // SAFETY: the lane is ours, and there is room for the largest payload.
        let left = unsafe { lane_receive(self.raw.as_ptr(), now_ns, self.payload.as_mut_ptr(), &mut exit) };
        left.then(|| Exit { tag: exit.tag, payload: &self.payload[..exit.length as usize], lost: exit.lost })
    }

    /// The first client starts at a time, since when a schedule counts.
    pub fn start(&mut self, now_ns: u64) {
        // SAFETY: the lane is ours.
        unsafe { lane_start(self.raw.as_ptr(), now_ns) }
    }

    /// The first client starts at a time, since when the lane is out from the one time until the other. Until the next
    /// trial begins.
    pub fn start_outage(&mut self, now_ns: u64, Outage { from_ns, to_ns }: Outage) {
        // SAFETY: the lane is ours.
        unsafe { lane_start_outage(self.raw.as_ptr(), now_ns, from_ns, to_ns) }
    }

    /// Datagrams that were sent while it was out.
    pub fn outage_dropped(&self) -> u64 {
        // SAFETY: the lane is ours.
        unsafe { lane_outage_dropped(self.raw.as_ptr()) }
    }

    /// A hash of when each datagram was sent and when it left, and of its length.
    pub fn times(&self) -> u64 {
        // SAFETY: the lane is ours.
        unsafe { lane_times(self.raw.as_ptr()) }
    }

    pub fn report(&self) -> Report {
        // SAFETY: the lane is ours.
        unsafe { lane_report(self.raw.as_ptr()) }
    }

    /// When each of the same packets left, in nanoseconds since the first; None if their losses do not follow from it.
    pub fn arrivals(&self) -> Option<&[u64]> {
        let mut packets = 0;
        // SAFETY: the lane is ours, it has a time for each of so many packets, and nothing changes it while they are borrowed.
        unsafe {
            lane_verdicts(self.raw.as_ptr(), &mut packets);
            let times = lane_arrivals(self.raw.as_ptr());
            (!times.is_null()).then(|| slice::from_raw_parts(times, packets as usize))
        }
    }

    /// The verdicts of the first packets that left: bit n % 8 of byte n / 8 is set when packet n was lost.
    pub fn verdicts(&self) -> &[u8] {
        let mut packets = 0;
        // SAFETY: the lane is ours, it has a bit for each of so many packets, and nothing changes it while they are borrowed.
        unsafe {
            let bits = lane_verdicts(self.raw.as_ptr(), &mut packets);
            slice::from_raw_parts(bits, packets.min(RECORDED).div_ceil(8) as usize)
        }
    }
}

impl Outage {
    pub fn check(self) -> Result<(), String> {
        let Self { from_ns, to_ns } = self;
        within("outage_ns", to_ns, 1, 1_000_000_000_000_000)?;
        match from_ns < to_ns {
            true => Ok(()),
            false => Err(format!("outage_ns: [{from_ns}, {to_ns}]; the first is the smaller")),
        }
    }
}

impl Settings {
    /// Times and rates are bounded so that no sum of them overflows.
    pub fn check(&self) -> Result<(), String> {
        within("rate_bps", self.rate_bps, 1, 1_000_000_000_000)?;
        within("delay_ns", self.delay_ns, 0, 1_000_000_000_000_000)?;
        match self.queue {
            Queue::Bytes(bytes) => within("queue_bytes", bytes, 1, 1 << 40)?,
            Queue::Packets(packets) => within("queue_packets", packets, 1, 1 << 40)?,
            Queue::Time(_) if self.schedule.is_none() => return Err("queue_ns: is for a link with a schedule".into()),
            Queue::Time(time_ns) => within("queue_ns", time_ns, 1, 1_000_000_000_000)?,
        }
        self.jitter.map_or(Ok(()), |jitter| within("jitter.mean_ns", jitter.mean_ns, 1, 10_000_000_000))?;
        match &self.losses {
            Losses::Model(model) => {
                let thresholds = [
                    ("loss_good", model.loss_good),
                    ("loss_bad", model.loss_bad),
                    ("good_to_bad", model.good_to_bad),
                    ("bad_to_good", model.bad_to_good),
                ];
                thresholds.into_iter().try_for_each(|(name, threshold)| within(name, threshold, 0, 1 << 32))?;
                match (model.good_us, model.bad_us) {
                    (0, 0) => Ok(()),
                    (good_us, bad_us) => {
                        within("good_us", good_us, 1, u32::MAX.into())?;
                        within("bad_us", bad_us, 1, u32::MAX.into())
                    }
                }
            }
            Losses::Pattern(pattern) => match pattern.packets.div_ceil(8) == pattern.bits.len() as u64 {
                true => Ok(()),
                false => {
                    Err(format!("pattern: {} bytes are not those of {} packets", pattern.bits.len(), pattern.packets))
                }
            },
        }
    }
}

fn within(name: &str, value: u64, least: u64, most: u64) -> Result<(), String> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(format!("{name}: {value} is not in {least} to {most}")),
    }
}

// quic-impls/lane/lane.h

#[repr(C)]
#[derive(Debug)]
struct RawLane {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawSettings {
    rate_bps: u64,
    delay_ns: u64,
    queue_bytes: u64,
    queue_packets: u64,
    queue_ns: u64,
    schedule: RawSchedule,
    codel: bool,
    seed: u64,
    loss_good: u64,
    loss_bad: u64,
    good_to_bad: u64,
    bad_to_good: u64,
    pattern: *const u8,
    pattern_packets: u64,
    pattern_repeats: bool,
    slot_ns: u64,
    good_us: u64,
    bad_us: u64,
    jitter: RawJitter,
    reorder: bool,
}

#[repr(C)]
struct RawJitter {
    law: u32,
    mean_ns: u64,
    seed: u64,
}

#[repr(C)]
struct RawSchedule {
    steps: *const Step,
    count: u64,
    repeat: u32,
    offset_ns: u64,
}

#[repr(C)]
struct RawExit {
    at_ns: u64,
    tag: u64,
    length: u32,
    lost: bool,
}

unsafe extern "C" {
    fn lane_new() -> *mut RawLane;
    fn lane_free(lane: *mut RawLane);
    fn lane_begin(lane: *mut RawLane, settings: *const RawSettings) -> bool;
    fn lane_send(lane: *mut RawLane, payload: *const u8, length: u32, tag: u64, now_ns: u64) -> bool;
    fn lane_next_exit(lane: *const RawLane) -> u64;
    fn lane_receive(lane: *mut RawLane, now_ns: u64, payload: *mut u8, exit: *mut RawExit) -> bool;
    fn lane_start(lane: *mut RawLane, now_ns: u64);
    fn lane_start_outage(lane: *mut RawLane, now_ns: u64, from_ns: u64, to_ns: u64);
    fn lane_times(lane: *const RawLane) -> u64;
    fn lane_outage_dropped(lane: *const RawLane) -> u64;
    fn lane_report(lane: *const RawLane) -> Report;
    fn lane_arrivals(lane: *const RawLane) -> *const u64;
    fn lane_verdicts(lane: *const RawLane, packets: *mut u64) -> *const u8;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            rate_bps: 8_000_000,
            delay_ns: 1_000,
            queue: Queue::Packets(2),
            codel: false,
            losses: Losses::NONE,
            schedule: None,
            jitter: None,
            reorder: false,
        }
    }

    /// 58 + 42 bytes at 1 byte a µs.
    #[test]
    fn a_datagram_leaves_after_its_bytes_on_the_link_and_the_delay() {
        let mut lane = Lane::default();
        lane.begin(&settings()).unwrap();
        assert!(lane.send(&[7; 58], 5, 10));
        assert_eq!(lane.next_exit(), Some(10 + 100_000 + 1_000));
        assert_eq!(lane.receive(101_009), None);
        assert_eq!(lane.receive(101_010), Some(Exit { tag: 5, payload: &[7; 58], lost: false }));
        assert_eq!((lane.next_exit(), lane.verdicts()), (None, &[0][..]));
    }

    /// As `tests/topologies/law_of_jitter.py` says, for a mean of 1 ms and the seed 7.
    #[test]
    fn noise_is_that_of_the_law_and_lets_datagrams_overtake_where_they_may() {
        let laws = [
            (JitterLaw::Uniform, [779_659, 33_576, 1_801_521]),
            (JitterLaw::Normal, [431_826, 979_911, 1_593_858]),
            (JitterLaw::Pareto, [756_844, 5_821_326, 72_790]),
        ];
        for (law, noise) in laws {
            for reorder in [false, true] {
                let jitter = Some(Jitter { law, mean_ns: 1_000_000, seed: 7 });
                let mut lane = Lane::default();
                lane.begin(&Settings { jitter, reorder, queue: Queue::Packets(9), ..settings() }).unwrap();
                (0..3).for_each(|tag| assert!(lane.send(&[0; 58], tag, 0)));
                let mut due: Vec<_> = (0..3).map(|n| ((n + 1) * 100_000 + 1_000 + noise[n as usize], n)).collect();
                if reorder {
                    due.sort_unstable();
                } else {
                    (1..3).for_each(|n| due[n].0 = due[n].0.max(due[n - 1].0));
                }
                for (at_ns, tag) in due {
                    assert_eq!(lane.next_exit(), Some(at_ns));
                    assert_eq!(lane.receive(at_ns).map(|exit| exit.tag), Some(tag));
                }
            }
        }
    }

    #[test]
    fn a_trial_begins_with_nothing_of_the_one_before() {
        let mut lane = Lane::default();
        let pattern = Pattern { bits: vec![0b101], packets: 3, repeats: true, slot_ns: 0, seed: 0 };
        for losses in [Losses::Pattern(pattern), Losses::NONE] {
            lane.begin(&Settings { losses: losses.clone(), ..settings() }).unwrap();
            for n in 0..5 {
                lane.send(&[0; 58], n, 1_000_000 * n);
            }
            // Frames that leave in one call, and one that stays.
            while lane.receive(4_000_000).is_some() {}
            let report = lane.report();
            let lost = if losses == Losses::NONE { 0 } else { 3 };
            assert_eq!((report.frames_in, report.frames_out, report.dropped, report.in_flight), (5, 4, lost, 1));
            assert_eq!(lane.verdicts(), [if losses == Losses::NONE { 0 } else { 0b1101 }]);
        }
    }

    #[test]
    fn settings_that_are_no_link_are_refused_by_name() {
        let cases = [
            (Settings { rate_bps: 0, ..settings() }, "rate_bps: 0"),
            (Settings { delay_ns: u64::MAX, ..settings() }, "delay_ns: 18446744073709551615"),
            (Settings { queue: Queue::Bytes(0), ..settings() }, "queue_bytes: 0"),
            (
                Settings { jitter: Some(Jitter { law: JitterLaw::Normal, mean_ns: 0, seed: 0 }), ..settings() },
                "jitter.mean_ns: 0",
            ),
            (
                Settings {
                    losses: Losses::Model(Thresholds {
                        seed: 0,
                        loss_good: (1 << 32) + 1,
                        loss_bad: 0,
                        good_to_bad: 0,
                        bad_to_good: 0,
                        good_us: 0,
                        bad_us: 0,
                    }),
                    ..settings()
                },
                "loss_good: 4294967297",
            ),
            (
                Settings {
                    losses: Losses::Pattern(Pattern { bits: vec![0], packets: 9, repeats: false, slot_ns: 0, seed: 0 }),
                    ..settings()
                },
                "pattern: 1 bytes",
            ),
        ];
        for (settings, why) in cases {
            assert!(Lane::default().begin(&settings).unwrap_err().starts_with(why), "{why}");
        }
    }
}
