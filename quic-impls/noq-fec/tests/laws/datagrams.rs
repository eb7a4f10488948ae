//! DATAGRAM frames (RFC 9221) are protected like STREAM frames, and received once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::world::{Loss, Setting, World, schemes};
use bytes::Bytes;
use fec::Code;
use host::content;
use noq_fec::schemes::{Schemes, SourceSymbols};
use noq_fec::stack::Application;
use noq_proto::{Connection, Event};

const COUNT: u64 = 200;

/// The n-th datagram: its number, and something that goes with it.
fn datagram(n: u64) -> Bytes {
    let mut bytes = vec![0; 8 + (content::word(n, 0) % 1000) as usize];
    content::fill(n, 0, &mut bytes);
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    bytes.into()
}

/// Sends all datagrams as soon as it can.
struct Sender;

impl Application for Sender {
    fn on_event(&mut self, _now: Instant, connection: &mut Connection, event: Event) {
        if matches!(event, Event::Connected) {
            for n in 0..COUNT {
                connection.datagrams().send(datagram(n), false).unwrap();
            }
        }
    }
}

/// The numbers of the datagrams received; each is right, and comes once.
#[derive(Default)]
struct Receiver(BTreeSet<u64>);

impl Application for Receiver {
    fn on_event(&mut self, _now: Instant, connection: &mut Connection, _event: Event) {
        while let Some(bytes) = connection.datagrams().recv() {
            let n = u64::from_be_bytes(bytes[..8].try_into().unwrap());
            assert_eq!(bytes, datagram(n));
            assert!(self.0.insert(n), "datagram {n} came twice");
        }
    }
}

#[test]
fn a_datagram_is_received_once_whether_it_arrives_or_is_recovered_or_both() {
    let mut without = 0;
    let mut with = 0;
    for seed in 0..100 {
        let named = schemes(Code::RLC, 3, 2);
        let unnamed = Schemes { source_symbols: SourceSymbols::Implicit, ..named.clone() };
        let protection = if seed % 2 == 0 { named } else { unnamed };
        for schemes in [None, Some(protection)] {
            let is_protected = schemes.is_some();
            let setting = Setting {
                up: Loss::Uniform { rate: 0.05, seed },
                // So late that it is often recovered before it comes.
                jitter: Duration::from_millis(20),
                seed,
                ..Setting::download(0, schemes)
            };
            let (client, server) = (setting.client_config(), setting.server_config());
            let mut world = World::new(&setting, client, server, Sender, Box::new(Receiver::default));
            while world.step(Duration::from_secs(60)) {}
            let received: usize = world.server.applications().map(|receiver| receiver.0.len()).sum();
            *if is_protected { &mut with } else { &mut without } += received;
            assert_eq!(world.server.counters().recovered > 0, is_protected);
        }
    }
    let all = 100 * COUNT as usize;
    assert!(with > without && (all - with) * 4 < all - without, "{with} with FEC, {without} without, {all} sent");
}
