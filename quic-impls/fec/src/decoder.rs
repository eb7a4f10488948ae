//! The receiver's side: solves, as they come, the linear equations that repair symbols are.

use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::code::Code;
use crate::field;
use crate::kernel::Kernel;
use crate::repair::{Header, MAX_SPAN, Malformed, SID_LIMIT, Sid};

/// A source symbol that was recovered, padded with zeros on the right if it was shorter than others.
pub type Recovered = (Sid, Bytes);

/// Takes source and repair symbols in any order, and recovers the source symbols that they determine.
///
/// It looks back over twice its window of source symbols, so that what was reordered or held up still counts. Its
/// equations are kept in reduced row echelon form, the oldest unknown symbol of each in no other one. So each symbol
/// received costs at most two passes over the equations, a symbol is recovered as soon as that is possible at all, and a
/// symbol that leaves the window takes no more than one equation with it.
#[derive(Clone, Debug)]
pub struct Decoder {
    code: Code,
    kernel: Kernel,
    window: usize,
    symbol_size: usize,
    /// The oldest symbol that is looked back at.
    base: Sid,
    /// The symbol of each SID from `base` on, at SID modulo twice the window.
    symbols: Vec<Known>,
    equations: Vec<Equation>,
}

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
    /// By SID modulo their number.
    coefficients: Vec<u8>,
    sum: Vec<u8>,
}

impl Equation {
    fn add(&mut self, kernel: Kernel, factor: u8, other: &Equation) {
        kernel.multiply_add(&mut self.coefficients, factor, &other.coefficients);
        kernel.multiply_add_padded(&mut self.sum, factor, &other.sum);
    }

    fn scale(&mut self, kernel: Kernel, factor: u8) {
        // factor · x = x + (factor − 1) · x
        for vector in [&mut self.coefficients, &mut self.sum] {
            let unscaled = vector.clone();
            kernel.multiply_add(vector, factor ^ 1, &unscaled);
        }
    }

    fn has_one_unknown(&self) -> bool {
        self.coefficients.iter().filter(|coefficient| **coefficient != 0).count() == 1
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
        Decoder { code, kernel: Kernel::fastest(), window, symbol_size, base: 0, symbols, equations: Vec::new() }
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

    /// Takes a source symbol, and yields what can be recovered with it. One that is known already, or too old, changes
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
        self.look_ahead_to(sid);
        if sid < self.base || self.known(sid).is_some() {
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
        let coefficients = self.code.coefficients(&header)?;
        self.look_ahead_to(header.protected.last());
        if let Some(equation) = self.equation(&header, &coefficients, symbol) {
            self.insert(equation);
        }
        Ok(self.recover())
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

    fn place(&self, sid: Sid) -> usize {
        (sid % self.symbols.len() as Sid) as usize
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
        // No other equation has an unknown this old: its oldest one is its pivot.
        self.equations.retain(|equation| equation.pivot >= base);
    }

    /// What a repair symbol says of the symbols that are not known; nothing if it says nothing, or is about symbols too
    /// old.
    fn equation(&self, header: &Header, of_protected: &[u8], symbol: &[u8]) -> Option<Equation> {
        if header.protected.first() < self.base {
            return None;
        }
        let mut coefficients = vec![0; self.symbols.len()];
        let mut pivot = None;
        let terms = || header.protected.sids().zip(of_protected.iter().copied()).filter(|(_, factor)| *factor != 0);
        for (sid, factor) in terms().filter(|(sid, _)| self.known(*sid).is_none()) {
            coefficients[self.place(sid)] = factor;
            pivot.get_or_insert(sid);
        }
        let mut equation = Equation { pivot: pivot?, coefficients, sum: symbol.to_vec() };
        for (sid, factor) in terms() {
            if let Some(symbol) = self.known(sid) {
                self.kernel.multiply_add_padded(&mut equation.sum, factor, symbol);
            }
        }
        Some(equation)
    }

    /// Adds an equation, unless it follows from the others.
    fn insert(&mut self, mut equation: Equation) {
        for other in &self.equations {
            let factor = equation.coefficients[self.place(other.pivot)];
            if factor != 0 {
                equation.add(self.kernel, factor, other);
            }
        }
        let end = self.base + self.symbols.len() as Sid;
        let is_unknown = |sid: &Sid| equation.coefficients[self.place(*sid)] != 0;
        let Some(pivot) = (equation.pivot..end).find(is_unknown) else { return };
        let place = self.place(pivot);
        equation.pivot = pivot;
        equation.scale(self.kernel, field::inverse(equation.coefficients[place]));
        for other in &mut self.equations {
            let factor = other.coefficients[place];
            if factor != 0 {
                other.add(self.kernel, factor, &equation);
            }
        }
        self.equations.push(equation);
    }

    /// Takes a symbol that is known from now on out of the equations.
    fn substitute(&mut self, sid: Sid, symbol: &[u8]) {
        let place = self.place(sid);
        for equation in &mut self.equations {
            let factor = std::mem::take(&mut equation.coefficients[place]);
            if factor != 0 {
                self.kernel.multiply_add_padded(&mut equation.sum, factor, symbol);
            }
        }
        if let Some(index) = self.equations.iter().position(|equation| equation.pivot == sid) {
            let equation = self.equations.swap_remove(index);
            self.insert(equation);
        }
    }

    /// What the equations determine.
    fn recover(&mut self) -> Vec<Recovered> {
        let mut recovered = Vec::new();
        let mut index = 0;
        while let Some(equation) = self.equations.get(index) {
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

#[cfg(test)]
impl Decoder {
    /// Panics unless all holds that the decoder relies on and promises.
    pub(crate) fn assert_sound(&self) {
        assert!(self.equations.len() <= 2 * self.window, "no more equations than symbols looked back at");
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
            assert!(!equation.has_one_unknown(), "what is determined has been recovered");
            assert!(equation.sum.len() <= self.symbol_size);
        }
    }
}
