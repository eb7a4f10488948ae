"""`fecbench hunt`: in which networks does a variant do worse than another? A search over a design's space."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fecbench.runners.commands.console import arguments, completion
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import (
    design_of,
    implementations_in,
    open_database,
    options_of_builds,
)
from fecbench.runners.commands.console.destination import check_folder, writing
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.commands.console.time_left import TimeLeft
from fecbench.runners.hunt.budget import EMULATED_TRIALS
from fecbench.runners.hunt.hunt_question import SPACE, Sought
from fecbench.runners.refusal import Refusal
from fecbench.whole_files import write_text

if TYPE_CHECKING:
    from fecbench.runners.engines.admission import Jobs
    from fecbench.runners.hunt.hunt import Answer
    from fecbench.runners.hunt.hunt_question import Question
    from fecbench.runners.implementations.finding import Implementations
    from fecbench.runners.tasks.task import Carrier

STATUS = {"nothing": 0, "found": 1, "no answer": 3}
FOUND = "found.toml"
SPACE_FIGURE = "space.png"
TRIALS = 20_000


def hunt(
    design: Annotated[
        Path,
        typer.Argument(
            metavar="[DESIGN]",
            help="The design whose factors and workloads are the space.",
            autocompletion=completion.designs,
        ),
    ] = SPACE,
    arm: Annotated[
        str,
        typer.Option(help="The label of the variant that may do worse.", autocompletion=completion.variants),
    ] = "",
    against: Annotated[
        str,
        typer.Option(
            help="The label of the variant that it is compared with; by default what the design says.",
            autocompletion=completion.variants,
        ),
    ] = "",
    builds: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="OLD NEW",
            help="Compare two builds, as fecbench compare does, in place of variants: each a FOLDER or"
            " FOLDER@REVISION.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An option of both builds; repeatable."),
    ] = None,
    engines: Annotated[
        bool,
        typer.Option(
            "--engines",
            help="Look for networks in which emulation and virtual time disagree, for all variants or for"
            " --arm.",
        ),
    ] = False,
    sought: Annotated[
        Sought, typer.Option("--for", help="Look for networks in which it does worse, or better.")
    ] = "harm",
    trials: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help=f"Run so many trials at most; by default {TRIALS}. With --engines, emulate so many; by"
            f" default {EMULATED_TRIALS}.",
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.01, help="Take no longer, in place of --trials. How far it comes, the machine decides."
        ),
    ] = None,
    db: arguments.Database = arguments.DATABASE,
    output: arguments.OptionalOutputFolder = None,
    jobs: arguments.Jobs = "auto",
    link: arguments.Link = "auto",
    no_calibrate: arguments.NoCalibrate = False,
    implementations: arguments.ImplementationFolders = None,
    as_json: arguments.Json = False,
) -> int:
    """Search a design's space for networks in which a variant does worse than another: 1 when there are some.

    0 when none was found, 3 when nothing can be said. The design's factors and workloads are the space, its
    statistic and margin decide. Networks that look bad are measured again with fresh seeds, confirmed, and
    made as plain as they can be. The same command goes on after an interruption. With --output, the folder
    has found.toml, a design of what was found, hunt.json, and space.png: where it looked.
    """
    from fecbench.runners.commands.console.hunting import Hunter
    from fecbench.runners.engines.admission import parse_jobs
    from fecbench.runners.hunt.budget import budget

    time_left = None if minutes is None else TimeLeft(60 * minutes)
    if trials is not None and minutes is not None:
        raise Refusal("--trials and --minutes are given together: must be one of them")
    if engines:
        answer, where = _of_engines(
            *(design, arm, against, sought, builds, option or [], trials, time_left, db, output),
            *(parse_jobs("--jobs", jobs), link, not no_calibrate, implementations or []),
        )
        return _finish(answer, where, output, as_json=as_json, engines=True)
    if link != "auto":
        raise Refusal(f"--link {link}: is of emulated trials: give --engines, too")
    hunted, usable, folders = _question_of(
        design, arm, against, sought, builds, option or [], implementations or []
    )
    allowed = budget(trials or TRIALS, hunted.repetitions)
    if output is not None:
        check_folder("--output", output)
    hunter = Hunter(hunted, usable, parse_jobs("--jobs", jobs), calibrate=not no_calibrate)
    where = ["--db", db, *folders]
    with open_database(db, create=True) as database:
        if time_left is None:
            answer, _ = hunter.within(database, allowed)
        else:
            answer = hunter.for_so_long(database, time_left.before_answer())
    return _finish(answer, where, output, as_json=as_json)


def _finish(
    answer: Answer, where: Sequence[str], output: Path | None, *, as_json: bool, engines: bool = False
) -> int:
    """Print and write the answer; return the status."""
    from fecbench.runners.hunt import hunt_answer as answers

    document = answers.document(answer, where)
    if output is not None:
        _write(answer, document, output)
    if as_json:
        print_document(document)
    else:
        say("\n".join(answers.lines(answer, where)))
        if output is not None and answer.findings:
            check = f", then fecbench crosscheck {output / FOUND}," if engines else ""
            say(f"kept in {output / FOUND}: fecbench run {output / FOUND} --engine virtual{check} asks again")
    return STATUS[answer.verdict]


def _of_engines(
    design: Path,
    arm: str,
    against: str,
    sought: Sought,
    builds: tuple[str, str] | None,
    options: Sequence[str],
    trials: int | None,
    time_left: TimeLeft | None,
    db: str,
    output: Path | None,
    jobs: Jobs,
    link: Carrier,
    calibrate: bool,
    folders: Sequence[Path],
) -> tuple[Answer, list[str]]:
    """The answer about both engines, and the options by which any command finds its trials.

    Raises Refusal for an option that has nothing to do with it.
    """
    from fecbench.runners.commands.console.hunting import EngineHunter
    from fecbench.runners.hunt.engine_hunt import check_trials
    from fecbench.runners.hunt.engine_question import engine_question

    for name, is_given in (
        ("--against", against),
        ("--builds", builds),
        ("--option", options),
        ("--for", sought != "harm"),
    ):
        if is_given:
            raise Refusal(
                f"{name}: is not of --engines, which compares emulation with virtual time: leave it out"
            )
    check_trials(trials := trials or EMULATED_TRIALS)
    hunter = EngineHunter(
        engine_question(design_of(design), arm), implementations_in(folders), link, jobs, calibrate
    )
    if output is not None:
        check_folder("--output", output)
    hunter.check()
    words = [word for folder in folders for word in ("--implementations", str(folder))]
    with open_database(db, create=True) as database:
        if time_left is None:
            answer = hunter.within(database, trials)
        else:
            answer = hunter.for_so_long(database, time_left.before_answer())
    return answer, ["--db", db, *words]


def _question_of(
    design: Path,
    arm: str,
    against: str,
    sought: Sought,
    builds: tuple[str, str] | None,
    options: Sequence[str],
    folders: Sequence[Path],
) -> tuple[Question, Implementations, list[str]]:
    """The question, the implementations, and the options by which any command finds them.

    Raises Refusal where it is not clear what is to be compared.
    """
    from fecbench.runners.campaign.two_builds import NEW, OLD, two_builds
    from fecbench.runners.hunt.hunt_question import question
    from fecbench.runners.implementations.revisions import build_of

    base = design_of(design)
    if builds is None:
        if not arm:
            labels = ", ".join(repr(variant.label) for variant in base.variants)
            raise Refusal(f"--arm is missing: must be the label of a variant of {base.path}: {labels}")
        if options:
            raise Refusal(
                f"--option {options[0]}: is of builds: give --builds OLD NEW, or write it in the design"
            )
        words = [word for folder in folders for word in ("--implementations", str(folder))]
        return question(base, arm, against, sought), implementations_in(folders), words
    for name, value in (("--arm", arm), ("--against", against), ("--implementations", folders)):
        if value:
            raise Refusal(f"{name}: is of variants, and --builds compares two builds: leave out one of them")
    old, new = (
        build_of(f"--builds {which}", word) for which, word in zip(("OLD", "NEW"), builds, strict=True)
    )
    both = two_builds(base, old, new, options_of_builds(options))
    return question(both.design, NEW, OLD, sought), both.implementations, both.arguments()


def _write(answer: Answer, document: dict[str, object], output: Path) -> None:
    from fecbench.runners.hunt import hunt_answer as answers

    output.mkdir(parents=True, exist_ok=True)
    design = answers.design_of_found(answer)
    with writing("--output", output):
        write_text(output / "hunt.json", json.dumps(document, indent=1) + "\n")
        if design is None:
            (output / FOUND).unlink(missing_ok=True)
        else:
            write_text(output / FOUND, design.text)
        _draw(answer, output / SPACE_FIGURE)


def _draw(answer: Answer, path: Path) -> None:
    """Draw the space: where it looked, and what it found."""
    # Imported here: it takes longer to load than a short hunt takes to be read.
    import pandas as pd

    from fecbench.results.figures import NothingToDraw, hunted_space, save
    from fecbench.runners.hunt.shrinking import effect_of

    question = answer.question
    rows = [{**network.document(), "effect": effect} for network, effect in answer.looked_at]
    finding_rows = [
        {**finding.network.document(), "effect": math.exp(effect_of(finding.ratio))}
        for finding in answer.findings
    ]
    columns = ["workload", *question.design.factors, "effect"]
    margin = question.design.margin if answer.share is None else answer.share.margin
    try:
        figure = hunted_space(
            pd.DataFrame(rows, columns=columns),
            pd.DataFrame(finding_rows, columns=columns),
            question.space.scales,
            margin,
            question.design.title,
            question.effect,
        )
    except NothingToDraw as nothing:
        note(str(nothing))
        return
    save(figure, path)
