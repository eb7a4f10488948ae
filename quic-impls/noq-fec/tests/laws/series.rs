//! The series `cwnd` of whole transfers, against what noq-proto counts.

use std::time::Duration;

use crate::world::{DEEP_QUEUE, Loss, Setting, World, schemes};
use fec::Code;
use noq_fec::stack::{Application, Stack};

/// A row of the file: t_s, connection, congestion_window_bytes, bytes_in_flight, smoothed_rtt_ms.
type Row = [f64; 5];

fn rows<A: Application>(stack: &Stack<A>) -> Vec<Row> {
    let mut file = Vec::new();
    stack.congestion().expect("it is recorded").write(&mut file).unwrap();
    let text = String::from_utf8(file).unwrap();
    let row = |line: &str| -> Row {
        let numbers: Vec<f64> = line.split(',').map(|number| number.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn the_series_has_every_change_of_the_window_from_the_initial_to_the_final_one() {
    for schemes in [None, Some(schemes(Code::RLC, 3, 2))] {
        let down = Loss::Uniform { rate: 0.02, seed: 3 };
        let setting = Setting { down, ..Setting::download(500_000, schemes) };
        let mut world = World::of_transfer(&setting, setting.client_config(), setting.server_config());
        world.server.record_congestion();
        let outcome = world.run();
        let rows = rows(&world.server);

        assert_eq!(rows[0], [0.0, 0.0, 12_520.0, 0.0, 0.0]);
        assert_eq!(rows.last().unwrap()[2], outcome.server.congestion_window as f64);
        let reductions = rows.windows(2).filter(|pair| pair[1][2] < pair[0][2]).count() as u64;
        assert!(reductions > 2);
        assert_eq!(reductions, outcome.server.window_reductions);

        assert!(rows.is_sorted_by_key(|[t_s, ..]| *t_s));
        let dct = outcome.dct.unwrap();
        assert!((rows.last().unwrap()[0] - dct.as_secs_f64()).abs() < 0.2, "{dct:?}");
        // The server's window is full time and again, and its RTT is at least that of the link.
        assert!(rows.iter().any(|[_, _, window, in_flight, _]| in_flight + 1252.0 > *window));
        let round_trip = 2e3 * setting.owd.as_secs_f64();
        assert!(rows.iter().all(|[.., rtt]| *rtt == 0.0 || *rtt >= round_trip));
    }
}

#[test]
fn without_losses_the_bytes_in_flight_rise_packet_by_packet_and_stay_within_the_window() {
    let setting =
        Setting { owd: Duration::from_millis(5), queue_bdp: DEEP_QUEUE, ..Setting::download(1_000_000, None) };
    let mut world = World::of_transfer(&setting, setting.client_config(), setting.server_config());
    world.server.record_congestion();
    world.run();
    let mut before = 0.0;
    for [t_s, _, window, in_flight, _] in rows(&world.server) {
        assert!(in_flight <= f64::min(window, before + 1252.0), "at {t_s} s: {before}, {in_flight} of {window}");
        before = in_flight;
    }
}
