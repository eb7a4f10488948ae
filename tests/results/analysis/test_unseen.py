"""The events that so many repetitions may have missed."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from fecbench.results.analysis import unseen
from tests.support.campaigns import campaign_info


def test_a_delay_of_the_unseen_share_is_in_none_of_the_repetitions_in_5_of_100_cases() -> None:
    random = np.random.default_rng(1)
    for repetitions in (6, 20, 300):
        share = unseen.unseen_share(repetitions)
        assert share <= 3 / repetitions
        none = (random.binomial(repetitions, share, 20_000) == 0).mean()
        assert none == pytest.approx(0.05, abs=0.005)


def test_means_and_medians_say_what_they_cannot_tell() -> None:
    pairings = {"safe": SimpleNamespace(ratios=pd.DataFrame({"pairs": [20, 10]}))}
    (sentence,) = unseen.sentences(pairings, campaign_info(statistic="mean"))  # type: ignore[arg-type]
    assert "rests on 20 pairs" in sentence
    assert "less than 13.9 %" in sentence
    lossy = campaign_info(statistic="median", design_text='loss.model = "uniform"')
    (sentence,) = unseen.sentences(pairings, lossy)  # type: ignore[arg-type]
    assert "fewer than half of the transfers" in sentence
    for text in ('title = "Without losses"', '[constants]\nloss.model = "none"'):
        without_losses = campaign_info(statistic="median", design_text=text)
        assert unseen.sentences(pairings, without_losses) == []  # type: ignore[arg-type]
    once = {"safe": SimpleNamespace(ratios=pd.DataFrame({"pairs": [1]}))}
    assert unseen.sentences(once, lossy) == []  # type: ignore[arg-type]
    assert unseen.sentences({}, campaign_info(statistic="mean")) == []
