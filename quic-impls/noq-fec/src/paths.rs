//! The paths of a connection. A client opens one from each of its addresses, as soon as its peer allows it, and again when one was
//! abandoned. Both ends count what QUIC did on each, by the number of the client's address.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use noq_proto::{Connection, Event, FourTuple, PathEvent, PathId, PathStats, PathStatus};

/// The most that a connection has.
pub const MOST: usize = 3;

/// QUIC's counters of a path.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct PathCounters {
    /// Packets, without those with repair symbols.
    pub packets_sent: u64,
    /// Packets sent that were declared lost before the peer told that it had recovered them.
    pub packets_lost: u64,
    /// UDP payload.
    pub bytes_sent: u64,
    pub source_sent: u64,
    pub repair_sent: u64,
    /// Packets sent over the path that the peer recovered.
    pub recovered: u64,
    pub window_reductions: u64,
    pub window_restorations: u64,
    /// QUIC's estimate at the end, if it measured one.
    pub smoothed_rtt_ms: Option<f64>,
}

impl PathCounters {
    pub fn add(&mut self, other: &Self) {
        self.packets_sent += other.packets_sent;
        self.packets_lost += other.packets_lost;
        self.bytes_sent += other.bytes_sent;
        self.source_sent += other.source_sent;
        self.repair_sent += other.repair_sent;
        self.recovered += other.recovered;
        self.window_reductions += other.window_reductions;
        self.window_restorations += other.window_restorations;
        self.smoothed_rtt_ms = other.smoothed_rtt_ms.or(self.smoothed_rtt_ms);
    }

    fn of(stats: &PathStats) -> Self {
        Self {
            packets_sent: stats.sent_packets - stats.repair_sent,
            packets_lost: stats.lost_packets - stats.lost_not_in_flight - stats.repair_lost - stats.recovered_lost,
            bytes_sent: stats.udp_tx.bytes,
            source_sent: stats.source_sent,
            repair_sent: stats.repair_sent,
            recovered: stats.recovered_by_peer,
            window_reductions: stats.window_reductions,
            window_restorations: stats.window_restorations,
            smoothed_rtt_ms: stats.smoothed_rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
        }
    }
}

/// The paths of one connection, numbered from 0.
#[derive(Debug)]
pub struct Paths {
    /// Addresses at which a client's paths begin; none of a client with a single path, and at a server.
    addresses: Vec<IpAddr>,
    server: Option<SocketAddr>,
    /// The number of each path that there ever was.
    numbers: BTreeMap<PathId, usize>,
    /// At a server, the client's address of each number.
    clients: [Option<SocketAddr>; MOST],
    /// Counters of paths that are no more.
    closed: [PathCounters; MOST],
    /// If a further path cannot be opened yet, how often the peer had told what that takes: how many paths it allows, and connection
    /// IDs for them. It is tried again once the peer has told more, or a path is no more: of the two, either may come first. Each trial
    /// puts a frame into a packet, and a packet of that frame alone is reason for the next trial.
    refused_at: Option<u64>,
}

impl Paths {
    /// The paths of a client.
    pub fn from(addresses: &[IpAddr], server: SocketAddr) -> Self {
        Self { addresses: addresses.to_vec(), server: Some(server), ..Self::of_server() }
    }

    pub fn of_server() -> Self {
        Self {
            addresses: Vec::new(),
            server: None,
            numbers: BTreeMap::from([(PathId::ZERO, 0)]),
            clients: [None; MOST],
            closed: Default::default(),
            refused_at: None,
        }
    }

    /// Opens those that are missing, as far as the peer allows. Its connection IDs for them come after the handshake.
    pub fn open(&mut self, now: Instant, connection: &mut Connection) {
        let Some(server) = self.server.filter(|_| self.addresses.len() > 1) else {
            return;
        };
        if !connection.is_multipath_negotiated() || connection.is_closed() {
            return;
        }
        if self.refused_at.is_some_and(|told| told == told_of_paths(connection)) {
            return;
        }
        for (number, address) in self.addresses.iter().enumerate() {
            if self.numbers.values().any(|open| *open == number) {
                continue;
            }
            match connection.open_path(FourTuple::new(server, Some(*address)), PathStatus::Available, now) {
                Ok(id) => drop(self.numbers.insert(id, number)),
                Err(_) => {
                    self.refused_at = Some(told_of_paths(connection));
                    return;
                }
            }
        }
    }

    /// Takes note of what happens to paths.
    pub fn on_event(&mut self, connection: &Connection, event: &Event) {
        match event {
            Event::Path(PathEvent::Established { .. }) => self.number_all(connection),
            Event::Path(PathEvent::Abandoned { .. }) => self.number_all(connection),
            Event::Path(PathEvent::Discarded { id, path_stats, .. }) => {
                self.refused_at = None;
                if let Some(number) = self.numbers.remove(id) {
                    self.closed[number].add(&PathCounters::of(path_stats));
                }
            }
            _ => {}
        }
    }

    /// Finds out which of the client's addresses each path has. A client knows it: it has opened them.
    fn number_all(&mut self, connection: &Connection) {
        if self.server.is_some() {
            return;
        }
        for id in connection.paths() {
            if let Ok(network_path) = connection.network_path(id)
                && !self.numbers.contains_key(&id)
                && let Some(number) = self.number_of(id, network_path.remote())
            {
                self.numbers.insert(id, number);
            }
            if let (Some(number), Ok(network_path)) = (self.numbers.get(&id), connection.network_path(id)) {
                self.clients[*number] = Some(network_path.remote());
            }
        }
    }

    /// A client opens its first paths in the order of its addresses, and further ones from those again.
    fn number_of(&self, id: PathId, client: SocketAddr) -> Option<usize> {
        let known = self.clients.iter().position(|known| *known == Some(client));
        let first = (0..MOST as u32).position(|number| PathId::from(number) == id);
        known.or(first).or_else(|| self.clients.iter().position(Option::is_none))
    }

    /// Returns the counters of each path up to now.
    pub fn counters(&mut self, connection: &mut Connection) -> [PathCounters; MOST] {
        self.number_all(connection);
        let mut counters = self.closed;
        for (id, number) in &self.numbers {
            if let Some(stats) = connection.path_stats(*id) {
                counters[*number].add(&PathCounters::of(&stats));
            }
        }
        counters
    }
}

/// Returns how often the peer has told how many paths it allows, beyond those of the handshake, and connection IDs for them.
fn told_of_paths(connection: &mut Connection) -> u64 {
    let frames = connection.stats().frame_rx;
    frames.max_path_id + frames.path_new_connection_id
}
