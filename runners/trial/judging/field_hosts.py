"""Doubts about a trial in the field: about the hosts of both ends. Nobody vouches for the path between them.

A trial is invalid where a host kept its endpoint from running, a socket or an interface of one was full, a
clock leapt, an address, a route or the MTU changed within its block, or the near host had other traffic.
"""

from collections.abc import Iterator

from fecbench.runners.tasks.outcome import HostOutcome, Outcome, PathOutcome
from fecbench.runners.tasks.task import Task
from fecbench.runners.tasks.validity import Validity
from fecbench.runners.trial.judging import plausibility

CLOCK_LEAP_S = 0.1
"""Largest change of a clock of the day: one that is slewed changes less in a transfer."""
OTHERS_AT_LEAST_BYTES, OTHERS_SHARE = 50_000, 0.05
"""Other traffic of the near host that does not matter: so much, or such a share of the transfer's own."""
HEADERS_BYTES = 62
"""Headers of UDP, IPv6 and Ethernet: those of IPv4 are shorter."""
_IS_OF_OTHERS = ("receive drops", "receive errors")
"""Places of an interface that count frames which nobody asked for, too."""


def doubts(task: Task, outcome: Outcome, duration_s: float) -> Iterator[str]:
    """Yield the reasons why nobody can vouch for the trial."""
    assert outcome.path is not None
    yield from outcome.path.changes
    yield from _doubts_of_others(outcome)
    for end, host in outcome.path.hosts.items():
        yield from (f"{end}: {doubt}" for doubt in _doubts_of_host(host, task.validity, duration_s))
    yield from plausibility.doubts_of_clock(task, outcome)


def _doubts_of_others(outcome: Outcome) -> Iterator[str]:
    """Yield the doubt of a near host that sent or received other things meanwhile. The far host may do so:
    it has the wider link."""
    assert outcome.path is not None
    host = outcome.path.hosts.get("client", HostOutcome())
    for direction, end, counted in (
        ("sent", "client", host.sent_bytes),
        ("received", "server", host.received_bytes),
    ):
        metrics = (outcome.endpoints[end].metrics if end in outcome.endpoints else None) or {}
        if counted is None or not {"bytes_sent", "packets_sent"} <= metrics.keys():
            continue
        packets = metrics["packets_sent"] + metrics.get("repair_sent", 0)
        own = metrics["bytes_sent"] + HEADERS_BYTES * packets
        others = counted - own
        if others > max(OTHERS_AT_LEAST_BYTES, OTHERS_SHARE * own):
            yield (
                f"client: this host {direction} {others / 1e3:.0f} kB of other traffic beside the"
                f" {own / 1e3:.0f} kB of the transfer"
            )


def _doubts_of_host(host: HostOutcome, validity: Validity, duration_s: float) -> Iterator[str]:
    bound_s = max(validity.stall_at_least_s, validity.stall_share * duration_s)
    stalled_s = host.longest_gap_s if host.stalled_s is None else host.stalled_s
    if stalled_s > bound_s:
        yield f"the endpoint was kept from running for {_excess(stalled_s, bound_s)}"
    bound_s = max(validity.stolen_at_least_s, validity.stolen_share * duration_s)
    if host.stolen_s is not None and host.stolen_s > bound_s:
        yield f"a hypervisor took a CPU for {_excess(host.stolen_s, bound_s)}"
    for place, count in host.discarded.items():
        if not place.endswith(_IS_OF_OTHERS):
            yield f"{count} packets were lost on the host: {place}"
    if abs(host.clock_leap_s) > CLOCK_LEAP_S:
        yield f"its clock leapt by {host.clock_leap_s:.3f} s"


def document(path: PathOutcome) -> dict[str, object]:
    """Return what a trial's `checks` keep of its path."""
    answered = [probe.rtt_ms for probe in path.probes if probe.rtt_ms is not None]
    reached = sum(not probe.lost_up for probe in path.probes)
    return {
        "name": path.name,
        "block": path.block,
        "place": path.place,
        "probes": len(path.probes),
        "lost_up": len(path.probes) - reached,
        "lost_down": reached - len(answered),
        "rtt_ms": sorted(answered)[len(answered) // 2] if answered else None,
        "least_rtt_ms": path.least_rtt_ms,
        "server_ahead_s": path.server_ahead_s,
        "rested_s": path.rested_s,
        "is_rested": path.is_rested,
        "address": path.address,
        "outside": path.outside,
        "mtu": path.mtu,
        "ttl": path.ttl,
        "hosts": {name: host.model_dump() for name, host in path.hosts.items()},
    }


def _excess(measured_s: float, bound_s: float) -> str:
    return f"{1e3 * measured_s:.1f} ms, the bound is {1e3 * bound_s:.1f}"
