"""Throw-away network namespaces for the dropper, and its BPF program run without a network."""

import ctypes
import functools
import json
import os
import socket
import struct
import subprocess
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from bench.bpf import Program
from fecbench.dropper.command import COMMAND, Attachment, Counters, show
from tests.waiting import wait_until

PORT = 4433
CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class Namespace:
    """A network namespace made by `ip netns add`, with one interface."""

    name: str
    interface: str
    ipv4: str
    ipv6: str

    @property
    def path(self) -> str:
        return f"/run/netns/{self.name}"

    def attachment(self, direction: Literal["ingress", "egress"]) -> Attachment:
        return Attachment(self.path, self.interface, direction)

    def run(self, *arguments: str) -> str:
        command = ["ip", "netns", "exec", self.name, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def inside(self, make: Callable[[], Any]) -> Any:
        """Call `make` in a thread that has entered the namespace, and return its result: a socket stays
        there."""

        def enter_and_make() -> Any:
            with Path(self.path).open() as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), f"cannot enter {self.path}")
            return make()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(enter_and_make).result()

    def qdiscs_and_filters(self) -> list[Any]:
        """Return everything that tc has on the interface."""
        listings = (("qdisc",), ("filter", "ingress"), ("filter", "egress"))
        tc = [self.run("tc", "-j", kind, "show", "dev", self.interface, *side) for kind, *side in listings]
        return [json.loads(listing or "[]") for listing in tc]

    def json_of(self, action: str, direction: str) -> dict[str, Any]:
        arguments = ["--netns", self.path, "--dev", self.interface, f"--{direction}", "--json"]
        result = subprocess.run([COMMAND, action, *arguments], check=True, capture_output=True, text=True)
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    def counters_after(self, judged: int, direction: Literal["ingress", "egress"] = "ingress") -> Counters:
        """The counters once so many packets were judged."""
        place = self.attachment(direction)
        wait_until(lambda: show(place).seen >= judged, f"{judged} packets at {place}")
        return show(place)


@contextmanager
def namespaces(*interfaces: str) -> Iterator[list[Namespace]]:
    """Namespaces that send nothing of their own accord: IPv6 is off. Skips the test without root."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    unique = uuid.uuid4().hex[:8]
    sockets = [
        Namespace(f"fecbench-test-{unique}-{interface}", interface, f"10.83.0.{i}", f"fd83::{i}")
        for i, interface in enumerate(interfaces, 1)
    ]
    try:
        for namespace in sockets:
            subprocess.run(["ip", "netns", "add", namespace.name], check=True)
            namespace.run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        yield sockets
    finally:
        for namespace in sockets:
            subprocess.run(["ip", "netns", "del", namespace.name], check=True)


def join(namespace: Namespace, neighbour: Namespace) -> None:
    """An address and a permanent neighbour, so that nothing but what a test sends crosses the link."""
    of = ("dev", namespace.interface)
    namespace.run("ip", "address", "add", f"{namespace.ipv4}/24", *of)
    namespace.run("ip", "link", "set", namespace.interface, "up")
    namespace.run("ip", "neighbour", "add", neighbour.ipv4, "lladdr", mac_of(neighbour), *of)


def join_by_ipv6(namespace: Namespace, neighbour: Namespace) -> None:
    """The same for IPv6, which announces itself by packets of its own."""
    of = ("dev", namespace.interface)
    namespace.run("sysctl", "-qw", f"net.ipv6.conf.{namespace.interface}.disable_ipv6=0")
    namespace.run("ip", "address", "add", f"{namespace.ipv6}/64", *of, "nodad")
    namespace.run("ip", "neighbour", "add", neighbour.ipv6, "lladdr", mac_of(neighbour), *of)


def mac_of(namespace: Namespace) -> str:
    [link] = json.loads(namespace.run("ip", "-j", "link", "show", "dev", namespace.interface))
    return str(link["address"])


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    if not COMMAND.exists():
        pytest.fail(f"{COMMAND} is not built: make build")


@pytest.fixture
def veth() -> Iterator[tuple[Namespace, Namespace]]:
    """Two namespaces joined by a veth pair, over IPv4."""
    with namespaces("near0", "far0") as (near, far):
        peer = ("peer", "name", far.interface, "netns", far.name)
        near.run("ip", "link", "add", near.interface, "type", "veth", *peer)
        join(near, far)
        join(far, near)
        yield near, far


@pytest.fixture
def veth_with_ipv6(veth: tuple[Namespace, Namespace]) -> tuple[Namespace, Namespace]:
    near, far = veth
    join_by_ipv6(near, far)
    join_by_ipv6(far, near)
    return near, far


@pytest.fixture(scope="module")
def lone() -> Iterator[Namespace]:
    """An interface that no packet crosses: one end of a veth pair that is down."""
    with namespaces("lone0") as [namespace]:
        namespace.run("ip", "link", "add", "lone0", "type", "veth", "peer", "name", "spare0")
        yield namespace


# ---- The BPF program, run on frames that we give it ----


def program_at(namespace: Namespace) -> Program:
    """The program attached at the ingress of the namespace's interface."""
    return Program.of_id(namespace.json_of("show", "ingress")["program_id"])


@pytest.fixture(scope="session")
def quic_frame() -> bytes:
    """An Ethernet frame with a UDP datagram of 1200 bytes to PORT over IPv4."""
    udp = struct.pack("!HHHH", 50000, PORT, 1208, 0)
    addresses = socket.inet_aton("10.83.0.1") + socket.inet_aton("10.83.0.2")
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 1228, 0, 0, 64, socket.IPPROTO_UDP, 0) + addresses
    return bytes(12) + struct.pack("!H", 0x0800) + ip + udp + bytes(1200)


@pytest.fixture(scope="session")
def run_program() -> Callable[[Namespace], Any]:
    return program_at


@pytest.fixture(scope="session")
def quiet_namespaces() -> Callable[..., Any]:
    return namespaces


@pytest.fixture(scope="session")
def mac() -> Callable[[Namespace], bytes]:
    """The address of a namespace's interface, as in a frame."""
    return functools.cache(lambda namespace: bytes.fromhex(mac_of(namespace).replace(":", "")))
