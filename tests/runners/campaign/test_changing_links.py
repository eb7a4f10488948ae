"""Designs whose links change: what they say, what is refused, and that virtual time follows the trace."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fecbench import results
from fecbench.designs.error import DesignError
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.experiment import documents_in
from fecbench.runners.implementations.finding import ours
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import VIRTUAL
from fecbench.topologies.topology import check_backend
from tests.support import needs
from tests.support.designs import OFF, downloads, one_of, variant
from tests.support.experiments import experiment_of
from tests.support.refusals import refusal_of

FOUND = ours().find("noq-fec", "tests")
pytestmark = needs.built(FOUND)
WITH_TRACE = 'internet.trace = "pause"\nqueue_ms = 100\nowd_ms = 10\ntrace.offset_s = 0'
# 4 Mbit/s for 0.3 s, nothing for 2 s, then 4 Mbit/s again.
PAUSE = "keep_us,rate_bps\n300000,4000000\n2000000,0\n60000000,4000000\n"


def written(tmp_path: Path, constants: str, trace: str = PAUSE) -> Path:
    (tmp_path / "links").mkdir(exist_ok=True)
    (tmp_path / "links" / "pause.csv").write_text(trace)
    path = tmp_path / "changing.toml"
    arms = (OFF, variant("safe", scheme="rlc", controller="safe"))
    tables = {
        "plan": {"method": "grid"},
        "factors": {"option.http": one_of("hq", "h3")},
        "constants": tomllib.loads(constants),
    }
    path.write_text(downloads("changing", 300_000, *arms, seed=11, repetitions=3, **tables))
    return path


def test_all_variants_of_a_repetition_begin_at_one_place_of_the_trace(tmp_path: Path) -> None:
    resolved = experiment_of(written(tmp_path, WITH_TRACE.replace("\ntrace.offset_s = 0", "")))
    offsets = {}
    for label in ("off", "safe"):
        for repetition in range(3):
            task = resolved.task(TrialKey(label, "download-300000", 0, repetition), VIRTUAL)
            link = task.settings_of("internet")
            assert link.up.trace is not None and link.down.trace is not None
            assert link.up.trace.offset_ns == link.down.trace.offset_ns
            offsets.setdefault(repetition, set()).add(link.up.trace.offset_ns)
    assert all(len(places) == 1 for places in offsets.values())
    assert len(set.union(*offsets.values())) == 3


def test_a_campaign_keeps_the_trace_by_its_hash(tmp_path: Path) -> None:
    path = written(tmp_path, WITH_TRACE)
    resolved = experiment_of(path)
    documents = json.loads(json.dumps(resolved.documents))
    assert documents["links"]["pause"]["trace"]["rate_bps"] == [4_000_000, 0, 4_000_000]
    (tmp_path / "links" / "pause.csv").unlink()
    again = experiment_of(path, documents_in(documents))
    key = TrialKey("off", "download-300000", 0, 0)
    assert again.task(key, VIRTUAL) == resolved.task(key, VIRTUAL)


REFUSED = [
    ("queue_ms = 100", "queue_bdp = 1", "write queue_ms = 100, queue_packets or queue_bytes"),
    ("queue_ms = 100\n", "", "write queue_ms = 100"),
    ("owd_ms = 10", "owd_ms = 10\nbandwidth_mbps = 5", "bandwidth_mbps reaches nobody"),
    ("owd_ms = 10\n", "", "owd_ms is missing"),
    ('"pause"', '"none"', "trace = 'none': there is no link 'none'"),
    ("offset_s = 0", "offset_s = -1", "trace.offset_s = -1: must be"),
    ("offset_s = 0", 'repeat = "again"', "must be one of loop, hold, end"),
    ('internet.trace = "pause"\n', "bandwidth_mbps = 1\n", "trace.offset_s: there is no trace"),
]


def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    for old, new, why in REFUSED:
        assert old in WITH_TRACE
        path = written(tmp_path, WITH_TRACE.replace(old, new))
        assert why in refusal_of(experiment_of, path, by=(Refusal, DesignError))


def test_netem_is_refused(tmp_path: Path) -> None:
    link = experiment_of(written(tmp_path, WITH_TRACE)).link_tasks[0]["internet"].settings
    check_backend("wire", "internet", link)
    with pytest.raises(Exception, match=r"internet\.up\.trace: the netem link never changes"):
        check_backend("netem", "internet", link)


def completions(database: Path) -> dict[tuple[str, int, int], float]:
    frame = results.open(str(database))["changing"].trials(["client.dct_s"])
    assert set(frame["state"]) == {"ok"}
    keys = zip(frame["variant"], frame["point"], frame["repetition"], strict=True)
    return dict(zip(keys, frame["client.dct_s"], strict=True))


def test_in_virtual_time_a_pause_lasts_as_long_as_the_trace_says_each_time(
    tmp_path: Path, fecbench: Any
) -> None:
    path = written(tmp_path, WITH_TRACE)
    for name in ("one.sqlite", "two.sqlite"):
        fecbench("run", path, "--engine", "virtual", "--db", tmp_path / name, "--filter", "repetition=0")
    of_one = completions(tmp_path / "one.sqlite")
    # 0.3 s carry 150,000 bytes of frames at most; the rest comes after 2.3 s, in 0.3 s at the soonest.
    assert all(2.6 < dct_s < 3.2 for dct_s in of_one.values())
    assert of_one == completions(tmp_path / "two.sqlite")


def test_resumed_and_replayed_a_trial_meets_the_same_place_of_the_trace_and_the_same_noise(
    tmp_path: Path, fecbench: Any
) -> None:
    steps = "".join(f"100000,{mbps}000000\n" for mbps in range(1, 31))
    noisy = 'jitter_ms = 4\njitter.law = "normal"\nreorder = true'
    drawing = f"{WITH_TRACE.replace('trace.offset_s = 0', noisy)}"
    path = written(tmp_path, drawing, f"keep_us,rate_bps\n{steps}")
    whole, broken = tmp_path / "whole.sqlite", tmp_path / "broken.sqlite"
    fecbench("run", path, "--engine", "virtual", "--db", whole)
    fecbench("run", path, "--engine", "virtual", "--db", broken, "--filter", "repetition=1")
    assert len(completions(broken)) == 4
    fecbench("run", path, "--engine", "virtual", "--db", broken, "--resume")
    assert completions(broken) == completions(whole)
    assert len(set(completions(whole).values())) > 6
    replayed = fecbench("replay", 3, "--db", broken, "--output", tmp_path / "replay")
    assert replayed.returncode == 0, replayed.stdout
