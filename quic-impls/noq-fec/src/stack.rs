//! noq-proto's endpoint with its connections and what they serve: datagrams and time in, datagrams out. It
//! has no socket and no clock, so that a client and a server run in one thread in a test.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use noq_proto::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig,
    Event, FourTuple, ServerConfig, Transmit, VarInt,
};

use crate::paths::{self, PathCounters, Paths};
use crate::sent::{ContentSeries, Progress};
use crate::series::{Congestion, Repair, Series};

/// The application that a connection serves.
pub trait Application {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event);

    /// Returns its progress with the content that it sends.
    fn content(&self, _connection: &mut Connection) -> Progress {
        Progress::Nothing
    }

    /// Returns the time at which it has something to do though nothing happens.
    fn timeout(&self) -> Option<Instant> {
        None
    }

    /// Does that: its time has come.
    fn on_timeout(&mut self, _now: Instant, _connection: &mut Connection) {}
}

pub struct Stack<A> {
    endpoint: Endpoint,
    /// Makes the configuration of a connection that a server accepts, if each has its own.
    configuration: Option<Box<dyn Fn() -> ServerConfig>>,
    connections: BTreeMap<ConnectionHandle, Running<A>>,
    /// Answers that belong to no connection.
    replies: VecDeque<(Option<IpAddr>, SocketAddr, Vec<u8>)>,
    /// The applications of connections that are no more, with their numbers.
    ended: Vec<(usize, A)>,
    /// Number of connections that have begun, and start of the first one.
    count: usize,
    start: Option<Instant>,
    /// Counters of connections that are no more.
    counters: Counters,
    /// Congestion windows over time, if they are recorded.
    congestion: Option<Series<Congestion>>,
    /// Counters of repair over time, if they are recorded.
    repair: Option<Series<Repair>>,
    /// The datagrams with content, if they are recorded.
    contents: Option<ContentSeries>,
}

/// From which address a datagram goes, if there are several, where to, and with which mark.
type Addressed = (Option<IpAddr>, SocketAddr, Option<EcnCodepoint>);

struct Running<A> {
    connection: Connection,
    paths: Paths,
    application: A,
    /// Its number in all series.
    number: usize,
}

impl<A: Application> Running<A> {
    fn record(
        &mut self,
        now: Instant,
        of_congestion: &mut Option<Series<Congestion>>,
        of_repair: &mut Option<Series<Repair>>,
    ) {
        if let Some(series) = of_congestion
            && let Some(congestion) = congestion(&mut self.connection)
        {
            series.sample(self.number, now, congestion);
        }
        if let Some(series) = of_repair {
            let fec = self.connection.stats().fec;
            let repair = Repair { sent: fec.repair_sent, received: fec.repair_received, rebuilt: fec.recovered };
            series.sample(self.number, now, repair);
        }
    }

    /// Passes the next event on; false if there is none.
    fn pass_event(&mut self, now: Instant) -> bool {
        let Some(event) = self.connection.poll() else {
            return false;
        };
        self.paths.on_event(&self.connection, &event);
        self.application.on_event(now, &mut self.connection, event);
        true
    }
}

/// Windows and bytes in flight of all paths together, and the smoothed RTT of the first one.
fn congestion(connection: &mut Connection) -> Option<Congestion> {
    let paths = connection.paths();
    let stats = paths.into_iter().filter_map(|id| connection.path_stats(id));
    stats.fold(None, |sum: Option<Congestion>, path| {
        let (window, in_flight, rtt) =
            sum.map_or((0, 0, None), |sum| (sum.window_bytes, sum.bytes_in_flight, Some(sum.smoothed_rtt)));
        Some(Congestion {
            window_bytes: window + path.cwnd,
            bytes_in_flight: in_flight + path.bytes_in_flight,
            smoothed_rtt: rtt.unwrap_or_else(|| path.smoothed_rtt.unwrap_or_default()),
        })
    })
}

