"""The figures of a report. Where workloads compare different metrics, each metric has figures of its own.

The page leaves out what it shows elsewhere: `fecbench figure` draws these on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pandas as pd

from fecbench.results import figures, metrics, papers
from fecbench.results.analysis import frames, p1203
from fecbench.results.analysis.pairing import to_baseline
from fecbench.results.analysis.parting import parting_of
from fecbench.results.analysis.rules import Explanation
from fecbench.results.analysis.summary import of_many_networks
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.saving import Drawing, stem
from fecbench.results.gate.overall import NEW, OLD
from fecbench.results.report.evidence import Evidence, Explained, Part
from fecbench.results.report.rerun_pair import RerunPair
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Drawings:
    """The figures of a page, or the sentences in their place."""

    points: Drawing
    findings: list[Drawing]
    by_workload: list[tuple[str, Drawing]]
    """The drawing of each workload, with its name."""
    explained: list[list[Drawing]]
    """The drawings of each of `Document.explained`."""
    reproduced: list[Drawing]
    """One for each of `Document.reproduced`."""
    pairs: list[tuple[Drawing, str]] = field(default_factory=list)
    """The drawing of each pair that was run again, with the command that does so."""

    @property
    def has_maps(self) -> bool:
        """Whether a variant has a map, beside which the page leaves figures out."""
        return any(
            file.stem.startswith("map-")
            for one in self.explained
            for drawing in one
            for file in drawing.files
        )


class Drawer(Protocol):
    """Receiver of a campaign's figures, each with its name and caption."""

    def draw(self, name: str, caption: str, draw: Callable[[], Figure]) -> Drawing: ...


@dataclass(frozen=True)
class Named:
    """A figure that can be drawn."""

    name: str
    caption: str
    draw: Callable[[], Figure]
    """Raises NothingToDraw."""


class _List:
    """Keeps figures, and draws none."""

    def __init__(self) -> None:
        self.figures: dict[str, Named] = {}

    def draw(self, name: str, caption: str, draw: Callable[[], Figure]) -> Drawing:
        self.figures.setdefault(name, Named(name, caption, draw))
        return Drawing()


def named(evidence: Evidence, *, on_request: bool = True) -> dict[str, Named]:
    """The figures of a campaign that was read, by their names; none is drawn yet. `on_request`: those, too,
    that the page leaves out."""
    figures = _List()
    draw(figures, evidence, on_request=on_request)
    return figures.figures


def draw(
    folder: Drawer, evidence: Evidence, pairs: Sequence[RerunPair] = (), *, on_request: bool = False
) -> Drawings:
    """Give the figures of a campaign that was read, and of `pairs`, to a folder, which saves them.
    `on_request`: those, too, that the page leaves out."""
    campaign, frame, parts = evidence.campaign, evidence.frame, evidence.parts
    return Drawings(
        points=folder.draw(
            "points",
            "The networks of the design, in each pair of its factors.",
            lambda: figures.points(campaign),
        ),
        findings=[
            *(drawing for part in parts for drawing in _of_all_workloads(folder, frame, part)),
            *_of_messages(folder, frame, campaign, _messages(evidence.database, campaign)),
            *_of_live(folder, frame, campaign),
            *_of_video(folder, frame, campaign, partial(p1203.scores, evidence.database, campaign)),
        ],
        by_workload=[drawing for part in parts for drawing in _by_workload(folder, part)],
        explained=[_where_it_helps(folder, explained, on_request) for explained in evidence.explained],
        reproduced=_reproduced(folder, frame, campaign),
        pairs=[(_pair(folder, number, pair), pair.command) for number, pair in enumerate(pairs, 1)],
    )


def _pair(folder: Drawer, number: int, pair: RerunPair) -> Drawing:
    """Draw both trials of a pair over one axis, with the first packet at which they part."""
    labels = (OLD, NEW)
    return folder.draw(
        f"worst-{number}",
        f"{pair.heading}. {parting_of(pair.old, pair.new, labels)}",
        lambda: figures.both_over_time(pair.old, pair.new, labels),
    )


def _stem(part: Part) -> str:
    """The metric, in names of files."""
    return stem(part.metric.short.lower() or part.metric.name)


def _file(part: Part, name: str) -> str:
    """A name of files, with the metric where there are several."""
    return name if part.alone else f"{name}-{_stem(part)}"


