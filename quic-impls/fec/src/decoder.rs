//! The receiver's side: solves, as they come, the linear equations that repair symbols are.

use std::array;
use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::code::Code;
use crate::field;
use crate::kernel::{Kernel, Term};
use crate::repair::{Header, MAX_SPAN, Malformed, SID_LIMIT, Sid};

/// A source symbol that was recovered, padded with zeros on the right if it was shorter than others.
pub type Recovered = (Sid, Bytes);

/// Number of bytes that may be multiplied and added for a received byte. A repair symbol over the widest window costs
/// 255 for each of its bytes, and as much again when a third of the window is missing.
pub(crate) const PAID_BY_BYTE: i64 = 1024;

/// Price of a coefficient, which is not drawn faster than this many bytes are added.
const PRICE_OF_COEFFICIENT: i64 = 64;

/// Most credit that may be paid in advance.
pub(crate) const CREDIT: i64 = 1 << 21;

/// Takes source and repair symbols in any order, and recovers the source symbols that they determine.
///
/// It looks back over twice its window of source symbols, or [more](Decoder::looking_back), so that what was reordered or held up
/// still counts. Its
/// equations are kept in reduced row echelon form, the oldest unknown symbol of each in no other one. So each symbol
/// received costs at most two passes over the equations, a symbol is recovered as soon as that is possible at all, and a
/// symbol that leaves the window takes no more than one equation with it.
///
/// Arithmetic is paid with the bytes that arrive. While a peer owes, as one does that sends many small repair symbols against long
/// equations, its repair symbols are ignored, as draft-michel-quic-fec allows.
#[derive(Clone, Debug)]
pub struct Decoder {
    code: Code,
    kernel: Kernel,
    window: usize,
    symbol_size: usize,
    /// The oldest symbol that is looked back at.
    base: Sid,
    /// Its own, so that no other one takes a division.
    place_of_base: usize,
    /// The symbol of each SID from `base` on, at SID modulo their number.
    symbols: Vec<Known>,
    equations: Vec<Equation>,
    /// Credit that is paid and not spent; a debt if below 0.
    credit: i64,
    /// Repair symbols that came while it was owed.
    ignored: u64,
    /// Symbols that came too late to be looked back at.
    outdated: u64,
}

/// The most source symbols that a decoder looks back at: reordering between two paths takes it to rate × difference of their
/// delays, which this is for 100 Mbps and 400 ms.
pub const MAX_LOOK_BACK: usize = 4096;

#[derive(Clone, Debug)]
enum Known {
    Not,
    Received(Bytes),
    Recovered(Bytes),
}

impl Known {
    fn symbol(&self) -> Option<&Bytes> {
        match self {
            Known::Not => None,
            Known::Received(symbol) | Known::Recovered(symbol) => Some(symbol),
        }
    }
}

/// The sum of unknown symbols, each multiplied by its coefficient, is `sum`.
#[derive(Clone, Debug)]
struct Equation {
    /// The oldest unknown symbol; its coefficient is 1.
    pivot: Sid,
    place_of_pivot: usize,
    /// The place of a symbol that was another unknown one when that was last asked; that of the pivot before.
    place_of_another: usize,
    /// Coefficients by SID modulo their number.
    coefficients: Vec<u8>,
    sum: Vec<u8>,
}

impl Equation {
    fn new(pivot: Sid, place_of_pivot: usize, coefficients: Vec<u8>, sum: Vec<u8>) -> Equation {
        Equation { pivot, place_of_pivot, place_of_another: place_of_pivot, coefficients, sum }
    }

    /// Returns the size in bytes: the cost of adding it to another one.
    fn size(&self) -> usize {
        self.coefficients.len() + self.sum.len()
    }

    /// Takes the pivot out of other ones.
    fn take_out_of<const OTHERS: usize>(&self, mut others: [&mut Equation; OTHERS], kernel: Kernel) {
        let constants = others.each_ref().map(|other| other.coefficients[self.place_of_pivot]);
        let rows = others.each_mut().map(|other| &mut other.coefficients[..]);
        kernel.add_products(rows, &[Term { constants, symbol: &self.coefficients }]);
        let sums = others.each_mut().map(|other| {
            other.sum.resize(other.sum.len().max(self.sum.len()), 0);
            &mut other.sum[..self.sum.len()]
        });
        kernel.add_products(sums, &[Term { constants, symbol: &self.sum }]);
    }

