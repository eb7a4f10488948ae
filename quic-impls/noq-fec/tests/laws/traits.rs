//! The news for an encoder: the windows that the peer's decoder announces with FEC_WINDOW, which it obeys, the symbols
//! that the peer has, that acknowledgements came, and that nothing can be sent. In both directions, over a link that
//! loses packets or brings them late.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::world::{Loss, Setting, World, coded, schemes};
use bytes::Bytes;
use fec::Code;
use host::coding::Redundancy;
use host::contract::{Direction, Role};
use noq_fec::hq_interop::{Answers, Request};
use noq_fec::schemes::Schemes;
use noq_proto::VarInt;
use noq_proto::fec::{Announcement, Decoder, Encoder, Factory, Malformed, Opportunity, Recovered};

/// The windows of a decoder, and from how many source symbols received on each is its own.
type Plan = Vec<(u64, u64)>;

/// Schemes whose decoder changes its window, and whose encoder tells what it has heard and done.
#[derive(Debug, Clone)]
struct Changing {
    schemes: Schemes,
    plan: Plan,
    log: Arc<Mutex<Log>>,
}

/// The news and the deeds of an encoder.
#[derive(Debug, Default, Clone)]
struct Log {
    /// Number of source symbols that it has protected.
    protected: u64,
    /// The windows that its peer announced, the first one in the transport parameters.
    windows: Vec<u64>,
    /// Number of source symbols that it had protected when each window was announced.
    announced_at: Vec<u64>,
    /// For each repair symbol: the place of its window among these, and the number of source symbols from the first to
    /// the last that it protects.
    spans: Vec<(usize, u64)>,
    /// The symbols that were declared lost, and those that the peer has: acknowledged, or recovered.
    lost: BTreeSet<u64>,
    landed: BTreeSet<u64>,
    /// Whether a symbol was acknowledged or lost after it was last told that there is news, and how often it was asked then.
    is_uninformed: bool,
    asked_uninformed: u64,
    /// Numbers of packets that were lost and that arrived, in its last news.
    packets_lost: u64,
    packets_arrived: u64,
    /// Times at which it wanted to be asked again, and at which it was asked for each repair symbol.
    awaited: Vec<Instant>,
    repaired: Vec<Instant>,
}

impl Factory for Changing {
    fn decodes(&self) -> Option<Announcement> {
        let window = VarInt::from_u64(self.plan[0].1).unwrap();
        Some(Announcement { window, ..self.schemes.decodes()? })
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(ChangingDecoder { inner: self.schemes.decoder(), plan: self.plan.clone(), received: 0 })
    }

    fn encoder(&self, peer: Announcement) -> Option<Box<dyn Encoder>> {
        let log = self.log.clone();
        let encoder = TellingEncoder { inner: self.schemes.encoder(peer)?, log };
        encoder.hear(peer.window.into_inner());
        Some(Box::new(encoder))
    }

    fn masks_losses(&self) -> bool {
        self.schemes.masks_losses()
    }
}

#[derive(Debug)]
struct ChangingDecoder {
    inner: Box<dyn Decoder>,
    plan: Plan,
    received: u64,
}

impl Decoder for ChangingDecoder {
    fn source(&mut self, sid: u64, symbol: Bytes) -> Result<Vec<Recovered>, Malformed> {
        self.received += 1;
        self.inner.source(sid, symbol)
    }

    fn repair(&mut self, payload: &[u8]) -> Result<Vec<Recovered>, Malformed> {
        self.inner.repair(payload)
    }

    fn take_recovered(&mut self, sid: u64) -> bool {
        self.inner.take_recovered(sid)
    }

    fn window(&self) -> u64 {
        let begun = self.plan.iter().rfind(|(from, _)| *from <= self.received);
        begun.expect("a plan begins at 0").1
    }
}

#[derive(Debug)]
struct TellingEncoder {
    inner: Box<dyn Encoder>,
    log: Arc<Mutex<Log>>,
}

