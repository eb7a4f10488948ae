"""Measures the emulated link of this machine with known traffic, from outside, and holds it against bounds.

Each experiment builds single-path with a dropper, as a trial does, and has the prober (`topologies/prober`)
send numbered datagrams from the client to the server. What the server's kernel received, and when, is
compared with what the link should do.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, computed_field

import dropper.command
import dropper.model
from dropper.command import Attachment, Filter
from dropper.model import GilbertElliott, LossModel, Uniform
from runners.refusal import Refusal
from runners.trial import isolation
from runners.trial.judge import late_bound_us
from topologies.link import LinkSettings
from topologies.link_report import LinkReport
from topologies.programs import PROBER
from topologies.single_path import R1_CLIENT
from topologies.topology import Backend, Topology, build

PORT = 4433
SEED = 1
FULL_FRAME_BYTES, FRAME_BYTES = 1514, 1242
HEADER_BYTES = 14 + 20 + 8
PATIENCE_MS = 200  # nothing came for so long after all that was due: nothing more comes
LIMIT_S = 180.0
NO_LOSS = Uniform(0.0)
BURSTY = GilbertElliott(0.05, 0.3, 0.99, 0.2)

# Full table.
OWDS_MS = (1, 10, 100, 400)
DELAY_PROBES = 2500
BURSTS = {0.3: 40, 1: 100, 10: 1000, 100: 5000}  # frames at each rate in Mbps
QUEUE_PACKETS = 10
VERDICTS = 2000
FAST_MBPS, FAST_PACKETS = 1000, 40_000
CPU_MBPS, CPU_PACKETS = 10, 2000

# Brief table: medians of short rounds, so that a moment of other load does not decide.
ROUNDS = 3
BRIEF_OWD_MS, BRIEF_PROBES = 10, 200
BRIEF_MBPS, BRIEF_BURST = 10, 200
BRIEF_VERDICTS = 1000
BRIEF_ATTEMPTS = 3


class Measurement(BaseModel):
    """One line of the table: `value` is good when it is at most `bound`, in `unit`; without one it is told
    only."""

    name: str
    value: float
    bound: float | None
    unit: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def good(self) -> bool:
        return self.bound is None or self.value <= self.bound

    def __str__(self) -> str:
        return f"{self.name} is {self.value:.4g} {self.unit}".rstrip() + f", the bound is {self.bound:g}"


Kind = Literal["full", "under load", "brief"]


class Table(BaseModel):
    """What was measured, when, and of which link; `attempt` counts from 1.

    `real_time` says whether the link was granted SCHED_FIFO: without, other load delays it. None: it has no
    process that could be.
    """

    kind: Kind
    at: str
    backend: str
    real_time: bool | None
    measurements: list[Measurement]
    attempt: int = 1

    @computed_field  # type: ignore[prop-decorator]
    @property
    def good(self) -> bool:
        return not self.broken()

    def broken(self) -> list[Measurement]:
        """The lines whose bound does not hold."""
        return [each for each in self.measurements if not each.good]


class Bounds(NamedTuple):
    """Of the delay error, in µs."""

    p50: float
    p99: float
    max: float


IDLE = Bounds(45, 140, 20_000)
LOADED = Bounds(45, 200, 20_000)
# Loose, as other load is usual at a campaign's start. The median is worse by an order of magnitude where
# timers are coarse or real time is not granted; beyond the bound of p99, trials are invalid.
BRIEF_P50_US, BRIEF_P99_US = 300, late_bound_us(LinkSettings.symmetric(1000, BRIEF_OWD_MS))
RATE_ERROR, BRIEF_RATE_ERROR = 1e-4, 1e-3
SPREAD_ERROR_US = 500


class Traffic(NamedTuple):
    """What was sent (when, in ns), what was received, in the order of arrival, and the link's own report."""

    sent_ns: NDArray[np.int64]
    numbers: NDArray[np.int64]
    received_ns: NDArray[np.int64]
    report: LinkReport
    verdicts: NDArray[np.bool_]

    def delays_us(self) -> NDArray[np.float64]:
        return (self.received_ns - self.sent_ns[self.numbers]) / 1e3

    def disorder(self) -> int:
        """Datagrams that came behind a later one, or twice."""
        return int((np.diff(self.numbers) <= 0).sum())

    def unaccounted(self) -> int:
        """Datagrams that are neither received, nor dropped by queue or dropper, nor in flight; or a link
        that does not vouch for its frames."""
        up = self.report.directions["up"]
        lost = len(self.sent_ns) - len(self.numbers)
        known = up.queue_dropped + up.in_flight + int(self.verdicts.sum())
        return abs(lost - known) + (not self.report.conserved)


