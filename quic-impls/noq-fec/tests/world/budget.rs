//! The cost of packets for the end that receives them, in time of its processor, against the bytes that they have.
//!
//! No test asserts speed. This is for attacks: an honest packet of 1,200 bytes takes some 10 µs, and may take a thousand times as long.

use std::fmt::Debug;
use std::time::Duration;

/// Time for each byte of a packet, or of all packets together.
const BUDGET_OF_BYTE: Duration = Duration::from_micros(10);

/// Time for interruptions of the processor.
const BASE: Duration = Duration::from_millis(20);

/// The cost of a connection's packets.
#[derive(Debug, Default, Clone, Copy)]
pub struct Cost {
    pub bytes: u64,
    pub time: Duration,
    /// The costliest packet, for its size.
    pub costliest: (u64, Duration),
}

impl Cost {
    /// Takes in what a packet has cost.
    pub fn add(&mut self, bytes: u64, time: Duration) {
        self.bytes += bytes;
        self.time += time;
        let excess = |(bytes, time): (u64, Duration)| time.as_nanos() as i128 - budget(bytes).as_nanos() as i128;
        if excess((bytes, time)) > excess(self.costliest) {
            self.costliest = (bytes, time);
        }
    }

    pub fn is_within_budget(&self) -> bool {
        let (bytes, time) = self.costliest;
        time <= budget(bytes) && self.time <= budget(self.bytes)
    }
}

fn budget(bytes: u64) -> Duration {
    BASE + Duration::from_nanos(BUDGET_OF_BYTE.as_nanos() as u64 * bytes)
}

/// Returns the time of a processor that this thread has used.
pub fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0, "every Linux has this clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the outcome of a run whose packets cost both ends no more than they may. Other work of the machine can only
/// add to it, so that one run of three is enough.
pub fn within_budget<T: Debug>(costs: impl Fn(&T) -> [Cost; 2], run: impl Fn() -> T) -> T {
    let mut outcome = run();
    for _ in 0..2 {
        if costs(&outcome).iter().all(Cost::is_within_budget) {
            break;
        }
        outcome = run();
    }
    assert!(costs(&outcome).iter().all(Cost::is_within_budget), "{:?}: {outcome:?}", costs(&outcome));
    outcome
}
