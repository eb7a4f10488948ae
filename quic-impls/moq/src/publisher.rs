//! The sender of a broadcast: hands each frame to moq-net when it is due.

use std::sync::Arc;
use std::time::{Duration, Instant};

use host::live::{Delivery, Live, Log, Place, Protocol};
use moq_net::{Hop, Timescale, Timestamp, broadcast, group, origin, track};

use crate::parts;
use crate::repair::{self, Repairing};
use crate::tasks::Tasks;

/// The path of the broadcast.
pub const PATH: &str = "live";

/// moq-net's own time for which a publisher keeps groups, unless subscribers want them for longer.
const KEPT: Duration = Duration::from_secs(5);

pub struct Publisher {
    live: Arc<Live>,
    content_seed: u64,
    pub origin: origin::Producer,
    tracks: Vec<Producing>,
    /// Start of the timetable, once all tracks have been subscribed to.
    pub begun: Option<Instant>,
    pub log: Log,
    /// Most bytes of a part with its header.
    longest: usize,
    /// Datagrams handed over; and of these repair symbols, and their bytes.
    pub datagrams: u64,
    pub repair_sent: u64,
    pub repair_bytes: u64,
    /// It is announced as long as this is there.
    _broadcast: broadcast::Producer,
}

/// Returns the time for which a publisher or a relay keeps groups. moq-transport says nothing of what a subscriber wants: its
/// workload says it to the sender.
pub fn kept(live: &Live) -> Duration {
    match live.protocol {
        Protocol::Lite => KEPT.max(live.max_age),
        Protocol::Transport => live.max_age,
    }
}

struct Producing {
    track: track::Producer,
    next: usize,
    /// The track of its repair symbols, if it has one.
    repair: Option<(track::Producer, Repairing)>,
    /// The group that is being written to, and its number.
    group: Option<(u64, group::Producer)>,
    has_ended: bool,
}

impl Publisher {
    /// An error is one line.
    pub fn new(live: Arc<Live>, content_seed: u64, longest: usize, hop: Hop, tasks: &Tasks) -> Result<Self, String> {
        let refused = |error: moq_net::Error| format!("broadcast: {error}");
        let (origin, driver) = origin::Producer::new(origin::Config::new(hop));
        tasks.drive(driver);
        let broadcast = origin.create_broadcast(PATH).map_err(refused)?;
        let create = |of: &host::live::Track| {
            let info = track::Info::default().with_timescale(Timescale::MICRO).with_max_age(kept(&live));
            let create =
                |name: &str| broadcast.create_track(name, info.clone().with_priority(of.priority)).map_err(refused);
            let repair = match of.repair {
                Some(rate) => Some((create(&repair::name(&of.name))?, Repairing::new(rate))),
                None => None,
            };
            Ok(Producing { track: create(&of.name)?, next: 0, repair, group: None, has_ended: false })
        };
        let tracks = live.tracks.iter().map(create).collect::<Result<_, String>>()?;
        broadcast.announce(Default::default()).map_err(refused)?;
        Ok(Self {
            live,
            content_seed,
            origin,
            tracks,
            begun: None,
            log: Log::default(),
            longest,
            datagrams: 0,
            repair_sent: 0,
            repair_bytes: 0,
            _broadcast: broadcast,
        })
    }

    /// Begins once all tracks have been subscribed to.
    pub fn begin(&mut self, now: Instant) {
        if self.begun.is_none() && self.tracks.iter().all(Producing::has_subscriptions) {
            self.begun = Some(now + self.live.lead());
        }
    }

    /// Returns when the next frame is due, or a track ends.
    pub fn timeout(&self) -> Option<Instant> {
        let begun = self.begun?;
        let running = self.tracks.iter().zip(&self.live.tracks).filter(|(of, _)| !of.has_ended);
        let next =
            running.map(|(of, track)| track.frames.get(of.next).map_or_else(|| track.lasts(), |frame| frame.due));
        next.map(|due| begun + due).min()
    }

