//! A law for whatever bytes: STREAM frames that are recovered do what they do when they are received, to streams, to flow
//! control, and to the connection, which they may end.
//!
//! An input is a script of what a peer sends. It is played twice, to a client with small flow-control windows: its frames come
//! in packets, and as symbols that are recovered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use fec::Code;
use host::content;
use host::contract::Role;
use noq_fec::stack::Application;
use noq_proto::{Connection, Dir, Event, ReadError, StreamEvent, StreamId, VarInt};

use super::budget::{Cost, within_budget};
use super::decrypted::{self, REPAIR, SOURCE_SYMBOL};
use super::{Setting, World, schemes};

/// Windows of each stream and of the connection, in bytes.
const STREAM_WINDOW: u32 = 600;
const WINDOW: u32 = 1000;
/// Number of streams of each kind that the peer may open.
const STREAMS: u32 = 4;

/// IDs of streams that the peer may open; the client's own, of which the first is open; one of the client's alone; and
/// one too many.
const IDS: [u8; 9] = [1, 5, 3, 7, 11, 0, 4, 2, 3 + 4 * STREAMS as u8];

/// Number of packets for the script.
const PACKETS: usize = 40;

/// The most frames that a symbol has, in bytes.
const LARGEST_SYMBOL: usize = 1200;

const PING: u8 = 0x01;
const RESET_STREAM: u8 = 0x04;
/// With an offset and a length.
const STREAM: u8 = 0x0e;

/// The content of a packet.
#[derive(Debug, Clone)]
enum Sent {
    /// STREAM frames, or a symbol that is these.
    Streams(Vec<u8>),
    Reset(Vec<u8>),
}

impl Sent {
    fn frames(&self) -> &[u8] {
        let (Self::Streams(frames) | Self::Reset(frames)) = self;
        frames
    }
}

/// Returns the outcome of a script, which is the same if its symbols are recovered as if they are received.
pub fn recovered_as_received(script: &[u8]) -> Option<Heard> {
    let (reads_at_once, sent) = parse(script)?;
    let cost = |(_, cost): &(Heard, Cost)| [*cost; 2];
    let play = |recovered| within_budget(cost, || play(&sent, reads_at_once, recovered)).0;
    let received = play(false);
    assert_eq!(play(true), received);
    for (id, stream) in &received.streams {
        assert_eq!(stream.read, content_of(u64::from(*id), 0, stream.read.len()), "stream {id}");
        assert!(reads_at_once || stream.read.len() <= STREAM_WINDOW as usize, "stream {id}: {stream:?}");
    }
    let read: usize = received.streams.values().map(|stream| stream.read.len()).sum();
    assert!(reads_at_once || read <= WINDOW as usize, "{read} bytes");
    Some(received)
}

/// Whether the client reads as soon as it can, or at the end only, and what it is sent.
fn parse(script: &[u8]) -> Option<(bool, Vec<Sent>)> {
    let (reads_at_once, steps) = script.split_first()?;
    let mut sent = vec![Sent::Streams(Vec::new())];
    for [step, which, offset, length] in steps.as_chunks().0 {
        let id = IDS[usize::from(*which) % IDS.len()];
        let offset = 5 * u64::from(*offset);
        let frame = stream(id, offset, step & 0x80 != 0, usize::from(*length));
        if step % 8 == 0 {
            sent.push(Sent::Reset([&[RESET_STREAM, id, 0][..], &varint(offset)].concat()));
            continue;
        }
        match sent.last_mut() {
            Some(Sent::Streams(frames)) if step % 8 > 2 && frames.len() + frame.len() <= LARGEST_SYMBOL => {
                frames.extend(frame);
            }
            _ => sent.push(Sent::Streams(frame)),
        }
    }
    sent.retain(|sent| !sent.frames().is_empty());
    sent.truncate(PACKETS);
    Some((reads_at_once % 2 == 0, sent))
}

fn stream(id: u8, offset: u64, fin: bool, length: usize) -> Vec<u8> {
    let content = content_of(id.into(), offset, length);
    [&[STREAM | u8::from(fin), id][..], &varint(offset), &varint(length as u64), &content].concat()
}

/// The content of a stream. Each byte of each stream is another one, so that a byte out of place shows.
fn content_of(id: u64, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    content::fill(id, offset, &mut bytes);
    bytes
}

/// In two bytes: RFC 9000, section 16.
fn varint(value: u64) -> [u8; 2] {
    (0x4000 | value as u16).to_be_bytes()
}

/// A REPAIR frame over the one symbol with this number, in one byte, which it has as it is.
fn repair(sid: u8, symbol: &[u8]) -> Vec<u8> {
    let (count, stride, key, density) = (1, 1, [0, 0], 0);
    [&REPAIR[..], &[sid, count, stride], &key, &[density], symbol].concat()
}

