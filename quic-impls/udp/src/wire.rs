//! The datagrams of the protocol, as README.md has them.

use std::fmt::{self, Display};

use fec::Code;

/// A datagram: its first byte tells which.
#[derive(Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// The client asks the server to take part.
    Hello,
    /// The server does.
    Welcome,
    /// A symbol, which is a part, without protection.
    Part(&'a [u8]),
    /// A symbol that is protected, with its number.
    Source(u32, &'a [u8]),
    /// A repair payload, with the number of its code.
    Repair(u8, &'a [u8]),
    /// The sender has sent all.
    End,
    /// The receiver has all that it takes.
    Done,
}

const HELLO: u8 = 0x10;
const WELCOME: u8 = 0x11;
const PART: u8 = 0x20;
const SOURCE: u8 = 0x21;
const REPAIR: u8 = 0x22;
const END: u8 = 0x30;
const DONE: u8 = 0x31;

impl<'a> Datagram<'a> {
    /// Parses a datagram; None if it is none of these.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        match bytes {
            [HELLO] => Some(Self::Hello),
            [WELCOME] => Some(Self::Welcome),
            [PART, symbol @ ..] => Some(Self::Part(symbol)),
            [SOURCE, a, b, c, d, symbol @ ..] => Some(Self::Source(u32::from_be_bytes([*a, *b, *c, *d]), symbol)),
            [REPAIR, code, payload @ ..] => Some(Self::Repair(*code, payload)),
            [END] => Some(Self::End),
            [DONE] => Some(Self::Done),
            _ => None,
        }
    }

    pub fn write(&self) -> Vec<u8> {
        match self {
            Self::Hello => vec![HELLO],
            Self::Welcome => vec![WELCOME],
            Self::Part(symbol) => [&[PART], *symbol].concat(),
            Self::Source(sid, symbol) => [&[SOURCE], &sid.to_be_bytes()[..], *symbol].concat(),
            Self::Repair(code, payload) => [&[REPAIR, *code], *payload].concat(),
            Self::End => vec![END],
            Self::Done => vec![DONE],
        }
    }
}

impl Display for Datagram<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hello => f.write_str("HELLO"),
            Self::Welcome => f.write_str("WELCOME"),
            Self::Part(symbol) => write!(f, "PART of {} bytes", symbol.len()),
            Self::Source(sid, symbol) => write!(f, "SOURCE {sid} of {} bytes", symbol.len()),
            Self::Repair(code, payload) => write!(f, "REPAIR of code {code} and {} bytes", payload.len()),
            Self::End => f.write_str("END"),
            Self::Done => f.write_str("DONE"),
        }
    }
}

/// The number of a code.
pub fn number(code: Code) -> u8 {
    match code {
        Code::Xor => 1,
        Code::ReedSolomon => 2,
        Code::Rlc { .. } => 3,
        Code::Vandermonde => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let datagrams = [
            Datagram::Hello,
            Datagram::Welcome,
            Datagram::Part(&[1, 2]),
            Datagram::Source(0x0102_0304, &[5]),
            Datagram::Repair(3, &[]),
            Datagram::End,
            Datagram::Done,
        ];
        for datagram in datagrams {
            assert_eq!(Datagram::parse(&datagram.write()), Some(datagram));
        }
    }

    #[test]
    fn what_is_too_short_or_unknown_is_no_datagram() {
        for bytes in [&[][..], &[0], &[HELLO, 0], &[SOURCE, 0, 0, 0], &[REPAIR], &[END, 1], &[0xff]] {
            assert_eq!(Datagram::parse(bytes), None, "{bytes:?}");
        }
    }
}
