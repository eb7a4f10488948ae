//! Forward erasure correction for a transport that this crate does not know: bytes in, bytes out, no clock, no I/O.
//!
//! An [`Encoder`] takes source symbols and gives repair payloads when its [`Controller`] wants them; a [`Decoder`] takes
//! both, in any order, and gives the source symbols that it recovered. README.md says how they fit together.

mod code;
mod controller;
mod decoder;
mod encoder;
pub mod field;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod kernel;
pub mod reed_solomon;
mod repair;
mod rlc;
mod tinymt;
mod vandermonde;

pub use code::Code;
pub use controller::{Block, Context, Controller, Refused, SlidingWindow};
pub use decoder::{Decoder, MAX_LOOK_BACK, Recovered};
pub use encoder::Encoder;
pub use kernel::Kernel;
pub use repair::{MAX_HEADER, MAX_SPAN, Malformed, Protected, SID_LIMIT, Sid};
