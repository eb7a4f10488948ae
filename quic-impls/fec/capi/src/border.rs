//! The border between C and Rust: statuses, checked pointers, and no panic.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

/// The longest symbol that an encoder or a decoder can be made for, in bytes.
pub const MAX_SYMBOL: usize = 65535;

/// The most bytes that a repair payload has before its repair symbol.
pub const MAX_HEADER: usize = 13;

const _: () = assert!(MAX_HEADER == codes::MAX_HEADER, "a literal, for the header in C");

/// Status of a call. Values below 0 are errors: fec_error() says which, and the encoder or decoder is as before.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done; the answer to a question is yes.
    Ok = 0,
    /// The answer to a question is no: there is none, or no other one.
    No = 1,
    /// An argument is null, out of its range, or contradicts another one: a fault of the program.
    Argument = -1,
    /// A buffer is too short.
    Buffer = -2,
    /// The peer sent bytes that it must not send.
    Malformed = -3,
    /// A fault of the library. Free the encoder or decoder: it takes no more calls.
    Broken = -4,
}

/// A call that did not do its work, and why, in one line.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    message: String,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Display) -> Failure {
        Failure { status, message: message.to_string() }
    }

    pub(crate) fn argument(message: impl Display) -> Failure {
        Failure::new(Status::Argument, message)
    }
}

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Return why the last call of this thread that failed did so: one line, empty if none has failed. It is valid until the
/// next call of this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn fec_error() -> *const c_char {
    // A thread that ends has no message any more.
    ERROR.try_with(|error| error.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The status of a call. A panic that unwinds ends here; built with `panic = "abort"`, it ends the process.
pub(crate) fn guard(call: impl FnOnce() -> Result<Status, Failure>) -> Status {
    let failure = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(status)) => return status,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(Status::Broken, "a fault of the library; its message went to standard error"),
    };
    let message = CString::new(failure.message.replace('\0', "")).unwrap_or_default();
    let _ = ERROR.try_with(|error| error.replace(message));
    failure.status
}

/// An encoder or a decoder, which takes no more calls after a panic amid one.
#[derive(Debug)]
pub(crate) struct Handle<T> {
    inner: T,
    is_broken: bool,
}

impl<T> Handle<T> {
    pub(crate) fn new(inner: T) -> Handle<T> {
        Handle { inner, is_broken: false }
    }

    pub(crate) fn call(&mut self, call: impl FnOnce(&mut T) -> Result<Status, Failure>) -> Result<Status, Failure> {
        if self.is_broken {
            return Err(Failure::new(Status::Broken, "a call before has failed by a fault of the library: free it"));
        }
        self.is_broken = true;
        let done = call(&mut self.inner);
        self.is_broken = false;
        done
    }
}

/// # Safety
/// `pointer` is null, or a `T` that nobody else uses for `'a`.
pub(crate) unsafe fn exclusive<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_mut() }.ok_or_else(|| is_null(name))
}

/// # Safety
/// `pointer` is null, or a `T` that nobody changes for `'a`.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_ref() }.ok_or_else(|| is_null(name))
}

/// Whether something can be written where a result is to go, which need not be initialized.
pub(crate) fn check_result<T>(pointer: *mut T, name: &str) -> Result<(), Failure> {
    if pointer.is_null() { Err(is_null(name)) } else { Ok(()) }
}

/// Bytes that are read; null if there are none, or not.
///
/// # Safety
/// `pointer` is null, or has `length` bytes that nobody changes for `'a`.
pub(crate) unsafe fn bytes<'a>(
    pointer: *const u8,
    length: usize,
    most: usize,
    name: &str,
) -> Result<&'a [u8], Failure> {
    match (pointer.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(is_null(name)),
        (false, _) if length > most => Err(Failure::argument(format!("{name} of {length} bytes: at most {most}"))),
        // SAFETY: as the caller says.
        (false, _) => Ok(unsafe { slice::from_raw_parts(pointer, length) }),
    }
}

/// Refuses a number that is not in its range.
pub(crate) fn check_range(name: &str, number: usize, least: usize, most: usize) -> Result<(), Failure> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(Failure::argument(format!("{name} = {number}: must be {least} to {most}")))
}

/// Frees what `Box::into_raw` gave; null is nothing.
///
/// # Safety
/// `pointer` is null, or of a box that nobody uses any more.
pub(crate) unsafe fn free<T>(pointer: *mut T) {
    guard(|| {
        if !pointer.is_null() {
            // SAFETY: as the caller says.
            drop(unsafe { Box::from_raw(pointer) });
        }
        Ok(Status::Ok)
    });
}

fn is_null(name: &str) -> Failure {
    Failure::argument(format!("{name} is null"))
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn error() -> String {
        // SAFETY: it is a string of this thread, and no call fails before it is copied.
        unsafe { CStr::from_ptr(fec_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_a_status_and_its_handle_takes_no_more_calls() {
        let mut handle = Handle::new(1);
        assert_eq!(guard(|| handle.call(|_| panic!("a fault"))), Status::Broken);
        assert!(error().starts_with("a fault of the library"), "{}", error());
        assert_eq!(guard(|| handle.call(|_| Ok(Status::Ok))), Status::Broken);
        assert!(error().ends_with("free it"), "{}", error());
    }

    #[test]
    fn a_failure_leaves_a_handle_as_it_was() {
        let mut handle = Handle::new(1);
        assert_eq!(guard(|| handle.call(|_| Err(Failure::argument("k = 0")))), Status::Argument);
        assert_eq!(error(), "k = 0");
        assert_eq!(guard(|| handle.call(|_| Ok(Status::Ok))), Status::Ok);
        assert_eq!(error(), "k = 0", "of the last that failed");
    }

    #[test]
    fn each_thread_has_errors_of_its_own() {
        guard(|| Err(Failure::argument("here")));
        std::thread::spawn(|| assert_eq!(error(), "")).join().unwrap();
        assert_eq!(error(), "here");
    }
}
