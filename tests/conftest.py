"""Fixtures of all tests: a little design, patience with a busy machine, and laws that are tried without a
time limit of their own.

Hypothesis calls an example that takes 200 ms a failure, and data that are slow to make another. On a busy
machine that says nothing about the law; pytest's timeout catches what hangs.
"""

import ctypes
import gc
import hashlib
import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

# As our command has it, and before NumPy is loaded: OpenBLAS's threads keep their cores busy while they wait
# for each other, for longer than small matrices take.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
import tomli_w
from hypothesis import HealthCheck, settings

from fecbench.results.store.database import Database
from fecbench.runners.implementations import kept_answers
from tests.support import disk, patience, rewriting, undrawn
from tests.support.designs import LITTLE
from tests.support.once import made_once

pytest_plugins = ["tests.support.cost"]

NEW_EXAMPLES = os.environ.get("FECBENCH_EXAMPLES") == "new"
settings.register_profile(
    "fecbench",
    deadline=None,
    derandomize=not NEW_EXAMPLES,
    max_examples=200 if NEW_EXAMPLES else 50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fecbench")

disk.wait_for_none()

# Collection loads what all tests use. It is no garbage, and to look through it again and again costs a
# twelfth of the time of tests that make many tables.
gc.disable()


def pytest_collection(session: pytest.Session) -> None:
    rewriting.load_own_part_first(session.config)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all workers of a session, in which each question to a program of ours is put once."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    kept_answers.NAME = str(folder / kept_answers.NAME)
    return folder


@pytest.fixture(scope="session")
def write_design() -> Callable[..., Path]:
    """Writes the little design into a folder, with other keys in the place of its own: a text's and these."""

    def write_design(folder: Path, different: str = "", **keys: Any) -> Path:
        path = folder / "design.toml"
        path.write_text(tomli_w.dumps(LITTLE | tomllib.loads(different) | keys))
        return path

    return write_design


@pytest.fixture
def little_design(write_design: Callable[[Path], Path], tmp_path: Path) -> Path:
    return write_design(tmp_path)


@pytest.fixture(scope="session")
def patiently() -> Callable[..., Any]:
    """Does ahead of other programs, and again, what a machine with other things to do has disturbed."""
    return patience.patiently


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of a report are not drawn, and its charts have few metrics."""
    for replacement in undrawn.replacements():
        monkeypatch.setattr(*replacement)


@pytest.fixture
def unmade(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of a report are not even made: another test makes those of such a campaign."""
    for replacement in list(undrawn.without_figures()):
        monkeypatch.setattr(*replacement)


@pytest.fixture(scope="session")
def shared_library(
    tmp_path_factory: pytest.TempPathFactory, shared_folder: Path
) -> Callable[..., ctypes.CDLL]:
    """Compiles C files into a library for ctypes, in which undefined behaviour ends the process. Workers
    share what is compiled; each call has static variables of its own."""

    def shared_library(*sources: Path) -> ctypes.CDLL:
        def compile_into(library: Path) -> None:
            options = ["-std=gnu11", "-O1", "-g", "-fsanitize=undefined", "-fno-sanitize-recover"]
            command = ["cc", "-shared", "-fPIC", *options, "-o", library, *sources, "-lm"]
            subprocess.run(command, check=True)

        name = hashlib.sha256("\n".join(map(str, sources)).encode()).hexdigest()
        compiled = made_once(shared_folder / f"{name}.so", compile_into)
        own = tmp_path_factory.mktemp("library") / f"{sources[0].stem}.so"
        shutil.copy(compiled, own)
        return ctypes.CDLL(str(own), use_errno=True)

    return shared_library


@pytest.fixture(scope="session")
def has_invalid_trials() -> Callable[[Path], bool]:
    """Whether any trial of any campaign in a database is invalid; there may be no database yet."""

    def has_invalid_trials(path: Path) -> bool:
        if not path.exists():
            return False
        with Database.open(str(path)) as database:
            states = [database.states(campaign.id) for campaign in database.campaigns()]
        return any(state == "invalid" for trials in states for state, _ in trials.values())

    return has_invalid_trials
