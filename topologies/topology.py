"""A network with its emulated links, ready for a trial."""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import TracebackType
from typing import Any, Protocol, Self

from fecbench.complaint import wrong_value
from fecbench.topologies import namespace, tcp
from fecbench.topologies.backend import BACKENDS, Backend
from fecbench.topologies.counters import discarded, received_bytes
from fecbench.topologies.dumbbell import dumbbell
from fecbench.topologies.family import Family, check_family, in_family
from fecbench.topologies.layout import EmulatedLink, Layout, Port
from fecbench.topologies.link import (
    DIRECTIONS,
    Direction,
    LinkEnd,
    LinkSettings,
    TopologyError,
    name_in_designs,
)
from fecbench.topologies.link_report import LinkReport
from fecbench.topologies.multipath import multipath
from fecbench.topologies.netem_link import NetemLink, netem_is_available
from fecbench.topologies.origin import Origin
from fecbench.topologies.relay import RELAY
from fecbench.topologies.single_path import SINGLE_PATH
from fecbench.topologies.sysctls import has_ipv6, write_sysctls
from fecbench.topologies.wire_link import WireLink, wire_is_available

TOPOLOGIES: dict[str, Layout] = {
    "single-path": SINGLE_PATH,
    "dumbbell": dumbbell(2),
    "dumbbell-5": dumbbell(5),
    "multipath": multipath(2),
    "multipath-3": multipath(3),
    "relay": RELAY,
}
"""The topologies by name; `.links` of each lists the links that need settings."""


@cache
def layout_of(topology: str, family: Family = "ipv4") -> Layout:
    """Return the layout of a topology of TOPOLOGIES, with addresses of a family."""
    return in_family(TOPOLOGIES[topology], family)


def has_relay(topology: str) -> bool:
    """Whether a topology of TOPOLOGIES has a relay between client and server; one in the field has none."""
    return topology in TOPOLOGIES and TOPOLOGIES[topology].relay is not None


DEFAULT_LATE_BOUND_US = 1000
"""The bound of a link for which build() is given none."""


