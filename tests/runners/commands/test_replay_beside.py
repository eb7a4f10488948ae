"""`fecbench replay --beside` and `fecbench diff` run two trials again, and draw both."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fecbench.runners.implementations.finding import ours
from tests.runners.conftest import Done
from tests.support import needs
from tests.support.designs import downloads, variant

pytestmark = needs.built(ours().find("noq-fec", "tests"))
Run = Callable[..., Done]
LOSES_ONE = {"loss": {"up": {"model": "none"}, "down": {"model": "pattern", "drop": "6"}}}
DESIGN = downloads(
    "one",
    20_000,
    variant("no FEC", scheme="none", baseline=True),
    variant("RLC", scheme="rlc", controller="constant"),
    constants={"bandwidth_mbps": 10, "owd_ms": 30, **LOSES_ONE},
)


@pytest.fixture
def db(virtually: Callable[..., Path]) -> Path:
    return virtually(DESIGN)


def test_two_trials_are_drawn_together_with_where_they_part(
    fecbench_here: Run, db: Path, tmp_path: Path
) -> None:
    refusal = fecbench_here("replay", 1, "--db", db, "--output", tmp_path / "x", "--beside", 2).refusal()
    assert "--beside 2: is drawn: give --plot FILE, too" in refusal
    plot = tmp_path / "both.png"
    result = fecbench_here("replay", 1, "--db", db, "--beside", 2, "--plot", plot)
    assert result.returncode == 0, result
    assert "They part at packet " in result.stdout and "no FEC" in result.stdout and "RLC" in result.stdout
    assert plot.stat().st_size > 10_000
    itself = fecbench_here("replay", 1, "--db", db, "--beside", 1, "--plot", plot)
    assert "They never part." in itself.stdout


def test_a_diff_shows_where_two_trials_part_and_only_what_differs(
    fecbench_here: Run, db: Path, tmp_path: Path
) -> None:
    plot, output = tmp_path / "both.svg", tmp_path / "both"
    words = ("diff", 1, 2, "--db", db, "--plot", plot)
    result = fecbench_here(*words, "--json", "--output", output)
    assert result.returncode == 0, result
    document = json.loads(result.stdout)
    assert document["same"] == [True, True] and document["part"].startswith("They part at packet ")
    labels = [trial["key"]["variant"] for trial in document["trials"]]
    assert sorted(labels) == ["RLC", "no FEC"]
    repair = document["differ"]["server.repair_sent"]
    assert repair[labels.index("no FEC")] == 0 < repair[labels.index("RLC")]
    both = [trial["metrics"] for trial in document["trials"]]
    for name, values in document["differ"].items():
        endpoint, _, metric = name.partition(".")
        if endpoint in both[0]:
            assert [metrics[endpoint][metric] for metrics in both] == values and values[0] != values[1]
    assert "client.connections" not in document["differ"]
    assert json.loads((output / "diff.json").read_text()) == document | {"artefacts": ["1", "2"]}
    assert list(output.glob("1/server/*.sqlog")) and list(output.glob("2/server/*.sqlog"))
    assert plot.stat().st_size > 10_000
    text = fecbench_here(*words).stdout
    assert "trial 1: " in text and "They part at packet " in text and "which may be why" not in text


def test_a_diff_of_one_trial_or_of_none_is_refused(fecbench_here: Run, db: Path) -> None:
    assert "is one trial: give two" in fecbench_here("diff", 1, 1, "--db", db).refusal()
    assert "99" in fecbench_here("diff", 1, 99, "--db", db).refusal()