def measure(backend: Backend, kind: Kind) -> Table:
    """A table of this machine. Needs root; raises IsolationError when an experiment fails."""

    if not PROBER.exists():
        raise Refusal(f"{PROBER} is missing; `make build` builds it")

    def body() -> bytes:
        laboratory = Laboratory(backend)
        measurements = [*_EXPERIMENTS[kind](laboratory), *laboratory.integrity()]
        real_time = laboratory.real_time()
        table = Table(kind=kind, at=_now(), backend=backend, real_time=real_time, measurements=measurements)
        return table.model_dump_json().encode()

    return Table.model_validate_json(isolation.run_isolated(body, LIMIT_S))


def measure_briefly(backend: Backend) -> Table:
    """The first brief table of which every bound holds, or the last of BRIEF_ATTEMPTS."""
    for attempt in range(1, BRIEF_ATTEMPTS + 1):
        table = measure(backend, "brief").model_copy(update={"attempt": attempt})
        if table.good:
            break
    return table


def of_campaign(backend: Backend, wanted: bool) -> dict[str, Any]:
    """What a campaign keeps of the link at one of its starts: the brief table, or that it was not wanted.

    Raises Refusal when the link is not what it should be.
    """
    if not wanted:
        return {"kind": "skipped", "at": _now()}
    table = measure_briefly(backend)
    if not table.good:
        broken = "; ".join(map(str, table.broken()))
        raise Refusal(f"the emulated link of this machine: {broken}; --no-calibrate begins all the same")
    return table.model_dump()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Laboratory:
    """Runs experiments on one backend, and remembers their traffic."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._traffic: list[Traffic] = []

    def integrity(self) -> Iterator[Measurement]:
        """What must hold for all traffic so far."""
        disorder = sum(each.disorder() for each in self._traffic)
        yield Measurement(name="packets out of order", value=disorder, bound=0, unit="")
        unaccounted = sum(each.unaccounted() for each in self._traffic)
        yield Measurement(name="packets not conserved", value=unaccounted, bound=0, unit="")

    def real_time(self) -> bool | None:
        """Whether every link so far was granted SCHED_FIFO."""
        granted = [each.report.scheduling for each in self._traffic]
        known = [scheduling.fifo for scheduling in granted if scheduling is not None]
        return all(known) if known else None

    def send(
        self,
        settings: LinkSettings,
        count: int,
        *,
        spacing_ns: int = 0,
        frame_bytes: int = FRAME_BYTES,
        model: LossModel = NO_LOSS,
    ) -> Traffic:
        """Frames from client to server over a new link, at random 0.5 to 1.5 times `spacing_ns` apart."""
        with build("single-path", {"internet": settings}, self.backend) as network:
            place = network.exits["internet", "up"]
            where = Attachment(place.netns_path, place.interface, "ingress")
            dropper.command.attach(where, model, SEED, Filter("ipv4", "udp", PORT))
            server = network.server
            to = (f"/proc/{server.pid}/ns/net", server.address)
            patience_ms = PATIENCE_MS + round(settings.up.owd_ms)
            probed = _probe(network, to, count, spacing_ns, frame_bytes, patience_ms)
            report = network.finish()["internet"]
            recorded = dropper.command.log(where)
        verdicts = dropper.model.unpack(recorded.bitmap, recorded.recorded).astype(bool)
        traffic = Traffic(*probed, report, verdicts)
        self._traffic.append(traffic)
        return traffic

    def delay_error_us(self, owd_ms: float, probes: int) -> NDArray[np.float64]:
        """How much longer than the OWD each of `probes` frames took, about 1 ms apart; the prober's own
        error included."""
        settings = LinkSettings.symmetric(1000, owd_ms)
        serialization_us = FRAME_BYTES * 8e6 / settings.up.rate_bps
        delays_us = self.send(settings, probes, spacing_ns=1_000_000).delays_us()
        return np.asarray(delays_us - owd_ms * 1e3 - serialization_us)

    def prober_error_us(self, probes: int) -> NDArray[np.float64]:
        """The same without a link: from the client to its router, over the veth between them."""
        with build("single-path", {"internet": LinkSettings.symmetric(1000, 0)}, self.backend) as network:
            router = network.exits["internet", "down"].netns_path
            to = (router, str(R1_CLIENT.address.ip))
            sent_ns, numbers, received_ns = _probe(network, to, probes, 1_000_000, FRAME_BYTES, PATIENCE_MS)
        return np.asarray((received_ns - sent_ns[numbers]) / 1e3)

    def burst(self, rate_mbps: float, count: int) -> tuple[float, float]:
        """The rate in Mbps of `count` frames sent at once, and by how many µs they were spread too much."""
        settings = LinkSettings.symmetric(rate_mbps, 10, queue_packets=count)
        received_ns = self.send(settings, count).received_ns
        half = count // 2
        # Many pairs half the burst apart: the lateness of single frames cancels out in their median.
        apart_ns = float(np.median(received_ns[half:] - received_ns[: len(received_ns) - half]))
        spread_us = float(received_ns[-1] - received_ns[0]) / 1e3
        expected_us = (count - 1) * FRAME_BYTES * 8 / rate_mbps
        return half * FRAME_BYTES * 8e3 / apart_ns, abs(spread_us - expected_us)


def _probe(
    network: Topology, to: tuple[str, str], count: int, spacing_ns: int, frame_bytes: int, patience_ms: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Send from the client to (namespace, address): when each was sent, the numbers of those received, and
    when."""
    options = {
        "from-netns": f"/proc/{network.client.pid}/ns/net",
        "to-netns": to[0],
        "address": to[1],
        "port": PORT,
        "count": count,
        "frame-bytes": frame_bytes,
        "spacing-ns": spacing_ns,
        "seed": SEED,
        "patience-ms": patience_ms,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    ended = subprocess.run([PROBER, *words], capture_output=True, text=True)
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr.strip() or f"prober ended with status {ended.returncode}")
    said = json.loads(ended.stdout)
    names = ("sent_ns", "numbers", "received_ns")
    sent_ns, numbers, received_ns = (np.array(said[name], dtype=np.int64) for name in names)
    return sent_ns, numbers, received_ns


