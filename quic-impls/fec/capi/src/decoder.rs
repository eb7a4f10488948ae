//! The receiver's side.

use std::ptr;
use std::vec::IntoIter;

use bytes::Bytes;
use codes::{MAX_LOOK_BACK, MAX_SPAN, Malformed, Recovered};

use crate::border::{
    Failure, Handle, MAX_HEADER, MAX_SYMBOL, Status, bytes, check_range, check_result, exclusive, free, guard,
};
use crate::encoder::checked_code;

/// A receiver's symbols.
#[derive(Debug)]
pub struct Decoder(Handle<Receiver>);

#[derive(Debug)]
struct Receiver {
    decoder: codes::Decoder,
    /// Symbols that the last symbol or payload recovered, less those that were asked for.
    recovered: IntoIter<Recovered>,
    /// The symbol that C reads.
    lent: Bytes,
}

impl Receiver {
    fn took(&mut self, recovered: Result<Vec<Recovered>, Malformed>) -> Result<Status, Failure> {
        self.recovered = recovered.map_err(|malformed| Failure::new(Status::Malformed, malformed))?.into_iter();
        Ok(Status::Ok)
    }
}

/// SIDs from first to last, both included.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// Make a decoder that takes repair symbols over at most `window` source symbols (1 to 255), which is to be announced to the
/// sender, and symbols of at most `symbol_size` bytes. It looks back over so many source symbols: 2 · window to 4096, or 0
/// for the least. It keeps no more than as many symbols and equations.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_decoder_new(
    decoder: *mut *mut Decoder,
    code: u32,
    symbol_size: usize,
    window: usize,
    look_back: usize,
) -> Status {
    guard(|| {
        check_result(decoder, "decoder")?;
        // SAFETY: as the caller says.
        unsafe { decoder.write(ptr::null_mut()) };
        let code = checked_code(code)?;
        check_range("symbol_size", symbol_size, 1, MAX_SYMBOL)?;
        check_range("window", window, 1, MAX_SPAN)?;
        let look_back = if look_back == 0 { 2 * window } else { look_back };
        check_range("look_back", look_back, 2 * window, MAX_LOOK_BACK)?;
        let made = codes::Decoder::new(code, window, symbol_size).looking_back(look_back);
        let receiver = Receiver { decoder: made, recovered: IntoIter::default(), lent: Bytes::new() };
        // SAFETY: as before.
        unsafe { decoder.write(Box::into_raw(Box::new(Decoder(Handle::new(receiver))))) };
        Ok(Status::Ok)
    })
}

/// Free a decoder; null is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_decoder_free(decoder: *mut Decoder) {
    // SAFETY: as the caller says.
    unsafe { free(decoder) };
}

/// # Safety
/// `decoder` is null, or was made here, not freed, and no other thread uses it.
unsafe fn call(decoder: *mut Decoder, call: impl FnOnce(&mut Receiver) -> Result<Status, Failure>) -> Status {
    // SAFETY: as the caller says.
    guard(|| unsafe { exclusive(decoder, "decoder") }?.0.call(call))
}

/// Take a source symbol that arrived. Then ask fec_decoder_recovered().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_decoder_source(
    decoder: *mut Decoder,
    sid: u64,
    symbol: *const u8,
    length: usize,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        call(decoder, |receiver| {
            let symbol = arrived(symbol, length, "symbol")?;
            let recovered = receiver.decoder.source(sid, Bytes::copy_from_slice(symbol));
            receiver.took(recovered)
        })
    }
}

/// Take a repair payload that arrived. Then ask fec_decoder_recovered().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_decoder_repair(decoder: *mut Decoder, payload: *const u8, length: usize) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        call(decoder, |receiver| {
            let payload = arrived(payload, length, "payload")?;
            let recovered = receiver.decoder.repair(payload);
            receiver.took(recovered)
        })
    }
}

/// Return the next source symbol that the last symbol or payload recovered; FEC_STATUS_NO after the last one. It has
/// zeros at its end if it was shorter than others. It is valid until the next call with this decoder. Symbols that are
/// not asked for are forgotten with the next symbol.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_decoder_recovered(
    decoder: *mut Decoder,
    sid: *mut u64,
    symbol: *mut *const u8,
    length: *mut usize,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        call(decoder, |receiver| {
            check_result(sid, "sid")?;
            check_result(symbol, "symbol")?;
            check_result(length, "length")?;
            let Some((number, bytes)) = receiver.recovered.next() else { return Ok(Status::No) };
            receiver.lent = bytes;
            sid.write(number);
            symbol.write(receiver.lent.as_ptr());
            length.write(receiver.lent.len());
            Ok(Status::Ok)
        })
    }
}

/// Return the symbols that were recovered and are still looked back at, the newest first: `capacity` ranges at most,
/// and how many there are in `count`. The sender is to know them: fec_encoder_recovered().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_decoder_acks(
    decoder: *mut Decoder,
    ranges: *mut Range,
    capacity: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        call(decoder, |receiver| {
            check_result(count, "count")?;
            if capacity > 0 {
                check_result(ranges, "ranges")?;
            }
            let acks = receiver.decoder.acks();
            for (place, range) in acks.iter().take(capacity).enumerate() {
                ranges.add(place).write(Range { first: *range.start(), last: *range.end() });
            }
            count.write(acks.len());
            Ok(Status::Ok)
        })
    }
}

/// Bytes from a peer, at most as many as any payload has; the decoder says how many it takes.
///
/// # Safety
/// `pointer` is null, or has `length` bytes.
unsafe fn arrived<'a>(pointer: *const u8, length: usize, name: &str) -> Result<&'a [u8], Failure> {
    // SAFETY: as the caller says.
    unsafe { bytes(pointer, length, MAX_SYMBOL + MAX_HEADER, name) }
}
