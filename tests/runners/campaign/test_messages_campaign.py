"""Campaigns of messages: metrics without asking, the series when it is asked for, traces that are kept."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench import results
from tests.runners.conftest import WriteDesign
from tests.runners.engines.conftest import HERE
from tests.support.designs import one_of, workload

# Where it is not the little design.
DESIGN = {
    "timeout_s": 60,
    "plan": {"method": "grid"},
    "factors": {"loss.p": one_of(0.0, 0.05)},
    "constants": {"bandwidth_mbps": 20, "owd_ms": 20, "loss.model": "uniform"},
}
BOTH_WAYS = {"direction": ["down", "up"], "playout_ms": [22, 30]}
MESSAGES = workload("messages", duration_s=3, **BOTH_WAYS)

Run = Callable[..., Any]


@pytest.fixture
def run(fecbench_here: Callable[..., Any], tmp_path: Path) -> Run:
    """Runs a design in virtual time, in this process."""

    def run(design: Path, *options: object) -> Any:
        folder = ("--implementations", HERE)
        return fecbench_here(
            "run", design, "--engine", "virtual", "--db", tmp_path / "x.sqlite", *folder, *options
        )

    return run


def write_trace(folder: Path, *messages: list[int]) -> None:
    (folder / "traces").mkdir(exist_ok=True)
    document = {"title": "own", "made_by": "hand", "messages": list(messages)}
    (folder / "traces" / "own.json").write_text(json.dumps(document))


def test_a_campaign_is_not_gone_on_with_another_trace_and_its_trials_are_replayed_without_the_file(
    made_up: WriteDesign, run: Run, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    path = made_up(**DESIGN, workloads=[workload("messages", trace="own", **BOTH_WAYS)])
    write_trace(tmp_path, [0, 500], [40_000, 2500])
    assert run(path, "--filter", "point=0").returncode == 0
    write_trace(tmp_path, [0, 500], [40_000, 2501])
    refusal = run(path)
    assert "other traces: trace own was" in refusal.refusal()
    write_trace(tmp_path, [0, 500], [40_000, 2500])
    assert run(path).returncode == 0
    (tmp_path / "traces" / "own.json").unlink()
    words = ("replay", 1, "--db", tmp_path / "x.sqlite", "--implementations", HERE)
    replayed = fecbench_here(*words, "--output", tmp_path / "again", "--json")
    assert replayed.returncode == 0, replayed.stderr
    assert json.loads(replayed.stdout)["replayed"]["metrics"]["messages"]["messages_lost"] == 0


def test_an_end_that_leaves_nothing_fails(made_up: WriteDesign, run: Run, tmp_path: Path) -> None:
    assert run(made_up("forgets", **DESIGN, workloads=[MESSAGES])).returncode == 1
    with results.open(str(tmp_path / "x.sqlite")) as database:
        (name,) = database.campaigns()["campaign"]
        trials = database[name].trials()
    assert set(trials.loc[trials["variant"] == "good", "state"]) == {"ok"}
    other = trials[trials["variant"] == "other"]
    assert set(other["state"]) == {"failed"}
    assert other["reason"].str.contains("left no series messages").all()


def test_a_delivery_that_an_implementation_lacks_is_refused_in_advance(
    made_up: WriteDesign, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    shutil.copytree(HERE / "made-up", tmp_path / "mine" / "made-up")
    declaration = tmp_path / "mine" / "made-up" / "impl.toml"
    text = declaration.read_text()
    for declared, delivery, refusal in (
        ('["datagram"]', {"delivery": "stream"}, True),
        ('["datagram"]', {}, False),
        ('["stream", "reliable"]', {}, True),
        ('["stream", "reliable"]', {"delivery": ["stream", "reliable"]}, False),
    ):
        declaration.write_text(f"deliveries = {declared}\n{text}")
        design = made_up(**DESIGN, workloads=[MESSAGES | delivery])
        design.write_text(design.read_text().replace('"made-up"', '"mine"'))
        result = fecbench_here(
            "plan", design, "--no-measure", "--implementations", f"mine={declaration.parent}"
        )
        if refusal:
            assert "no implementation sends messages so: mine has" in result.refusal()
        else:
            assert result.returncode == 0, result


@pytest.mark.usefixtures("unrendered")
def test_every_trial_has_the_metrics_of_messages_and_the_series_that_the_design_wants_and_a_report_draws_both(
    made_up: WriteDesign, run: Run, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    ran = run(made_up(**DESIGN, workloads=[MESSAGES], good={"series": ["messages"]}))
    assert ran.returncode == 0, ran.stderr
    with results.open(str(tmp_path / "x.sqlite")) as database:
        (name,) = database.campaigns()["campaign"]
        campaign = database[name]
        trials, series = campaign.trials(), campaign.series("messages")
        assert campaign.info.workloads[0].get("metric") == "messages.on_time_ratio_22ms"
    assert len(trials) == 2 * 2 * 2 * 2
    assert set(trials["state"]) == {"ok"}
    lossless = trials[trials["loss.p"] == 0]
    assert (lossless["messages.on_time_ratio_22ms"] == 0).all()
    assert (lossless["messages.on_time_ratio_30ms"] == 1).all()
    # 20 ms of delay and eight times 1,242 bytes at 20 Mbit/s.
    assert lossless["messages.latency_max_ms"].to_numpy() == pytest.approx(20 + 8 * 0.4968, abs=0.002)
    lossy = trials[trials["loss.p"] > 0]
    assert (lossy["messages.messages_lost"] > 0).all()
    rebuffering = lossy["messages.messages_lost"] + lossy["messages.messages_late"]
    assert lossy["messages.rebuffering_s"].to_numpy() == pytest.approx(rebuffering / 30, abs=1e-4)
    assert len(series) == 90 * 2 * 2 * 2
    receivers = {(row.workload, row.endpoint) for row in series.itertuples()}
    assert receivers == {("messages-3-down", "client"), ("messages-3-up", "server")}
    assert series["variant"].nunique() == 1
    result = fecbench_here("report", "--db", tmp_path / "x.sqlite", "--output", tmp_path / "report")
    assert result.returncode == 0, result.stderr
    assert list((tmp_path / "report").glob("**/on-time*"))
    assert list((tmp_path / "report").glob("**/latency.png"))
