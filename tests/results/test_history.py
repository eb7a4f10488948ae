"""The changes of a history of comparisons: planted ones are named, and chance seldom makes one."""

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fecbench.errors import BadInput
from fecbench.results.history.changes import LEVEL, changes, history, levels
from fecbench.results.history.entries import Entry, Version, append, entry_of, of_one_series, read

WORKLOADS = ("download", "upload")


def version(number: int) -> Version:
    return Version(word=".", commit=f"{number:040x}", committed_at=f"2026-01-{number + 1:02}", changed=0)


def compared(
    old: int,
    new: int,
    steps: dict[str, dict[int, float]],
    chance: np.random.Generator,
    error: float,
    margin: float = 0.01,
):
    """A comparison of two commits; `steps` are the changes of each workload by commit, as logarithms."""
    ratios = {}
    for workload in WORKLOADS:
        crossed = sum(size for commit, size in steps.get(workload, {}).items() if old < commit <= new)
        value = crossed + chance.normal(0, error)
        ratios[workload] = tuple(math.exp(value + side * 1.96 * error) for side in (0, -1, 1))
    return Entry(
        **{"at": "2026-02-01", "implementation": "made-up", "design": "few", "engine": "virtual"},
        **{"verdict": "slower", "margin": margin, "ratios": ratios, "old": version(old), "new": version(new)},
    )


CHAIN = [(commit, commit + 1) for commit in range(14)]
RELEASE = [(0, commit) for commit in range(1, 15)]
BOTH = [*CHAIN[:8], (0, 14), (4, 10), (8, 9), (9, 11), (11, 12), (12, 14), (12, 13)]


@pytest.mark.parametrize("seed", [8, 9, 10])
@pytest.mark.parametrize(
    "pairs", [CHAIN, RELEASE, BOTH], ids=["each with the last", "with a release", "both"]
)
def test_a_planted_slower_commit_is_named_with_its_size(pairs: list[tuple[int, int]], seed: int) -> None:
    steps = {"download": {5: math.log(1.3), 9: -math.log(1.2)}}
    chance = np.random.default_rng(seed)
    past = history([compared(*pair, steps, chance, 0.01, 0.05) for pair in pairs])
    result = changes(past)
    assert [(change.workload, change.commit) for change in result] == [("download", 5), ("download", 9)]
    for change, size in zip(result, (1.3, 1 / 1.2), strict=True):
        error = math.log(change.high / change.low) / (2 * 1.96)
        assert abs(math.log(change.ratio / size)) < 3.5 * error < 0.05
    of = levels(past, "download")
    assert of.ratio[0] == 1
    for commit, level in ((6, 1.3), (14, 1.3 / 1.2)):
        error = math.log(of.high[commit] / of.low[commit]) / (2 * 1.96)
        assert abs(math.log(of.ratio[commit] / level)) < 3.5 * error < 0.15


def test_what_is_below_the_margin_is_no_change_and_equal_builds_have_none() -> None:
    chance = np.random.default_rng(4)
    small = {"download": {5: math.log(1.004)}}
    assert changes(history([compared(*pair, small, chance, 0.0001) for pair in CHAIN])) == []
    assert changes(history([compared(*pair, {}, chance, 0) for pair in CHAIN])) == []


def new_in_each(chance: np.random.Generator, pairs: list[tuple[int, int]]) -> list[float]:
    return list(chance.normal(0, 0.05, len(pairs)))


def own(chance: np.random.Generator, pairs: list[tuple[int, int]]) -> list[float]:
    """The chance of each commit, the same in all of its comparisons."""
    of_commits = chance.normal(0, 0.05 / math.sqrt(2), 15)
    return [of_commits[new] - of_commits[old] for old, new in pairs]


def stays(chance: np.random.Generator, pairs: list[tuple[int, int]]) -> list[float]:
    """The chance that came with the second commit: the later ones change nothing."""
    size = chance.normal(0, 0.05)
    return [size * (old < 1 <= new) for old, new in pairs]


