"""Trials over links whose MTU is small: what a stack makes of it, and that the judge vouches for it."""

from pathlib import Path

import pytest

from fecbench.runners.campaign.checks import check
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.refusal import Refusal
from tests.support import needs
from tests.support.designs import Table, downloads, variant
from tests.support.experiments import experiment_of_text, task_of, trial_by
from tests.support.trials import Trials

ICMP = {"mtu.icmp": True}


def experiment(folder: Path, name: str, constants: Table) -> Experiment:
    network = {"bandwidth_mbps": 20, "owd_ms": 5, "mtu_bytes": 1330, **constants}
    text = downloads("small", 1_000_000, variant("it", name), timeout_s=6, constants=network)
    return experiment_of_text(folder, text)


class TestStack:
    pytestmark = needs.TRIALS

    @pytest.mark.parametrize(
        ("name", "more", "state"),
        [
            ("tcp", ICMP, "ok"),
            ("tcp", {"family": "ipv6", **ICMP}, "ok"),
            ("tcp", {}, "timeout"),
            ("quic-go", ICMP, "ok"),
            ("quic-go", {}, "ok"),
        ],
        ids=["tcp-told", "tcp-told-ipv6", "tcp-black-hole", "quic-go-told", "quic-go-black-hole"],
    )
    def test_tcp_needs_the_icmp_and_a_probe_of_quic_survives_without(
        self, name: str, more: Table, state: str, trials: Trials, tmp_path: Path
    ) -> None:
        task = task_of(experiment(tmp_path, name, more))
        finished, judgement = trial_by(name, trials, task)
        assert judgement.state == state, judgement.reason
        reports = finished.outcome.links["internet"].directions.values()
        assert sum(report.oversize_dropped for report in reports) > 0
        assert (sum(report.icmp_sent for report in reports) > 0) == ("mtu.icmp" in more)


def test_virtual_time_refuses_an_icmp_that_nobody_hears(tmp_path: Path) -> None:
    for name in ("mtu.icmp", "internet.down.mtu.icmp", "up.mtu.icmp"):
        with pytest.raises(Refusal, match=r"mtu.icmp: reaches nobody with --engine virtual: no kernel hears"):
            check(experiment(tmp_path, "noq-fec", {name: True}), "virtual", "virtual")
