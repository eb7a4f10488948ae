//! quiche's connections, as a stack of `hq`. They read the machine's clock themselves.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use host::contract::{Metrics, Role};
use host::records::Records;
use hq::stack::{Event, Stack, StreamId, Streams};
use quiche::{Config, Connection, ConnectionId, Error, Header, RecvInfo, Shutdown};

use crate::Assignment;

/// The length of our connection IDs.
const ID_LENGTH: usize = 16;

/// Bytes that are read of a stream at once.
const STEP: usize = 64 << 10;

/// Step from one of a client's bidirectional streams to the next; the first is 0.
const NEXT_STREAM: u64 = 4;

/// Our own address, which quiche asks for with each datagram: there is one path.
const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

pub struct QuicheStack {
    role: Role,
    config: Config,
    records: Records,
    /// Connections by their number, finished ones included.
    connections: Vec<Running>,
    /// The numbers of connections by the IDs that datagrams for them have.
    numbers: BTreeMap<Vec<u8>, usize>,
    events: VecDeque<Event>,
    datagram: Vec<u8>,
    step: Vec<u8>,
}

struct Running {
    connection: Connection,
    is_established: bool,
    /// Streams of ours.
    opened: u64,
    is_lost: bool,
    /// The reason for which a datagram could not be processed, which ends a connection.
    failure: Option<Error>,
    /// A datagram that was made and whose time has not come.
    held: Option<Held>,
}

struct Held {
    at: Instant,
    to: SocketAddr,
    datagram: Vec<u8>,
}

impl QuicheStack {
    /// A client connects. An error is one line.
    pub fn start(assignment: &Assignment, config: Config, records: Records) -> Result<Self, String> {
        let mut stack = Self {
            role: assignment.role,
            config,
            records,
            connections: Vec::new(),
            numbers: BTreeMap::new(),
            events: VecDeque::new(),
            datagram: Vec::new(),
            step: vec![0; STEP],
        };
        if assignment.role == Role::Client {
            let (address, id) = (assignment.address, random_id()?);
            let name = Some(assignment.server_name.as_str());
            let connection = quiche::connect(name, &id, LOCAL, address, &mut stack.config)
                .map_err(|error| format!("cannot connect to {address}: {error}"))?;
            stack.begin(&id, connection)?;
        }
        Ok(stack)
    }

    fn begin(&mut self, id: &ConnectionId<'static>, mut connection: Connection) -> Result<usize, String> {
        if let Some(file) = self.records.secrets() {
            connection.set_keylog(Box::new(file));
        }
        let number = self.connections.len();
        if let Some(file) = self.records.qlog(&format!("{}-{number}", self.role))? {
            connection.set_qlog(Box::new(file), "fecbench".into(), self.role.to_string());
        }
        self.numbers.insert(id.to_vec(), number);
        let running =
            Running { connection, is_established: false, opened: 0, is_lost: false, failure: None, held: None };
        self.connections.push(running);
        Ok(number)
    }

    /// The connection that a datagram is for; that of a new client begins.
    fn number_of(&mut self, from: SocketAddr, datagram: &mut [u8]) -> Result<Option<usize>, String> {
        let Ok(header) = Header::from_slice(datagram, ID_LENGTH) else {
            return Ok(None);
        };
        if self.role == Role::Client {
            return Ok(Some(0));
        }
        if let Some(number) = self.numbers.get(&header.dcid[..]) {
            return Ok(Some(*number));
        }
        if header.ty != quiche::Type::Initial || !quiche::version_is_supported(header.version) {
            return Ok(None);
        }
        let id = random_id()?;
        let accepted = quiche::accept(&id, None, LOCAL, from, &mut self.config);
        let connection = accepted.map_err(|error| format!("cannot accept {from}: {error}"))?;
        let number = self.begin(&id, connection)?;
        // Until it knows ours, the client uses the ID that it has made up.
        self.numbers.insert(header.dcid.to_vec(), number);
        Ok(Some(number))
    }

    /// Notes what has happened to a connection.
    fn note_events(&mut self, number: usize) {
        let running = &mut self.connections[number];
        let connection = &running.connection;
        if !running.is_established && connection.is_established() {
            running.is_established = true;
            self.events.push_back(Event::Connected { connection: number });
        }
        if running.is_established {
            for stream in connection.readable().chain(connection.writable()) {
                self.events.push_back(Event::Stream(StreamId { connection: number, stream }));
            }
        }
        let has_ended = connection.is_closed() || connection.is_draining() || connection.local_error().is_some();
        if has_ended && !running.is_lost {
            running.is_lost = true;
            self.events.push_back(Event::Lost { connection: number, reason: running.reason() });
        }
    }

    fn connection(&mut self, number: usize) -> &mut Connection {
        &mut self.connections[number].connection
    }
}

impl Running {
    /// Returns why it has ended.
    fn reason(&self) -> String {
        if let Some(error) = self.failure {
            return error.to_string();
        }
        let errors = [("peer", self.connection.peer_error()), ("own", self.connection.local_error())];
        for (whose, error) in errors {
            if let Some(error) = error {
                let (code, reason) = (error.error_code, String::from_utf8_lossy(&error.reason));
                return format!("closed by {whose} error {code:#x} {reason:?}");
            }
        }
        match self.connection.is_timed_out() {
            true => "timed out".into(),
            false => "closed".into(),
        }
    }

