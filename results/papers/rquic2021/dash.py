"""Fig. 10 and 11 of rQUIC's evaluation, and the claims of §VI-D: video by DASH.

The paper's Fig. 10 shows scores of ITU-T P.1203, whose model must not be redistributed. Here it is the
quality of experience of a session by the logarithm of the bit rate, less what waiting costs
(`video.qoe_log`): scores rise with it. So signs and orders are judged, and no level. `fecbench export
--p1203` writes what the model reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from fecbench.results.analysis import outcomes
from fecbench.results.analysis.intervals import FEWEST, LEVEL
from fecbench.results.analysis.pairing import with_fec
from fecbench.results.analysis.quantiles import t_quantile
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.sheet import legend_below, question, title
from fecbench.results.figures.style import line, looks, new_figure, style
from fecbench.results.figures.video import SHARE, shades_of, sizes_of
from fecbench.results.metrics import of
from fecbench.results.papers.claim import Claim, Estimate, all_hold
from fecbench.results.papers.forms import ours
from fecbench.results.papers.queues import queue_in_words
from fecbench.results.papers.rquic2021.rates import LOSS, labels_of, loss_rates, networks_of
from fecbench.results.store.records import CampaignInfo

QOE = "video.qoe_log"
_ALIKE = 0.1
"""Our least difference of quality: that of a bit rate of 10 %, or of a wait of 0.04 s a segment."""
_HEIGHT, _QUICS_HEIGHT = 720, 360
"""Lines of the usual picture at 5 % loss, with rQUIC and with QUIC (§VI-D)."""


def sessions(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """The sessions that are ok. Raises NothingToDraw where there is none, or no network of the paper's."""
    networks_of(campaign)
    ok = frame[(frame["state"] == "ok") & frame["workload"].isin(labels_of(campaign, "video"))]
    if QOE not in ok or ok[QOE].isna().all():
        raise NothingToDraw("No session of video is ok, so there is no quality to draw.")
    return ok


