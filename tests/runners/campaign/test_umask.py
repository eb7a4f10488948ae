"""A hardened machine's umask takes all rights from others. Endpoints are others, and notice nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.implementations.finding import ours
from fecbench.runners.sandbox import handed_over
from fecbench.runners.trial import certificates
from tests import ordinary
from tests.runners.conftest import Fecbench
from tests.support import needs

MASKS = [0o027, 0o077, 0o177]
HARDEST_FIRST = [0o177, *(pytest.param(mask, marks=pytest.mark.slow) for mask in (0o027, 0o077))]
"""The first masks all that the others do, so that whole campaigns need no other."""
FECBENCH = str(Path(sys.executable).parent / "fecbench")
WHERE = ("--filter", "workload=download-10000")

rquic_is_built = needs.built(ours().find("rquic", "tests"))


def ran_with(mask: int, *words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [FECBENCH, *map(str, words)], cwd=REPOSITORY, umask=mask, capture_output=True, text=True, timeout=120
    )


@needs.ROOT
@rquic_is_built
@pytest.mark.parametrize("mask", HARDEST_FIRST, ids=oct)
def test_trials_in_virtual_time_are_ok_with_any_umask_of_root(tmp_path: Path, mask: int) -> None:
    ran = ran_with(
        mask, "run", "smoke", "--engine", "virtual", "--db", tmp_path / "x.sqlite", *WHERE, "--json"
    )
    assert (ran.returncode, json.loads(ran.stdout)["states"]) == (0, {"ok": 4}), ran.stderr


@needs.ROOT
@rquic_is_built
@pytest.mark.parametrize("mask", HARDEST_FIRST, ids=oct)
def test_a_replay_that_leaves_files_is_as_recorded_with_any_umask_of_root(tmp_path: Path, mask: int) -> None:
    database = tmp_path / "x.sqlite"
    ran_with(mask, "run", "smoke", "--engine", "virtual", "--db", database, *WHERE)
    replayed = ran_with(mask, "replay", 1, "--db", database, "--output", tmp_path / "replayed")
    assert (replayed.returncode, replayed.stderr) == (0, "")
    assert (tmp_path / "replayed" / "client" / "keys.log").stat().st_size > 0


@pytest.mark.usefixtures("can_run_trials")
@pytest.mark.parametrize("mask", [0o177], ids=oct)
def test_emulated_trials_are_ok_with_a_umask_of_root(
    fecbench: Fecbench,
    patiently: Callable[..., Any],
    has_invalid_trials: Callable[[Path], bool],
    tmp_path: Path,
    mask: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fecbench, "path", f"{tmp_path}/masked")
    script = tmp_path / "masked"
    script.write_text(f'#!/bin/sh\numask {mask:03o}\nexec {FECBENCH} "$@"\n')
    script.chmod(0o755)
    database = tmp_path / "x.sqlite"

    def measure(number: int) -> "subprocess.CompletedProcess[str]":
        resume = ["--resume"] * (number > 0)
        return fecbench.run("smoke", database, *WHERE, *resume, FECBENCH_TEST="not preloaded")

    ran = patiently(measure, lambda _: has_invalid_trials(database))
    assert ran.returncode == 0, ran.stdout


@needs.ROOT
@needs.built(ours().find("udp", "tests"))
@pytest.mark.parametrize("words", [("run", "smoke"), ("check",)], ids=" ".join)
def test_an_ordinary_user_with_such_a_umask_runs_and_checks(of_nobody: Path, words: tuple[str, ...]) -> None:
    """An ordinary user has folders that he cannot enter, unless we set their modes."""
    lines = {
        "run": (*words, "--engine", "virtual", "--db", of_nobody / "x.sqlite", *WHERE),
        "check": ("implementations", "--check", "udp"),
    }[words[0]]
    as_user = [*ordinary.command(), "sh", "-c", 'umask 0177 && exec "$@"', "sh", FECBENCH, *map(str, lines)]
    environment = {**os.environ, "HOME": str(of_nobody), "TMPDIR": str(of_nobody)}
    ran = subprocess.run(as_user, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, (ran.stdout, ran.stderr)


@pytest.mark.parametrize("mask", MASKS, ids=oct)
def test_certificates_are_for_everybody_and_keys_for_us_alone(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        certificates.write_each(tmp_path, "server.fecbench")
    finally:
        os.umask(before)
    for kind in certificates.KINDS:
        folder = certificates.of_kind(tmp_path, kind)
        assert folder.stat().st_mode & 0o777 == 0o755
        for path in folder.iterdir():
            assert path.stat().st_mode & 0o777 == (0o600 if path.suffix == ".key" else 0o644), path


@needs.ROOT
@rquic_is_built
def test_what_the_harness_cannot_hand_over_makes_trials_invalid_and_neither_start_nor_doctor_takes_it(
    fecbench_here: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Certificates once had the mode that the umask gave them."""

    def write_for_root(path: Path, content: bytes) -> None:
        path.write_bytes(content)
        path.chmod(0o600)

    monkeypatch.setattr(handed_over, "write_file", write_for_root)
    words = ("run", "smoke", "--engine", "virtual", "--db", tmp_path / "x.sqlite", "--json")
    refusal = fecbench_here(*words)
    assert refusal.returncode == 2
    assert "authority.pem cannot be read by user" in refusal.stderr
    stopped = fecbench_here(*words, "--no-calibrate")
    assert (stopped.returncode, stopped.stdout) == (1, "")
    assert "its first 10 trials are all invalid for one reason" in stopped.stderr
    assert "authority.pem cannot be read by user" in stopped.stderr
    output = json.loads(fecbench_here("show", "--db", tmp_path / "x.sqlite", "--json").stdout)
    assert {trial["state"] for trial in output["trials"]} == {"invalid"}
    needed = json.loads(fecbench_here("doctor", "--json").stdout)["needs"]
    (need,) = (need for need in needed if need["name"] == "rquic simulator")
    assert not need["good"]
    assert "authority.pem cannot be read by user" in need["found"]