/// The number of the source symbol that a packet carries.
fn sid_of(payload: &[u8]) -> Option<u8> {
    let at = payload.windows(SOURCE_SYMBOL.len()).position(|window| window == SOURCE_SYMBOL)?;
    Some(payload[at + SOURCE_SYMBOL.len()])
}

/// Returns the outcome, and its cost.
fn play(sent: &[Sent], reads_at_once: bool, recovered: bool) -> (Heard, Cost) {
    let setting = Setting::download(0, Some(schemes(Code::Xor, 2, 1)));
    let mut queue: VecDeque<Sent> = sent.iter().cloned().collect();
    // The server's source symbols don't arrive, and in their places come the script's. Its repair symbols don't arrive.
    let change = move |_, payload: &mut BytesMut| {
        if payload.len() < LARGEST_SYMBOL - 100 {
            return;
        }
        let sid = sid_of(payload);
        payload.clear();
        match (sid, sid.and_then(|_| queue.pop_front())) {
            (Some(sid), Some(Sent::Streams(frames))) if recovered => payload.extend_from_slice(&repair(sid, &frames)),
            (_, Some(sent)) => payload.extend_from_slice(sent.frames()),
            (_, None) => payload.extend_from_slice(&[PING]),
        }
    };
    let (mut client, server) = decrypted::configs(&setting, Role::Client, Arc::new(Mutex::new(change)));
    let mut transport = setting.transport(Role::Client, &setting.client);
    transport
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(WINDOW.into())
        .max_concurrent_bidi_streams(STREAMS.into())
        .max_concurrent_uni_streams(STREAMS.into());
    client.transport_config(Arc::new(transport));
    let application = Reader { reads_at_once, heard: Heard::default() };
    let mut world = World::new(&setting, client, server, application, Box::new(|| Sender));
    while world.step(Duration::from_secs(5)) {}
    world.server.close(world.start + world.elapsed(), VarInt::from_u32(0), "");
    while world.step(Duration::from_secs(10)) {}
    let symbols = world.client.counters().recovered;
    assert!(if recovered { symbols > 0 || !matches!(sent.first(), Some(Sent::Streams(_))) } else { symbols == 0 });
    let reader = world.client.applications().next().expect("the client's");
    assert!(reader.heard.end.is_some(), "the connection goes on: {:?}", reader.heard);
    (std::mem::take(&mut reader.heard), world.costs[0])
}

/// Sends packets for the script, and a last one.
struct Sender;

impl Application for Sender {
    fn on_event(&mut self, _now: Instant, connection: &mut Connection, event: Event) {
        if matches!(event, Event::Connected) {
            // The streams that the script has data of.
            while connection.streams().open(Dir::Uni).is_some() || connection.streams().open(Dir::Bi).is_some() {}
            let largest = connection.datagrams().max_size().expect("the client takes datagrams");
            for _ in 0..PACKETS {
                connection.datagrams().send(vec![0; largest].into(), false).unwrap();
            }
            connection.datagrams().send(Bytes::from_static(b"read"), false).unwrap();
        }
    }
}

/// Reads what it can of all streams, at once or at the last packet.
struct Reader {
    reads_at_once: bool,
    heard: Heard,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heard {
    pub streams: BTreeMap<StreamId, Stream>,
    /// Numbers of times that the peer was allowed more, of the connection and of streams.
    windows: (u64, u64),
    /// Why the connection has ended.
    pub end: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stream {
    pub read: Vec<u8>,
    /// Why there is no more.
    end: Option<String>,
}

impl Application for Reader {
    fn on_event(&mut self, _now: Instant, connection: &mut Connection, event: Event) {
        match event {
            Event::Connected => {
                let id = connection.streams().open(Dir::Bi).expect("the server allows streams");
                self.heard.streams.insert(id, Stream::default());
            }
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = connection.streams().accept(dir) {
                    self.heard.streams.insert(id, Stream::default());
                }
            }
            Event::ConnectionLost { reason } => {
                let sent = connection.stats().frame_tx;
                self.heard.windows = (sent.max_data, sent.max_stream_data);
                self.heard.end = Some(reason.to_string());
                return;
            }
            _ => {}
        }
        if connection.datagrams().recv().is_some() || self.reads_at_once {
            self.read(connection);
        }
    }
}

impl Reader {
    fn read(&mut self, connection: &mut Connection) {
        for (id, stream) in self.heard.streams.iter_mut().filter(|(_, stream)| stream.end.is_none()) {
            let mut received = connection.recv_stream(*id);
            let Ok(mut chunks) = received.read(true) else { continue };
            stream.end = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => stream.read.extend_from_slice(&chunk.bytes),
                    Ok(None) => break Some("all was read".into()),
                    Err(ReadError::Blocked) => break None,
                    Err(error) => break Some(error.to_string()),
                }
            };
        }
    }
}
