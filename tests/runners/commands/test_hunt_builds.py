"""`fecbench hunt --builds` finds a new build that is slower in a few networks alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runners.commands import test_hunt
from tests.runners.commands.test_hunt import with_harm
from tests.runners.conftest import MADE_UP, Done
from tests.support.designs import between, variant

Network = dict[str, Any]
FACTORS = {
    **test_hunt.FACTORS,
    "queue_bdp": between(0.25, 4, scale="log"),
    "jitter_ms": between(0.1, 20, scale="log"),
}
DESIGN = test_hunt.space(FACTORS, variant("any", "made-up", baseline=True), constants={"loss.model": "none"})
ROUND_TRIP = "(int(link['up']['delay_ns']) + int(link['down']['delay_ns']))"
IN_FLIGHT = f"{ROUND_TRIP} * int(link['down']['rate_bps']) / 8e9"
REGRESSIONS: dict[str, tuple[str, Callable[[Network], bool]]] = {
    "within 60 bytes of size": (
        "10_700 <= size < 10_760",
        lambda network: 10_700 <= network["workload.size_bytes"] < 10_760,
    ),
    "beyond 30 % of jitter": (
        "int(link['down']['jitter'].split()[1]) > 0.3 * int(link['down']['delay_ns'])",
        lambda network: network["jitter_ms"] > 0.299 * network["owd_ms"],
    ),
    "in a queue below 0.4 BDP": (
        f"int(link['down']['queue_bytes']) < 0.4 * {IN_FLIGHT}",
        lambda network: network["queue_bdp"] < 0.401,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REGRESSIONS)
def test_a_regression_in_a_few_networks_is_found_in_ten_minutes(
    fecbench_here: Callable[..., Done], tmp_path: Path, name: str
) -> None:
    condition, is_slower = REGRESSIONS[name]
    design, db = tmp_path / "space.toml", tmp_path / "x.sqlite"
    design.write_text(DESIGN)
    slower = with_harm(tmp_path / "slower", f"1.3 if {condition} else 1")
    words = ("--builds", MADE_UP, slower, design, "--db", db, "--no-calibrate", "--json", "--minutes", 10)
    result = fecbench_here("hunt", *words)
    assert result.returncode == 1, result
    for finding in json.loads(result.stdout)["found"]:
        assert is_slower(finding["network"]), finding
        assert finding["ratio"] == pytest.approx(1.3, rel=0.02)
