//! Transfers over HTTP/3, in virtual time: the same bodies as over hq-interop, with FEC as without, and what peers must not
//! send ends in a line.

use std::time::{Duration, Instant};

use crate::world::{Loss, Setting, World, all_schemes, coded, schemes};
use fec::Code;
use host::coding::Redundancy;
use host::contract::{Direction, Transfer};
use noq_fec::h3::{Answers, Request};
use noq_fec::options::Http;
use noq_fec::schemes::Schemes;
use noq_fec::stack::Application;
use noq_proto::{Connection, Dir, Event, ReadError, StreamEvent, StreamId};

fn setting(direction: Direction, size: u64, schemes: Option<Schemes>) -> Setting {
    Setting { direction, http: Http::H3, ..Setting::download(size, schemes) }
}

const HOUR: Duration = Duration::from_secs(3600);

/// Returns the time that a transfer took.
fn transfer(setting: &Setting) -> Result<Duration, String> {
    let transfer = Transfer { direction: setting.direction, size: setting.size };
    let seed = setting.seed;
    let request = Request::new(transfer, seed, "server.fecbench");
    let accept = Box::new(move || Answers::new(seed));
    let mut world = World::new(setting, setting.client_config(), setting.server_config(), request, accept);
    loop {
        let ended = world.client.applications().find_map(|request| request.outcome.take());
        if let Some((end, outcome)) = ended {
            let counters = world.client.counters();
            assert!(setting.client.is_none() || counters.source_sent > 0, "{counters:?}");
            return outcome.map(|()| end - world.start);
        }
        assert!(world.step(HOUR), "not done within an hour");
    }
}

fn both_ways(mut check: impl FnMut(Direction)) {
    check(Direction::Download);
    check(Direction::Upload);
}

#[test]
fn content_of_any_size_is_right_whatever_is_lost() {
    for schemes in all_schemes().into_iter().map(Some).chain([None]) {
        both_ways(|direction| {
            for (seed, size) in [0, 1, 1200, 50_000].into_iter().enumerate() {
                let loss = |way| Loss::Uniform { rate: 0.05, seed: 2 * seed as u64 + way };
                let setting = Setting { up: loss(0), down: loss(1), ..setting(direction, size, schemes.clone()) };
                transfer(&setting).unwrap_or_else(|why| panic!("{setting:?}: {why}"));
            }
        });
    }
}

#[test]
fn the_same_seed_gives_the_same_transfer() {
    let tail = coded(schemes(Code::RLC, 3, 2), |coding| coding.redundancy = Redundancy::Tail);
    let setting =
        Setting { up: Loss::Uniform { rate: 0.1, seed: 5 }, ..setting(Direction::Upload, 50_000, Some(tail)) };
    assert_eq!(transfer(&setting), transfer(&setting));
}

/// Nothing but the frames of HTTP/3 is sent besides: it takes as long as over hq-interop, but for less than a packet.
#[test]
fn a_transfer_takes_as_many_round_trips_as_over_hq_interop() {
    both_ways(|direction| {
        let over_h3 = setting(direction, 10_000, None);
        let over_hq = Setting { http: Http::Hq, ..over_h3.clone() };
        let (h3, hq) = (transfer(&over_h3).unwrap(), over_hq.run().dct.unwrap());
        assert!(h3 >= hq && h3 - hq < Duration::from_millis(2), "{direction:?}: {h3:?}, {hq:?}");
    });
}

/// A peer that sends these bytes, and the answer or the error that its request's stream gets.
struct Raw {
    bytes: Vec<u8>,
    /// Whether the bytes go into a unidirectional stream instead of one of its own requests.
    is_control: bool,
    ends: bool,
    stream: Option<StreamId>,
    answer: Vec<u8>,
    reset: Option<u64>,
    lost: Option<String>,
}

impl Raw {
    fn new(bytes: &[u8], is_control: bool, ends: bool) -> Self {
        Self { bytes: bytes.into(), is_control, ends, stream: None, answer: Vec::new(), reset: None, lost: None }
    }

