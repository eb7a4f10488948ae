//! Adaptive policies never harm: they delay nothing, send no more than they want, and believe each fate once.

use std::time::Duration;

use fec::{
    Code, Context, Controller, Deadline, Flec, FlecLimited, Losses, Null, POLICIES, Policy, Probe, ProtectOnly, Safe,
    SlidingWindow, Slot,
};
use proptest::prelude::*;

/// A link of 10 Mbps with a round-trip time of 100 ms and no queue.
const IDLE: Context = Context {
    smoothed_rtt: Duration::from_millis(100),
    recent_rtt: Duration::from_millis(100),
    min_rtt: Duration::from_millis(100),
    rate: 1_250_000,
    packet_size: 1250,
    losses: Losses { arrived: 90, lost: 10, runs: 10 },
    ..Context::END_OF_DATA
};

/// The round-trip time with a queue.
const QUEUE: Duration = Duration::from_millis(116);

/// Bytes per second that the link delivers, as congestion control has measured.
const OWN: Option<u64> = Some(1_250_000);

fn window(policy: impl Policy + 'static, symbols: u64) -> SlidingWindow {
    let mut window = SlidingWindow::new(Code::RLC, 128, Box::new(policy)).unwrap();
    window.on_window(255);
    (0..symbols).for_each(|sid| window.on_sent(sid));
    window
}

/// Returns how many repair symbols are sent now.
fn sent(window: &mut SlidingWindow, context: &Context) -> usize {
    (0..1000).take_while(|_| window.next_repair(context).is_some()).count()
}

#[test]
fn null_protects_nothing() {
    let mut window = window(Null, 20);
    for slot in [Slot::Data, Slot::Idle, Slot::Probe] {
        let context = Context { slot, ..IDLE };
        assert!(!window.protects(&context) && sent(&mut window, &context) == 0);
    }
}

#[test]
fn protect_only_protects_all_and_repairs_nothing() {
    let mut window = window(ProtectOnly, 20);
    for slot in [Slot::Data, Slot::Idle, Slot::Probe] {
        let context = Context { slot, ..IDLE };
        assert!(window.protects(&context) && sent(&mut window, &context) == 0);
    }
}

#[test]
fn safe_protects_the_end_of_data_where_losses_are_known_or_nothing_is() {
    let is_protected = |losses, unsent| window(Safe, 0).protects(&Context { losses, unsent, slot: Slot::Data, ..IDLE });
    assert!(is_protected(IDLE.losses, 70_000) && !is_protected(IDLE.losses, 70_001));
    assert!(is_protected(Losses::default(), 0), "nothing is known yet");
    assert!(!is_protected(Losses { arrived: 100, ..Losses::default() }, 0), "nothing was lost");
    let behind_a_queue = Context { recent_rtt: QUEUE, slot: Slot::Data, ..IDLE };
    assert!(
        !window(Safe, 0).protects(&behind_a_queue)
            && window(Safe, 0).protects(&Context { is_free: true, ..behind_a_queue })
    );
}

#[test]
fn safe_sends_no_repair_that_would_delay_anything() {
    let contexts = [
        ("nothing waits", IDLE, true),
        ("data waits", Context { slot: Slot::Data, ..IDLE }, false),
        ("a loss probe is data", Context { slot: Slot::Probe, ..IDLE }, false),
        ("an ACK waits", Context { has_acks: true, ..IDLE }, false),
        ("a queue grows", Context { recent_rtt: QUEUE, ..IDLE }, false),
        ("it was one of its own", Context { recent_rtt: QUEUE, delivers: OWN, ..IDLE }, true),
        ("it is gone", Context { recent_rtt: QUEUE, in_flight: 123_750, delivers: OWN, ..IDLE }, true),
        (
            "none makes it that long itself",
            Context { recent_rtt: Duration::from_millis(201), delivers: OWN, ..IDLE },
            false,
        ),
        ("it is there still", Context { recent_rtt: QUEUE, in_flight: 123_751, delivers: OWN, ..IDLE }, false),
        (
            "nothing is known of much",
            Context { in_flight: 12_501, losses: Losses { arrived: 2, ..Losses::default() }, ..IDLE },
            false,
        ),
        (
            "nothing is known of little",
            Context { in_flight: 12_500, losses: Losses { arrived: 2, ..Losses::default() }, ..IDLE },
            true,
        ),
        ("the link is slow", Context { rate: 10_000, ..IDLE }, false),
        ("nothing was lost", Context { losses: Losses { arrived: 100, ..Losses::default() }, ..IDLE }, false),
    ];
    for (when, context, is_sent) in contexts {
        assert_eq!(sent(&mut window(Safe, 20), &context) > 0, is_sent, "{when}");
    }
}

