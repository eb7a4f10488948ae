//! The workload `messages` over QUIC, without a socket or a clock. The client asks on a bidirectional stream, which also tells
//! when there is nothing more to come; messages travel in DATAGRAM frames or on unidirectional streams of their sender.

mod receiver;
mod sender;

use std::sync::Arc;
use std::time::Instant;

use host::contract::{Direction, Role};
use host::messages::{HEADER, Log, Messages};
use noq_proto::{Connection, ConnectionError, Dir, Event, FinishError, ReadError, StreamEvent, StreamId, WriteError};

use crate::options::Options;
use crate::stack::Application;
use receiver::Receiving;
use sender::Sending;

pub const ALPN: &[u8] = b"fecbench-messages";

const GET: &[u8] = b"GET MESSAGES\r\n";
const PUT: &[u8] = b"PUT MESSAGES\r\n";
const END: &[u8] = b"END\r\n";
const DONE: &[u8] = b"DONE\r\n";

/// Bytes that noq-proto keeps free in a packet with a DATAGRAM frame: a short header with a connection ID of 8 bytes
/// and the longest packet number, the tag of the cipher, and the longest type and length of the frame.
const PACKET_OVERHEAD: u64 = 1 + 8 + 4 + 16 + 9;

/// Bytes by which a packet that is a REPAIR frame over symbols exceeds a packet that is the longest of them.
const REPAIR_OVERHEAD: u64 = 4 + fec::MAX_HEADER as u64;

/// The longest part that fits into a datagram.
pub fn longest_part(options: &Options) -> u64 {
    let symbols = if options.schemes.is_some() { REPAIR_OVERHEAD } else { 0 };
    u64::from(options.packet_size) - PACKET_OVERHEAD - symbols - HEADER as u64
}

/// One end of the workload, on one connection.
#[derive(Debug)]
pub struct Exchange {
    role: Role,
    messages: Arc<Messages>,
    control: Control,
    content: Content,
    /// Whether nothing is left to do: the connection is no more, or all was received.
    is_over: bool,
    /// Time at which the handshake was complete.
    pub connected: Option<Instant>,
    /// Time of its end here and outcome; an error is one line.
    pub outcome: Option<(Instant, Result<(), String>)>,
}

#[derive(Debug)]
enum Content {
    Sending(Sending),
    Receiving(Receiving),
}

impl Exchange {
    pub fn new(role: Role, messages: Arc<Messages>, content_seed: u64) -> Self {
        let content = match messages.sender() == role {
            true => Content::Sending(Sending::new(messages.clone(), content_seed)),
            false => Content::Receiving(Receiving::new(messages.clone(), content_seed)),
        };
        let right = match (role, messages.direction) {
            (Role::Client, Direction::Download) => END.to_vec(),
            (Role::Client, Direction::Upload) => DONE.to_vec(),
            (Role::Server, Direction::Download) => GET.to_vec(),
            (Role::Server, Direction::Upload) => [PUT, END].concat(),
        };
        Self { role, messages, control: Control::new(right), content, is_over: false, connected: None, outcome: None }
    }

    /// Returns the times at which parts were sent, or had arrived; and the start of the timetable, if this is the
    /// sender.
    pub fn log(&self) -> (&Log, Option<Instant>) {
        match &self.content {
            Content::Sending(sending) => (&sending.log, sending.begun),
            Content::Receiving(receiving) => (receiving.log(), None),
        }
    }

    /// Messages that were reset before all of them was acknowledged.
    pub fn messages_reset(&self) -> u64 {
        match &self.content {
            Content::Sending(sending) => sending.messages_reset,
            Content::Receiving(_) => 0,
        }
    }

    fn take(&mut self, now: Instant, connection: &mut Connection, event: Event) -> Result<(), String> {
        match event {
            Event::Connected if self.role == Role::Client => {
                let id = connection.streams().open(Dir::Bi).ok_or("the server allows no stream")?;
                self.control.id = Some(id);
                match self.messages.direction {
                    Direction::Download => self.control.say(GET, true),
                    Direction::Upload => {
                        self.control.say(PUT, false);
                        self.begin(now);
                    }
                }
            }
            Event::ConnectionLost { reason } => {
                self.is_over = true;
                return self.lost(&reason);
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(id) = connection.streams().accept(Dir::Bi) {
                    if self.control.id.replace(id).is_some() {
                        return Err("the client asks twice".into());
                    }
                    self.listen(now, connection)?;
                }
            }
            Event::Stream(StreamEvent::Readable { id }) if Some(id) == self.control.id => {
                self.listen(now, connection)?;
            }
            Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                return Err(format!("stream {id} was stopped with code {error_code}"));
            }
            event => match &mut self.content {
                Content::Sending(sending) => sending.take(&event),
                Content::Receiving(receiving) => receiving.take(now, connection, event)?,
            },
        }
        Ok(())
    }

    fn begin(&mut self, now: Instant) {
        if let Content::Sending(sending) = &mut self.content {
            sending.begun.get_or_insert(now);
        }
    }

    /// Reads the other end's control stream.
    fn listen(&mut self, now: Instant, connection: &mut Connection) -> Result<(), String> {
        if self.control.read(connection)? {
            match &mut self.content {
                Content::Sending(_) if self.role == Role::Server => self.begin(now),
                Content::Sending(_) => self.outcome = Some((now, Ok(()))),
                Content::Receiving(receiving) => receiving.end(now),
            }
        }
        Ok(())
    }

    fn lost(&self, reason: &ConnectionError) -> Result<(), String> {
        match (self.role, self.connected) {
            // A client closes when it is done, or has told why it is not.
            (Role::Server, _) => Ok(()),
            (Role::Client, None) => Err(format!("handshake: {reason}")),
            (Role::Client, Some(_)) => Err(format!("connection lost: {reason}")),
        }
    }

    /// Does what is due.
    fn proceed(&mut self, now: Instant, connection: &mut Connection) -> Result<(), String> {
        if !self.is_over {
            match &mut self.content {
                Content::Sending(sending) => {
                    if sending.proceed(now, connection)? {
                        self.control.say(END, true);
                    }
                }
                Content::Receiving(receiving) if receiving.is_done(now) => {
                    self.is_over = true;
                    match self.role {
                        Role::Client => self.outcome = Some((now, Ok(()))),
                        Role::Server => self.control.say(DONE, true),
                    }
                }
                Content::Receiving(_) => {}
            }
        }
        self.control.write(connection)
    }

    fn note(&mut self, now: Instant, done: Result<(), String>) {
        if let Err(what) = done {
            self.outcome = Some((now, Err(format!("{}: {what}", self.messages))));
        }
    }
}