impl TellingEncoder {
    fn hear(&self, window: u64) {
        let mut log = self.log.lock().unwrap();
        let protected = log.protected;
        log.windows.push(window);
        log.announced_at.push(protected);
    }
}

impl Encoder for TellingEncoder {
    fn protect(&mut self, symbol: &[u8]) {
        self.log.lock().unwrap().protected += 1;
        self.inner.protect(symbol);
    }

    fn overhead(&self, largest_sid: u64) -> usize {
        self.inner.overhead(largest_sid)
    }

    fn wants_repair(&self, opportunity: &Opportunity) -> bool {
        let mut log = self.log.lock().unwrap();
        log.asked_uninformed += u64::from(log.is_uninformed);
        self.inner.wants_repair(opportunity)
    }

    fn repair(&mut self, opportunity: &Opportunity, payload: &mut Vec<u8>) {
        let start = payload.len();
        self.inner.repair(opportunity, payload);
        // quic-impls/fec/README.md: the first SID, as a variable-length integer, how many symbols, and the stride.
        let header = &payload[start..];
        let sid_length = 1 << (header[0] >> 6);
        let (count, stride) = (u64::from(header[sid_length]), u64::from(header[sid_length + 1]));
        let mut log = self.log.lock().unwrap();
        let window = log.windows.len() - 1;
        log.spans.push((window, (count - 1) * stride + 1));
        log.repaired.push(opportunity.now);
    }

    fn on_acked(&mut self, sid: u64) {
        let mut log = self.log.lock().unwrap();
        log.landed.insert(sid);
        log.is_uninformed = true;
        self.inner.on_acked(sid);
    }

    fn on_feedback(&mut self, opportunity: &Opportunity) {
        let mut log = self.log.lock().unwrap();
        log.is_uninformed = false;
        log.packets_lost = opportunity.losses.lost;
        log.packets_arrived = opportunity.losses.arrived;
        self.inner.on_feedback(opportunity);
    }

    fn on_pause(&mut self, opportunity: &Opportunity) -> Option<Duration> {
        let wait = self.inner.on_pause(opportunity);
        self.log.lock().unwrap().awaited.extend(wait.map(|wait| opportunity.now + wait));
        wait
    }

    fn on_lost(&mut self, sid: u64) {
        let mut log = self.log.lock().unwrap();
        log.lost.insert(sid);
        log.is_uninformed = true;
        self.inner.on_lost(sid);
    }

    fn on_recovered(&mut self, sid: u64) {
        self.log.lock().unwrap().landed.insert(sid);
        self.inner.on_recovered(sid);
    }

    fn on_window(&mut self, size: u64) {
        self.hear(size);
        self.inner.on_window(size);
    }
}

/// A transfer whose receiver's decoder has this plan, and what the encoders of its sender and its receiver will have heard and done.
fn world(plan: &Plan, setting: &Setting) -> (World<Request, Answers>, [Arc<Mutex<Log>>; 2]) {
    let logs = [Role::Client, Role::Server].map(|_| Arc::new(Mutex::new(Log::default())));
    let transport = |role, schemes: &Option<Schemes>| {
        let receives = (role == Role::Client) == (setting.direction == Direction::Download);
        let schemes = schemes.clone().expect("both have schemes");
        let factory = match receives {
            true => Changing { schemes, plan: plan.clone(), log: logs[1].clone() },
            false => Changing { schemes, plan: vec![(0, 20)], log: logs[0].clone() },
        };
        let mut transport = setting.transport(role, &None);
        transport.fec(Some(Arc::new(factory)));
        Arc::new(transport)
    };
    let (mut client, mut server) = (setting.client_config(), setting.server_config());
    client.transport_config(transport(Role::Client, &setting.client));
    server.transport_config(transport(Role::Server, &setting.server));
    (World::of_transfer(setting, client, server), logs)
}

