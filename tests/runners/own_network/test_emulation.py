"""A design that emulates an observed path: what it says is what was seen, and it can be run."""

from pathlib import Path

import numpy as np
import pytest

from fecbench import designs
from fecbench.errors import BadInput
from fecbench.results.store.database import Database
from fecbench.runners.own_network import emulation
from tests.support.campaigns import only_campaign
from tests.support.field_campaigns import FRAME_BYTES, RATE_MBPS, RTT_MS, plant

BLOCKS = 30


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("home") / "home.sqlite"
    plant(path, "home", np.zeros(BLOCKS), queue_packets=50)
    return path


def test_each_parameter_is_that_of_the_path_and_says_what_it_rests_on(home: Path, tmp_path: Path) -> None:
    with only_campaign(home) as (database, campaign):
        path = emulation.observed(database, campaign)
    text = emulation.emulation(campaign, path)
    (tmp_path / "emulated.toml").write_text(text)
    design = designs.load(tmp_path / "emulated.toml")
    assert (design.name, design.topology, design.repetitions) == ("home-emulated", "single-path", BLOCKS)
    assert [variant.label for variant in design.variants] == ["off", "rlc"]
    constants = design.constants
    for direction in ("up", "down"):
        assert constants[f"{direction}.bandwidth_mbps"] == pytest.approx(RATE_MBPS, rel=0.02)
        assert constants[f"{direction}.owd_ms"] == pytest.approx(RTT_MS / 2, rel=0.02)
    assert constants["down.queue_bytes"] == pytest.approx(50 * FRAME_BYTES, rel=0.05)
    assert constants["loss.up.model"] == "none"
    share = constants.get("loss.down.rate", constants.get("loss.down.p"))
    assert isinstance(share, float) and 0.005 < share < 0.03
    lines = text.partition("[constants]\n")[2].splitlines()
    assert len(lines) >= 9 and all("  # " in line for line in lines)


def test_a_design_keeps_what_it_says_of_options_and_has_the_repetitions_that_are_asked_for(
    home: Path,
) -> None:
    with only_campaign(home) as (database, campaign):
        path = emulation.observed(database, campaign)
    design = emulation.design_of_path(campaign, path, 7)
    assert design.repetitions == 7 and design.variants[1].options == {"scheme": "rlc"}


def test_a_queue_that_was_never_full_has_a_round_trip(tmp_path: Path) -> None:
    plant(tmp_path / "db.sqlite", "home", np.zeros(BLOCKS), queue_packets=100)
    with only_campaign(tmp_path / "db.sqlite") as (database, campaign):
        path = emulation.observed(database, campaign)
    assert path.down.queue_bdp is None
    text = emulation.emulation(campaign, path)
    (line,) = (line for line in text.splitlines() if line.startswith("down.queue_bytes"))
    assert "no volley filled it" in line


@pytest.mark.parametrize("engine", ["field", "virtual"])
def test_campaigns_without_a_path_are_refused(engine: str, tmp_path: Path) -> None:
    plant(tmp_path / "db.sqlite", "home", [0.0] * 3, engine=engine)
    why = "no probe was answered" if engine == "field" else "was not run with --engine field"
    with Database.open(str(tmp_path / "db.sqlite")) as database, pytest.raises(BadInput, match=why):
        emulation.observed(database, database.campaigns()[0])


def test_too_few_volleys_are_refused(tmp_path: Path) -> None:
    plant(tmp_path / "db.sqlite", "home", [0.0] * 3, queue_packets=50)
    with only_campaign(tmp_path / "db.sqlite") as (database, campaign):
        path = emulation.observed(database, campaign)
    with pytest.raises(BadInput, match="the rate up is not known: too few volleys"):
        emulation.emulation(campaign, path)
