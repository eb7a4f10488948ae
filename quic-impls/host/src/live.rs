//! The workload `live`: a live broadcast of tracks, whose frames are due at given times and belong to groups. This module has
//! the timetable that both ends know, the check of frames that arrive, and the series of their times. Each implementation decides
//! how groups travel.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::content;
use crate::contract::{Direction, Refused, Result, Role, Values, wrong};
use crate::times::{self, Timetable};

/// The name of the workload, and of its series.
pub const NAME: &str = "live";

const MOST_TRACKS: usize = 16;
const MOST_FRAMES: usize = 500_000;
const LARGEST_FRAME: u64 = 16 << 20;
/// Largest n of a rate of repair.
const MOST_OF_REPAIR: u64 = 255;
/// A day.
const LATEST_US: u64 = 86_400_000_000;

/// Time after the last frame of a track of datagrams for which its end waits: the end would overtake datagrams.
const DRAIN: Duration = Duration::from_secs(1);

/// Time for which datagrams of moq-transport wait before the first: they would overtake the answer to the subscription, which names
/// their track.
const LEAD: Duration = Duration::from_secs(1);

/// A broadcast as both ends know it.
#[derive(Debug)]
pub struct Live {
    pub protocol: Protocol,
    pub direction: Direction,
    /// The age from which a group is given up.
    pub max_age: Duration,
    /// The time within which frames should arrive; a controller may use it.
    pub deadline: Duration,
    /// Most bytes that the sender hands to QUIC before they are acknowledged.
    pub send_buffer: u64,
    pub tracks: Vec<Track>,
}

/// The version of Media over QUIC that both ends speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// draft-lcurley-moq-lite-06.
    Lite,
    /// draft-ietf-moq-transport-22.
    Transport,
}

impl Protocol {
    /// Returns its name in TLS.
    pub fn alpn(self) -> &'static str {
        match self {
            Self::Lite => "moq-lite-06",
            Self::Transport => "moqt-22",
        }
    }
}

#[derive(Debug)]
pub struct Track {
    pub name: String,
    /// The highest is sent first.
    pub priority: u8,
    pub delivery: Delivery,
    /// The rate of a track of repair symbols beside it, if there is one.
    pub repair: Option<Rate>,
    pub frames: Vec<Frame>,
}

/// After each k parts there are n - k repair symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub n: usize,
    pub k: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// A stream for each group.
    Group,
    /// A stream for each frame.
    Frame,
    /// A datagram for each frame.
    Datagram,
    /// A datagram for each part of a frame.
    Parts,
}

impl Delivery {
    /// Whether what is lost stays lost.
    pub fn is_by_datagrams(self) -> bool {
        matches!(self, Self::Datagram | Self::Parts)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Since the sender began.
    pub due: Duration,
    pub bytes: u64,
    /// Place in the content at which it begins.
    begin: u64,
    /// The unit that it travels in, and its place there: a stream's group, or a frame alone.
    pub sequence: u64,
    pub index: u64,
}

/// A frame of a track, by the numbers of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub track: usize,
    pub frame: usize,
}

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {} of track {}", self.frame, self.track)
    }
}

/// Times at which frames were handed over or arrived on a connection.
pub type Log = times::Log<Place>;

/// A connection's contribution to the series.
pub type Recorded<'a> = times::Recorded<'a, Place>;

impl Live {
    /// Takes it out of the values of a workload.
    pub fn parse(values: &mut Values) -> Result<Self> {
        let protocol = protocol(&values.take("protocol"))?;
        let direction = values.choice("direction", &[("down", Direction::Download), ("up", Direction::Upload)])?;
        let max_age = Duration::from_millis(values.integer("max_age_ms", 0, 3_600_000)?);
        let deadline_us = values.integer("deadline_us", 1, 3_600_000_000)?;
        let send_buffer = values.integer("send_buffer_bytes", 1 << 12, 1 << 30)?;
        let tracks = tracks(&values.take("tracks"))?;
        if protocol == Protocol::Transport && tracks.iter().any(|track| track.priority != tracks[0].priority) {
            return wrong("workload.tracks: with moq-transport-22 all tracks must have one priority");
        }
        Ok(Self { protocol, direction, max_age, deadline: Duration::from_micros(deadline_us), send_buffer, tracks })
    }

