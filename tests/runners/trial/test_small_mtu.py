"""Trials over links whose MTU is small: what a stack makes of it, and that the judge vouches for it."""

from pathlib import Path

import pytest

from fecbench.runners.campaign.checks import check
from fecbench.runners.refusal import Refusal
from tests.support import needs
from tests.support.experiments import experiment_of_text, task_of, trial_by
from tests.support.trials import Trials

DESIGN = """
name = "small"
title = "Small MTUs"
seed = 6
topology = "single-path"
repetitions = 1
timeout_s = 6

[constants]
bandwidth_mbps = 20
owd_ms = 5
mtu_bytes = 1330
{more}

[[workloads]]
name = "download"
size_bytes = 1_000_000

[[variants]]
label = "it"
implementation = "{name}"
"""


class TestStack:
    pytestmark = needs.TRIALS

    @pytest.mark.parametrize(
        ("name", "more", "state"),
        [
            ("tcp", "mtu.icmp = true", "ok"),
            ("tcp", 'family = "ipv6"\nmtu.icmp = true', "ok"),
            ("tcp", "", "timeout"),
            ("quic-go", "mtu.icmp = true", "ok"),
            ("quic-go", "", "ok"),
        ],
        ids=["tcp-told", "tcp-told-ipv6", "tcp-black-hole", "quic-go-told", "quic-go-black-hole"],
    )
    def test_tcp_needs_the_icmp_and_a_probe_of_quic_survives_without(
        self, name: str, more: str, state: str, trials: Trials, tmp_path: Path
    ) -> None:
        task = task_of(experiment_of_text(tmp_path, DESIGN.format(name=name, more=more)))
        finished, judgement = trial_by(name, trials, task)
        assert judgement.state == state, judgement.reason
        reports = finished.outcome.links["internet"].directions.values()
        assert sum(report.oversize_dropped for report in reports) > 0
        assert (sum(report.icmp_sent for report in reports) > 0) == ("icmp" in more)


def test_virtual_time_refuses_an_icmp_that_nobody_hears(tmp_path: Path) -> None:
    for more in ("mtu.icmp = true", "internet.down.mtu.icmp = true", "up.mtu.icmp = true"):
        with pytest.raises(Refusal, match=r"mtu.icmp: reaches nobody with --engine virtual: no kernel hears"):
            check(
                experiment_of_text(tmp_path, DESIGN.format(name="noq-fec", more=more)), "virtual", "virtual"
            )
