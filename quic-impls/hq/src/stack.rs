//! The interface of a QUIC stack: its connections and their streams, without a socket.

use std::net::SocketAddr;
use std::time::Instant;

use host::contract::Metrics;

/// A stream of a connection. Connections are numbered from 0 in the order in which they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    pub connection: usize,
    /// QUIC's number of the stream.
    pub stream: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake of a connection is complete.
    Connected { connection: usize },
    /// A connection is no more, and why, in one line.
    Lost { connection: usize, reason: String },
    /// The peer allows further streams.
    Available { connection: usize },
    /// A stream that the peer has opened is new, or one can be read or written again.
    Stream(StreamId),
    /// The peer wants no more of what a stream sends, with its error code; the stream has been reset.
    Stopped { stream: StreamId, code: u64 },
}

/// The streams of connections. Errors are one line.
pub trait Streams {
    /// Opens a bidirectional stream, unless the peer allows none for now.
    fn open(&mut self, connection: usize) -> Result<Option<StreamId>, String>;

    /// Reads what has arrived; true at the end of the stream.
    fn read(&mut self, stream: StreamId, take: impl FnMut(&[u8]) -> Result<(), String>) -> Result<bool, String>;

    /// Tells how many of the bytes the stream takes now.
    fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<usize, String>;

    fn finish(&mut self, stream: StreamId) -> Result<(), String>;

    /// Asks the peer to send no more in a stream, with an error code. It may have sent all.
    fn stop(&mut self, stream: StreamId, code: u32);

    /// Sends no more in a stream, with an error code. All of it may have been acknowledged.
    fn reset(&mut self, stream: StreamId, code: u32);
}

/// A QUIC endpoint with its connections: datagrams and time in, datagrams and events out. Errors are one line.
pub trait Stack: Streams {
    /// Takes a datagram with its ECN codepoint; None where codepoints are not looked at.
    fn receive(&mut self, at: Instant, from: SocketAddr, ecn: Option<u8>, datagram: &[u8]);

    /// Returns when [`Self::on_timeout`] has to be called.
    fn timeout(&mut self) -> Option<Instant>;

    fn on_timeout(&mut self, now: Instant);

    /// Writes the next datagram that may be sent now into a buffer, and tells where it goes.
    fn transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Result<Option<SocketAddr>, String>;

    /// Returns the ECN codepoint that the datagram of the last [`Self::transmit`] should have.
    fn codepoint(&self) -> u8 {
        0
    }

    fn next_event(&mut self) -> Option<Event>;

    /// Closes all connections; [`Self::transmit`] then has the packets that tell the peers.
    fn close(&mut self, now: Instant, reason: &'static str);

    /// Returns the counters of all connections, by the contract's names.
    fn metrics(&self) -> Metrics;
}
