//! A direction of the emulated link in virtual time, with the losses behind it: `quic-impls/lane`, which is written in
//! C and shared by all simulators.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::ptr::NonNull;
use std::slice;

/// The largest payload of a datagram over a link with an MTU of 1500 bytes.
const PAYLOAD_MAX: usize = 1472;

/// Bytes that a datagram has on the link besides its payload, over IPv4 and over IPv6.
pub const OVERHEADS: [u64; 2] = [42, 62];

/// The verdicts of so many packets are recorded.
const RECORDED: u64 = 1 << 20;

/// Room for the text of counters.
const COUNTED: usize = 512;

const NEVER: u64 = u64::MAX;

/// Counters of a direction.
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
    /// Sent while it was out.
    pub outage_dropped: u64,
    pub max_queue_bytes: u64,
    pub max_queue_packets: u64,
    /// Lost behind the link, of `frames_out`.
    pub dropped: u64,
    pub conserved: bool,
}

/// A datagram that has left the link.
#[derive(Debug, PartialEq, Eq)]
pub struct Exit<'a> {
    /// The tag with which it was sent.
    pub tag: u64,
    pub payload: &'a [u8],
    /// Its ECN codepoint, as it came out.
    pub ecn: u8,
    /// Nobody receives it.
    pub lost: bool,
}

/// A direction of the link. It is made once, and used for one trial after another.
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
    /// Begins a trial over the link and with the losses that a text describes. All that was in the lane, counted or
    /// recorded is gone.
    ///
    /// # Errors
    /// In one line, why the text is refused.
    pub fn begin(&mut self, text: &str) -> Result<(), String> {
        let text = CString::new(text).map_err(|_| "a text has a zero in it".to_owned())?;
        // SAFETY: the lane is ours, the text ends with a zero, and so does the refusal, which is copied.
        unsafe {
            let refusal = lane_begin(self.raw.as_ptr(), text.as_ptr());
            if refusal.is_null() { Ok(()) } else { Err(CStr::from_ptr(refusal).to_string_lossy().into_owned()) }
        }
    }

    /// Sends a datagram with its ECN codepoint, at a time that never decreases. False when the link drops it.
    pub fn send(&mut self, payload: &[u8], tag: u64, ecn: u8, now_ns: u64) -> bool {
        let length = u32::try_from(payload.len()).expect("a datagram has at most 64 KiB");
        // SAFETY: the lane is ours, and the payload has that length.
        unsafe { lane_send(self.raw.as_ptr(), payload.as_ptr(), length, tag, ecn, now_ns) }
    }

    /// Returns when the next datagram leaves, if there is one.
    pub fn next_exit(&self) -> Option<u64> {
        // SAFETY: the lane is ours.
        match unsafe { lane_next_exit(self.raw.as_ptr()) } {
            NEVER => None,
            time => Some(time),
        }
    }

    /// The next datagram that has left at a time.
    pub fn receive(&mut self, now_ns: u64) -> Option<Exit<'_>> {
        let mut exit = RawExit { at_ns: 0, tag: 0, length: 0, lost: false, ecn: 0 };
        // SAFETY: the lane is ours, and there is room for the largest payload.
        let left = unsafe { lane_receive(self.raw.as_ptr(), now_ns, self.payload.as_mut_ptr(), &mut exit) };
        left.then(|| Exit {
            tag: exit.tag,
            payload: &self.payload[..exit.length as usize],
            ecn: exit.ecn,
            lost: exit.lost,
        })
    }

    /// The first client starts at a time, since when a schedule and an outage count.
    pub fn start(&mut self, now_ns: u64) {
        // SAFETY: the lane is ours.
        unsafe { lane_start(self.raw.as_ptr(), now_ns) }
    }

    /// Begins to watch whether a transfer has filled the lane.
    pub fn begin_filling(&mut self, full_share: f64, window_ns: u64) {
        // SAFETY: the lane is ours.
        unsafe { lane_begin_filling(self.raw.as_ptr(), full_share, window_ns) }
    }

    /// Whether it has carried its full share for the window, at a time that never decreases.
    pub fn is_full(&mut self, now_ns: u64) -> bool {
        // SAFETY: the lane is ours.
        unsafe { lane_is_full(self.raw.as_ptr(), now_ns) }
    }

    /// A hash of when each datagram was sent and when it left, and of its length.
    pub fn times(&self) -> u64 {
        // SAFETY: the lane is ours.
        unsafe { lane_times(self.raw.as_ptr()) }
    }

    /// Counters of effects that most links lack, those above 0, by the names that the harness has for them.
    pub fn counted(&self) -> BTreeMap<String, u64> {
        let mut bytes = [0u8; COUNTED];
        // SAFETY: the lane is ours, and there is room for the text.
        unsafe { lane_counted(self.raw.as_ptr(), bytes.as_mut_ptr().cast()) }
        let text = CStr::from_bytes_until_nul(&bytes).expect("C ends a text with a zero").to_string_lossy();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(name, count)| (name.to_owned(), count.parse().expect("C writes a number"))).collect()
    }

    pub fn report(&self) -> Report {
        // SAFETY: the lane is ours.
        unsafe { lane_report(self.raw.as_ptr()) }
    }

    /// Returns when each of these packets left, in nanoseconds since the first; None if their losses do not depend on
    /// it.
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