    fn speak(&mut self, connection: &mut Connection, id: StreamId) {
        let mut stream = connection.send_stream(id);
        assert_eq!(stream.write(&self.bytes), Ok(self.bytes.len()));
        if self.ends {
            stream.finish().unwrap();
        }
    }
}

impl Application for Raw {
    fn on_event(&mut self, _now: Instant, connection: &mut Connection, event: Event) {
        match event {
            Event::Connected => {
                let is_server = connection.side().is_server();
                if self.is_control || !is_server {
                    let dir = if self.is_control { Dir::Uni } else { Dir::Bi };
                    let id = connection.streams().open(dir).unwrap();
                    self.stream = Some(id);
                    self.speak(connection, id);
                }
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) if connection.side().is_server() => {
                if let Some(id) = connection.streams().accept(Dir::Bi)
                    && !self.is_control
                {
                    self.speak(connection, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) if self.stream == Some(id) => {
                let mut stream = connection.recv_stream(id);
                let mut chunks = stream.read(true).unwrap();
                loop {
                    match chunks.next(usize::MAX) {
                        Ok(Some(chunk)) => self.answer.extend_from_slice(&chunk.bytes),
                        Err(ReadError::Reset(code)) => {
                            self.reset = Some(code.into_inner());
                            break;
                        }
                        _ => break,
                    }
                }
            }
            Event::ConnectionLost { reason } => self.lost = Some(reason.to_string()),
            _ => {}
        }
    }
}

/// Returns the server's refusals of a client that sends these bytes, and the client as it was at the end.
fn served(client: Raw) -> (Vec<String>, Raw) {
    let setting = setting(Direction::Upload, 0, None);
    let accept = Box::new(|| Answers::new(1));
    let mut world = World::new(&setting, setting.client_config(), setting.server_config(), client, accept);
    while world.step(Duration::from_secs(5)) {}
    let refusals = world.server.applications().flat_map(|answers| std::mem::take(&mut answers.refusals)).collect();
    let client = world.client.applications().next().unwrap();
    (refusals, std::mem::replace(client, Raw::new(&[], false, false)))
}

/// A HEADERS frame of literal fields (RFC 9204, section 4.5.6), each shorter than 7 bytes of name and 127 of value.
fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![0, 0];
    for (name, value) in fields {
        match name.len() {
            length @ 0..7 => block.push(0x20 | length as u8),
            length => block.extend([0x27, length as u8 - 7]),
        }
        block.extend(name.bytes());
        block.push(value.len() as u8);
        block.extend(value.bytes());
    }
    [&[1, 0x40, block.len() as u8][..], &block].concat()
}

fn request(method: &str, path: &str) -> Vec<u8> {
    headers(&[(":method", method), (":scheme", "https"), (":authority", "a"), (":path", path)])
}

#[test]
fn a_request_that_cannot_be_served_is_answered_with_a_status_and_told_in_a_line() {
    let with_body = |head: Vec<u8>, body: &[u8]| [head, vec![0, body.len() as u8], body.to_vec()].concat();
    let cases = [
        (request("GET", "/ten"), true, "path \"/ten\" is not"),
        (request("GET", "/1e3"), true, "path \"/1e3\" is not"),
        (request("GET", "/99999999999999999999"), true, "is not / and a number"),
        (request("POST", "/10"), true, "method \"POST\" is neither"),
        (with_body(request("PUT", "/3"), b"four"), false, "more than the 3 bytes"),
        (with_body(request("PUT", "/5"), b"four"), true, "has 4 bytes, announced were 5"),
    ];
    for (bytes, ends, line) in cases {
        let (refusals, client) = served(Raw::new(&bytes, false, ends));
        assert!(refusals.len() == 1 && refusals[0].contains(line), "{refusals:?}");
        assert_eq!(client.answer.first(), Some(&1), "{line}: HEADERS");
        assert!(client.lost.is_none(), "{line}: {:?}", client.lost);
    }
}

#[test]
fn a_body_that_nobody_asked_for_ends_its_stream_alone() {
    let bytes = [request("GET", "/100000"), vec![0, 4], b"four".to_vec()].concat();
    let (refusals, client) = served(Raw::new(&bytes, false, false));
    assert!(refusals.len() == 1 && refusals[0].contains("a body that nobody asked for"), "{refusals:?}");
    assert!(client.reset.is_some() && client.lost.is_none());
}

/// Each error is that of RFC 9114 for a malformed request or a broken control stream.
#[test]
fn a_client_that_breaks_http3_is_told_which_error_it_was() {
    let lacking = headers(&[(":method", "GET")]);
    let cases: [(&str, &[u8], bool, &str); 7] = [
        ("SETTINGS in a request", &[4, 0], false, "0x105"),
        ("DATA before HEADERS", &[0, 1, 7], false, "0x105"),
        ("a field section that is none", &[1, 1, 0xff], false, "0x200"),
        ("a control stream without SETTINGS", &[0, 7, 1, 0], true, "0x10a"),
        ("settings of HTTP/2", &[0, 4, 2, 2, 0], true, "0x109"),
        ("fields without end", &[1, 0x80, 0x10, 0, 0], false, "0x107"),
        ("a request without a path", &lacking, false, "0x10e"),
    ];
    for (case, bytes, is_control, code) in cases {
        let (refusals, client) = served(Raw::new(bytes, is_control, false));
        assert!(refusals.len() == 1 && refusals[0].contains(code), "{case}: {refusals:?}");
        // A malformed request is an error of its stream alone.
        assert_eq!(client.lost.is_some(), code != "0x10e", "{case}: {:?}", client.lost);
    }
}

#[test]
fn a_server_that_breaks_http3_ends_the_transfer_with_a_line() {
    let ok = headers(&[(":status", "200")]);
    let cases = [
        (headers(&[(":status", "404")]), false, "status 404"),
        ([&ok[..], &[0, 2, 1, 1]].concat(), false, "more than the 1 bytes"),
        ([&ok[..], &[0, 1, 1]].concat(), false, "byte 0 is not that of the content"),
        (ok.clone(), false, "the server sent 0 bytes"),
        (vec![0, 1, 7], false, "0x105"),
        (headers(&[("nothing", "at all")]), false, "0x10e"),
        (vec![0, 7, 1, 0], true, "0x10a"),
    ];
    for (bytes, is_control, line) in cases {
        let setting = setting(Direction::Download, 1, None);
        let request = Request::new(Transfer { direction: setting.direction, size: 1 }, 1, "server.fecbench");
        let answer = bytes.clone();
        let accept = Box::new(move || Raw::new(&answer, is_control, true));
        let mut world = World::new(&setting, setting.client_config(), setting.server_config(), request, accept);
        while world.step(Duration::from_secs(5)) {}
        let (_, outcome) = world.client.applications().next().unwrap().outcome.take().expect(line);
        let why = outcome.unwrap_err();
        assert!(why.contains(line) && !why.contains('\n'), "{bytes:?}: {why}");
    }
}

/// Bytes that a seed makes up, in a request and in a stream of each type: no connection hangs on them, and nothing panics.
#[test]
fn whatever_a_client_sends_is_survived() {
    let mut count_refused = 0;
    for seed in 0..300 {
        let mut bytes = vec![0; (host::content::word(seed, 0) % 60) as usize];
        host::content::fill(seed, 8, &mut bytes);
        // Small numbers are likelier to mean something.
        for byte in bytes.iter_mut().step_by(2) {
            *byte &= 0x0f;
        }
        let bytes = match seed % 3 {
            0 => [request("PUT", "/30"), bytes].concat(),
            _ => bytes,
        };
        let (refusals, _) = served(Raw::new(&bytes, seed % 2 == 0, seed % 5 == 0));
        assert!(refusals.len() <= 2, "{seed}: {refusals:?}");
        assert!(refusals.iter().all(|line| !line.contains('\n')), "{refusals:?}");
        count_refused += refusals.len();
    }
    assert!(count_refused > 100, "{count_refused}");
}