    /// Whether all frames have been handed over.
    pub fn is_done(&self) -> bool {
        self.tracks.iter().zip(&self.live.tracks).all(|(of, track)| of.next == track.frames.len())
    }

    /// Hands over what is due. An error is one line.
    pub fn publish(&mut self, now: Instant, tasks: &Tasks) -> Result<(), String> {
        let Some(begun) = self.begun else {
            return Ok(());
        };
        for (number, (of, track)) in self.tracks.iter_mut().zip(&self.live.tracks).enumerate() {
            while let Some(frame) = track.frames.get(of.next).filter(|frame| begun + frame.due <= now) {
                let place = Place { track: number, frame: of.next };
                let payload = self.live.content(place, self.content_seed);
                let at = Timestamp::from_scale(frame.due.as_micros() as u64, 1_000_000).expect("it is below a day");
                let written = match track.delivery {
                    Delivery::Datagram => {
                        self.datagrams += 1;
                        of.track.append_datagram(at, payload).map(drop)
                    }
                    Delivery::Parts => {
                        let repairs = of.append_parts(at, parts::cut(of.next, &payload, self.longest), tasks);
                        repairs.map(|sent| {
                            self.datagrams += sent.datagrams;
                            self.repair_sent += sent.repairs;
                            self.repair_bytes += sent.repair_bytes;
                        })
                    }
                    Delivery::Group | Delivery::Frame => of.write(frame.sequence, at, payload),
                };
                written.map_err(|error| format!("{place}: {error}"))?;
                self.log.add(now, place);
                of.next += 1;
            }
            if of.next == track.frames.len() && begun + track.lasts() <= now && !of.has_ended {
                of.has_ended = true;
                let ended = of.end_group().and_then(|()| of.finish());
                ended.map_err(|error| format!("track {}: {error}", track.name))?;
            }
        }
        Ok(())
    }
}

/// Datagrams of a frame.
#[derive(Default)]
struct Sent {
    datagrams: u64,
    repairs: u64,
    repair_bytes: u64,
}

impl Producing {
    fn has_subscriptions(&self) -> bool {
        let repair = self.repair.as_ref().map(|(track, _)| track);
        [Some(&self.track), repair].into_iter().flatten().all(|track| track.subscription().is_some())
    }

    /// Hands over the parts of a frame and their repair symbols. Each leaves before the next: moq-net keeps the last 64 of a track,
    /// and has no order between tracks.
    fn append_parts(
        &mut self,
        at: Timestamp,
        parts: impl Iterator<Item = Vec<u8>>,
        tasks: &Tasks,
    ) -> Result<Sent, moq_net::Error> {
        let mut sent = Sent::default();
        let mut parts = parts.peekable();
        while let Some(part) = parts.next() {
            let repairs = match &mut self.repair {
                Some((_, repairing)) => repairing.protect(&part, parts.peek().is_none()),
                None => Vec::new(),
            };
            self.track.append_datagram(at, part)?;
            tasks.turn(tasks.now());
            sent.datagrams += 1 + repairs.len() as u64;
            for symbol in repairs {
                sent.repairs += 1;
                sent.repair_bytes += symbol.len() as u64;
                let (track, _) = self.repair.as_mut().expect("it made the symbol");
                track.append_datagram(at, symbol)?;
                tasks.turn(tasks.now());
            }
        }
        Ok(sent)
    }

    fn finish(&mut self) -> Result<(), moq_net::Error> {
        if let Some((track, _)) = &mut self.repair {
            track.finish()?;
        }
        self.track.finish()
    }

    fn write(&mut self, sequence: u64, at: Timestamp, payload: Vec<u8>) -> Result<(), moq_net::Error> {
        if self.group.as_ref().is_none_or(|(current, _)| *current != sequence) {
            self.end_group()?;
            self.group = Some((sequence, self.track.append_group()?));
        }
        let (_, group) = self.group.as_mut().expect("just made");
        group.write_frame(at, payload)
    }

    fn end_group(&mut self) -> Result<(), moq_net::Error> {
        self.group.take().map_or(Ok(()), |(_, group)| group.finish())
    }
}
