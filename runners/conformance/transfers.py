"""Trials of an implementation after a first transfer has succeeded: contents of other sizes, the counters of
the two ends, FEC on and off, a silent server, and the content of a seed.

That two ends of one implementation agree on the content does not make it right: both may be wrong alike. So
another implementation downloads from it, and serves it, where the two can talk to each other.
"""

import re
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from fecbench.runners.conformance.complaints import (
    hint_of_repair,
    how_ended,
    problem_of_done,
    problem_of_start,
    problem_of_success,
    seen_repair,
)
from fecbench.runners.conformance.loopback import Loopback
from fecbench.runners.conformance.part import Part, part_of
from fecbench.runners.tasks import series
from fecbench.runners.tasks.task import PairTask, Role
from fecbench.runners.tasks.validity import USUAL
from fecbench.runners.trial.endpoint import UNSUPPORTED, Endpoint
from fecbench.runners.trial.judging.plausibility import (
    COUNTERS,
    Way,
    hop_of,
    problems_of_counters,
    problems_of_fec,
    problems_of_peers,
)
from fecbench.runners.trial.transfer import READY_LIMIT_S
from fecbench.runners.workloads import TOLD

CONTENT = "content of the seed"
"""The part that says whether the content is right."""
OTHER_CONTENT = "SHA-256|is not that of the content"
"""Pattern of what our clients report about such a content."""
SIZES = (0, 1, 1_000_000)
DIRECTIONS = {"download": "down", "upload": "up"}
TRANSFER_LIMIT_S = 30.0
OBEY_LIMIT_S = 3.0
# Deadline of a client whose server is silent, and the time within which it must end after that.
SILENCE_S, END_LIMIT_S = 1.0, 5.0
# For stacks that may not be able to talk to each other at all.
ENCOUNTER_S = 5.0


class Ends(NamedTuple):
    """A client and its server after their end, and their first fault."""

    client: Endpoint | None
    server: Endpoint
    problem: str

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        client = self.client.metrics if self.client else None
        return {"client": client or {}, "server": self.server.metrics or {}}


def transfer(
    serving: Loopback,
    asking: Loopback,
    workload: Mapping[str, Any],
    deadline_s: float,
    *,
    series: Sequence[str] = (),
    papers: Mapping[Role, Path] = MappingProxyType({}),
    **options: Any,
) -> Ends:
    """Run one transfer from start to end.

    `series` are those to record, `options` those of `server` and `client`, and `papers` other folders of
    certificates for them.
    """
    common: dict[str, Any] = {"series": series, "deadline_s": deadline_s}

    def start(place: Loopback, role: Role) -> Endpoint:
        choices = options.get(role, {})
        return place.start(role, workload, options=choices, certificates=papers.get(role), **common)

    server = start(serving, "server")
    try:
        serving.await_ready(server)
        if problem := problem_of_start(server, READY_LIMIT_S):
            return Ends(None, server, problem)
        client = start(asking, "client")
        asking.await_end(client, deadline_s + END_LIMIT_S)
        problem = problem_of_success("client", client) or problem_of_done("client", client)
        server.signal(signal.SIGTERM)
        serving.await_end(server, OBEY_LIMIT_S)
        if server.exit_code is None:
            problem = problem or f"the server still runs {OBEY_LIMIT_S:g} s after SIGTERM"
        problem = problem or problem_of_success("server", server) or problem_of_done("server", server)
        return Ends(client, server, problem)
    finally:
        asking.end()
        serving.end()


def sizes(loopback: Loopback, name: str) -> Iterator[Part]:
    """Transfers without content, of one byte and of many; of the last, what both ends count."""
    for size in SIZES if name in DIRECTIONS else ():
        workload = {"name": name, "size_bytes": size}
        ends = transfer(loopback, loopback, workload, TRANSFER_LIMIT_S)
        yield part_of(f"{name}: {size} bytes", ends.problem, "both ends succeeded; SIGTERM ended the server")
        if ends.problem:
            return
    if name in DIRECTIONS:
        yield from _counters(name, ends.metrics, size)


def _counters(name: str, metrics: Mapping[str, Mapping[str, float]], size: int) -> Iterator[Part]:
    roles = ("client", "server")
    problems = [problem for role in roles for problem in problems_of_counters(role, metrics[role])]
    for sender, receiver in (roles, roles[::-1]):
        way = Way("up", sender, receiver, metrics[sender], metrics[receiver], 0)
        problems += problems_of_peers(USUAL.closing_packets, way)
    sender, receiver = roles if DIRECTIONS[name] == "up" else roles[::-1]
    for role, counter in ((sender, "bytes_sent"), (receiver, "bytes_received")):
        if (counted := metrics[role].get(counter, size)) < size:
            problems.append(f"{role}: {counter} = {counted:g}: the content alone has {size} bytes")
    yield part_of(f"{name}: counters", "; ".join(problems), "what both ends count is possible")
    lacking = [counter for counter in COUNTERS if not any(counter in metrics[role] for role in roles)]
    without = f"optional, and not reported: {', '.join(lacking)}" if lacking else "all are reported"
    yield part_of(f"{name}: optional counters", "", without)


