#![no_main]

libfuzzer_sys::fuzz_target!(|script: &[u8]| fec::fuzz::round_trip(script));
