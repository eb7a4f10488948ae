"""A calibration tells a true link from one that is not."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fecbench.checkout import REPOSITORY
from fecbench.dropper import command as dropper_command
from fecbench.dropper.command import COMMAND as DROPPER
from fecbench.results.store.database import Database
from fecbench.runners.calibration import experiments as calibration
from fecbench.runners.calibration import laboratory
from fecbench.runners.calibration.laboratory import Laboratory
from fecbench.runners.calibration.table import Kind, Measurement, Table
from fecbench.runners.commands.calibrate import calibrate
from fecbench.runners.commands.run import run
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks import validity
from fecbench.runners.tasks.validity import Validity
from fecbench.topologies.link import Direction, LinkSettings
from fecbench.topologies.programs import PROBER, WIRE
from tests.support import needs

built = pytest.mark.skipif(
    not (DROPPER.exists() and WIRE.exists() and PROBER.exists()), reason="needs make build"
)


def table(*measurements: Measurement) -> Table:
    lines = list(measurements)
    return Table(
        kind="full", at="2026-01-01T00:00:00+00:00", backend="wire", real_time=True, measurements=lines
    )


def verdicts(laboratory: Laboratory) -> Iterable[Measurement]:
    return calibration.verdicts(laboratory, "ge", calibration.BURSTY, 1000)


@pytest.mark.parametrize("experiment", [calibration.queue, verdicts])
def test_what_is_counted_is_exact(experiment: Any, measure: Any) -> None:
    lines = measure(experiment, is_exact)
    assert len(lines) >= 3
    assert is_exact(lines), lines


def is_exact(lines: dict[str, Measurement]) -> bool:
    return all(line.value == 0 for line in lines.values())


def test_a_link_that_is_slower_than_it_should_be_breaks_the_bounds_of_delay_and_rate(
    measure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build_slower(topology: str, links: dict[str, LinkSettings], *others: Any) -> Any:
        return real_build(topology, {name: slowed(link) for name, link in links.items()}, *others)

    def slowed(link: LinkSettings) -> LinkSettings:
        up = replace(link.up, bandwidth_mbps=0.99 * link.up.bandwidth_mbps, owd_ms=link.up.owd_ms + 2)
        return replace(link, up=up)

    real_build = laboratory.build  # type: ignore[attr-defined]
    monkeypatch.setattr(laboratory, "build", build_slower)
    lines = measure(calibration.brief)
    wrong = {name for name, line in lines.items() if not line.good}
    assert wrong == {"delay error at 10 ms, p50", "delay error at 10 ms, p99", "rate error at 10 Mbps"}


def test_a_wrong_verdict_is_noticed_in_the_record_and_in_what_is_delivered(
    measure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_attach = dropper_command.attach

    def attach(where: Any, model: Any, seed: int, *rest: Any) -> None:
        real_attach(where, model, seed + 1, *rest)

    monkeypatch.setattr(dropper_command, "attach", attach)
    lines = measure(verdicts)
    assert {name for name, line in lines.items() if not line.good} == {
        "recorded verdicts beside the oracle's, ge",
        "packets delivered beside the oracle's, ge",
    }


def test_an_asymmetric_link_is_measured_in_both_directions(measure: Any) -> None:
    lines = measure(calibration.asymmetry)
    # Whether the bounds hold depends on what else runs. One direction measured for the other would be
    # wrong by half of its rate or more.
    for name in ("up an asymmetric link, at 50 Mbps", "down an asymmetric link, at 100 Mbps"):
        assert lines[f"rate error {name}"].value < 0.4
    for name in ("up an asymmetric link, at 100 ms", "down an asymmetric link, at 10 ms"):
        assert 0 <= lines[f"delay error {name}, p50"].value <= lines[f"delay error {name}, p99"].value
    assert lines["packets not conserved"].value == 0


def test_slow_asymmetric_link_breaks_the_bound_of_each_rate() -> None:
    def burst(link: LinkSettings, _: int, direction: Direction) -> tuple[float, float]:
        return 0.9 * link.of(direction).bandwidth_mbps, 0.0

    room: Any = SimpleNamespace(delay_error_us=lambda *_: [0.0], burst=burst)
    wrong = [line.name for line in calibration.asymmetry(room) if not line.good]
    assert [name.split()[:3] for name in wrong] == [["rate", "error", "up"], ["rate", "error", "down"]]


def test_a_link_whose_frames_are_too_early_breaks_the_bounds_of_delay() -> None:
    early: Any = SimpleNamespace(
        delay_error_us=lambda *_: np.full(5, -900.0), burst=lambda link, *_: (link.up.bandwidth_mbps, 0.0)
    )
    for experiment in (lambda room: calibration.delays(room, calibration.IDLE), calibration.asymmetry):
        lines = [line for line in experiment(early) if line.name.startswith("delay error")]
        assert [line.value for line in lines] == [900.0] * len(lines)
        assert not any(line.good for line in lines if line.bound is not None and line.bound < 900)


@needs.ROOT
@built
def test_the_brief_table_is_measured_in_seconds_and_says_when() -> None:
    brief = calibration.measure("wire", "brief")
    assert brief.kind == "brief"
    assert brief.at.endswith("+00:00")
    assert brief.real_time is not None
    names = {line.name for line in brief.measurements}
    assert {"delay error at 10 ms, p50", "rate error at 10 Mbps", "packets out of order"} <= names


FORGIVING = Validity(late_frames_share=1, late_time_share=1e6, stall_share=1e6, stolen_share=1e6)
"""Bounds with which a busy machine makes no trial invalid."""


def bad_then_good(attempts: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = iter(attempts)

    def measure(_: str, kind: Kind) -> Table:
        assert kind == "brief"
        return table(Measurement(name="x", value=0 if next(outcomes) else 2, bound=1, unit=""))

    monkeypatch.setattr(calibration, "measure", measure)


def test_a_moment_of_load_is_forgiven_a_machine_that_never_holds_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses_s: list[float] = []
    monkeypatch.setattr("time.sleep", pauses_s.append)
    bad_then_good([False, False, True], monkeypatch)
    table = calibration.measure_briefly("wire")
    assert (table.good, table.attempt) == (True, 3)
    bad_then_good([False] * 5, monkeypatch)
    assert not calibration.measure_briefly("wire").good
    assert pauses_s == [0, 2, 5, 0, 2, 5, 10, 20]


@needs.ROOT
def test_a_bound_that_does_not_hold_is_told_by_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for value, status in ((1.0, 0), (1.1, 1)):
        line = Measurement(name="delay error", value=value, bound=1.0, unit="µs")
        unbounded = Measurement(name="rate", value=value, bound=None, unit="Mbps")
        measured = table(line, unbounded)
        monkeypatch.setattr(calibration, "measure", lambda *_, measured=measured: measured)
        assert calibrate("auto", as_json=True) == status
        document = json.loads(capsys.readouterr().out)
        assert document["good"] == document["measurements"][0]["good"] == (status == 0)
        assert document["measurements"][1]["good"]


def run_one_trial(database: Path, point: int = 0, **options: bool) -> None:
    """The trial's state does not matter: other load may make it invalid."""
    choice = ["workload=download-1000", f"point={point}", "variant=rQUIC, FEC off"]
    assert run(REPOSITORY / "designs/catalog/smoke.toml", str(database), filters=choice, **options) in (0, 1)


