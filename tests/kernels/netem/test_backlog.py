"""Frames that the kernel discards since too many wait for a CPU are counted with the interface they came to.

How many may wait is a setting of the whole kernel, so this runs where the kernel is the test's own.
"""

import socket
import threading
import time
from pathlib import Path

import pytest

from fecbench.topologies.counters import backlog_drops, discarded
from fecbench.topologies.namespace import run_in_new, run_tool

MOST_WAITING = Path("/proc/sys/net/core/netdev_max_backlog")
FRAMES = 50

pytestmark = pytest.mark.skipif(
    "User Mode Linux" not in Path("/proc/cpuinfo").read_text(),
    reason="this kernel is not the test's own: make test-netem",
)


def test_frames_that_find_a_full_backlog_are_counted_with_their_place() -> None:
    before, usual = backlog_drops(), MOST_WAITING.read_text()
    MOST_WAITING.write_text("1")
    try:
        lost = run_in_new(send_at_once)
    finally:
        MOST_WAITING.write_text(usual)
    assert lost["v1: receive drops"] > FRAMES / 2
    assert backlog_drops() - before == lost["v1: receive drops"]


def send_at_once() -> dict[str, int]:
    """Return the discarded frames of those that netem holds back and then releases all together."""
    commands = [
        "link add v0 address 02:00:00:00:00:0a type veth peer name v1 address 02:00:00:00:00:0b",
        "link set v0 up",
        "link set v1 up",
        "address add 10.8.0.1/24 dev v0",
        "neighbour add 10.8.0.2 lladdr 02:00:00:00:00:0b dev v0 nud permanent",
    ]
    run_tool(["ip", "-batch", "-"], commands)
    run_tool(["tc", "qdisc", "add", "dev", "v0", "root", "netem", "slot", "300ms", "300ms"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(FRAMES):
            sender.sendto(bytes(100), ("10.8.0.2", 9))
    time.sleep(1)  # until the next slot has begun
    return dict(discarded(threading.get_native_id()))
