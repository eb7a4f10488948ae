"""The slides' table and claims say what was planted in a campaign, and claim no more than its trials show."""

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fecbench import designs
from fecbench.results import figures, papers
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.papers import moskvitin
from fecbench.results.papers.claim import Claim, PaperFigure
from fecbench.results.papers.moskvitin.slides import LOSSES, SIZES, TABLE
from fecbench.results.store.records import CampaignInfo, Value, Variant
from tests.support.campaigns import campaign_info, frame_of, trial_row, workload

OFF, RLC, OTHER_OFF, OTHER = "off", "RLC", "other, off", "other, XOR"
VARIANTS = [
    Variant(label=OFF, implementation="noq-fec", options={"scheme": "none"}, baseline=True),
    Variant(label=RLC, implementation="noq-fec", options={"scheme": "rlc"}, baseline=False),
    Variant(label=OTHER_OFF, implementation="rquic", options={"scheme": "none"}, baseline=False),
    Variant(
        label=OTHER,
        implementation="rquic",
        options={"scheme": "xor"},
        baseline=False,
        compared_with=OTHER_OFF,
    ),
]
POINTS: list[dict[str, Value]] = [
    {"loss.up.p": up, "loss.down.p": down} for up in LOSSES for down in sorted({0.0, up})
]

Time = Callable[[int, float, float], float]  # of a size and the loss rates up and down, in ms
Planted = tuple[pd.DataFrame, CampaignInfo]


def as_on_the_slides(size_bytes: int, up: float, _down: float) -> float:
    return TABLE[size_bytes, up].with_fec_ms


def without_fec(size_bytes: int, up: float, _down: float) -> float:
    return TABLE[size_bytes, up].without_ms


def plant(
    rlc: Time = as_on_the_slides,
    off: Time = without_fec,
    other: float = 1.2,  # times its own baseline
    repetitions: int = 30,
    points: list[dict[str, Value]] = POINTS,
) -> Planted:
    """A campaign with uploads alone, whose mean times are these, with a little noise."""
    noise = np.random.default_rng(1).normal(1, 0.01, (repetitions, len(points), len(SIZES), len(VARIANTS)))
    of_variants: dict[str, Time] = {
        OFF: off,
        RLC: rlc,
        OTHER_OFF: lambda *cell: 10 * off(*cell),
        OTHER: lambda *cell: other * 10 * off(*cell),
    }
    rows = []
    for (v, (label, time)), point, (s, size_bytes), repetition in product(
        enumerate(of_variants.items()), range(len(points)), enumerate(SIZES), range(repetitions)
    ):
        losses = float(points[point]["loss.up.p"]), float(points[point]["loss.down.p"])
        dct_s = time(size_bytes, *losses) / 1000 * noise[repetition, point, s, v]
        rows.append(trial_row(label, f"upload-{size_bytes}", point, repetition) | {"client.dct_s": dct_s})
    campaign = campaign_info(
        design_text='name = "moskvitin-short"\n',
        repetitions=repetitions,
        statistic="mean",
        points=points,
        variants=VARIANTS,
        workloads=[workload(f"upload-{size}", "upload", size_bytes=size) for size in SIZES],
    )
    return frame_of(rows, campaign), campaign


def figure(campaign: CampaignInfo, number: str) -> PaperFigure:
    return next(item for item in papers.figures_of(campaign) if item.number.endswith(number))


def claims(planted: Planted, number: str = "uploads, losses one way") -> dict[str, Claim]:
    return {claim.text: claim for claim in figure(planted[1], number).claims(*planted)}


def cells(of: dict[str, Claim]) -> list[Claim]:
    return [claim for text, claim in of.items() if "mean time with FEC / without" in text]


def test_the_slides_table_has_the_enhancements_that_they_print() -> None:
    printed = [10.78, 4.77, 6.40, 10.20, 7.04, 2.17], [11.57, 17.65, 31.44, 34.34, 32.47, 40.43]
    last = [20.59, 28.37, 19.68, 28.18, 16.44, 18.27]
    for loss, enhancements in zip(LOSSES, (*printed, last), strict=True):
        for size_bytes, percent in zip(SIZES, enhancements, strict=True):
            assert 100 * (1 - TABLE[size_bytes, loss].ratio) == pytest.approx(percent, abs=0.02)


def test_a_ratio_is_that_of_the_mean_times_of_a_variant_and_its_own_baseline() -> None:
    table = moskvitin.ratios(*plant(), "upload", "one way")
    assert set(table["variant"]) == {RLC, OTHER}
    assert len(table) == 2 * len(TABLE)
    for row in table.to_dict("records"):
        right = TABLE[row["size_bytes"], row["loss"]].ratio if row["variant"] == RLC else 1.2
        assert row["low"] < row["ratio"] < row["high"]
        assert row["ratio"] == pytest.approx(right, rel=0.02)