#[test]
fn safe_sends_nothing_ahead_of_retransmissions_of_what_a_queue_dropped() {
    let after = |lost, context| Context { losses: Losses { arrived: 90, lost, runs: lost }, ..context };
    let own_queue = after(5, Context { recent_rtt: QUEUE, delivers: OWN, ..IDLE });
    let [few, several] = [5, 6].map(|lost| after(lost, IDLE));
    let contexts =
        [(0, own_queue, true), (5, own_queue, false), (5, few, true), (5, several, false), (0, several, true)];
    for (acked, context, is_sent) in contexts {
        let mut window = window(Safe, 20);
        window.on_acked(acked);
        assert_eq!(sent(&mut window, &context) > 0, is_sent, "{acked} came, {context:?}");
    }
}

/// CoDel spares the packet behind which there is one more at most.
#[test]
fn safe_sends_one_repair_symbol_into_what_may_be_a_long_queue() {
    let first = Context {
        in_flight: 6_250,
        window: 12_500,
        smoothed_rtt: Duration::from_millis(70),
        recent_rtt: Duration::from_millis(70),
        min_rtt: Duration::from_millis(70),
        losses: Losses { arrived: 2, ..Losses::default() },
        ..IDLE
    };
    let of_round_trip =
        |ms| Context { min_rtt: Duration::from_millis(ms), recent_rtt: Duration::from_millis(ms), ..first };
    let sent_of = |context| sent(&mut window(Safe, 5), &context);
    let by_round_trip = [39, 40, 249, 250].map(|ms| sent_of(of_round_trip(ms)));
    assert_eq!(by_round_trip.map(|sent| sent == 1), [false, true, true, false], "{by_round_trip:?}");
    assert!(sent_of(Context { in_flight: 3_500, ..first }) > 1, "so little leaves soon");
    assert_eq!(sent_of(Context { window: 12_750, ..of_round_trip(250) }), 1, "a wider window is paced faster");

    let mut window = window(Safe, 9);
    assert_eq!(sent(&mut window, &first), 1);
    window.on_acked(0);
    let told = |arrived| Context { losses: Losses { arrived, ..Losses::default() }, ..first };
    assert_eq!(sent(&mut window, &told(4)), 0, "the first ACK of data does not tell of a queue");
    assert!(sent(&mut window, &told(5)) > 0, "the next one does");
}

#[test]
fn safe_counts_what_is_on_its_way_and_protects_what_was_sent_after_it() {
    let mut window = window(Safe, 20);
    let first = sent(&mut window, &IDLE);
    assert!(first > 3 && sent(&mut window, &IDLE) == 0, "{first} are enough");
    window.on_repair_settled(0);
    window.on_repair_settled(0);
    assert_eq!(sent(&mut window, &IDLE), 1, "one arrived, or was lost: told twice, it counts once");
    (20..25).for_each(|sid| window.on_sent(sid));
    let after = sent(&mut window, &IDLE);
    assert!((1..first).contains(&after), "{after} over five symbols more");
    (0..25).for_each(|sid| if sid % 2 == 0 { window.on_lost(sid) } else { window.on_acked(sid) });
    assert_eq!(sent(&mut window, &IDLE), 0, "what is lost is sent again, in other symbols");
}

#[test]
fn probe_is_one_repair_symbol_in_a_loss_probe() {
    let mut probed = window(Probe, 20);
    let probe = Context { slot: Slot::Probe, ..IDLE };
    assert_eq!((sent(&mut probed, &IDLE), sent(&mut probed, &probe), sent(&mut probed, &probe)), (0, 1, 0));
    assert_eq!(sent(&mut window(Probe, 1), &probe), 0, "one packet is its own best repair");
}

