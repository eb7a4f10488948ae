//! The series `cwnd` and `fec`: congestion windows, and what repair has come to, over time, a row for each change. Their memory
//! is bounded: a long transfer keeps fewer rows, evenly.

use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Most rows that are kept, apart from the last one of each connection. Such a file has less than 16 MiB.
const LIMIT: usize = 200_000;

/// The values of a connection in a row, as they are printed between commas.
pub trait Values: Copy + PartialEq + Display {
    const NAME: &'static str;
    const COLUMNS: &'static str;
}

/// The state of a connection's congestion control.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Congestion {
    pub window_bytes: u64,
    pub bytes_in_flight: u64,
    /// Zero before the first measurement.
    pub smoothed_rtt: Duration,
}

impl Values for Congestion {
    const NAME: &'static str = "cwnd";
    const COLUMNS: &'static str = "congestion_window_bytes,bytes_in_flight,smoothed_rtt_ms";
}

impl Display for Congestion {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { window_bytes, bytes_in_flight, smoothed_rtt } = self;
        write!(out, "{window_bytes},{bytes_in_flight},{:.3}", 1e3 * smoothed_rtt.as_secs_f64())
    }
}

/// Counters of repair symbols, and of packets rebuilt, of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repair {
    pub sent: u64,
    pub received: u64,
    /// Packets rebuilt, whether or not they came after all.
    pub rebuilt: u64,
}

impl Values for Repair {
    const NAME: &'static str = "fec";
    const COLUMNS: &'static str = "repair_sent,repair_received,packets_rebuilt";
}

impl Display for Repair {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{},{},{}", self.sent, self.received, self.rebuilt)
    }
}

/// The values of all connections of an endpoint over time, which begins with the first of them.
#[derive(Debug)]
pub struct Series<V> {
    limit: usize,
    start: Option<Instant>,
    rows: Vec<Row<V>>,
    connections: Vec<Latest<V>>,
    /// Between two rows of a connection.
    least_interval: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Row<V> {
    at: Duration,
    connection: usize,
    values: V,
}

/// The latest of a connection.
#[derive(Debug)]
struct Latest<V> {
    /// Its last change, whether or not that became a row.
    change: Option<Row<V>>,
    /// Time of its last row.
    row_at: Option<Duration>,
}

impl<V: Values> Default for Series<V> {
    fn default() -> Self {
        Self::with_limit(LIMIT)
    }
}

impl<V: Values> Series<V> {
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
        self.connections.push(Latest { change: None, row_at: None });
        self.connections.len() - 1
    }

    /// Takes what is so now of a connection with a number of [`Self::open`].
    pub fn sample(&mut self, connection: usize, now: Instant, values: V) {
        let latest = &mut self.connections[connection];
        if latest.change.is_some_and(|change| change.values == values) {
            return;
        }
        let start = self.start.expect("a connection was opened");
        let row = Row { at: now.saturating_duration_since(start), connection, values };
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
    fn complete(&self) -> Vec<Row<V>> {
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
        writeln!(out, "t_s,connection,{}", V::COLUMNS)?;
        for Row { at, connection, values } in self.complete() {
            writeln!(out, "{:.6},{connection},{values}", at.as_secs_f64())?;
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

    fn text(series: &Series<Congestion>) -> String {
        let mut out = Vec::new();
        series.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_series_has_a_row_for_each_change_of_each_connection_since_the_first_began() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut series = Series::<Congestion>::default();
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
    fn repair_is_told_by_what_a_connection_has_counted_of_it() {
        let now = Instant::now();
        let mut series = Series::<Repair>::default();
        let connection = series.open(now);
        for rebuilt in [0, 0, 1] {
            series.sample(connection, now, Repair { sent: 7, received: 2, rebuilt });
        }
        let mut out = Vec::new();
        series.write(&mut out).unwrap();
        let right = "t_s,connection,repair_sent,repair_received,packets_rebuilt\n0.000000,0,7,2,0\n0.000000,0,7,2,1\n";
        assert_eq!(String::from_utf8(out).unwrap(), right);
    }

    #[test]
    fn a_series_of_nothing_is_its_header() {
        assert_eq!(text(&Series::<Congestion>::default()).lines().count(), 1);
    }

    /// Two connections that take turns, so that every second row of all would be one of them.
    #[test]
    fn a_series_beyond_its_limit_is_thinned_evenly_and_keeps_both_ends() {
        let (limit, changes) = (100, 12_345);
        let start = Instant::now();
        let mut series = Series::<Congestion>::with_limit(limit);
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
                rows.iter().filter(|row| row.connection == connection).map(|row| row.values.window_bytes).collect();
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
        let mut series = Series::<Congestion>::with_limit(11);
        let connection = series.open(now);
        // The last one is the twelfth row, every second of which is dropped.
        for n in 0..1002 {
            series.sample(connection, now, congestion(n));
        }
        let windows: Vec<_> = series.complete().iter().map(|row| row.values.window_bytes).collect();
        assert!(windows.is_sorted() && windows.len() <= 12, "{windows:?}");
        assert_eq!(windows.last(), Some(&1001));
    }
}
