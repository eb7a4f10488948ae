//! The times of a timetable's parts: when each was due and handed over, or when it had arrived, and the series of these times.

use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::contract::Role;

/// A timetable that both ends know.
pub trait Timetable {
    /// The name of the series.
    const NAME: &'static str;
    /// The columns that name a part.
    const COLUMNS: &'static str;
    /// Something that is handed over and arrives whole; it is printed as its columns are.
    type Part: Copy;

    fn sender(&self) -> Role;

    /// Returns when a part is due, since the sender began.
    fn due(&self, part: Self::Part) -> Duration;

    fn bytes(&self, part: Self::Part) -> u64;

    /// Writes the columns that name a part.
    fn name(&self, part: Self::Part, out: &mut impl Write) -> io::Result<()>;
}

/// Times at which parts were handed over or arrived on a connection.
#[derive(Debug, Clone)]
pub struct Log<P> {
    pub(crate) rows: Vec<(Instant, P)>,
}

impl<P> Default for Log<P> {
    fn default() -> Self {
        Self { rows: Vec::new() }
    }
}

impl<P: Copy> Log<P> {
    pub fn add(&mut self, now: Instant, part: P) {
        self.rows.push((now, part));
    }

    /// Returns the number of parts.
    pub fn parts(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Returns the parts, in the order in which they were noted.
    pub fn places(&self) -> impl Iterator<Item = P> {
        self.rows.iter().map(|(_, part)| *part)
    }
}

/// A connection's contribution to the series.
#[derive(Debug)]
pub struct Recorded<'a, P> {
    pub connection: usize,
    /// Time at which its timetable began; None for a receiver.
    pub begun: Option<Instant>,
    pub log: &'a Log<P>,
}

/// Writes the series: a row for each part, in the order of time; none of a workload without a timetable. `start` is when the first
/// connection began, and `clock` what both ends of a trial have. An error is one line.
pub fn write_series<T: Timetable>(
    path: &Path,
    role: Role,
    timetable: Option<&T>,
    start: Instant,
    recorded: &[Recorded<T::Part>],
    clock: impl Fn(Instant) -> Duration,
) -> Result<(), String> {
    let written = File::create(path)
        .and_then(|file| write_rows(&mut BufWriter::new(file), role, timetable, start, recorded, clock));
    written.map_err(|error| format!("series {}: {}: {error}", T::NAME, path.display()))
}

pub(crate) fn write_rows<T: Timetable>(
    out: &mut impl Write,
    role: Role,
    timetable: Option<&T>,
    start: Instant,
    recorded: &[Recorded<T::Part>],
    clock: impl Fn(Instant) -> Duration,
) -> io::Result<()> {
    let is_sender = timetable.map_or(Role::Server, T::sender) == role;
    let times = if is_sender { "due_s,sent_s" } else { "arrived_s" };
    writeln!(out, "t_s,connection,{},{times},bytes", T::COLUMNS)?;
    let Some(timetable) = timetable else {
        return out.flush();
    };
    let rows = recorded.iter().flat_map(|of| of.log.rows.iter().map(move |(at, part)| (*at, *part, of)));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(at, ..)| *at);
    for (at, part, Recorded { connection, begun, .. }) in rows {
        let t_s = at.saturating_duration_since(start).as_secs_f64();
        write!(out, "{t_s:.6},{connection},")?;
        timetable.name(part, out)?;
        if let Some(begun) = begun.filter(|_| is_sender) {
            write!(out, ",{}", Seconds(clock(begun + timetable.due(part))))?;
        }
        writeln!(out, ",{},{}", Seconds(clock(at)), timetable.bytes(part))?;
    }
    out.flush()
}

/// A time in seconds, to the nanosecond.
struct Seconds(Duration);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0.as_secs(), self.0.subsec_nanos())
    }
}
