//! The workload `live` on one connection: moq-net as an application of noq-fec's stack.
//!
//! Events of QUIC only wake tasks. The tasks run afterwards, when all events of a moment are known: of several streams that may
//! be written to again, the first would otherwise take all the room, whatever its priority.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use host::contract::{Metrics, Role};
use host::implementation::Host;
use host::live::{self, Live, Log, Recorded};
use host::times;
use moq_net::{Client, Hop, Server, origin};
use noq_fec::Assignment;
use noq_fec::ends::{MessageEnds, NotedEnds};
use noq_fec::stack::{Application, Counters, Stack};
use noq_fec::work::Work;
use noq_proto::{Connection, ConnectionError, Event, VarInt};

use crate::parts;
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use crate::tasks::Tasks;
use crate::transport::Session;

/// The code of a connection that has served its purpose.
const RECEIVED: VarInt = VarInt::from_u32(0);

/// The code of a connection whose client has broken the protocol.
const REFUSED: VarInt = VarInt::from_u32(1);

/// The metric of datagrams that were handed over and not sent.
const UNSENT: &str = "datagrams_unsent";

/// moq-net's names of the two ends, and of a relay between them; it draws them otherwise.
const CLIENT: u64 = 1;
const SERVER: u64 = 2;
pub const RELAY: u64 = 3;

/// One end of a broadcast.
pub struct Broadcast {
    role: Role,
    live: Arc<Live>,
    session: Session,
    tasks: Tasks,
    end: End,
    /// The session of moq-net, once it has begun: it closes when it is dropped.
    kept: Rc<RefCell<Option<moq_net::Session>>>,
    /// Reason for which moq-net has no session, in one line.
    refused: Rc<RefCell<Option<String>>>,
    /// Ends of frames, for FEC.
    ends: Option<NotedEnds>,
    /// Time since which tasks may be awake.
    woken: Option<Instant>,
    connected: Option<Instant>,
    outcome: Option<(Instant, Result<(), String>)>,
    /// Reason for which a server has no session with this client, in one line.
    refusal: Option<String>,
    /// Whether nothing is left to do.
    is_over: bool,
}

enum End {
    Sending(Publisher),
    Receiving(Subscriber),
    /// An end of a relay: others read and write what is in its origin.
    Relaying(origin::Producer),
    /// There is no broadcast, for a reason that has been noted.
    Nothing,
}

fn hop(of: Role) -> Hop {
    Hop::new(if of == Role::Client { CLIENT } else { SERVER }).expect("it is not zero")
}

impl Broadcast {
    pub fn new(assignment: &Assignment, now: Instant) -> Self {
        let live = assignment.workload.live().expect("the contract refuses all other workloads").clone();
        let (role, content_seed, protocol) = (assignment.role, assignment.content_seed, live.protocol.alpn());
        let tasks = Tasks::new(now);
        let (end, outcome) = match live.sender() == role {
            false => (End::Receiving(Subscriber::new(live.clone(), content_seed, hop(role), &tasks)), None),
            true => {
                let longest = parts::longest(&assignment.options);
                match Publisher::new(live.clone(), content_seed, longest, hop(role), &tasks) {
                    Ok(publisher) => (End::Sending(publisher), None),
                    Err(why) => (End::Nothing, Some((now, Err(why)))),
                }
            }
        };
        Self {
            role,
            live,
            session: Session::new(protocol),
            tasks,
            end,
            kept: Rc::default(),
            refused: Rc::default(),
            ends: noted(assignment),
            woken: None,
            connected: None,
            outcome,
            refusal: None,
            is_over: false,
        }
    }

    /// One of a relay's connections, whose broadcasts are those of the origin.
    pub fn relaying(role: Role, assignment: &Assignment, origin: origin::Producer, now: Instant) -> Self {
        let live = assignment.workload.live().expect("the contract refuses all other workloads");
        Self {
            role,
            live: live.clone(),
            session: Session::new(live.protocol.alpn()),
            tasks: Tasks::new(now),
            end: End::Relaying(origin),
            kept: Rc::default(),
            refused: Rc::default(),
            ends: noted(assignment),
            woken: None,
            connected: None,
            outcome: None,
            refusal: None,
            is_over: false,
        }
    }