/// QUIC's counters, over all connections.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Counters {
    /// QUIC's packets, without those with repair symbols.
    pub packets_sent: u64,
    pub packets_received: u64,
    /// Packets sent that were declared lost before the peer told that it had recovered them; those with nothing but acknowledgements
    /// are never lost.
    pub packets_lost: u64,
    /// All packets sent of whose loss congestion control was told.
    pub losses_declared: u64,
    pub spurious_losses: u64,
    /// Number of times that losses made the congestion window smaller, and number of times that it came back because
    /// they had been none, or recovered and masked.
    pub window_reductions: u64,
    pub window_restorations: u64,
    /// Congestion window of the newest connection at its end, of all its paths together.
    pub congestion_window: u64,
    pub source_sent: u64,
    pub repair_sent: u64,
    pub source_received: u64,
    pub repair_received: u64,
    /// Packets rebuilt from repair symbols, and those of them that came after all.
    pub recovered: u64,
    pub recovered_spurious: u64,
    pub recovered_late: u64,
    /// Comparisons that found out which those were, and how often none were made, since the peer had not paid for them in bytes.
    pub comparisons: u64,
    pub comparisons_forgone: u64,
    /// Packets rebuilt that were not taken for the same reason.
    pub recovered_unpaid: u64,
    pub recovered_by_peer: u64,
    pub useless_retransmissions: u64,
    /// Packets sent while repair symbols that take nothing from data were in their place in the congestion window.
    pub sent_beyond_window: u64,
    /// DATAGRAM frames sent.
    pub datagrams_sent: u64,
    /// QUIC's estimate at the end of the newest connection, of its first path, if it measured one.
    pub smoothed_rtt_ms: Option<f64>,
    /// Counters of each path.
    pub paths: [PathCounters; paths::MOST],
}

impl Counters {
    fn add(&mut self, connection: &mut Connection, paths: &mut Paths) {
        let stats = connection.stats();
        self.packets_sent += stats.sent_packets - stats.fec.repair_sent;
        self.packets_received += stats.received_packets - stats.fec.repair_received;
        let lost = stats.lost_packets - stats.lost_not_in_flight;
        self.packets_lost += lost - stats.fec.repair_lost - stats.fec.recovered_lost;
        self.losses_declared += lost;
        self.spurious_losses += stats.spurious_losses;
        self.source_sent += stats.fec.source_sent;
        self.repair_sent += stats.fec.repair_sent;
        self.source_received += stats.fec.source_received;
        self.repair_received += stats.fec.repair_received;
        self.recovered += stats.fec.recovered;
        self.recovered_spurious += stats.fec.recovered_spurious;
        self.recovered_late += stats.fec.recovered_late;
        self.comparisons += stats.fec.comparisons;
        self.comparisons_forgone += stats.fec.comparisons_forgone;
        self.recovered_unpaid += stats.fec.recovered_unpaid;
        self.recovered_by_peer += stats.fec.recovered_by_peer;
        self.useless_retransmissions += stats.fec.useless_retransmissions;
        self.sent_beyond_window += stats.fec.sent_beyond_window;
        self.datagrams_sent += stats.frame_tx.datagram;
        for (sum, path) in self.paths.iter_mut().zip(paths.counters(connection)) {
            sum.add(&path);
            self.window_reductions += path.window_reductions;
            self.window_restorations += path.window_restorations;
        }
        let first = connection.paths().into_iter().next();
        if let Some(path) = first.and_then(|first| connection.path_stats(first)) {
            self.smoothed_rtt_ms = path.smoothed_rtt.map(|rtt| rtt.as_secs_f64() * 1e3);
        }
        if let Some(congestion) = congestion(connection) {
            self.congestion_window = congestion.window_bytes;
        }
    }
}

impl<A: Application> Stack<A> {
    pub fn new(config: EndpointConfig, server: Option<ServerConfig>) -> Self {
        Self {
            endpoint: Endpoint::new(Arc::new(config), server.map(Arc::new), false),
            configuration: None,
            connections: BTreeMap::new(),
            replies: VecDeque::new(),
            ended: Vec::new(),
            count: 0,
            start: None,
            counters: Counters::default(),
            congestion: None,
            repair: None,
            contents: None,
        }
    }

