"""Two trials that were run again, over one axis of time, with the first packet at which they part."""

from pathlib import Path

from fecbench.runners.campaign.course import course_of
from fecbench.runners.campaign.replay import Replay
from fecbench.runners.commands.console.destination import writing
from fecbench.runners.commands.console.terminal import note
from fecbench.runners.refusal import Refusal


def draw_both(one: Replay, folder: Path, other: Replay, other_folder: Path, plot: Path) -> str:
    """Draw two trials over time; return where they part, in a sentence."""
    from fecbench.results.analysis.parting import partings
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
    apart = [part.sentence(labels) for part in partings(*courses)]
    return " ".join(apart or ["They never part."])


def labels_of(one: Replay, other: Replay) -> tuple[str, str]:
    """The variants of two trials, with the engines where these tell them apart."""
    variants = one.recorded.record.key.variant, other.recorded.record.key.variant
    if variants[0] != variants[1] or one.is_virtual == other.is_virtual:
        return variants
    engines = ("virtual" if trial.is_virtual else "emulated" for trial in (one, other))
    return f"{variants[0]}, {next(engines)}", f"{variants[1]}, {next(engines)}"