// quic-impls/lane/lane.h

#[repr(C)]
#[derive(Debug)]
struct RawLane {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawExit {
    at_ns: u64,
    tag: u64,
    length: u32,
    lost: bool,
    ecn: u8,
}

unsafe extern "C" {
    fn lane_new() -> *mut RawLane;
    fn lane_free(lane: *mut RawLane);
    fn lane_begin(lane: *mut RawLane, text: *const c_char) -> *const c_char;
    fn lane_send(lane: *mut RawLane, payload: *const u8, length: u32, tag: u64, ecn: u8, now_ns: u64) -> bool;
    fn lane_next_exit(lane: *const RawLane) -> u64;
    fn lane_receive(lane: *mut RawLane, now_ns: u64, payload: *mut u8, exit: *mut RawExit) -> bool;
    fn lane_start(lane: *mut RawLane, now_ns: u64);
    fn lane_begin_filling(lane: *mut RawLane, full_share: f64, window_ns: u64);
    fn lane_is_full(lane: *mut RawLane, now_ns: u64) -> bool;
    fn lane_times(lane: *const RawLane) -> u64;
    fn lane_report(lane: *const RawLane) -> Report;
    fn lane_counted(lane: *const RawLane, text: *mut c_char);
    fn lane_arrivals(lane: *const RawLane) -> *const u64;
    fn lane_verdicts(lane: *const RawLane, packets: *mut u64) -> *const u8;
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "rate_bps 8000000\ndelay_ns 1000\n";

    /// A queue for two.
    fn small() -> String {
        format!("{LINK}queue_packets 2\n")
    }

    /// 58 + 42 bytes at 1 byte a µs.
    #[test]
    fn a_datagram_leaves_after_its_bytes_on_the_link_and_the_delay() {
        let mut lane = Lane::default();
        lane.begin(&small()).unwrap();
        assert!(lane.send(&[7; 58], 5, 0, 10));
        assert_eq!(lane.next_exit(), Some(10 + 100_000 + 1_000));
        assert_eq!(lane.receive(101_009), None);
        assert_eq!(lane.receive(101_010), Some(Exit { tag: 5, payload: &[7; 58], ecn: 0, lost: false }));
        assert_eq!((lane.next_exit(), lane.verdicts()), (None, &[0][..]));
    }

    /// The values are those of `tests/topologies/law_of_jitter.py` for a mean of 1 ms and the seed 7.
    #[test]
    fn noise_is_that_of_the_law_and_lets_datagrams_overtake_where_they_may() {
        let laws = [
            ("uniform", [779_659, 33_576, 1_801_521]),
            ("normal", [431_826, 979_911, 1_593_858]),
            ("pareto", [756_844, 5_821_326, 72_790]),
        ];
        for (law, noise) in laws {
            for reorder in [false, true] {
                let mut lane = Lane::default();
                let text = format!("{LINK}queue_packets 9\njitter {law} 1000000 7\nreorder {reorder}\n");
                lane.begin(&text).unwrap();
                (0..3).for_each(|tag| assert!(lane.send(&[0; 58], tag, 0, 0)));
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
        for (losses, lost, verdicts) in [("model pattern\ndrop 0,2\nrepeat true\n", 3, 0b1101), ("", 0, 0)] {
            lane.begin(&(small() + losses)).unwrap();
            for n in 0..5 {
                lane.send(&[0; 58], n, 0, 1_000_000 * n);
            }
            // Frames that leave in one call, and one that stays.
            while lane.receive(4_000_000).is_some() {}
            let report = lane.report();
            assert_eq!((report.frames_in, report.frames_out, report.dropped, report.in_flight), (5, 4, lost, 1));
            assert_eq!(lane.verdicts(), [verdicts]);
        }
    }

    /// tests/topologies/test_written.py has all refused texts.
    #[test]
    fn a_text_that_is_no_link_is_refused_in_a_line() {
        for (text, why) in [
            ("rate_bps 0\n", "rate_bps 0: must be a whole number from 1000 to 100000000000"),
            (LINK, "no limit is given; a queue has one limit: queue_bytes, queue_packets or queue_ns"),
            ("model ge\np 2\n", "p 2: must be a probability, from 0 to 1"),
            ("a\0b", "a text has a zero in it"),
        ] {
            assert_eq!(Lane::default().begin(text), Err(why.into()));
        }
    }
}
