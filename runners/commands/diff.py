"""`fecbench diff`: two trials over one axis, the first packet at which they part, and what differs."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fecbench.results import metrics
from fecbench.results.store.records import StoredTrial
from fecbench.runners import scratch
from fecbench.runners.campaign.replay import replay as run_again
from fecbench.runners.commands.console import arguments, completion
from fecbench.runners.commands.console.both_trials import draw_both, labels_of
from fecbench.runners.commands.console.choice import implementations_in, one_trial, open_database
from fecbench.runners.commands.console.destination import check_own_folder, checked_plot, fill_own_folder
from fecbench.runners.commands.console.document import print_document, trial_document
from fecbench.runners.commands.console.running import note_free_simulators
from fecbench.runners.commands.console.tables import print_table, table_of
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox import isolation

REPORT = "diff.json"
"""File of --output with both trials, as `--json` prints them."""
_LEAST_SHARE = 0.001
"""Values that differ by less than this share are alike."""


def diff(
    trial: arguments.Trial,
    other: Annotated[
        int, typer.Argument(help="The number of the other trial.", autocompletion=completion.trials)
    ],
    plot: arguments.TrialPlot = None,
    output: arguments.OptionalOutputFolder = None,
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    implementations: arguments.ImplementationFolders = None,
    as_json: arguments.Json = False,
) -> int:
    """Run two trials again, and show where they part; 0 when both went as they were recorded.

    The figure has both over one axis of time, the first packet at which they part marked. The table has the
    metrics that differ. The folder of --output holds of each trial what `fecbench replay` leaves, its qlog
    for qvis among it, in a folder of its number.
    """
    if trial == other:
        raise Refusal(f"diff {trial} {other}: is one trial: give two")
    if output is not None:
        check_own_folder("--output", output, REPORT)
    figure = checked_plot(plot or Path(f"diff-{trial}-{other}.png"), trial)
    available = implementations_in(implementations)
    with open_database(db) as database:
        trials = [one_trial(database, campaign, number) for number in (trial, other)]
        if any(info.provenance.get("engine", "local") == "local" for info, _ in trials):
            isolation.require("fecbench diff")
        else:
            note_free_simulators()
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
        with scratch.folder(output) as folder:
            folders = [folder / "both" / str(stored.id) for _, stored in trials]
            one, another = (
                run_again(info, stored, available, where)
                for (info, stored), where in zip(trials, folders, strict=True)
            )
            sentence = draw_both(one, folders[0], another, folders[1], figure)
            labels = labels_of(one, another)
            rows = list(_differences(one.replayed, another.replayed))
            document: dict[str, Any] = {
                "same": [one.same, another.same],
                "part": sentence,
                "differ": {name: [before, after] for name, before, after in rows},
                "trials": [
                    trial_document(info, result.replayed)
                    for (info, _), result in zip(trials, (one, another), strict=True)
                ],
                "figure": str(figure),
            }
            if output is not None:
                fill_own_folder(output, folder / "both", REPORT, document)
    for number, result in ((trial, one), (other, another)):
        for difference in result.differences:
            note(f"trial {number}: {difference}")
    if as_json:
        print_document(document)
    else:
        for _, stored in trials:
            say(f"trial {stored.id}: {_name_of(stored)}")
        if not _are_pair(*(stored for _, stored in trials)):
            say("They met different networks or losses, which may be why they part.")
        say(sentence)
        _print_differences(labels, rows)
        say(f"figure {figure}" + (f"; artefacts in {output}" if output is not None else ""))
        for number, result in ((trial, one), (other, another)):
            if not result.same:
                say(f"trial {number} did NOT go as recorded: fecbench replay {number} says how")
    return 0 if one.same and another.same else 1


def _name_of(trial: StoredTrial) -> str:
    key = trial.record.key
    return f"{key.variant}, {key.workload}, point {key.point}, repetition {key.repetition}"


def _are_pair(one: StoredTrial, other: StoredTrial) -> bool:
    """Whether both met the same network, transfer and losses, as a ratio's trials do."""
    first, second = one.record, other.record
    return first.key.workload == second.key.workload and all(
        (first.task.get(name), first.seeds) == (second.task.get(name), second.seeds)
        for name in ("links", "topology")
    )


def _differences(one: StoredTrial, other: StoredTrial) -> Iterator[tuple[str, Any, Any]]:
    """Yield each value that differs: the state, losses by link and direction, and metrics of both."""
    if one.record.state != other.record.state:
        yield "state", one.record.state, other.record.state
    for name, before, after in _both(_lost(one), _lost(other)):
        yield name, before, after
    for endpoint, values in one.record.metrics.items():
        again = other.record.metrics.get(endpoint, {})
        for name, before, after in _both(values, again):
            yield f"{endpoint}.{name}", before, after


def _lost(trial: StoredTrial) -> dict[str, float]:
    return {
        f"{log.link}.{log.direction}.{what}": count
        for log in trial.record.verdicts
        for what, count in (
            ("packets", log.packets),
            ("lost", sum(byte.bit_count() for byte in log.bitmap)),
        )
    }


def _both(one: Mapping[str, float], other: Mapping[str, float]) -> Iterator[tuple[str, float, float]]:
    """Yield the values that both have and that differ."""
    for name, before in one.items():
        after = other.get(name)
        if after is not None and abs(after - before) > _LEAST_SHARE * max(abs(before), abs(after)):
            yield name, before, after


def _print_differences(labels: tuple[str, str], rows: list[tuple[str, Any, Any]]) -> None:
    if not rows:
        say("No metric differs.")
        return
    cells = [
        (name, metrics.of(name).unit or "", *(_text_of(value) for value in values)) for name, *values in rows
    ]
    print_table(table_of(("differs", "unit", *labels), cells, right=labels))


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
