"""ns per packet of the dropper, for each kind of work, next to an empty program in the same rounds; and what
attaching it takes, which each trial does for each direction of its links."""

import json
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from bench.bpf import Program
from bench.table import Row, print_table
from fecbench.dropper.command import COMMAND, Attachment, Filter, attach, detach
from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import GilbertElliott, Uniform
from fecbench.topologies.namespace import run_in_new, run_inside, run_tool

ROUNDS = 9
REPEAT = 1_000_000
MOST_NS = 25
"""A verdict takes at most so much more than an empty program."""
MOST_MS = 20
"""The command takes at most so long to attach a dropper: loading it, verifying it and all."""
PORT = 4433
QUIC = Filter("ipv4", "udp", PORT)
OTHER_PORT = Filter("ipv4", "udp", PORT + 1)
# The command records whole words; the shortest record has no effect after the first 64 packets.
SHORTEST_RECORD, RECORD_OF_ALL = 64, 2**24
GE = GilbertElliott(p=0.01, r=0.3, k=0.999, h=0.3)

CASES: dict[str, tuple[LossModel, Filter, int]] = {
    "no match (another port)": (Uniform(0.05), OTHER_PORT, SHORTEST_RECORD),
    "no loss": (Uniform(0.0), QUIC, SHORTEST_RECORD),
    "uniform, 5 %": (Uniform(0.05), QUIC, SHORTEST_RECORD),
    "uniform, 5 %, of long packets": (Uniform(0.05, only_longer_than=10), QUIC, SHORTEST_RECORD),
    "ge, 2.4 %": (GE, QUIC, SHORTEST_RECORD),
    "ge, 2.4 %, with bitmap": (GE, QUIC, RECORD_OF_ALL),
}


def run() -> list[str]:
    """Print the table: the median, the least and the most of several rounds, and how many times the empty
    program's. A line for each row that misses the bound."""
    frame = quic_frame()
    with ExitStack() as stack:
        programs = {"an empty program": stack.enter_context(Program.empty())}
        for name, (model, judged, record) in CASES.items():
            programs[name] = stack.enter_context(_attached(model, judged, record))
        # Round by round, so that what disturbs the machine disturbs all of them.
        rounds = [
            {name: program.run(frame, REPEAT) for name, program in programs.items()} for _ in range(ROUNDS)
        ]
    rows = [Row(name, [measured[name] for measured in rounds]) for name in programs]
    print_table(f"dropper, {REPEAT:,} packets of {len(frame)} bytes, {ROUNDS} rounds", "ns/packet", rows)
    attaching = Row("attach", list(_attachments_ms()))
    print_table(f"dropper, {ROUNDS} rounds", "ms", [attaching])
    return missed(rows, attaching)


def missed(rows: Sequence[Row], attaching: Row) -> list[str]:
    """A line for each row but the first, the empty program's, that takes MOST_NS more, or longer, and for
    attaching if that takes longer than MOST_MS."""
    empty, *others = rows
    slow = [
        f"missed: dropper, {row.name}: {row.median - empty.median:.0f} ns more than an empty program;"
        f" the bound is {MOST_NS}"
        for row in others
        if row.median - empty.median > MOST_NS
    ]
    if attaching.median > MOST_MS:
        slow.append(f"missed: dropper, attach: {attaching.median:.0f} ms; the bound is {MOST_MS}")
    return slow


def _attachments_ms() -> Iterator[float]:
    """Yield how long the command takes at an interface without a dropper."""
    with _interface() as where:
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            attach(where, GE, seed=0x0123456789ABCDEF, filter=QUIC)
            yield 1e3 * (time.perf_counter() - begun)
            detach(where)


@contextmanager
def _attached(model: LossModel, judged: Filter, record: int) -> Iterator[Program]:
    """The program of a dropper at an interface of its own."""
    with _interface() as where:
        attach(where, model, seed=0x0123456789ABCDEF, filter=judged, record=record)
        show = [str(COMMAND), "show", *where.arguments, "--json"]
        shown = subprocess.run(show, check=True, capture_output=True, text=True)
        with Program.of_id(json.loads(shown.stdout)["program_id"]) as program:
            yield program


@contextmanager
def _interface() -> Iterator[Attachment]:
    """Yield an interface in a namespace of its own, which no packet crosses."""
    namespace = run_in_new(partial(os.open, "/proc/thread-self/ns/net", os.O_RDONLY))
    try:
        path = f"/proc/{os.getpid()}/fd/{namespace}"
        add = ["ip", "link", "add", "lone0", "type", "veth", "peer", "name", "spare0"]
        run_inside(path, partial(run_tool, add))
        yield Attachment(path, "lone0", "ingress")
    finally:
        os.close(namespace)


def quic_frame() -> bytes:
    """An Ethernet frame with a UDP datagram of 1200 bytes to PORT over IPv4."""
    udp = struct.pack("!HHHH", 50000, PORT, 1208, 0)
    addresses = socket.inet_aton("10.83.0.1") + socket.inet_aton("10.83.0.2")
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 1228, 0, 0, 64, socket.IPPROTO_UDP, 0) + addresses
    return bytes(12) + struct.pack("!H", 0x0800) + ip + udp + bytes(1200)