    /// Opens moq-net's session.
    fn begin(&self) {
        let (session, tasks, role) = (self.session.clone(), self.tasks.clone(), self.role);
        let (kept, refused) = (self.kept.clone(), self.refused.clone());
        let (publishes, subscribes) = match &self.end {
            End::Sending(publisher) => (Some(publisher.origin.clone()), None),
            End::Receiving(subscriber) => {
                subscriber.begin(&self.tasks);
                (None, Some(subscriber.origin.clone()))
            }
            End::Relaying(origin) if self.live.sender() == role => (Some(origin.clone()), None),
            End::Relaying(origin) => (None, Some(origin.clone())),
            End::Nothing => return,
        };
        self.tasks.spawn(async move {
            let opened = match role {
                Role::Client => {
                    let mut client = Client::new().with_peer_hop(hop(Role::Server));
                    if let Some(origin) = &publishes {
                        client = client.with_publisher(origin);
                    }
                    if let Some(origin) = subscribes {
                        client = client.with_subscriber(origin);
                    }
                    client.connect(tasks.now(), session).await
                }
                Role::Server => {
                    let mut server = Server::new();
                    if let Some(origin) = &publishes {
                        server = server.with_publisher(origin);
                    }
                    if let Some(origin) = subscribes {
                        server = server.with_subscriber(origin);
                    }
                    match server.accept_request(tasks.now(), session).await {
                        Ok(handshake) => handshake.with_peer_hop(hop(Role::Client)).ok().await,
                        Err(error) => Err(error),
                    }
                }
            };
            match opened {
                Ok((session, driver)) => {
                    tasks.drive(driver);
                    kept.replace(Some(session));
                }
                Err(error) => drop(refused.replace(Some(format!("MoQ session: {error}")))),
            }
        });
    }

    /// Has all that is awake or due do what it can.
    fn turn(&mut self, now: Instant, connection: &mut Connection) {
        self.woken = None;
        let done = Session::lend(connection, || {
            self.tasks.turn(now);
            if let End::Sending(publisher) = &mut self.end {
                publisher.begin(now);
                publisher.publish(now, &self.tasks)?;
                self.tasks.turn(now);
            }
            Ok(())
        });
        let ends = self.session.take_ends();
        if let Some(noted) = &self.ends {
            for (stream, end) in ends {
                noted.add(VarInt::from(stream).into_inner(), end);
            }
        }
        if let Err(what) = done.and(self.failure().map_or(Ok(()), Err)) {
            self.end(now, Err(what));
        }
        if let Some(what) = self.refused.take() {
            self.refuse(now, connection, what);
        }
        if let Some((code, reason)) = self.session.take_closing() {
            connection.close(now, VarInt::from_u32(code), reason.clone().into());
            self.refuse(now, connection, format!("MoQ session closed with code {code}: {reason}"));
        }
        if self.done_at().is_some_and(|at| at <= now) {
            match self.role {
                Role::Client => self.end(now, Ok(())),
                Role::Server => {
                    connection.close(now, RECEIVED, "received".into());
                    self.is_over = true;
                }
            }
        }
    }

    fn failure(&self) -> Option<String> {
        match &self.end {
            End::Receiving(subscriber) => subscriber.state().borrow_mut().failure.take(),
            End::Sending(_) | End::Relaying(_) | End::Nothing => None,
        }
    }

    /// Returns when nothing more is to be received.
    fn done_at(&self) -> Option<Instant> {
        match &self.end {
            End::Receiving(subscriber) if !self.is_over => subscriber.state().borrow().receiver.done_at(),
            _ => None,
        }
    }

    /// Ends where the peer has broken the protocol: a server goes on with other clients.
    fn refuse(&mut self, now: Instant, connection: &mut Connection, what: String) {
        match self.role {
            Role::Client => self.end(now, Err(what)),
            Role::Server if self.is_over => {}
            Role::Server => {
                connection.close(now, REFUSED, "refused".into());
                self.refusal = Some(what);
                self.leave();
            }
        }
    }

    /// Ends without an outcome: nobody reads or writes here any more.
    fn leave(&mut self) {
        self.is_over = true;
        self.kept.take();
        self.tasks.clear();
    }

    fn end(&mut self, now: Instant, outcome: Result<(), String>) {
        if !self.is_over {
            self.is_over = true;
            self.outcome = Some((now, outcome.map_err(|what| format!("{}: {what}", self.live))));
        }
    }

    fn lost(&mut self, now: Instant, reason: &ConnectionError) {
        let is_received = matches!(reason, ConnectionError::ApplicationClosed(close) if close.error_code == RECEIVED);
        let outcome = match (self.role, &self.end) {
            // A client closes when it is done, or has told why it is not.
            (Role::Server, _) => {
                self.leave();
                return;
            }
            (Role::Client, End::Relaying(_)) if is_received => Ok(()),
            (Role::Client, End::Sending(publisher)) if is_received && publisher.is_done() => Ok(()),
            (Role::Client, _) if self.connected.is_none() => Err(format!("handshake: {reason}")),
            (Role::Client, _) => Err(format!("connection lost: {reason}")),
        };
        self.end(now, outcome);
    }

