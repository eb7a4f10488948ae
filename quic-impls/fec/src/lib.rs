//! Forward erasure correction for a transport that this crate does not know: bytes in, bytes out, no clock, no I/O.
//!
//! An [`Encoder`] takes source symbols and gives repair payloads when its [`Controller`] wants them; a [`Decoder`] takes
//! both, in any order, and gives the source symbols that it recovered. README.md says how they fit together.

mod block;
mod code;
mod context;
mod controller;
mod decoder;
mod encoder;
pub mod field;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod kernel;
mod link;
mod policy;
pub mod reed_solomon;
mod repair;
mod rlc;
mod tinymt;
mod vandermonde;
mod window;

pub use block::Block;
pub use code::Code;
pub use context::{Context, Losses, Slot};
pub use controller::{Controller, Refused};
pub use decoder::{Decoder, MAX_LOOK_BACK, Recovered};
pub use encoder::Encoder;
pub use kernel::Kernel;
pub use link::Link;
pub use policy::{
    Deadline, Flec, FlecLimited, MakePolicy, Null, POLICIES, Policy, Probe, ProtectOnly, Quirl, QuirlBursts, Safe,
    Share,
};
pub use repair::{MAX_HEADER, MAX_SPAN, Malformed, Protected, SID_LIMIT, Sid, longest_header};
pub use window::{Flight, SlidingWindow};