/// The same to its end, which must be a good one; no repair symbol spans more than its window.
fn changing(plan: &Plan, setting: &Setting) -> Log {
    let (mut world, [log, _]) = world(plan, setting);
    let outcome = world.run();
    assert!(outcome.dct.is_ok(), "{setting:?}: {:?}", outcome.dct);
    let log = log.lock().unwrap().clone();
    for (place, span) in &log.spans {
        let window = log.windows[*place];
        assert!(*span <= window, "{setting:?}: a repair symbol over {span} with a window of {window}");
    }
    log
}

/// A transfer of many more packets than the plans below have, in either direction.
fn both_directions() -> [Setting; 2] {
    [Direction::Download, Direction::Upload]
        .map(|direction| Setting { direction, ..Setting::download(600_000, Some(schemes(Code::RLC, 3, 2))) })
}

#[test]
fn repair_symbols_span_at_most_the_window_announced_last() {
    let plan = vec![(0, 20), (60, 6), (120, 3), (180, 12)];
    for setting in both_directions() {
        let log = changing(&plan, &setting);
        assert_eq!(log.windows, [20, 6, 3, 12]);
        for (place, window) in log.windows.iter().enumerate() {
            let spans = log.spans.iter().filter(|(of, _)| *of == place);
            let widest = spans.map(|(_, span)| *span).max();
            assert_eq!(widest, Some(*window), "{setting:?}: the window isn't used");
        }
    }
}

#[test]
fn a_window_of_nothing_allows_no_repair_symbol_until_there_is_another() {
    let plan = vec![(0, 0), (60, 8)];
    for setting in both_directions() {
        let log = changing(&plan, &setting);
        assert_eq!(log.windows, [0, 8]);
        assert!(!log.spans.is_empty());
    }
}

/// Its decoder wants another window at once, but a peer that has announced no FEC would have to end the connection.
#[test]
fn no_window_is_announced_to_a_peer_without_fec() {
    for setting in both_directions() {
        for role in [Role::Client, Role::Server] {
            let schemes = schemes(Code::RLC, 3, 2);
            let factory = Changing { schemes, plan: vec![(0, 20), (0, 10)], log: Arc::default() };
            let transport = |of| {
                let mut transport = setting.transport(of, &None);
                if of == role {
                    transport.fec(Some(Arc::new(factory.clone())));
                }
                Arc::new(transport)
            };
            let (mut client, mut server) = (setting.client_config(), setting.server_config());
            client.transport_config(transport(Role::Client));
            server.transport_config(transport(Role::Server));
            let outcome = World::of_transfer(&setting, client, server).run();
            assert!(outcome.dct.is_ok(), "{role}: {:?}", outcome.dct);
        }
    }
}

/// Two windows, one right after the other, so that the frame with the second may overtake that with the first.
fn two_in_a_row() -> Plan {
    vec![(0, 20), (60, 10), (61, 5)]
}

#[test]
fn a_window_is_announced_again_when_the_frame_was_lost() {
    for setting in both_directions() {
        let unharmed = changing(&two_in_a_row(), &setting);
        assert_eq!(unharmed.windows, [20, 10, 5]);
        let mut later = 0;
        for n in 30..80 {
            let loss = Loss::These(vec![n]);
            let setting = match setting.direction {
                Direction::Download => Setting { up: loss, ..setting.clone() },
                Direction::Upload => Setting { down: loss, ..setting.clone() },
            };
            let log = changing(&two_in_a_row(), &setting);
            // The newest window is sent again.
            assert!([&[20, 10, 5][..], &[20, 5]].contains(&&log.windows[..]), "{n} of {setting:?}: {:?}", log.windows);
            later += u32::from(log.announced_at.last() > unharmed.announced_at.last());
        }
        assert!(later > 0, "no frame was ever lost: {setting:?}");
    }
}

