"""A calibration tells a true link from one that is not."""

import json
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dropper.command import COMMAND as DROPPER
from fecbench.checkout import REPOSITORY
from results.store.database import Database
from runners.calibration import experiments as calibration
from runners.calibration.experiments import Kind, Laboratory, Measurement, Table, Traffic
from runners.commands.calibrate import calibrate
from runners.commands.run import run
from runners.refusal import Refusal
from runners.trial.isolation import run_isolated
from topologies.link import LinkSettings
from topologies.link_report import LinkReport
from topologies.programs import PROBER, WIRE

root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces")
built = pytest.mark.skipif(
    not all(each.exists() for each in (DROPPER, WIRE, PROBER)), reason="needs make build"
)


def measured(experiment: Callable[[Laboratory], Iterable[Measurement]]) -> dict[str, Measurement]:
    """The lines of an experiment and of the integrity of its traffic, by name."""

    def body() -> bytes:
        laboratory = Laboratory("wire")
        found = [*experiment(laboratory), *laboratory.integrity()]
        return table(*found).model_dump_json().encode()

    said = Table.model_validate_json(run_isolated(body, 60))
    return {each.name: each for each in said.measurements}


def table(*measurements: Measurement) -> Table:
    made: dict[str, Any] = {"kind": "full", "at": "2026-01-01T00:00:00+00:00", "backend": "wire"}
    return Table(**made, real_time=True, measurements=list(measurements))


@root
@built
@pytest.mark.parametrize("experiment", [calibration._queue, calibration._brief_verdicts])
def test_what_is_counted_is_exact(experiment: Any) -> None:
    found = measured(experiment)
    assert len(found) >= 3
    assert all(each.value == 0 for each in found.values()), found


@root
@built
def test_a_link_that_is_slower_than_it_should_be_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def build_slower(topology: str, links: dict[str, LinkSettings], backend: Any) -> Any:
        slower = {name: slowed(each) for name, each in links.items()}
        return real_build(topology, slower, backend)

    def slowed(link: LinkSettings) -> LinkSettings:
        up = replace(link.up, bandwidth_mbps=0.99 * link.up.bandwidth_mbps, owd_ms=link.up.owd_ms + 2)
        return replace(link, up=up)

    real_build = calibration.build
    monkeypatch.setattr(calibration, "build", build_slower)
    found = measured(lambda laboratory: [*calibration._brief(laboratory)])
    wrong = {name for name, each in found.items() if not each.good}
    assert wrong == {"delay error at 10 ms, p50", "delay error at 10 ms, p99", "rate error at 10 Mbps"}


@root
@built
def test_a_wrong_verdict_is_found_in_the_record_and_in_what_is_delivered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real_attach = calibration.dropper.command.attach

    def attach(where: Any, model: Any, seed: int, *rest: Any) -> None:
        real_attach(where, model, seed + 1, *rest)

    monkeypatch.setattr(calibration.dropper.command, "attach", attach)
    found = measured(calibration._brief_verdicts)
    assert {name for name, each in found.items() if not each.good} == {
        "recorded verdicts beside the oracle's, ge",
        "packets delivered beside the oracle's, ge",
    }


@root
@built
def test_the_brief_table_is_measured_in_seconds_and_says_when() -> None:
    brief = calibration.measure("wire", "brief")
    assert brief.kind == "brief"
    assert brief.at.endswith("+00:00")
    assert brief.real_time is not None
    names = {each.name for each in brief.measurements}
    assert {"delay error at 10 ms, p50", "rate error at 10 Mbps", "packets out of order"} <= names


def bad_then_good(attempts: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter(attempts)

    def measure(_: str, kind: Kind) -> Table:
        assert kind == "brief"
        return table(Measurement(name="x", value=0 if next(left) else 2, bound=1, unit=""))

    monkeypatch.setattr(calibration, "measure", measure)


def test_a_moment_of_load_is_forgiven_a_machine_that_never_holds_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bad_then_good([False, False, True], monkeypatch)
    third = calibration.measure_briefly("wire")
    assert (third.good, third.attempt) == (True, 3)
    bad_then_good([False] * 3, monkeypatch)
    assert not calibration.measure_briefly("wire").good


@pytest.mark.parametrize(("value", "status"), [(1.0, 0), (1.1, 1)])
@root
def test_a_bound_that_does_not_hold_is_told_by_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: float, status: int
) -> None:
    line = Measurement(name="delay error", value=value, bound=1.0, unit="µs")
    told = Measurement(name="rate", value=value, bound=None, unit="Mbps")
    monkeypatch.setattr(calibration, "measure", lambda *_: table(line, told))
    assert calibrate("auto", as_json=True) == status
    document = json.loads(capsys.readouterr().out)
    assert document["good"] == document["measurements"][0]["good"] == (status == 0)
    assert document["measurements"][1]["good"]


def run_one_trial(database: Path, point: int = 0, **options: bool) -> None:
    """Its state is of no interest: other load may make it invalid."""
    chosen = ["workload=download-1000", f"point={point}", "variant=rQUIC, FEC off"]
    assert run(REPOSITORY / "designs/catalog/smoke.toml", str(database), filters=chosen, **options) in (0, 1)


