"""Real links between namespaces that only this process holds."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fecbench.topologies.link import Direction, LinkEnd, LinkSettings
from fecbench.topologies.namespace import run_in_new, run_inside, run_tool
from fecbench.topologies.sysctls import QUIET_SYSCTLS, write_sysctls
from fecbench.topologies.wire_link import WireLink

ADDRESSES = {"near": "10.9.0.1", "far": "10.9.0.2"}
MACS = {"near": "02:00:00:00:09:01", "far": "02:00:00:00:09:02"}
PORT = 7000
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
UDP_OVERHEAD = 14 + 20 + 8


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() != 0:
        for item in items:
            if "root" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs root"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "root: makes network namespaces")


@contextmanager
def namespace() -> Iterator[str]:
    """The path of a new network namespace, which ends with the context."""
    descriptor = run_in_new(lambda: os.open("/proc/thread-self/ns/net", os.O_RDONLY))
    path = f"/proc/{os.getpid()}/fd/{descriptor}"
    try:
        run_inside(path, partial(write_sysctls, QUIET_SYSCTLS))
        yield path
    finally:
        os.close(descriptor)


def configure(end: LinkEnd, side: str) -> None:
    other = "far" if side == "near" else "near"
    commands = [
        f"link set {end.interface} address {MACS[side]} up",
        f"address add {ADDRESSES[side]}/24 dev {end.interface}",
        f"neighbour add {ADDRESSES[other]} lladdr {MACS[other]} dev {end.interface} nud permanent",
    ]
    run_inside(end.netns_path, partial(run_tool, ["ip", "-batch", "-"], commands))


class Wire:
    """A wire link between two namespaces, with a UDP socket at each end."""

    def __init__(self, link: WireLink, near: LinkEnd, far: LinkEnd) -> None:
        self.link, self.near, self.far = link, near, far
        self.sender = self._socket(near, "near")
        self.receiver = self._socket(far, "far")

    def send(self, size: int, direction: Direction = "up", *, times: int = 1) -> None:
        """Send datagrams in frames of `size` bytes, with the time of sending."""
        sender, to = (self.sender, "far") if direction == "up" else (self.receiver, "near")
        for _ in range(times):
            now = time.time_ns().to_bytes(8, "little")
            sender.sendto(now.ljust(size - UDP_OVERHEAD, b"\0"), (ADDRESSES[to], PORT))

    def receive(self, count: int, timeout_s: float = 30.0, direction: Direction = "up") -> NDArray[np.int64]:
        """(when sent, when the kernel received it) of up to `count` datagrams, ns since the epoch.

        Waits so long for each: a shorter time is for those that do not come.
        """
        times = []
        receiver = self.receiver if direction == "up" else self.sender
        receiver.settimeout(timeout_s)
        while len(times) < count:
            try:
                data, control, _, _ = receiver.recvmsg(2048, 64)
            except TimeoutError:
                break
            stamp = control[0][2]
            seconds, nanoseconds = (int.from_bytes(stamp[i : i + 8], "little") for i in (0, 8))
            times.append((int.from_bytes(data[:8], "little"), seconds * 10**9 + nanoseconds))
        return np.array(times, dtype=np.int64).reshape(-1, 2)

    def close(self) -> None:
        self.sender.close()
        self.receiver.close()
        self.link.close()

    @staticmethod
    def _socket(end: LinkEnd, side: str) -> socket.socket:
        opened = run_inside(end.netns_path, partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM))
        opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        opened.bind((ADDRESSES[side], PORT))
        return opened


WireMaker = Callable[..., Wire]


@pytest.fixture
def wire() -> Iterator[WireMaker]:
    """wire(settings, late_bound_us=1000, clients=(), origin=None): a link that is up."""
    with ExitStack() as stack:

        def make(settings: LinkSettings, late_bound_us: int = 1000, **of_client: Any) -> Wire:
            near, far = (LinkEnd(stack.enter_context(namespace()), side) for side in ("near", "far"))
            link = WireLink(near, far, settings, late_bound_us, **of_client)
            stack.callback(link.close)
            link.wait_ready()
            configure(near, "near")
            configure(far, "far")
            ends = Wire(link, near, far)
            stack.callback(ends.close)
            return ends

        yield make


@pytest.fixture
def two_namespaces() -> Iterator[tuple[str, str]]:
    """Paths."""
    with namespace() as near, namespace() as far:
        yield near, far