    pub fn sender(&self) -> Role {
        self.direction.sender()
    }

    /// Returns the frame of a place.
    pub fn frame(&self, place: Place) -> &Frame {
        &self.tracks[place.track].frames[place.frame]
    }

    /// Returns how long after the last subscription the sender begins.
    pub fn lead(&self) -> Duration {
        let has_datagrams = self.tracks.iter().any(|track| track.delivery.is_by_datagrams());
        if has_datagrams && self.protocol == Protocol::Transport { LEAD } else { Duration::ZERO }
    }

    /// Returns the number of frames of all tracks.
    pub fn frames(&self) -> usize {
        self.tracks.iter().map(|track| track.frames.len()).sum()
    }

    /// Returns the content of a frame.
    pub fn content(&self, place: Place, content_seed: u64) -> Vec<u8> {
        let frame = self.frame(place);
        let mut bytes = vec![0; frame.bytes as usize];
        content::fill(content_seed, frame.begin, &mut bytes);
        bytes
    }
}

impl Track {
    /// Returns when it ends, since the sender began.
    pub fn lasts(&self) -> Duration {
        let last = self.frames.last().expect("a track has frames").due;
        last + if self.delivery.is_by_datagrams() { DRAIN } else { Duration::ZERO }
    }

    /// Returns the number of a frame, by what it travels in.
    pub fn number(&self, sequence: u64, index: u64) -> Option<usize> {
        let place = self.frames.binary_search_by_key(&(sequence, index), |frame| (frame.sequence, frame.index));
        place.ok()
    }
}

impl Display for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "live broadcast of {} frames", self.frames())
    }
}

impl Timetable for Live {
    const NAME: &'static str = NAME;
    const COLUMNS: &'static str = "track,frame";
    type Part = Place;

    fn sender(&self) -> Role {
        self.sender()
    }

    fn due(&self, place: Place) -> Duration {
        self.frame(place).due
    }

    fn bytes(&self, place: Place) -> u64 {
        self.frame(place).bytes
    }

    fn name(&self, place: Place, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{},{}", place.track, place.frame)
    }
}

/// Reads the protocol; where none is named, it is moq-lite.
fn protocol(value: &Value) -> Result<Protocol> {
    match value.as_str() {
        Some("moq-lite-06") => Ok(Protocol::Lite),
        Some("moq-transport-22") => Ok(Protocol::Transport),
        None if value.is_null() => Ok(Protocol::Lite),
        _ => wrong(format!("workload.protocol: {value:.40} is not one of moq-lite-06, moq-transport-22")),
    }
}

fn tracks(value: &Value) -> Result<Vec<Track>> {
    let rows = value.as_array().map_or(&[][..], Vec::as_slice);
    if rows.is_empty() || rows.len() > MOST_TRACKS {
        return wrong(format!("workload.tracks: there are {} tracks, and must be 1 to {MOST_TRACKS}", rows.len()));
    }
    let (mut tracks, mut begin) = (Vec::<Track>::new(), 0);
    for (number, row) in rows.iter().enumerate() {
        let refused = |what: String| Refused::Wrong(format!("workload.tracks: track {number}: {what}"));
        let Value::Object(values) = row.clone() else {
            return Err(refused(format!("{row:.40} is not an object")));
        };
        let mut values = Values::new("tracks", values);
        let track = track(&mut values, &mut begin).and_then(|track| values.end().map(|()| track));
        let track = track.map_err(|what| refused(what.to_string()))?;
        if tracks.iter().any(|other| other.name == track.name) {
            return Err(refused(format!("there are two of the name {:?}", track.name)));
        }
        tracks.push(track);
    }
    match tracks.iter().map(|track| track.frames.len()).sum::<usize>() {
        all if all > MOST_FRAMES => wrong(format!("workload.tracks: {all} frames in all are more than {MOST_FRAMES}")),
        _ => Ok(tracks),
    }
}

