"""Measures the emulated link of this machine with known traffic, from outside, and holds it against bounds.

Each experiment builds single-path with a dropper, as a trial does, sends numbered datagrams from the client
and compares what the server's kernel received, and when (SO_TIMESTAMPNS), with what the link should do. The
sender reads its clock just before each send, so its own delays are no part of the error.
"""

import random
import socket
import time
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

import dropper.command
import dropper.model
from dropper.command import Attachment, Filter
from dropper.model import GilbertElliott, LossModel, Uniform
from runners import isolation
from topologies.link import LinkSettings
from topologies.link_report import LinkReport
from topologies.namespace import run_inside
from topologies.topology import Backend, Host, build

OWDS_MS = (1, 10, 100, 400)
RATES_MBPS = (0.3, 1, 10, 100)
PORT = 4433
SEED = 1
FRAME_BYTES = 1242
HEADER_BYTES = 14 + 20 + 8
QUEUE_PACKETS = 10
QUIET_S = 0.5  # nothing came for so long: nothing more comes
LIMIT_S = 120.0
NO_LOSS = Uniform(0.0)
SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33
RECEIVE_BUFFER_BYTES = 64 << 20


class Measurement(BaseModel):
    """One line of the table: `value` is good when it is at most `bound`, in `unit`."""

    name: str
    value: float
    bound: float
    unit: str

    @property
    def good(self) -> bool:
        return self.value <= self.bound


class Table(BaseModel):
    backend: str
    measurements: list[Measurement]

    @property
    def good(self) -> bool:
        return all(each.good for each in self.measurements)


class Traffic:
    """What was sent, what was received, and the link's own report."""

    def __init__(self, sent_ns: NDArray[np.int64], received: NDArray[np.int64], report: LinkReport) -> None:
        self.sent_ns = sent_ns
        self.numbers, self.received_ns = received[:, 0], received[:, 1]
        self.report = report

    def disorder(self) -> int:
        """Datagrams that came behind a later one, or twice."""
        return int((np.diff(self.numbers) <= 0).sum())

    def unaccounted(self) -> int:
        """Datagrams that are neither received, nor dropped by the queue, nor in flight."""
        up = self.report.directions["up"]
        return abs(len(self.sent_ns) - len(self.numbers) - up.queue_dropped - up.in_flight)


def measure(backend: Backend) -> Table:
    """The table of this machine. Needs root; raises IsolationError when an experiment fails."""
    answer = isolation.run_isolated(lambda: _measure(backend).model_dump_json().encode(), LIMIT_S)
    return Table.model_validate_json(answer)


def _measure(backend: Backend) -> Table:
    return Table(
        backend=backend,
        measurements=[*_delays(backend), *_rates(backend), *_queue(backend), *_verdicts(backend)],
    )


def _delays(backend: Backend) -> Iterator[Measurement]:
    for owd_ms in OWDS_MS:
        traffic = _send(LinkSettings(1000, owd_ms), backend, count=1000, spacing_s=0.001)
        sent_ns = traffic.sent_ns[traffic.numbers]
        serialization_us = FRAME_BYTES * 8 / 1000
        error_us = (traffic.received_ns - sent_ns) / 1e3 - owd_ms * 1e3 - serialization_us
        p50, p99, most = np.percentile(error_us, [50, 99, 100])
        name = f"delay error at {owd_ms} ms"
        yield Measurement(name=f"{name}, p50", value=p50, bound=200, unit="µs")
        yield Measurement(name=f"{name}, p99", value=p99, bound=1000, unit="µs")
        yield Measurement(name=f"{name}, max", value=most, bound=20_000, unit="µs")
        yield from _integrity(f"{owd_ms} ms", traffic)
        if traffic.report.cpu_s is not None:
            megabits = traffic.report.directions["up"].bytes_out * 8 / 1e6
            cpu_percent = 100 * traffic.report.cpu_s / megabits
            name = f"CPU of the link per Mbps at {owd_ms} ms"
            yield Measurement(name=name, value=cpu_percent, bound=2, unit="% of a core")


