//! The requests of a client that is told in the course of a trial what to ask for.

use std::time::Instant;

use host::requests;
use host::transfer::Outgoing;

use crate::sending::Sending;
use crate::stack::{Event, StreamId, Streams};

/// The stream error code of a request that nobody wants answered any more.
const GIVEN_UP: u32 = 0;

pub struct Requests {
    pub list: requests::Requests<StreamId>,
    connection: usize,
}

impl Requests {
    pub fn new(content_seed: u64) -> Self {
        Self { list: requests::Requests::new(content_seed), connection: 0 }
    }

    pub fn on_event(&mut self, now: Instant, streams: &mut impl Streams, event: Event) {
        let result = self.proceed(now, streams, event);
        self.list.note(now, result);
    }

    /// Does what waits, though nothing happens.
    pub fn on_timeout(&mut self, now: Instant, streams: &mut impl Streams) {
        let result = self.ask(streams);
        self.list.note(now, result);
    }

    fn proceed(&mut self, now: Instant, streams: &mut impl Streams, event: Event) -> Result<(), String> {
        match event {
            Event::Connected { connection } => {
                (self.list.connected, self.connection) = (Some(now), connection);
                self.ask(streams)
            }
            Event::Lost { reason, .. } => Err(self.list.lost(reason)),
            Event::Available { .. } => {
                self.list.is_blocked = false;
                self.ask(streams)
            }
            Event::Stopped { stream, code } if self.list.is_open(stream) => {
                Err(format!("the server stopped a request with code {code}"))
            }
            Event::Stream(stream) if self.list.is_open(stream) => {
                match streams.read(stream, |bytes| self.list.take(now, stream, bytes))? {
                    true => self.list.end(now, stream),
                    false => Ok(()),
                }
            }
            Event::Stream(_) | Event::Stopped { .. } => Ok(()),
        }
    }

    /// Stops what is given up, and asks for what waits.
    fn ask(&mut self, streams: &mut impl Streams) -> Result<(), String> {
        for stream in self.list.take_given_up() {
            streams.stop(stream, GIVEN_UP);
        }
        while self.list.is_waiting() {
            let Some(stream) = streams.open(self.connection)? else {
                self.list.is_blocked = true;
                break;
            };
            let size = self.list.open(stream).expect("one waits");
            let line = Outgoing::text(format!("GET /{size}\r\n"));
            if !Sending::new(line).proceed(streams, stream)? {
                return Err("the server takes no request".into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io;
    use std::net::{IpAddr, SocketAddr};
    use std::time::Duration;

    use host::contract;
    use host::implementation::{Host, Received};
    use host::requests::Input;

    use super::*;

    /// A host whose client reads these lines.
    struct Reader(VecDeque<Input>, Instant);

    impl Host for Reader {
        fn now(&self) -> Instant {
            self.1
        }

        fn monotonic(&self, _: Instant) -> Duration {
            Duration::ZERO
        }

        fn send(&mut self, _: &[u8], _: Option<IpAddr>, _: SocketAddr) -> io::Result<()> {
            unreachable!("requests send no datagrams")
        }

        fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
            unreachable!("requests receive no datagrams")
        }

        fn read(&mut self) -> io::Result<Option<Input>> {
            Ok(self.0.pop_front())
        }

        fn say(&mut self, _: contract::Event) -> io::Result<()> {
            Ok(())
        }

        fn complain(&mut self, line: &str) {
            panic!("{line}");
        }
    }

    /// Streams of a server that allows so many, and what was written into them.
    #[derive(Default)]
    struct Allowed {
        left: usize,
        written: Vec<String>,
    }

    impl Streams for Allowed {
        fn open(&mut self, connection: usize) -> Result<Option<StreamId>, String> {
            let Some(left) = self.left.checked_sub(1) else {
                return Ok(None);
            };
            self.left = left;
            Ok(Some(StreamId { connection, stream: self.written.len() as u64 }))
        }

        fn read(&mut self, _: StreamId, _: impl FnMut(&[u8]) -> Result<(), String>) -> Result<bool, String> {
            Ok(false)
        }

        fn write(&mut self, _: StreamId, bytes: &[u8]) -> Result<usize, String> {
            self.written.push(String::from_utf8_lossy(bytes).into());
            Ok(bytes.len())
        }

        fn finish(&mut self, _: StreamId) -> Result<(), String> {
            Ok(())
        }

        fn stop(&mut self, _: StreamId, _: u32) {}

        fn reset(&mut self, _: StreamId, _: u32) {}
    }

    #[test]
    fn what_the_server_allows_no_stream_for_is_asked_for_when_it_allows_one() {
        let now = Instant::now();
        let lines = [1, 2, 3].map(|size| Input::Line(format!(r#"{{"get": {size}}}"#)));
        let (mut requests, mut streams) = (Requests::new(7), Allowed { left: 1, ..Allowed::default() });
        requests.list.read(&mut Reader(lines.into(), now)).unwrap();
        requests.on_event(now, &mut streams, Event::Connected { connection: 0 });
        assert_eq!(streams.written, ["GET /1\r\n"]);
        assert_eq!((requests.list.due_since(), requests.list.outcome()), (None, None));
        streams.left = 2;
        requests.on_event(now, &mut streams, Event::Available { connection: 0 });
        assert_eq!(streams.written, ["GET /1\r\n", "GET /2\r\n", "GET /3\r\n"]);
    }
}
