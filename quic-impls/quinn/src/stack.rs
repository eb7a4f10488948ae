//! quinn-proto's endpoint with its connections, as a stack of `hq`.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use host::contract::Metrics;
use hq::stack::{Event, Stack, StreamId, Streams};
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, FinishError, ReadError, StreamEvent,
    Transmit, VarInt, WriteError,
};

use crate::Assignment;
use crate::settings::{Configuration, End};

pub struct QuinnStack {
    endpoint: Endpoint,
    /// Connections by their number.
    connections: BTreeMap<usize, Connection>,
    /// The numbers of connections, by their handles, which are used again.
    numbers: BTreeMap<ConnectionHandle, usize>,
    begun: usize,
    /// Answers that belong to no connection.
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    events: VecDeque<Event>,
    /// The ECN codepoint of the datagram that was written last.
    codepoint: Option<EcnCodepoint>,
    /// Counters of finished connections.
    counters: Counters,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    packets_sent: u64,
    congestion_events: u64,
    /// Congestion window of the last connection.
    congestion_window: u64,
    /// Of the last connection; None before it was measured.
    rtt: Option<Duration>,
}

impl Counters {
    fn add(&mut self, connection: &Connection) {
        let stats = connection.stats();
        self.packets_sent += stats.path.sent_packets;
        self.congestion_events += stats.path.congestion_events;
        self.congestion_window = stats.path.cwnd;
        // Before the first ACK, quinn has a guess.
        self.rtt = (stats.frame_rx.acks > 0).then_some(stats.path.rtt);
    }
}

impl QuinnStack {
    /// A client connects. An error is one line.
    pub fn start(assignment: &Assignment, configuration: Configuration, now: Instant) -> Result<Self, String> {
        let (client, server) = match configuration.end {
            End::Client(config) => (Some(config), None),
            End::Server(config) => (None, Some(Arc::new(config))),
        };
        let mut stack = Self {
            endpoint: Endpoint::new(Arc::new(configuration.endpoint), server, false, None),
            connections: BTreeMap::new(),
            numbers: BTreeMap::new(),
            begun: 0,
            replies: VecDeque::new(),
            events: VecDeque::new(),
            codepoint: None,
            counters: Counters::default(),
        };
        if let Some(config) = client {
            let (address, name) = (assignment.address, &assignment.server_name);
            let dialled = stack.endpoint.connect(now, config, address, name);
            let (handle, connection) = dialled.map_err(|error| format!("cannot connect to {address}: {error}"))?;
            stack.begin(handle, connection);
        }
        Ok(stack)
    }

    fn begin(&mut self, handle: ConnectionHandle, connection: Connection) {
        self.numbers.insert(handle, self.begun);
        self.connections.insert(self.begun, connection);
        self.begun += 1;
        self.proceed(handle);
    }

    fn reply(&mut self, transmit: Option<Transmit>, mut datagram: Vec<u8>) {
        if let Some(transmit) = transmit {
            datagram.truncate(transmit.size);
            self.replies.push_back((transmit.destination, datagram));
        }
    }

    fn connection(&mut self, number: usize) -> Result<&mut Connection, String> {
        self.connections.get_mut(&number).ok_or_else(|| "the connection is no more".into())
    }

    /// Passes on what a connection has to say to the endpoint, and takes its events, until it is silent.
    fn proceed(&mut self, handle: ConnectionHandle) {
        let Some(&number) = self.numbers.get(&handle) else {
            return;
        };
        let connection = self.connections.get_mut(&number).expect("one that has a number");
        let mut is_drained = false;
        loop {
            if let Some(event) = connection.poll_endpoint_events() {
                is_drained |= event.is_drained();
                if let Some(event) = self.endpoint.handle_event(handle, event) {
                    connection.handle_event(event);
                }
            } else if let Some(event) = connection.poll() {
                translate(number, connection, event, &mut self.events);
            } else {
                break;
            }
        }
        if is_drained {
            self.counters.add(connection);
            self.connections.remove(&number);
            self.numbers.remove(&handle);
        }
    }
}

