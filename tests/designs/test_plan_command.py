"""`fecbench plan` on its own: tables, JSON and figure of a design's points."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fecbench import designs
from fecbench.runners.commands.plan import plan, rounded
from fecbench.runners.implementations.finding import ours
from fecbench.runners.refusal import Refusal
from tests.support import needs
from tests.support.designs import OFF, RLC, between, downloads, one_of

SMOKE = Path(designs.__file__).parent / "catalog" / "smoke.toml"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def fecbench_plan():
    app = typer.Typer()
    app.command()(plan)

    def run(*arguments: str | Path) -> str:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
        assert result.exit_code == 0
        return result.output

    return run


def test_json_has_the_points_in_order_their_criteria_and_dmin(fecbench_plan) -> None:
    document = json.loads(fecbench_plan(SMOKE, "--json", "--no-measure"))
    expected = designs.load(SMOKE).plan()
    assert document.pop("reach")
    criteria = {"criteria": expected.criteria, "dmin": expected.dmin}
    assert document == {"points": expected.points, **criteria, "estimate": None}


def test_the_tables_show_every_factor_point_and_criterion(fecbench_plan) -> None:
    output = fecbench_plan(SMOKE, "--no-measure")
    expected = designs.load(SMOKE).plan()
    for name in (*expected.points[0], *expected.criteria, "dmin"):
        assert name in output
    assert "= 12 trials" in output
    assert "at most 4 min 00 s if" in output  # 12 trials of up to 20 s


@needs.built(ours().find("noq-fec", "tests"))
def test_a_few_trials_say_how_long_a_design_takes(fecbench_plan, tmp_path: Path) -> None:
    """A rate of 100 kbit/s takes 1.6 s and more for 20 kB: emulated, no trial is quicker."""
    design = tmp_path / "slow.toml"
    design.write_text(SLOW)
    measured = json.loads(fecbench_plan(design, "--json"))["estimate"]
    mean, least, most = measured["virtual_s"]
    assert 0 < least <= mean <= most < 5
    assert 20_000 * 8 / 100_000 < measured["emulated_s"] < 12
    output = fecbench_plan(design)
    assert "min emulated one after another" in output and "at most" not in output


@needs.built(ours().find("noq-fec", "tests"))
def test_each_of_two_points_counts_for_half_of_the_time(fecbench_plan, tmp_path: Path) -> None:
    """Downloads of 200 kB take 16 s and more at 100 kbit/s, and less than 1 s at 100 Mbit/s."""
    design = tmp_path / "two.toml"
    factors = {"bandwidth_mbps": one_of(0.1, 100)}
    network = {"owd_ms": 20, "queue_packets": 100, "loss.model": "none"}
    keys = {"plan": {"method": "grid"}, "factors": factors, "constants": network}
    design.write_text(downloads("two", 200_000, OFF, RLC, **keys))
    measured = json.loads(fecbench_plan(design, "--json"))["estimate"]
    assert 200_000 * 8 / 100_000 / 2 < measured["emulated_s"] < 12


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (41.4, "41 s"), (100, "1.7 min"), (3000, "50 min"), (11_000, "3.1 h")]
)
def test_a_time_that_is_estimated_has_two_digits(seconds: float, text: str) -> None:
    assert rounded(seconds) == text


SLOW = downloads(
    "slow",
    20_000,
    OFF,
    repetitions=200,
    plan={"method": "sobol", "points": 2},
    factors={"owd_ms": between(20, 30)},
    constants={"bandwidth_mbps": 0.1, "queue_packets": 100, "loss.model": "none"},
)
ONE_FACTOR = """
[factors]
loss.p = { min = 0.01, max = 0.1 }
[constants]
loss.model = "uniform"
bandwidth_mbps = 5
owd_ms = 10
"""
EVERY_KIND = """
[factors]
bandwidth_mbps = { min = 0.3, max = 10, scale = "log" }
queue_packets = { min = 10, max = 20, integer = true }
option.http = { choices = ["hq", "h3"] }
[constants]
owd_ms = 10
"""


@pytest.mark.parametrize(
    ("tables", "suffix"),
    [(ONE_FACTOR, "png"), (EVERY_KIND, "svg")],
    ids=["one factor", "every kind of factor"],
)
def test_the_plot_is_drawn_for_any_factors(fecbench_plan, tmp_path: Path, tables: str, suffix: str) -> None:
    smoke = SMOKE.read_text()
    design, figure = tmp_path / "design.toml", tmp_path / f"figure.{suffix}"
    start, end = smoke.index("[factors]"), smoke.index("[[workloads]]")
    design.write_text(smoke[:start] + tables + smoke[end:])
    fecbench_plan(design, "--plot", figure)
    content = figure.read_bytes()
    assert content.startswith(PNG) if suffix == "png" else b"<svg" in content


def test_a_plot_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    for figure, complaint in (
        ("figure.txt", "must end with .png"),
        ("figure", "must end with .png"),
        ("absent/figure.png", "cannot be written"),
    ):
        with pytest.raises(Refusal, match=complaint):
            plan(SMOKE, tmp_path / figure)