    fn has_one_unknown(&mut self) -> bool {
        if self.place_of_another == self.place_of_pivot || self.coefficients[self.place_of_another] == 0 {
            let (before, rest) = self.coefficients.split_at(self.place_of_pivot);
            let after = &rest[1..];
            if [before, after].iter().all(|part| part.iter().fold(0, |all, coefficient| all | coefficient) == 0) {
                return true;
            }
            // Mostly one of the newest, which will be there for long.
            let mut places = (0..self.coefficients.len()).rev().filter(|place| *place != self.place_of_pivot);
            let another = places.find(|place| self.coefficients[*place] != 0);
            self.place_of_another = another.expect("not all are 0");
        }
        false
    }
}

impl Decoder {
    /// A decoder that takes repair symbols over at most `window` source symbols, 1 to [`MAX_SPAN`], and symbols of at
    /// most `symbol_size` bytes. It never keeps more than twice `window` symbols and as many equations.
    ///
    /// # Panics
    /// If `window` is 0 or more than [`MAX_SPAN`].
    #[must_use]
    pub fn new(code: Code, window: usize, symbol_size: usize) -> Decoder {
        assert!((1..=MAX_SPAN).contains(&window), "window of {window}: must be 1 to {MAX_SPAN}");
        let symbols = vec![Known::Not; 2 * window];
        let (kernel, equations) = (Kernel::fastest(), Vec::new());
        Decoder {
            code,
            kernel,
            window,
            symbol_size,
            base: 0,
            place_of_base: 0,
            symbols,
            equations,
            credit: CREDIT,
            ignored: 0,
            outdated: 0,
        }
    }

    /// The same decoder, which looks back over so many source symbols, and keeps at most as many equations.
    ///
    /// # Panics
    /// If that is less than twice the window, or more than [`MAX_LOOK_BACK`].
    #[must_use]
    pub fn looking_back(mut self, symbols: usize) -> Decoder {
        let least = 2 * self.window;
        assert!((least..=MAX_LOOK_BACK).contains(&symbols), "{symbols}: must be {least} to {MAX_LOOK_BACK}");
        self.symbols = vec![Known::Not; symbols];
        self
    }

    /// The same decoder with other instructions.
    #[must_use]
    pub fn with_kernel(mut self, kernel: Kernel) -> Decoder {
        self.kernel = kernel;
        self
    }

    /// The widest span of a repair symbol, to be announced to the sender.
    #[must_use]
    pub fn window(&self) -> usize {
        self.window
    }

    /// Takes a source symbol, and yields what can be recovered with it. A known symbol, or one that is too old, changes
    /// nothing.
    ///
    /// # Errors
    /// If the peer must not send it; the decoder is then as before.
    pub fn source(&mut self, sid: Sid, symbol: Bytes) -> Result<Vec<Recovered>, Malformed> {
        if sid >= SID_LIMIT {
            return Err(Malformed::Sid);
        }
        if symbol.len() > self.symbol_size {
            return Err(Malformed::Length);
        }
        self.credit = self.paid(symbol.len());
        self.look_ahead_to(sid);
        if sid < self.base {
            self.outdated += 1;
            return Ok(Vec::new());
        }
        if self.known(sid).is_some() {
            return Ok(Vec::new());
        }
        self.substitute(sid, &symbol);
        let place = self.place(sid);
        self.symbols[place] = Known::Received(symbol);
        Ok(self.recover())
    }

    /// Takes a repair payload, and yields what can be recovered with it.
    ///
    /// # Errors
    /// If the peer must not send it; the decoder is then as before.
    pub fn repair(&mut self, payload: &[u8]) -> Result<Vec<Recovered>, Malformed> {
        let (header, symbol) = Header::parse(payload)?;
        if header.protected.span() > self.window {
            return Err(Malformed::Window);
        }
        if symbol.len() > self.symbol_size {
            return Err(Malformed::Length);
        }
        if self.paid(payload.len()) < 0 {
            self.credit = self.paid(payload.len());
            self.ignored += 1;
            return Ok(Vec::new());
        }
        let mut row = Vec::with_capacity(header.protected.count());
        self.code.coefficients(&header, &mut row)?;
        self.credit = self.paid(payload.len()) - PRICE_OF_COEFFICIENT * row.len() as i64;
        self.look_ahead_to(header.protected.last());
        if header.protected.first() < self.base {
            self.outdated += 1;
        } else if let Some(equation) = self.equation(&header, &row, symbol) {
            self.insert(equation);
        }
        Ok(self.recover())
    }