#[test]
fn a_window_that_comes_after_a_newer_one_is_ignored() {
    for setting in both_directions() {
        let mut overtaken = 0;
        for n in 30..80 {
            let late = Some((n, Duration::from_millis(10)));
            let setting = match setting.direction {
                Direction::Download => Setting { late_up: late, ..setting.clone() },
                Direction::Upload => Setting { late_down: late, ..setting.clone() },
            };
            let log = changing(&two_in_a_row(), &setting);
            match log.windows[..] {
                [20, 10, 5] => {}
                [20, 5] => overtaken += 1,
                _ => panic!("{n} of {setting:?}: {:?}", log.windows),
            }
        }
        assert!(overtaken > 0, "no frame was ever overtaken: {setting:?}");
    }
}

/// Nothing is lost, but some packets come so late that they are declared lost.
#[test]
fn each_symbol_turns_out_to_have_landed() {
    for setting in both_directions() {
        let mut landed_after_all = 0;
        for seed in 0..10 {
            let jitter = Duration::from_millis(20);
            let setting = Setting { size: 150_000, jitter, seed, ..setting.clone() };
            let (mut world, [log, _]) = world(&vec![(0, 20)], &setting);
            while world.step(Duration::from_secs(60)) {}
            let log = log.lock().unwrap();
            assert!(log.landed.iter().copied().eq(0..log.protected), "{setting:?}: {:?}", log.landed);
            landed_after_all += log.lost.len();
        }
        assert!(landed_after_all > 0, "no packet was declared lost: {setting:?}");
    }
}

#[test]
fn news_of_packets_comes_before_the_next_question() {
    for setting in both_directions() {
        let loss = Loss::Uniform { rate: 0.05, seed: 1 };
        let setting = Setting { up: loss.clone(), down: loss, ..setting };
        let (mut world, [log, _]) = world(&vec![(0, 20)], &setting);
        while world.step(Duration::from_secs(60)) {}
        let log = log.lock().unwrap();
        assert!(log.lost.len() > 10, "{setting:?}: {:?}", log.lost);
        assert_eq!(log.asked_uninformed, 0, "{setting:?}");
        assert!(log.packets_lost >= log.lost.len() as u64, "{setting:?}: {}", log.packets_lost);
    }
}

/// A fifth of the receiver's packets is lost. Most have ACKs alone: they arrive unnoticed, so their losses are not counted either.
#[test]
fn lost_acks_are_no_news_for_an_encoder() {
    for setting in both_directions() {
        let mut counted = [0, 0];
        for seed in 0..10 {
            let loss = Loss::Uniform { rate: 0.2, seed };
            let setting = match setting.direction {
                Direction::Download => Setting { up: loss, ..setting.clone() },
                Direction::Upload => Setting { down: loss, ..setting.clone() },
            };
            let (mut world, [_, log]) = world(&vec![(0, 20)], &setting);
            while world.step(Duration::from_secs(60)) {}
            let log = log.lock().unwrap();
            counted = [counted[0] + log.packets_lost, counted[1] + log.packets_arrived];
        }
        let [lost, arrived] = counted;
        assert!(lost > 0 && lost < arrived, "{setting:?}: {lost} packets lost, and {arrived} arrived");
    }
}

/// QUIRL's scheduler waits for 2 ms without data: no packet comes then that would be a reason to ask. The next one comes after
/// 100 ms; pacing holds a packet back for 10 ms at most.
#[test]
fn what_waits_for_silence_is_asked_again_in_time() {
    for direction in [Direction::Download, Direction::Upload] {
        let quirl = coded(schemes(Code::RLC, 3, 2), |coding| coding.redundancy = Redundancy::Policy("quirl"));
        let setting = Setting { direction, ..Setting::download(5_000, Some(quirl)) };
        let log = changing(&vec![(0, 128)], &setting);
        let late = log.repaired[0].checked_duration_since(log.awaited[0]).expect("it was asked before");
        assert!(late < Duration::from_millis(10), "{setting:?}: {late:?}");
    }
}
