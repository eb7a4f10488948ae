"""The designs losses-of-packets and losses-of-time lose by one law where full packets fill the link."""

import numpy as np
import pytest

from fecbench import designs
from fecbench.designs.factor import LinkedFactor
from fecbench.dropper.clocked import verdicts_at
from fecbench.dropper.parameters import loss_model

BITS_OF_A_FULL_FRAME = 8 * 1514


def linked(name: str) -> dict[str, dict[str, object]]:
    factor = designs.load(designs.catalogue()[name]).factors["losses"]
    assert isinstance(factor, LinkedFactor)
    return {key: dict(values) for key, values in factor.linked.items()}


BY_PACKETS, BY_TIME = linked("losses-of-packets"), linked("losses-of-time")


def test_both_have_the_same_networks() -> None:
    assert list(BY_PACKETS) == list(BY_TIME)


@pytest.mark.parametrize("name", BY_PACKETS)
def test_packets_that_fill_the_link_are_lost_at_the_same_rate_in_bursts_as_long(name: str) -> None:
    by_packets, by_time = BY_PACKETS[name], BY_TIME[name]
    assert by_packets["bandwidth_mbps"] == by_time["bandwidth_mbps"]
    model = loss_model({"model": "ge-time", "good_s": by_time["loss.good_s"], "bad_s": by_time["loss.bad_s"]})
    apart_ns = round(1000 * BITS_OF_A_FULL_FRAME / float(str(by_time["bandwidth_mbps"])))
    lost = np.concatenate([verdicts_at(model, seed, np.arange(200_000) * apart_ns) for seed in range(10)])
    begins = np.count_nonzero(~lost[:-1] & lost[1:])
    # Number and lengths of bursts vary, each by 1 / sqrt(begins): four standard errors of both together.
    precision = 4 * np.sqrt(2 / begins)
    assert lost.mean() == pytest.approx(by_packets["loss.rate"], rel=precision)
    assert lost.sum() / begins == pytest.approx(by_packets["loss.burst"], rel=precision)
