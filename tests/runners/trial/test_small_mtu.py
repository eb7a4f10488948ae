"""Trials over links whose MTU is small: what a stack makes of it, and that the judge vouches for it."""

from pathlib import Path

import pytest

from fecbench import designs
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.checks import check
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.implementations.finding import ours
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import ROLES, Task
from tests.support import needs, tasks
from tests.support.patience import carried_out
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


def task_of(folder: Path, name: str, more: str) -> Experiment:
    file = folder / "small.toml"
    file.write_text(DESIGN.format(name=name, more=more))
    design = designs.load(file)
    return Experiment(design, design.plan().points, ours())


def trial_of(experiment: Experiment) -> Task:
    (label,) = experiment.activities
    task = experiment.task(TrialKey("it", label, 0, 0), "wire")
    return task.model_copy(update={"validity": tasks.SLOW_MACHINE})


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
        implementation = ours().find(name, "tests")
        if implementation.missing_programs():
            pytest.skip(f"{name} is not built")
        commands = {name: {role: implementation.command(role) for role in ROLES}}
        task = trial_of(task_of(tmp_path, name, more))
        finished, judgement = carried_out(trials, task, commands, {name: implementation.folder})
        assert judgement.state == state, judgement.reason
        reports = finished.outcome.links["internet"].directions.values()
        assert sum(report.oversize_dropped for report in reports) > 0
        assert (sum(report.icmp_sent for report in reports) > 0) == ("icmp" in more)


def test_virtual_time_refuses_an_icmp_that_nobody_hears(tmp_path: Path) -> None:
    for more in ("mtu.icmp = true", "internet.down.mtu.icmp = true", "up.mtu.icmp = true"):
        with pytest.raises(Refusal, match=r"mtu.icmp: reaches nobody with --engine virtual: no kernel hears"):
            check(task_of(tmp_path, "noq-fec", more), "virtual", "virtual")
