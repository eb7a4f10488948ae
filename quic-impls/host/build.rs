//! Compiles the lane, the link and its losses in virtual time, which all simulators share.

const WIRE: &str = "../../topologies/wire";
const LANE: &str = "../lane";
const LOSSES: &str = "../../dropper/losses.h";

fn main() {
    cc::Build::new()
        .std("c11")
        .define("_GNU_SOURCE", None)
        .warnings(true)
        .file(format!("{LANE}/lane.c"))
        .file(format!("{LANE}/capture.c"))
        .file(format!("{WIRE}/direction.c"))
        .file(format!("{WIRE}/delay_line.c"))
        .file(format!("{WIRE}/schedule.c"))
        .file(format!("{WIRE}/jitter.c"))
        .file(format!("{WIRE}/codel.c"))
        .file(format!("{WIRE}/frame_pool.c"))
        .compile("fecbench_lane");
    for used in [WIRE, LANE, LOSSES] {
        println!("cargo::rerun-if-changed={used}");
    }
}