fn track(values: &mut Values, begin: &mut u64) -> Result<Track> {
    let name = match values.take("name") {
        Value::String(name) if !name.is_empty() && name.len() <= 64 => name,
        other => return wrong(format!("name: {other} is not a text of 1 to 64 bytes")),
    };
    let priority = values.integer("priority", 0, 255)? as u8;
    let deliveries = [
        ("group", Delivery::Group),
        ("frame", Delivery::Frame),
        ("datagram", Delivery::Datagram),
        ("parts", Delivery::Parts),
    ];
    let delivery = values.choice("delivery", &deliveries)?;
    let repair = repair(&values.take("repair"), delivery)?;
    let frames = frames(&values.take("frames"), delivery, begin)?;
    Ok(Track { name, priority, delivery, repair, frames })
}

/// Reads the rate of a track's repair symbols, if it has one.
fn repair(value: &Value, delivery: Delivery) -> Result<Option<Rate>> {
    if value.is_null() {
        return Ok(None);
    }
    let pair = value.as_array().filter(|pair| pair.len() == 2);
    let pair = pair.and_then(|of| Some((of[0].as_u64()?, of[1].as_u64()?)));
    match pair {
        Some((n, k)) if k > 0 && k < n && n <= MOST_OF_REPAIR => match delivery {
            Delivery::Parts => Ok(Some(Rate { n: n as usize, k: k as usize })),
            _ => wrong("repair: is for parts in datagrams: delivery must be \"parts\""),
        },
        _ => wrong(format!("repair: {value:.40} is not [n, k] with 0 < k < n <= {MOST_OF_REPAIR}")),
    }
}

/// Reads rows of microseconds, bytes, and 1 where a group begins, otherwise 0.
fn frames(value: &Value, delivery: Delivery, begin: &mut u64) -> Result<Vec<Frame>> {
    let rows = value.as_array().map_or(&[][..], Vec::as_slice);
    if rows.is_empty() {
        return wrong("frames: there are none");
    }
    let (mut frames, mut before, mut sequence, mut index) = (Vec::<Frame>::with_capacity(rows.len()), 0, 0, 0);
    for (number, row) in rows.iter().enumerate() {
        let triple = row.as_array().filter(|triple| triple.len() == 3);
        let triple = triple.and_then(|of| Some((of[0].as_u64()?, of[1].as_u64()?, of[2].as_u64()?)));
        let Some((due_us, bytes, begins @ (0 | 1))) = triple else {
            return wrong(format!("frame {number}: {row:.40} is not microseconds, bytes, and 0 or 1"));
        };
        if due_us < before || due_us > LATEST_US {
            return wrong(format!("frame {number}: {due_us} us is not in {before} to {LATEST_US}"));
        }
        if bytes == 0 || bytes > LARGEST_FRAME {
            return wrong(format!("frame {number}: {bytes} bytes are not in 1 to {LARGEST_FRAME}"));
        }
        if number == 0 && begins == 0 {
            return wrong("frame 0: no group begins there");
        }
        if number > 0 {
            (sequence, index) = match delivery == Delivery::Group && begins == 0 {
                true => (sequence, index + 1),
                false => (sequence + 1, 0),
            };
        }
        frames.push(Frame { due: Duration::from_micros(due_us), bytes, begin: *begin, sequence, index });
        (before, *begin) = (due_us, *begin + bytes);
    }
    Ok(frames)
}

/// The receiver of frames: it verifies them against the seed, and records when they came.
#[derive(Debug)]
pub struct Receiver {
    live: Arc<Live>,
    content_seed: u64,
    present: BTreeSet<Place>,
    /// Time of the last frame that came.
    last_news: Option<Instant>,
    /// Time at which the sender had ended all tracks.
    ended: Option<Instant>,
    pub log: Log,
    expected: Vec<u8>,
}

impl Receiver {
    pub fn new(live: Arc<Live>, content_seed: u64) -> Self {
        Self {
            live,
            content_seed,
            present: BTreeSet::new(),
            last_news: None,
            ended: None,
            log: Log::default(),
            expected: Vec::new(),
        }
    }

