"""The emulator's managed queues beside those of the kernel: as many packets are marked or dropped.

The same packets, at twice the rate, come to a qdisc behind the kernel's token bucket, and at the same
times to the link's core. The kernel's PIE draws by itself, and a guest's timers are not exact, so counts are
alike and not equal.
"""

import ctypes
import json
import socket
import subprocess
import time

import pytest

from fecbench.topologies.namespace import run_in_new, run_tool
from tests.topologies.test_link_core import CODEL, DUALPI2, FQ_CODEL, MS, PIE, Lane, core, run

__all__ = ["core"]

RATE_BPS, FRAME_BYTES, LOAD, LASTS_S = 1_000_000, 1000, 2, 8
GAP_NS = round(FRAME_BYTES * 8 * 10**9 / RATE_BPS / LOAD)
PACKETS = LASTS_S * 10**9 // GAP_NS
NOT_CAPABLE, ECT_1, ECT_0 = range(3)
ALIKE = 0.2
SO_SNDBUFFORCE = 32
QDISCS = {"codel": CODEL, "pie": PIE, "fq_codel": FQ_CODEL, "dualpi2": DUALPI2}
LINKS = [
    "link add v0 address 02:00:00:00:00:0a type veth peer name v1 address 02:00:00:00:00:0b",
    "link set v0 up",
    "link set v1 up",
    "address add 10.8.0.1/24 dev v0",
    "neighbour add 10.8.0.2 lladdr 02:00:00:00:00:0b dev v0 nud permanent",
]


class Missing(Exception):
    """The kernel, or its tc, has no such qdisc."""


def by_kernel(qdisc: str, codepoint: int, target_ms: int) -> tuple[int, int, list[int]]:
    """Return the number of marked packets, that of dropped ones, and when each was sent. Raises Missing."""
    run_tool(["ip", "-batch", "-"], LINKS)
    bucket = f"tc qdisc add dev v0 root handle 1: tbf rate {RATE_BPS}bit burst 2000 limit 10000000"
    run_tool(bucket.split())
    ecn = [] if qdisc == "dualpi2" else ["ecn"]
    target = ["target", f"{target_ms}ms"] if target_ms else []
    added = subprocess.run(
        [*f"tc qdisc add dev v0 parent 1:1 handle 2: {qdisc} limit 10000".split(), *target, *ecn],
        capture_output=True,
        text=True,
    )
    if added.returncode:
        raise Missing(added.stderr.strip().splitlines()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, codepoint)
        # A queue that drops nothing grows, and holds the sender's memory.
        sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 64 << 20)
        begun_ns, times_ns = time.monotonic_ns(), []
        for n in range(PACKETS):
            time.sleep(max(0, begun_ns + n * GAP_NS - time.monotonic_ns()) / 1e9)
            times_ns.append(time.monotonic_ns() - begun_ns)
            sender.sendto(bytes(FRAME_BYTES - 42), ("10.8.0.2", 9))
        output = subprocess.run(
            ["tc", "-s", "-j", "qdisc", "show", "dev", "v0"], check=True, capture_output=True, text=True
        )
    (statistics,) = (own for own in json.loads(output.stdout) if own["kind"] == qdisc)
    return statistics.get("ecn_mark", 0), statistics["drops"], times_ns


@pytest.mark.parametrize("codepoint", [NOT_CAPABLE, ECT_0], ids=["drops", "marks"])
@pytest.mark.parametrize(
    ("qdisc", "target_ms"),
    [*((qdisc, 0) for qdisc in QDISCS), ("codel", 100), ("fq_codel", 100)],
)
def test_the_kernel_s_queue_marks_and_drops_as_many(
    core: ctypes.CDLL, qdisc: str, target_ms: int, codepoint: int
) -> None:
    try:
        marked, dropped, arrivals = run_in_new(lambda: by_kernel(qdisc, codepoint, target_ms))
    except Missing as missing:
        pytest.skip(f"no qdisc {qdisc}: {missing}")
    lane = Lane(
        RATE_BPS,
        queue_packets=10_000,
        queue=QDISCS[qdisc],
        ecn=True,
        pie_seed=7,
        codel_target_ns=target_ms * MS,
    )
    outcome = run(
        core, lane, arrivals, [FRAME_BYTES] * PACKETS, end_ns=arrivals[-1], codepoints=[codepoint] * PACKETS
    ).outcome
    print(
        f"{qdisc}, {arrivals[-1] / 1e9:.1f} s: the kernel marked {marked} and dropped {dropped},"
        f" the link {outcome.marked} and {outcome.queue_dropped}"
    )
    assert marked + dropped == pytest.approx(outcome.marked + outcome.queue_dropped, rel=ALIKE)
    assert (marked > dropped) == (outcome.marked > outcome.queue_dropped)
