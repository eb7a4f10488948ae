//! The sender of messages: each part when its message is due, and repair symbols as the options say.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use fec::{Context, Encoder};
use host::coding::{Coding, Flush};
use host::content;
use host::messages::{Log, Messages, Part};

use crate::wire::{self, Datagram};

/// The destination of datagrams, and the clock.
pub trait Outlet {
    fn now(&self) -> Instant;

    /// Sends a datagram, and tells its length.
    fn send(&mut self, datagram: &Datagram) -> io::Result<u64>;
}

#[derive(Debug)]
pub struct Sending {
    messages: Arc<Messages>,
    content_seed: u64,
    protection: Option<Protection>,
    /// Time at which the timetable began.
    pub begun: Option<Instant>,
    /// The message that is sent next.
    next: u32,
    pub log: Log,
    pub source_sent: u64,
    pub repair_sent: u64,
}

#[derive(Debug)]
struct Protection {
    encoder: Encoder,
    code: u8,
    flush: Flush,
}

impl Sending {
    /// An error is one line.
    pub fn new(messages: Arc<Messages>, content_seed: u64, coding: Option<&Coding>) -> Result<Self, String> {
        let protection = coding.map(|coding| -> Result<_, String> {
            let mut encoder = Encoder::new(coding.code, coding.controller(coding.code)?);
            encoder.set_window(coding.span());
            Ok(Protection { encoder, code: wire::number(coding.code), flush: coding.flush })
        });
        Ok(Self {
            messages,
            content_seed,
            protection: protection.transpose()?,
            begun: None,
            next: 0,
            log: Log::default(),
            source_sent: 0,
            repair_sent: 0,
        })
    }

    /// Returns when the next message is due.
    pub fn timeout(&self) -> Option<Instant> {
        let begun = self.begun.filter(|_| !self.is_done())?;
        Some(begun + self.messages.due(self.next))
    }

    pub fn is_done(&self) -> bool {
        self.next == self.messages.count()
    }

    /// Sends what is due.
    pub fn proceed(&mut self, outlet: &mut impl Outlet) -> io::Result<()> {
        while self.timeout().is_some_and(|due| due <= outlet.now()) {
            self.send_message(self.next, outlet)?;
            self.next += 1;
            self.send_repairs(Flush::Message, outlet)?;
        }
        self.send_repairs(Flush::Idle, outlet)
    }

    fn send_message(&mut self, message: u32, outlet: &mut impl Outlet) -> io::Result<()> {
        let begin = self.messages.begin_of(message);
        for number in 0..self.messages.parts_of(message) {
            let part = Part { message, part: number };
            let range = self.messages.range(part).expect("a part of this message");
            let length = (range.end - range.start) as usize;
            let symbol = part.packed(length, |bytes| content::fill(self.content_seed, begin + range.start, bytes));
            self.log.add(outlet.now(), part);
            match &mut self.protection {
                None => {
                    outlet.send(&Datagram::Part(&symbol))?;
                }
                Some(Protection { encoder, .. }) => {
                    let sid = encoder.protect(&symbol);
                    outlet.send(&Datagram::Source(sid as u32, &symbol))?;
                    self.source_sent += 1;
                    self.send_repair_symbols(false, outlet)?;
                }
            }
        }
        Ok(())
    }

    /// Sends the repair symbols of what is unprotected, if the options have it now.
    fn send_repairs(&mut self, now: Flush, outlet: &mut impl Outlet) -> io::Result<()> {
        match &self.protection {
            Some(Protection { flush, .. }) if *flush == now => self.send_repair_symbols(true, outlet),
            _ => Ok(()),
        }
    }

    fn send_repair_symbols(&mut self, is_flushed: bool, outlet: &mut impl Outlet) -> io::Result<()> {
        let Some(Protection { encoder, code, .. }) = &mut self.protection else {
            return Ok(());
        };
        let context = if is_flushed { Context::END_OF_DATA } else { Context::MORE_DATA };
        let mut payload = Vec::new();
        while encoder.repair(&context, &mut payload) {
            outlet.send(&Datagram::Repair(*code, &payload))?;
            self.repair_sent += 1;
            payload.clear();
        }
        Ok(())
    }
}
