//! The receiver of a broadcast: subscribes to all tracks, and records their frames.
//!
//! It subscribes to one track after the other: moq-net asks for tracks that are wanted at once in the order of a hash map,
//! which no two processes have alike.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use host::live::{Delivery, Live, Receiver};
use moq_net::{Hop, group, origin, track};

use crate::tasks::Tasks;

pub struct Subscriber {
    pub origin: origin::Producer,
    state: Rc<RefCell<State>>,
}

/// State of the tasks of a subscriber.
pub struct State {
    live: Arc<Live>,
    pub receiver: Receiver,
    /// Tasks that read a track or a group.
    readers: usize,
    /// Whether all tracks have been subscribed to.
    has_all: bool,
    /// The first reason for which this cannot succeed, in one line.
    pub failure: Option<String>,
}

impl State {
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
        let (origin, driver) = origin::Producer::new(origin::Config::new(hop));
        tasks.drive(driver);
        let receiver = Receiver::new(live.clone(), content_seed);
        let state = State { live, receiver, readers: 0, has_all: false, failure: None };
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
        let track = broadcast.track(&of.name)?.subscribe(wanted).await?;
        state.borrow_mut().readers += 1;
        let (state, own) = (state.clone(), tasks.clone());
        match of.delivery {
            Delivery::Datagram => tasks.spawn(read_datagrams(track, number, state, own)),
            Delivery::Group | Delivery::Frame => tasks.spawn(read_groups(track, number, state, own)),
        }
    }
    let mut state = state.borrow_mut();
    state.has_all = true;
    state.end(tasks.now());
    Ok(())
}

async fn read_datagrams(mut track: track::Subscriber, number: usize, state: Rc<RefCell<State>>, tasks: Tasks) {
    let ended = loop {
        match track.recv_datagram().await {
            Ok(Some(datagram)) => {
                state.borrow_mut().take(tasks.now(), number, datagram.sequence, 0, &datagram.payload);
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