def fec(loopback: Loopback, samples: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    """Yield whether repair symbols are sent with FEC on, and none with FEC off, for each of these
    workloads."""
    switch = loopback.implementation.declaration.fec
    if switch is None:
        yield part_of("FEC", "", "optional: without [fec] in impl.toml nothing is said or demanded of FEC")
        return
    on = loopback.implementation.options_with_fec()
    if on is None:
        yield part_of("FEC on", "", "no single option turns FEC on", tried=False)
    repair: list[float] = []
    for sample in samples:
        if on is not None:
            choices = ", ".join(f"{name} = {value!r}" for name, value in on.items()) or "the defaults"
            yield _fec_part(loopback, sample, "on", on, f"repair symbols were sent with {choices}", repair)
        yield _fec_part(loopback, sample, "off", switch.off, "no repair symbol was sent", [])
    if on is not None:
        yield seen_repair("repair symbols", repair)


def _fec_part(
    loopback: Loopback,
    sample: Mapping[str, Any],
    turned: str,
    choices: Mapping[str, object],
    good: str,
    counted: list[float],
) -> Part:
    """`counted` gets how many repair packets were sent."""
    part = f"{sample['name']}: FEC {turned}"
    workload = dict(sample)
    if sample["name"] in DIRECTIONS:
        workload["size_bytes"] = SIZES[-1]
    ends = transfer(loopback, loopback, workload, TRANSFER_LIMIT_S, server=choices, client=choices)
    end, demand = loopback.end_of(choices), TOLD[sample["name"]].demand_of(workload)
    pair = PairTask(client=end, server=end, workload=workload, demand=demand)
    problems = list(problems_of_fec(pair.demand, hop_of(pair, 0, ends.metrics), USUAL.short_packets))
    repair = sum(metrics.get("repair_sent", 0) for metrics in ends.metrics.values())
    counted.append(repair)
    is_owed = demand.up_bytes or demand.down_bytes or turned == "off"
    if not (end.owes_repair or repair or turned == "off"):
        why = "none was sent, and repair_may_lack of impl.toml says that it may be so with these options"
        return part_of(part, ends.problem or "; ".join(problems), why, tried=bool(ends.problem or problems))
    if ends.problem or problems or is_owed or repair:
        problem = "; ".join(problems)
        problem += hint_of_repair(problem, loopback.implementation, choices)
        return part_of(part, ends.problem or problem, good)
    return part_of(part, "", "so small a transfer of it owes no repair symbol, and had none", tried=False)


def of_series(loopback: Loopback, workload: Mapping[str, Any]) -> Iterator[Part]:
    """Whether both ends of a transfer leave each series that impl.toml names."""
    of_workloads = {name for workload in TOLD.values() for name in workload.series}
    names = [name for name in loopback.implementation.declaration.series if name not in of_workloads]
    if not names:
        return
    problem = transfer(loopback, loopback, workload, TRANSFER_LIMIT_S, series=names).problem
    if not problem:
        problem = "; ".join(_problems_of_series(loopback, names))
    yield part_of("series", problem, f"both ends left {', '.join(names)}")


def _problems_of_series(loopback: Loopback, names: Sequence[str]) -> Iterator[str]:
    for role, folder in loopback.log_folders.items():
        try:
            for name, content in series.collect(folder, dict.fromkeys(names, series.LIMIT_BYTES)).items():
                series.table(name, content)
        except series.SeriesError as error:
            yield f"the {role}: {error}"


def deadline(loopback: Loopback, workload: Mapping[str, Any]) -> Iterator[Part]:
    """Whether a client whose server says nothing ends by itself."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(loopback.address)
        client = loopback.start("client", workload, deadline_s=SILENCE_S)
        loopback.await_end(client, SILENCE_S + END_LIMIT_S)
    problem = ""
    if client.exit_code is None:
        problem = f"a client with deadline_s = {SILENCE_S:g}, whose server says nothing, does not end"
    elif client.exit_code in (0, UNSUPPORTED):
        problem = f"a client whose server says nothing {how_ended(client)}; it must fail"
    loopback.end()
    yield part_of("deadline_s", problem, "a client whose server says nothing fails in time")


def content(loopback: Loopback, other: Loopback) -> Iterator[Part]:
    """Whether the content is that of its seed: by another implementation, as client and as server."""
    workload = {"name": "download", "size_bytes": SIZES[-1]}
    name, part = other.implementation.declaration.name, CONTENT
    own, of_other = (place.implementation.declaration.plain_options for place in (loopback, other))
    ends = transfer(loopback, other, workload, ENCOUNTER_S, server=own, client=of_other)
    if ends.client is not None and re.search(OTHER_CONTENT, ends.client.stderr):
        problem = f"{name}'s client gets another content than that of content_seed (SplitMix64's words)"
        yield part_of(part, problem, "")
    elif ends.problem:
        yield part_of(part, "", f"{name}, which would tell, cannot talk to it: {ends.problem}", tried=False)
    else:
        yield part_of(part, "", f"{name}'s client gets the same")
        ends = transfer(other, loopback, workload, ENCOUNTER_S, server=of_other, client=own)
        yield part_of("a server of another stack", ends.problem, f"a download from {name}'s server succeeds")
