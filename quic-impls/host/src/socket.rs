//! The UDP socket: one datagram per system call, no segmentation offload, no ECN. And waiting, for a datagram,
//! a signal or a time.

use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::{Duration, Instant};

/// Bytes of the socket's buffers, as large as quic-go's.
const BUFFER: libc::c_int = 7 << 20;

/// The largest UDP payload.
const LARGEST: usize = 65535;

pub struct Socket {
    socket: UdpSocket,
    signals: Signals,
    datagram: Box<[u8]>,
}

/// What ended a wait.
#[derive(Debug, PartialEq, Eq)]
pub enum Woken {
    /// A datagram can be received, or the time has come.
    Proceed,
    /// SIGINT or SIGTERM.
    Signal,
}

impl Socket {
    /// Listens at an address, and for the signals that end an endpoint.
    pub fn listen(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        for (beyond_the_limit, within) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            set_option(&socket, beyond_the_limit, BUFFER).or_else(|_| set_option(&socket, within, BUFFER))?;
        }
        Ok(Self { socket, signals: Signals::new()?, datagram: vec![0; LARGEST].into() })
    }

    /// A socket for a client of a server at an address.
    pub fn towards(server: SocketAddr) -> io::Result<Self> {
        let unspecified = match server.ip() {
            IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        Self::listen(SocketAddr::new(unspecified, 0))
    }

    /// Sends a datagram, and waits for room when the socket's buffer is full.
    pub fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        loop {
            match self.socket.send_to(datagram, to) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll(&mut [pollable(&self.socket, libc::POLLOUT)], None)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The next datagram that has arrived.
    pub fn receive(&mut self) -> io::Result<Option<(SocketAddr, &[u8])>> {
        match self.socket.recv_from(&mut self.datagram) {
            Ok((size, from)) => Ok(Some((from, &self.datagram[..size]))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for a datagram or a signal, at most until a time.
    pub fn wait(&self, until: Option<Instant>) -> io::Result<Woken> {
        let timeout = until.map(|time| time.saturating_duration_since(Instant::now()));
        let mut wanted = [pollable(&self.socket, libc::POLLIN), pollable(&self.signals.0, libc::POLLIN)];
        poll(&mut wanted, timeout)?;
        match wanted[1].revents {
            0 => Ok(Woken::Proceed),
            _ => Ok(Woken::Signal),
        }
    }
}

/// SIGINT and SIGTERM as something to wait for.
struct Signals(OwnedFd);

impl Signals {
    fn new() -> io::Result<Self> {
        // SAFETY: the set is initialised by sigemptyset, and the calls only read it afterwards.
        unsafe {
            let mut set = mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGINT);
            libc::sigaddset(&mut set, libc::SIGTERM);
            checked(libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut()))?;
            let descriptor = checked(libc::signalfd(-1, &set, libc::SFD_CLOEXEC))?;
            Ok(Self(OwnedFd::from_raw_fd(descriptor)))
        }
    }
}

fn set_option(socket: &UdpSocket, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the pointer and the size are those of `value`.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            ptr::from_ref(&value).cast(),
            mem::size_of_val(&value) as libc::socklen_t,
        )
    };
    checked(done).map(drop)
}

fn pollable(what: &impl AsRawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd { fd: what.as_raw_fd(), events, revents: 0 }
}

fn poll(wanted: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
    });
    // SAFETY: the pointers are to a slice of the length given, and to a value that outlives the call.
    let done = unsafe {
        libc::ppoll(
            wanted.as_mut_ptr(),
            wanted.len() as libc::nfds_t,
            timeout.as_ref().map_or(ptr::null(), ptr::from_ref),
            ptr::null(),
        )
    };
    match checked(done) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        other => other.map(drop),
    }
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
