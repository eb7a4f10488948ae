//! The limits of FEC: it leaves alone loss probes, the time before the handshake is complete, and data that has yet to
//! be sent.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::world::decrypted::{self, PACKET_REPAIR, REPAIR, SOURCE_SYMBOL};
use crate::world::{DEEP_QUEUE, Loss, Outcome, Setting, World, all_schemes, coded, schemes};
use bytes::BytesMut;
use fec::Code;
use host::coding::Redundancy;
use host::contract::{Direction, Role};
use noq_fec::schemes::Schemes;
use noq_fec::stack::Application;
use noq_proto::{Connection, Dir, Event, VarInt};

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
    is_repair(payload) || payload.windows(SOURCE_SYMBOL.len()).any(|window| window == SOURCE_SYMBOL)
}

fn is_repair(payload: &[u8]) -> bool {
    payload.starts_with(&REPAIR) || payload.starts_with(&PACKET_REPAIR)
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

/// The sizes of the frames in the 1-RTT packets that an end of a transfer receives, but for those with repair symbols.
fn sizes(setting: &Setting, receiver: Role) -> (Outcome, Vec<usize>) {
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let seen = sizes.clone();
    let record = move |_, payload: &mut BytesMut| {
        if !is_repair(payload) {
            seen.lock().unwrap().push(payload.len());
        }
    };
    let outcome = decrypted::changed(setting, receiver, Arc::new(Mutex::new(record)));
    let sizes = sizes.lock().unwrap().clone();
    (outcome, sizes)
}

/// With one repair symbol, at the end of what each side sends.
fn repairing_once(schemes: Schemes) -> Schemes {
    coded(schemes, |coding| {
        (coding.n, coding.k) = (241, 240);
        (coding.window, coding.interleave) = (255, 1);
    })
}

/// The law of the arms: where nothing is lost, FEC sends the packets that are sent without, repair symbols, and at most an ACK for each
/// of those. The handshake has as many datagrams, and all packets come in the same order with the same sizes, ACKs among them; but a
/// packet of content has up to 24 bytes less of it, so that the last one has more.
#[test]
fn without_losses_all_arms_send_the_same_packets_besides_repair_symbols() {
    for direction in [Direction::Download, Direction::Upload] {
        for size in [1000, 10_000, 20_000] {
            let plain = Setting { direction, queue_bdp: DEEP_QUEUE, ..Setting::download(size, None) };
            for schemes in all_schemes().into_iter().map(repairing_once) {
                let context = format!("{direction:?} of {size}, {schemes:?}");
                let fec = Setting { client: Some(schemes.clone()), server: Some(schemes), ..plain.clone() };
                for receiver in [Role::Client, Role::Server] {
                    let [(without, plain), (with, fec)] = [&plain, &fec].map(|setting| sizes(setting, receiver));
                    assert_eq!(plain.len(), fec.len(), "{context}, {receiver}: {plain:?}, {fec:?}");
                    let differences = plain.iter().zip(&fec).map(|(plain, fec)| plain.abs_diff(*fec));
                    let unlike = differences.filter(|difference| *difference > 24).count();
                    assert!(unlike <= 1, "{context}, {receiver}: {plain:?}, {fec:?}");

                    let ends = [
                        (without.sent.0, with.sent.0, &without.client, &with.client),
                        (without.sent.1, with.sent.1, &without.server, &with.server),
                    ];
                    for (without, with, plain, fec) in ends {
                        assert_eq!(
                            with - without - fec.repair_sent,
                            fec.packets_sent - plain.packets_sent,
                            "{context}"
                        );
                        let more = fec.packets_sent - plain.packets_sent;
                        assert!(more <= fec.repair_received, "{context}: {more} more packets");
                    }
                    let late = with.dct.unwrap().abs_diff(without.dct.unwrap());
                    assert!(late < Duration::from_millis(2), "{context}: {late:?}");
                }
            }
        }
    }
}

/// At the end of data, or where the receiver takes no more for now, the congestion window has room that data can't use.
#[test]
fn repair_at_the_tail_uses_the_room_that_flow_control_leaves() {
    let tail = coded(schemes(Code::RLC, 3, 2), |coding| coding.redundancy = Redundancy::Tail);
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