    /// Gives each connection that is accepted a configuration of its own.
    pub fn configure_each(&mut self, configuration: impl Fn() -> ServerConfig + 'static) {
        self.configuration = Some(Box::new(configuration));
    }

    /// Records the congestion windows of the connections to come.
    pub fn record_congestion(&mut self) {
        self.congestion = Some(Series::default());
    }

    /// The congestion windows up to now, if they are recorded.
    pub fn congestion(&self) -> Option<&Series<Congestion>> {
        self.congestion.as_ref()
    }

    /// Records what repair comes to in the connections to come.
    pub fn record_repair(&mut self) {
        self.repair = Some(Series::default());
    }

    /// Returns the counters of repair over time, if they are recorded.
    pub fn repair(&self) -> Option<&Series<Repair>> {
        self.repair.as_ref()
    }

    /// Records which datagrams have content, of the connections to come.
    pub fn record_contents(&mut self, packet_size: u16) {
        self.contents = Some(ContentSeries::new(packet_size));
    }

    /// The datagrams with content up to now, if they are recorded.
    pub fn contents(&self) -> Option<&ContentSeries> {
        self.contents.as_ref()
    }

    /// Dials; with `addresses` of its own, it opens a path from each of them.
    pub fn connect(
        &mut self,
        now: Instant,
        config: ClientConfig,
        addresses: &[IpAddr],
        remote: SocketAddr,
        server_name: &str,
        application: A,
    ) -> Result<(), ConnectError> {
        let (handle, connection) = self.endpoint.connect(now, config, remote, server_name)?;
        self.open(now, handle, connection, Paths::from(addresses, remote), application);
        Ok(())
    }

    fn open(&mut self, now: Instant, handle: ConnectionHandle, connection: Connection, paths: Paths, application: A) {
        let number = self.count;
        self.count += 1;
        self.start.get_or_insert(now);
        if let Some(series) = &mut self.congestion {
            series.open(now);
        }
        if let Some(series) = &mut self.repair {
            series.open(now);
        }
        if let Some(series) = &mut self.contents {
            series.open(now);
        }
        self.connections.insert(handle, Running { connection, paths, application, number });
    }

