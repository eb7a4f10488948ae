//! An endpoint as a process: over a socket, by the machine's clock, until a signal.

use std::io::{self, Stdin};
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use crate::contract::{Assignment, Event, Role, Workload};
use crate::implementation::{Endpoint, Host, Implementation, Received, Turn};
use crate::requests::Input;
use crate::socket::{Socket, Woken};

/// Does what an assignment says, and writes the contract's events. A server serves until a signal
/// ends it; a client fails then. An error is one line.
pub fn run<I: Implementation>(assignment: Assignment<I::Options>) -> Result<(), String> {
    let (role, address) = (assignment.role, assignment.address);
    let paths = assignment.path_addresses::<I>().to_vec();
    let reads = role == Role::Client && matches!(assignment.workload, Workload::Requests);
    let prepared = I::prepare(assignment, &I::surroundings()?)?;
    let socket = match role {
        Role::Client if paths.is_empty() => Socket::towards(address).map_err(|error| format!("no socket: {error}"))?,
        Role::Client => Socket::of_paths(&paths).map_err(|error| format!("no sockets at {paths:?}: {error}"))?,
        Role::Server => Socket::listen(address).map_err(|error| format!("cannot listen at {address}: {error}"))?,
    };
    let input =
        if reads { Some(StandardInput::new().map_err(|error| format!("standard input: {error}"))?) } else { None };
    let mut host = Process { socket, clock: Clock::read(), input };
    let mut endpoint = I::start(prepared, &mut host)?;
    while let Turn::Until(time) = endpoint.turn(&mut host)? {
        match host.socket.wait(time, host.open_input()).map_err(|error| format!("cannot wait: {error}"))? {
            Woken::Proceed => {}
            Woken::Signal => endpoint.interrupt(),
        }
    }
    Ok(())
}

struct Process {
    socket: Socket,
    clock: Clock,
    /// Standard input of a client that reads requests.
    input: Option<StandardInput>,
}

impl Process {
    /// Standard input as something to wait for, until its end.
    fn open_input(&self) -> Option<&Stdin> {
        self.input.as_ref().filter(|input| !input.has_ended).map(|input| &input.stdin)
    }
}

/// The longest line that is read, in bytes.
const LONGEST_LINE: usize = 1024;

/// Standard input, line by line, without ever waiting for it.
struct StandardInput {
    stdin: Stdin,
    unread: Vec<u8>,
    has_ended: bool,
}

impl StandardInput {
    fn new() -> io::Result<Self> {
        let stdin = io::stdin();
        // SAFETY: the calls only read and set the flags of a descriptor that stays open.
        let done = unsafe {
            match libc::fcntl(stdin.as_raw_fd(), libc::F_GETFL) {
                -1 => -1,
                flags => libc::fcntl(stdin.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK),
            }
        };
        if done == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { stdin, unread: Vec::new(), has_ended: false })
    }

    fn read(&mut self) -> io::Result<Option<Input>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.unread.drain(..=end).collect();
                return Ok(Some(Input::Line(String::from_utf8_lossy(&line[..end]).into_owned())));
            }
            if self.has_ended {
                return Ok(Some(Input::End));
            }
            if self.unread.len() > LONGEST_LINE {
                return Err(io::Error::other(format!("a line of more than {LONGEST_LINE} bytes")));
            }
            let mut bytes = [0; LONGEST_LINE];
            // SAFETY: there is room for so many bytes.
            match unsafe { libc::read(self.stdin.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) } {
                -1 => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
                0 => self.has_ended = true,
                read => self.unread.extend_from_slice(&bytes[..read as usize]),
            }
        }
    }
}

impl Host for Process {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn monotonic(&self, time: Instant) -> Duration {
        self.clock.monotonic(time)
    }

    fn send(&mut self, datagram: &[u8], from: Option<IpAddr>, to: SocketAddr) -> io::Result<()> {
        self.socket.send(datagram, from, to)
    }

    fn mark(&mut self, codepoint: u8) -> io::Result<()> {
        self.socket.mark(codepoint)
    }

    fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
        let received = self.socket.receive()?;
        Ok(received.map(|(from, to, ecn, datagram)| Received { at: Instant::now(), from, to, ecn, datagram }))
    }

    fn read(&mut self) -> io::Result<Option<Input>> {
        self.input.as_mut().map_or(Ok(None), StandardInput::read)
    }

    fn say(&mut self, event: Event) -> io::Result<()> {
        event.write(&mut io::stdout())
    }

    fn complain(&mut self, line: &str) {
        eprintln!("{line}");
    }
}

/// The time of an [`Instant`] by CLOCK_MONOTONIC, which an `Instant` has but does not show.
struct Clock {
    instant: Instant,
    monotonic: Duration,
}

impl Clock {
    /// Number of readings of both clocks, one after the other: the closest pair counts.
    const READINGS: usize = 16;

    fn read() -> Self {
        let readings = (0..Self::READINGS).map(|_| {
            let (before, monotonic, after) = (Instant::now(), monotonic_now(), Instant::now());
            (after - before, Self { instant: before + (after - before) / 2, monotonic })
        });
        let (_, closest) = readings.min_by_key(|(apart, _)| *apart).expect("there are some");
        closest
    }

    fn monotonic(&self, time: Instant) -> Duration {
        match time.checked_duration_since(self.instant) {
            Some(later) => self.monotonic + later,
            None => self.monotonic.saturating_sub(self.instant - time),
        }
    }
}

fn monotonic_now() -> Duration {
    // SAFETY: the pointer is to a timespec, which the call fills; this clock is always there.
    let now = unsafe {
        let mut now: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now);
        now
    };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_datagram_leaves_from_the_address_of_its_path() -> io::Result<()> {
        let [first, second] = [1, 2].map(|last| IpAddr::from([127, 0, 0, last]));
        let receiver = UdpSocket::bind((first, 0))?;
        let mut host = Process { socket: Socket::of_paths(&[first, second])?, clock: Clock::read(), input: None };
        for from in [second, first] {
            host.send(b"x", Some(from), receiver.local_addr()?)?;
            assert_eq!(receiver.recv_from(&mut [0])?.1.ip(), from);
        }
        Ok(())
    }

    #[test]
    fn a_time_is_between_the_readings_of_the_monotonic_clock_around_it() {
        let clock = Clock::read();
        let tolerance = Duration::from_micros(100);
        let (before, time, after) = (monotonic_now(), Instant::now(), monotonic_now());
        let told = clock.monotonic(time);
        assert!(before <= told + tolerance && told <= after + tolerance, "{before:?} {told:?} {after:?}");
        let hour = Duration::from_secs(3600);
        assert_eq!(clock.monotonic(time + hour), told + hour);
    }
}
