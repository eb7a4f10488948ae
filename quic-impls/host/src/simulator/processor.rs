//! The time that an endpoint takes to send, by default none. Delayed datagrams enter the link later; the endpoint's own clock,
//! by which it measures round-trip times, has moved on meanwhile, as a real one does.

use std::collections::VecDeque;

use serde::Deserialize;

use crate::contract::Role;

/// Costs of sending.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// TLS's work, once for each side: in front of the first datagram that follows what the other side has sent.
    handshake_ns: u64,
    datagram_ns: u64,
}

impl Costs {
    /// Returns the costs of an endpoint without TLS.
    pub fn without_handshake(self) -> Self {
        Self { handshake_ns: 0, ..self }
    }
}

/// Where a datagram goes, and with which ECN codepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub link: usize,
    pub ecn: u8,
}

/// Sends one datagram after the other.
#[derive(Debug)]
pub struct Processor {
    costs: Costs,
    /// Whether it has yet to do TLS's work.
    owes_handshake: bool,
    free_ns: u64,
    /// Waiting datagrams: when each is ready, its way, and its content.
    waiting: VecDeque<(u64, Way, Vec<u8>)>,
}

impl Processor {
    pub fn new(costs: Costs) -> Self {
        Self { costs, owes_handshake: true, free_ns: 0, waiting: VecDeque::new() }
    }

    /// Takes a datagram in. When it is ready at once, it is left to the caller (true); otherwise it waits.
    pub fn take(&mut self, datagram: &[u8], way: Way, now_ns: u64, role: Role, has_received: bool) -> bool {
        let mut takes_ns = self.costs.datagram_ns;
        if self.owes_handshake && (role == Role::Server || has_received) {
            self.owes_handshake = false;
            takes_ns += self.costs.handshake_ns;
        }
        self.free_ns = self.free_ns.max(now_ns) + takes_ns;
        if self.waiting.is_empty() && self.free_ns <= now_ns {
            return true;
        }
        self.waiting.push_back((self.free_ns, way, datagram.to_vec()));
        false
    }

    /// Returns when the next waiting datagram is ready.
    pub fn next_ns(&self) -> Option<u64> {
        self.waiting.front().map(|(ready_ns, ..)| *ready_ns)
    }

    /// The next datagram that is ready at a time: since when, and its way.
    pub fn ready(&mut self, now_ns: u64) -> Option<(u64, Way, Vec<u8>)> {
        self.next_ns().filter(|ready_ns| *ready_ns <= now_ns)?;
        self.waiting.pop_front()
    }
}