    /// Takes a datagram in: from where it came, and to which of its own addresses, if there are several. `accept` makes what a
    /// new connection serves.
    pub fn receive(
        &mut self,
        now: Instant,
        from: SocketAddr,
        to: Option<IpAddr>,
        ecn: Option<EcnCodepoint>,
        datagram: &[u8],
        accept: impl FnOnce() -> A,
    ) {
        let mut reply = Vec::new();
        let network_path = FourTuple::new(from, to);
        let data = BytesMut::from(datagram);
        match self.endpoint.handle(now, network_path, ecn, data, &mut reply) {
            None => {}
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(running) = self.connections.get_mut(&handle) {
                    running.connection.handle_event(event);
                    self.proceed(now, handle);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let configuration = self.configuration.as_ref().map(|make| Arc::new(make()));
                match self.endpoint.accept(incoming, now, &mut reply, configuration) {
                    Ok((handle, connection)) => {
                        self.open(now, handle, connection, Paths::of_server(), accept());
                        self.proceed(now, handle);
                    }
                    Err(error) => self.reply(error.response, reply),
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.reply(Some(transmit), reply),
        }
    }

    fn reply(&mut self, transmit: Option<Transmit>, mut datagram: Vec<u8>) {
        if let Some(transmit) = transmit {
            datagram.truncate(transmit.size);
            self.replies.push_back((transmit.src_ip, transmit.destination, datagram));
        }
    }

    /// Returns the time at which [`Self::on_timeout`] has to be called.
    pub fn timeout(&self) -> Option<Instant> {
        let connections = self.connections.values();
        let timeouts =
            connections.flat_map(|running| [running.connection.poll_timeout(), running.application.timeout()]);
        timeouts.flatten().min()
    }

    pub fn on_timeout(&mut self, now: Instant) {
        let mut next = self.connections.keys().next().copied();
        while let Some(handle) = next {
            let Running { connection, application, .. } = self.connections.get_mut(&handle).expect("just listed");
            let has_come = |timeout: Option<Instant>| timeout.is_some_and(|timeout| timeout <= now);
            let (of_connection, of_application) =
                (has_come(connection.poll_timeout()), has_come(application.timeout()));
            if of_connection {
                connection.handle_timeout(now);
            }
            if of_application {
                application.on_timeout(now, connection);
            }
            if of_connection || of_application {
                self.proceed(now, handle);
            }
            let others = (Bound::Excluded(handle), Bound::Unbounded);
            next = self.connections.range(others).next().map(|(handle, _)| *handle);
        }
    }

    /// Writes the next datagram to send into a buffer, and returns its addresses and its mark.
    pub fn transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Addressed> {
        buffer.clear();
        if let Some((source, destination, datagram)) = self.replies.pop_front() {
            *buffer = datagram;
            if let Some(series) = &mut self.contents {
                series.replied();
            }
            return Some((source, destination, None));
        }
        self.connections.values_mut().find_map(|running| {
            loop {
                if let Some(transmit) = running.connection.poll_transmit(now, NonZeroUsize::MIN, buffer) {
                    running.record(now, &mut self.congestion, &mut self.repair);
                    if let Some(series) = &mut self.contents {
                        let progress = running.application.content(&mut running.connection);
                        series.sent(running.number, now, transmit.size, progress);
                    }
                    return Some((transmit.src_ip, transmit.destination, transmit.ecn));
                }
                // The packets sent may have made room for more.
                if !running.pass_event(now) {
                    return None;
                }
            }
        })
    }

    /// Closes all connections; [`Self::transmit`] then has the packets that tell the peers.
    pub fn close(&mut self, now: Instant, code: VarInt, reason: &'static str) {
        for running in self.connections.values_mut() {
            running.connection.close(now, code, Bytes::from_static(reason.as_bytes()));
        }
    }

    /// Returns the applications of connections, and of those that are no more.
    pub fn applications(&mut self) -> impl Iterator<Item = &mut A> {
        let running = self.connections.values_mut().map(|running| &mut running.application);
        running.chain(self.ended.iter_mut().map(|(_, application)| application))
    }

    /// The same with the numbers of their connections.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, &A)> {
        let running = self.connections.values().map(|running| (running.number, &running.application));
        running.chain(self.ended.iter().map(|(number, application)| (*number, application)))
    }

    /// Returns the time at which the first connection began.
    pub fn start(&self) -> Option<Instant> {
        self.start
    }

    /// Returns the counters up to now.
    pub fn counters(&mut self) -> Counters {
        let mut counters = self.counters;
        for running in self.connections.values_mut() {
            counters.add(&mut running.connection, &mut running.paths);
        }
        counters
    }

    /// Passes on what a connection has to say to the endpoint and to its application, until it is silent.
    fn proceed(&mut self, now: Instant, handle: ConnectionHandle) {
        let running = self.connections.get_mut(&handle).expect("a connection that was just called");
        let mut is_drained = false;
        loop {
            if let Some(event) = running.connection.poll_endpoint_events() {
                is_drained |= event.is_drained();
                if let Some(event) = self.endpoint.handle_event(handle, event) {
                    running.connection.handle_event(event);
                }
            } else if !running.pass_event(now) {
                break;
            }
        }
        running.paths.open(now, &mut running.connection);
        running.record(now, &mut self.congestion, &mut self.repair);
        if is_drained {
            self.counters.add(&mut running.connection, &mut running.paths);
            let running = self.connections.remove(&handle).expect("just called");
            self.ended.push((running.number, running.application));
        }
    }
}
