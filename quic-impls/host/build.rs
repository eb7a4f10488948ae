//! Compiles the lane, the link and its losses in virtual time, which all simulators share.

use std::fs;

/// Links to the lane's sources and to all their headers, which Go has to have in its package.
const LANE: &str = "../rquic/internal/lane";

fn main() {
    let mut sources = Vec::new();
    for entry in fs::read_dir(LANE).expect("the lane's sources are beside this crate") {
        // Not the links: a source finds its headers beside itself.
        let path = fs::canonicalize(entry.expect("a folder that can be read").path()).expect("a link to a file");
        if path.extension().is_some_and(|suffix| suffix == "c" || suffix == "h") {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        if path.extension().is_some_and(|suffix| suffix == "c") {
            sources.push(path);
        }
    }
    sources.sort();
    println!("cargo::rerun-if-changed={LANE}");
    cc::Build::new().std("c11").define("_GNU_SOURCE", None).warnings(true).files(sources).compile("fecbench_lane");
}
