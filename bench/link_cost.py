"""CPU per packet of the emulated link, next to the kernel's TBF and to no shaper at all: the same traffic.

TBF has no process of its own. Packets come below the rate, and its burst is so large that it passes each on
at once: in the time of the thread that sends, as veth does all of its work. The wire is woken by that thread
and does the rest in its own process. So the cost of a way is the CPU time of the sender and, if there is one,
of the wire; both are exact, and other programs on the machine do not count. The interrupt of the
timer by which the wire wakes is not included.

Without a delay, the wire wakes when a packet comes and again when it is due. With one, it reads packets when
others are due, and wakes once a packet. The last row is a thread that only sleeps and wakes: no program is in
time for each packet with less.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.table import Row, print_table
from fecbench.topologies.carrier import ensure_carrier
from fecbench.topologies.link import LinkEnd, LinkSettings
from fecbench.topologies.namespace import run_in_new, run_inside, run_tool
from fecbench.topologies.programs import WIRE
from fecbench.topologies.sysctls import QUIET_SYSCTLS, write_sysctls
from fecbench.topologies.wire_link import wire_arguments

ROUNDS = 7
SECONDS = 1.0
RATES_MBPS = (10, 100)
LOAD = 0.9  # of the rate: the link has work with every packet and drops none
PAYLOAD_BYTES, FRAME_BYTES = 1200, 1242
BURST_BYTES = 64_000
OWD_MS = 20
FIFO_PRIORITY = 40
"""Priority above everything else, below the link."""
PORT = 7000
SIDES = ("near", "far")
ADDRESSES = {"near": "10.83.1.1", "far": "10.83.1.2"}
MACS = {"near": "02:00:00:00:83:01", "far": "02:00:00:00:83:02"}


@dataclass(frozen=True)
class Way:
    """A path from one namespace to another: a socket that sends along it, and the process that carries
    packets."""

    sender: socket.socket
    process: int | None


def run() -> None:
    """Print a table for each rate."""
    delayed = f"wire, {OWD_MS} ms"
    for rate_mbps in RATES_MBPS:
        settings = LinkSettings.symmetric(bandwidth_mbps=rate_mbps, owd_ms=0, queue_bytes=1_000_000)
        with ExitStack() as stack:
            ways = {
                "veth": stack.enter_context(_veth([])),
                "veth with TBF": stack.enter_context(_veth([_tbf(settings)])),
                "wire": stack.enter_context(_wire(settings)),
                delayed: stack.enter_context(_wire(_delayed(rate_mbps))),
            }
            rounds = [
                {name: _measured(way, rate_mbps) for name, way in ways.items()} | {"sleep": _slept(rate_mbps)}
                for _ in range(ROUNDS)
            ]
        rows = [Row(name, [sum(costs[name]) for costs in rounds]) for name in ways]
        for name in ("wire", delayed):
            rows.append(Row(f"the process of {name}", [costs[name][1] for costs in rounds]))
        rows.append(Row("a sleep", [costs["sleep"][0] for costs in rounds]))
        what = f"link of {rate_mbps} Mbit/s at {LOAD:.0%} load, frames of {FRAME_BYTES} bytes"
        print_table(f"{what}, {ROUNDS} rounds of {SECONDS:g} s", "µs of CPU/packet", rows)


def _delayed(rate_mbps: float) -> LinkSettings:
    return LinkSettings.symmetric(bandwidth_mbps=rate_mbps, owd_ms=OWD_MS, queue_bytes=1_000_000)


def _tbf(settings: LinkSettings) -> str:
    return f"qdisc add dev near root tbf rate {settings.up.rate_bps}bit burst {BURST_BYTES} limit 1000000"


def _measured(way: Way, rate_mbps: float) -> tuple[float, float]:
    """The CPU time of the sender and of the link's process, in µs per packet."""
    process_s, sender_s = _process_s(way.process), time.thread_time()
    packets = _send(way.sender, rate_mbps)
    sender_s, process_s = time.thread_time() - sender_s, _process_s(way.process) - process_s
    return sender_s / packets * 1e6, process_s / packets * 1e6


