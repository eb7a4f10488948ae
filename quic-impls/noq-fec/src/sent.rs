//! The series `content`: which of the datagrams that an endpoint sent have data of a transfer, up to the one with its end. With
//! the verdicts of the loss model, which judges datagrams in this order, it tells whether a transfer lost data, and where.
//!
//! Such a datagram is one of at least half a packet, sent since the content began: smaller ones are acknowledgements. The
//! one with the end of the content is one of them whatever its size. Later ones are retransmissions alone.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Instant;

pub const NAME: &str = "content";

/// Most rows that are kept: the last ones. Such a file has less than 16 MiB.
const LIMIT: usize = 200_000;

/// The progress of a connection with the content that it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It has none, or not yet.
    Nothing,
    Begun,
    /// All of it was sent at least once, and its end.
    Sent,
}

/// The datagrams of all connections of an endpoint, of which the first begins the time.
#[derive(Debug)]
pub struct ContentSeries {
    /// In bytes: from here on, a datagram has data.
    least_size: usize,
    start: Option<Instant>,
    /// Number of datagrams sent.
    datagrams: u64,
    rows: VecDeque<Row>,
    /// Whether each connection has sent the end.
    has_ended: Vec<bool>,
}

#[derive(Debug)]
struct Row {
    t_s: f64,
    connection: usize,
    datagram: u64,
    bytes: usize,
}

impl ContentSeries {
    pub fn new(packet_size: u16) -> Self {
        let least_size = usize::from(packet_size / 2);
        Self { least_size, start: None, datagrams: 0, rows: VecDeque::new(), has_ended: Vec::new() }
    }

    /// Numbers a connection that begins, from 0.
    pub fn open(&mut self, now: Instant) {
        self.start.get_or_insert(now);
        self.has_ended.push(false);
    }

    /// Takes a datagram that was sent.
    pub fn sent(&mut self, connection: usize, now: Instant, bytes: usize, progress: Progress) {
        let datagram = self.datagrams;
        self.datagrams += 1;
        let has_ended = &mut self.has_ended[connection];
        let has_content = match progress {
            Progress::Nothing => false,
            Progress::Begun => bytes >= self.least_size,
            Progress::Sent => true,
        };
        if *has_ended || !has_content {
            return;
        }
        *has_ended = progress == Progress::Sent;
        let start = self.start.expect("a connection was opened");
        let t_s = now.saturating_duration_since(start).as_secs_f64();
        self.rows.push_back(Row { t_s, connection, datagram, bytes });
        if self.rows.len() > LIMIT {
            self.rows.pop_front();
        }
    }

    /// Takes a datagram that was sent, and belongs to no connection.
    pub fn replied(&mut self) {
        self.datagrams += 1;
    }

    /// Writes the file of the contract.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "t_s,connection,datagram,bytes")?;
        for Row { t_s, connection, datagram, bytes } in &self.rows {
            writeln!(out, "{t_s:.6},{connection},{datagram},{bytes}")?;
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_of_large_datagrams_since_the_content_began_and_of_that_with_its_end() {
        let now = Instant::now();
        let mut series = ContentSeries::new(1252);
        series.open(now);
        let sent = [
            (1252, Progress::Nothing), // padded, of the handshake
            (1252, Progress::Begun),
            (40, Progress::Begun),
            (626, Progress::Begun),
            (90, Progress::Sent),
            (1252, Progress::Sent), // a retransmission
        ];
        for (bytes, progress) in sent {
            series.sent(0, now, bytes, progress);
        }
        let mut out = Vec::new();
        series.write(&mut out).unwrap();
        let rows = "0.000000,0,1,1252\n0.000000,0,3,626\n0.000000,0,4,90\n";
        assert_eq!(String::from_utf8(out).unwrap(), format!("t_s,connection,datagram,bytes\n{rows}"));
    }
}