def _full(laboratory: Laboratory) -> Iterator[Measurement]:
    yield from _prober_error(laboratory)
    yield from _delays(laboratory, IDLE)
    for rate_mbps, count in BURSTS.items():
        yield from _rate(laboratory, rate_mbps, count)
    yield from _queue(laboratory)
    for name, model in (("uniform", Uniform(0.1)), ("ge", BURSTY)):
        yield from _verdicts(laboratory, name, model, VERDICTS)
    yield from _fast(laboratory)
    yield from _cpu(laboratory)


def _under_load(laboratory: Laboratory) -> Iterator[Measurement]:
    with _hogs():
        yield from _delays(laboratory, LOADED)


def _brief(laboratory: Laboratory) -> Iterator[Measurement]:
    errors_us = [laboratory.delay_error_us(BRIEF_OWD_MS, BRIEF_PROBES) for _ in range(ROUNDS)]
    for name, q, bound in (("p50", 50, BRIEF_P50_US), ("p99", 99, BRIEF_P99_US)):
        value = float(np.median([np.percentile(each, q) for each in errors_us]))
        name = f"delay error at {BRIEF_OWD_MS} ms, {name}"
        yield Measurement(name=name, value=value, bound=bound, unit="µs")
    rates_mbps = [laboratory.burst(BRIEF_MBPS, BRIEF_BURST)[0] for _ in range(ROUNDS)]
    error = abs(float(np.median(rates_mbps)) / BRIEF_MBPS - 1)
    name = f"rate error at {BRIEF_MBPS} Mbps"
    yield Measurement(name=name, value=error, bound=BRIEF_RATE_ERROR, unit="")
    yield from _brief_verdicts(laboratory)


def _brief_verdicts(laboratory: Laboratory) -> Iterator[Measurement]:
    yield from _verdicts(laboratory, "ge", BURSTY, BRIEF_VERDICTS)


_EXPERIMENTS: dict[Kind, Callable[[Laboratory], Iterable[Measurement]]] = {
    "full": _full,
    "under load": _under_load,
    "brief": _brief,
}