def _slept(rate_mbps: float) -> tuple[float, float]:
    """The CPU time of a thread of the real-time class that sleeps as often as packets come, in µs a sleep."""
    interval_s = FRAME_BYTES * 8 / (rate_mbps * 1e6 * LOAD)
    sleeps = round(SECONDS / interval_s)
    with real_time():
        begun_s = time.thread_time()
        for _ in range(sleeps):
            time.sleep(interval_s)
        return (time.thread_time() - begun_s) / sleeps * 1e6, 0.0


def _send(sender: socket.socket, rate_mbps: float) -> int:
    """Send packets at equal distances for SECONDS; how many they were."""
    interval_s = FRAME_BYTES * 8 / (rate_mbps * 1e6 * LOAD)
    packets = round(SECONDS / interval_s)
    payload = bytes(PAYLOAD_BYTES)
    begun = time.monotonic()
    for n in range(packets):
        time.sleep(max(0.0, begun + n * interval_s - time.monotonic()))
        sender.send(payload)
    return packets


def _process_s(process: int | None) -> float:
    """The time that all threads of a process have run, in seconds."""
    if process is None:
        return 0.0
    threads = Path(f"/proc/{process}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


@contextmanager
def _veth(queue: list[str]) -> Iterator[Way]:
    """A veth pair, with these tc commands at its near end."""
    with two_namespaces() as namespaces:
        pair = "link add near type veth peer name far"
        into_far = f"link set far netns {namespaces['far']}"
        _ip(namespaces["near"], [pair, into_far])
        configure(namespaces)
        if queue:
            run_inside(namespaces["near"], partial(run_tool, ["tc", "-batch", "-"], queue))
        with sockets(namespaces) as sender:
            yield Way(sender, None)


@contextmanager
def _wire(settings: LinkSettings) -> Iterator[Way]:
    with two_namespaces() as namespaces:
        near, far = (LinkEnd(namespaces[side], side) for side in SIDES)
        command = [str(WIRE), *wire_arguments(near, far, settings, late_bound_us=1000)]
        # It ends with its standard input.
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin and process.stdout
            process.stdout.readline()  # that it is ready
            configure(namespaces)
            with sockets(namespaces) as sender:
                yield Way(sender, process.pid)
            process.communicate()


@contextmanager
def two_namespaces() -> Iterator[dict[str, str]]:
    """Paths of two new network namespaces."""
    descriptors = [run_in_new(partial(os.open, "/proc/thread-self/ns/net", os.O_RDONLY)) for _ in SIDES]
    paths = [f"/proc/{os.getpid()}/fd/{descriptor}" for descriptor in descriptors]
    try:
        for path in paths:
            run_inside(path, partial(write_sysctls, QUIET_SYSCTLS))
        yield dict(zip(SIDES, paths, strict=True))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def configure(namespaces: dict[str, str]) -> None:
    for side, other in zip(SIDES, reversed(SIDES), strict=True):
        commands = [
            f"link set {side} address {MACS[side]} up",
            f"address add {ADDRESSES[side]}/24 dev {side}",
            f"neighbour add {ADDRESSES[other]} lladdr {MACS[other]} dev {side} nud permanent",
        ]
        _ip(namespaces[side], commands)
    for side in SIDES:
        run_inside(namespaces[side], partial(ensure_carrier, [side]))


def _ip(namespace: str, commands: list[str]) -> None:
    run_inside(namespace, partial(run_tool, ["ip", "-batch", "-"], commands))


@contextmanager
def sockets(namespaces: dict[str, str]) -> Iterator[socket.socket]:
    """The sender. The receiver is read by nobody: its kernel discards what is too much for its buffer."""
    make = partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
    sender, receiver = (run_inside(namespaces[side], make) for side in SIDES)
    with sender, receiver:
        receiver.bind((ADDRESSES["far"], PORT))
        sender.connect((ADDRESSES["far"], PORT))
        yield sender


@contextmanager
def real_time() -> Iterator[None]:
    """Other programs do not keep this thread from running."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO_PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