@pytest.mark.parametrize("pairs", [CHAIN, RELEASE], ids=["each with the last", "with a release"])
@pytest.mark.parametrize("kind", [new_in_each, own, stays], ids=lambda kind: kind.__name__)
def test_chance_makes_a_change_in_no_more_than_the_level(
    pairs: list[tuple[int, int]], kind: Callable[..., list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of false alarms is passed with a probability below 1 in 10,000."""
    monkeypatch.setattr("fecbench.results.history.changes._SIMULATIONS", 1000)
    monkeypatch.setattr("tests.results.test_history.WORKLOADS", ("download",))
    chance, count, false = np.random.default_rng(5), 100, 0
    for _ in range(count):
        planted = zip(pairs, kind(chance, pairs), strict=True)
        parts = [
            compared(*pair, {"download": {pair[1]: size}}, chance, 0).model_copy(
                update={"errors": {"download": 0.05}}
            )
            for pair, size in planted
        ]
        false += bool(changes(history(parts)))
    assert false <= LEVEL * count + 3.8 * math.sqrt(count * LEVEL * (1 - LEVEL))


def test_the_errors_of_ratios_count_and_not_intervals_that_many_ratios_share() -> None:
    """A change of 6 standard errors is hidden by intervals that are three times as wide."""
    planted = [
        compared(*pair, {}, np.random.default_rng(11), 0).model_copy(
            update={"ratios": {"download": (math.exp(0.06 * (pair[1] == 5)), 0.93, 1.07)}}
        )
        for pair in CHAIN
    ]
    alone = [entry.model_copy(update={"errors": {"download": 0.01}}) for entry in planted]
    assert [(change.workload, change.commit) for change in changes(history(alone))] == [("download", 5)]
    assert changes(history(planted)) == []


def test_an_entry_has_the_ratios_that_have_an_interval_with_their_errors() -> None:
    complete = {"ratio": 1.1, "interval": [1.0, 1.2], "error": 0.02}
    unknown = {"ratio": 1.1, "interval": [None, None], "error": None}
    answer = {**complete, "verdict": "slower", "margin": 0.01, "implementation": "a", "engine": "virtual"}
    versions = {"old": version(0), "new": version(1)}
    entry = entry_of(
        {**answer, "workloads": {"one": complete, "two": unknown}}, versions, "2026-02-01", "few"
    )
    assert entry.ratios == dict.fromkeys(("all networks", "one"), (1.1, 1.0, 1.2))
    assert entry.errors == dict.fromkeys(("all networks", "one"), 0.02)


def test_a_file_keeps_what_is_appended_and_refuses_what_is_none(tmp_path: Path) -> None:
    path, chance = tmp_path / "gate.jsonl", np.random.default_rng(6)
    entries = [compared(*pair, {}, chance, 0.01) for pair in CHAIN[:3]]
    for entry in entries:
        append(path, entry)
    assert read(path) == entries
    for line, problem in (
        ("{", ":4: is no JSON"),
        ("{}", ":4: "),
        (
            json.dumps({**json.loads(path.read_text().splitlines()[0]), "ratios": {"download": [0, 1, 2]}}),
            ":4",
        ),
    ):
        broken = tmp_path / "broken.jsonl"
        broken.write_text(f"{path.read_text()}{line}\n")
        with pytest.raises(BadInput, match=problem):
            read(broken)
    other = entries[0].model_copy(update={"design": "other"})
    with pytest.raises(BadInput, match="verdicts of several kinds"):
        of_one_series(path, [*entries, other])
    with pytest.raises(BadInput, match="holds no verdict"):
        of_one_series(path, [])
    with pytest.raises(BadInput, match="cannot be read"):
        read(tmp_path / "absent.jsonl")


def test_a_working_tree_is_another_version_each_time_and_comes_after_its_commit() -> None:
    chance = np.random.default_rng(7)
    entries = [compared(0, 1, {}, chance, 0.01) for _ in range(2)]
    changed = [
        entry.model_copy(
            update={"new": entry.new.model_copy(update={"changed": 2}), "at": f"2026-03-0{number + 1}"}
        )
        for number, entry in enumerate(entries)
    ]
    past = history(changed)
    assert [version.name for version in past.versions] == ["0" * 12, *["0" * 12 + " +2"] * 2]
    assert list(itertools.chain(*past.places)) == [0, 1, 0, 2]
