"""Strata, table and claims of the slides on uploads say what was planted in a campaign, and no more."""

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fecbench import designs
from fecbench.results import papers
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.papers import starlink2022
from fecbench.results.papers.claim import Claim, PaperFigure
from fecbench.results.papers.starlink2022.slides import LAST, STATISTICS, STRATA, TABLE
from fecbench.results.papers.starlink2022.strata import fewest, gains
from fecbench.results.store.records import CampaignInfo, Variant
from tests.support.campaigns import campaign_info, frame_of, trial_row, workload

OFF, TAIL = "off", "tail"
VARIANTS = [
    Variant(label=OFF, implementation="noq-fec", options={"scheme": "none"}, baseline=True),
    Variant(label=TAIL, implementation="noq-fec", options={"scheme": "rlc"}, baseline=False),
]
LENGTHS = ["1", "4"]
Time = Callable[[str, float, float], float]  # of a variant, data packets lost and those of the last ten, in s
Planted = tuple[pd.DataFrame, CampaignInfo]


def as_on_the_slides(variant: str, lost: float, last: float) -> float:
    """Losses cost time, most at the end; FEC takes some of that away, most at the end."""
    cost = 0.25 * last + 0.04 * (lost > 0)
    return 0.25 + cost * (1 if variant == OFF else 0.4)


def plant(time: Time = as_on_the_slides, repetitions: int = 400, last_of: int = 8) -> Planted:
    """Make a campaign in which one of four uploads lost a data packet.

    One of `last_of` uploads, a multiple of four, lost it at the end, and every fifth of these lost four
    there.
    """
    noise = np.random.default_rng(3).normal(1, 0.005, (repetitions, len(LENGTHS), len(VARIANTS)))
    rows = []
    for repetition, point, (v, variant) in product(
        range(repetitions), range(len(LENGTHS)), enumerate((OFF, TAIL))
    ):
        last = float(repetition % last_of == 0) * (4 if repetition % (5 * last_of) == 0 else 1)
        lost = max(last, float(repetition % 4 == 0))
        # The other arm sends other packets, and loses others.
        of_arm = (lost, last) if variant == OFF else (float(repetition % 4 == 1), 0.0)
        rows.append(
            trial_row(variant, "upload", point, repetition)
            | {
                "client.dct_s": time(variant, lost, last) * noise[repetition, point, v],
                "client.repair_sent": 0.0 if variant == OFF else 10.0,
                "content.losses": of_arm[0],
                "content.losses_last_10": of_arm[1],
            }
        )
    campaign = campaign_info(
        design_text='name = "starlink2022-uploads-short"\n',
        repetitions=repetitions,
        points=[{"mean_burst_packets": length} for length in LENGTHS],
        variants=VARIANTS,
        workloads=[workload("upload", "upload", size_bytes=50_000)],
    )
    return frame_of(rows, campaign), campaign


def figure(campaign: CampaignInfo) -> PaperFigure:
    (figure_found,) = papers.figures_of(campaign)
    return figure_found


def claims(planted: Planted) -> dict[str, Claim]:
    return {claim.text: claim for claim in figure(planted[1]).claims(*planted)}


def cell(of: dict[str, Claim], stratum: str, statistic: str) -> Claim:
    return of[f"{TAIL}: {statistic} of uploads, {stratum}, with FEC / without"]


def test_the_slides_table_is_that_which_they_print() -> None:
    assert [
        (TABLE[stratum, "median"].without_ms, TABLE[stratum, "median"].with_fec_ms) for stratum in STRATA
    ] == [(248, 247), (287, 277), (311, 279)]
    of_p95 = [TABLE[stratum, "95th percentile"] for stratum in STRATA]
    assert [(row_of_table.without_ms, row_of_table.with_fec_ms) for row_of_table in of_p95] == [
        (382, 373),
        (395, 386),
        (560, 447),
    ]
    assert min(TABLE, key=lambda key: TABLE[key].ratio) == (LAST, "95th percentile")


def test_strata_are_of_what_the_baseline_lost_and_name_their_pairs() -> None:
    frame, campaign = plant(repetitions=40)
    table = starlink2022.ratios(frame, campaign)
    counts = {stratum: table[TAIL, "4", stratum, "median"].pairs for stratum in STRATA}
    assert counts == dict(zip(STRATA, (40, 10, 5), strict=True))
    for stratum, count in counts.items():
        assert f"{count} pairs" in cell(claims((frame, campaign)), stratum, "median").measured


def test_what_the_slides_found_agrees() -> None:
    assert {claim.holds for claim in claims(plant(repetitions=2000, last_of=32)).values()} == {True}


def test_a_gain_that_is_less_than_the_slides_agrees_in_direction() -> None:
    def hardly(variant: str, lost: float, last: float) -> float:
        return (0.25 + 0.25 * last + 0.04 * (lost > 0)) * (1 if variant == OFF else 0.98)

    of = claims(plant(hardly, repetitions=2000))
    claim = cell(of, LAST, "95th percentile")
    assert (claim.size.split(",")[0], claim.ours[:4]) == ("below 0.838", "0.98")
    assert claim.verdict == "agrees in direction"


