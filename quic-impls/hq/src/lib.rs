//! Transfers over hq-interop: the work of a client and a server with any QUIC stack that has no I/O of its own.
//!
//! | module | its one job |
//! |---|---|
//! | [`stack`] | what a QUIC stack, or one connection of it, has to offer |
//! | [`sending`] | what a stream sends, up to its end |
//! | [`request`] | a client's request, and its answer |
//! | [`requests`] | those of a client that is told in the course of a trial what to ask for |
//! | [`answers`] | a server's answers |
//! | [`endpoint`] | client and server, from their start to their report |

pub mod answers;
pub mod endpoint;
pub mod request;
pub mod requests;
pub mod sending;
pub mod stack;

pub const ALPN: &[u8] = b"hq-interop";

/// Flow control must not be what limits a transfer: this is several times the bandwidth-delay product of
/// the fastest link with the longest delay that the papers use (100 Mbps, 2 × 400 ms: 10 MB).
pub const FLOW_CONTROL_WINDOW: u32 = 64 << 20;

/// The workloads of endpoints that do what this crate does.
pub const WORKLOADS: &[&str] = &["download", "upload", host::requests::NAME];
