//! The series `cwnd`: congestion windows over time, a row for each change. Its memory is bounded: a long transfer
//! keeps fewer rows, evenly.

use std::io::{self, Write};
use std::time::{Duration, Instant};

pub const NAME: &str = "cwnd";

/// Most rows that are kept, apart from the last one of each connection. Such a file has less than 16 MiB.
const LIMIT: usize = 200_000;

/// What congestion control knows of a connection's path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Congestion {
    pub window_bytes: u64,
    pub bytes_in_flight: u64,
    /// Zero before the first measurement.
    pub smoothed_rtt: Duration,
}

/// The congestion of all connections of an endpoint over time, which begins with the first of them.
#[derive(Debug)]
pub struct CongestionSeries {
    limit: usize,
    start: Option<Instant>,
    rows: Vec<Row>,
    connections: Vec<Latest>,
    /// Between two rows of a connection.
    least_interval: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    at: Duration,
    connection: usize,
    congestion: Congestion,
}

/// The latest of a connection.
#[derive(Debug, Default)]
struct Latest {
    /// Its last change, whether or not that became a row.
    change: Option<Row>,
    /// When it last got a row.
    row_at: Option<Duration>,
}

impl Default for CongestionSeries {
    fn default() -> Self {
        Self::with_limit(LIMIT)
    }
}

impl CongestionSeries {
    fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            start: None,
            rows: Vec::with_capacity(limit + 1), // so that no transfer waits while it grows
            connections: Vec::new(),
            least_interval: Duration::ZERO,
        }
    }

    /// Numbers a connection that begins, from 0.
    pub fn open(&mut self, now: Instant) -> usize {
        self.start.get_or_insert(now);
        self.connections.push(Latest::default());
        self.connections.len() - 1
    }

    /// Takes what is so now of a connection with a number of [`Self::open`].
    pub fn sample(&mut self, connection: usize, now: Instant, congestion: Congestion) {
        let latest = &mut self.connections[connection];
        if latest.change.is_some_and(|change| change.congestion == congestion) {
            return;
        }
        let start = self.start.expect("a connection was opened");
        let row = Row { at: now.saturating_duration_since(start), connection, congestion };
        latest.change = Some(row);
        if latest.row_at.is_none_or(|at| row.at >= at + self.least_interval) {
            latest.row_at = Some(row.at);
            self.rows.push(row);
            if self.rows.len() > self.limit {
                self.thin();
            }
        }
    }

    /// Drops every second row of each connection, and doubles the least interval between those to come.
    fn thin(&mut self) {
        let mut is_kept = vec![false; self.connections.len()];
        self.rows.retain(|row| {
            is_kept[row.connection] = !is_kept[row.connection];
            is_kept[row.connection]
        });
        let lasted = self.rows.last().map_or(Duration::ZERO, |row| row.at);
        self.least_interval = 2 * self.least_interval.max(lasted / self.limit as u32);
    }

    /// The rows in the order of time, with the last change of each connection.
    fn complete(&self) -> Vec<Row> {
        let mut last = vec![None; self.connections.len()];
        for row in &self.rows {
            last[row.connection] = Some(*row);
        }
        let changes = self.connections.iter().zip(last);
        let missing = changes.filter_map(|(latest, row)| latest.change.filter(|change| row != Some(*change)));
        let mut rows: Vec<_> = self.rows.iter().copied().chain(missing).collect();
        rows.sort_by_key(|row| row.at);
        rows
    }

    /// Writes the file of the contract.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "t_s,connection,congestion_window_bytes,bytes_in_flight,smoothed_rtt_ms")?;
        for Row { at, connection, congestion } in self.complete() {
            let Congestion { window_bytes, bytes_in_flight, smoothed_rtt } = congestion;
            let (t_s, rtt_ms) = (at.as_secs_f64(), 1e3 * smoothed_rtt.as_secs_f64());
            writeln!(out, "{t_s:.6},{connection},{window_bytes},{bytes_in_flight},{rtt_ms:.3}")?;
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn congestion(window_bytes: u64) -> Congestion {
        Congestion { window_bytes, bytes_in_flight: 1, smoothed_rtt: Duration::from_micros(25_250) }
    }

    fn text(series: &CongestionSeries) -> String {
        let mut out = Vec::new();
        series.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_series_has_a_row_for_each_change_of_each_connection_since_the_first_began() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut series = CongestionSeries::default();
        assert_eq!([series.open(at(0)), series.open(at(500))], [0, 1]);
        let before = Congestion { window_bytes: 12_520, bytes_in_flight: 0, smoothed_rtt: Duration::ZERO };
        series.sample(0, at(1), before);
        series.sample(0, at(2), before);
        series.sample(1, at(501), before);
        series.sample(0, at(1500), congestion(20_000));
        let right = "t_s,connection,congestion_window_bytes,bytes_in_flight,smoothed_rtt_ms\n\
                     0.001000,0,12520,0,0.000\n0.501000,1,12520,0,0.000\n1.500000,0,20000,1,25.250\n";
        assert_eq!(text(&series), right);
    }

    #[test]
    fn a_series_of_nothing_is_its_header() {
        assert_eq!(text(&CongestionSeries::default()).lines().count(), 1);
    }

    /// Two connections that take turns, so that every second row of all would be one of them.
    #[test]
    fn a_series_beyond_its_limit_is_thinned_evenly_and_keeps_both_ends() {
        let (limit, changes) = (100, 12_345);
        let start = Instant::now();
        let mut series = CongestionSeries::with_limit(limit);
        for _ in 0..2 {
            series.open(start);
        }
        for n in 0..changes {
            for connection in [1, 0] {
                series.sample(connection, start + Duration::from_millis(2 * n + 1 - connection as u64), congestion(n));
            }
        }
        let rows = series.complete();
        assert!((limit / 2..=limit + 2).contains(&rows.len()), "{} rows", rows.len());
        assert!(rows.is_sorted_by_key(|row| row.at));
        for connection in 0..2 {
            let windows: Vec<_> =
                rows.iter().filter(|row| row.connection == connection).map(|row| row.congestion.window_bytes).collect();
            assert_eq!((windows.first(), windows.last()), (Some(&0), Some(&(changes - 1))));
            let gaps: Vec<_> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let (least, most) = (gaps[..gaps.len() - 1].iter().min().unwrap(), gaps.iter().max().unwrap());
            assert!(*most <= 3 * least, "{gaps:?}");
        }
    }

    /// The time stands still while a burst is sent.
    #[test]
    fn changes_at_one_instant_stay_in_their_order_and_the_last_of_them_is_kept() {
        let now = Instant::now();
        let mut series = CongestionSeries::with_limit(11);
        let connection = series.open(now);
        // The last one is the twelfth row, every second of which is dropped.
        for n in 0..1002 {
            series.sample(connection, now, congestion(n));
        }
        let windows: Vec<_> = series.complete().iter().map(|row| row.congestion.window_bytes).collect();
        assert!(windows.is_sorted() && windows.len() <= 12, "{windows:?}");
        assert_eq!(windows.last(), Some(&1001));
    }
}
