"""The C files of a lane: those that Go's package links, since Go builds anew only when a file of the package
has changed. Rust's `build.rs` takes them from there, too, so that a new one is named nowhere else."""

from fecbench.checkout import REPOSITORY

_PACKAGE = REPOSITORY / "quic-impls" / "rquic" / "internal" / "lane"
LANE_SOURCES = sorted(path.resolve() for path in _PACKAGE.glob("*.c"))
LINK_SOURCES = [path for path in LANE_SOURCES if path.parent.name == "wire"]
