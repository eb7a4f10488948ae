"""Two trials that are run again: over one axis of time, with the first packet at which they part, and what
differs."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fecbench.results import metrics
from fecbench.results.store.records import CampaignInfo, StoredTrial
from fecbench.runners import scratch
from fecbench.runners.campaign.recorded_course import course_of
from fecbench.runners.campaign.replay import Replay
from fecbench.runners.campaign.replay import replay as run_again
from fecbench.runners.commands.console.campaign_documents import print_document, trial_document
from fecbench.runners.commands.console.destination import check_own_folder, fill_own_folder, writing
from fecbench.runners.commands.console.simulators import note_free_simulators
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.commands.console.terminal_tables import print_table, table_of
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox import isolation

REPORT = "diff.json"
"""File of --output with both trials, as `--json` prints them."""

Trials = Sequence[tuple[CampaignInfo, StoredTrial]]
"""Two trials, each with its campaign."""


def show_both(
    command: str,
    trials: Trials,
    available: Implementations,
    figure: Path,
    output: Path | None,
    as_json: bool,
) -> int:
    """Run two trials again, draw both into the figure, and print where they part: 0 when both went as they
    were recorded, else 1. `command` is what a refusal begins with."""
    if output is not None:
        check_own_folder("--output", output, REPORT)
    if any(info.provenance.get("engine", "local") == "local" for info, _ in trials):
        isolation.require(command)
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
    for result in (one, another):
        for difference in result.differences:
            note(f"trial {result.recorded.id}: {difference}")
    if as_json:
        print_document(document)
    else:
        _print(one, another, sentence, rows)
        say(f"figure {figure}" + (f"; artefacts in {output}" if output is not None else ""))
        for result in (one, another):
            if not result.same:
                say(f"trial {result.recorded.id} did NOT go as recorded: fecbench replay says how")
    return 0 if one.same and another.same else 1


def draw_both(one: Replay, folder: Path, other: Replay, other_folder: Path, plot: Path) -> str:
    """Draw two trials over time; return where they part, in a sentence."""
    from fecbench.results.analysis.parting import parting_of
    from fecbench.results.figures import NothingToDraw, both_over_time, save

    courses = course_of(one, folder), course_of(other, other_folder)
    labels = labels_of(one, other)
    try:
        figure = both_over_time(*courses, labels)
    except NothingToDraw as nothing:
        raise Refusal(f"--plot {plot}: {nothing}") from None
    with writing("--plot", plot):
        save(figure, plot)
    for line in dict.fromkeys(line for course in courses for line in course.notes):
        note(line)
    return parting_of(*courses, labels)


def labels_of(one: Replay, other: Replay) -> tuple[str, str]:
    """The variants of two trials, with the engines where these tell them apart."""
    variants = one.recorded.record.key.variant, other.recorded.record.key.variant
    if variants[0] != variants[1] or one.is_virtual == other.is_virtual:
        return variants
    engines = ("virtual" if trial.is_virtual else "emulated" for trial in (one, other))
    return f"{variants[0]}, {next(engines)}", f"{variants[1]}, {next(engines)}"


def _print(one: Replay, other: Replay, sentence: str, rows: list[tuple[str, Any, Any]]) -> None:
    for result in (one, other):
        say(f"trial {result.recorded.id}: {_name_of(result.recorded)}")
    if not _are_pair(one.recorded, other.recorded):
        say("They met different networks or losses, which may be why they part.")
    say(sentence)
    _print_differences(labels_of(one, other), rows)


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
    """Yield the values that both have and that differ in the digits that are shown."""
    for name, before in one.items():
        after = other.get(name)
        if after is not None and _text_of(before) != _text_of(after):
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
