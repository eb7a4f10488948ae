//! The UDP socket, or one for each path: one datagram per system call, no segmentation offload, and ECN only
//! if an endpoint asks for it. And waiting, for a datagram, a signal or a time.

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

/// A datagram: from where it came, to which of several addresses of ours, its ECN codepoint, and what it is.
pub type Arrived<'a> = (SocketAddr, Option<IpAddr>, u8, &'a [u8]);

/// The sockets of an endpoint.
pub struct Socket {
    bound: Vec<Bound>,
    /// Index of the socket from which the last datagram came.
    last: usize,
    signals: Signals,
    datagram: Box<[u8]>,
    /// Codepoint of what is sent; None: ECN is not used, and what comes is not looked at.
    ecn: Option<u8>,
}

struct Bound {
    socket: UdpSocket,
    /// Address of the path.
    address: Option<IpAddr>,
}

/// The reason for which a wait ended.
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
        Self::over(vec![Bound::new(address, None)?])
    }

    fn over(bound: Vec<Bound>) -> io::Result<Self> {
        Ok(Self { bound, last: 0, signals: Signals::new()?, datagram: vec![0; LARGEST].into(), ecn: None })
    }

    /// A socket for a client of a server at an address.
    pub fn towards(server: SocketAddr) -> io::Result<Self> {
        let unspecified = match server.ip() {
            IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        Self::listen(SocketAddr::new(unspecified, 0))
    }

    /// A socket at each of the addresses of a client: whatever it sends and receives takes their paths.
    pub fn of_paths(addresses: &[IpAddr]) -> io::Result<Self> {
        let bound = addresses.iter().map(|address| Bound::new(SocketAddr::new(*address, 0), Some(*address)));
        Self::over(bound.collect::<io::Result<_>>()?)
    }

    /// Sends a datagram, from the address of a path or the first one, and waits for room when the socket's buffer is full.
    pub fn send(&self, datagram: &[u8], from: Option<IpAddr>, to: SocketAddr) -> io::Result<()> {
        let place = from.and_then(|from| self.bound.iter().position(|bound| bound.address == Some(from)));
        let socket = &self.bound[place.unwrap_or_default()].socket;
        loop {
            match socket.send_to(datagram, to) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll(&mut [pollable(socket, libc::POLLOUT)], None)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Has all datagrams from now on sent with an ECN codepoint, and looks at that of those that come.
    pub fn mark(&mut self, codepoint: u8) -> io::Result<()> {
        if self.ecn == Some(codepoint) {
            return Ok(());
        }
        for Bound { socket, .. } in &self.bound {
            let is_ipv4 = socket.local_addr()?.is_ipv4();
            let (level, sent, received) = if is_ipv4 {
                (libc::IPPROTO_IP, libc::IP_TOS, libc::IP_RECVTOS)
            } else {
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::IPV6_RECVTCLASS)
            };
            set_option(socket, level, sent, codepoint.into())?;
            set_option(socket, level, received, 1)?;
        }
        self.ecn = Some(codepoint);
        Ok(())
    }

    /// The next datagram that has arrived: from where, to which path's address, its ECN codepoint, and its bytes.
    pub fn receive(&mut self) -> io::Result<Option<Arrived<'_>>> {
        for _ in 0..self.bound.len() {
            self.last = (self.last + 1) % self.bound.len();
            let Bound { socket, address } = &self.bound[self.last];
            let received = match self.ecn {
                None => socket.recv_from(&mut self.datagram).map(|(size, from)| (size, from, 0)),
                Some(_) => receive_marked(socket, &mut self.datagram),
            };
            match received {
                Ok((size, from, ecn)) => return Ok(Some((from, *address, ecn, &self.datagram[..size]))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Waits for a datagram or a signal, or for this input, at most until a time.
    pub fn wait(&self, until: Option<Instant>, input: Option<&impl AsRawFd>) -> io::Result<Woken> {
        let timeout = until.map(|time| time.saturating_duration_since(Instant::now()));
        let mut wanted = vec![pollable(&self.signals.0, libc::POLLIN)];
        wanted.extend(self.bound.iter().map(|bound| pollable(&bound.socket, libc::POLLIN)));
        wanted.extend(input.map(|input| pollable(input, libc::POLLIN)));
        poll(&mut wanted, timeout)?;
        match wanted[0].revents {
            0 => Ok(Woken::Proceed),
            _ => Ok(Woken::Signal),
        }
    }
}

impl Bound {
    fn new(at: SocketAddr, address: Option<IpAddr>) -> io::Result<Self> {
        let socket = UdpSocket::bind(at)?;
        socket.set_nonblocking(true)?;
        for (beyond_the_limit, within) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            set_option(&socket, libc::SOL_SOCKET, beyond_the_limit, BUFFER)
                .or_else(|_| set_option(&socket, libc::SOL_SOCKET, within, BUFFER))?;
        }
        Ok(Self { socket, address })
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

/// A datagram, with its ECN codepoint: its size, from where, and the codepoint.
fn receive_marked(socket: &UdpSocket, datagram: &mut [u8]) -> io::Result<(usize, SocketAddr, u8)> {
    // SAFETY: all pointers are to values that outlive the call, of the sizes given; the kernel writes the address and the
    // control messages, which the macros of libc walk within the length that it gives.
    unsafe {
        let mut address: libc::sockaddr_storage = mem::zeroed();
        let mut control = [0u64; 16];
        let mut part = libc::iovec { iov_base: datagram.as_mut_ptr().cast(), iov_len: datagram.len() };
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_name = ptr::from_mut(&mut address).cast();
        message.msg_namelen = mem::size_of_val(&address) as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = mem::size_of_val(&control) as _;
        let size = libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0);
        if size < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut ecn = 0;
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            match ((*header).cmsg_level, (*header).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_TOS) => ecn = *libc::CMSG_DATA(header) & 3,
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    ecn = (libc::CMSG_DATA(header).cast::<libc::c_int>().read_unaligned() & 3) as u8;
                }
                _ => {}
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        Ok((size as usize, address_of(&address)?, ecn))
    }
}

fn address_of(storage: &libc::sockaddr_storage) -> io::Result<SocketAddr> {
    let start = ptr::from_ref(storage);
    // SAFETY: the family says which of the two the storage is, and it has room for either.
    unsafe {
        match i32::from(storage.ss_family) {
            libc::AF_INET => {
                let own = &*start.cast::<libc::sockaddr_in>();
                Ok((Ipv4Addr::from(u32::from_be(own.sin_addr.s_addr)), u16::from_be(own.sin_port)).into())
            }
            libc::AF_INET6 => {
                let own = &*start.cast::<libc::sockaddr_in6>();
                Ok((Ipv6Addr::from(own.sin6_addr.s6_addr), u16::from_be(own.sin6_port)).into())
            }
            family => Err(io::Error::other(format!("a datagram from an address of family {family}"))),
        }
    }
}

fn set_option(socket: &UdpSocket, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the pointer and the size are those of `value`.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
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
