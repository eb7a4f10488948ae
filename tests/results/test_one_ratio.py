"""Tables, headline, figures, rules and a paper's claims agree about a campaign with timeouts."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fecbench import results
from fecbench.results import figures
from fecbench.results.analysis import frames
from fecbench.results.analysis.pairing import comparisons
from fecbench.results.analysis.rules import explain
from fecbench.results.analysis.summary import summary
from fecbench.results.papers import networking2019
from fecbench.results.report.finding_sentences import findings, headline
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey, TrialRecord, Variant, Workload
from tests.results.pages import page_of, text_of

LABEL = "download-10000"
OFF = Variant(label="off", implementation="noq-fec", options={"scheme": "none"}, baseline=True)
FEC = Variant(label="rlc", implementation="noq-fec", options=dict(networking2019.RLC), baseline=False)
T = math.inf

# Of each point, the times of both arms in three repetitions.
POINTS = [
    ((1, 1, 1), (2, 2, 2)),  # 2
    ((1, 1, 1), (3, 3, 3)),  # 3
    ((1, 1, 1), (0.5, 0.5, 0.5)),  # 0.5
    ((T, 1, 1), (0.5, T, 0.5)),  # 0.5: a timeout on each side
    ((1, 1, 1), (T, T, 1)),  # ∞
    ((1, 1, 1), (1, T, T)),  # ∞
    ((T, 1, T), (4, 4, 4)),  # 0
    ((T, T, T), (T, T, T)),  # unknown
    ((T, T, 1), (2, T, T)),  # unknown
]
RATIOS = [2, 3, 0.5, 0.5, T, T, 0]
MEDIAN, FASTER, KNOWN = 2, 3, 7


Measured = tuple[pd.DataFrame, CampaignInfo, Database]


@pytest.fixture
def measured(
    sqlite: str, new_campaign: Callable[..., CampaignInfo], make: Callable[..., TrialRecord]
) -> Iterator[Measured]:
    with Database.open(sqlite, create=True) as database:
        campaign = new_campaign(
            database,
            points=[{"owd_ms": n, "loss.p": n / 100} for n in range(len(POINTS))],
            variants=[OFF, FEC],
            workloads=[Workload(label=LABEL, name="download", parameters={"size_bytes": 10_000})],
            repetitions=3,
        )
        records = []
        for point, arms in enumerate(POINTS):
            for variant, times in zip((OFF, FEC), arms, strict=True):
                for n, dct_s in enumerate(times):
                    key = TrialKey(variant["label"], LABEL, point, n)
                    result: dict[str, Any] = {"metrics": {"client": {"dct_s": float(dct_s)}}}
                    fields = {"state": "timeout", "metrics": {}} if dct_s == T else result
                    records.append(make(key=key, **fields))
        database.record_all(campaign.id, records)
        yield frames.trials(database, campaign), campaign, database


def test_the_table_the_headline_the_notebook_and_the_rules_have_the_same_median_of_the_same_points(
    measured: Measured,
) -> None:
    frame, campaign, database = measured
    row = summary(frame, campaign).query("variant == 'rlc'").iloc[0]
    assert (row["points"], row["compared_points"], row["median_ratio"]) == (KNOWN, KNOWN, MEDIAN)
    assert row["faster"] == FASTER / KNOWN
    ratios = figures.table(frame, campaign)
    assert sorted(ratios["ratio"]) == sorted(RATIOS)
    sentence = headline(frame, campaign, findings(frame, campaign, ratios))[1]
    faster = f"undecided in all {KNOWN} networks (planned: {len(POINTS)}): too few repetitions"
    assert f"rlc against off, 10 kB: {faster}" in sentence
    assert f"median DCT ratio {MEDIAN:.2f} [" in sentence
    with results.open(database.address) as opened:
        notebook = opened["demo"].paired("off", "rlc").ratios
    assert notebook["ratio"].tolist() == ratios["ratio"].tolist()
    (pairing,) = comparisons(frame, campaign).values()
    everywhere = explain(pairing, campaign).everywhere
    assert (everywhere.ratio, everywhere.points) == (MEDIAN, KNOWN)


def test_the_figures_hold_the_points_of_the_table(measured: Measured) -> None:
    frame, campaign, _ = measured
    of_paper = networking2019.ratios(frame, campaign, networking2019.RLC)
    assert sorted(of_paper["ratio"].dropna()) == sorted(RATIOS)
    assert (of_paper["ratio"] < 1).sum() == FASTER
    # With one repetition of each, nothing is decided; a paper's figure makes no claim.
    for figure, text in (
        (figures.ratio_ecdf(frame, campaign), "10 kB\nundecided: too few repetitions"),
        (networking2019.fig10_bursts(frame, campaign), "10 kB"),
    ):
        (panel,) = figure.axes
        assert panel.get_title(loc="left") == text
        x, y = panel.lines[-1].get_data()
        assert y[x < x.max()].max() == pytest.approx(1 - 2 / KNOWN)  # the rest is at the end, or beyond
        assert value_at_the_left_end(figure) == pytest.approx(1 / KNOWN)
    scatter = figures.over_factors(figures.table(frame, campaign), campaign, LABEL).axes[0].collections
    assert sum(len(dots.get_offsets()) for dots in scatter if len(dots.get_facecolor())) == KNOWN


def value_at_the_left_end(figure: Figure) -> float:
    (panel,) = figure.axes
    x, y = panel.lines[-1].get_data()
    return float(y[x <= panel.get_xlim()[0] * (1 + 1e-9)].max())


def test_a_page_says_one_median_and_one_share(measured: Measured) -> None:
    _, campaign, database = measured
    text = text_of(page_of(database, campaign))
    assert f"17 / 27 0 (0) 0 (0) 0 {KNOWN} {KNOWN} of {len(POINTS)} {MEDIAN:.0f}" in text
    assert f"everywhere: ratio {MEDIAN:.2f} [" in text
    assert set(re.findall(r"median DCT ratio ([\d.]+)", text)) == {f"{MEDIAN:.2f}"}
