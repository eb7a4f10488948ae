"""A report says what it compares by the words and units of the metric, whichever it is."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from fecbench.results import figures, metrics
from fecbench.results.analysis import frames
from fecbench.results.report.report import report
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey, TrialRecord
from tests.results.pages import text_of

Make = Callable[..., TrialRecord]

OFF, XOR = "rquic-off", "rquic-xor"
SMALL, LARGE = "download-2000", "download-10000"
MORE, LESS, NEITHER = "competition.foreground_mbps", "server.spurious_losses", "server.packets_sent"


@pytest.fixture
def campaign(database: Database, new_campaign: Callable[..., CampaignInfo], make: Make) -> CampaignInfo:
    """XOR doubles every metric, at both points and on both workloads."""
    info = new_campaign(database, repetitions=2)
    for variant, workload, point, n in product((OFF, XOR), (SMALL, LARGE), (0, 1), range(2)):
        value = (2.0 if variant == XOR else 1.0) * (1 + point + n)
        measured = {
            "client": {"dct_s": value},
            "server": {"spurious_losses": value, "packets_sent": 100 * value},
            "competition": {"foreground_mbps": value},
        }
        database.record(info.id, make(key=TrialKey(variant, workload, point, n), metrics=measured))
    return info


BY_METRIC: list[tuple[str, str, list[str]]] = [
    (
        LESS,
        "server-spurious-losses",
        [
            f"{XOR} against {OFF}, 10 kB: undecided in all 2 networks",
            "median ratio of the number of packets declared lost that were not (server) 2.00 (no interval)",
            "is below 1 by more than the margin",
            "where a curve is left of the line at 1, the variant is better",
            "Number of packets declared lost that were not of every trial whose group is whole",
        ],
    ),
    (
        MORE,
        "competition-foreground-mbps",
        [
            f"{XOR} against {OFF}, 10 kB: undecided in all 2 networks",
            "median ratio of the rate of the foreground 2.00 (no interval)",
            "is above 1 by more than the margin",
            "where a curve is right of the line at 1, the variant is better",
            "above 1, the variant helps",
        ],
    ),
    (
        NEITHER,
        "server-packets-sent",
        [
            f"{XOR} against {OFF}, 10 kB: undecided in all 2 networks",
            "A trial that failed or timed out counts as worse than any that is ok",
        ],
    ),
]


@pytest.mark.usefixtures("unrendered")
def test_a_report_by_another_metric_speaks_of_that_one(
    database: Database, campaign: CampaignInfo, tmp_path: Path
) -> None:
    for metric, stem, phrases in BY_METRIC:
        paths = report(database, campaign, tmp_path, metric)
        assert {"ratio", "bars", stem} <= {path.stem for path in paths.pngs}, metric
        text = text_of(paths.html.read_text())
        assert [phrase for phrase in phrases if phrase not in text] == [], metric
        assert "DCT" not in text, metric


@pytest.mark.usefixtures("unrendered")
def test_workloads_of_different_metrics_have_figures_and_sentences_of_their_own(
    database: Database, campaign: CampaignInfo, tmp_path: Path
) -> None:
    by_label = {SMALL: MORE, LARGE: metrics.DEFAULT}
    workloads = [{**workload, "metric": by_label[workload["label"]]} for workload in campaign.workloads]
    paths = report(database, replace(campaign, workloads=workloads), tmp_path)
    stems = {path.stem for path in paths.pngs}
    assert {"ratio-dct", "dct", "ratio-competition-foreground-mbps", "competition-foreground-mbps"} <= stems
    assert {f"cells-{XOR}-dct", f"cells-{XOR}-competition-foreground-mbps"} <= stems
    text = text_of(paths.html.read_text())
    few = "too few repetitions"
    assert f"10 kB: undecided in all 2 networks: {few}; median DCT ratio 2.00 (no interval)." in text
    assert f"2 kB: undecided in all 2 networks: {few}" in text
    assert "10 kB download completion time (s) 2 kB rate of the foreground (Mbit/s) The same in all" in text
    assert "no difference: 0; undecided, networks: 2; median ratio [95 %]: 2.00 (no interval)" in text
    assert "A trial that failed or timed out counts as worse" in text
    assert "on the better side of 1 by more than the margin" in text


def test_one_figure_does_not_mix_metrics(database: Database, campaign: CampaignInfo) -> None:
    small, large = campaign.workloads
    mixed = replace(campaign, workloads=[small, {**large, "metric": MORE}])
    frame = frames.trials(database, campaign)
    for draw in (figures.boxes, figures.ratio_ecdf, figures.table):
        with pytest.raises(figures.NothingToDraw, match=f"client.dct_s, {MORE}.*: choose one of them"):
            draw(frame, mixed)
        draw(frame, mixed, MORE)


def test_figures_name_the_metric_that_is_chosen(database: Database, campaign: CampaignInfo) -> None:
    frame = frames.trials(database, campaign)
    ratios = figures.table(frame, campaign, MORE)
    assert figures.boxes(frame, campaign, MORE).axes[0].get_ylabel() == "rate of the foreground (Mbit/s)"
    across = figures.ratio_ecdf(frame, campaign, MORE).get_supxlabel()
    assert across.split() == [
        "◀",
        "harms",
        "rate",
        "of",
        "the",
        "foreground",
        "/",
        "that",
        "of",
        "rquic-off",
        "helps",
        "▶",
    ]
    assert figures.bars(ratios, campaign).get_supylabel().split()[-4:] == ["◀", "harms", "helps", "▶"]


def test_a_metric_that_is_0_in_some_trials_is_drawn_on_a_linear_axis(
    database: Database, campaign: CampaignInfo
) -> None:
    frame = frames.trials(database, campaign)
    assert figures.boxes(frame, campaign, LESS).axes[0].get_yscale() == "log"
    frame.loc[0, LESS] = 0
    assert figures.boxes(frame, campaign, LESS).axes[0].get_yscale() == "linear"