def _messages(database: Database, campaign: CampaignInfo) -> pd.DataFrame | None:
    """Return when each message was due and whole, of the trials that left this series; None where none
    did."""
    if "messages" not in database.series_columns(campaign.id):
        return None
    return frames.series(database, campaign, "messages", ["t_s", "whole_s"])


def _of_all_workloads(folder: Drawer, frame: pd.DataFrame, part: Part) -> Iterator[Drawing]:
    """The distributions of the ratio and of the metric, and how great the ratio is."""
    metric, campaign = part.metric, part.campaign
    side, bound = ("right of", "above") if metric.more_is_better else ("left of", "below")
    yield folder.draw(
        _file(part, "ratio"),
        f"ECDF of the {metric.ratio} {to_baseline(campaign)}, in the form of Networking 2019, Fig. 6: where a"
        f" curve is {side} the line at 1, the variant is better, by however little. Above a panel stand the"
        " networks in which it surely helps and harms, as in tables. Each ratio compares the"
        f" {metric.statistic(campaign.statistic)} over those repetitions of a network in which each variant"
        " is ok, failed or timed out; the latter two count as worse than any value. Where that of one variant"
        " is such, the ratio is 0 or ∞, beyond the axis; a network in which both are is in no curve. The band"
        " is of independent networks, and rather too wide for those of a space-filling design.",
        lambda: figures.ratio_ecdf(frame, campaign, ratios=part.ratios),
    )
    if not part.ratios.empty:
        yield folder.draw(
            _file(part, "bars"),
            f"The {metric.ratio} {to_baseline(campaign)} over networks, with its 95 % interval where there"
            f" are enough: {bound} 1, the variant helps.",
            lambda: figures.bars(part.ratios, campaign),
        )
    words = metric.words or metric.name
    line = (
        "The line of a baseline is the median; that of a variant is its baseline's times the median ratio,"
        " since medians of different networks may differ in another direction than the pairs."
        if of_many_networks(campaign)
        else "The line is the median."
    )
    yield folder.draw(
        _stem(part),
        f"{words[0].upper()}{words[1:]} of every trial whose group is whole: in that repetition, all variants"
        " are ok. What failed or timed out is in no box, and may decide: the line counts it. The box holds"
        " the middle half, the whiskers reach the last trial within 1.5 times the height of the box."
        f" {line}",
        lambda: figures.boxes(frame, campaign),
    )


def _of_messages(
    folder: Drawer, frame: pd.DataFrame, campaign: CampaignInfo, series: pd.DataFrame | None
) -> Iterator[Drawing]:
    """Yield how many messages were whole by when they were played, of a campaign that sent some; and how
    late each was, of trials that left their `series` (None: none did)."""
    if any(workload["name"] == "messages" for workload in campaign.workloads):
        yield folder.draw(
            "on-time",
            "Share of messages that were whole within the playout delay, counted from when they were due: the"
            " median over networks, with its 95 % interval. All delays are read from the same trials, of"
            " repetitions that no variant lacks. Of one that failed or timed out, no message was in time.",
            lambda: figures.on_time(frame, campaign),
        )
    if series is not None:
        yield folder.draw(
            "latency",
            "Latency of each message, from when it was due until it was whole, of the variants that left the"
            " series messages, in repetitions that none of these lacks. A message that never was whole is in"
            " no step: a curve ends at the share of those that were. No message counts as whole of a trial"
            " that failed or timed out.",
            lambda: figures.latency_ecdf(series, campaign, frame),
        )
    for label, metric in metrics.of_workloads(campaign).items():
        if metrics.playout(metric) is not None:
            yield folder.draw(
                f"kept-{stem(label)}",
                "In which networks enough messages were whole in time: a mark a point, over the share of"
                " packets lost there and its delay, of repetitions that no variant lacks. A trial that failed"
                " or timed out has none in time.",
                partial(figures.kept_map, frame, campaign, label),
            )


def _of_live(folder: Drawer, frame: pd.DataFrame, campaign: CampaignInfo) -> Iterator[Drawing]:
    """Yield how much live video is usable at each target, of a campaign that broadcast some."""
    if any(workload["name"] == "live" for workload in campaign.workloads):
        yield folder.draw(
            "targets",
            "Share of video frames that had arrived within the latency target with all before them in their"
            " group, over the target in round-trip times of the link without a queue. All targets are read"
            " from the same trials, of repetitions that no variant lacks; of one that failed or timed out, no"
            " frame is usable.",
            lambda: figures.usable_over_targets(frame, campaign),
        )