/// The number of packets in a datagram: each but the last says in its long header how long it is (RFC 9000, §17.2).
fn packets_in(datagram: &[u8]) -> u64 {
    let (mut rest, mut count) = (datagram, 0);
    while let Some(first) = rest.first() {
        count += 1;
        rest = match first & 0x80 {
            0 => &[],
            _ => behind_long(rest).unwrap_or_default(),
        };
    }
    count
}

/// Returns the packets behind one with a long header in its datagram.
fn behind_long(packet: &[u8]) -> Option<&[u8]> {
    let (first, mut rest) = packet.split_first()?;
    rest = rest.get(4..)?;
    for _ in ["destination", "source"] {
        let (length, ids) = rest.split_first()?;
        rest = ids.get(usize::from(*length)..)?;
    }
    if first & 0x30 == 0 {
        let token = integer(&mut rest)?;
        rest = rest.get(token..)?;
    }
    let length = integer(&mut rest)?;
    rest.get(length..)
}

/// Takes a variable-length integer off (RFC 9000, §16).
fn integer(rest: &mut &[u8]) -> Option<usize> {
    let length = 1 << (rest.first()? >> 6);
    let bytes = rest.get(..length)?;
    *rest = &rest[length..];
    let value = bytes.iter().fold(0, |value, byte| value << 8 | usize::from(*byte));
    Some(value & ((1 << (8 * length - 2)) - 1))
}

/// The events of `hq` that one of quinn-proto means.
fn translate(number: usize, connection: &mut Connection, event: quinn_proto::Event, events: &mut VecDeque<Event>) {
    match event {
        quinn_proto::Event::Connected => events.push_back(Event::Connected { connection: number }),
        quinn_proto::Event::ConnectionLost { reason } => {
            events.push_back(Event::Lost { connection: number, reason: reason.to_string() });
        }
        quinn_proto::Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
            while let Some(id) = connection.streams().accept(Dir::Bi) {
                events.push_back(Event::Stream(numbered(number, id)));
            }
        }
        quinn_proto::Event::Stream(StreamEvent::Readable { id } | StreamEvent::Writable { id }) => {
            events.push_back(Event::Stream(numbered(number, id)));
        }
        quinn_proto::Event::Stream(StreamEvent::Stopped { id, error_code }) => {
            // Without a reset, the data that the stream holds would be sent all the same.
            let _ = connection.send_stream(id).reset(error_code); // all of it may have been acknowledged
            events.push_back(Event::Stopped { stream: numbered(number, id), code: error_code.into_inner() });
        }
        quinn_proto::Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => {
            events.push_back(Event::Available { connection: number });
        }
        _ => {}
    }
}

fn numbered(connection: usize, id: quinn_proto::StreamId) -> StreamId {
    StreamId { connection, stream: VarInt::from(id).into_inner() }
}

fn quinns(stream: StreamId) -> quinn_proto::StreamId {
    VarInt::from_u64(stream.stream).expect("it was one of quinn-proto").into()
}

impl Streams for QuinnStack {
    fn open(&mut self, connection: usize) -> Result<Option<StreamId>, String> {
        let opened = self.connection(connection)?.streams().open(Dir::Bi);
        Ok(opened.map(|id| numbered(connection, id)))
    }

