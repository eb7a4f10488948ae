//! The crate `fec` for programs in C, and in all that calls C: `include/fec.h` is made of this crate.
//!
//! Encoders and decoders are opaque. Each call checks pointers for null, and lengths and numbers for their limits; a
//! panic ends in a status. The caller answers for the rest of a pointer: it is valid, and no other thread uses it.

#![allow(clippy::missing_safety_doc, reason = "it is the same for all functions: see above")]

mod border;
mod context;
mod decoder;
mod encoder;

pub use border::{Status, fec_error};
pub use context::{Context, Slot};
pub use decoder::{
    Decoder, Range, fec_decoder_acks, fec_decoder_free, fec_decoder_new, fec_decoder_recovered, fec_decoder_repair,
    fec_decoder_source,
};
pub use encoder::{
    Code, Encoder, fec_encoder_acked, fec_encoder_feedback, fec_encoder_free, fec_encoder_lost, fec_encoder_new_block,
    fec_encoder_new_constant, fec_encoder_new_safe, fec_encoder_protect, fec_encoder_protects, fec_encoder_recovered,
    fec_encoder_repair, fec_encoder_repair_settled, fec_encoder_set_window, fec_encoder_wants_repair,
};
