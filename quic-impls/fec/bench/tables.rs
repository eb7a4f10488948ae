//! The rows of the thesis' Tables 4.1 to 4.10 and what a hostile peer can make a decoder do, with symbols of 1,000 bytes.
//!
//! Encoding counts all from the source symbols' arrival at the encoder to the repair payloads; decoding all from the first
//! symbol that arrives to the last that is recovered, with as many source symbols lost as the code can recover, a third of
//! the window in the case of RLC.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use fec::{
    Block, Code, Context, Controller, Decoder, Encoder, Kernel, MAX_HEADER, MAX_SPAN, SlidingWindow, reed_solomon,
};

const SYMBOL_SIZE: usize = 1000;
const MORE_DATA: Context = Context::MORE_DATA;
const END_OF_DATA: Context = Context::END_OF_DATA;
/// Few, so that a decoder and its symbols are still in the processor's cache when they are measured.
const BATCH: BatchSize = BatchSize::NumIterations(4);

const XOR_BLOCKS: [usize; 4] = [4, 8, 20, 40];
const RS_BLOCKS: [(usize, usize); 5] = [(5, 4), (6, 4), (13, 10), (20, 15), (50, 30)];
const RLC_WINDOWS: [usize; 4] = [4, 8, 20, 40];

/// Pseudorandom bytes, different for each symbol (xorshift64).
fn symbol(sid: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15 ^ (sid as u64 + 1);
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..SYMBOL_SIZE).map(next).collect()
}

/// An arrival at a decoder.
enum Arrival {
    Source(u64, Bytes),
    Repair(Vec<u8>),
}

/// A row of a table.
struct Row {
    name: String,
    code: Code,
    /// k, or the window.
    sources: usize,
    /// n − k, or how many are lost of the window.
    repairs: usize,
    kernel: Kernel,
    /// Whether the code's matrix is made anew for each block.
    anew: bool,
}

impl Row {
    fn prepare(&self) {
        if self.anew {
            black_box(reed_solomon::matrix(self.repairs, self.sources));
        }
    }

    fn symbols(&self) -> Vec<Bytes> {
        (0..self.sources).map(|sid| symbol(sid).into()).collect()
    }

    fn encoder(&self, controller: impl Controller + 'static) -> Encoder {
        let mut encoder = Encoder::new(self.code, Box::new(controller)).with_kernel(self.kernel);
        encoder.set_window(MAX_SPAN);
        encoder
    }

    fn block(&self) -> Encoder {
        self.encoder(Block::new(self.code, self.sources + self.repairs, self.sources, 1).expect("the thesis' block"))
    }

    fn bench_block(&self, criterion: &mut Criterion, suffix: &str) {
        let symbols = self.symbols();
        let mut encoder = self.block();
        let mut work = || {
            self.prepare();
            protect(&mut encoder, &symbols);
            repairs(&mut encoder, &MORE_DATA)
        };
        assert_eq!(work().len(), self.repairs, "{}", self.name);
        criterion.bench_function(&format!("{}-encode{suffix}", self.name), |bencher| bencher.iter(&mut work));

        let mut encoder = self.block();
        protect(&mut encoder, &symbols);
        self.bench_decode(criterion, &repairs(&mut encoder, &MORE_DATA), suffix);
    }

    /// Encoding is of one repair symbol, with the arrival of one source symbol.
    fn bench_window(&self, criterion: &mut Criterion) {
        let symbols = self.symbols();
        let constant = SlidingWindow::constant(self.code, 2, 1, self.sources).expect("the thesis' window");
        let mut encoder = self.encoder(constant);
        let mut next = symbols.iter().cycle();
        let mut work = || {
            encoder.protect(next.next().expect("a cycle has no end"));
            repairs(&mut encoder, &MORE_DATA)
        };
        (0..self.sources).for_each(|_| assert_eq!(work().len(), 1, "{}", self.name));
        criterion.bench_function(&format!("{}-encode", self.name), |bencher| bencher.iter(&mut work));

        let tail = SlidingWindow::tail(self.code, 2, 1, self.sources).expect("the thesis' window");
        let mut encoder = self.encoder(tail);
        protect(&mut encoder, &symbols);
        self.bench_decode(criterion, &repairs(&mut encoder, &END_OF_DATA)[..self.repairs], "");
    }

    /// The first source symbols are lost, as many as there are repair symbols.
    fn bench_decode(&self, criterion: &mut Criterion, payloads: &[Vec<u8>], suffix: &str) {
        let symbols = self.symbols();
        let lost = payloads.len().min(self.sources);
        // As the peer's, they are the same symbols each time.
        let sources = (lost..self.sources).map(|sid| Arrival::Source(sid as u64, symbols[sid].clone()));
        let arrivals: Vec<_> = sources.chain(payloads.iter().cloned().map(Arrival::Repair)).collect();
        let fresh = || Decoder::new(self.code, self.sources, SYMBOL_SIZE).with_kernel(self.kernel);
        let work = |mut decoder: Decoder| {
            self.prepare();
            let recovered: usize = arrivals.iter().map(|arrival| arrival.recovered(&mut decoder)).sum();
            assert_eq!(recovered, lost, "{}", self.name);
            decoder
        };
        criterion.bench_function(&format!("{}-decode{suffix}", self.name), |bencher| {
            bencher.iter_batched(fresh, work, BATCH);
        });
    }
}