#[test]
fn deadline_repairs_the_less_the_more_retransmissions_are_in_time() {
    let sent_within = |ms| sent(&mut window(Deadline::new(Duration::from_millis(ms)), 20), &IDLE);
    // One retransmission takes half a round-trip time, and two and a half.
    let by_deadline = [0, 299, 300, 549, 550, 10_000].map(sent_within);
    assert!(by_deadline[0] == by_deadline[1] && by_deadline[2] == by_deadline[3], "{by_deadline:?}");
    assert!(by_deadline.is_sorted_by(|earlier, later| earlier >= later), "{by_deadline:?}");
    assert!(by_deadline[1] > by_deadline[2] && by_deadline[3] > by_deadline[4], "{by_deadline:?}");
    assert_eq!(by_deadline[5], 0, "there is time for anything");
    let clean = Context { losses: Losses { arrived: 1000, ..Losses::default() }, ..IDLE };
    assert!(sent(&mut window(Deadline::new(Duration::ZERO), 20), &clean) > 0, "a first loss would be too late");
    let queue = Context { smoothed_rtt: Duration::from_millis(201), ..IDLE };
    assert_eq!(sent(&mut window(Deadline::new(Duration::ZERO), 20), &queue), 0, "a queue grows");
    let sent_into_queue = |is_free| {
        let context = Context { is_free, recent_rtt: QUEUE, smoothed_rtt: QUEUE, ..IDLE };
        sent(&mut window(Deadline::new(Duration::ZERO), 20), &context)
    };
    assert!(sent_into_queue(false) > 0, "data waits for repair, so that they fill the queue no more than data does");
    assert_eq!(sent_into_queue(true), 0, "nothing else holds repair back");
    let sent_behind = |us| {
        let context = Context { queue: Duration::from_micros(us), ..IDLE };
        sent(&mut window(Deadline::new(Duration::ZERO), 20), &context)
    };
    assert_eq!(sent_behind(20_000), by_deadline[0]);
    assert_eq!(sent_behind(20_001), 0, "the next messages would wait for it");
    let asks_after = |slot, us| {
        let context = Context { slot, queue: Duration::from_micros(us), ..IDLE };
        window(Deadline::new(Duration::ZERO), 20).on_pause(&context)
    };
    assert_eq!(asks_after(Slot::Idle, 35_000), Some(Duration::from_millis(15)), "there is room then");
    assert_eq!([asks_after(Slot::Idle, 20_000), asks_after(Slot::Data, 35_000)], [None; 2], "nothing keeps it back");
}

#[test]
fn deadline_has_a_round_less_for_what_was_sent_again() {
    let mut window = window(Deadline::new(Duration::from_millis(300)), 20);
    let first = sent(&mut window, &IDLE);
    (0..20).for_each(|sid| if sid == 7 { window.on_lost(sid) } else { window.on_acked(sid) });
    (0..first as u64).for_each(|number| window.on_repair_settled(number));
    (20..40).for_each(|sid| window.on_sent(sid)); // the first has what 7 had
    assert!(sent(&mut window, &IDLE) > first);
}

#[test]
fn flec_sends_what_its_source_says() {
    let unknown = Context { losses: Losses::default(), ..IDLE };
    let runs = Context { losses: Losses { arrived: 90, lost: 10, runs: 1 }, ..IDLE };
    let flec = [&unknown, &IDLE, &runs].map(|context| sent(&mut window(Flec, 20), context));
    assert_eq!(flec, [11, 5, 11], "half of the window, twice 2 losses, and a run of 10: and one more");
    let data = Context { slot: Slot::Data, ..IDLE };
    let limited = [(4, &data), (10, &data), (4, &IDLE)];
    let limited = limited.map(|(symbols, context)| sent(&mut window(FlecLimited::default(), symbols), context));
    assert_eq!(limited, [1, 2, 1], "as many as the window has, or as there are between losses");
}

/// The events of a sender.
#[derive(Clone, Debug)]
enum Event {
    Sent,
    Acked(u64),
    Lost(u64),
    Recovered(u64),
    RepairSettled(u64),
    Asked(Slot, u64, Losses),
}