class Link(Protocol):
    """An emulated link: what both backends offer."""

    backend: str

    def wait_ready(self) -> None: ...

    def start(self, at_ns: int) -> None: ...

    def finish(self) -> LinkReport: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Host:
    name: str
    addresses: tuple[str, ...]
    """Addresses in the order of the layout's ports."""
    pid: int
    """A process whose namespaces are the host's."""
    interfaces: tuple[str, ...]
    _processes: list["subprocess.Popen[Any]"] = field(default_factory=list, repr=False, compare=False)

    @property
    def address(self) -> str:
        """The first one."""
        return self.addresses[0]

    def popen(self, args: list[str], **kwargs: Any) -> "subprocess.Popen[Any]":
        """Starts a program of ours in the host, in a session and process group of its own.

        It is killed when the calling thread ends, and by the topology's close() if it still runs.
        """
        enter = ["setpriv", "--pdeathsig", "KILL", "mnexec", "-a", str(self.pid)]
        return self._popen([*enter, *args], **kwargs)

    def popen_prepared(
        self, args: list[str], preexec_fn: Callable[[], None], **kwargs: Any
    ) -> "subprocess.Popen[Any]":
        """Starts a program in the host's network, in a session and process group of its own.

        `preexec_fn` is called in the new process when it is there, with all rights still: it decides what
        else the program may do, and that it ends with its parent. close() kills it if it still runs.
        """

        def prepare() -> None:
            namespace.enter(f"/proc/{self.pid}/ns/net")
            preexec_fn()

        return self._popen(args, preexec_fn=prepare, **kwargs)

    def _popen(self, args: list[str], **kwargs: Any) -> "subprocess.Popen[Any]":
        process = subprocess.Popen(args, start_new_session=True, **kwargs)
        self._processes.append(process)
        return process

    def received_bytes(self) -> int:
        """Bytes of the Ethernet frames that have come in, at all of its interfaces."""
        return received_bytes(self.pid, self.interfaces)

    def kill_processes(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@dataclass(frozen=True)
class Pair:
    """A client and its server."""

    client: Host
    server: Host


class Topology:
    """Made by build(). A context manager that closes itself."""

    def __init__(
        self,
        layout: Layout,
        links: Mapping[str, LinkSettings],
        backend: str,
        late_bounds_us: Mapping[str, int],
    ) -> None:
        from fecbench.topologies.network import Network  # needs Mininet, which planning without root does not

        self.backend = backend
        self._links: dict[str, Link] = {}
        self._origin: Origin | None = None  # where a link has an outage, a trace or cross traffic
        self._reports: dict[str, LinkReport] | None = None
        self._hosts: list[Host] = []
        self._network = Network(layout)
        try:
            self._make_links(links, late_bounds_us)
        except BaseException:
            self.close()
            raise
        self.pairs = [Pair(self._host(client), self._host(server)) for client, server in layout.pairs]
        self.relay = None if layout.relay is None else self._host(layout.relay)

    @property
    def client(self) -> Host:
        """The first pair's."""
        return self.pairs[0].client

    @property
    def server(self) -> Host:
        """The first pair's."""
        return self.pairs[0].server

    def mininet(self) -> Any:
        """The Mininet object, with a shell in each node, for its command line."""
        self._network.open_shells()
        return self._network.mininet

    @property
    def exits(self) -> dict[tuple[str, Direction], LinkEnd]:
        """The places where frames leave each link, at the ingress of the next hop: the place of a loss
        injector."""
        exits: dict[tuple[str, Direction], LinkEnd] = {}
        for link in self._network.layout.links:
            exits[link.name, "up"] = self._end(link.far)
            exits[link.name, "down"] = self._end(link.near)
        return exits

    def carried_bytes(self, link: str, direction: Direction) -> int:
        """Bytes of the Ethernet frames that have left a link; a frame that its loss injector drops is one."""
        (planned,) = (planned for planned in self._network.layout.links if planned.name == link)
        exit_ = planned.far if direction == "up" else planned.near
        return received_bytes(self._network.pid(exit_.node), [exit_.interface])

    def discarded(self) -> "Counter[tuple[str, str]]":
        """Return the numbers of frames and datagrams that the kernel itself has discarded, by node and
        place. Drops of link queues and loss injectors are not counted."""
        return Counter(
            {
                (node, place): count
                for node in self._network.layout.nodes
                for place, count in discarded(self._network.pid(node)).items()
            }
        )

    def set_tcp(self, host: Host, controller: str, paths: int, *, ecn: bool = False) -> None:
        """Set the kernel's congestion control for TCP connections that a host makes and accepts from now
        on, and the number of its addresses, or of its peer's, that those of Multipath TCP use. With `ecn`,
        they ask for it.

        A controller that the kernel lacks is not set: an endpoint that asks for it finds another one. Raises
        LinkError.
        """
        if controller in tcp.controllers():
            self._network.set_congestion_control(host.name, controller)
        if ecn:
            namespace.run_inside(f"/proc/{host.pid}/ns/net", lambda: write_sysctls(tcp.WITH_ECN))
        if paths > 1:
            self._network.set_subflows(host.name, paths - 1)

    def start(self) -> None:
        """Outages of links are counted from the first frame that the first pair's client sends from now on;
        to be called just before it starts.

        Raises LinkError if a link died or doesn't answer.
        """
        at_ns = time.monotonic_ns()
        for link in self._links.values():
            link.start(at_ns)

    def finish(self) -> dict[str, LinkReport]:
        """Stops the links: no packet leaves any more. Interfaces and hosts stay. The same reports when
        called again.

        Raises LinkError if a link died or doesn't answer.
        """
        if self._reports is None:
            self._reports = {name: link.finish() for name, link in self._links.items()}
        return self._reports

    def close(self) -> None:
        """Removes everything. Idempotent."""
        for host in self._hosts:
            host.kill_processes()
        for link in self._links.values():
            link.close()
        if self._origin is not None:
            self._origin.close()
        self._network.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _host(self, name: str) -> Host:
        layout = self._network.layout
        host = Host(name, layout.addresses(name), self._network.pid(name), layout.interfaces(name))
        self._hosts.append(host)
        return host

    def _make_links(self, settings: Mapping[str, LinkSettings], late_bounds_us: Mapping[str, int]) -> None:
        if any(link.has_outages or link.has_traces or link.has_cross for link in settings.values()):
            self._origin = Origin()
        for link in self._network.layout.links:
            late_bound_us = late_bounds_us.get(link.name, DEFAULT_LATE_BOUND_US)
            self._links[link.name] = self._start_link(link, settings[link.name], late_bound_us)
        self._network.lay_cables()
        for started in self._links.values():
            started.wait_ready()
        self._network.configure()

    def _start_link(self, link: EmulatedLink, settings: LinkSettings, late_bound_us: int) -> Link:
        near, far = self._end(link.near), self._end(link.far)
        if self.backend == "netem":
            return NetemLink(near, far, settings, late_bound_us)
        if self._origin is None:
            return WireLink(near, far, settings, late_bound_us)
        layout = self._network.layout
        clients = layout.addresses(layout.pairs[0][0])
        return WireLink(near, far, settings, late_bound_us, clients, self._origin)

    def _end(self, port: Port) -> LinkEnd:
        return LinkEnd(self._network.netns_path(port.node), port.interface)


def build(
    topology: str,
    links: Mapping[str, LinkSettings],
    backend: Backend = "auto",
    late_bounds_us: Mapping[str, int] | None = None,
    family: Family = "ipv4",
) -> Topology:
    """A topology of TOPOLOGIES with settings for each of its links, running. Needs root.

    Everything that it starts ends with the calling thread. The report of a link counts frames that leave it
    later than its bound in late_bounds_us, or DEFAULT_LATE_BOUND_US if it has none. "auto" is wire where the
    kernel has TUN/TAP; else netem.
    Raises TopologyError for bad input, LinkError when the machine can't do it.
    """
    if topology not in TOPOLOGIES:
        raise TopologyError(wrong_value("topology", topology, f"one of {', '.join(TOPOLOGIES)}"))
    layout, late_bounds_us = layout_of(topology, check_family(family)), late_bounds_us or {}
    if layout.is_ipv6 and not has_ipv6():
        raise TopologyError(wrong_value("family", "ipv6", "ipv4, since this kernel has no IPv6"))
    _check_links(topology, layout, links, late_bounds_us)
    link_backend = resolve_backend(backend)
    for name, settings in links.items():
        check_backend(link_backend, name, settings)
    return Topology(layout, links, link_backend, late_bounds_us)


def _check_links(
    topology: str, layout: Layout, links: Mapping[str, LinkSettings], late_bounds_us: Mapping[str, int]
) -> None:
    names = [link.name for link in layout.links]
    for name in (*links, *late_bounds_us):
        if name not in names:
            link_names = ", ".join(names)
            raise TopologyError(f"link {name!r} is not in topology {topology}; its links are {link_names}")
    for name in names:
        if name not in links:
            raise TopologyError(f"link {name!r} of topology {topology} has no settings")


OF_NETEM = {"bandwidth_mbps", "owd_ms", "queue_bdp", "queue_bytes", "queue_packets", "queue_ms"}
"""Parameters of a direction that netem can follow. It refuses all others that are not as usual."""

NO_NETEM = {
    "queue": " is {}; the netem link has droptail only",
    "outage_s": " is {}; the netem link is never out, wire is",
    "trace": ": the netem link never changes, wire does",
    "jitter": "_ms: noise of the netem link follows another law; wire has ours",
    "duplicate": ": the netem link copies no frame, wire may",
    "reorder": ": the netem link keeps the order, wire need not",
}
"""Reasons of single parameters."""


def check_backend(backend: str, link: str, settings: LinkSettings) -> None:
    """Raises TopologyError for a link that this backend can't be."""
    if backend != "netem":
        return
    for direction in DIRECTIONS:
        own = settings.of(direction)
        for parameter in fields(own):
            value = getattr(own, parameter.name)
            if parameter.name in OF_NETEM or value == parameter.default or parameter.name.endswith("_seed"):
                continue
            if parameter.name == "cross_mbps" and not value:
                continue
            name = f"{link}.{direction}.{name_in_designs(parameter.name)}"
            why = NO_NETEM.get(parameter.name, ": the netem link has no such effect, wire has")
            raise TopologyError(name + why.format(list(value) if isinstance(value, tuple) else repr(value)))


def resolve_backend(backend: str) -> Backend:
    """The backend that build() uses here: "wire" or "netem".

    Raises TopologyError for an unknown one, and for one that this machine doesn't have.
    """
    if backend not in BACKENDS:
        raise TopologyError(wrong_value("link backend", backend, f"one of {', '.join(BACKENDS)}"))
    if backend != "netem" and wire_is_available():
        return "wire"
    if backend != "wire" and netem_is_available():
        return "netem"
    needs = {"wire": "/dev/net/tun", "netem": "sch_netem", "auto": "/dev/net/tun or sch_netem"}[backend]
    raise TopologyError(f"link backend is {backend!r}; it needs root and {needs}, which this machine lacks")
