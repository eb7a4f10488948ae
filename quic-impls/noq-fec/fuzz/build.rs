//! The folder that tests have for what they write.

fn main() {
    println!("cargo::rustc-env=CARGO_TARGET_TMPDIR={}", std::env::var("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=build.rs");
}