    /// Returns how many repair symbols were ignored, because the peer owed for those before.
    #[must_use]
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Returns how many source and repair symbols came too late: the decoder no longer looked back at the symbol that
    /// they are, or at one that they protect.
    #[must_use]
    pub fn outdated(&self) -> u64 {
        self.outdated
    }

    /// The symbols that were recovered and are still looked back at, in ranges, the newest first.
    #[must_use]
    pub fn acks(&self) -> Vec<RangeInclusive<Sid>> {
        let mut ranges: Vec<RangeInclusive<Sid>> = Vec::new();
        for sid in (self.base..self.base + self.symbols.len() as Sid).rev() {
            if !matches!(self.symbols[self.place(sid)], Known::Recovered(_)) {
                continue;
            }
            match ranges.last_mut() {
                Some(range) if *range.start() == sid + 1 => *range = sid..=*range.end(),
                _ => ranges.push(sid..=sid),
            }
        }
        ranges
    }

    /// The credit after so many bytes have arrived.
    fn paid(&self, bytes: usize) -> i64 {
        (self.credit + PAID_BY_BYTE * bytes as i64).min(CREDIT)
    }

    fn spend(&mut self, bytes: usize) {
        self.credit -= bytes as i64;
    }

    /// Returns the place of a symbol within the look-back.
    fn place(&self, sid: Sid) -> usize {
        let place = self.place_of_base + (sid - self.base) as usize;
        if place < self.symbols.len() { place } else { place - self.symbols.len() }
    }

    fn known(&self, sid: Sid) -> Option<&Bytes> {
        self.symbols[self.place(sid)].symbol()
    }

    /// Moves on until `sid` is looked back at.
    fn look_ahead_to(&mut self, sid: Sid) {
        let base = (sid + 1).saturating_sub(self.symbols.len() as Sid);
        if base <= self.base {
            return;
        }
        for old in self.base..base.min(self.base + self.symbols.len() as Sid) {
            let place = self.place(old);
            self.symbols[place] = Known::Not;
        }
        self.base = base;
        self.place_of_base = (base % self.symbols.len() as Sid) as usize;
        // No other equation has an unknown this old: its oldest one is its pivot.
        self.equations.retain(|equation| equation.pivot >= base);
    }

    /// Returns the equation of a repair symbol for the unknown symbols, reduced by the other equations; None if nothing
    /// is left of it.
    fn equation(&mut self, header: &Header, row: &[u8], symbol: &[u8]) -> Option<Equation> {
        let mut coefficients = [0; MAX_LOOK_BACK];
        let coefficients = &mut coefficients[..self.symbols.len()];
        let mut oldest = None;
        let mut terms: Vec<Term<'_, 1>> = Vec::with_capacity(1 + row.len() + 2 * self.equations.len());
        terms.push(Term { constants: [1], symbol });
        for (sid, factor) in header.protected.sids().zip(row).filter(|(_, factor)| **factor != 0) {
            let place = self.place(sid);
            match self.symbols[place].symbol() {
                Some(symbol) => terms.push(Term { constants: [*factor], symbol }),
                None => {
                    coefficients[place] = *factor;
                    oldest.get_or_insert(sid);
                }
            }
        }
        let oldest = oldest?;
        // No equation has another one's pivot, so none changes how often another one is to be added.
        let entangled = || self.equations.iter().filter(|other| coefficients[other.place_of_pivot] != 0);
        let mut spent: usize = terms[1..].iter().map(|term| term.symbol.len()).sum();
        let factor = |other: &Equation| [coefficients[other.place_of_pivot]];
        let rows = entangled().map(|other| Term { constants: factor(other), symbol: &other.coefficients });
        let sums = entangled().map(|other| Term { constants: factor(other), symbol: &other.sum });
        terms.extend(sums);
        let of_sum = terms.len();
        terms.extend(rows);
        spent += entangled().map(Equation::size).sum::<usize>();
        self.kernel.add_products([&mut *coefficients], &terms[of_sum..]);
        let equation = self.next_unknown(coefficients, oldest).map(|pivot| {
            let scale = field::inverse(coefficients[self.place(pivot)]);
            let terms = &mut terms[..of_sum];
            for Term { constants: [factor], .. } in &mut *terms {
                *factor = field::multiply(scale, *factor);
            }
            let mut sum = vec![0; terms.iter().map(|term| term.symbol.len()).max().unwrap_or(0)];
            self.kernel.add_products([&mut sum], terms);
            Equation::new(pivot, self.place(pivot), self.scaled(coefficients, scale), sum)
        });
        self.spend(spent);
        equation
    }