impl Arrival {
    /// Returns how many symbols the decoder recovers as this arrives.
    fn recovered(&self, decoder: &mut Decoder) -> usize {
        match self {
            Arrival::Source(sid, symbol) => decoder.source(*sid, symbol.clone()),
            Arrival::Repair(payload) => decoder.repair(payload),
        }
        .expect("a decoder takes what an encoder sends")
        .len()
    }
}

fn protect(encoder: &mut Encoder, symbols: &[Bytes]) {
    for symbol in symbols {
        encoder.protect(symbol);
    }
}

fn repairs(encoder: &mut Encoder, context: &Context) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    while encoder.wants_repair(context) {
        let mut payload = Vec::with_capacity(MAX_HEADER + SYMBOL_SIZE);
        encoder.repair(context, &mut payload);
        payloads.push(payload);
    }
    payloads
}

fn tables(criterion: &mut Criterion) {
    let fastest = Kernel::fastest();
    for length in RLC_WINDOWS {
        let (name, sources, repairs) = (format!("rlc-3-2-{length}"), length, length / 3);
        Row { name, code: Code::RLC, sources, repairs, kernel: fastest, anew: false }.bench_window(criterion);
    }
    for k in XOR_BLOCKS {
        for (kernel, suffix) in [(fastest, ""), (Kernel::PORTABLE, "-portable")] {
            let name = format!("xor-{}-{k}", k + 1);
            Row { name, code: Code::Xor, sources: k, repairs: 1, kernel, anew: false }.bench_block(criterion, suffix);
        }
    }
    for (n, k) in RS_BLOCKS {
        for (anew, suffix) in [(false, ""), (true, "-uncached")] {
            let (name, code) = (format!("rs-{n}-{k}"), Code::ReedSolomon);
            Row { name, code, sources: k, repairs: n - k, kernel: fastest, anew }.bench_block(criterion, suffix);
        }
    }
}

/// Returns the arrivals that make a decoder work as much as they can: repair symbols over the widest window, one SID
/// further each, with no source symbol among them. The decoder then holds as many equations as it ever does, all
/// entangled.
fn hostile() -> Vec<Arrival> {
    let window = SlidingWindow::constant(Code::RLC, 3, 1, MAX_SPAN).expect("the widest window");
    let mut encoder = Encoder::new(Code::RLC, Box::new(window));
    encoder.set_window(MAX_SPAN);
    let mut arrivals = Vec::new();
    for sid in 0..3 * MAX_SPAN {
        encoder.protect(&symbol(sid));
        let payloads = repairs(&mut encoder, &MORE_DATA);
        if sid >= MAX_SPAN {
            arrivals.extend(payloads.into_iter().map(Arrival::Repair));
        }
    }
    arrivals
}

/// The decoder before the step that took it longest, and that step.
fn before_worst_step(mut decoder: Decoder, arrivals: Vec<Arrival>) -> (Decoder, Arrival) {
    // Other programs on the machine can only add to a step's time.
    let mut least = vec![Duration::MAX; arrivals.len()];
    for _ in 0..5 {
        let mut decoder = decoder.clone();
        for (least, arrival) in least.iter_mut().zip(&arrivals) {
            let begin = Instant::now();
            black_box(arrival.recovered(&mut decoder));
            *least = begin.elapsed().min(*least);
        }
    }
    let worst = (0..least.len()).max_by_key(|step| least[*step]).expect("something arrives");
    let mut arrivals = arrivals.into_iter();
    for arrival in arrivals.by_ref().take(worst) {
        arrival.recovered(&mut decoder);
    }
    (decoder, arrivals.next().expect("the worst step"))
}

fn worst(criterion: &mut Criterion) {
    for (kernel, suffix) in [(Kernel::fastest(), ""), (Kernel::PORTABLE, "-portable")] {
        let fresh = Decoder::new(Code::RLC, MAX_SPAN, SYMBOL_SIZE).with_kernel(kernel);
        let (decoder, arrival) = before_worst_step(fresh, hostile());
        let work = |mut decoder: Decoder| {
            black_box(arrival.recovered(&mut decoder));
            decoder
        };
        criterion.bench_function(&format!("worst-step{suffix}"), |bencher| {
            bencher.iter_batched(|| decoder.clone(), work, BatchSize::PerIteration);
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500));
    targets = tables, worst
}
criterion_main!(benches);