    /// The next datagram, unless its time has not come. An error is one line.
    fn transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Result<Option<SocketAddr>, String> {
        if self.held.is_none() {
            let mut datagram = vec![0; self.connection.max_send_udp_payload_size()];
            match self.connection.send(&mut datagram) {
                Ok((size, info)) => {
                    datagram.truncate(size);
                    self.held = Some(Held { at: info.at, to: info.to, datagram });
                }
                Err(Error::Done) => return Ok(None),
                Err(error) => return Err(format!("quiche cannot send: {error}")),
            }
        }
        // A packet that closes the connection waits for no pace.
        match self.held.take_if(|held| self.is_lost || held.at <= now) {
            Some(held) => {
                *buffer = held.datagram;
                Ok(Some(held.to))
            }
            None => Ok(None),
        }
    }
}

impl Streams for QuicheStack {
    fn open(&mut self, connection: usize) -> Result<Option<StreamId>, String> {
        match self.connection(connection).peer_streams_left_bidi() {
            0 => Ok(None),
            _ => {
                let running = &mut self.connections[connection];
                running.opened += 1;
                Ok(Some(StreamId { connection, stream: NEXT_STREAM * (running.opened - 1) }))
            }
        }
    }

    fn read(&mut self, stream: StreamId, mut take: impl FnMut(&[u8]) -> Result<(), String>) -> Result<bool, String> {
        let connection = &mut self.connections[stream.connection].connection;
        loop {
            match connection.stream_recv(stream.stream, &mut self.step) {
                Ok((size, is_end)) => {
                    take(&self.step[..size])?;
                    if is_end {
                        return Ok(true);
                    }
                }
                // Nothing is there, or it was read to its end before.
                Err(Error::Done | Error::InvalidStreamState(_)) => return Ok(false),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<usize, String> {
        match self.connection(stream.connection).stream_send(stream.stream, bytes, false) {
            Err(Error::Done) => Ok(0),
            written => written.map_err(|error| error.to_string()),
        }
    }

    fn finish(&mut self, stream: StreamId) -> Result<(), String> {
        let finished = self.connection(stream.connection).stream_send(stream.stream, &[], true);
        finished.map(drop).map_err(|error| error.to_string())
    }

    fn stop(&mut self, stream: StreamId, code: u32) {
        let _ = self.connection(stream.connection).stream_shutdown(stream.stream, Shutdown::Read, code.into());
    }

    fn reset(&mut self, stream: StreamId, code: u32) {
        let _ = self.connection(stream.connection).stream_shutdown(stream.stream, Shutdown::Write, code.into());
    }
}

impl Stack for QuicheStack {
    fn receive(&mut self, _at: Instant, from: SocketAddr, _ecn: Option<u8>, datagram: &[u8]) {
        let mut copy = std::mem::take(&mut self.datagram);
        copy.clear();
        copy.extend_from_slice(datagram);
        match self.number_of(from, &mut copy) {
            Ok(Some(number)) => {
                let running = &mut self.connections[number];
                if let Err(error) = running.connection.recv(&mut copy, RecvInfo { from, to: LOCAL })
                    && error != Error::Done
                {
                    running.failure.get_or_insert(error);
                }
                self.note_events(number);
            }
            Ok(None) => {}
            Err(reason) => self.events.push_back(Event::Lost { connection: self.connections.len(), reason }),
        }
        self.datagram = copy;
    }

    fn timeout(&mut self) -> Option<Instant> {
        let running = self.connections.iter();
        running
            .flat_map(|one| [one.connection.timeout_instant(), one.held.as_ref().map(|held| held.at)])
            .flatten()
            .min()
    }

    fn on_timeout(&mut self, now: Instant) {
        for number in 0..self.connections.len() {
            let connection = self.connection(number);
            if connection.timeout_instant().is_some_and(|timeout| timeout <= now) {
                connection.on_timeout();
                self.note_events(number);
            }
        }
    }

    fn transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Result<Option<SocketAddr>, String> {
        for running in &mut self.connections {
            if let Some(to) = running.transmit(now, buffer)? {
                return Ok(Some(to));
            }
        }
        Ok(None)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn close(&mut self, _now: Instant, reason: &'static str) {
        for running in &mut self.connections {
            // A connection that is closed already has nothing to tell.
            let _ = running.connection.close(true, 0, reason.as_bytes());
            running.is_lost = true;
        }
    }

    fn metrics(&self) -> Metrics {
        let (mut sent, mut received) = (0, 0);
        let (mut rtt, mut congestion_window) = (None, 0);
        for running in &self.connections {
            let stats = running.connection.stats();
            sent += stats.sent;
            received += stats.recv;
            if let Some(path) = running.connection.path_stats().next() {
                // Before the first sample, quiche has a guess.
                (rtt, congestion_window) = (path.min_rtt.map(|_| path.rtt), path.cwnd);
            }
        }
        // quiche counts packets with nothing but ACKs as lost, too: its numbers are none of the contract's.
        let mut metrics = Metrics::from([
            ("packets_sent", sent as f64),
            ("packets_received", received as f64),
            ("congestion_window_bytes", congestion_window as f64),
        ]);
        metrics.extend(rtt.map(|rtt: Duration| ("smoothed_rtt_ms", 1e3 * rtt.as_secs_f64())));
        metrics
    }
}

/// A new connection ID of ours. An error is one line.
fn random_id() -> Result<ConnectionId<'static>, String> {
    let mut bytes = vec![0; ID_LENGTH];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| format!("/dev/urandom: {error}"))?;
    Ok(ConnectionId::from_vec(bytes))
}