    fn next_unknown(&self, coefficients: &[u8], from: Sid) -> Option<Sid> {
        let end = self.base + self.symbols.len() as Sid;
        (from..end).find(|sid| coefficients[self.place(*sid)] != 0)
    }

    fn scaled(&self, vector: &[u8], scale: u8) -> Vec<u8> {
        let mut scaled = vec![0; vector.len()];
        self.kernel.multiply_add(&mut scaled, scale, vector);
        scaled
    }

    /// Adds an equation that has no other one's pivot.
    fn insert(&mut self, equation: Equation) {
        let (kernel, place) = (self.kernel, equation.place_of_pivot);
        let mut added = 0;
        let mut others =
            self.equations.iter_mut().filter(|other| other.coefficients[place] != 0).inspect(|_| added += 1);
        loop {
            match array::from_fn(|_| others.next()) {
                [Some(a), Some(b), Some(c), Some(d)] => equation.take_out_of([a, b, c, d], kernel),
                [Some(a), Some(b), Some(c), None] => break equation.take_out_of([a, b, c], kernel),
                [Some(a), Some(b), None, _] => break equation.take_out_of([a, b], kernel),
                [Some(a), None, ..] => break equation.take_out_of([a], kernel),
                [None, ..] => break,
            }
        }
        self.spend(added * equation.size());
        self.equations.push(equation);
    }

    /// Takes a symbol that is known from now on out of the equations.
    fn substitute(&mut self, sid: Sid, symbol: &[u8]) {
        let place = self.place(sid);
        let mut spent = 0;
        for equation in &mut self.equations {
            let factor = std::mem::take(&mut equation.coefficients[place]);
            if factor != 0 {
                self.kernel.multiply_add_padded(&mut equation.sum, factor, symbol);
                spent += symbol.len();
            }
        }
        self.spend(spent);
        if let Some(index) = self.equations.iter().position(|equation| equation.pivot == sid) {
            let Equation { coefficients, sum, .. } = self.equations.swap_remove(index);
            if let Some(pivot) = self.next_unknown(&coefficients, sid) {
                let scale = field::inverse(coefficients[self.place(pivot)]);
                let (coefficients, sum) = (self.scaled(&coefficients, scale), self.scaled(&sum, scale));
                self.insert(Equation::new(pivot, self.place(pivot), coefficients, sum));
            }
        }
    }

    /// Recovers the symbols that the equations determine.
    fn recover(&mut self) -> Vec<Recovered> {
        let mut recovered = Vec::new();
        let mut index = 0;
        while let Some(equation) = self.equations.get_mut(index) {
            if equation.has_one_unknown() {
                let Equation { pivot, sum, .. } = self.equations.swap_remove(index);
                let (place, symbol) = (self.place(pivot), Bytes::from(sum));
                self.symbols[place] = Known::Recovered(symbol.clone());
                recovered.push((pivot, symbol));
            } else {
                index += 1;
            }
        }
        recovered.sort_unstable_by_key(|(sid, _)| *sid);
        recovered
    }
}