def test_one_way_and_both_ways_are_different_points() -> None:
    def slower_both_ways(size_bytes: int, up: float, down: float) -> float:
        return without_fec(size_bytes, up, down) * (3 if down else 1)

    planted = plant(rlc=slower_both_ways)
    for ways, right in (("one way", 1.0), ("both ways", 3.0)):
        table = moskvitin.ratios(*planted, "upload", ways)  # type: ignore[arg-type]
        lossy = table[(table["loss"] > 0) & (table["variant"] == RLC)]
        assert lossy["ratio"].tolist() == pytest.approx([right] * 12, rel=0.02)


def test_what_the_slides_measured_agrees_with_what_they_claim() -> None:
    of = claims(plant())
    assert len(cells(of)) == 18
    # What the slides gain in three of the cells without losses is in the margin of 5 %.
    slight = [claim for claim in cells(of) if claim.verdict == "agrees in direction"]
    assert {claim.text[:25] for claim in slight} == {"uploads of 8 kB at 0 % lo", "uploads of 5 MB at 0 % lo"}
    assert {claim.verdict for claim in cells(of) if claim not in slight} == {"agrees"}
    assert of[f"{RLC}: the ratio falls from no loss to 7 %, of every size"].verdict == "agrees"
    columns = [claim for text, claim in of.items() if "at 3 % loss / at 7 %" in text]
    assert len(columns) == 2 * 3
    assert {claim.verdict for claim in columns} == {"agrees"}


def test_a_cell_has_our_mean_times_beside_the_slides() -> None:
    (claim,) = (item for text, item in claims(plant()).items() if text.startswith("uploads of 5 MB at 3 %"))
    assert "41865 / 70281 ms" in claim.paper
    of_rlc = re.search(rf"{RLC}: 0\.6\d \(.*?\) \((\d+) / (\d+) ms\)", claim.measured)
    assert of_rlc is not None, claim.measured
    assert [int(ms) for ms in of_rlc.groups()] == pytest.approx([41865, 70281], rel=0.01)


def test_a_cell_differs_where_no_code_gains_and_more_losses_take_longer() -> None:
    def sensible(size_bytes: int, up: float, _down: float) -> float:
        return 300 + size_bytes * (1 + 10 * up) / 1000

    of = claims(plant(rlc=lambda *cell: 1.05 * sensible(*cell), off=sensible))
    assert {claim.verdict for claim in cells(of)} == {"differs"}
    columns = [claim for text, claim in of.items() if "at 3 % loss / at 7 %" in text]
    assert {claim.verdict for claim in columns} == {"differs"}


def test_a_gain_that_is_less_than_the_slides_agrees_in_direction() -> None:
    def hardly_faster(*cell: float) -> float:
        return 0.98 * without_fec(*cell)  # type: ignore[arg-type]

    assert {claim.verdict for claim in cells(claims(plant(rlc=hardly_faster)))} == {"agrees in direction"}


def test_too_few_repetitions_tell_nothing() -> None:
    assert {claim.verdict for claim in claims(plant(repetitions=5)).values()} == {"cannot tell"}


def test_the_figure_is_drawn_and_the_sentences_say_where_the_slides_cannot_be_right(tmp_path: Path) -> None:
    frame, campaign = plant()
    drawing = figure(campaign, "uploads, losses both ways")
    figures.save(drawing.draw(frame, campaign), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    columns, times, *_ = drawing.differences(frame, campaign)
    assert "1 MB 6.9 and 6.3, 2 MB 8.1 and 6.5, 5 MB 7.8 and 5.7" in columns
    assert "gain 2 % to 11 %" in columns
    assert "the slides, 15.5, 28.5, 70.3 s and 2.2, 3.5, 9.0 s" in times


def test_a_campaign_without_a_directions_trials_has_nothing_to_draw() -> None:
    frame, campaign = plant()
    downloads = figure(campaign, "downloads, losses one way")
    with pytest.raises(NothingToDraw, match="No download"):
        downloads.draw(frame, campaign)
    assert downloads.claims(frame, campaign) == []
    assert downloads.differences(frame, campaign) == []


def test_the_design_has_the_slides_sizes_and_losses_and_two_round_trips_for_a_small_message() -> None:
    design = designs.load(designs.catalogue()["moskvitin-short"])
    sizes = {(item.name, item.parameters["size_bytes"]) for item in design.workloads}
    assert sizes == set(product(("upload", "download"), SIZES))
    points = {(point["loss.up.p"], point["loss.down.p"]) for point in design.plan().points}
    assert points == {(up, down) for up in LOSSES for down in (0, up)}
    assert 4 * float(str(design.constants["owd_ms"])) == 300
    assert (design.repetitions, design.statistic) == (30, "mean")
