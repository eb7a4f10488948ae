"""The referee's comparison misses no bound that is missed, and no other."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from fecbench.results.store.records import TrialKey, TrialRecord, VerdictLog
from tests.kernels.pairs import pairs
from tests.kernels.virtual.comparison import findings
from tests.support.campaigns import trial

IMPLEMENTATIONS = {"noq": "noq-fec", "go": "rquic"}
KEYS = [TrialKey(*key) for key in product(IMPLEMENTATIONS, ["short", "long"], [0, 1, 2], [0])]

Trials = dict[TrialKey, TrialRecord]
Change = Callable[[TrialRecord], TrialRecord]


def record(key: TrialKey) -> TrialRecord:
    metrics = {"client": {"handshake_s": 0.2, "dct_s": 1 + key.point}, "server": {}}
    return trial(key, metrics=metrics, verdicts=[VerdictLog("internet", "down", 3, 1, b"\2")])


def changed(change: Change, *choice: TrialKey) -> Trials:
    return {key: change(record(key)) if key in choice else record(key) for key in KEYS}


def missed(in_process: Trials, referee: Trials | None = None) -> list[str]:
    """The names of the bounds that are missed."""
    compared = pairs(referee or {key: record(key) for key in KEYS}, in_process)
    return [finding.name for finding in findings(compared, IMPLEMENTATIONS) if not finding.good]


def handshake_longer_by(us: float) -> Change:
    return lambda one: replace(one, metrics=_client(one, "handshake_s", lambda value: value + 1e-6 * us))


def completion_longer_by(factor: float) -> Change:
    return lambda one: replace(one, metrics=_client(one, "dct_s", lambda value: value * factor))


def _client(one: TrialRecord, name: str, change: Callable[[float], float]) -> dict[str, dict[str, float]]:
    client = one.metrics["client"]
    return {**one.metrics, "client": {**client, name: change(client[name])}}


def test_a_trial_that_is_not_ok_on_either_side_is_a_miss_and_equal_trials_miss_nothing() -> None:
    assert missed({key: record(key) for key in KEYS}) == []
    failed = changed(lambda one: replace(one, state="failed"), KEYS[0])
    assert missed(failed) == ["trials that are not ok"]
    assert missed({key: record(key) for key in KEYS}, failed) == ["trials that are not ok"]


def test_a_packet_that_is_lost_on_one_side_only_is_a_miss() -> None:
    other = changed(lambda one: replace(one, verdicts=[VerdictLog("internet", "down", 3, 0, b"\0")]), KEYS[0])
    assert missed(other) == ["trials with other losses"]


def test_one_handshake_beyond_its_bound_is_a_miss() -> None:
    for variant, bound_us in (("noq", 20), ("noq", -20), ("go", 150), ("go", -150)):
        choice = next(key for key in KEYS if key.variant == variant)
        assert missed(changed(handshake_longer_by(0.99 * bound_us), choice)) == []
        [name] = missed(changed(handshake_longer_by(1.01 * bound_us), choice))
        assert IMPLEMENTATIONS[variant] in name


def test_completion_times_are_held_by_the_median_of_each_workload() -> None:
    short = [key for key in KEYS if key.workload == "short"]
    assert missed(changed(completion_longer_by(1.1), *short[:2])) == []
    assert missed(changed(completion_longer_by(1.002), *short)) == []
    assert missed(changed(completion_longer_by(0.998), *short)) == []
    for factor in (1.004, 0.996):
        [name] = missed(changed(completion_longer_by(factor), *short))
        assert name.startswith("short, ")


def test_a_workload_without_a_trial_that_is_ok_is_a_miss() -> None:
    long = [key for key in KEYS if key.workload == "long"]
    names = missed(changed(lambda one: replace(one, state="timeout"), *long))
    assert len(names) == 2
    assert names[1].startswith("long, ")