def test_no_gain_and_harm_differ() -> None:
    slower = claims(plant(lambda variant, lost, _last: (1 if variant == OFF else 1.03) * (0.25 + 0.1 * lost)))
    assert cell(slower, "all", "median").holds is False
    assert all(cell(slower, stratum, "median").holds is False for stratum in list(STRATA)[1:])
    same = claims(plant(lambda _variant, lost, _last: 0.25 + 0.1 * lost))
    assert cell(same, "all", "median").holds is True
    assert all(
        cell(same, stratum, statistic).holds is not True
        for stratum in STRATA
        for statistic in STATISTICS
        if (stratum, statistic) != ("all", "median")
    )


def test_a_gain_that_is_less_in_the_end_differs() -> None:
    def less(variant: str, lost: float, last: float) -> float:
        cost = 0.04 * (lost > 0) + 0.25 * last
        return 0.25 + cost * (1 if variant == OFF else 2 if last > 1 else 0.2)

    (claim,) = (claim for text, claim in claims(plant(less, 2000, 32)).items() if "how far" in text)
    assert claim.holds is False


def test_too_few_pairs_have_no_interval() -> None:
    assert (fewest(0.5), fewest(0.95)) == (6, 60)
    for repetitions, has_interval in ((40, False), (48, True)):  # five and six pairs in the last stratum
        table = starlink2022.ratios(*plant(repetitions=repetitions))
        ratio = table[TAIL, "1", LAST, "median"]
        assert math.isnan(ratio.estimate().low) != has_interval
        assert math.isnan(table[TAIL, "1", LAST, "95th percentile"].estimate().low)


@pytest.mark.slow
def test_intervals_hold_what_is_true_as_often_as_they_say() -> None:
    """The arms are equal: the interval of the ratio of two medians, or 95th percentiles, contains 1."""
    random = np.random.default_rng(5)
    for statistic in STATISTICS:
        hits = 0
        for _ in range(100):
            frame, campaign = plant(repetitions=80)
            frame["client.dct_s"] = random.lognormal(0, 0.3, len(frame))
            estimate = starlink2022.ratios(frame, campaign)[TAIL, "1", "all", statistic].estimate()
            hits += estimate.low <= 1 <= estimate.high
        assert hits >= 85, (statistic, hits)


def test_strata_of_the_same_pairs_have_the_same_ratio_without_a_doubt() -> None:
    """Each stratum is all uploads if every upload loses its last packets."""
    for of_others in gains(*plant(repetitions=80, last_of=1), "95th percentile").values():
        for gain in of_others:
            estimate = gain.estimate()
            assert (estimate.value, estimate.low, estimate.high) == (0, 0, 0)


@pytest.mark.slow
def test_intervals_of_gains_hold_what_is_true_as_often_as_they_say() -> None:
    """The arms are equal: no stratum gains more than those that it is a part of."""
    random = np.random.default_rng(6)
    frame, campaign = plant(repetitions=600)
    hits = []
    for _ in range(60):
        frame["client.dct_s"] = random.lognormal(0, 0.3, len(frame))
        estimates = [
            gain.estimate() for of in gains(frame, campaign, "95th percentile").values() for gain in of
        ]
        hits += [estimate.low <= 0 <= estimate.high for estimate in estimates]
    assert np.mean(hits) >= 0.9


def test_losses_that_are_not_known_are_in_no_stratum_but_all() -> None:
    frame, campaign = plant(repetitions=80)
    unknown = frame["repetition"] < 16
    frame[["content.losses", "content.losses_last_10"]] = frame[
        ["content.losses", "content.losses_last_10"]
    ].mask(unknown)
    table = starlink2022.ratios(frame, campaign)
    assert [table[TAIL, "1", stratum, "median"].pairs for stratum in STRATA] == [80, 16, 8]


def test_the_other_way_is_told_beside_it() -> None:
    planted = plant(repetitions=80)
    text = " ".join(figure(planted[1]).differences(*planted))
    assert "by its own losses" in text
    assert "of 0 / " in text  # by its own losses, the other arm has none in the last stratum
    assert "Repair packets that a client sent, in the mean: tail 10.0." in text


def test_a_campaign_without_the_series_has_nothing_to_draw() -> None:
    frame, campaign = plant(repetitions=8)
    with pytest.raises(NothingToDraw, match="series content"):
        figure(campaign).draw(frame.drop(columns=["content.losses"]), campaign)
    assert figure(campaign).claims(frame.drop(columns=["content.losses"]), campaign) == []


def test_the_figure_has_a_panel_a_stratum_and_statistic() -> None:
    frame, campaign = plant(repetitions=80)
    drawing = figure(campaign).draw(frame, campaign)
    assert len(drawing.axes) == len(STRATA) * len(STATISTICS)


def test_the_designs_of_the_catalogue_are_those_of_the_slides() -> None:
    folder = Path(designs.__file__).parent / "catalog"
    for name, repetitions in (("starlink2022-uploads", 1000), ("starlink2022-uploads-short", 60)):
        design = designs.load(folder / f"{name}.toml")
        assert design.repetitions == repetitions
        points = design.plan().points
        for point in points:
            p, r = float(point["loss.up.p"]), float(point["loss.up.r"])
            assert p / (p + r) == pytest.approx(0.0196, rel=1e-4)
            assert 1 / r == float(point["mean_burst_packets"])
        (workload,) = design.workloads
        assert (workload.name, workload.parameters["size_bytes"]) == ("upload", 50_000)
        for variant in design.variants:
            assert (variant.options["http"], variant.options["initial_window"]) == ("h3", 10)
            assert variant.options["scheme"] == "none" or variant.options["controller"] == "tail"
