"""`fecbench advise FILE`: trials of ours whose network is known, from what a replay leaves to a decision."""

import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path as File
from typing import Any, NamedTuple

import pytest

from fecbench.runners.paths import Estimate, measured
from tests.support.designs import between, downloads, variant

NETWORKS: list[dict[str, float]] = [
    {"bandwidth_mbps": 20, "owd_ms": 40, "loss.rate": 0.02, "loss.burst": 2.5, "queue_bdp": 1},
    {"bandwidth_mbps": 5, "owd_ms": 15, "loss.rate": 0.005, "loss.burst": 1.5, "queue_bdp": 2},
    {"bandwidth_mbps": 40, "owd_ms": 75, "loss.rate": 0.01, "loss.burst": 4, "queue_bdp": 0.5},
]
DESIGN = downloads(
    "known",
    4_000_000,
    variant("Cubic", scheme="none", congestion_control="cubic", baseline=True),
    variant("BBRv3", scheme="none", congestion_control="bbr3"),
    seed=77,
    timeout_s=600,
    plan={"method": "list", "points": NETWORKS},
    constants={"loss.model": "markov"},
    factors={
        "bandwidth_mbps": between(1, 100),
        "owd_ms": between(1, 400),
        "loss": {"rate": between(0.001, 0.1), "burst": between(1, 8)},
        "queue_bdp": between(0.25, 4),
    },
)


class Recorded(NamedTuple):
    """Files that a replay left of a trial, and its truth."""

    network: dict[str, float]
    folder: File
    lost: int
    """Losses on the link, by the oracle."""
    variant: str

    @property
    def qlog(self) -> File:
        (path,) = self.folder.glob("server/*.sqlog")
        return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, fecbench: Callable[..., Any]) -> list[Recorded]:
    folder = tmp_path_factory.mktemp("known")
    (folder / "known.toml").write_text(DESIGN)
    database = folder / "known.sqlite"
    done = fecbench("run", folder / "known.toml", "--engine", "virtual", "--db", database)
    assert done.returncode == 0, done.stderr
    trials = []
    for number in range(1, 2 * len(NETWORKS) + 1):
        output = folder / str(number)
        replayed = fecbench("replay", number, "--db", database, "--output", output)
        assert replayed.returncode == 0, replayed.stderr
        told = json.loads((output / "replay.json").read_text())["recorded"]
        lost = len(told["verdicts"]["internet/down"]["dropped"])
        trials.append(Recorded(NETWORKS[told["key"]["point"]], output, lost, told["key"]["variant"]))
    return trials


def holds(estimate: Estimate | None, truth: float) -> bool:
    return estimate is not None and estimate.low <= truth <= estimate.high


@pytest.mark.parametrize("form", ["qlog", "captures"])
def test_a_trial_is_measured_as_its_network_is(recorded: list[Recorded], form: str) -> None:
    held = {"rtt": 0, "rate": 0, "loss": 0, "burst": 0}
    for trial in recorded:
        sides = trial.folder / "server.pcapng", trial.folder / "client.pcapng"
        path = measured(trial.qlog) if form == "qlog" else measured(*sides)
        network = trial.network
        # The link counts a header of Ethernet more, of 14 bytes; a packet is 1,280.
        held["rate"] += holds(path.bandwidth_mbps, network["bandwidth_mbps"] * 1280 / 1294)
        held["rtt"] += holds(path.rtt_ms, 2 * network["owd_ms"])
        held["loss"] += holds(path.loss, network["loss.rate"])
        held["burst"] += holds(path.burst, network["loss.burst"])
        # The last packets, such as the close, may be lost and not declared; a few of the queue's may be left.
        if not path.queue_losses:
            assert trial.lost - 3 <= path.lost <= 1.25 * trial.lost, (trial.variant, network)
        assert path.ends != "time"
    # Of 6 trials, 95 of 100 intervals hold; one may miss.
    assert held["rate"] == held["rtt"] == len(recorded) and min(held.values()) >= len(recorded) - 1, held