    fn read(&mut self, stream: StreamId, mut take: impl FnMut(&[u8]) -> Result<(), String>) -> Result<bool, String> {
        let mut receiving = self.connection(stream.connection)?.recv_stream(quinns(stream));
        let Ok(mut chunks) = receiving.read(true) else {
            return Ok(false); // read to its end before
        };
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => take(&chunk.bytes)?,
                Ok(None) => break Ok(true),
                Err(ReadError::Blocked) => break Ok(false),
                Err(error) => break Err(error.to_string()),
            }
        };
        let _ = chunks.finalize(); // credit is sent with what is sent next: this endpoint always transmits after it reads
        ended
    }

    fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<usize, String> {
        match self.connection(stream.connection)?.send_stream(quinns(stream)).write(bytes) {
            Err(WriteError::Blocked) => Ok(0),
            written => written.map_err(|error| error.to_string()),
        }
    }

    fn finish(&mut self, stream: StreamId) -> Result<(), String> {
        match self.connection(stream.connection)?.send_stream(quinns(stream)).finish() {
            Ok(()) | Err(FinishError::ClosedStream) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn stop(&mut self, stream: StreamId, code: u32) {
        if let Ok(connection) = self.connection(stream.connection) {
            let _ = connection.recv_stream(quinns(stream)).stop(code.into());
        }
    }

    fn reset(&mut self, stream: StreamId, code: u32) {
        if let Ok(connection) = self.connection(stream.connection) {
            let _ = connection.send_stream(quinns(stream)).reset(code.into());
        }
    }
}

impl Stack for QuinnStack {
    fn receive(&mut self, at: Instant, from: SocketAddr, ecn: Option<u8>, datagram: &[u8]) {
        let mut reply = Vec::new();
        let codepoint = ecn.and_then(EcnCodepoint::from_bits);
        match self.endpoint.handle(at, from, None, codepoint, BytesMut::from(datagram), &mut reply) {
            None => {}
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let number = self.numbers.get(&handle);
                if let Some(connection) = number.and_then(|number| self.connections.get_mut(number)) {
                    connection.handle_event(event);
                    self.proceed(handle);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, at, &mut reply, None) {
                    Ok((handle, connection)) => self.begin(handle, connection),
                    Err(error) => self.reply(error.response, reply),
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.reply(Some(transmit), reply),
        }
    }

    fn timeout(&mut self) -> Option<Instant> {
        self.connections.values_mut().filter_map(Connection::poll_timeout).min()
    }

    fn on_timeout(&mut self, now: Instant) {
        let handles: Vec<_> = self.numbers.iter().map(|(handle, number)| (*handle, *number)).collect();
        for (handle, number) in handles {
            let connection = self.connections.get_mut(&number).expect("one that has a number");
            if connection.poll_timeout().is_some_and(|timeout| timeout <= now) {
                connection.handle_timeout(now);
                self.proceed(handle);
            }
        }
    }

    fn transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Result<Option<SocketAddr>, String> {
        buffer.clear();
        if let Some((to, datagram)) = self.replies.pop_front() {
            *buffer = datagram;
            self.codepoint = None;
            return Ok(Some(to));
        }
        let handles: Vec<_> = self.numbers.iter().map(|(handle, number)| (*handle, *number)).collect();
        for (handle, number) in handles {
            let connection = self.connections.get_mut(&number).expect("one that has a number");
            if let Some(transmit) = connection.poll_transmit(now, 1, buffer) {
                // quinn counts no packet that closes a connection.
                if connection.is_closed() {
                    self.counters.packets_sent += packets_in(&buffer[..transmit.size]);
                }
                self.codepoint = transmit.ecn;
                return Ok(Some(transmit.destination));
            }
            // The packets sent may have made room for more.
            self.proceed(handle);
        }
        Ok(None)
    }

    fn codepoint(&self) -> u8 {
        self.codepoint.map_or(0, |codepoint| codepoint as u8)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn close(&mut self, now: Instant, reason: &'static str) {
        for connection in self.connections.values_mut() {
            connection.close(now, VarInt::from_u32(0), Bytes::from_static(reason.as_bytes()));
        }
    }

    fn metrics(&self) -> Metrics {
        let mut counters = self.counters;
        for connection in self.connections.values() {
            counters.add(connection);
        }
        // quinn counts packets with nothing but ACKs as lost, too: its number is none of the contract's.
        let mut metrics = Metrics::from([
            ("packets_sent", counters.packets_sent as f64),
            ("window_reductions", counters.congestion_events as f64),
            ("congestion_window_bytes", counters.congestion_window as f64),
        ]);
        metrics.extend(counters.rtt.map(|rtt| ("smoothed_rtt_ms", 1e3 * rtt.as_secs_f64())));
        metrics
    }
}
