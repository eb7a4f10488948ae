"""`fecbench replay`: the same trial again, same seeds, with packet captures, qlog, TLS secrets and series."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fecbench.runners import scratch
from fecbench.runners.commands.console import arguments, completion
from fecbench.runners.commands.console.campaign_documents import print_document, trial_document
from fecbench.runners.commands.console.choice import implementations_in, one_trial, open_database
from fecbench.runners.commands.console.destination import (
    check_file,
    check_own_folder,
    checked_plot,
    fill_own_folder,
    writing,
)
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.commands.console.terminal_tables import print_table, table_of
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from fecbench.runners.campaign.replay import Replay
    from fecbench.runners.implementations.finding import Implementations

NOTHING = 3
"""The exit status when nothing can be said."""
REPORT = "replay.json"
"""File beside the recordings: both runs, as `--json` prints them."""
BY_HAND = "by-hand"
"""The folder from which both programs can be started again."""


def replay(
    trial: Annotated[
        list[str],
        typer.Argument(
            metavar="TRIAL",
            help="The number of the trial: fecbench show --trials tells it. With --from, worst or failing,"
            " and a number: worst 1.",
            autocompletion=completion.trials,
        ),
    ],
    output: arguments.OptionalOutputFolder = None,
    plot: arguments.TrialPlot = None,
    beside: Annotated[
        int | None,
        typer.Option(
            metavar="TRIAL",
            help="Run this trial again, too, and draw both in the figure of --plot, with the first packet at"
            " which they part.",
            autocompletion=completion.trials,
        ),
    ] = None,
    comparison_file: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="compare.json",
            help="Run a pair again that fecbench compare --output named, on any machine, as fecbench diff"
            " does. No database is needed.",
        ),
    ] = None,
    old: Annotated[
        str, typer.Option(metavar="BUILD", help="With --from: the old build, FOLDER or FOLDER@REVISION.")
    ] = "",
    new: Annotated[str, typer.Option(metavar="BUILD", help="With --from: the new build.")] = "",
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    implementations: arguments.ImplementationFolders = None,
    as_json: arguments.Json = False,
) -> int:
    """Run a trial again as it was and record everything; 0 when state and losses are the same, and in virtual
    time everything else. 3 when they were not recorded.

    --plot draws it over time: bytes sent and arrived, packets lost, repair and what it rebuilt, the
    congestion window, the RTT.

    The folder of --output holds packet captures, qlog, TLS secrets, every series that the implementations
    leave, replay.json with both runs, and by-hand/, from which the programs can be started over loopback.
    The database is not changed.
    """
    if comparison_file is not None:
        if beside is not None:
            raise Refusal(f"--beside {beside}: goes with a database: leave it out beside --from")
        return _replay_pair(comparison_file, trial, (old, new), output, plot, as_json)
    if old or new:
        raise Refusal(f"--{'old' if old else 'new'} {old or new}: goes with --from: leave it out")
    return _replay_trial(_number_of(trial), output, plot, beside, db, campaign, implementations, as_json)


def _number_of(words: list[str]) -> int:
    """The number of a trial of a database. Raises Refusal."""
    if len(words) > 1:
        raise Refusal(f"replay {' '.join(words)}: must be one number of a trial, unless --from names a file")
    if not (words[0].isascii() and words[0].isdigit()):
        raise Refusal(f"replay {words[0]}: must be the number of a trial: fecbench show --trials tells it")
    return int(words[0])


def _replay_pair(
    path: Path,
    words: list[str],
    builds: tuple[str, str],
    output: Path | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Run a pair of trials again that a comparison named."""
    from fecbench.runners.campaign.elsewhere import builds_for, pair_in
    from fecbench.runners.commands.console.both_trials import show_both

    if len(words) != 2 or not (words[1].isascii() and words[1].isdigit()):
        raise Refusal(f"--from {path}: {' '.join(words)}: must be worst or failing, and a number: worst 1")
    kind, number = words[0], int(words[1])
    pair = pair_in(path, kind, number)
    if plot is None or plot == arguments.UNNAMED:
        plot = Path(f"{kind}-{number}.png")
    check_file("--plot", plot, arguments.DRAWN)
    available = builds_for(pair, *builds)
    trials = [(pair.campaign, trial) for trial in pair.trials]
    return show_both("fecbench replay", trials, available, plot, output, as_json)