fn any_event() -> impl Strategy<Value = Event> {
    let slots = prop::sample::select(&[Slot::Data, Slot::Idle, Slot::Probe][..]);
    let losses = (0..1000u64, 0..1000u64, 0..1000u64).prop_map(|(arrived, lost, runs)| Losses {
        arrived,
        lost,
        runs: runs.min(lost),
    });
    prop_oneof![
        8 => Just(Event::Sent),
        3 => (0..400u64).prop_map(Event::Acked),
        2 => (0..400u64).prop_map(Event::Lost),
        1 => (0..400u64).prop_map(Event::Recovered),
        2 => (0..100u64).prop_map(Event::RepairSettled),
        4 => (slots, 0..u64::MAX / 2, losses).prop_map(|(slot, rate, losses)| Event::Asked(slot, rate, losses)),
    ]
}

/// All policies.
fn policies() -> Vec<(&'static str, Box<dyn Policy>)> {
    let mut policies: Vec<_> = POLICIES.iter().map(|(name, make)| (*name, make())).collect();
    policies.push(("deadline", Box::new(Deadline::new(Duration::from_millis(300)))));
    policies
}

proptest! {
    /// The first question, which knows little, is never denied where all that is known calls for repair.
    #[test]
    fn what_may_be_is_no_less_than_what_is(
        (symbols, unsent) in (0..40u64, 0..140_000u64),
        (arrived, lost) in (0..200u64, prop_oneof![Just(0), 0..50u64]),
        (in_flight, recent_ms) in (0..60_000u64, 90..230u64),
        (slot, is_free) in (prop::sample::select(&[Slot::Data, Slot::Idle, Slot::Probe][..]), any::<bool>()),
    ) {
        let (losses, recent_rtt) = (Losses { arrived, lost, runs: lost }, Duration::from_millis(recent_ms));
        let context = Context { slot, unsent, losses, in_flight, recent_rtt, is_free, symbol_size: 1200, ..IDLE };
        for (name, policy) in policies() {
            let mut window = SlidingWindow::new(Code::RLC, 128, policy).unwrap();
            window.on_window(255);
            (0..symbols).for_each(|sid| window.on_sent(sid));
            let (frames, repairs) = (window.protects(&context), window.wants_repair(&context));
            prop_assert!(!frames || window.may_protect(unsent), "{name} protects");
            prop_assert!(!repairs || window.may_repair(slot), "{name} repairs");
            if !window.listens() {
                window.on_feedback(&context);
                prop_assert_eq!(window.on_pause(&context), None, "{}", name);
                prop_assert_eq!(window.wants_repair(&context), repairs, "{}", name);
            }
        }
    }

    /// Repair is bounded by the missing symbols, and a second question gets none, whatever the policy hears, also from
    /// a peer that lies.
    #[test]
    fn repair_is_bounded_by_what_is_missing(
        events in prop::collection::vec(any_event(), 1..600),
        deadline_ms in prop::option::of(0..1000u64),
    ) {
        let (mut window, per) = match deadline_ms {
            Some(ms) => (window(Deadline::new(Duration::from_millis(ms)), 0), 1),
            None => (window(Safe, 0), 2),
        };
        let (mut next, mut settled) = (0, std::collections::BTreeSet::new());
        for event in events {
            match event {
                Event::Sent => {
                    window.on_sent(next);
                    next += 1;
                }
                Event::Acked(sid) | Event::Lost(sid) | Event::Recovered(sid) if sid >= next => {}
                Event::Acked(sid) => {
                    window.on_acked(sid);
                    settled.insert(sid);
                }
                Event::Lost(sid) => {
                    window.on_lost(sid);
                    settled.insert(sid);
                }
                Event::Recovered(sid) => {
                    window.on_recovered(sid);
                    settled.insert(sid);
                }
                Event::RepairSettled(number) => window.on_repair_settled(number),
                Event::Asked(slot, rate, losses) => {
                    let missing = (0..next).filter(|sid| !settled.contains(sid)).count();
                    let context = Context { slot, rate, losses, ..IDLE };
                    let repairs = sent(&mut window, &context);
                    prop_assert!(repairs <= missing.div_ceil(per), "{repairs} for {missing}");
                    prop_assert!(slot == Slot::Idle || repairs == 0);
                    prop_assert_eq!(sent(&mut window, &context), 0);
                }
            }
        }
    }
}