    /// Hands the times of frames, and the start of the timetable if this is the sender, to a function.
    fn with_log<T>(&self, take: impl FnOnce(&Log, Option<Instant>) -> T) -> Option<T> {
        match &self.end {
            End::Sending(publisher) => Some(take(&publisher.log, publisher.begun)),
            End::Receiving(subscriber) => Some(take(&subscriber.state().borrow().receiver.log, None)),
            End::Relaying(_) | End::Nothing => None,
        }
    }

    /// Adds what it counts of a broadcast that has tracks of datagrams.
    fn count_datagrams(&self, metrics: &mut Metrics) {
        let mut count = |name, number: u64| *metrics.entry(name).or_default() += number as f64;
        let has_repair = self.live.tracks.iter().any(|track| track.repair.is_some());
        match &self.end {
            End::Sending(publisher) => {
                count(UNSENT, publisher.datagrams);
                if has_repair {
                    count("repair_track_sent", publisher.repair_sent);
                    count("repair_track_bytes", publisher.repair_bytes);
                }
            }
            End::Receiving(subscriber) => {
                for of in subscriber.state().borrow().recovering() {
                    count("repair_track_received", of.received);
                    count("parts_recovered", of.recovered);
                }
            }
            End::Relaying(_) | End::Nothing => {}
        }
    }
}

impl Application for Broadcast {
    fn on_event(&mut self, now: Instant, _connection: &mut Connection, event: Event) {
        if self.is_over {
            return;
        }
        self.session.on_event(&event);
        match &event {
            Event::Connected => {
                self.connected = Some(now);
                self.begin();
            }
            Event::ConnectionLost { reason } => self.lost(now, reason),
            _ => {}
        }
        self.woken.get_or_insert(now);
    }

    fn timeout(&self) -> Option<Instant> {
        if self.is_over {
            return None;
        }
        let due = match &self.end {
            End::Sending(publisher) => publisher.timeout(),
            End::Receiving(_) | End::Relaying(_) | End::Nothing => None,
        };
        [due, self.tasks.timeout(), self.woken, self.done_at()].into_iter().flatten().min()
    }

    fn on_timeout(&mut self, now: Instant, connection: &mut Connection) {
        self.turn(now, connection);
    }
}

/// Returns where to note the ends of frames, if a scheme of FEC asks for them.
fn noted(assignment: &Assignment) -> Option<NotedEnds> {
    match assignment.options.schemes.as_ref().map(|schemes| &schemes.ends) {
        Some(MessageEnds::Noted(noted)) => Some(noted.clone()),
        _ => None,
    }
}

impl Work for Broadcast {
    const NAME: &'static str = crate::NAME;

    fn of_client(assignment: &Assignment, start: Instant) -> Self {
        Self::new(assignment, start)
    }

    fn of_server(assignment: &Assignment, start: Instant) -> Self {
        Self::of_client(assignment, start)
    }

    fn connected(&self) -> Option<Instant> {
        self.connected
    }

    fn take_outcome(&mut self) -> Option<(Instant, Result<(), String>)> {
        self.outcome.take()
    }

    fn take_refusals(&mut self) -> Vec<String> {
        self.refusal.take().into_iter().collect()
    }

    fn leave_series(assignment: &Assignment, stack: &Stack<Self>, host: &impl Host) -> Result<(), String> {
        let Some(path) = assignment.series(live::NAME) else {
            return Ok(());
        };
        let logs = stack
            .numbered()
            .filter_map(|(connection, work)| work.with_log(|log, begun| (connection, begun, log.clone())));
        let logs: Vec<_> = logs.collect();
        let recorded =
            logs.iter().map(|(connection, begun, log)| Recorded { connection: *connection, begun: *begun, log });
        let recorded: Vec<_> = recorded.collect();
        let start = stack.start().unwrap_or_else(|| host.now());
        let live = assignment.workload.live().map(|live| &**live);
        times::write_series(&path, assignment.role, live, start, &recorded, |time| host.monotonic(time))
    }

    fn add_metrics(assignment: &Assignment, stack: &Stack<Self>, counters: &Counters, metrics: &mut Metrics) {
        let Some(live) = assignment.workload.live() else {
            return;
        };
        if live.tracks.iter().any(|track| track.delivery.is_by_datagrams()) {
            stack.numbered().for_each(|(_, work)| work.count_datagrams(metrics));
            metrics.entry(UNSENT).and_modify(|handed_over| *handed_over -= counters.datagrams_sent as f64);
        }
    }
}
