//! An endpoint as a process: over a socket, by the machine's clock, until a signal.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use crate::contract::{Assignment, Event, Role};
use crate::endpoint::{Host, Prepared, Received, Turn};
use crate::socket::{Socket, Woken};
use crate::surroundings::Surroundings;

/// Does what an assignment says, and writes the contract's events. A server serves until a signal
/// ends it; a client fails then. An error is one line.
pub fn run(assignment: Assignment) -> Result<(), String> {
    let (role, address) = (assignment.role, assignment.address);
    let prepared = Prepared::new(assignment, &Surroundings::of_process()?)?;
    let mut host = Process(match role {
        Role::Client => Socket::towards(address).map_err(|error| format!("no socket: {error}"))?,
        Role::Server => Socket::listen(address).map_err(|error| format!("cannot listen at {address}: {error}"))?,
    });
    let mut endpoint = prepared.start(&mut host)?;
    while let Turn::Until(time) = endpoint.turn(&mut host)? {
        match host.0.wait(time).map_err(|error| format!("cannot wait: {error}"))? {
            Woken::Proceed => {}
            Woken::Signal => endpoint.interrupt(),
        }
    }
    Ok(())
}

struct Process(Socket);

impl Host for Process {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn send(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.0.send(datagram, to)
    }

    fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
        let received = self.0.receive()?;
        Ok(received.map(|(from, datagram)| Received { at: Instant::now(), from, datagram }))
    }

    fn say(&mut self, event: Event) -> io::Result<()> {
        event.write(&mut io::stdout())
    }

    fn complain(&mut self, line: &str) {
        eprintln!("{line}");
    }
}