def _prober_error(laboratory: Laboratory) -> Iterator[Measurement]:
    error_us = laboratory.prober_error_us(DELAY_PROBES)
    for name, q in (("p50", 50), ("p99", 99)):
        value = float(np.percentile(error_us, q))
        yield Measurement(name=f"the prober's own error, {name}", value=value, bound=None, unit="µs")


def _delays(laboratory: Laboratory, bounds: Bounds) -> Iterator[Measurement]:
    for owd_ms in OWDS_MS:
        error_us = laboratory.delay_error_us(owd_ms, DELAY_PROBES)
        quantiles = np.percentile(error_us, [50, 99, 100])
        for name, value, bound in zip(Bounds._fields, quantiles, bounds, strict=True):
            name = f"delay error at {owd_ms} ms, {name}"
            yield Measurement(name=name, value=value, bound=bound, unit="µs")


def _rate(laboratory: Laboratory, rate_mbps: float, count: int) -> Iterator[Measurement]:
    measured_mbps, spread_us = laboratory.burst(rate_mbps, count)
    payload_mbps = measured_mbps * (FRAME_BYTES - HEADER_BYTES) / FRAME_BYTES
    where = f"at {rate_mbps} Mbps"
    yield Measurement(name=f"rate with headers {where}", value=measured_mbps, bound=None, unit="Mbps")
    yield Measurement(name=f"rate of payload {where}", value=payload_mbps, bound=None, unit="Mbps")
    error = abs(measured_mbps / rate_mbps - 1)
    yield Measurement(name=f"rate error {where}", value=error, bound=RATE_ERROR, unit="")
    name = f"error of the spread of a burst of {count} {where}"
    yield Measurement(name=name, value=spread_us, bound=SPREAD_ERROR_US, unit="µs")


def _queue(laboratory: Laboratory) -> Iterator[Measurement]:
    settings = LinkSettings.symmetric(0.3, 1, queue_packets=QUEUE_PACKETS)
    traffic = laboratory.send(settings, 5 * QUEUE_PACKETS)
    beside = len(set(traffic.numbers.tolist()) ^ set(range(QUEUE_PACKETS)))
    yield Measurement(name="packets beside the queue's capacity", value=beside, bound=0, unit="")


def _verdicts(laboratory: Laboratory, name: str, model: LossModel, count: int) -> Iterator[Measurement]:
    traffic = laboratory.send(LinkSettings.symmetric(100, 1, queue_packets=count), count, model=model)
    predicted = dropper.model.verdicts(model, SEED, count).astype(bool)
    recorded = traffic.verdicts
    differing = count if len(recorded) != count else int((recorded != predicted).sum())
    yield Measurement(
        name=f"recorded verdicts beside the oracle's, {name}", value=differing, bound=0, unit=""
    )
    beside = len(set(traffic.numbers.tolist()) ^ set(np.flatnonzero(~predicted).tolist()))
    yield Measurement(name=f"packets delivered beside the oracle's, {name}", value=beside, bound=0, unit="")


def _fast(laboratory: Laboratory) -> Iterator[Measurement]:
    spacing_ns = round(FULL_FRAME_BYTES * 8e3 / FAST_MBPS)
    settings = LinkSettings.symmetric(FAST_MBPS, 10, queue_packets=FAST_PACKETS)
    traffic = laboratory.send(settings, FAST_PACKETS, spacing_ns=spacing_ns, frame_bytes=FULL_FRAME_BYTES)
    lost = FAST_PACKETS - len(traffic.numbers)
    yield Measurement(name=f"packets lost at {FAST_MBPS} Mbps", value=lost, bound=0, unit="")


def _cpu(laboratory: Laboratory) -> Iterator[Measurement]:
    spacing_ns = round(FRAME_BYTES * 8e3 / CPU_MBPS)
    traffic = laboratory.send(
        LinkSettings.symmetric(CPU_MBPS, 10, queue_packets=CPU_PACKETS), CPU_PACKETS, spacing_ns=spacing_ns
    )
    if traffic.report.cpu_s is not None:
        percent = 100e9 * traffic.report.cpu_s / float(traffic.sent_ns[-1] - traffic.sent_ns[0])
        yield Measurement(
            name=f"CPU of the link at {CPU_MBPS} Mbps", value=percent, bound=3, unit="% of a core"
        )


@contextmanager
def _hogs() -> Iterator[None]:
    """Something that takes all that it gets of each core."""
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