def run_another_trial(database: Path, **options: bool) -> None:
    run_one_trial(database, point=1, resume=True, **options)


def calibrations(database: Path) -> list[dict[str, Any]]:
    with Database.open(str(database)) as opened:
        (campaign,) = opened.campaigns()
    calibrations_of_campaign: list[dict[str, Any]] = campaign.provenance["calibration"]
    return calibrations_of_campaign


@needs.ROOT
@built
def test_a_machine_whose_link_is_not_what_it_should_be_is_refused_before_anything_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    line = Measurement(name="delay error at 10 ms, p50", value=912.3, bound=300, unit="µs")
    monkeypatch.setattr(calibration, "measure", lambda *_: table(line))
    monkeypatch.setattr(calibration, "BRIEF_PAUSES_S", (0, 0))
    with pytest.raises(Refusal, match=r"delay error at 10 ms, p50 is 912\.3 µs, the bound is 300; --no-cal"):
        run_one_trial(tmp_path / "x.sqlite")
    with Database.open(str(tmp_path / "x.sqlite")) as opened:
        assert opened.campaigns() == []
    run_one_trial(tmp_path / "x.sqlite", no_calibrate=True)
    with pytest.raises(Refusal, match="--no-calibrate"):  # another machine may go on
        run_another_trial(tmp_path / "x.sqlite")
    assert [start["kind"] for start in calibrations(tmp_path / "x.sqlite")] == ["skipped"]


@needs.ROOT
@built
def test_a_campaign_keeps_the_calibration_of_each_of_its_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_invalid_trials: Any
) -> None:
    measured = table(Measurement(name="x", value=0, bound=1, unit=""))
    monkeypatch.setattr(calibration, "measure", lambda *_: measured)
    monkeypatch.setattr(validity, "USUAL", FORGIVING)
    database = tmp_path / "x.sqlite"
    run_one_trial(database)
    assert calibrations(database) == [measured.model_dump()]
    run_another_trial(database, no_calibrate=True)
    assert calibrations(database)[0] == measured.model_dump()
    assert [start["kind"] for start in calibrations(database)] == ["full", "skipped"]
    assert not has_invalid_trials(database)
    run_another_trial(database)  # nothing is left to run
    assert [start["kind"] for start in calibrations(database)] == ["full", "skipped"]