def run_another_trial(database: Path, **options: bool) -> None:
    run_one_trial(database, point=1, resume=True, **options)


def calibrations(database: Path) -> list[dict[str, Any]]:
    with Database.open(str(database)) as opened:
        (campaign,) = opened.campaigns()
    kept: list[dict[str, Any]] = campaign.provenance["calibration"]
    return kept


@root
@built
def test_a_machine_whose_link_is_not_what_it_should_be_is_refused_before_anything_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    line = Measurement(name="delay error at 10 ms, p50", value=912.3, bound=300, unit="µs")
    monkeypatch.setattr(calibration, "measure", lambda *_: table(line))
    with pytest.raises(Refusal, match=r"delay error at 10 ms, p50 is 912\.3 µs, the bound is 300; --no-cal"):
        run_one_trial(tmp_path / "x.sqlite")
    with Database.open(str(tmp_path / "x.sqlite")) as opened:
        assert opened.campaigns() == []
    run_one_trial(tmp_path / "x.sqlite", no_calibrate=True)
    with pytest.raises(Refusal, match="--no-calibrate"):  # another machine may go on
        run_another_trial(tmp_path / "x.sqlite")
    assert [each["kind"] for each in calibrations(tmp_path / "x.sqlite")] == ["skipped"]


@root
@built
def test_a_campaign_keeps_the_calibration_of_each_of_its_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measured = table(Measurement(name="x", value=0, bound=1, unit=""))
    monkeypatch.setattr(calibration, "measure", lambda *_: measured)
    run_one_trial(tmp_path / "x.sqlite")
    assert calibrations(tmp_path / "x.sqlite") == [measured.model_dump()]
    run_another_trial(tmp_path / "x.sqlite", no_calibrate=True)
    assert calibrations(tmp_path / "x.sqlite")[0] == measured.model_dump()
    assert [each["kind"] for each in calibrations(tmp_path / "x.sqlite")] == ["full", "skipped"]
    run_another_trial(tmp_path / "x.sqlite")  # nothing is left to run
    assert len(calibrations(tmp_path / "x.sqlite")) == 2


def traffic(numbers: list[int], **counted: int) -> Traffic:
    """Five datagrams were sent, these received; the dropper dropped none."""
    one = {"p50": 0, "p99": 0, "p999": 0, "max": 0}
    one_way = {"rate_bps": 1, "delay_ns": 1}
    direction = {
        **dict.fromkeys(("frames_in", "bytes_in", "queue_dropped", "oversize_dropped", "frames_out"), 0),
        **dict.fromkeys(("bytes_out", "in_flight", "max_queue_bytes", "max_queue_packets"), 0),
        **dict.fromkeys(("write_errors", "kernel_dropped", "late"), 0),
        **{"lateness_us": one, "read_lag_us": one, "conserved": True},
        **counted,
    }
    report = LinkReport.model_validate(
        {
            **{"backend": "wire", "version": "1", "command": [], "scheduling": None},
            "configuration": {"up": one_way, "down": one_way, "mtu": 1},
            **{"cpu_s": 0, "elapsed_s": 0, "late_bound_us": 1, "directions": {"up": direction}},
        }
    )
    sent_ns = np.arange(5)
    return Traffic(sent_ns, np.array(numbers), 10 + np.array(numbers), report, np.zeros(5, dtype=np.bool_))


def test_a_datagram_that_comes_behind_a_later_one_is_out_of_order() -> None:
    assert traffic([0, 1, 2, 3, 4]).disorder() == 0
    assert traffic([0, 2, 1, 3, 4]).disorder() == 1
    assert traffic([0, 1, 1, 3, 4]).disorder() == 1


def test_a_datagram_that_nobody_has_counted_is_not_conserved() -> None:
    assert traffic([0, 1, 2, 3, 4]).unaccounted() == 0
    assert traffic([0, 1, 2]).unaccounted() == 2
    assert traffic([0, 1, 2], queue_dropped=1, in_flight=1).unaccounted() == 0
    assert traffic([0, 1, 2, 3, 4], conserved=False).unaccounted() == 1


def prober(*words: str) -> Any:
    return subprocess.run([PROBER, *words], capture_output=True, text=True, check=False)


@built
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "--from-netns is missing"),
        (("--count", "0"), "--count is 0; it must be a whole number from 1 to 10000000"),
        (("--port", "-1"), "--port is -1; it must be"),
        (("--frame-bytes", "1515"), "--frame-bytes is 1515; it must be"),
        (("--address", "somewhere"), "--address is somewhere; it must be an IPv4 address"),
        (("--bogus",), "--bogus is not an option"),
        (("stray",), "stray is not an option"),
    ],
)
def test_the_prober_refuses_bad_input_in_one_line(words: tuple[str, ...], complaint: str) -> None:
    refused = prober(*words)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"prober: {complaint}")
    assert refused.stderr.count("\n") == 1


def test_the_load_of_a_table_ends_with_it() -> None:
    def children() -> list[str]:
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()

    before = children()
    with calibration._hogs():
        assert len(children()) == len(before) + len(os.sched_getaffinity(0))
    assert children() == before
