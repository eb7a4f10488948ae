"""The report of `fecbench implementations --check` about a simulator."""

import shutil
from pathlib import Path

from fecbench.runners.conformance import simulator_trials
from fecbench.runners.implementations.implementation import Implementation, load
from tests.runners.engines.conftest import HERE


def behaving(folder: Path, manner: str) -> Implementation:
    """The made-up implementation, which answers in this manner by default."""
    path = shutil.copytree(HERE / "made-up", folder / "made-up")
    declared = path / "impl.toml"
    declared.write_text(declared.read_text().replace('default = "good"', f'default = "{manner}"'))
    return load(path)


def test_one_that_is_right_each_time_is_good(tmp_path: Path) -> None:
    parts = list(simulator_trials.check(behaving(tmp_path, "good")))
    good = {part.part: part.good for part in parts}
    assert good == {"simulator: download": True, "simulator: messages": True}, parts


def test_one_that_is_not_is_broken_and_it_is_said_how(tmp_path: Path) -> None:
    for manner, message in {
        "remembers": "answered in two ways",
        "lies": "verdicts differ from the oracle's",
        "dies": "failed: the simulator of made-up ended with status 3",
        "refuses": "failed: the simulator: I cannot play this",
    }.items():
        parts = list(simulator_trials.check(behaving(tmp_path / manner, manner)))
        assert [part.good for part in parts] == [False, False]
        assert message in parts[0].detail


def test_nothing_is_said_where_there_is_none(tmp_path: Path) -> None:
    implementation = behaving(tmp_path, "good")
    declared = implementation.declaration.model_copy(update={"simulator": None})
    without = Implementation(implementation.folder, declared, implementation.text)
    assert list(simulator_trials.check(without)) == []
