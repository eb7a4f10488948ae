"""Little designs as text: what a test says of one, and else what is usual."""

from typing import Any

import tomli_w

Table = dict[str, Any]


def variant(
    label: str, implementation: str = "noq-fec", *, baseline: bool = False, **options: object
) -> Table:
    """Return a variant with these options."""
    usual: Table = {"label": label, "implementation": implementation}
    return usual | ({"options": options} if options else {}) | ({"baseline": True} if baseline else {})


def workload(name: str = "download", **parameters: object) -> Table:
    """Return a workload with these parameters."""
    return {"name": name, **parameters}


def one_of(*values: object) -> Table:
    """Return a factor that has each of these values."""
    return {"choices": list(values)}


def between(least: float, most: float, **more: object) -> Table:
    """Return a factor that has any value of a range."""
    return {"min": least, "max": most, **more}


def text_of(name: str, **keys: object) -> str:
    """Return a design with these keys, else with one repetition over a single path. Its title is its name."""
    usual = {"name": name, "title": name, "seed": 3, "topology": "single-path", "repetitions": 1}
    return tomli_w.dumps(usual | keys)


OFF = variant("off", scheme="none", baseline=True)
RLC = variant("rlc", scheme="rlc")


def downloads(name: str, size_bytes: int, *variants: Table, **keys: object) -> str:
    """Return a design of one download, with these keys besides."""
    return text_of(name, **keys, workloads=[workload(size_bytes=size_bytes)], variants=variants)


def over_a_path(name: str, repetitions: int, size_bytes: int, topology: str = "field") -> str:
    """Return a design with FEC and without it."""
    keys = {"topology": topology, "repetitions": repetitions, "timeout_s": 20}
    return downloads(name, size_bytes, OFF, RLC, **keys)


LITTLE: Table = {
    "name": "little",
    "title": "A little campaign",
    "seed": 5,
    "topology": "single-path",
    "repetitions": 2,
    "timeout_s": 30,
    "plan": {"method": "wsp", "points": 3},
    "factors": {"bandwidth_mbps": between(5, 20), "loss.p": between(0.05, 0.1)},
    "constants": {"owd_ms": 5, "loss.model": "uniform"},
    "workloads": [workload(size_bytes=20_000)],
    "variants": [
        variant("off", "rquic", scheme="none", baseline=True),
        variant("xor, 4/5", "rquic", scheme="xor", code_rate=0.8),
    ],
}
"""Three points, two repetitions, one workload, the variants `off` and `xor, 4/5`."""
