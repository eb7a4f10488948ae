//! Packets that a host of a simulator sends and receives, as a pcapng file: `quic-impls/lane/capture.h`.

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::time::Duration;

/// A file that is being written. Errors are one line.
#[derive(Debug)]
pub struct Capture {
    /// Closed if None.
    raw: Option<NonNull<RawCapture>>,
    path: PathBuf,
}

impl Capture {
    /// Makes the file; a packet at time 0 gets `epoch`, since 1970, as its time.
    pub fn open(path: PathBuf, epoch: Duration) -> Result<Self, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(&path, error.into()))?;
        // SAFETY: the name is a C string.
        match NonNull::new(unsafe { capture_open(name.as_ptr(), epoch.as_nanos() as u64) }) {
            raw @ Some(_) => Ok(Self { raw, path }),
            None => Err(failed(&path, io::Error::last_os_error())),
        }
    }

    /// A datagram that was sent or received. An error is told when the file is closed.
    pub fn packet(&mut self, at_ns: u64, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a datagram has at most 64 KiB");
        let raw = self.raw.expect("it is not closed");
        // SAFETY: the capture is ours, and the payload has that length.
        unsafe { capture_packet(raw.as_ptr(), at_ns, from.into(), to.into(), payload.as_ptr(), length) }
    }

    /// Completes the file.
    pub fn close(mut self) -> Result<(), String> {
        match self.end() {
            0 => Ok(()),
            error => Err(failed(&self.path, io::Error::from_raw_os_error(error))),
        }
    }

    /// Closes it, unless that was done. The error, or 0.
    fn end(&mut self) -> c_int {
        // SAFETY: it came from capture_open, and nobody has it after this.
        self.raw.take().map_or(0, |raw| unsafe { capture_close(raw.as_ptr()) })
    }
}

impl Drop for Capture {
    /// A file that nobody waits for, since its trial could not be carried out.
    fn drop(&mut self) {
        self.end();
    }
}

fn failed(path: &Path, error: io::Error) -> String {
    format!("capture: {}: {error}", path.display())
}

#[repr(C)]
#[derive(Debug)]
struct RawCapture {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawAddress {
    ipv4: u32,
    port: u16,
    is_ipv6: bool,
    ipv6: [u8; 16],
}

impl From<SocketAddr> for RawAddress {
    fn from(address: SocketAddr) -> Self {
        let (ipv4, ipv6) = match address.ip() {
            IpAddr::V4(ip) => (ip.to_bits(), [0; 16]),
            IpAddr::V6(ip) => (0, ip.octets()),
        };
        Self { ipv4, port: address.port(), is_ipv6: address.is_ipv6(), ipv6 }
    }
}

unsafe extern "C" {
    fn capture_open(path: *const c_char, epoch_ns: u64) -> *mut RawCapture;
    fn capture_packet(
        capture: *mut RawCapture,
        at_ns: u64,
        from: RawAddress,
        to: RawAddress,
        payload: *const u8,
        length: u32,
    );
    fn capture_close(capture: *mut RawCapture) -> c_int;
}
