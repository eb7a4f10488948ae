"""Whether an implementation meets the QUIC interop runner's contract: trials over a link that loses nothing,
of contents from a byte to a megabyte, and of a test case that nobody has."""

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fecbench.results.store.records import TrialKey
from fecbench.runners.conformance import lossy_download
from fecbench.runners.conformance.emulated import download
from fecbench.runners.conformance.part import Part
from fecbench.runners.engines.engine import Engine
from fecbench.runners.engines.programs import engine_for
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox import isolation
from fecbench.runners.tasks.task import EndpointTask, Role, Task
from fecbench.runners.trial import certificates, ends
from fecbench.runners.trial.judge import Judgement, judge
from fecbench.topologies.link import Direction

SIZES = (10_000, 1, 1_000_000)
UNKNOWN_TESTCASE = "nobody-has-it"
NO_LOSSES: dict[Direction, dict[str, Any]] = {"up": {"model": "none"}, "down": {"model": "none"}}


@dataclass(frozen=True)
class Try:
    """A trial of the check, and the state that is right."""

    part: str
    size_bytes: int
    unknown: Role | None = None
    """The role that gets a test case that nobody has."""

    @property
    def right(self) -> str:
        return "ok" if self.unknown is None else "unsupported"


FIRST, *DOWNLOADS = (Try(f"download of {size_bytes} bytes", size_bytes) for size_bytes in SIZES)
UNKNOWN = (
    Try("unknown test case: the server", 1, "server"),
    Try("unknown test case: the client", 1, "client"),
)


def check(implementation: Implementation, keep: Path | None = None) -> list[Part]:
    """Check all parts of the contract that can be tried, in order.

    The files of endpoints move to `keep`, a folder for each trial, beside the certificates.
    """
    name = implementation.declaration.name
    try:
        implementation.check_built()
        programs = Part("programs", True, ", ".join(map(str, implementation.programs())))
    except Refusal as refusal:
        return [Part("programs", False, str(refusal))]
    try:
        isolation.require(f"fecbench implementations --check {name}")
    except Refusal as refusal:
        return [programs, Part("trials", False, str(refusal))]
    return [programs, *_tried(implementation, keep)]


def _tried(implementation: Implementation, keep: Path | None) -> Iterator[Part]:
    """Try a download. If it works, try others, and test cases that nobody has; else they would show
    nothing."""
    used = {implementation.declaration.name: implementation}
    with engine_for("local", used) as engine:
        first = list(_carried_out(engine, implementation, [FIRST], keep))
        yield from first
        if not all(part.good for part in first):
            return
        rest = list(_carried_out(engine, implementation, [*DOWNLOADS, *UNKNOWN], keep))
        yield from rest
    yield Part("certificates", True, "this contract asks no client to verify them", tried=False)
    if all(part.good for part in rest):
        yield from lossy_download.check(implementation)


def _carried_out(
    engine: Engine, implementation: Implementation, tries: Sequence[Try], keep: Path | None
) -> Iterator[Part]:
    tasks = [
        (
            TrialKey("check", tried.part, number, 0),
            _task(implementation, tried).model_copy(update={"capture": keep is not None}),
        )
        for number, tried in enumerate(tries)
    ]
    for finished in engine.run(tasks):
        tried, judgement = tries[finished.key.point], judge(finished.task, finished.outcome)
        if keep is not None and finished.folder is not None:
            _keep(finished.folder, keep, tried.part, implementation.declaration.certificates)
        engine.judged(finished, valid=True)
        yield Part(tried.part, judgement.state == tried.right, _detail(tried, judgement))


def _keep(trial: Path, keep: Path, part: str, kind: certificates.Kind) -> None:
    """Move a trial's folder; the certificates of all trials are beside it."""
    copied_certificates = keep / "certificates"
    if not copied_certificates.exists():
        shutil.copytree(certificates.of_kind(trial.parent, kind), copied_certificates)
    shutil.move(trial, keep / re.sub("[^A-Za-z0-9]+", "-", part))


def _detail(tried: Try, judgement: Judgement) -> str:
    state = f"{judgement.state}: {judgement.reason}" if judgement.reason else judgement.state
    if judgement.state == tried.right:
        return state
    if tried.unknown:
        return f"{state}; the {tried.unknown} must exit with 127"
    if judgement.state == "unsupported":
        return f"{state}; it ended with 127, as a shell that finds no program does: it is started in /logs"
    return f"{state}; it must arrive unchanged"


def _task(implementation: Implementation, tried: Try) -> Task:
    options = implementation.options({}, "the defaults")

    def end(role: Role) -> EndpointTask:
        end_task = ends.end_of(implementation, options, role=role)
        if role != tried.unknown or end_task.interop is None:
            return end_task
        unknown = end_task.interop.model_copy(update={"testcase": UNKNOWN_TESTCASE})
        return end_task.model_copy(update={"interop": unknown})

    return download(end("client"), end("server"), tried.size_bytes, NO_LOSSES)
