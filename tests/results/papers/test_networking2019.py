"""The figures and claims of Networking 2019: which trials they are about, and what makes a claim hold."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from fecbench import designs
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.papers import figures_of, networking2019
from fecbench.results.papers.claim import Claim
from fecbench.results.papers.networking2019.comparisons import DCT
from fecbench.results.store.records import CampaignInfo, Variant, Workload
from tests.results.papers.planted import Planted, assert_drawn, design_of, judged
from tests.support.campaigns import campaign_info, trial_row

CATALOGUE = designs.catalogue()
POINTS = 24
MOST_POINTS = 90
BANDWIDTHS = [0.3 + 0.4 * i for i in range(MOST_POINTS)]
LOW_R = 0.1

Dct = Callable[
    [str, dict[str, Any], int, int], float
]  # variant, parameters of the workload, point, repetition
Made = Callable[..., Planted]


def workloads_of(design: dict[str, Any]) -> list[Workload]:
    (table,) = design["workloads"]
    name = table.pop("name")
    many = "background" if name == "competing" else "size_bytes"
    table.setdefault(many, [1000])  # a point of rQUIC's gives it
    return [
        Workload(label=f"{name}-{value}", name=name, parameters={**table, many: value})
        for value in table[many]
    ]


@pytest.fixture
def planted_campaign() -> Made:
    """Trials of a design of the catalogue, each DCT of which a function gives, and their campaign."""

    def make(
        name: str, dct_s: Dct, points: int = POINTS, repetitions: int = 1, state: str = "ok", named: str = ""
    ) -> Planted:
        design = design_of(name)
        variants = [Variant(**{"baseline": False, **variant}) for variant in design["variants"]]
        workloads = workloads_of(design)
        values = [
            {
                "bandwidth_mbps": BANDWIDTHS[i],
                "owd_ms": 100.0 + i,
                "loss.p": 0.01 + 0.001 * i,
                "loss.r": LOW_R if i % 2 else 0.3,
            }
            for i in range(points)
        ]
        rows = [
            trial_row(variant["label"], workload["label"], point, repetition, state)
            | {DCT: dct_s(variant["label"], workload["parameters"], point, repetition)}
            for variant in variants
            for workload in workloads
            for point in range(points)
            for repetition in range(repetitions)
        ]
        campaign = campaign_info(
            design_text=f'name = "{named or name}"\n',
            variants=variants,
            workloads=workloads,
            points=values,
            repetitions=repetitions,
        )
        return pd.DataFrame(rows), campaign

    return make


def holding(claims: Iterable[Claim]) -> set[bool | None]:
    return {claim.holds for claim in claims}


def spread(point: int) -> float:
    """Points differ; ratios at them should not all be the same number."""
    return 1 + point / 10_000


def uniform(small: float, large: float, rlc_to_rs: float) -> Dct:
    def dct_s(variant: str, workload: dict[str, Any], point: int, _: int) -> float:
        if "off" in variant:
            return 1.0
        ratio = (small if workload["size_bytes"] < 10**6 else large) * spread(point)
        return ratio * rlc_to_rs if "RLC" in variant else ratio

    return dct_s


def test_every_design_of_networking_2019_has_its_figures(planted_campaign: Made) -> None:
    for name in [name for name in CATALOGUE if name.startswith("networking2019-")]:
        _, campaign = planted_campaign(name, lambda *_: 1.0, points=1)
        numbers = [figure.number.rpartition(" ")[2] for figure in figures_of(campaign)]
        whole = name.split("-")[1]
        expected = {"da2gc": "5", "mss": "5", "uniform": "6 7", "noloss": "8", "fairness": "9", "ge": "10"}[
            whole
        ]
        assert " ".join(numbers) == expected


def test_the_claims_about_sizes_and_codes_hold_exactly_when_the_ratios_say_so(planted_campaign: Made) -> None:
    for name in ("networking2019-uniform", "networking2019-uniform-short"):
        assert holding(judged(*planted_campaign(name, uniform(0.7, 1.4, 0.8)))) == {True}
        assert holding(judged(*planted_campaign(name, uniform(1.4, 0.7, 1.2)))) == {False}


def test_few_points_leave_every_claim_undecided(planted_campaign: Made) -> None:
    for name in ("networking2019-uniform", "networking2019-ge", "networking2019-noloss"):
        assert holding(judged(*planted_campaign(name, uniform(0.7, 1.4, 0.9), points=5))) == {None}


def test_a_ratio_is_of_the_two_arms_named_and_no_other(planted_campaign: Made) -> None:
    frame, campaign = planted_campaign("networking2019-uniform", uniform(0.5, 1.5, 0.9))
    ratio = networking2019.ratios(frame, campaign, networking2019.RLC, networking2019.REED_SOLOMON)["ratio"]
    assert ratio.to_numpy() == pytest.approx(0.9)
    assert len(ratio) == 4 * POINTS


def test_loss_patterns_are_compared_one_by_one(planted_campaign: Made) -> None:
    """Every fourth pattern is ruinous: the median over the patterns would hide it."""

    def dct_s(variant: str, _: dict[str, Any], __: int, repetition: int) -> float:
        return 1.0 if "off" in variant or repetition % 4 else 3.0

    frame, campaign = planted_campaign("networking2019-da2gc", dct_s, points=1, repetitions=20)
    ratios = networking2019.ratios(frame, campaign, networking2019.RLC, unit="repetition")
    assert (ratios[ratios["size_bytes"] == 1000]["ratio"] > 2).sum() == 5


def patterns(of_1_kb: float, others: float, rest: float, share: float = 0.75) -> Dct:
    """Loss patterns of which a share, so many of each four, has the first two ratios, the rest the third."""

    def dct_s(variant: str, workload: dict[str, Any], _: int, repetition: int) -> float:
        ratio = of_1_kb if workload["size_bytes"] == 1000 else others
        return (
            1.0 if "off" in variant else (ratio if repetition % 4 < 4 * share else rest) * spread(repetition)
        )

    return dct_s


def with_losses(trials: tuple[pd.DataFrame, CampaignInfo]) -> tuple[pd.DataFrame, CampaignInfo]:
    """Every fourth pattern drops none of the first 100 packets, the others one of the first."""
    frame, campaign = trials
    first_lost = (frame["repetition"] % 4 != 3).map({True: 2.0, False: math.nan})
    of_links = {
        "internet.down.packets": 100.0,
        "internet.up.packets": 100.0,
        "internet.down.first_lost": first_lost,
        "internet.up.first_lost": math.nan,
    }
    return frame.assign(**of_links), campaign


def spared(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[str, str]:
    """Return the number of loss patterns in the claims of no harm, by size."""
    claims = [claim for claim in judged(frame, campaign) if "drop none of" in claim.text]
    return {claim.text.split()[4] + " kB": claim.measured.rpartition(", ")[2] for claim in claims}


def test_patterns_without_losses_are_chosen_by_what_was_drawn_and_not_by_how_an_arm_fared(
    planted_campaign: Made,
) -> None:
    frame, campaign = with_losses(planted_campaign("networking2019-mss", patterns(0.9, 0.8, 1.02), 1, 40))
    assert spared(frame, campaign) == {"1 kB": "10 loss patterns", "10 kB": "10 loss patterns"}
    # An arm that lost nothing all the same, or says so, makes no pattern one of these.
    lucky = frame["variant"].str.contains("off") & (frame["repetition"] == 0)
    fewer = frame.assign(
        **{
            "internet.down.packets": frame["internet.down.packets"].mask(lucky, 1.0),
            "internet.down.first_lost": frame["internet.down.first_lost"].mask(lucky, math.nan),
            "client.packets_lost": 0.0,
            "server.packets_lost": 0.0,
        }
    )
    assert spared(fewer, campaign) == spared(frame, campaign)


def test_a_pattern_is_without_losses_for_as_many_packets_as_the_size_needs(planted_campaign: Made) -> None:
    """1 kB is one packet of 1,200 bytes, and 10 kB are nine: acknowledgements for one and five, and a
    handshake of five each way."""
    for direction, first_lost, of_1_kb, of_10_kb in (
        ("down", 5, 0, 0),
        ("down", 6, 10, 0),
        ("down", 13, 10, 0),
        ("down", 14, 10, 10),
        ("up", 9, 10, 0),
    ):
        frame, campaign = with_losses(planted_campaign("networking2019-mss", patterns(0.9, 0.8, 1.02), 1, 40))
        column = f"internet.{direction}.first_lost"
        frame[column] = frame[column].mask(frame["repetition"] % 4 == 3, float(first_lost))
        of_sizes = {"1 kB": f"{of_1_kb} loss patterns", "10 kB": f"{of_10_kb} loss patterns"}
        assert spared(frame, campaign) == of_sizes


def test_a_pattern_of_which_too_little_was_seen_is_none_without_losses(planted_campaign: Made) -> None:
    frame, campaign = with_losses(planted_campaign("networking2019-mss", patterns(0.9, 0.8, 1.02), 1, 40))
    frame["internet.up.packets"] = 8.0
    assert spared(frame, campaign) == {"1 kB": "10 loss patterns", "10 kB": "0 loss patterns"}


PATTERNS_OF_FIGURE_5: list[tuple[str, Dct, bool]] = [
    ("networking2019-da2gc", patterns(0.9, 1.2, 0.8), True),
    ("networking2019-da2gc", patterns(1.2, 0.9, 0.9), False),
    ("networking2019-mss", patterns(0.9, 0.8, 1.02), True),
    ("networking2019-mss", patterns(1.2, 1.2, 1.2), False),
]


def test_the_claims_of_figure_5_are_about_loss_patterns(planted_campaign: Made) -> None:
    for name, dct_s, holds in PATTERNS_OF_FIGURE_5:
        claims = judged(*with_losses(planted_campaign(name, dct_s, points=1, repetitions=400)))
        claims = [claim for claim in claims if "vast majority" not in claim.paper]
        assert {claim.text: claim.measured for claim in claims if claim.holds is not holds} == {}


def test_the_vast_majority_is_more_than_most(planted_campaign: Made) -> None:
    for share, verdict in ((1.0, "agrees"), (0.75, "agrees in direction"), (0.25, "differs")):
        planted = planted_campaign(
            "networking2019-mss", patterns(0.8, 0.8, 1.02, share), points=1, repetitions=400
        )
        of_majority = [claim for claim in judged(*planted) if "vast majority" in claim.paper]
        assert len(of_majority) == 3
        assert {claim.size for claim in of_majority} == {"at least 80 %, by more than 5 %"}
        assert {claim.verdict for claim in of_majority} == {verdict}, share


def test_a_noticeable_harm_is_no_harm_by_less(planted_campaign: Made) -> None:
    for harm, verdict in ((1.1, "agrees"), (1.03, "agrees in direction"), (0.9, "differs")):
        planted = planted_campaign(
            "networking2019-da2gc", patterns(0.9, harm, 0.8), points=1, repetitions=400
        )
        of_caption = [claim for claim in judged(*planted) if "noticeably deteriorates" in claim.paper]
        assert {claim.verdict for claim in of_caption} == {verdict}, harm


def test_small_files_gain_considerably_and_drastically_by_their_medians(planted_campaign: Made) -> None:
    for ratio, considerably, drastically in (
        (0.7, "agrees", "agrees"),
        (0.8, "agrees", "agrees in direction"),
        (0.97, "agrees in direction", "agrees in direction"),
        (1.1, "differs", "differs"),
    ):
        claims = judged(
            *planted_campaign("networking2019-uniform", uniform(ratio, 1.4, 0.8), points=MOST_POINTS)
        )
        for word, verdict in (("considerably", considerably), ("drastically", drastically)):
            ratios = [claim.verdict for claim in claims if word in claim.paper]
            assert ratios == 3 * [verdict], (ratio, word)


def test_one_code_is_significantly_better_by_more_than_a_little(planted_campaign: Made) -> None:
    for ratio, verdict in ((0.8, "agrees"), (0.97, "agrees in direction"), (1.03, "differs")):
        claims = judged(*planted_campaign("networking2019-uniform", uniform(0.7, 1.4, ratio)))
        (claim,) = (claim for claim in claims if "significantly" in claim.paper)
        assert claim.verdict == verdict, ratio


def test_about_75_percent_is_decided_by_the_whole_interval(planted_campaign: Made) -> None:
    for repetitions, share, holds in (
        (8, 0.75, None),
        (20, 0.75, None),
        (50, 0.75, True),
        (50, 1, False),
        (50, 0.5, None),
        (400, 0.5, False),
    ):
        dct_s = patterns(0.9, 1.2, 0.8, share)
        claims = judged(*planted_campaign("networking2019-da2gc", dct_s, points=1, repetitions=repetitions))
        about = [claim for claim in claims if "25 %" in claim.paper]
        assert len(about) == 2
        assert all("60 % to 87 %" in claim.size for claim in about)
        assert holding(about) == {holds}


NONE_HARMED: list[tuple[int, int, bool | None]] = [
    (6, 0, None),
    (20, 0, None),
    (50, 0, True),
    (6, 1, None),
    (50, 3, None),
    (400, 3, True),
    (50, 20, False),
]


def test_none_is_not_agreed_with_before_the_trials_could_have_shown_some(planted_campaign: Made) -> None:
    def harms_until(harmed: int) -> Dct:
        return lambda variant, _, __, n: 1.0 if "off" in variant or n >= harmed else 1.2

    for repetitions, harmed, holds in NONE_HARMED:
        planted = planted_campaign(
            "networking2019-da2gc", harms_until(harmed), points=1, repetitions=repetitions
        )
        claim = judged(*planted)[0]
        assert claim.size == "at most 10 %, by more than 5 %", (repetitions, harmed)
        assert claim.holds is holds, (repetitions, harmed)


TIMED_OUT: list[tuple[bool, int, tuple[str, bool | None], tuple[str, bool | None]]] = [
    (False, 2, ("92 % of 24 (", True), ("100 % of 24 (", True)),
    (False, 12, ("50 % of 24 (", None), ("100 % of 24 (", True)),
    (True, 2, ("100 % of 22, 2 unknown (", True), ("100 % of 22, 2 unknown (", True)),
    (True, 12, ("100 % of 12, 12 unknown (", None), ("100 % of 12, 12 unknown (", None)),
]


def test_a_timeout_of_fec_alone_is_a_longer_download_and_of_both_arms_an_unknown(
    planted_campaign: Made,
) -> None:
    for also_off, points, small, large in TIMED_OUT:
        frame, campaign = planted_campaign("networking2019-uniform", uniform(0.7, 1.4, 0.9))
        arms = [networking2019.REED_SOLOMON, networking2019.OFF][: 1 + also_off]
        variants = [networking2019.variant_with(campaign, arm) for arm in arms]
        timed_out = (frame["point"] < points) & frame["variant"].isin(variants)
        frame["state"] = frame["state"].mask(timed_out, "timeout")
        for claim, (measured, holds) in zip(
            judged(frame, campaign), [small, small, small, large], strict=False
        ):
            assert claim.measured.startswith(measured), (also_off, points)
            assert f"median of {POINTS - points * also_off} ratios" in claim.measured, (also_off, points)
            assert claim.holds is holds, (also_off, points)


def test_a_point_has_the_median_that_fewer_timeouts_than_half_cannot_move(planted_campaign: Made) -> None:
    frame, campaign = planted_campaign("networking2019-uniform", uniform(0.7, 1.4, 0.9), repetitions=3)
    off = networking2019.variant_with(campaign, networking2019.OFF)
    unlucky = (frame["point"] == 0) & (frame["repetition"] == 0) & (frame["variant"] == off)
    frame["state"] = frame["state"].mask(unlucky, "timeout")
    ratios = networking2019.ratios(frame, campaign, networking2019.REED_SOLOMON)
    assert ratios["ratio"].notna().all()
    assert not ratios["censored"].any()
    frame["state"] = frame["state"].mask(
        unlucky | (frame["repetition"] == 1) & (frame["point"] == 0), "timeout"
    )
    unknown = networking2019.ratios(frame, campaign, networking2019.REED_SOLOMON)
    assert set(unknown.loc[unknown["ratio"] == 0, "point"]) == {0}


def noloss(harm: Callable[[float], float], rate_4_5: float) -> Dct:
    def dct_s(variant: str, _: dict[str, Any], point: int, __: int) -> float:
        if "off" in variant:
            return 1.0
        return 1 + harm(BANDWIDTHS[point]) * (rate_4_5 if "(5, 4" in variant else 1)

    return dct_s


def test_without_losses_harm_has_to_grow_with_less_bandwidth_and_shrink_with_the_code_rate(
    planted_campaign: Made,
) -> None:
    name = "networking2019-noloss"
    assert holding(judged(*planted_campaign(name, noloss(lambda mbps: 0.2 + 3 / mbps, 0.5), points=50))) == {
        True
    }
    wrong = judged(*planted_campaign(name, noloss(lambda mbps: mbps, 2), points=50))
    assert [claim.holds for claim in wrong] == 4 * [True] + 8 * [False]
    helped = judged(*planted_campaign(name, noloss(lambda _: -0.1, 1)))
    assert [claim.verdict for claim in helped[:4]] == 4 * ["differs"]


def fairness(beside_notify: float, beside_mask: float) -> Dct:
    """Foregrounds with FEC have absurd times, which no claim of the paper is about."""

    def dct_s(variant: str, workload: dict[str, Any], _: int, repetition: int) -> float:
        if "off" not in variant:
            return 1e6
        background = workload["background"]
        factor = beside_notify if "notify" in background else beside_mask if "mask" in background else 1
        return 100 * factor * spread(repetition)

    return dct_s


FAIRNESS: list[tuple[Dct, list[bool]]] = [
    (fairness(1.01, 1.3), [True, True]),
    (fairness(1.2, 1.3), [False, True]),
    (fairness(0.8, 0.9), [False, False]),
]


def test_fairness_is_judged_by_what_a_download_without_fec_meets(planted_campaign: Made) -> None:
    for dct_s, holds in FAIRNESS:
        frame, campaign = planted_campaign("networking2019-fairness", dct_s, points=1, repetitions=8)
        frame = frame.assign(**{"competition.foreground_mbps": 1.0, "competition.background_mbps": 3.0})
        assert [claim.holds for claim in judged(frame, campaign)] == holds
        assert judged(frame, campaign)[0].size == "0.95 to 1.05"
        labels = networking2019.fig9_fairness(frame, campaign).axes[0].get_xticklabels()
        assert len(labels) == 3
        assert all("25%" in label.get_text() for label in labels)


def test_fairness_is_judged_at_each_queue(planted_campaign: Made) -> None:
    def dct_s(variant: str, workload: dict[str, Any], point: int, repetition: int) -> float:
        return fairness(1, [1.3, 0.9][point])(variant, workload, point, repetition)

    frame, campaign = planted_campaign("networking2019-fairness", dct_s, points=2, repetitions=8)
    mbps = {"competition.foreground_mbps": 1.0, "competition.background_mbps": 3.0}
    window = {"background_server.window_reductions": 9.0, "background_server.window_restorations": 4.0}
    frame = frame.assign(**mbps, **window)
    where = [claim.text.rpartition(" where ")[2] for claim in judged(frame, campaign)]
    (first, second) = (
        ", ".join(f"{name} = {value}" for name, value in point.items()) for point in campaign.points
    )
    assert where == [first, first, second, second]
    assert [claim.holds for claim in judged(frame, campaign)] == [True, True, True, False]
    panels = networking2019.fig9_fairness(frame, campaign).axes
    titles = [" ".join(axes.get_title(loc="left").split()) for axes in panels]
    assert titles == [first, second]
    (figure,) = figures_of(campaign)
    assert "notify: 9, 4" in figure.differences(frame, campaign)[-1]


def bursts(low_r: float, other: float) -> Dct:
    def dct_s(variant: str, workload: dict[str, Any], point: int, _: int) -> float:
        if "off" in variant:
            return 1.0
        if workload["size_bytes"] == 10**6:
            return 1.5
        return (low_r if point % 2 else other) * spread(point)

    return dct_s


def test_long_bursts_are_where_r_is_at_most_12_percent(planted_campaign: Made) -> None:
    frame, campaign = planted_campaign("networking2019-ge", bursts(1.3, 0.6))
    by_text = {claim.text: claim for claim in judged(frame, campaign)}
    long_bursts = [claim for text, claim in by_text.items() if "r ≤ 12 %" in text]
    others = [claim for text, claim in by_text.items() if "r > 12 %" in text]
    assert len(long_bursts) == len(others) == 2
    assert holding(long_bursts + others) == {True}
    frame, campaign = planted_campaign("networking2019-ge", bursts(0.6, 1.3))
    contrary = [claim for claim in judged(frame, campaign) if "mean DCT ratio" in claim.text]
    assert holding(contrary) == {False}


def test_a_mean_ratio_is_judged_by_its_own_interval_and_not_by_that_of_the_geometric_mean(
    planted_campaign: Made,
) -> None:
    """A third of the ratios is 2.7, the others 0.3: the geometric mean is 0.62, the mean 1.1."""
    frame, campaign = planted_campaign("networking2019-ge", bursts(1.3, 0.3), points=MOST_POINTS)
    rare = (frame["point"] % 6 == 0) & (frame[DCT] < 1)
    frame[DCT] = frame[DCT].mask(rare, 2.7)
    (claim, _) = [claim for claim in judged(frame, campaign) if "r > 12 %" in claim.text]
    assert claim.measured.startswith("1.1")
    assert claim.holds is None


def test_how_far_ratios_under_bursts_reach_is_said(planted_campaign: Made) -> None:
    frame, campaign = planted_campaign("networking2019-ge", bursts(5, 0.6))
    (figure,) = figures_of(campaign)
    sentence = figure.differences(frame, campaign)[-1]
    small_sizes = 3
    assert sentence.startswith(
        f"{small_sizes * POINTS // 2} of {(small_sizes + 1) * POINTS} ratios are above 3;"
    )


def test_a_campaign_without_ok_trials_says_what_it_lacks(planted_campaign: Made) -> None:
    for name in ("da2gc", "uniform", "noloss", "fairness", "ge"):
        frame, campaign = planted_campaign(
            f"networking2019-{name}", lambda *_: 1.0, points=1, state="timeout"
        )
        for figure in figures_of(campaign):
            with pytest.raises(NothingToDraw, match=r"ok"):
                figure.draw(frame, campaign)
            claims = figure.claims(frame, campaign)
            assert claims, "a claim that cannot be judged is listed all the same"
            assert holding(claims) == {None}, figure.number


def test_a_design_of_ones_own_that_is_named_as_the_papers_has_no_claims(planted_campaign: Made) -> None:
    frame, campaign = planted_campaign(
        "rquic2021-bulk", lambda *_: 1.0, points=1, named="networking2019-uniform-mine"
    )
    for figure in figures_of(campaign):
        with pytest.raises(
            NothingToDraw, match=r"No variant .* has scheme = r(s, n = 30, k = 20|lc, n = 3, k = 2)"
        ):
            figure.draw(frame, campaign)
        assert figure.claims(frame, campaign) == []


def test_points_of_low_r_alone_judge_the_claims_about_low_r_alone(planted_campaign: Made) -> None:
    frame, campaign = planted_campaign("networking2019-ge-r", uniform(1.2, 1.4, 1.0))
    low = [{**point, "loss.r": LOW_R} for point in campaign.points]
    claims = judged(frame, replace(campaign, points=low))
    assert [claim.text for claim in claims] == [
        f"mean DCT ratio of {size} where r ≤ 12 %" for size in ("10 kB", "50 kB")
    ]
    assert holding(claims) == {True}


def test_points_at_which_code_rates_harm_alike_are_told(planted_campaign: Made) -> None:
    alike = judged(*planted_campaign("networking2019-noloss", noloss(lambda mbps: 1 / mbps, 1)))
    of_rates = [claim for claim in alike if "harms downloads" in claim.text]
    assert holding(of_rates) == {False}
    assert all(claim.measured.endswith(f"; equal at {POINTS}") for claim in of_rates)


def test_sizes_that_a_design_lacks_have_no_claims(planted_campaign: Made) -> None:
    for rest in ("da2gc-more", "mss-more", "uniform-as-2018"):
        claims = judged(*planted_campaign(f"networking2019-{rest}", lambda *_: 1.0))
        sizes = {size for claim in claims for size in re.findall(r"\d+ [kM]B", claim.text)}
        assert sizes == {"10 kB", "50 kB"}, rest


def test_each_figure_is_drawn(planted_campaign: Made) -> None:
    for kind in ("uniform", "ge", "noloss", "da2gc"):
        assert_drawn(*planted_campaign(f"networking2019-{kind}", uniform(0.7, 1.4, 0.9), points=6))
