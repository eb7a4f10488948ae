"""`fecbench advise`: from a recording of a link, or from flags, to a decision about FEC."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fecbench.errors import BadInput
from fecbench.quantities import Kind, quantities
from fecbench.results.advice import CongestionControl
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.destination import check_file
from fecbench.runners.commands.console.quantity_options import one, parser
from fecbench.runners.commands.console.terminal import say
from fecbench.runners.paths import Estimate

if TYPE_CHECKING:
    from fecbench.results.advice import Network
    from fecbench.runners.own_network import Run
    from fecbench.runners.paths import Path as NetworkPath

NOTHING = 3
"""The exit status when nothing can be said."""
LIMIT_S = 30.0
"""No trial begins later than that."""
_FLAGS = {"rtt_ms": "--rtt", "bandwidth_mbps": "--bandwidth", "loss": "--loss"}


def _of(kind: Kind) -> Callable[[str], Estimate]:
    """Return a parser of a quantity or of a range of it."""

    def estimate(text: str, kind: Kind) -> Estimate:
        low, high = quantities(text, kind)
        return Estimate(math.sqrt(low * high) if low > 0 else (low + high) / 2, low, high, "flag")

    return parser(estimate, kind)


def advise(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE [OTHER]]",
            show_default=False,
            help="A recording of the link: the sender's qlog, a NetLog, a capture of TCP, captures of both"
            " sides, the output of ping, irtt or iperf3 -J, a mahimahi trace, or a list of losses.",
        ),
    ] = None,
    size: Annotated[
        float | None,
        typer.Option(
            "--size", "--size-bytes", metavar="50kB", parser=one("bytes"), help="How long the download is."
        ),
    ] = None,
    rtt: Annotated[
        Estimate | None,
        typer.Option(
            "--rtt", "--rtt-ms", metavar="80ms", parser=_of("ms"), help="The round-trip time without a queue."
        ),
    ] = None,
    bandwidth: Annotated[
        Estimate | None,
        typer.Option(
            "--bandwidth",
            "--bandwidth-mbps",
            metavar="20Mbit/s",
            parser=_of("Mbit/s"),
            help="The rate of the slowest link.",
        ),
    ] = None,
    loss: Annotated[
        Estimate | None,
        typer.Option(metavar="3%", parser=_of("share"), help="The share of packets that is lost, below 1."),
    ] = None,
    burst: Annotated[
        Estimate | None,
        typer.Option(
            metavar="2",
            parser=_of("number"),
            help="How many packets are lost in a row, on average. Without a file, 1 by default.",
        ),
    ] = None,
    queue_bdp: Annotated[
        Estimate | None,
        typer.Option(
            metavar="1",
            parser=_of("number"),
            help="The queue's limit, in bandwidth-delay products. By default what the file tells, or any.",
        ),
    ] = None,
    congestion_control: Annotated[
        CongestionControl, typer.Option(help="The congestion control that is used today.")
    ] = "cubic",
    trace: Annotated[
        int | None,
        typer.Option("--trace", min=1, help="Which recording to read, of a qlog or NetLog with several."),
    ] = None,
    of_path: Annotated[
        Path | None,
        typer.Option(
            "--path",
            metavar="FILE",
            help="In the place of a recording: the results database of a campaign of --engine field, whose"
            " path was observed.",
        ),
    ] = None,
    campaign: Annotated[
        str, typer.Option("--campaign", help="Which campaign of --path, where it has several.")
    ] = "",
    no_run: Annotated[
        bool, typer.Option("--no-run", help="Answer from recorded networks alone: do not run this one.")
    ] = False,
    db: Annotated[
        str | None,
        typer.Option("--db", help="Keep the trials in this database. By default they are not kept."),
    ] = None,
    jobs: arguments.Jobs = "auto",
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the recorded networks that it rests on: CSV or Parquet."),
    ] = None,
    as_json: arguments.Json = False,
) -> int:
    """Say whether to use FEC for a download over a link: from a recording of the link, or by flags.

    It measures the link in the recording, looks up recorded networks like it, and runs this one: noq-fec
    with and without FEC, beside Cubic and BBRv3, in virtual time: 320 pairs of each, for 30 s at most,
    and it tells where the time ended them. A flag counts in the place of what was measured, and may be a
    range: --rtt 60ms..90ms.

    The exit status is 3 when nothing can be said. The controller "tail" is RLC (3, 2, 20), which
    repairs the end of all data; "safe" adapts, and harms least where the network changes.
    """
    from fecbench.results.advice import advise as advice_for
    from fecbench.results.store.export import SUFFIXES, write
    from fecbench.runners.commands.console.advising import Answer, lines_of
    from fecbench.runners.own_network import decided

    if output is not None:
        check_file("--output", output, SUFFIXES)
    given = {"rtt_ms": rtt, "bandwidth_mbps": bandwidth, "loss": loss, "burst": burst, "queue_bdp": queue_bdp}
    flags = {name: value for name, value in given.items() if value is not None}
    files = _sources(files or [], of_path, campaign, trace)
    path = _path(files, trace, flags) if of_path is None else _with_flags(_observed(of_path, campaign), flags)
    network = _network(path, size, congestion_control, files)
    controls: tuple[CongestionControl, ...] = ("cubic", "bbr3")
    records = {
        control: advice_for(replace(network, congestion_control=control))
        for control in (controls if not no_run else (congestion_control,))
    }
    run, not_run = (None, "") if no_run else _run(path, round(network.size_bytes), db, jobs)
    decision = decided(run, records, congestion_control, records[congestion_control].margin)
    answer = Answer(network, path, tuple(files), records, run, not_run, decision)
    if output is not None:
        write(answer.advice.nearest, output)
    if as_json:
        print_document(_document(answer))
    else:
        say("\n".join(lines_of(answer)))
    return NOTHING if decision.do == "nothing can be said" else 0


def _path(files: list[Path], trace: int | None, given: dict[str, Estimate]) -> NetworkPath:
    """The path of the files, with flags in the place of what was measured."""
    from fecbench.runners.paths import Path as NetworkPath
    from fecbench.runners.paths import exactly, measured

    if len(files) > 2:
        raise BadInput(f"{files[2]}: is a third file: give one, or captures of both sides")
    if not files:
        if trace is not None:
            raise BadInput(f"--trace {trace}: is of a file, and there is none")
        return NetworkPath(form="flags", **{"burst": exactly(1.0), **given})  # type: ignore[arg-type]
    return _with_flags(measured(files[0], files[1] if len(files) > 1 else None, trace), given)


def _sources(files: list[Path], of_path: Path | None, campaign: str, trace: int | None) -> list[Path]:
    """Return the files that the path is read from. Raises BadInput for what does not go together."""
    if of_path is None:
        if campaign:
            raise BadInput(f"--campaign {campaign}: is of --path FILE, a results database")
        return files
    for word, value in (("FILE", files[0] if files else None), ("--trace", trace)):
        if value is not None:
            raise BadInput(f"--path {of_path} and {word} {value}: give one of them")
    return [of_path]


def _observed(database_file: Path, name: str) -> NetworkPath:
    """The path down of a campaign in the field, by which a download comes."""
    from fecbench.results.store.database import Database
    from fecbench.runners.own_network import emulation

    if not database_file.is_file():
        raise BadInput(
            f"--path {database_file}: is no file: give the database of fecbench run --engine field"
        )
    with Database.open(str(database_file), read_only=True) as database:
        campaigns = [info for info in database.campaigns() if info.engine == "field"]
        matching = [info for info in campaigns if not name or info.name == name]
        if len(matching) != 1:
            names = ", ".join(info.name for info in campaigns) or "none"
            raise BadInput(
                f"--path {database_file}: --campaign must name one campaign of --engine field: there are"
                f" {names}"
            )
        return emulation.observed(database, matching[0]).down


def _with_flags(path: NetworkPath, flags: dict[str, Estimate]) -> NetworkPath:
    """The path with flags in the place of what was measured."""
    for name in flags:
        if (before := getattr(path, name)) is not None:
            path = path.noting(
                f"{_flag(name)} counts in the place of what the file says, {before.value:.3g}."
            )
    if "burst" in flags or ("loss" in flags and path.burst is not None):
        path = replace(path, ends="", burst_s=None)
    return replace(path, **flags)  # type: ignore[arg-type]


def _flag(name: str) -> str:
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")


def _network(
    path: NetworkPath, size: float | None, congestion_control: CongestionControl, files: list[Path]
) -> Network:
    """The network that is looked up. Raises BadInput, which names the flags that are missing."""
    from fecbench.results.advice import Network

    missing = [flag for name, flag in _FLAGS.items() if getattr(path, name) is None]
    missing += ["--size"] if size is None else []
    if missing:
        where = f"{files[0]} ({path.form}) does not tell all: " if files else ""
        raise BadInput(f"{where}give {', '.join(missing)}, such as {_such(missing)}")
    assert path.rtt_ms is not None and path.bandwidth_mbps is not None and path.loss is not None
    assert size is not None
    is_lossless = path.loss.value == 0
    if path.burst is not None and path.burst.origin == "flag" and path.burst.value < 1:
        raise BadInput(f"burst = {path.burst.value:g}: must be 1 or more, and finite: packets lost in a row")
    burst = 1.0 if path.burst is None else path.burst.value
    if path.burst is None and path.burst_s is not None:
        from fecbench.topologies.link import FULL_FRAME_BYTES  # loads NumPy

        burst = max(1.0, path.burst_s.value * 1e6 * path.bandwidth_mbps.value / 8 / FULL_FRAME_BYTES)
    is_measured = path.burst is not None and path.burst.origin == "file"
    return Network(
        path.rtt_ms.value,
        path.bandwidth_mbps.value,
        path.loss.value,
        size,
        1.0 if is_lossless and is_measured else burst,
        congestion_control,
        None if path.queue_bdp is None else path.queue_bdp.value,
        by_time=path.ends == "time",
    )


def _such(flags: list[str]) -> str:
    examples = {"--rtt": "80ms", "--bandwidth": "20Mbit/s", "--loss": "3%", "--size": "50kB"}
    return " ".join(f"{flag} {examples[flag]}" for flag in flags)


def _run(path: NetworkPath, size_bytes: int, db: str | None, jobs: str) -> tuple[Run | None, str]:
    """Return what trials show in networks of the path; or None, and why there are none."""
    from fecbench.runners import own_network, scratch
    from fecbench.runners.campaign.request import request
    from fecbench.runners.campaign.rounds import Rounds
    from fecbench.runners.commands.console.choice import implementations_in, open_database
    from fecbench.runners.commands.console.running import run_here
    from fecbench.runners.engines.admission import parse_jobs
    from fecbench.runners.tasks.task import VIRTUAL

    at_once = parse_jobs("--jobs", jobs)
    if size_bytes > own_network.LONGEST_BYTES:
        return None, "a download that long takes too long to be run here."
    try:
        design = own_network.design_of(path, size_bytes)
        wanted = request(*(design, implementations_in(None)), backend=VIRTUAL, jobs=at_once, calibrate=False)
    except BadInput as refusal:
        return None, f"{refusal}."
    ends_at = time.monotonic() + LIMIT_S

    class Limited(Rounds):
        """Rounds of all missing trials, while there is time."""

        is_over = False

        def goes_on(self) -> bool:
            self.is_over = time.monotonic() >= ends_at
            return not self.is_over

    from fecbench.results.analysis import frames

    with ExitStack() as stack:
        where = db or str(stack.enter_context(scratch.folder()) / "own-network.sqlite")
        database = stack.enter_context(open_database(where, create=True))
        rounds = Limited(wanted, database)
        info = run_here(wanted, database, rounds)
        trials = frames.trials(database, info, {*own_network.METRICS})
    run = own_network.effects(trials)
    if run is not None and rounds.is_over and run.pairs < own_network.PAIRS:
        run = replace(run, end="by time")
    return run, "" if run is not None else "no download ended, or too few in the time."


def _document(answer: Any) -> dict[str, Any]:
    """The record's document as it always was; beside it what was measured and run, and the decision."""
    decision = answer.decision
    document = answer.advice.document()
    if answer.run is not None:
        words = {"turn FEC on": "use", "leave FEC off": "none", "nothing can be said": "nothing"}
        chosen = words.get(
            decision.do, {"shortens": "use", "no gain": "none", "open": "nothing"}[decision.fec]
        )
        document |= {"answer": chosen, "use": decision.use, "record": answer.advice.document()}
    return {
        **document,
        "decision": decision.document(),
        "path": answer.path.document(),
        "run": None if answer.run is None else answer.run.document(),
        "not_run": answer.not_run or None,
    }
