"""Trials of stacks over a queue that marks: with ECN their packets are marked, and without it none is."""

from pathlib import Path
from typing import Any

import pytest

from fecbench.designs.error import DesignError
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.refusal import Refusal
from tests.support import needs
from tests.support.designs import downloads, variant
from tests.support.experiments import experiment_of_text, task_of, trial_by
from tests.support.trials import Trials

ON, OFF = {"ecn": True}, {"ecn": False}
NETWORK = {"bandwidth_mbps": 10, "owd_ms": 10, "ecn": True, "ecn_threshold_ms": 2}
STACKS = [
    *((name, ON, True) for name in ("noq-fec", "quinn", "tcp", "quic-go")),
    *((name, OFF, False) for name in ("noq-fec", "quinn", "tcp", "quic-go")),
    ("ngtcp2", {}, True),
    *((name, {}, False) for name in ("rquic", "quiche", "aioquic")),
]


def experiment(folder: Path, name: str, options: dict[str, bool]) -> Experiment:
    text = downloads("marks", 500_000, variant("it", name, **options), timeout_s=20, constants=NETWORK)
    return experiment_of_text(folder, text)


@pytest.mark.parametrize(("name", "options", "is_marked"), STACKS)
class TestStack:
    pytestmark = needs.TRIALS

    def test_a_queue_marks_packets_of_those_who_allow_it(
        self, name: str, options: dict[str, bool], is_marked: bool, trials: Trials, tmp_path: Path
    ) -> None:
        task = task_of(experiment(tmp_path, name, options))

        def marks(finished: Any) -> int:
            return int(finished.outcome.links["internet"].directions["down"].marked)

        finished, judgement = trial_by(
            name, trials, task, lambda *result: bool(marks(result[0])) == is_marked
        )
        assert (judgement.state, judgement.reason) == ("ok", "")
        assert bool(marks(finished)) == is_marked
        client = finished.outcome.endpoints["client"].metrics or {}
        if "ecn_marks_received" in client:  # the judge has held it against the queue's
            assert is_marked and client["ecn_marks_received"] > 0


@pytest.mark.parametrize("name", ["rquic", "quiche", "aioquic", "ngtcp2"])
def test_a_stack_without_a_switch_refuses_ecn_in_one_line(name: str, tmp_path: Path) -> None:
    with pytest.raises((Refusal, DesignError)) as raised:
        experiment(tmp_path, name, ON)
    assert "ecn" in str(raised.value)
    assert "\n" not in str(raised.value)