#[cfg(any(test, fuzzing))]
impl Decoder {
    /// Panics unless all holds that the decoder relies on and promises.
    pub(crate) fn assert_sound(&self) {
        assert!(self.equations.len() <= 2 * self.window, "no more equations than symbols looked back at");
        // A symbol forms an equation, is taken out of all others, and one equation is inserted, which takes two passes.
        let step = self.window * self.symbol_size + 2 * self.window * (3 * self.symbol_size + 4 * self.window);
        let step = step as i64 + self.window as i64 * PRICE_OF_COEFFICIENT;
        assert!((-step..=CREDIT).contains(&self.credit), "a peer owes no more than its last symbol cost");
        assert!(self.symbols.iter().filter_map(Known::symbol).all(|symbol| symbol.len() <= self.symbol_size));
        for equation in &self.equations {
            let coefficient = |sid| equation.coefficients[self.place(sid)];
            let end = self.base + self.symbols.len() as Sid;
            assert!((self.base..end).contains(&equation.pivot), "nothing is kept of what is too old");
            assert!((self.base..equation.pivot).all(|sid| coefficient(sid) == 0), "the pivot is the oldest unknown");
            assert_eq!(coefficient(equation.pivot), 1);
            let others = self.equations.iter().filter(|other| other.pivot != equation.pivot);
            assert_eq!(others.count(), self.equations.len() - 1, "no two equations have the same pivot");
            let has_this_pivot = |other: &&Equation| other.coefficients[self.place(equation.pivot)] != 0;
            assert_eq!(self.equations.iter().filter(has_this_pivot).count(), 1, "no other equation has the pivot");
            assert!((self.base..end).all(|sid| coefficient(sid) == 0 || self.known(sid).is_none()));
            let unknown = equation.coefficients.iter().filter(|coefficient| **coefficient != 0).count();
            assert!(unknown > 1, "what is determined has been recovered");
            assert_eq!(equation.place_of_pivot, self.place(equation.pivot));
            assert!(equation.sum.len() <= self.symbol_size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Encoder, MAX_SPAN, SlidingWindow};

    const LONG: usize = 1400;

    fn payloads(encoder: &mut Encoder) -> Vec<Vec<u8>> {
        let context = Context::MORE_DATA;
        let mut payloads = Vec::new();
        while encoder.wants_repair(&context) {
            let mut payload = Vec::new();
            encoder.repair(&context, &mut payload);
            payloads.push(payload);
        }
        payloads
    }

    /// Long equations, and then repair symbols of one byte that have to be added to all of them.
    #[test]
    fn small_repair_symbols_against_long_equations_are_ignored_until_they_are_paid() {
        let window = SlidingWindow::constant(Code::RLC, 2, 1, MAX_SPAN).unwrap();
        let mut encoder = Encoder::new(Code::RLC, Box::new(window));
        encoder.set_window(MAX_SPAN);
        let mut decoder = Decoder::new(Code::RLC, MAX_SPAN, LONG);
        for sid in 0..3 * MAX_SPAN {
            encoder.protect(&[1; LONG]);
            for payload in payloads(&mut encoder) {
                if sid >= MAX_SPAN {
                    decoder.repair(&payload).unwrap();
                    assert!(decoder.credit > 0, "a whole packet pays for itself");
                }
            }
        }
        let mut spent = 0;
        for _ in 0..1000 {
            encoder.protect(&[1; LONG]);
            for mut payload in payloads(&mut encoder) {
                payload.truncate(12);
                let (before, ignored) = (decoder.equations.len(), decoder.ignored());
                let paid = decoder.paid(payload.len());
                decoder.repair(&payload).unwrap();
                spent += paid - decoder.credit;
                assert!(decoder.ignored() == ignored || decoder.equations.len() == before);
                decoder.assert_sound();
            }
        }
        assert!((500..1000).contains(&decoder.ignored()), "{} were ignored", decoder.ignored());
        let paid = CREDIT + 1000 * 12 * PAID_BY_BYTE;
        assert!(spent < 2 * paid, "{spent} bytes were added, {paid} were paid");

        // The credit of a few packets lets a small repair symbol recover again.
        let last = encoder.next_sid();
        for sid in last..last + 3 {
            decoder.source(sid, vec![1; LONG].into()).unwrap();
        }
        let alone = [&((last + 3) | (1 << 31)).to_be_bytes()[4..], &[1, 1, 0, 9, 15, 7]].concat();
        assert_eq!(decoder.repair(&alone).unwrap().len(), 1);
    }
}