def fig10_scores(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """Fig. 10: the mean quality of sessions with intervals of 95 %, by loss rate, a panel a network."""
    ok, networks, losses, look_of = (
        sessions(frame, campaign),
        networks_of(campaign),
        loss_rates(campaign),
        looks(campaign),
    )
    with style():
        figure = new_figure(1 + 4.5 * len(networks), 5)
        panels = figure.subplots(1, len(networks), squeeze=False, sharey=True)[0]
        for axes, network in zip(panels, networks, strict=True):
            for place, (variant, look) in enumerate(look_of.items()):
                of_variant = ok[(ok["network"] == network) & (ok["variant"] == variant)]
                means = [_mean(of_variant.loc[of_variant[LOSS] == loss, QOE]) for loss in losses]
                at = np.arange(len(losses)) + (place - (len(look_of) - 1) / 2) * 0.12
                axes.errorbar(
                    at,
                    [mean.value for mean in means],
                    yerr=[
                        [mean.value - mean.low for mean in means],
                        [mean.high - mean.value for mean in means],
                    ],
                    color=look.color,
                    marker=look.marker,
                    capsize=3,
                    linewidth=line(0.8),
                )
            axes.set_xticks(range(len(losses)), [f"{100 * loss:g} %" for loss in losses])
            axes.set_xlabel("loss rate")
            title(axes, network, f"{np.count_nonzero(ok['network'] == network)} sessions that are ok")
        panels[0].set_ylabel("quality of experience, logarithmic")
        legend_below(
            figure,
            [
                Line2D([], [], color=look.color, marker=look.marker, label=label)
                for label, look in look_of.items()
            ],
        )
        question(figure, "What is a session of video worth to a viewer?")
    return figure


def fig11_resolutions(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """Fig. 11: the share of segments of each size of the picture, stacked, by loss rate and variant."""
    ok, networks, losses, look_of = (
        sessions(frame, campaign),
        networks_of(campaign),
        loss_rates(campaign),
        looks(campaign),
    )
    sizes = sizes_of(ok)
    shades = shades_of(sizes)
    with style():
        figure = new_figure(1 + 4.5 * len(networks), 5.5)
        panels = figure.subplots(1, len(networks), squeeze=False, sharey=True)[0]
        for axes, network in zip(panels, networks, strict=True):
            for number, loss in enumerate(losses):
                for place, variant in enumerate(look_of):
                    rows = _at(ok, network, loss, variant)
                    at, below = number + (place - (len(look_of) - 1) / 2) * 0.2, 0.0
                    for size, shade in shades.items():
                        share = float(rows[SHARE + size].mean())
                        frame_of = {"color": shade, "edgecolor": "black", "linewidth": 0.3}
                        axes.bar(at, share, 0.18, bottom=below, **frame_of)
                        below += share
                    axes.text(at, 1.01, chr(ord("a") + place), ha="center", fontsize="small")
            axes.set_xticks(range(len(losses)), [f"{100 * loss:g} %" for loss in losses])
            axes.set_xlabel("loss rate")
            axes.set_ylim(0, 1.08)
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
            title(axes, network, "")
        panels[0].set_ylabel("share of segments")
        pictures = [
            Patch(facecolor=shade, edgecolor="black", label=size.replace("x", "×"))
            for size, shade in shades.items()
        ]
        arms = [
            Line2D([], [], linestyle="", label=f"{chr(ord('a') + place)}: {label}")
            for place, label in enumerate(look_of)
        ]
        legend_below(figure, [*pictures, *arms])
        question(figure, "Which pictures does a viewer see?")
    return figure


def claims_of_scores(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§VI-D, of what Fig. 10 shows. Sessions that failed, timed out or showed nothing are worse than any."""
    sessions(frame, campaign)  # raises where there is none
    networks, losses = networks_of(campaign), loss_rates(campaign)
    played = frame[frame["workload"].isin(labels_of(campaign, "video"))]
    played = played.assign(**{QOE: outcomes.values(played, of(QOE))})
    return [
        claim
        for variant, baseline in with_fec(campaign).items()
        for claim in _claims_of_pair(played, networks, losses, variant, baseline)
    ]


def _claims_of_pair(
    played: pd.DataFrame, networks: list[str], losses: list[float], variant: str, baseline: str
) -> Iterator[Claim]:
    for network, where, paper, losses_of_claim, is_higher in (
        ("Wi-Fi", "above 1 % loss", "“outperforms QUIC”", [loss for loss in losses if loss > 0.01], True),
        (
            "Wi-Fi",
            "at up to 1 % loss",
            "“almost similar”",
            [loss for loss in losses if loss <= 0.01],
            False,
        ),
        (
            "cellular",
            "wherever packets are lost",
            "“a higher score than QUIC”",
            [loss for loss in losses if loss > 0],
            True,
        ),
        ("cellular", "without losses", "“almost alike”", [loss for loss in losses if loss == 0], False),
        ("satellite", "at any loss", "“almost no difference”", losses, False),
    ):
        if network in networks and losses_of_claim:
            by_loss = partial(
                _differences, played[played["network"] == network], losses_of_claim, variant, baseline
            )
            text = f"{variant}: the score over {network} {where}"
            yield _claim(text, f"{paper} (§VI-D), here by `{QOE}`", by_loss, is_higher)


ByLoss = Callable[[float], dict[float, Estimate]]
"""Estimates by loss rate, with intervals of confidence 1 - the given level."""


def _claim(text: str, paper: str, by_loss: ByLoss, is_higher: bool) -> Claim:
    """Return the claim that the score is higher, or alike, at each of some loss rates."""

    def all_are(holds: Callable[[Estimate], bool | None]) -> bool | None:
        return all_hold(lambda level: [holds(estimate) for estimate in by_loss(level).values()])

    at = by_loss(LEVEL)
    judged = partial(
        Claim,
        text,
        paper,
        ", ".join(f"{100 * loss:g} %: {estimate:+.2f}" for loss, estimate in at.items()),
        ours=", ".join(ours(estimate.value, "+.2f") for estimate in at.values()),
    )
    if is_higher:
        return judged(
            holds=all_are(lambda difference: difference.above(_ALIKE)),
            in_direction=all_are(lambda difference: difference.above(0)),
            size=f"higher by more than {_ALIKE:g}",
        )
    return judged(
        holds=all_are(lambda difference: difference.within(-_ALIKE, _ALIKE)),
        size=f"apart by less than {_ALIKE:g}",
    )


def claims_of_resolutions(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """§VI-D, of what Fig. 11 shows."""
    ok, networks, losses = sessions(frame, campaign), networks_of(campaign), loss_rates(campaign)
    sizes, claims = sizes_of(ok), []
    for variant, baseline in with_fec(campaign).items():
        if "Wi-Fi" not in networks or 0.05 not in losses:
            continue
        usual = {}
        for arm in (variant, baseline):
            rows = _at(ok, "Wi-Fi", 0.05, arm)
            shares = [float(rows[SHARE + size].mean()) for size in sizes]
            usual[arm] = sizes[int(np.argmax(shares))] if not math.isnan(shares[0]) else ""
        is_known = all(usual.values())
        words = " against ".join(picture.replace("x", "×") if is_known else "–" for picture in usual.values())
        heights = [_height(usual[arm]) for arm in (variant, baseline)] if is_known else []
        claims.append(
            Claim(
                f"{variant}: the usual picture over Wi-Fi at 5 % loss",
                "“most of the resolutions at 1280×720”, QUIC's 640×360 (§VI-D)",
                words,
                holds=heights[0] >= _HEIGHT > _QUICS_HEIGHT >= heights[1] if is_known else None,
                in_direction=heights[0] > heights[1] if is_known else None,
                size="1280×720 or more, against 640×360 or less",
                ours=words,
            )
        )
    return claims


def _height(picture: str) -> int:
    """Return the height in lines; sizes of pictures are width x height."""
    return int(picture.partition("x")[2])


def _at(ok: pd.DataFrame, network: str, loss: float, variant: str) -> pd.DataFrame:
    return ok[(ok["network"] == network) & (ok[LOSS] == loss) & (ok["variant"] == variant)]


def _differences(
    played: pd.DataFrame, losses: list[float], variant: str, baseline: str, level: float
) -> dict[float, Estimate]:
    """Return how far the variant's quality is above the baseline's, under the same losses, by loss rate:
    unknown where a session of either is worse than any."""
    estimates = {}
    for loss in losses:
        rows = played[played[LOSS] == loss]
        arms = rows.pivot(index=["workload", "point", "repetition"], columns="variant", values=QOE)
        both = arms.reindex(columns=[variant, baseline]).dropna()
        is_known = len(both) > 0 and np.isfinite(both).all(axis=None)
        estimates[loss] = _mean(both[variant] - both[baseline], level) if is_known else Estimate()
    return estimates


def _mean(values: pd.Series, level: float = LEVEL) -> Estimate:
    """The mean with Student's interval; none of fewer than FEWEST values. All may be equal, as without losses
    in virtual time: then it has no width."""
    mean = float(values.mean())
    if len(values) < FEWEST:
        return Estimate(mean)
    half = float(t_quantile(1 - level / 2, len(values) - 1) * values.std() / math.sqrt(len(values)))
    return Estimate(mean, mean - half, mean + half)


def differences(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    """Return where this experiment departs from that of §VI-D."""
    return [
        "The paper does not say ladder, length of segments, rule, buffer or length of its sessions. Here it"
        " is a made film of nine levels, 235 kbit/s to 4.3 Mbit/s, in segments of 2 s; 120 s of it are played"
        " with 30 s of buffer, by the rule that is the usual one of goDASH, the paper's player.",
        f"The paper's scores are of ITU-T P.1203. Here sessions are judged by `{QOE}`, which needs no model:"
        " so signs and orders are compared, not levels.",
        f"Repetitions: {frame['repetition'].nunique()}; the paper does not say how many it has. It names no"
        f" queue; here the link's {queue_in_words(campaign)}.",
    ]
