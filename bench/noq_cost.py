"""Costs of noq-fec's FEC: downloads over plain loopback (`loopback.py`), beside other stacks.

None of these endpoints uses segmentation offload. An arm costs a per cent more or less than another, so the
arms take turns, and each is divided by FEC off of the same round.
"""

from collections.abc import Mapping, Sequence
from statistics import median

from bench.loopback import Download, download
from bench.table import Row, print_table

ROUNDS = 12
SIZE_BYTES = 50_000_000
OFF, NULL, SAFE = "noq-fec, FEC off", "noq-fec, announced and never used", "noq-fec, safe"
ARMS: Mapping[str, tuple[str, dict[str, object]]] = {
    OFF: ("noq-fec", {"scheme": "none"}),
    NULL: ("noq-fec", {"controller": "null"}),
    SAFE: ("noq-fec", {}),
    "noq-fec, RLC (3, 2, 20), tail": ("noq-fec", {"controller": "tail"}),
    "noq-fec, RLC (21, 20, 20)": ("noq-fec", {"controller": "constant", "n": 21, "k": 20, "window": 20}),
    "quinn": ("quinn", {}),
    "quic-go": ("rquic", {"scheme": "plain"}),
}
BOUND = 1.01
"""CPU time of FEC that has nothing to repair, over FEC off."""


def run() -> list[str]:
    """Print a table of throughput and one of CPU time; return the bounds that were missed."""
    names = list(ARMS)
    downloads: dict[str, list[Download]] = {name: [] for name in names}
    for turn in range(ROUNDS):
        for name in names if turn % 2 == 0 else reversed(names):
            implementation, options = ARMS[name]
            downloads[name].append(download(implementation, options, SIZE_BYTES))
    costs = {name: [one.cpu_us for one in of_arm] for name, of_arm in downloads.items()}
    what = f"download of {SIZE_BYTES / 1e6:g} MB over loopback, {ROUNDS} rounds"
    print_table(what, "Mbit/s", [Row(name, [one.mbps for one in downloads[name]]) for name in names])
    print_table(what, "µs of CPU/packet", [Row(name, costs[name]) for name in names])
    for name in names[1:]:
        print(f"{name}: {paired(costs[name], costs[OFF]):.3f} of the CPU time of FEC off, by rounds")
    return missed(costs)


def paired(costs: Sequence[float], off: Sequence[float]) -> float:
    """The median over rounds of the ratio to FEC off in the same round."""
    return median(cost / base for cost, base in zip(costs, off, strict=True))


def missed(costs: Mapping[str, Sequence[float]]) -> list[str]:
    """Return a line for each arm that has nothing to repair and costs more than the bound."""
    ratios = {name: paired(costs[name], costs[OFF]) for name in (NULL, SAFE)}
    return [
        f"{name}: {ratio:.3f} of the CPU time of FEC off: the bound is {BOUND}"
        for name, ratio in ratios.items()
        if ratio > BOUND
    ]