def _rates(backend: Backend) -> Iterator[Measurement]:
    for rate_mbps in RATES_MBPS:
        count = round(max(40, min(2000, rate_mbps * 100)))
        settings = LinkSettings(rate_mbps, 10, queue_packets=count)
        traffic = _send(settings, backend, count)
        half = len(traffic.received_ns) // 2
        # Many pairs half the burst apart: the lateness of single frames cancels out in their median.
        apart_ns = np.median(
            traffic.received_ns[half:] - traffic.received_ns[: len(traffic.received_ns) - half]
        )
        measured_mbps = half * FRAME_BYTES * 8e3 / apart_ns
        payload_mbps = measured_mbps * (FRAME_BYTES - HEADER_BYTES) / FRAME_BYTES
        name = f"rate error at {rate_mbps} Mbps ({measured_mbps:.5g}, payload {payload_mbps:.5g})"
        yield Measurement(name=name, value=abs(measured_mbps / rate_mbps - 1), bound=1e-3, unit="")
        spread_us = (traffic.received_ns[-1] - traffic.received_ns[0]) / 1e3
        expected_us = (count - 1) * FRAME_BYTES * 8 / rate_mbps
        name = f"spread of a burst of {count} at {rate_mbps} Mbps, error"
        yield Measurement(name=name, value=abs(spread_us - expected_us), bound=1000, unit="µs")
        yield from _integrity(f"{rate_mbps} Mbps", traffic)


def _queue(backend: Backend) -> Iterator[Measurement]:
    settings = LinkSettings(0.3, 1, queue_packets=QUEUE_PACKETS)
    traffic = _send(settings, backend, count=5 * QUEUE_PACKETS)
    beside = len(set(traffic.numbers.tolist()) ^ set(range(QUEUE_PACKETS)))
    yield Measurement(name="packets beside the queue's capacity", value=beside, bound=0, unit="")
    yield from _integrity("a full queue", traffic)


def _verdicts(backend: Backend) -> Iterator[Measurement]:
    for name, model in (("uniform", Uniform(0.1)), ("ge", GilbertElliott(0.05, 0.3, 0.99, 0.2))):
        count = 1000
        traffic = _send(LinkSettings(100, 1, queue_packets=count), backend, count, model=model)
        delivered = np.flatnonzero(~dropper.model.verdicts(model, SEED, count).astype(bool))
        differing = len(set(traffic.numbers.tolist()) ^ set(delivered.tolist()))
        yield Measurement(name=f"verdicts beside the oracle's, {name}", value=differing, bound=0, unit="")


def _integrity(where: str, traffic: Traffic) -> Iterator[Measurement]:
    yield Measurement(name=f"packets out of order, {where}", value=traffic.disorder(), bound=0, unit="")
    lost = traffic.unaccounted() + (not traffic.report.conserved)
    yield Measurement(name=f"packets not conserved, {where}", value=lost, bound=0, unit="")


def _send(
    settings: LinkSettings,
    backend: Backend,
    count: int,
    spacing_s: float = 0.0,
    model: LossModel = NO_LOSS,
) -> Traffic:
    """Send `count` datagrams from client to server, at random 0.5 to 1.5 times `spacing_s` apart."""
    with build("single-path", {"internet": settings}, backend) as network:
        place = network.exits["internet", "up"]
        where = Attachment(place.netns_path, place.interface, "ingress")
        dropper.command.attach(where, model, SEED, Filter("ipv4", "udp", PORT))
        with _socket(network.client) as client, _socket(network.server) as server:
            server.bind((network.server.address, PORT))
            sent_ns = _emit(client, (network.server.address, PORT), count, spacing_s)
            server.settimeout(settings.owd_ms / 1e3 + QUIET_S)
            received = _collect(server, count)
        return Traffic(sent_ns, received, network.finish()["internet"])


def _socket(host: Host) -> socket.socket:
    netns_path = f"/proc/{host.pid}/ns/net"
    made = run_inside(netns_path, partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM))
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    return made


def _emit(client: socket.socket, to: tuple[str, int], count: int, spacing_s: float) -> NDArray[np.int64]:
    draw = random.Random(SEED)
    sent_ns = np.zeros(count, dtype=np.int64)
    payload = bytes(FRAME_BYTES - HEADER_BYTES - 4)
    for number in range(count):
        if spacing_s:
            time.sleep(spacing_s * draw.uniform(0.5, 1.5))  # the traffic, not a wait
        data = number.to_bytes(4, "little") + payload
        sent_ns[number] = time.time_ns()
        client.sendto(data, to)
    return sent_ns


def _collect(server: socket.socket, count: int) -> NDArray[np.int64]:
    """(number, when the kernel received it in ns since the epoch) in order of arrival."""
    received: list[tuple[int, int]] = []
    while len(received) < count:
        try:
            data, control, _, _ = server.recvmsg(2048, 64)
        except TimeoutError:
            break
        seconds, nanoseconds = (int.from_bytes(control[0][2][i : i + 8], "little") for i in (0, 8))
        received.append((int.from_bytes(data[:4], "little"), seconds * 10**9 + nanoseconds))
    return np.array(received, dtype=np.int64).reshape(-1, 2)
