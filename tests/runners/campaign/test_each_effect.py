"""Equal arms are equal over each effect of a link, in virtual time; the design of them has each effect."""

from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w

from fecbench import designs
from fecbench.runners.campaign import links
from fecbench.runners.implementations.finding import ours
from tests.support import needs
from tests.support.campaigns import only_campaign
from tests.support.designs import variant

NEEDS_OTHERS = {
    "reorder.by_packets",
    "policer_burst_bytes",
    "cross.on_s",
    "cross.off_s",
    "ecn_threshold_ms",
    "codel_target_ms",
}
"""Parameters that mean nothing without another one."""
NO_EFFECT = {
    "bandwidth_mbps",
    "owd_ms",
    "queue_bdp",
    "queue_bytes",
    "queue_packets",
    "queue_ms",
    "jitter.law",
}
OF_OTHER_DESIGNS = {
    "outage_s",
    "outage_from_s",
    "outage_to_s",
    "trace",
    "trace.offset_s",
    "trace.repeat",
    "reorder",
}
NOT_IN_VIRTUAL_TIME = {"mtu.icmp"}


def test_the_design_has_each_effect_of_a_link_whichever_there_are() -> None:
    design = designs.load(designs.catalogue()["each-effect"])
    (point, *_) = design.plan().points
    parameters = {name for name in point if name in links.SETTINGS}
    elsewhere = NEEDS_OTHERS | NO_EFFECT | OF_OTHER_DESIGNS | NOT_IN_VIRTUAL_TIME
    assert set(links.SETTINGS) - elsewhere == parameters
    assert "loss.only_longer_than" in point


@needs.built(ours().find("noq-fec", "tests"))
@pytest.mark.parametrize("repetitions", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_equal_arms_are_equal_to_the_nanosecond_over_each_effect(
    repetitions: int, virtually: Callable[..., Path]
) -> None:
    arms = [variant("one", controller="safe", baseline=True), variant("other", controller="safe")]
    keys = {"base": "each-effect", "name": "equal", "repetitions": repetitions, "variants": arms}
    digests: dict[tuple[int, int], set[str]] = {}
    with only_campaign(virtually(tomli_w.dumps(keys))) as (database, campaign):
        for trial in database.trials(campaign.id):
            assert trial.record.state == "ok", trial.record.reason
            key = trial.record.key
            digests.setdefault((key.point, key.repetition), set()).add(trial.record.checks["digest"])
    assert len(digests) == 15 * repetitions
    assert {len(of_pair) for of_pair in digests.values()} == {1}
    assert len(set().union(*digests.values())) == len(digests), "each effect changes something"