def _replay_trial(
    trial: int,
    output: Path | None,
    plot: Path | None,
    beside: int | None,
    db: str,
    campaign: str,
    implementations: list[Path] | None,
    as_json: bool,
) -> int:
    """Run a trial of a database again."""
    if output is None and plot is None:
        raise Refusal(f"replay {trial}: give --output FOLDER for all that it records, --plot, or both")
    if output is not None:
        check_own_folder("--output", output, REPORT)
    if plot is not None:
        plot = checked_plot(plot, trial)
    elif beside is not None:
        raise Refusal(f"--beside {beside}: is drawn: give --plot FILE, too")
    sentence = ""
    with open_database(db) as database:
        from fecbench.runners.campaign.replay import replay as run_again
        from fecbench.runners.commands.console.both_trials import draw_both
        from fecbench.runners.commands.console.simulators import note_free_simulators
        from fecbench.runners.sandbox import isolation

        available = implementations_in(implementations)
        info, stored = one_trial(database, campaign, trial)
        if info.provenance.get("engine", "local") == "local":
            isolation.require("fecbench replay")
        else:
            note_free_simulators()
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
        with scratch.folder(output) as folder:
            trial_folder = folder / "trial"
            result = run_again(info, stored, available, trial_folder)
            document: dict[str, Any] = {
                "same": result.same,
                "defaults": result.defaults,
                "differences": result.differences,
                "recorded": trial_document(info, result.recorded),
                "replayed": trial_document(info, result.replayed),
            }
            if plot is not None and beside is None:
                _draw(result, trial_folder, plot)
            elif plot is not None and beside is not None:
                other = run_again(*one_trial(database, campaign, beside), available, folder / "beside")
                sentence = draw_both(other, folder / "beside", result, trial_folder, plot)
            programs = None if output is None else _keep(result, available, trial_folder, output, document)
    for difference in result.differences:
        note(difference)
    if as_json:
        print_document(document)
    else:
        _print_comparison(document["recorded"], document["replayed"])
        say(comparison(result) + (f"; artefacts in {output}" if output is not None else ""))
        if plot is not None:
            say(f"{sentence}\nfigure {plot}" if sentence else f"figure {plot}")
        if programs is not None:
            say(f"its programs by hand, over loopback: {programs}")
    return 0 if result.same else 1 if result.is_comparable else NOTHING


def _keep(
    result: Replay, available: Implementations, trial_folder: Path, output: Path, document: dict[str, Any]
) -> str | None:
    """Move what the trial left into the folder; how its programs are started by hand, if they can be."""
    from fecbench.runners.campaign import by_hand

    by_hand_folder = output.absolute() / BY_HAND
    # Endpoints of the interop contract have a root of their own, which the harness makes.
    task = None if result.task is None or result.task.has_interop else result.task
    if task is not None:
        by_hand.leave(task, available, trial_folder / BY_HAND, by_hand_folder)
    fill_own_folder(output, trial_folder, REPORT, document)
    return None if task is None else by_hand.start_with(task, by_hand_folder)


def _draw(result: Replay, trial_folder: Path, plot: Path) -> None:
    """Draw the trial over time, and note what the figure lacks."""
    from fecbench.results.figures import NothingToDraw, course_over_time, save
    from fecbench.runners.campaign.recorded_course import course_of

    course = course_of(result, trial_folder)
    try:
        figure = course_over_time(course)
    except NothingToDraw as nothing:
        raise Refusal(f"--plot {plot}: {nothing}") from None
    with writing("--plot", plot):
        save(figure, plot)
    for line in course.notes:
        note(line)


def comparison(result: Replay) -> str:
    """Whether the trial went as it was recorded, in words.

    Two trials of one task that are ok met the oracle's verdicts, both of them: then their losses say nothing.
    """
    before, after = result.recorded.record.state, result.replayed.record.state
    if result.is_virtual:
        was, now = result.digests
        if was != now:
            return f"{after}, NOT as recorded: digest {now}, was {was}"
        if others := result.other_metrics:
            changes = ", ".join(
                f"{name} {value:.6g}, was {before:.6g}" for name, (before, value) in others.items()
            )
            return f"{after}, digest {now}, as recorded; NOT as recorded: {changes}"
        return f"{after}, digest {now}, as recorded"
    if before != after:
        return f"NOT as recorded: the state was {before}, and is {after}"
    if not result.is_comparable:
        return f"{after}, but not compared: the verdicts of its packets were not recorded"
    if not result.replayed.record.verdicts:
        return "NOT as recorded: there are no verdicts of packets this time"
    return f"{after}, as recorded" if result.same else "NOT as recorded: packets met other verdicts"


def _print_comparison(recorded: dict[str, Any], replayed: dict[str, Any]) -> None:
    rows = [("state", recorded["state"], replayed["state"])]
    for name, log in recorded["verdicts"].items():
        again = replayed["verdicts"].get(name, log)
        rows.append((f"{name} packets", log["packets"], again["packets"]))
        rows.append((f"{name} dropped", len(log["dropped"]), len(again["dropped"])))
    for endpoint, metrics in recorded["metrics"].items():
        for name, value in metrics.items():
            again = replayed["metrics"].get(endpoint, {}).get(name)
            rows.append((f"{endpoint} {name}", f"{value:.6g}", "-" if again is None else f"{again:.6g}"))
    numbers = ("recorded", "replayed")
    print_table(table_of(("", *numbers), rows, right=numbers))
    if replayed["reason"]:
        say(replayed["reason"])
