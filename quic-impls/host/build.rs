//! Compiles the lane, the link and its losses in virtual time, which all simulators share.

const WIRE: &str = "../../topologies/wire";
const LANE: &str = "../lane";
const DROPPER: &str = "../../dropper";
const OF_LANE: [&str; 2] = ["lane", "capture"];
const OF_LINK: [&str; 7] = ["direction", "written", "delay_line", "schedule", "jitter", "codel", "frame_pool"];
const OF_LOSSES: [&str; 2] = ["written_losses", "drop_list"];

fn main() {
    cc::Build::new()
        .std("c11")
        .define("_GNU_SOURCE", None)
        .warnings(true)
        .files(OF_LANE.map(|name| format!("{LANE}/{name}.c")))
        .files(OF_LINK.map(|name| format!("{WIRE}/{name}.c")))
        .files(OF_LOSSES.map(|name| format!("{DROPPER}/{name}.c")))
        .compile("fecbench_lane");
    for used in [WIRE, LANE] {
        println!("cargo::rerun-if-changed={used}");
    }
    for used in ["losses.h", "written_losses.h", "written_losses.c", "drop_list.h", "drop_list.c"] {
        println!("cargo::rerun-if-changed={DROPPER}/{used}");
    }
}
