"""Little designs of downloads by noq-fec, as text."""

from typing import Any

import tomli_w

Arm = dict[str, Any]


def arm(label: str, scheme: str, *, baseline: bool = False, **options: object) -> Arm:
    variant = {"label": label, "implementation": "noq-fec", "options": {"scheme": scheme, **options}}
    return variant | ({"baseline": True} if baseline else {})


OFF = arm("off", "none", baseline=True)


def downloads(name: str, size_bytes: int, *arms: Arm, **keys: object) -> str:
    """Return a design of one download, with these keys besides. Its title is its name."""
    workload = {"name": "download", "size_bytes": size_bytes}
    return tomli_w.dumps({"name": name, "title": name, **keys, "workloads": [workload], "variants": arms})


def over_a_path(name: str, repetitions: int, size_bytes: int, topology: str = "field") -> str:
    """Return a design with FEC and without it."""
    keys = {"topology": topology, "repetitions": repetitions, "seed": 3, "timeout_s": 20}
    return downloads(name, size_bytes, OFF, arm("rlc", "rlc"), **keys)
