"""The claims about video say what was planted in a campaign, and claim no more than its sessions show."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.papers.rquic2021 import dash
from tests.results.papers.test_rquic2021 import OFF, XOR, plant

Gain = Callable[[str, float], float]
"""Increase of the quality by FEC, in a network with a loss rate."""


def as_claimed(network: str, loss: float) -> float:
    helps = (network == "Wi-Fi" and loss > 0.01) or (network == "cellular" and loss > 0)
    return 0.6 if helps else 0.0


def sessions(gain: Gain = as_claimed, repetitions: int = 8, noise: float = 0.01) -> tuple[pd.DataFrame, Any]:
    frame, campaign = plant("rquic2021-video", repetitions=repetitions, workload="video")
    draw = np.random.default_rng(3).normal(0, noise, len(frame))
    fec = frame["variant"] == XOR
    gains = [gain(network, loss) for network, loss in zip(frame["network"], frame["loss.p"], strict=True)]
    frame["video.qoe_log"] = 1.0 - 20 * frame["loss.p"] + np.where(fec, gains, 0.0) + draw
    frame["video.share_640x360"] = np.where(fec, 0.2, 0.9)
    frame["video.share_1280x720"] = np.where(fec, 0.8, 0.1)
    return frame, campaign


def verdicts(gain: Gain = as_claimed, **chosen: object) -> dict[str, bool | None]:
    result = dash.claims_of_scores(*sessions(gain, **chosen))
    return {claim.text.removeprefix(f"{XOR}: the score over "): claim.holds for claim in result}


def test_what_the_paper_claims_agrees_where_it_was_planted() -> None:
    assert verdicts() == {
        "Wi-Fi above 1 % loss": True,
        "Wi-Fi at up to 1 % loss": True,
        "cellular wherever packets are lost": True,
        "cellular without losses": True,
        "satellite at any loss": True,
    }


OTHERWISE: list[tuple[tuple[str, float], str]] = [
    (("Wi-Fi", 0.03), "Wi-Fi above 1 % loss"),
    (("Wi-Fi", 0.0), "Wi-Fi at up to 1 % loss"),
    (("cellular", 0.01), "cellular wherever packets are lost"),
    (("cellular", 0.0), "cellular without losses"),
    (("satellite", 0.05), "satellite at any loss"),
]


def test_one_network_that_is_otherwise_makes_its_claim_differ() -> None:
    def but(where: tuple[str, float]) -> Callable[[str, float], float]:
        return lambda *of: -0.5 if of == where else as_claimed(*of)

    for where, differs in OTHERWISE:
        result = verdicts(but(where))
        assert [text for text, holds in result.items() if holds is not True] == [differs], where
        assert result[differs] is False, where


def test_few_or_scattered_sessions_cannot_tell() -> None:
    assert set(verdicts(repetitions=5).values()) == {None}
    assert None in verdicts(noise=1.5).values()


def test_a_score_of_sessions_that_got_through_alone_claims_nothing() -> None:
    frame, campaign = sessions()
    at = (frame["variant"] == XOR) & (frame["network"] == "Wi-Fi") & (frame["loss.p"] == 0.03)
    for lacking in ({"state": "timeout"}, {"video.qoe_log": np.nan}):
        frame.loc[at & (frame["repetition"] < 2), list(lacking)] = list(lacking.values())
        result = dash.claims_of_scores(frame, campaign)
        assert [claim.text for claim in result if claim.holds is None] == [
            f"{XOR}: the score over Wi-Fi above 1 % loss"
        ]
        frame, campaign = sessions()


def test_the_usual_picture_is_compared_by_its_size() -> None:
    frame, campaign = sessions()
    (claim,) = dash.claims_of_resolutions(frame, campaign)
    assert (claim.measured, claim.verdict) == ("1280×720 against 640×360", "agrees")
    swapped = frame.assign(variant=frame["variant"].map({OFF: XOR, XOR: OFF}))
    (claim,) = dash.claims_of_resolutions(swapped, campaign)
    assert (claim.measured, claim.verdict) == ("640×360 against 1280×720", "differs")
    less = {"video.share_640x360": "video.share_640x480"}
    (claim,) = dash.claims_of_resolutions(frame.rename(columns=less), campaign)
    assert (claim.measured, claim.verdict) == ("1280×720 against 640×480", "agrees in direction")


def test_the_figures_have_a_panel_a_network_and_stack_all_segments() -> None:
    frame, campaign = sessions()
    scores, pictures = dash.fig10_scores(frame, campaign), dash.fig11_resolutions(frame, campaign)
    assert [axes.get_title(loc="left") for axes in scores.axes] == ["Wi-Fi", "cellular", "satellite"]
    drawing = [patch for patch in pictures.axes[0].patches if isinstance(patch, Rectangle)]
    bars = [bar for bar in drawing if bar.get_height() > 0]
    tops = {round(bar.get_x(), 3): bar.get_y() + bar.get_height() for bar in bars}
    assert all(top == pytest.approx(1.0) for top in tops.values())
    assert len(tops) == 2 * 5


def test_a_campaign_without_sessions_has_nothing_to_draw() -> None:
    frame, campaign = sessions()
    for lacking in (frame.drop(columns="video.qoe_log"), frame.assign(state="timeout")):
        with pytest.raises(NothingToDraw):
            dash.fig10_scores(lacking, campaign)
