//! What FEC leaves alone, and what holds it back: loss probes, the time before the handshake is complete, and data that
//! has yet to be sent.

mod world;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use fec::Code;
use noq_fec::contract::Role;
use noq_fec::schemes::{Redundancy, Schemes};
use noq_fec::stack::Application;
use noq_proto::{Connection, Dir, Event, VarInt};
use world::decrypted::{self, REPAIR, SOURCE_SYMBOL};
use world::{Loss, Setting, World, all_schemes, schemes};

/// In bytes: that of [`Setting::download`].
const INITIAL_WINDOW: usize = 10 * 1252;

/// The server hears nothing from the request on, so what it sends beyond its initial window is a loss probe. There is more
/// data than the window holds, so probes carry new data, and repair symbols are due.
#[test]
fn loss_probes_carry_data_and_no_symbols() {
    for parameters in all_schemes() {
        let up = Loss::These((2..1000).collect());
        let setting = Setting { up, ..Setting::download(100_000, Some(parameters)) };
        let payloads = Arc::new(Mutex::new(Vec::new()));
        let seen = payloads.clone();
        let record = move |_, payload: &mut BytesMut| seen.lock().unwrap().push(payload.to_vec());
        let outcome = decrypted::changed(&setting, Role::Client, Arc::new(Mutex::new(record)));
        assert!(outcome.dct.is_err(), "{outcome:?}");

        let payloads = payloads.lock().unwrap();
        let mut sent = 0;
        let first_probe = payloads.iter().position(|payload| {
            sent += payload.len();
            sent > INITIAL_WINDOW
        });
        let (window, probes) = payloads.split_at(first_probe.expect("no packet was a probe"));
        assert!(window.iter().any(|payload| has_symbol(payload)), "{setting:?}");
        let with_data = probes.iter().filter(|payload| payload.len() > 1000).count();
        assert!(with_data > 3, "{with_data} of {} probes carried data: {setting:?}", probes.len());
        assert!(!probes.iter().any(|payload| has_symbol(payload)), "{setting:?}");
    }
}

fn has_symbol(payload: &[u8]) -> bool {
    payload.starts_with(&REPAIR) || payload.windows(SOURCE_SYMBOL.len()).any(|window| window == SOURCE_SYMBOL)
}

/// Sends as soon as it has keys, and notes what was sent when the handshake was complete.
#[derive(Default)]
struct Early {
    /// STREAM, SOURCE_SYMBOL and REPAIR frames.
    sent: Option<[u64; 3]>,
}

impl Application for Early {
    fn on_event(&mut self, _now: Instant, connection: &mut Connection, event: Event) {
        match event {
            Event::HandshakeDataReady => {
                let id = connection.streams().open(Dir::Uni).expect("the client allows streams");
                connection.send_stream(id).write(&[0; 50_000]).unwrap();
            }
            Event::Connected => {
                let frames = connection.stats().frame_tx;
                self.sent = Some([frames.stream, frames.source_symbol, frames.repair]);
            }
            _ => {}
        }
    }
}

struct Silent;

impl Application for Silent {
    fn on_event(&mut self, _now: Instant, _connection: &mut Connection, _event: Event) {}
}

/// A server may send data with its part of the handshake, before the client's has arrived.
#[test]
fn nothing_is_protected_before_the_handshake_is_complete() {
    for parameters in all_schemes() {
        let setting = Setting::download(0, Some(parameters));
        let (client, server) = (setting.client_config(), setting.server_config());
        let mut world = World::new(&setting, client, server, Silent, Box::new(Early::default));
        while world.step(Duration::from_secs(60)) {}
        let sent: Vec<_> = world.server.applications().filter_map(|early| early.sent).collect();
        let [[stream, 0, 0]] = sent[..] else { panic!("{sent:?}: {setting:?}") };
        assert!(stream > 0, "nothing was sent before the handshake was complete: {setting:?}");
        let later = world.server.counters();
        assert!(later.source_sent > 0 && later.repair_sent > 0, "{later:?}: {setting:?}");
    }
}

/// At the end of data, or where the receiver takes no more for now, the congestion window has room that data can't use.
#[test]
fn repair_at_the_tail_uses_the_room_that_flow_control_leaves() {
    let tail = Schemes { redundancy: Redundancy::Tail, ..schemes(Code::RLC, 3, 2) };
    let repairs = |receive_window: Option<u32>| {
        let setting = Setting::download(200_000, Some(tail.clone()));
        let mut transport = setting.transport(Role::Client, &setting.client);
        if let Some(bytes) = receive_window {
            transport.stream_receive_window(VarInt::from_u32(bytes));
        }
        let mut client = setting.client_config();
        client.transport_config(Arc::new(transport));
        let outcome = World::of_transfer(&setting, client, setting.server_config()).run();
        outcome.dct.unwrap();
        outcome.server.repair_sent
    };
    let (unlimited, limited) = (repairs(None), repairs(Some(20_000)));
    // Half of the last 20 symbols.
    assert_eq!(unlimited, 10);
    assert!(limited > 5 * unlimited, "{limited}");
}
