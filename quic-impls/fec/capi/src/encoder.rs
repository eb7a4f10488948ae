//! The sender's side.

use std::ptr;

use codes::{Block, Controller, Safe, SlidingWindow};

use crate::border::{
    Failure, Handle, MAX_HEADER, MAX_SYMBOL, Status, bytes, check_range, check_result, exclusive, free, guard, shared,
};
use crate::context::Context;

/// The code that makes repair symbols.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Sums of all that is protected: each recovers one loss.
    Xor = 1,
    /// Reed-Solomon, of at most 256 symbols.
    ReedSolomon = 2,
    /// RLC of RFC 8681, without a coefficient that is 0.
    Rlc = 3,
    /// A Vandermonde matrix, much as in Tetrys (RFC 9407).
    Vandermonde = 4,
}

pub(crate) fn checked_code(code: u32) -> Result<codes::Code, Failure> {
    match code {
        code if code == Code::Xor as u32 => Ok(codes::Code::Xor),
        code if code == Code::ReedSolomon as u32 => Ok(codes::Code::ReedSolomon),
        code if code == Code::Rlc as u32 => Ok(codes::Code::RLC),
        code if code == Code::Vandermonde as u32 => Ok(codes::Code::Vandermonde),
        _ => Err(Failure::argument(format!(
            "code = {code}: must be XOR (1), Reed-Solomon (2), RLC (3) or Vandermonde (4)"
        ))),
    }
}

/// A sender's symbols, and its policy.
#[derive(Debug)]
pub struct Encoder(Handle<Sender>);

#[derive(Debug)]
struct Sender {
    encoder: codes::Encoder,
    symbol_size: usize,
}

/// # Safety
/// `encoder` is null, or a pointer can be written there.
unsafe fn new(
    encoder: *mut *mut Encoder,
    code: u32,
    symbol_size: usize,
    controller: impl FnOnce(codes::Code) -> Result<Box<dyn Controller>, codes::Refused>,
) -> Status {
    guard(|| {
        check_result(encoder, "encoder")?;
        // SAFETY: as the caller says.
        unsafe { encoder.write(ptr::null_mut()) };
        let code = checked_code(code)?;
        check_range("symbol_size", symbol_size, 1, MAX_SYMBOL)?;
        let controller = controller(code).map_err(Failure::argument)?;
        let sender = Sender { encoder: codes::Encoder::new(code, controller), symbol_size };
        // SAFETY: as before.
        unsafe { encoder.write(Box::into_raw(Box::new(Encoder(Handle::new(sender))))) };
        Ok(Status::Ok)
    })
}

/// Make an encoder with the policy "safe": at the end of data, as many repair symbols over the last `length` source symbols
/// (1 to 255) as the losses so far call for, where they delay nothing. Its repair symbols wait behind data and
/// acknowledgements, and their acknowledgements grow no congestion window. A symbol has at most `symbol_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_new_safe(
    encoder: *mut *mut Encoder,
    code: u32,
    symbol_size: usize,
    length: usize,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        new(encoder, code, symbol_size, |code| Ok(Box::new(SlidingWindow::new(code, length, Box::<Safe>::default())?)))
    }
}

/// Make an encoder that sends n − k repair symbols after each k source symbols, over the last `length` ones (k to 255).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_new_constant(
    encoder: *mut *mut Encoder,
    code: u32,
    symbol_size: usize,
    n: usize,
    k: usize,
    length: usize,
) -> Status {
    // SAFETY: as the caller says.
    unsafe { new(encoder, code, symbol_size, |code| Ok(Box::new(SlidingWindow::constant(code, n, k, length)?))) }
}

/// Make an encoder of blocks: n − k repair symbols over each k source symbols. `interleave` blocks are filled in
/// turn: each gets every `interleave`-th symbol.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_new_block(
    encoder: *mut *mut Encoder,
    code: u32,
    symbol_size: usize,
    n: usize,
    k: usize,
    interleave: usize,
) -> Status {
    // SAFETY: as the caller says.
    unsafe { new(encoder, code, symbol_size, |code| Ok(Box::new(Block::new(code, n, k, interleave)?))) }
}

/// Free an encoder; null is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_free(encoder: *mut Encoder) {
    // SAFETY: as the caller says.
    unsafe { free(encoder) };
}

/// # Safety
/// `encoder` is null, or was made here, not freed, and no other thread uses it.
unsafe fn call(encoder: *mut Encoder, call: impl FnOnce(&mut Sender) -> Result<Status, Failure>) -> Status {
    // SAFETY: as the caller says.
    guard(|| unsafe { exclusive(encoder, "encoder") }?.0.call(call))
}

