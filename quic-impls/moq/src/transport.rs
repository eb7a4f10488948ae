//! A connection of noq-proto behind the poll traits of web-transport-trait: no runtime, no clock, no socket.
//!
//! The connection belongs to noq-fec's stack, which lends it to the application for the time of a call; handles reach the one that
//! is lent. Nothing here spawns a task or reads a clock.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use noq_proto::{Connection, Dir, Event, FinishError, ReadError, SendDatagramError, StreamEvent, StreamId, WriteError};
use scoped_tls_hkt::scoped_thread_local;
use web_transport_trait as wt;
use web_transport_trait::poll;

scoped_thread_local!(static mut LENT: for<'a> &'a mut Connection);

/// The reason for which an operation failed.
#[derive(Debug, Clone)]
pub enum Failed {
    /// The connection is no more.
    Lost(String),
    /// The peer reset or stopped a stream, with this code.
    Stream(u64),
    /// The stream has ended here.
    Closed,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(why) => write!(f, "connection lost: {why}"),
            Self::Stream(code) => write!(f, "stream ended by the peer with code {code}"),
            Self::Closed => f.write_str("stream closed"),
        }
    }
}

impl std::error::Error for Failed {}

impl wt::Error for Failed {
    fn session_error(&self) -> Option<(u32, String)> {
        match self {
            Self::Lost(why) => Some((0, why.clone())),
            Self::Stream(_) | Self::Closed => None,
        }
    }

    fn stream_error(&self) -> Option<u32> {
        match self {
            Self::Stream(code) => u32::try_from(*code).ok(),
            Self::Lost(_) | Self::Closed => None,
        }
    }
}

/// An event of the connection for which tasks wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    Accept(Dir),
    Open(Dir),
    Read(StreamId),
    Write(StreamId),
    /// The end of a stream that is written to.
    End(StreamId),
    Datagram,
    RoomForDatagrams,
    Loss,
}

#[derive(Default)]
struct Shared {
    waiting: BTreeMap<Wait, Vec<Waker>>,
    /// The streams that are written to, and how those have ended that have: acknowledged, or stopped with a code.
    sending: BTreeMap<StreamId, Option<Option<u64>>>,
    lost: Option<String>,
    closing: Option<(u32, String)>,
    /// Bytes that were written to each stream.
    written: BTreeMap<StreamId, u64>,
    /// Streams that were written to since the places were taken.
    touched: BTreeSet<StreamId>,
}

impl Shared {
    /// Notes the end of a stream, as long as somebody writes to it.
    fn end(&mut self, id: StreamId, how: Option<u64>) {
        if let Some(ended) = self.sending.get_mut(&id) {
            *ended = Some(how);
        }
    }
}

/// A handle on the connection; its clones are the same.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Mutex<Shared>>,
    protocol: &'static str,
}

impl Session {
    pub fn new(protocol: &'static str) -> Self {
        Self { shared: Arc::default(), protocol }
    }

    /// Lends the connection to all handles for the time of a call.
    pub fn lend<T>(connection: &mut Connection, call: impl FnOnce() -> T) -> T {
        LENT.set(connection, call)
    }

    /// Takes the code and the reason with which the session was closed here.
    pub fn take_closing(&self) -> Option<(u32, String)> {
        self.shared().closing.take()
    }

    /// Takes the places up to which streams were written since the last call, of those with room for more. Where a turn of the
    /// tasks is over, frames of media end there.
    pub fn take_ends(&self) -> Vec<(StreamId, u64)> {
        let mut shared = self.shared();
        let touched = mem::take(&mut shared.touched);
        let whole = touched.into_iter().filter(|id| !shared.waiting.contains_key(&Wait::Write(*id)));
        whole.filter_map(|id| Some((id, *shared.written.get(&id)?))).collect()
    }

    /// Wakes the tasks that wait for an event.
    pub fn on_event(&self, event: &Event) {
        let mut shared = self.shared();
        let waits: Vec<Wait> = match event {
            Event::Stream(StreamEvent::Opened { dir }) => vec![Wait::Accept(*dir)],
            Event::Stream(StreamEvent::Available { dir }) => vec![Wait::Open(*dir)],
            Event::Stream(StreamEvent::Readable { id }) => vec![Wait::Read(*id)],
            Event::Stream(StreamEvent::Writable { id }) => vec![Wait::Write(*id)],
            Event::Stream(StreamEvent::Finished { id }) => {
                shared.end(*id, None);
                vec![Wait::Write(*id), Wait::End(*id)]
            }
            Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                shared.end(*id, Some(error_code.into_inner()));
                vec![Wait::Write(*id), Wait::End(*id)]
            }
            Event::DatagramReceived => vec![Wait::Datagram],
            Event::DatagramsUnblocked => vec![Wait::RoomForDatagrams],
            Event::ConnectionLost { reason } => {
                shared.lost = Some(reason.to_string());
                shared.waiting.keys().copied().collect()
            }
            _ => Vec::new(),
        };
        for wait in waits {
            for waker in shared.waiting.remove(&wait).unwrap_or_default() {
                waker.wake();
            }
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("nobody panics with it")
    }

