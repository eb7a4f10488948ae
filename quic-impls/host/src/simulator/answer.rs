//! The outcome of a trial. Its keys are always in the same order.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Serialize, Serializer};

use crate::contract::Metrics;
use crate::lane::Lane;

#[derive(Serialize)]
pub struct Answer {
    pub number: u64,
    /// Reports by name, in the order of the pairs, and in each the client first. An endpoint that was not started is
    /// omitted.
    #[serde(serialize_with = "in_order")]
    pub endpoints: Vec<(&'static str, EndpointReport)>,
    pub timed_out: bool,
    pub background_lasted: bool,
    pub competition: Option<Competition>,
    pub links: BTreeMap<String, LinkReport>,
    /// Time from the client's start to its end, or to its time limit; None if it was not started.
    pub client_s: Option<f64>,
    pub virtual_s: f64,
}

fn in_order<S: Serializer>(endpoints: &[(&'static str, EndpointReport)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(endpoints.iter().map(|(name, report)| (name, report)))
}

#[derive(Debug, Default, Serialize)]
pub struct EndpointReport {
    pub ready: bool,
    pub exit_code: Option<u8>,
    pub metrics: Option<Metrics>,
    pub stderr: String,
}

impl EndpointReport {
    pub fn complain(&mut self, line: &str) {
        self.stderr += line;
        self.stderr.push('\n');
    }
}

#[derive(Debug, Serialize)]
pub struct Competition {
    pub filling_s: f64,
    /// Rate at which data came in at each client while the foreground ran; None if it did not.
    pub foreground_mbps: Option<f64>,
    pub background_mbps: Option<f64>,
}

#[derive(Serialize)]
pub struct LinkReport {
    pub up: DirectionReport,
    pub down: DirectionReport,
}

#[derive(Serialize)]
pub struct DirectionReport {
    frames_in: u64,
    bytes_in: u64,
    frames_out: u64,
    bytes_out: u64,
    queue_dropped: u64,
    oversize_dropped: u64,
    in_flight: u64,
    max_queue_bytes: u64,
    max_queue_packets: u64,
    dropped: u64,
    outage_dropped: u64,
    /// Counters of effects that most links lack.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    counted: BTreeMap<String, u64>,
    conserved: bool,
    /// Number of judged packets: all that left.
    packets: u64,
    bitmap: String,
    /// Time at which each packet of the bitmap left, as 8 bytes each, little-endian: in nanoseconds since the first.
    /// Only present if losses depend on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    arrivals: Option<String>,
    /// A hash of when packets entered and left, in hexadecimal.
    times: String,
}

impl DirectionReport {
    pub fn of(lane: &Lane) -> Self {
        let report = lane.report();
        Self {
            frames_in: report.frames_in,
            bytes_in: report.bytes_in,
            frames_out: report.frames_out,
            bytes_out: report.bytes_out,
            queue_dropped: report.queue_dropped,
            oversize_dropped: report.oversize_dropped,
            in_flight: report.in_flight,
            max_queue_bytes: report.max_queue_bytes,
            max_queue_packets: report.max_queue_packets,
            dropped: report.dropped,
            outage_dropped: report.outage_dropped,
            counted: lane.counted(),
            conserved: report.conserved,
            packets: report.frames_out,
            bitmap: BASE64_STANDARD.encode(lane.verdicts()),
            arrivals: lane.arrivals().map(|times| {
                BASE64_STANDARD.encode(times.iter().flat_map(|time| time.to_le_bytes()).collect::<Vec<u8>>())
            }),
            times: format!("{:016x}", lane.times()),
        }
    }
}