/// Say over how many source symbols the receiver takes repair symbols: 0 until this is called, when there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_set_window(encoder: *mut Encoder, window: usize) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        call(encoder, |sender| {
            sender.encoder.set_window(window);
            Ok(Status::Ok)
        })
    }
}

/// Ask whether what is sent next is to be a source symbol.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_protects(encoder: *mut Encoder, context: *const Context) -> Status {
    // SAFETY: as the caller says.
    unsafe { ask(encoder, context, codes::Encoder::protects) }
}

/// Take a copy of what is being sent, and number it: SIDs are 0, 1, 2, and so on. The receiver has to know the SID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_protect(
    encoder: *mut Encoder,
    symbol: *const u8,
    length: usize,
    sid: *mut u64,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        call(encoder, |sender| {
            check_result(sid, "sid")?;
            let symbol = bytes(symbol, length, sender.symbol_size, "symbol")?;
            sid.write(sender.encoder.protect(symbol));
            Ok(Status::Ok)
        })
    }
}

/// The packet with this source symbol was acknowledged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_acked(encoder: *mut Encoder, sid: u64) -> Status {
    // SAFETY: as the caller says.
    unsafe { tell(encoder, sid, codes::Encoder::acked) }
}

/// The packet with this source symbol was declared lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_lost(encoder: *mut Encoder, sid: u64) -> Status {
    // SAFETY: as the caller says.
    unsafe { tell(encoder, sid, codes::Encoder::lost) }
}

/// The receiver says that it recovered this source symbol.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_recovered(encoder: *mut Encoder, sid: u64) -> Status {
    // SAFETY: as the caller says.
    unsafe { tell(encoder, sid, codes::Encoder::recovered) }
}

/// A repair symbol arrived, or was declared lost. They are numbered 0, 1, 2, and so on, as fec_encoder_repair() makes them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_repair_settled(encoder: *mut Encoder, number: u64) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        call(encoder, |sender| {
            sender.encoder.repair_settled(number);
            Ok(Status::Ok)
        })
    }
}

/// Acknowledgements came, or packets were declared lost; each symbol's fate was told before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_feedback(encoder: *mut Encoder, context: *const Context) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        call(encoder, |sender| {
            let context = shared(context, "context")?.checked(sender.symbol_size)?;
            sender.encoder.feedback(&context);
            Ok(Status::Ok)
        })
    }
}

/// Ask whether fec_encoder_repair() would make a repair symbol now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_wants_repair(encoder: *mut Encoder, context: *const Context) -> Status {
    // SAFETY: as the caller says.
    unsafe { ask(encoder, context, codes::Encoder::wants_repair) }
}

/// Make the repair payload that is to be sent now: its bytes, and their number in `length`; FEC_STATUS_NO and 0 if there is
/// none. The buffer takes `capacity` bytes, at least symbol_size + FEC_MAX_HEADER.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encoder_repair(
    encoder: *mut Encoder,
    context: *const Context,
    payload: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        call(encoder, |sender| {
            check_result(payload, "payload")?;
            check_result(length, "length")?;
            length.write(0);
            let context = shared(context, "context")?.checked(sender.symbol_size)?;
            let least = sender.symbol_size + MAX_HEADER;
            if capacity < least {
                let message = format!("capacity = {capacity}: must be {least} or more");
                return Err(Failure::new(Status::Buffer, message));
            }
            let mut made = Vec::new();
            if !sender.encoder.repair(&context, &mut made) {
                return Ok(Status::No);
            }
            assert!(made.len() <= least, "a repair payload of {} bytes", made.len());
            ptr::copy_nonoverlapping(made.as_ptr(), payload, made.len());
            length.write(made.len());
            Ok(Status::Ok)
        })
    }
}

/// # Safety
/// `encoder` is null or an encoder, `context` is null or a context.
unsafe fn ask(
    encoder: *mut Encoder,
    context: *const Context,
    question: impl FnOnce(&codes::Encoder, &codes::Context) -> bool,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        call(encoder, |sender| {
            let context = shared(context, "context")?.checked(sender.symbol_size)?;
            Ok(if question(&sender.encoder, &context) { Status::Ok } else { Status::No })
        })
    }
}

/// # Safety
/// `encoder` is null or an encoder.
unsafe fn tell(encoder: *mut Encoder, sid: u64, news: impl FnOnce(&mut codes::Encoder, u64)) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        call(encoder, |sender| {
            let next = sender.encoder.next_sid();
            if sid >= next {
                let message = format!("SID {sid} was not sent: the next one is {next}");
                return Err(Failure::new(Status::Malformed, message));
            }
            news(&mut sender.encoder, sid);
            Ok(Status::Ok)
        })
    }
}