    /// Calls with the connection; None where none is lent.
    fn with<T>(call: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        LENT.is_set().then(|| LENT.with(call))
    }

    fn wait<T>(&self, wait: Wait, cx: &Context<'_>) -> Poll<Result<T, Failed>> {
        let mut shared = self.shared();
        if let Some(why) = &shared.lost {
            return Poll::Ready(Err(Failed::Lost(why.clone())));
        }
        let waiting = shared.waiting.entry(wait).or_default();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn accept(&self, dir: Dir, cx: &Context<'_>) -> Poll<Result<StreamId, Failed>> {
        match Self::with(|connection| connection.streams().accept(dir)).flatten() {
            Some(id) => Poll::Ready(Ok(id)),
            None => self.wait(Wait::Accept(dir), cx),
        }
    }

    fn open(&self, dir: Dir, cx: &Context<'_>) -> Poll<Result<StreamId, Failed>> {
        match Self::with(|connection| connection.streams().open(dir)).flatten() {
            Some(id) => Poll::Ready(Ok(id)),
            None => self.wait(Wait::Open(dir), cx),
        }
    }

    fn sender(&self, id: StreamId) -> SendStream {
        self.shared().sending.insert(id, None);
        SendStream { session: self.clone(), id, is_over: false }
    }

    fn receiver(&self, id: StreamId) -> RecvStream {
        RecvStream { session: self.clone(), id, ended: None }
    }
}

impl poll::Session for Session {
    type SendStream = SendStream;
    type RecvStream = RecvStream;
    type Error = Failed;

    fn poll_accept_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<RecvStream, Failed>> {
        self.accept(Dir::Uni, cx).map_ok(|id| self.receiver(id))
    }

    fn poll_accept_bi(&mut self, cx: &mut Context<'_>) -> Poll<Result<(SendStream, RecvStream), Failed>> {
        self.accept(Dir::Bi, cx).map_ok(|id| (self.sender(id), self.receiver(id)))
    }

    fn poll_open_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream, Failed>> {
        self.open(Dir::Uni, cx).map_ok(|id| self.sender(id))
    }

    fn poll_open_bi(&mut self, cx: &mut Context<'_>) -> Poll<Result<(SendStream, RecvStream), Failed>> {
        self.open(Dir::Bi, cx).map_ok(|id| (self.sender(id), self.receiver(id)))
    }

    fn poll_send_datagram(&mut self, cx: &mut Context<'_>, payload: &[u8]) -> Poll<Result<(), Failed>> {
        let payload = Bytes::copy_from_slice(payload);
        match Self::with(|connection| connection.datagrams().send(payload, false)) {
            Some(Ok(())) => Poll::Ready(Ok(())),
            None | Some(Err(SendDatagramError::Blocked(_))) => self.wait(Wait::RoomForDatagrams, cx),
            Some(Err(error)) => Poll::Ready(Err(Failed::Lost(error.to_string()))),
        }
    }

