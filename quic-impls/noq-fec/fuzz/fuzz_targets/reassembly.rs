#![no_main]

#[path = "../../tests/world/mod.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|script: &[u8]| {
    world::reassembly::recovered_as_received(script);
});
