"""Figures of reports hide nothing of themselves, with any design of the catalogue.

The designs bring their own names of variants, workloads and factors; only the times are made up.
"""

from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from fecbench import designs
from fecbench.results.figures import distributions, saving
from fecbench.results.report.report import report
from fecbench.results.store.database import Database
from fecbench.results.store.records import NewCampaign, TrialKey, TrialRecord, Variant, Workload

CATALOG = Path(designs.__file__).parent / "catalog"


def names_in(design: designs.Design) -> tuple[object, ...]:
    """Return the names of a design's variants, workloads and factors."""
    labels = [(item.label for item in some) for some in (design.variants, design.workloads)]
    return (*map(tuple, labels), *design.factors, *sorted(design.parameters - design.constants.keys()))


# One of those with the same names, as long and short forms are: drawing takes seconds.
DESIGNS = {names_in(design): design for design in map(designs.load, sorted(CATALOG.glob("*.toml")))}
MOST_POINTS = 32  # enough for rules and their figures


def fill(database: Database, design: designs.Design) -> None:
    """A campaign of a design, with times that spread over points by 10 and over pairs by 1.5."""
    points = [dict(point) for point in design.plan().points]
    points = points[:: -(-len(points) // MOST_POINTS)]
    campaign = database.create_campaign(
        NewCampaign(
            name=design.name,
            design_text=design.text,
            seed=design.seed,
            provenance={},
            points=points,
            variants=[
                Variant(
                    label=item.label,
                    implementation=item.implementation,
                    options=item.options,
                    baseline=item.is_baseline,
                    compared_with=item.compared_with,
                )
                for item in design.variants
            ],
            workloads=[
                Workload(label=item.label, name=item.name, parameters=item.of_trials)
                for item in design.workloads
            ],
            repetitions=1,
            statistic=design.statistic,
            title=design.title,
        )
    )
    random = np.random.default_rng(1)
    of_point = 10 ** random.uniform(0, 1, len(points))
    keys = product(design.variants, design.workloads, range(len(points)))
    records = []
    for variant, workload, point in keys:
        dct_s = float(of_point[point] * random.lognormal(0 if variant.baseline else -0.2, 0.2))
        metrics = {
            "client": {"dct_s": dct_s},
            "server": {"packets_sent": 100.0, "coded_sent": 10.0, "spurious_losses": dct_s},
            "competition": {"foreground_mbps": 1.0, "background_mbps": 1.0},
            "messages": of_messages(dct_s) if workload.name == "messages" else {},
        }
        key = TrialKey(variant.label, workload.label, point, 0)
        records.append(TrialRecord(key, "ok", "", "2026-01-02T03:04:05+00:00", 1.0, metrics=metrics))
    database.record_all(campaign.id, records)


def of_messages(dct_s: float) -> dict[str, float]:
    """Metrics of messages that are the worse the longer that was."""
    names = ("overhead", "received_bytes", "rebuffering_s", "received_2_bytes", "rebuffering_2_s")
    shares = {
        f"on_time_ratio_{playout_ms}ms": min(1.0, playout_ms / 300 / dct_s) for playout_ms in (25, 50, 200)
    }
    return {**dict.fromkeys(names, dct_s), **shares}


def mark(design: designs.Design) -> tuple[pytest.MarkDecorator, ...]:
    """Return the mark by which one design is drawn each time, and the others with the slow tests."""
    each_time = ("networking2019-ge-short",)
    return () if design.name in each_time else (pytest.mark.slow,)


@pytest.mark.parametrize(
    "design", [pytest.param(design, marks=mark(design), id=design.name) for design in DESIGNS.values()]
)
def test_no_text_of_a_figure_is_cut_off_or_under_another(
    design: designs.Design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert faults_of_report(design, tmp_path, monkeypatch) == []


def test_a_metric_of_many_words_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design = next(item for item in DESIGNS.values() if item.name.startswith("networking2019-uniform"))
    assert faults_of_report(design, tmp_path, monkeypatch, "server.spurious_losses") == []


@pytest.mark.parametrize("name", ["hunt-fec", "hunt-fec-time"])
def test_many_names_of_losses_have_room_and_their_numbers_no_panel(name: str, tmp_path: Path) -> None:
    with Database.open(str(tmp_path / "trials.sqlite"), create=True) as database:
        fill(database, next(item for item in DESIGNS.values() if item.name == name))
        (campaign,) = database.campaigns()
    assert {"losses", "loss.rate"} <= campaign.points[0].keys()
    figure = distributions.points(campaign)
    assert list(faults(figure)) == []
    labels = {text.get_text() for axes in figure.axes for text in (axes.xaxis.label, axes.yaxis.label)}
    assert "losses" in labels
    assert not any(label.startswith("loss.") for label in labels)


def test_of_many_factors_those_with_most_values_are_drawn_and_the_heading_says_so(tmp_path: Path) -> None:
    with Database.open(str(tmp_path / "trials.sqlite"), create=True) as database:
        fill(database, next(item for item in DESIGNS.values() if item.name == "hunt-links"))
        (campaign,) = database.campaigns()
    figure = distributions.points(campaign)
    assert list(faults(figure)) == []
    words = " ".join(text.get_text() for text in figure.findobj(Text))
    assert "factors of fewest values left out: " in " ".join(words.split())
    labels = {text.get_text() for axes in figure.axes for text in (axes.xaxis.label, axes.yaxis.label)}
    assert not any("duplicate" in label or "corrupt" in label for label in labels)  # two values each


def faults_of_report(
    design: designs.Design, folder: Path, monkeypatch: pytest.MonkeyPatch, metric: str = ""
) -> list[str]:
    """Return the faults of the figures of a campaign of this design."""
    wrong: list[str] = []

    def judge(figure: Figure, path: Path) -> None:
        path.touch()
        if path.suffix == ".png":
            wrong.extend(f"{path.stem}: {item}" for item in faults(figure))

    monkeypatch.setattr(saving, "save", judge)
    with Database.open(str(folder / "trials.sqlite"), create=True) as database:
        fill(database, design)
        (campaign,) = database.campaigns()
        drawing = report(database, campaign, folder / "report", metric)
    of_comparisons = {"ratio", "bars"} if any(item.is_baseline for item in design.variants) else set()
    assert {path.stem for path in drawing.pngs} >= {"points"} | of_comparisons
    return wrong


def faults(figure: Figure) -> Iterator[str]:
    """Yield the faults of the figure as it is saved: texts off the canvas, texts that touch, hidden
    panels."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    boxes = {text: text.get_window_extent() for text in texts(figure)}
    width, height = figure.bbox.size
    for text, box in boxes.items():
        if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height:
            yield f"{text.get_text()!r} leaves the canvas"
    for (one, first), (other, second) in combinations(boxes.items(), 2):
        if first.padded(-1).overlaps(second.padded(-1)):
            yield f"{one.get_text()!r} and {other.get_text()!r} overlap"
    for legend, axes in product(legends(figure), figure.axes):
        if legend.overlaps(axes.bbox):
            yield f"a legend covers a panel titled {axes.get_title('left')!r}"


def texts(figure: Figure) -> Iterator[Text]:
    """Yield all visible texts: an axis has ticks outside its range, too."""
    unseen = {label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in outside(axis)}
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text not in unseen:
            yield text


def outside(axis: Axis) -> Iterator[Text]:
    visible = axis._update_ticks()  # type: ignore[attr-defined]  # what drawing an axis draws
    for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
        for label in (tick.label1, tick.label2):
            if tick not in visible:
                yield label


def legends(figure: Figure) -> list[Bbox]:
    own = [axes.get_legend() for axes in figure.axes]
    return [legend.get_window_extent() for legend in (*figure.legends, *own) if legend is not None]
