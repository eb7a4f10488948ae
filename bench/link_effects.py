"""ns per frame of one direction of the link by itself: without any effect, and with each one. No packets are
sent: what the kernel and the system calls of the wire take is in link_cost.py."""

import subprocess
import tempfile
from pathlib import Path

from bench.table import Row, print_table
from fecbench.checkout import REPOSITORY
from fecbench.topologies.link import DirectionSettings, LinkSettings, Queue
from fecbench.topologies.written import written

ROUNDS = 7
FRAMES = 500_000
MOST_NS = 1000
"""An effect adds at most so much to a frame."""
HERE = Path(__file__).parent
WIRE = REPOSITORY / "topologies" / "wire"
SOURCES = ("direction", "written", "delay_line", "schedule", "jitter", "codel", "frame_pool")
MARKING: tuple[Queue, ...] = ("codel", "pie", "fq_codel", "dualpi2")


def cases() -> dict[str, DirectionSettings]:
    """Return a direction with each effect, and one without."""
    rate, delay, queue = 100, 20, 1000

    def direction(**effects: object) -> DirectionSettings:
        return DirectionSettings(rate, delay, queue_packets=queue, **effects)  # type: ignore[arg-type]

    return {
        "no effect": direction(),
        "duplicate = 0.01": direction(duplicate=0.01),
        "corrupt.p = 0.01": direction(corrupt_p=0.01),
        "reorder.p = 0.01": direction(reorder_p=0.01, reorder_by_packets=3),
        "mtu_bytes = 1300": direction(mtu_bytes=1300),
        "mtu_bytes = 1200, mtu.icmp, all too long": direction(mtu_bytes=1200, mtu_icmp=True),
        "policer_mbps = 200": direction(policer_mbps=200),
        "shaper_burst_bytes = 20000": direction(shaper_burst_bytes=20_000),
        "ecn_threshold_ms = 1": direction(ecn=True, ecn_threshold_ms=1),
        **{f'queue = "{queue}", ecn': direction(queue=queue, ecn=True) for queue in MARKING},
    }


def run() -> list[str]:
    """Print the table; a line for each effect that adds more than MOST_NS."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "link_effects"
        sources = [str(HERE / "link_effects.c"), *(str(WIRE / f"{name}.c") for name in SOURCES)]
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", program, *sources, "-lm"], check=True)
        texts = {name: written(LinkSettings(own, own), "up") for name, own in cases().items()}
        rounds = [{name: _measured(program, text) for name, text in texts.items()} for _ in range(ROUNDS)]
    rows = [Row(name, [measured[name] for measured in rounds]) for name in texts]
    print_table(f"one direction of a link, {FRAMES:,} frames, {ROUNDS} rounds", "ns/frame", rows)
    most_ns = rows[0].median + MOST_NS
    return [
        f"link: {row.name} takes {row.median:.0f} ns a frame, bound {most_ns:.0f}"
        for row in rows
        if row.median > most_ns
    ]


def _measured(program: Path, text: str) -> float:
    command = [str(program), text, str(FRAMES)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
