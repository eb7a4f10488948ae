//! The receiver of a broadcast: subscribes to all tracks, and records their frames.
//!
//! It subscribes to one track after the other: moq-net asks for tracks that are wanted at once in the order of a hash map,
//! which no two processes have alike.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use host::live::{Delivery, Live, Receiver};
use moq_net::{Hop, broadcast, group, origin, track};

use crate::parts::Assembly;
use crate::publisher::kept;
use crate::repair::{self, Recovering};
use crate::tasks::Tasks;

pub struct Subscriber {
    pub origin: origin::Producer,
    state: Rc<RefCell<State>>,
}

/// State of the tasks of a subscriber.
pub struct State {
    live: Arc<Live>,
    pub receiver: Receiver,
    /// The parts of each track that is cut into parts.
    parted: Vec<Option<Parted>>,
    /// Tasks that read a track or a group.
    readers: usize,
    /// Whether all tracks have been subscribed to.
    has_all: bool,
    /// The first reason for which this cannot succeed, in one line.
    pub failure: Option<String>,
}

/// The parts of a track that have come, and those that repair symbols have recovered.
struct Parted {
    assembly: Assembly,
    recovering: Option<Recovering>,
}

impl State {
    /// Returns what was recovered of repair symbols, of each track that has them.
    pub fn recovering(&self) -> impl Iterator<Item = &Recovering> {
        self.parted.iter().flatten().filter_map(|parted| parted.recovering.as_ref())
    }

    /// Takes in a datagram of a track.
    fn take_datagram(&mut self, now: Instant, track: usize, sequence: u64, payload: &Bytes) {
        let Some(parted) = &mut self.parted[track] else {
            self.take(now, track, sequence, 0, payload);
            return;
        };
        match parted.assembly.take(payload) {
            Ok(frame) => {
                let recovered = parted.recovering.as_mut().map(|of| of.source(sequence, payload));
                self.take_frames(now, track, frame, recovered.unwrap_or_default());
            }
            Err(what) => self.fail(what),
        }
    }

    /// Takes in a repair symbol of a track.
    fn take_repair(&mut self, now: Instant, track: usize, payload: &[u8]) {
        let recovering = self.parted[track].as_mut().and_then(|parted| parted.recovering.as_mut());
        let recovered = recovering.map(|of| of.repair(payload)).unwrap_or_default();
        self.take_frames(now, track, None, recovered);
    }

    /// Takes in a frame, if one is complete, and those that recovered parts complete. Nonsense that repair symbols of nonsense
    /// recover is ignored.
    fn take_frames(&mut self, now: Instant, track: usize, frame: Option<(u32, Vec<u8>)>, recovered: Vec<Bytes>) {
        let parted = self.parted[track].as_mut().expect("it has parts");
        let by_recovery = recovered.iter().filter_map(|part| parted.assembly.take(part).ok().flatten());
        let frames: Vec<_> = frame.into_iter().chain(by_recovery).collect();
        for (number, bytes) in frames {
            self.take(now, track, number.into(), 0, &bytes);
        }
    }

    fn fail(&mut self, what: String) {
        self.failure.get_or_insert(what);
    }

    fn take(&mut self, now: Instant, track: usize, sequence: u64, index: u64, bytes: &[u8]) {
        if let Err(what) = self.receiver.take(now, track, sequence, index, bytes) {
            self.fail(what);
        }
    }

    /// Notes that a task has ended.
    fn leave(&mut self, now: Instant) {
        self.readers -= 1;
        self.end(now);
    }

    fn end(&mut self, now: Instant) {
        if self.has_all && self.readers == 0 {
            self.receiver.end(now);
        }
    }
}

impl Subscriber {
    pub fn new(live: Arc<Live>, content_seed: u64, hop: Hop, tasks: &Tasks) -> Self {
        let mut config = origin::Config::new(hop);
        config.default_max_age = kept(&live);
        let (origin, driver) = origin::Producer::new(config);
        tasks.drive(driver);
        let receiver = Receiver::new(live.clone(), content_seed);
        let parted = live.tracks.iter().enumerate().map(|(number, of)| {
            let assembly = Assembly::new(live.clone(), number);
            (of.delivery == Delivery::Parts).then(|| Parted { assembly, recovering: of.repair.map(Recovering::new) })
        });
        let parted = parted.collect();
        let state = State { live, receiver, parted, readers: 0, has_all: false, failure: None };
        Self { origin, state: Rc::new(RefCell::new(state)) }
    }