def test_losses_of_a_full_queue_are_told_apart(recorded: list[Recorded]) -> None:
    """BBRv3 fills a short queue when it begins."""
    path = next(
        measured(trial.qlog)
        for trial in recorded
        if trial.variant == "BBRv3" and trial.network["queue_bdp"] == 0.5
    )
    assert path.queue_losses > 50 and holds(path.queue_bdp, 0.5)


def test_a_qlog_becomes_a_decision_on_one_screen(
    recorded: list[Recorded], fecbench: Callable[..., Any], tmp_path: File
) -> None:
    known = next(trial for trial in recorded if trial.variant == "Cubic" and trial.network["owd_ms"] == 40)
    kept = tmp_path / "kept.sqlite"
    done = fecbench("advise", known.qlog, "--size", "50kB", "--db", kept)
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.splitlines()
    assert re.match(r"(Turn FEC on|Leave FEC off|Change the congestion control first)", first)
    assert re.search(r"saves -?\d+(\.\d)? ms \(-?[\d.]+ to -?[\d.]+\) on average", done.stdout)
    assert "at the 95th percentile" in done.stdout and " more bytes" in done.stdout
    starts = [line.split(":")[0].strip() for line in others]
    assert {"Run", "Record", "Measured"} <= set(starts) and others[-1].startswith("It may change with ")
    screen = [part for line in done.stdout.splitlines() for part in textwrap.wrap(line, 80) or [""]]
    assert len(screen) < 24, done.stdout

    again = fecbench("advise", known.qlog, "--size", "50kB", "--db", kept, "--json")
    document = json.loads(again.stdout)
    assert "1920 of 1920 are there already" in again.stderr or document["run"]["trials"] >= 1800
    assert document["decision"]["do"].lower() in first.lower() or first.startswith("Turn FEC on")
    assert document["path"]["rtt_ms"]["value"] == pytest.approx(80, abs=1.5)
    for effect in document["run"]["fec"]:
        assert effect["saved_ms"]["low"] <= effect["saved_ms"]["value"] <= effect["saved_ms"]["high"]
    assert {"answer", "use", "ratio", "prediction", "candidates", "networks", "record"} <= document.keys()


def test_a_flag_counts_in_the_place_of_what_was_measured(
    recorded: list[Recorded], fecbench_here: Callable[..., Any]
) -> None:
    words = ("advise", recorded[0].qlog, "--no-run", "--size", "50kB", "--rtt", "300ms")
    shown = fecbench_here(*words).stdout
    assert "--rtt counts in the place of what the file says" in shown and "RTT 300 ms" in shown
    path = json.loads(fecbench_here(*words, "--json").stdout)["path"]
    assert path["rtt_ms"] == {"value": 300, "low": 300, "high": 300, "from": "flag"}
    assert path["loss"]["from"] == "file"


def test_what_a_file_does_not_tell_is_asked_for(tmp_path: File, fecbench_here: Callable[..., Any]) -> None:
    trace = tmp_path / "link.trace"
    trace.write_text("\n".join(map(str, range(1, 2001))))
    refusal = fecbench_here("advise", trace).refusal()
    assert "link.trace (mahimahi) does not tell all: give --rtt, --loss, --size" in refusal
    answered = fecbench_here("advise", trace, "--no-run", "--rtt", "80ms", "--loss", "2%", "--size", "50kB")
    assert answered.returncode == 0 and "12 Mbit/s" in answered.stdout


def test_it_says_why_a_network_was_not_run(fecbench_here: Callable[..., Any]) -> None:
    words = ("--rtt", "80ms", "--bandwidth", "20Gbit/s", "--loss", "2%", "--size", "50GB")
    shown = fecbench_here("advise", *words)
    assert shown.returncode == 3 and "Not run: a download that long takes too long" in shown.stdout