    fn poll_recv_datagram(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Failed>> {
        match Self::with(|connection| connection.datagrams().recv()).flatten() {
            Some(datagram) => Poll::Ready(Ok(datagram)),
            None => self.wait(Wait::Datagram, cx),
        }
    }

    fn max_datagram_size(&self) -> usize {
        Self::with(|connection| connection.datagrams().max_size()).flatten().unwrap_or_default()
    }

    fn protocol(&self) -> Option<&str> {
        Some(self.protocol)
    }

    fn close(&mut self, code: u32, reason: &str) {
        self.shared().closing.get_or_insert((code, reason.to_string()));
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Failed> {
        match self.wait::<()>(Wait::Loss, cx) {
            Poll::Ready(Err(failed)) => Poll::Ready(failed),
            _ => Poll::Pending,
        }
    }

    fn stats(&self) -> impl wt::Stats {
        wt::StatsUnavailable
    }
}

/// A stream that is written to.
pub struct SendStream {
    session: Session,
    id: StreamId,
    /// Whether it was finished or reset here.
    is_over: bool,
}

impl poll::SendStream for SendStream {
    type Error = Failed;

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize, Failed>> {
        match Session::with(|connection| connection.send_stream(self.id).write(buf)) {
            Some(Ok(written)) => {
                let mut shared = self.session.shared();
                *shared.written.entry(self.id).or_default() += written as u64;
                shared.touched.insert(self.id);
                Poll::Ready(Ok(written))
            }
            None | Some(Err(WriteError::Blocked)) => self.session.wait(Wait::Write(self.id), cx),
            Some(Err(WriteError::Stopped(code))) => Poll::Ready(Err(Failed::Stream(code.into_inner()))),
            Some(Err(WriteError::ClosedStream)) => Poll::Ready(Err(Failed::Closed)),
        }
    }

    fn set_priority(&mut self, order: u8) {
        // A stream that has ended has none.
        Session::with(|connection| connection.send_stream(self.id).set_priority(order.into()).ok());
    }

    fn finish(&mut self) -> Result<(), Failed> {
        self.is_over = true;
        match Session::with(|connection| connection.send_stream(self.id).finish()) {
            Some(Ok(())) => Ok(()),
            Some(Err(FinishError::Stopped(code))) => Err(Failed::Stream(code.into_inner())),
            None | Some(Err(FinishError::ClosedStream)) => Err(Failed::Closed),
        }
    }

    fn reset(&mut self, code: u32) {
        self.is_over = true;
        // A stream that has ended cannot be reset, and need not be.
        Session::with(|connection| connection.send_stream(self.id).reset(code.into()).ok());
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        let ended = self.session.shared().sending.get(&self.id).copied().flatten();
        match ended {
            Some(None) => Poll::Ready(Ok(())),
            Some(Some(code)) => Poll::Ready(Err(Failed::Stream(code))),
            None => self.session.wait(Wait::End(self.id), cx),
        }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        self.session.shared().written.remove(&self.id);
        if !self.is_over {
            poll::SendStream::reset(self, 0);
        }
        let mut shared = self.session.shared();
        shared.sending.remove(&self.id);
        shared.waiting.remove(&Wait::Write(self.id));
        shared.waiting.remove(&Wait::End(self.id));
    }
}

/// A stream that is read from.
pub struct RecvStream {
    session: Session,
    id: StreamId,
    /// How it has ended: at its end, or by a reset with a code.
    ended: Option<Result<(), u64>>,
}

impl RecvStream {
    fn end(&mut self, ended: Result<(), u64>) -> Result<(), Failed> {
        self.ended = Some(ended);
        ended.map_err(Failed::Stream)
    }
}

impl poll::RecvStream for RecvStream {
    type Error = Failed;

    fn poll_read(&mut self, cx: &mut Context<'_>, dst: &mut [u8]) -> Poll<Result<Option<usize>, Failed>> {
        if let Some(ended) = self.ended {
            return Poll::Ready(ended.map(|()| None).map_err(Failed::Stream));
        }
        let read = Session::with(|connection| {
            let mut stream = connection.recv_stream(self.id);
            let Ok(mut chunks) = stream.read(true) else { return Ok(None) };
            let read = chunks.next(dst.len()).map(|chunk| chunk.map(|chunk| chunk.bytes));
            // Its packets are asked for after every turn.
            let _ = chunks.finalize();
            read
        });
        match read {
            Some(Ok(Some(bytes))) => {
                dst[..bytes.len()].copy_from_slice(&bytes);
                Poll::Ready(Ok(Some(bytes.len())))
            }
            Some(Ok(None)) => Poll::Ready(self.end(Ok(())).map(|()| None)),
            Some(Err(ReadError::Reset(code))) => Poll::Ready(self.end(Err(code.into_inner())).map(|()| None)),
            None | Some(Err(ReadError::Blocked)) => self.session.wait(Wait::Read(self.id), cx),
        }
    }

    fn stop(&mut self, code: u32) {
        if self.ended.is_none() {
            self.ended = Some(Ok(()));
            // A stream that has ended cannot be stopped, and need not be.
            Session::with(|connection| connection.recv_stream(self.id).stop(code.into()).ok());
        }
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        if let Some(ended) = self.ended {
            return Poll::Ready(ended.map_err(Failed::Stream));
        }
        match Session::with(|connection| connection.recv_stream(self.id).received_reset()) {
            Some(Ok(Some(code))) => Poll::Ready(self.end(Err(code.into_inner()))),
            Some(Err(_)) => Poll::Ready(self.end(Ok(()))),
            None | Some(Ok(None)) => self.session.wait(Wait::Read(self.id), cx),
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        poll::RecvStream::stop(self, 0);
        self.session.shared().waiting.remove(&Wait::Read(self.id));
    }
}