    /// Takes in a frame, by what it travelled in. An error is one line.
    pub fn take(
        &mut self,
        now: Instant,
        track: usize,
        sequence: u64,
        index: u64,
        bytes: &[u8],
    ) -> std::result::Result<(), String> {
        let Some(frame) = self.live.tracks[track].number(sequence, index) else {
            return Err(format!("track {track}: there is no frame {index} in group {sequence}"));
        };
        let place = Place { track, frame };
        let right = self.live.frame(place);
        if bytes.len() as u64 != right.bytes {
            return Err(format!("{place}: {} bytes, right are {}", bytes.len(), right.bytes));
        }
        if let Some(byte) = content::difference(self.content_seed, right.begin, bytes, &mut self.expected) {
            return Err(format!("{place}: byte {byte} is not that of the content"));
        }
        if !self.present.insert(place) {
            return Err(format!("{place} came twice"));
        }
        self.last_news = Some(now);
        self.log.add(now, place);
        Ok(())
    }

    /// The sender has ended all tracks.
    pub fn end(&mut self, now: Instant) {
        self.ended.get_or_insert(now);
    }

    /// Returns when nothing more is waited for: all frames are there, or the tracks have ended.
    pub fn done_at(&self) -> Option<Instant> {
        match self.present.len() == self.live.frames() {
            true => self.last_news,
            false => self.ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(workload: Value) -> std::result::Result<Live, String> {
        let Value::Object(values) = workload else { panic!("no object") };
        Live::parse(&mut Values::new("workload", values)).map_err(|refused| refused.to_string())
    }

    fn workload(delivery: &str, frames: Value) -> Value {
        json!({"direction": "down", "max_age_ms": 500, "deadline_us": 100_000, "send_buffer_bytes": 65536,
               "tracks": [{"name": "video", "priority": 1, "delivery": delivery, "frames": frames}]})
    }

    fn repaired(delivery: &str, rate: Value) -> Value {
        let mut workload = workload(delivery, json!([[0, 1, 1]]));
        workload["tracks"][0]["repair"] = rate;
        workload
    }

    #[test]
    fn a_track_of_parts_has_the_rate_of_its_repair_or_none() {
        let rate = |workload| parsed(workload).unwrap().tracks[0].repair;
        assert_eq!(rate(repaired("parts", json!([21, 20]))), Some(Rate { n: 21, k: 20 }));
        assert_eq!(rate(workload("parts", json!([[0, 1, 1]]))), None);
    }

    #[test]
    fn frames_of_a_group_travel_together_and_others_alone() {
        let rows = json!([[0, 10, 1], [5, 10, 0], [9, 10, 1], [9, 10, 0]]);
        let travel = |delivery| {
            let live = parsed(workload(delivery, rows.clone())).unwrap();
            live.tracks[0].frames.iter().map(|frame| (frame.sequence, frame.index)).collect::<Vec<_>>()
        };
        assert_eq!(travel("group"), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(travel("frame"), [(0, 0), (1, 0), (2, 0), (3, 0)]);
        assert_eq!(travel("datagram"), travel("frame"));
        assert_eq!(travel("parts"), travel("frame"));
    }

    #[test]
    fn what_is_wrong_in_a_broadcast_is_named() {
        let two = json!([{"name": "a", "priority": 1, "delivery": "group", "frames": [[0, 1, 1]]},
                         {"name": "a", "priority": 1, "delivery": "group", "frames": [[0, 1, 1]]}]);
        let mut twins = workload("group", json!([]));
        twins["tracks"] = two;
        let mut late = workload("group", json!([[0, 1, 1]]));
        late["deadline_us"] = json!(0);
        let mut ranked = workload("group", json!([[0, 1, 1]]));
        ranked["protocol"] = json!("moq-transport-22");
        let of_rank =
            |rank: u8| json!({"name": rank.to_string(), "priority": rank, "delivery": "group", "frames": [[0, 1, 1]]});
        ranked["tracks"] = json!([of_rank(1), of_rank(2)]);
        let mut foreign = workload("group", json!([[0, 1, 1]]));
        foreign["protocol"] = json!("moq-transport-14");
        for (workload, why) in [
            (workload("group", json!([])), "track 0: frames: there are none"),
            (workload("group", json!([[0, 1, 0]])), "frame 0: no group begins there"),
            (workload("group", json!([[0, 1, 2]])), "frame 0: [0,1,2] is not microseconds, bytes, and 0 or 1"),
            (workload("group", json!([[5, 1, 1], [4, 1, 0]])), "frame 1: 4 us is not in 5 to"),
            (workload("group", json!([[0, 0, 1]])), "frame 0: 0 bytes"),
            (workload("file", json!([[0, 1, 1]])), "tracks.delivery: \"file\" is not one of group"),
            (repaired("group", json!([21, 20])), "repair: is for parts in datagrams: delivery must be"),
            (repaired("parts", json!([20, 20])), "repair: [20,20] is not [n, k] with 0 < k < n <= 255"),
            (repaired("parts", json!([256, 20])), "repair: [256,20] is not"),
            (repaired("parts", json!([1, 0])), "repair: [1,0] is not"),
            (repaired("parts", json!("21:20")), "repair: \"21:20\" is not"),
            (twins, "track 1: there are two of the name \"a\""),
            (late, "deadline_us: 0 is not an integer in 1 to"),
            (ranked, "with moq-transport-22 all tracks must have one priority"),
            (foreign, "workload.protocol: \"moq-transport-14\" is not one of moq-lite-06, moq-transport-22"),
        ] {
            let refused = parsed(workload).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn a_receiver_takes_each_frame_once_and_refuses_what_no_sender_has() {
        let live = Arc::new(parsed(workload("group", json!([[0, 10, 1], [5, 7, 0], [9, 10, 1]]))).unwrap());
        let mut receiver = Receiver::new(live.clone(), 7);
        let content = |frame| live.content(Place { track: 0, frame }, 7);
        let now = Instant::now();
        for (sequence, index, bytes, why) in [
            (2, 0, content(0), "there is no frame 0 in group 2"),
            (0, 0, content(1), "7 bytes, right are 10"),
            (1, 0, content(0), "byte 0 is not that of the content"),
        ] {
            assert!(receiver.take(now, 0, sequence, index, &bytes).unwrap_err().contains(why));
        }
        assert_eq!(receiver.take(now, 0, 0, 0, &content(0)), Ok(()));
        assert!(receiver.take(now, 0, 0, 0, &content(0)).unwrap_err().contains("came twice"));
        assert_eq!(receiver.take(now, 0, 1, 0, &content(2)), Ok(()));
        assert_eq!(receiver.done_at(), None);
        assert_eq!(receiver.take(now, 0, 0, 1, &content(1)), Ok(()));
        assert_eq!(receiver.done_at(), Some(now));
    }

    #[test]
    fn datagrams_of_moq_transport_wait_a_second_for_the_answer_to_the_subscription() {
        let lead = |protocol, delivery| {
            let mut workload = workload(delivery, json!([[0, 10, 1]]));
            workload["protocol"] = json!(protocol);
            parsed(workload).unwrap().lead()
        };
        for delivery in ["datagram", "parts"] {
            assert_eq!(lead("moq-transport-22", delivery), Duration::from_secs(1));
            assert_eq!(lead("moq-lite-06", delivery), Duration::ZERO);
        }
        assert_eq!(lead("moq-transport-22", "group"), Duration::ZERO);
    }

    #[test]
    fn a_track_of_datagrams_ends_a_second_after_its_last_frame() {
        let lasts = |delivery| parsed(workload(delivery, json!([[0, 10, 1], [5, 7, 0]]))).unwrap().tracks[0].lasts();
        assert_eq!((lasts("group"), lasts("datagram")), (Duration::from_micros(5), Duration::from_micros(1_000_005)));
        assert_eq!(lasts("parts"), lasts("datagram"));
    }
}
