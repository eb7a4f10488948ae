"""`fecbench replay --beside` runs two trials again, and draws both."""

from collections.abc import Callable
from pathlib import Path

from fecbench.runners.implementations.finding import ours
from tests.runners.conftest import Done
from tests.support import needs

pytestmark = needs.built(ours().find("noq-fec", "tests"))
Run = Callable[..., Done]
DESIGN = """
name = "one"
title = "One network"
seed = 3
topology = "single-path"
repetitions = 1
[constants]
bandwidth_mbps = 10
owd_ms = 30
loss.model = "pattern"
loss.down.model = "pattern"
loss.down.drop = "6"
loss.up.model = "none"
[[workloads]]
name = "download"
size_bytes = 20_000
[[variants]]
label = "no FEC"
implementation = "noq-fec"
options = { scheme = "none" }
baseline = true
[[variants]]
label = "RLC"
implementation = "noq-fec"
options = { scheme = "rlc", controller = "constant" }
"""


def test_two_trials_are_drawn_together_with_where_they_part(fecbench_here: Run, tmp_path: Path) -> None:
    design, db = tmp_path / "one.toml", tmp_path / "one.sqlite"
    design.write_text(DESIGN.replace('loss.model = "pattern"\n', "", 1))
    ran = fecbench_here("run", design, "--engine", "virtual", "--db", db, "--no-calibrate")
    assert ran.returncode == 0, ran
    refusal = fecbench_here("replay", 1, "--db", db, "--output", tmp_path / "x", "--beside", 2).refusal()
    assert "--beside 2: is drawn: give --plot FILE, too" in refusal
    plot = tmp_path / "both.png"
    result = fecbench_here("replay", 1, "--db", db, "--beside", 2, "--plot", plot)
    assert result.returncode == 0, result
    assert "They part at packet " in result.stdout and "no FEC" in result.stdout and "RLC" in result.stdout
    assert plot.stat().st_size > 10_000
    itself = fecbench_here("replay", 1, "--db", db, "--beside", 1, "--plot", plot)
    assert "They never part." in itself.stdout
