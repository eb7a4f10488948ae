"""Sends known traffic over an emulated link, and keeps what was sent and received, and the link's report.

Each experiment builds a topology with a dropper, as a trial does, and has the prober (`topologies/prober`)
send numbered datagrams from one host of a pair to the other. The datagrams and times that the receiver's
kernel recorded are then compared with those of the link's law.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fecbench.dropper import command as dropper_command
from fecbench.dropper.command import Attachment, Filter
from fecbench.dropper.draws import unpack
from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import Uniform
from fecbench.runners.calibration.table import Measurement
from fecbench.runners.tasks import validity
from fecbench.runners.trial.assignment import PORT
from fecbench.topologies.backend import Backend
from fecbench.topologies.link import Direction, LinkSettings
from fecbench.topologies.link_report import LinkReport
from fecbench.topologies.programs import PROBER
from fecbench.topologies.single_path import R1_CLIENT
from fecbench.topologies.topology import TOPOLOGIES, Host, Topology, build

SEED = 1
FRAME_BYTES = 1242
PROBE_SPACING_NS = 1_000_000

NO_LOSS = Uniform(0.0)
# Other links than the one that is measured are in nobody's way.
CLEAR = LinkSettings.symmetric(10_000, 0)
# When nothing came for so long after all that was due, nothing more will come.
PATIENCE_MS = 200


@dataclass(frozen=True)
class Datagrams:
    """The datagrams that the prober sent, and those that arrived. Times are in ns."""

    sent_ns: NDArray[np.int64]
    """Time at which each datagram was sent, by its number."""
    numbers: NDArray[np.int64]
    """Numbers of the received datagrams, in the order of their arrival."""
    received_ns: NDArray[np.int64]
    """Time at which each received datagram arrived."""

    def delays_us(self) -> NDArray[np.float64]:
        return (self.received_ns - self.sent_ns[self.numbers]) / 1e3

    def disorder(self) -> int:
        """Datagrams that came behind a later one, or twice."""
        return int((np.diff(self.numbers) <= 0).sum())


@dataclass(frozen=True)
class Traffic:
    """Datagrams that were sent over a link, and the reports of the link and of its dropper."""

    datagrams: Datagrams
    direction: Direction
    report: LinkReport
    verdicts: NDArray[np.bool_]
    """The dropper's, by the packet's number: whether it was dropped."""

    def unaccounted(self) -> int:
        """Datagrams that did not enter the link, or are neither received, nor dropped by queue or dropper,
        nor in flight; or a link that does not vouch for its frames."""
        counted = self.report.directions[self.direction]
        sent, received = len(self.datagrams.sent_ns), len(self.datagrams.numbers)
        explained = counted.queue_dropped + counted.in_flight + int(self.verdicts.sum())
        return abs(sent - counted.frames_in) + abs(sent - received - explained) + (not self.report.conserved)


@dataclass(frozen=True)
class _End:
    """An end of the traffic: a process there, and its address."""

    pid: int
    address: str

    @property
    def netns(self) -> str:
        return f"/proc/{self.pid}/ns/net"


class Laboratory:
    """Measures one link of a topology on one backend, and remembers all traffic.

    The link must be on a path of the first pair. Whatever fails raises RuntimeError or ValueError.
    """

    def __init__(self, backend: Backend, topology: str = "single-path", link: str = "internet") -> None:
        self.backend = backend
        self.topology = topology
        self.link = link
        self._traffic: list[Traffic] = []

    def integrity(self) -> Iterator[Measurement]:
        """Measure what must be right for all traffic so far."""
        disorder = sum(traffic.datagrams.disorder() for traffic in self._traffic)
        yield Measurement(name="packets out of order", value=disorder, bound=0, unit="")
        unaccounted = sum(traffic.unaccounted() for traffic in self._traffic)
        yield Measurement(name="packets not conserved", value=unaccounted, bound=0, unit="")

    def real_time(self) -> bool | None:
        """Whether every link so far was granted SCHED_FIFO; None when the backend has no process."""
        granted = [
            traffic.report.scheduling.fifo
            for traffic in self._traffic
            if traffic.report.scheduling is not None
        ]
        return all(granted) if granted else None

    def send(
        self,
        settings: LinkSettings,
        count: int,
        *,
        direction: Direction = "up",
        spacing_ns: int = 0,
        frame_bytes: int = FRAME_BYTES,
        model: LossModel = NO_LOSS,
    ) -> Traffic:
        """Frames over a new link, at random 0.5 to 1.5 times `spacing_ns` apart, 0: as fast as can be."""
        with self._build(settings) as network:
            place = network.exits[self.link, direction]
            attachment = Attachment(place.netns_path, place.interface, "ingress")
            dropper_command.attach(attachment, model, SEED, Filter("ipv4", "udp", PORT))
            sender = _End(network.client.pid, self._address(network.client))
            receiver = _End(network.server.pid, network.server.address)
            if direction == "down":
                sender, receiver = receiver, sender
            datagrams = _probe(
                from_netns=sender.netns,
                source=sender.address,
                to_netns=receiver.netns,
                address=receiver.address,
                count=count,
                spacing_ns=spacing_ns,
                frame_bytes=frame_bytes,
                patience_ms=PATIENCE_MS + round(settings.of(direction).greatest_owd_ms),
            )
            report = network.finish()[self.link]
            log = dropper_command.log(attachment)
        verdicts = unpack(log.bitmap, log.recorded).astype(bool)
        traffic = Traffic(datagrams, direction, report, verdicts)
        self._traffic.append(traffic)
        return traffic

    def delay_error_us(
        self, settings: LinkSettings, probes: int, direction: Direction = "up"
    ) -> NDArray[np.float64]:
        """Return how much longer than it should each of `probes` frames took, the prober's own error
        included.

        They are so far apart that none waits for another.
        """
        lane = settings.of(direction)
        serialization_ns = 1e9 * lane.rate.least_time_s(FRAME_BYTES)
        spacing_ns = max(PROBE_SPACING_NS, round(3 * serialization_ns))
        traffic = self.send(settings, probes, direction=direction, spacing_ns=spacing_ns)
        return np.asarray(traffic.datagrams.delays_us() - (lane.delay_ns + serialization_ns) / 1e3)

    def prober_error_us(self, probes: int) -> NDArray[np.float64]:
        """Return the prober's own error: from a client to its router, over the veth between them, without a
        link."""
        with build("single-path", {"internet": CLEAR}, self.backend) as network:
            datagrams = _probe(
                from_netns=f"/proc/{network.client.pid}/ns/net",
                source=network.client.address,
                to_netns=network.exits["internet", "down"].netns_path,
                address=str(R1_CLIENT.address.ip),
                count=probes,
                spacing_ns=PROBE_SPACING_NS,
                frame_bytes=FRAME_BYTES,
                patience_ms=PATIENCE_MS,
            )
        return np.asarray(datagrams.delays_us())

    def burst(self, settings: LinkSettings, count: int, direction: Direction = "up") -> tuple[float, float]:
        """The rate in Mbps of `count` frames sent at once, and by how many µs they were spread too much.

        The link's queue must have room for them.
        """
        received_ns = self.send(settings, count, direction=direction).datagrams.received_ns
        half = count // 2
        # Many pairs half the burst apart: the lateness of single frames cancels out in their median.
        apart_ns = float(np.median(received_ns[half:] - received_ns[: len(received_ns) - half]))
        spread_us = float(received_ns[-1] - received_ns[0]) / 1e3
        expected_us = 1e6 * settings.of(direction).rate.least_time_s((count - 1) * FRAME_BYTES)
        return half * FRAME_BYTES * 8e3 / apart_ns, abs(spread_us - expected_us)

    def _address(self, client: Host) -> str:
        """Return the address of the client whose packets take the link: it has one for each link, or one for
        all."""
        if len(client.addresses) == 1:
            return client.address
        links = [link.name for link in TOPOLOGIES[self.topology].links]
        return client.addresses[links.index(self.link)]

    def _build(self, settings: LinkSettings) -> Topology:
        links = {link.name: CLEAR for link in TOPOLOGIES[self.topology].links} | {self.link: settings}
        bounds_us = {name: validity.USUAL.late_bound_us(link) for name, link in links.items()}
        return build(self.topology, links, self.backend, bounds_us)


def _probe(
    *,
    from_netns: str,
    source: str,
    to_netns: str,
    address: str,
    count: int,
    spacing_ns: int,
    frame_bytes: int,
    patience_ms: int,
) -> Datagrams:
    """`count` datagrams from one namespace to an address of another. Raises RuntimeError with the prober's
    own line."""
    options = {
        "from-netns": from_netns,
        "source": source,
        "to-netns": to_netns,
        "address": address,
        "port": PORT,
        "count": count,
        "frame-bytes": frame_bytes,
        "spacing-ns": spacing_ns,
        "seed": SEED,
        "patience-ms": patience_ms,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    process = subprocess.run([PROBER, *words], capture_output=True, text=True)
    if process.returncode != 0:
        raise RuntimeError(process.stderr.strip() or f"prober ended with status {process.returncode}")
    report = json.loads(process.stdout)
    return Datagrams(
        sent_ns=np.array(report["sent_ns"], dtype=np.int64),
        numbers=np.array(report["numbers"], dtype=np.int64),
        received_ns=np.array(report["received_ns"], dtype=np.int64),
    )


@contextmanager
def load_on_every_core() -> Iterator[None]:
    """Run a program on each core that takes all that it gets of it."""
    hogs = []
    try:
        for cpu in sorted(os.sched_getaffinity(0)):
            hogs.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            os.sched_setaffinity(hogs[-1].pid, {cpu})
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