def _of_video(
    folder: Drawer, frame: pd.DataFrame, campaign: CampaignInfo, scores: Callable[[], dict[int, float]]
) -> Iterator[Drawing]:
    """Yield the quality of sessions of video, of a campaign that played some."""
    if all(workload["name"] != "video" for workload in campaign.workloads):
        return
    yield folder.draw(
        "sessions",
        "The share of sessions with at most this quality of experience (of live video: this latency), and the"
        " share in which the picture stood still for at most this share of the time, in repetitions that no"
        " variant lacks. One that failed, timed out or showed no picture is worse than any.",
        lambda: figures.sessions(frame, campaign),
    )
    yield folder.draw(
        "pictures",
        "Which share of the segments that arrived had which size of the picture: the mean of all sessions"
        " of repetitions in which each variant has one.",
        lambda: figures.pictures(frame, campaign),
    )
    yield folder.draw(
        "p1203",
        "Scores of ITU-T P.1203 in mode 0: the share of sessions with at most this score. One that failed,"
        " timed out or showed no picture is worse than any.",
        lambda: _scores(frame, campaign, scores),
    )


def _scores(frame: pd.DataFrame, campaign: CampaignInfo, scores: Callable[[], dict[int, float]]) -> Figure:
    try:
        return figures.scores(scores(), frame, campaign)
    except (p1203.NoModel, p1203.NoSessions) as lacking:
        raise NothingToDraw(str(lacking)) from None


def _by_workload(folder: Drawer, part: Part) -> Iterator[tuple[str, Drawing]]:
    """The name of each workload, and its ratio over each factor."""
    if part.ratios.empty:
        return
    for label, name in figures.workload_names(part.campaign).items():
        yield (
            name,
            folder.draw(
                f"factors-{stem(label)}",
                f"The {part.metric.ratio} {to_baseline(part.campaign)} for {name}, in every network, over"
                " each factor of the design.",
                partial(figures.over_factors, part.ratios, part.campaign, label),
            ),
        )


def _where_it_helps(folder: Drawer, explained: Explained, on_request: bool) -> list[Drawing]:
    """Draw a variant's map and effects. Where there is no map, as with few networks, the page has the cells
    and the pairs of factors in its place: with a map, they would show the same ratios once more."""
    part, variant, baseline = explained.part, explained.variant, explained.baseline
    campaign, metric, explanation = part.campaign, part.metric, explained.explanation
    if explanation is None:
        return []
    name, strongest = stem(variant), _two_strongest(explanation, campaign)
    drawings = [
        folder.draw(
            _file(part, f"map-{name}"),
            f"The {metric.ratio} over the two strongest factors of networks, a map a workload: background as"
            " a random forest predicts it, marks at each network as it was measured. The counts above a map"
            " are those of the table of findings.",
            lambda: figures.benefit_map(explanation, variant, baseline),
        ),
        folder.draw(
            _file(part, f"effects-{name}"),
            f"What each factor does to the {metric.ratio}, the strongest first: the line is the mean"
            " prediction of a random forest, the dots are every ratio.",
            lambda: figures.effects(explanation, variant, baseline),
        ),
    ]
    if on_request or strongest is None:
        drawings += [
            folder.draw(
                _file(part, f"cells-{name}"),
                f"The {metric.ratio} in cells of two factors, as measured, with the number of networks.",
                lambda: figures.heat_map(part.ratios, campaign, variant, strongest),
            ),
            folder.draw(
                _file(part, f"pairs-{name}"),
                f"The networks of the design in each pair of its factors. The colour is the {metric.ratio}"
                " over all workloads.",
                lambda: figures.pairs(part.ratios, campaign, variant),
            ),
        ]
    # The sentence has named the drawings that are missing.
    return [drawing for drawing in drawings if drawing.files]


def _two_strongest(explanation: Explanation, campaign: CampaignInfo) -> tuple[str, str] | None:
    """The two factors of the points that matter most, if that is known: those of the map."""
    of_points = [factor for factor in explanation.importances["factor"] if factor in campaign.points[0]]
    return (of_points[0], of_points[1]) if len(of_points) >= 2 else None


def _reproduced(folder: Drawer, frame: pd.DataFrame, campaign: CampaignInfo) -> list[Drawing]:
    """The figures of the paper whose design the campaign ran."""
    return [
        folder.draw(figure.name, figure.caption, partial(figure.draw, frame, campaign))
        for figure in papers.figures_of(campaign)
    ]