    pub fn state(&self) -> &RefCell<State> {
        &self.state
    }

    /// Begins to wait for the broadcast: a session has it.
    pub fn begin(&self, tasks: &Tasks) {
        let (origin, state, own) = (self.origin.clone(), self.state.clone(), tasks.clone());
        tasks.spawn(async move {
            if let Err(error) = subscribe(&origin, &state, &own).await {
                state.borrow_mut().fail(format!("subscription: {error}"));
            }
        });
    }
}

async fn subscribe(origin: &origin::Producer, state: &Rc<RefCell<State>>, tasks: &Tasks) -> Result<(), moq_net::Error> {
    let consumer = origin.consume();
    let mut announced = consumer.announced();
    let path = loop {
        let update = announced.next().await.ok_or(moq_net::Error::Closed)?;
        if update.kind.is_active() {
            break update.prefix;
        }
    };
    let broadcast = consumer.request_broadcast(&path).await?;
    let live = state.borrow().live.clone();
    for (number, of) in live.tracks.iter().enumerate() {
        let wanted = track::Subscription::default().with_priority(of.priority).with_max_age(live.max_age);
        let track = subscribed(&broadcast, &of.name, &wanted, state).await?;
        match of.delivery {
            Delivery::Datagram | Delivery::Parts => {
                tasks.spawn(read_datagrams(track, number, State::take_datagram, state.clone(), tasks.clone()));
            }
            Delivery::Group | Delivery::Frame => tasks.spawn(read_groups(track, number, state.clone(), tasks.clone())),
        }
        if of.repair.is_some() {
            let track = subscribed(&broadcast, &repair::name(&of.name), &wanted, state).await?;
            let take = |state: &mut State, now, number, _, payload: &Bytes| state.take_repair(now, number, payload);
            tasks.spawn(read_datagrams(track, number, take, state.clone(), tasks.clone()));
        }
    }
    let mut state = state.borrow_mut();
    state.has_all = true;
    state.end(tasks.now());
    Ok(())
}

/// Subscribes to a track, which somebody is going to read.
async fn subscribed(
    broadcast: &broadcast::Consumer,
    name: &str,
    wanted: &track::Subscription,
    state: &RefCell<State>,
) -> Result<track::Subscriber, moq_net::Error> {
    let track = broadcast.track(name)?.subscribe(wanted.clone()).await?;
    state.borrow_mut().readers += 1;
    Ok(track)
}

/// Hands the datagrams of a track to a function of its number, the datagram's, and what is in it.
async fn read_datagrams(
    mut track: track::Subscriber,
    number: usize,
    take: impl Fn(&mut State, Instant, usize, u64, &Bytes),
    state: Rc<RefCell<State>>,
    tasks: Tasks,
) {
    let ended = loop {
        match track.recv_datagram().await {
            Ok(Some(datagram)) => {
                take(&mut state.borrow_mut(), tasks.now(), number, datagram.sequence, &datagram.payload);
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    end_track(number, ended, &mut state.borrow_mut(), tasks.now());
}

async fn read_groups(mut track: track::Subscriber, number: usize, state: Rc<RefCell<State>>, tasks: Tasks) {
    let ended = loop {
        match track.recv_group().await {
            Ok(Some(group)) => {
                state.borrow_mut().readers += 1;
                tasks.spawn(read_group(group, number, state.clone(), tasks.clone()));
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    end_track(number, ended, &mut state.borrow_mut(), tasks.now());
}

fn end_track(number: usize, ended: Result<(), moq_net::Error>, state: &mut State, now: Instant) {
    if let Err(error) = ended {
        let name = state.live.tracks[number].name.clone();
        state.fail(format!("track {name}: {error}"));
    }
    state.leave(now);
}

/// Reads a group to its end. A group that is cut off for its age has lost its other frames, which is no failure.
async fn read_group(mut group: group::Consumer, number: usize, state: Rc<RefCell<State>>, tasks: Tasks) {
    let mut index = 0;
    while let Ok(Some(frame)) = group.read_frame().await {
        state.borrow_mut().take(tasks.now(), number, group.sequence, index, &frame.payload);
        index += 1;
    }
    state.borrow_mut().leave(tasks.now());
}
