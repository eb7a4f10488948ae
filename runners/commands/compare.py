"""`fecbench compare`: is a new build of an implementation slower than an old one?"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fecbench.errors import BadInput, Failed
from fecbench.quantities import counted
from fecbench.results.store.records import CampaignInfo, StoredTrial
from fecbench.runners import scratch
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import design_of, open_database, options_of_builds
from fecbench.runners.commands.console.destination import check_file, check_folder, writing
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.commands.console.time_left import TimeLeft
from fecbench.runners.refusal import Refusal
from fecbench.whole_files import write_text

if TYPE_CHECKING:
    from fecbench.results.gate import build_answer, for_ci
    from fecbench.results.history import entries
    from fecbench.results.report.rerun_pair import RerunPair
    from fecbench.results.store.database import Database
    from fecbench.runners.campaign.limited_rounds import LimitedRounds
    from fecbench.runners.campaign.request import Request
    from fecbench.runners.campaign.two_builds import TwoBuilds
    from fecbench.runners.implementations.engine_name import EngineName
    from fecbench.runners.implementations.revisions import Build

RECOVERY = Path("recovery")
STATUS = {"fails": 1, "slower": 1, "undecided": 3}
"""The exit status of a verdict; of any other 0."""
HUNTED = {"nothing": 0, "found": 1, "no answer": 3}
"""Likewise of a hunt, where the verdict alone would be 0."""
SKIP, END = 125, 128
"""Statuses by which git bisect run leaves a commit out, and ends the search."""
FILES = ("summary.md", "junit.xml", "compare.json")


def compare(
    old: Annotated[
        str,
        typer.Argument(
            metavar="[OLD]",
            show_default=False,
            help="A build: FOLDER as it is, or FOLDER@REVISION of git. By default where NEW's branch began.",
        ),
    ] = "",
    new: Annotated[
        str,
        typer.Argument(
            metavar="[NEW]",
            show_default=False,
            help="Another build of the same implementation. By default this folder as it is.",
        ),
    ] = "",
    design: Annotated[
        Path,
        typer.Argument(metavar="[DESIGN]", help="Whose networks and workloads they meet.", show_default=True),
    ] = RECOVERY,
    minutes: Annotated[
        float,
        typer.Option(min=0.01, help="Take no longer, decided or not; building comes on top."),
    ] = 10.0,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An option of both builds; repeatable."),
    ] = None,
    margin: arguments.Margin = None,
    hunt: Annotated[
        bool,
        typer.Option(
            help="Then search for as long again between the networks, in the space of the design hunt-fec,"
            " for one in which NEW is slower. In virtual time alone."
        ),
    ] = False,
    engine: Annotated[
        Literal["auto", "virtual", "local"],
        typer.Option(help="auto: virtual where both builds have a simulator, else local."),
    ] = "auto",
    db: arguments.Database = arguments.DATABASE,
    jobs: arguments.Jobs = "auto",
    link: arguments.Link = "auto",
    no_calibrate: arguments.NoCalibrate = False,
    output: arguments.OptionalOutputFolder = None,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append the verdict with its commits to this file, which fecbench history shows.",
        ),
    ] = None,
    bisect: Annotated[
        bool,
        typer.Option(
            help="For git bisect run: end with 125 where NEW cannot be built or it is undecided, and with 128"
            " for what ends the search. A folder without changes is built as the commit that it is of."
        ),
    ] = False,
    as_json: arguments.Json = False,
) -> int:
    """Compare two builds of an implementation: 0 when NEW is not slower, 1 when it is, 3 for undecided.

    It is slower over all networks, in one workload, in its slowest downloads or in a single network, or it
    fails where OLD does not (1, too). Both meet the same losses in the networks of the design, until the
    difference is decided at its margin. With --output, the folder has summary.md, junit.xml, compare.json and
    the report.
    """
    from fecbench.results.gate import build_answer, for_ci
    from fecbench.results.gate.measuring import settled
    from fecbench.results.history import entries
    from fecbench.runners.campaign import elsewhere
    from fecbench.runners.campaign.elsewhere import builds_document
    from fecbench.runners.campaign.limited_rounds import LimitedRounds
    from fecbench.runners.campaign.request import request
    from fecbench.runners.campaign.two_builds import NEW, OLD, campaign_name, engine_of_both, two_builds
    from fecbench.runners.commands.console.gate_progress import GateReporter
    from fecbench.runners.commands.console.hunting import Hunter
    from fecbench.runners.commands.console.running import run_here
    from fecbench.runners.engines.admission import parse_jobs
    from fecbench.runners.hunt import hunt_answer as answers
    from fecbench.runners.hunt.hunt_question import SPACE, question
    from fecbench.runners.implementations.base import clean_commit, description, swapped, words
    from fecbench.runners.implementations.revisions import build_of
    from fecbench.runners.sandbox import isolation
    from fecbench.runners.tasks.task import VIRTUAL

    with _ends_of(bisect):
        time_left = TimeLeft(60 * minutes)
        if output is not None:
            check_folder("--output", output)
        if history is not None:
            check_file("--history", history, [".jsonl"])
        choices = options_of_builds(option or [])
        base = design_of(design)
        with time_left.stopped():
            first, second = (
                build_of(where, word)
                for where, word in zip(
                    ("OLD", "NEW"), words(old, clean_commit(new or ".") if bisect else new), strict=True
                )
            )
        builds = two_builds(base, first, second, choices, margin)
        name: EngineName = engine_of_both(first, second) if engine == "auto" else engine
        campaign_request = request(
            builds.design,
            builds.implementations,
            name=campaign_name(builds, name),
            backend=VIRTUAL if name == "virtual" else link,
            jobs=parse_jobs("--jobs", jobs),
            calibrate=not no_calibrate,
        )
        _check_times(campaign_request)
        if hunt and name == "local":
            raise Refusal(
                "--hunt: searches in virtual time alone, and a build has no simulator: leave it out"
            )
        if name == "local":
            isolation.require("fecbench compare")
        note(description("old", first))
        note(description("new", second))
        if warning := swapped(first, second):
            note(warning)
        if builds.left_out:
            note(f"left out, since the implementation has no such workload: {', '.join(builds.left_out)}")
        with open_database(db, create=True) as database:
            limit_s = time_left.before_answer()
            plan = LimitedRounds(campaign_request, database, limit_s, lambda info: settled(database, info))
            reporter = GateReporter(database, limit_s)
            info = run_here(campaign_request, database, plan, ahead=True, reporter=reporter)
            gate_answer = build_answer.answer(database, info, plan.share)
            commands = partial(_replays, db, builds)
            document = {
                "implementation": first.implementation.declaration.name,
                **for_ci.document(gate_answer, commands),
                "ended": _ended(gate_answer, plan),
                "builds": builds_document(first, second),
                "replays": elsewhere.document(info, _trials_of(database, gate_answer)),
            }
            if output is not None:
                _write(gate_answer, commands, document, output)
            if not as_json:  # a report takes longer
                again = partial(_again, db, builds, output)
                say("\n".join(_lines(gate_answer, again, plan)))
                sys.stdout.flush()
            if output is not None:
                _report(gate_answer, database, info, builds, output, tell=not as_json)
            hunted = None
            if hunt:
                both = two_builds(design_of(SPACE), first, second, choices, margin)
                harm_question = question(both.design, NEW, OLD, "harm")
                hunter = Hunter(
                    harm_question, both.implementations, campaign_request.jobs, calibrate=not no_calibrate
                )
                hunted = hunter.for_so_long(database, 60 * minutes)
        where = ["--db", db, *builds.arguments()]
        if hunted is not None:
            document["hunt"] = answers.document(hunted, where)
            if output is not None:
                _write(gate_answer, commands, document, output)
        if history is not None:
            versions = {arm: _version(build) for arm, build in ((OLD, first), (NEW, second))}
            entries.append(history, entries.entry_of(document, versions, _now(), base.name))
        if as_json:
            print_document(document)
        elif hunted is not None:
            say("\n".join(answers.lines(hunted, where)))
        status = STATUS.get(gate_answer.verdict, 0)
        if hunted is not None and not status:
            status = HUNTED[hunted.verdict]
        return SKIP if bisect and status == STATUS["undecided"] else status


@contextmanager
def _ends_of(bisect: bool) -> Iterator[None]:
    """Make of an error, with `bisect`, the end of a step of git bisect run: only where NEW cannot be built is
    the commit left out. Any other error would be that of every commit."""
    from fecbench.runners.implementations.revisions import Unbuildable

    try:
        yield
    except (BadInput, Failed, OSError) as error:
        if not bisect:
            raise
        note(str(error))
        is_of_commit = isinstance(error, Unbuildable) and str(error).startswith("NEW ")
        raise typer.Exit(SKIP if is_of_commit else END) from None


def _version(build: Build) -> entries.Version:
    from fecbench.results.history import entries
    from fecbench.runners.implementations.base import origin

    of = origin(build)
    return entries.Version(
        word=build.word, commit=of.commit, committed_at=of.committed_at, changed=of.changed
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _check_times(campaign_request: Request) -> None:
    """Raises Refusal for a workload that is not compared by a time: slower is said of times alone."""
    from fecbench.results import metrics

    for label, activity in campaign_request.experiment.activities.items():
        metric = metrics.of(activity.workload.compared_with(activity.chosen))
        if not metric.is_time:
            raise Refusal(
                f"{campaign_request.design.path}: workload {label} is compared by {metric.name}, which is no"
                " time: choose a design of downloads, uploads or pages"
            )


def _replays(db: str, builds: TwoBuilds, old_trial: int, new_trial: int) -> list[str]:
    """The commands that replay a trial of each build, with qlog."""
    arguments = ("--db", db, *builds.arguments())
    return [
        shlex.join(["fecbench", "replay", str(trial), *arguments, "--output", f"trial-{trial}"])
        for trial in (old_trial, new_trial)
    ]


def _trials_of(database: Database, answer: build_answer.Answer) -> list[StoredTrial]:
    """The trials of the pairs that the answer names."""
    numbers = [(pair.old_trial, pair.new_trial) for pair in answer.worst]
    numbers += [(pair.old_trial, pair.new_trial) for pair in answer.measured.failed.pairs]
    return [_trial(database, number) for pair in numbers for number in pair]


def _trial(database: Database, number: int) -> StoredTrial:
    stored = database.trial(None, number)
    assert stored is not None
    return stored


def _report(
    answer: build_answer.Answer,
    database: Database,
    campaign: CampaignInfo,
    builds: TwoBuilds,
    output: Path,
    *,
    tell: bool,
) -> None:
    """Write the report, with the worst pairs; `tell` where each pair parts, and where the report is.

    The picture of each pair is there before the next one is run: whoever looks for the cause need not
    wait for the page.
    """
    from fecbench.results.analysis.parting import parting_of
    from fecbench.results.report.report import report
    from fecbench.runners.campaign.two_builds import NEW, OLD

    pairs = []
    for number, pair in enumerate(_rerun(answer, database, campaign, builds), 1):
        pairs.append(pair)
        picture = _draw(pair, output / f"worst-{number}.png")
        if tell:
            say(f"worst {number}: {parting_of(pair.old, pair.new, (OLD, NEW))}")
            say(f"  {picture}")
            sys.stdout.flush()
    paths = report(database, campaign, output, gate=answer, pairs=pairs)
    if tell:
        say(f"report {paths.html}")


def _draw(pair: RerunPair, path: Path) -> Path:
    """Draw both trials of a pair over one axis; return the path of the picture."""
    from fecbench.results.figures import both_over_time, save
    from fecbench.runners.campaign.two_builds import NEW, OLD

    with writing("--output", path):
        save(both_over_time(pair.old, pair.new, (OLD, NEW)), path)
    return path


def _rerun(
    answer: build_answer.Answer, database: Database, campaign: CampaignInfo, builds: TwoBuilds
) -> Iterator[RerunPair]:
    """Run the worst pairs again, and yield their courses; a pair that cannot be run is left out, which is
    noted."""
    from fecbench.results.gate import build_answer
    from fecbench.results.report.rerun_pair import RerunPair
    from fecbench.runners.campaign.recorded_course import course_of
    from fecbench.runners.campaign.replay import replay

    for number, one in enumerate(answer.worst, 1):
        courses = []
        with scratch.folder() as folder:
            for trial in (one.old_trial, one.new_trial):
                try:
                    again = replay(
                        campaign, _trial(database, trial), builds.implementations, folder / str(trial)
                    )
                    courses.append(course_of(again, folder / str(trial)))
                except BadInput as problem:
                    note(f"trial {trial} is not drawn: {problem}")
                    break
        if len(courses) == 2:
            heading = f"{build_answer.network(one)}: {build_answer.ratio_in(one)}"
            yield RerunPair(
                heading, courses[0], courses[1], f"fecbench replay --from compare.json worst {number}"
            )


def _again(
    db: str, builds: TwoBuilds, output: Path | None, where: str, old_trial: int, new_trial: int
) -> str:
    """The command that runs a pair again and draws both: by the file that was written, if there is one."""
    if output is not None:
        return f"{shlex.join(['fecbench', 'replay', '--from', str(output / FILES[-1])])} {where}"
    numbers = [str(old_trial), str(new_trial)]
    return shlex.join(["fecbench", "diff", *numbers, "--db", db, *builds.arguments()])


def _ended(answer: build_answer.Answer, plan: LimitedRounds) -> str:
    """Return why measuring ended."""
    if plan.is_decided and answer.verdict == "undecided":
        return "no more trials were run, for each would fail again"
    return plan.why


def _lines(
    answer: build_answer.Answer, again: Callable[[str, int, int], str], plan: LimitedRounds
) -> Iterator[str]:
    from fecbench.results.gate import build_answer
    from fecbench.results.gate.verdict import shown

    yield build_answer.headline(answer)
    yield f"{counted(answer.measured.pairs, 'pair')}; {_ended(answer, plan)}"
    if failed := build_answer.failures(answer):
        yield failed
    for number, pair in enumerate(answer.measured.failed.pairs, 1):
        yield build_answer.failing(answer, pair)
        yield f"  {again(f'failing {number}', pair.old_trial, pair.new_trial)}"
    yield build_answer.counts(answer)
    yield build_answer.slow_ends(answer)
    for label, ratio in answer.measured.workloads.items():
        yield f"  {label}: {shown(ratio)}"
    yield from answer.where
    for number, one in enumerate(answer.worst, 1):
        yield f"{build_answer.network(one)}: {build_answer.ratio_in(one)}"
        yield f"  {again(f'worst {number}', one.old_trial, one.new_trial)}"


def _write(
    answer: build_answer.Answer, commands: for_ci.Commands, document: dict[str, Any], folder: Path
) -> None:
    """The files for CI, beside the report."""
    from fecbench.results.gate import for_ci

    texts = (for_ci.markdown(answer, commands), for_ci.junit(answer), json.dumps(document, indent=1) + "\n")
    with writing("--output", folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(FILES, texts, strict=True):
        with writing("--output", folder / name):
            write_text(folder / name, text)