impl Application for Exchange {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        if self.outcome.is_some() {
            return;
        }
        if matches!(event, Event::Connected) {
            self.connected = Some(now);
        }
        let taken = self.take(now, connection, event);
        let done = taken.and_then(|()| self.proceed(now, connection));
        self.note(now, done);
    }

    fn timeout(&self) -> Option<Instant> {
        if self.outcome.is_some() || self.is_over {
            return None;
        }
        match &self.content {
            Content::Sending(sending) => sending.timeout(),
            Content::Receiving(receiving) => receiving.timeout(),
        }
    }

    fn on_timeout(&mut self, now: Instant, connection: &mut Connection) {
        let done = self.proceed(now, connection);
        self.note(now, done);
    }
}

/// The bidirectional stream.
#[derive(Debug)]
struct Control {
    id: Option<StreamId>,
    /// The text that the other end has to send, up to the end of the stream.
    right: Vec<u8>,
    read: usize,
    outgoing: Vec<u8>,
    /// Whether nothing is said after that, and whether the stream knows.
    is_last: bool,
    is_finished: bool,
}

impl Control {
    fn new(right: Vec<u8>) -> Self {
        Self { id: None, right, read: 0, outgoing: Vec::new(), is_last: false, is_finished: false }
    }

    fn say(&mut self, text: &[u8], is_last: bool) {
        if !self.is_last {
            self.outgoing.extend_from_slice(text);
            self.is_last = is_last;
        }
    }

    /// Gives the stream what it takes.
    fn write(&mut self, connection: &mut Connection) -> Result<(), String> {
        let Some(id) = self.id.filter(|_| !self.is_finished) else {
            return Ok(());
        };
        let mut stream = connection.send_stream(id);
        while !self.outgoing.is_empty() {
            match stream.write(&self.outgoing) {
                Ok(written) => drop(self.outgoing.drain(..written)),
                Err(WriteError::Blocked) => return Ok(()),
                Err(error) => return Err(format!("control stream: {error}")),
            }
        }
        if self.is_last {
            self.is_finished = true;
            match stream.finish() {
                Ok(()) | Err(FinishError::ClosedStream) => {}
                Err(error) => return Err(format!("control stream: {error}")),
            }
        }
        Ok(())
    }

    /// Reads what has come; true at the end of the right text.
    fn read(&mut self, connection: &mut Connection) -> Result<bool, String> {
        let Some(id) = self.id else {
            return Ok(false);
        };
        read(connection, id, |bytes| {
            let is_right = self.right[self.read..].starts_with(bytes);
            self.read += bytes.len();
            match is_right {
                true => Ok(()),
                false => {
                    let right = String::from_utf8_lossy(&self.right).into_owned();
                    Err(format!(
                        "{:?} came where {right:?} was to come",
                        String::from_utf8_lossy(&bytes[..bytes.len().min(64)])
                    ))
                }
            }
        })
        .and_then(|end| match end {
            Some(Ended::Finished) if self.read == self.right.len() => Ok(true),
            Some(_) => Err(format!("the control stream ended after {} bytes", self.read)),
            None => Ok(false),
        })
    }
}

/// The way in which a stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Finished,
    Reset,
}

/// Reads what a stream has received, in order; tells how it has ended if it has.
fn read(
    connection: &mut Connection,
    id: StreamId,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<Option<Ended>, String> {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else {
        return Ok(None); // read to its end before
    };
    loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => take(&chunk.bytes)?,
            Ok(None) => return Ok(Some(Ended::Finished)),
            Err(ReadError::Blocked) => return Ok(None),
            Err(ReadError::Reset(_)) => return Ok(Some(Ended::Reset)),
        }
    }
}
