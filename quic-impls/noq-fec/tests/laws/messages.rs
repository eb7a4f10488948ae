//! Receivers of messages against senders that say what no sender may: an error of one line, and no more memory than the timetable needs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::world::{Setting, World};
use bytes::Bytes;
use host::content;
use host::contract::{Role, Values, Workload};
use host::messages::{Messages, Part};
use noq_fec::messages::Exchange;
use noq_fec::stack::Application;
use noq_fec::{Assignment, settings};
use noq_proto::{Connection, Dir, Event, StreamEvent, VarInt};
use serde_json::{Value, json};

/// Two messages of 1500 and 1000 bytes, downwards.
fn messages(delivery: &str) -> Arc<Messages> {
    let workload = json!({
        "direction": "down", "delivery": delivery, "deadline_ms": 100.0, "part_bytes": 1000,
        "timetable": [[0, 1500], [1000, 1000]],
    });
    let Value::Object(values) = workload else { unreachable!() };
    Arc::new(Messages::parse(&mut Values::new("workload", values)).unwrap())
}

/// The deed of a hostile server as soon as it is asked.
type Deed = fn(&mut Connection);

struct Hostile(Deed);

impl Application for Hostile {
    fn on_event(&mut self, _now: Instant, connection: &mut Connection, event: Event) {
        if matches!(event, Event::Stream(StreamEvent::Opened { dir: Dir::Bi })) {
            (self.0)(connection);
        }
    }
}

/// Returns the outcome of the client's exchange, within a second.
fn outcome(delivery: &str, deed: Deed) -> Result<(), String> {
    let setting = Setting::download(0, None);
    let messages = messages(delivery);
    let assignment = |role| {
        let workload = Workload::Messages(messages.clone());
        Assignment { workload, ..setting.assignment(role, &None) }
    };
    let client = settings::client(&assignment(Role::Client), &setting.surroundings(Role::Client)).unwrap();
    let server = settings::server(&assignment(Role::Server), &setting.surroundings(Role::Server)).unwrap();
    let exchange = Exchange::new(Role::Client, messages.clone(), setting.seed);
    let mut world = World::new(&setting, client, server, exchange, Box::new(move || Hostile(deed)));
    while world.step(Duration::from_secs(1)) {
        if let Some((_, outcome)) = world.client.applications().find_map(|exchange| exchange.outcome.take()) {
            return outcome;
        }
    }
    Err("not done".into())
}

fn send(connection: &mut Connection, datagram: impl Into<Bytes>) {
    connection.datagrams().send(datagram.into(), false).unwrap();
}

fn part(message: u32, part: u32, offset: u64, length: usize) -> Vec<u8> {
    Part { message, part }.packed(length, |bytes| content::fill(1, offset, bytes))
}

/// A unidirectional stream with so much of the content.
fn stream(connection: &mut Connection, offset: u64, length: usize, is_ended: bool) {
    let id = connection.streams().open(Dir::Uni).unwrap();
    let mut bytes = vec![0; length];
    content::fill(1, offset, &mut bytes);
    let mut stream = connection.send_stream(id);
    assert_eq!(stream.write(&bytes), Ok(length));
    if is_ended {
        stream.finish().unwrap();
    }
}

#[test]
fn a_datagram_that_no_sender_has_ends_the_receiver() {
    let cases: [(Deed, &str); 6] = [
        (|connection| send(connection, part(2, 0, 0, 1000)), "part 0 of message 2: there is none"),
        (|connection| send(connection, part(u32::MAX, 0, 0, 1000)), "part 0 of message 4294967295: there is none"),
        (|connection| send(connection, part(0, 65535, 0, 1000)), "part 65535 of message 0: there is none"),
        (|connection| send(connection, part(0, 1, 1000, 499)), "part 1 of message 0: 499 bytes, right are 500"),
        (|connection| send(connection, part(1, 0, 1501, 1000)), "message 1: byte 0 is not that of the content"),
        (|connection| send(connection, vec![0; 5]), "5 bytes are too short for a part"),
    ];
    for (deed, why) in cases {
        assert_eq!(outcome("datagram", deed), Err(format!("2 messages: datagram: {why}")));
    }
    let deed: Deed = |connection| send(connection, part(0, 0, 0, 1000));
    let why = "2 messages: a datagram of 1006 bytes, and messages travel on streams";
    assert_eq!(outcome("stream", deed), Err(why.into()));
}

#[test]
fn parts_that_come_again_or_in_any_order_are_taken_once() {
    let deed: Deed = |connection| {
        for _ in 0..100 {
            for datagram in [part(1, 0, 1500, 1000), part(0, 1, 1000, 500), part(0, 0, 0, 1000)] {
                send(connection, datagram);
            }
        }
    };
    assert_eq!(outcome("datagram", deed), Ok(()));
}

#[test]
fn a_stream_that_no_sender_has_ends_the_receiver() {
    let cases: [(&str, Deed, &str); 6] = [
        ("stream", |connection| stream(connection, 0, 1501, false), "message 0 is longer than 1500 bytes"),
        ("stream", |connection| stream(connection, 0, 1400, true), "message 0 ended after 1400 of 1500 bytes"),
        ("stream", |connection| stream(connection, 1, 100, false), "message 0: byte 0 is not that of the content"),
        ("reliable", |connection| stream(connection, 0, 2501, false), "message 1 is longer than 1000 bytes"),
        ("reliable", |connection| stream(connection, 0, 1500, true), "message 0 ended after 1500 of 1500 bytes"),
        (
            "stream",
            |connection| {
                let id = connection.streams().open(Dir::Uni).unwrap();
                connection.send_stream(id).reset(VarInt::from_u32(0)).unwrap();
            },
            "message 0 was reset",
        ),
    ];
    for (delivery, deed, why) in cases {
        let refused = outcome(delivery, deed).unwrap_err();
        assert!(refused.contains(why), "{delivery}: {refused}");
    }
}

#[test]
fn there_are_as_many_streams_as_messages() {
    let deed: Deed = |connection| {
        let streams = std::iter::from_fn(|| connection.streams().open(Dir::Uni)).take(1000);
        assert_eq!(streams.count(), 2);
    };
    assert_eq!(outcome("deadline", deed), Err("not done".into()));
}
