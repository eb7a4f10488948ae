//! The receiver of messages: takes parts in, and rebuilds lost ones.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fec::Recovered;
use host::coding::{Coding, Decoding};
use host::messages::{HEADER, Messages, Part, Receiver};

use crate::wire::{self, Datagram};

#[derive(Debug)]
pub struct Receiving {
    messages: Arc<Messages>,
    pub receiver: Receiver,
    decoding: Option<(u8, Decoding)>,
    pub source_received: u64,
    pub repair_received: u64,
    /// Symbols rebuilt, and those of them that came after all.
    pub recovered: u64,
    pub recovered_spurious: u64,
}

impl Receiving {
    pub fn new(messages: Arc<Messages>, content_seed: u64, coding: Option<&Coding>) -> Self {
        let longest_symbol = HEADER + messages.longest_part() as usize;
        Self {
            receiver: Receiver::new(messages.clone(), content_seed),
            decoding: coding.map(|coding| (wire::number(coding.code), coding.decoding(longest_symbol))),
            messages,
            source_received: 0,
            repair_received: 0,
            recovered: 0,
            recovered_spurious: 0,
        }
    }

    /// Takes in what the sender has sent. An error is one line.
    pub fn take(&mut self, now: Instant, datagram: Datagram) -> Result<(), String> {
        match datagram {
            Datagram::Part(symbol) => self.receiver.take_packed(now, symbol),
            Datagram::Source(sid, symbol) => self.take_source(now, sid.into(), symbol),
            Datagram::Repair(code, payload) => self.take_repair(now, code, payload),
            Datagram::End => {
                self.receiver.end(now);
                Ok(())
            }
            other => Err(format!("{other} is not what a sender sends")),
        }
    }

    fn take_source(&mut self, now: Instant, sid: u64, symbol: &[u8]) -> Result<(), String> {
        self.source_received += 1;
        self.receiver.take_packed(now, symbol)?;
        // A receiver without FEC takes the parts as they are.
        let Some((_, decoding)) = &mut self.decoding else {
            return Ok(());
        };
        self.recovered_spurious += u64::from(decoding.take_recovered(sid));
        let recovered = decoding.source(sid, Bytes::copy_from_slice(symbol));
        self.take_recovered(now, recovered.map_err(|malformed| format!("source symbol {sid}: {malformed}"))?)
    }

    fn take_repair(&mut self, now: Instant, code: u8, payload: &[u8]) -> Result<(), String> {
        self.repair_received += 1;
        let Some((_, decoding)) = self.decoding.as_mut().filter(|(known, _)| *known == code) else {
            return Ok(());
        };
        let recovered = decoding.repair(payload);
        self.take_recovered(now, recovered.map_err(|malformed| format!("repair symbol: {malformed}"))?)
    }

    fn take_recovered(&mut self, now: Instant, recovered: Vec<Recovered>) -> Result<(), String> {
        for (sid, symbol) in recovered {
            self.recovered += 1;
            let symbol = self.unpadded(&symbol).ok_or_else(|| format!("source symbol {sid} was rebuilt as no part"))?;
            self.receiver.take_packed(now, symbol)?;
        }
        Ok(())
    }

    /// A symbol that was rebuilt, without zeros behind the part that it is.
    fn unpadded<'a>(&self, symbol: &'a [u8]) -> Option<&'a [u8]> {
        let (part, content) = Part::unpacked(symbol)?;
        let range = self.messages.range(part)?;
        let (_, padding) = content.split_at_checked((range.end - range.start) as usize)?;
        let is_padded = padding.iter().all(|byte| *byte == 0);
        is_padded.then(|| &symbol[..symbol.len() - padding.len()])
    }
}
