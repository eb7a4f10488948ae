"""Compares the trials of the whole harness in virtual time with the same trials in process.

    python -m tests.kernels.virtual.comparison REFEREE.sqlite IN_PROCESS.sqlite

Status 1 when a trial is not ok, when its losses differ, or when a bound is missed. Completion times are held
by their medians: under losses, a byte more in the handshake moves a download of 100 kB by up to 5 %.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey, TrialRecord
from tests.kernels.pairs import Pair, pairs

HANDSHAKE_US = {"noq-fec": 20.0, "rquic": 150.0}
"""Largest difference of the two handshakes of a trial, by implementation."""
RATIO = (0.997, 1.003)
"""Bounds of the median ratio of completion times, for each workload."""

HEADING = """\
Completion times in s, their ratio, and by how many µs the handshake is longer in process.
workload          point  variant               state      referee  in process    ratio  handshake  losses"""


@dataclass(frozen=True)
class Finding:
    """A number with its bounds."""

    name: str
    trials: int
    value: float
    at_least: float
    at_most: float

    @property
    def good(self) -> bool:
        """A value that is not a number, as of no trials, is not good."""
        return self.at_least <= self.value <= self.at_most

    def __str__(self) -> str:
        bounds = f"{self.at_least:g} to {self.at_most:g}"
        verdict = "good" if self.good else "MISSED"
        return f"{self.name:45}  {self.trials:6}  {self.value:9.4f}  {bounds:>14}  {verdict}"


def findings(compared: Sequence[Pair], implementations: Mapping[str, str]) -> Iterator[Finding]:
    """Yield all findings; `implementations` has the implementation of each variant."""
    fail = sum(not pair.ok for pair in compared)
    yield Finding("trials that are not ok", len(compared), fail, 0, 0)
    other = sum(not pair.same_losses for pair in compared)
    yield Finding("trials with other losses", len(compared), other, 0, 0)
    good = [pair for pair in compared if pair.ok]
    for name, bound_us in HANDSHAKE_US.items():
        apart_us = [abs(_handshake_us(pair)) for pair in good if implementations[pair.key.variant] == name]
        largest = max(apart_us, default=np.nan)
        yield Finding(f"handshakes of {name} apart at most, µs", len(apart_us), largest, 0, bound_us)
    for workload in sorted({pair.key.workload for pair in compared}):
        ratios = [_ratio(pair) for pair in good if pair.key.workload == workload]
        median = float(np.median(ratios)) if ratios else np.nan
        yield Finding(f"{workload}, median ratio of completion times", len(ratios), median, *RATIO)


def _handshake_us(pair: Pair) -> float:
    """Return how much longer the handshake is in process."""
    referee_s, in_process_s = pair.values("handshake_s")
    return 1e6 * (in_process_s - referee_s)


def _ratio(pair: Pair) -> float:
    referee_s, in_process_s = pair.values("dct_s")
    return in_process_s / referee_s


def read(path: str) -> tuple[dict[TrialKey, TrialRecord], dict[str, str]]:
    """The trials of the only campaign of a database, and the implementation of each of its variants."""
    with Database.open(path) as database:
        [campaign] = database.campaigns()
        trials = {trial.record.key: trial.record for trial in database.trials(campaign.id)}
    return trials, {variant["label"]: variant["implementation"] for variant in campaign.variants}


def _line_of(pair: Pair) -> str:
    states = "ok" if pair.ok else "/".join(pair.states)
    start = f"{pair.key.workload:16}  {pair.key.point:5}  {pair.key.variant:20}  {states:8}"
    if not pair.ok:
        return start
    dcts_s = "  ".join(f"{value:9.6f}" for value in pair.values("dct_s"))
    losses = "same" if pair.same_losses else "OTHER"
    return f"{start}  {dcts_s}  {_ratio(pair):7.4f}  {_handshake_us(pair):9.1f}  {losses}"


def main() -> int:
    (referee, implementations), (in_process, _) = map(read, sys.argv[1:])
    compared = pairs(referee, in_process)
    print(HEADING)
    for pair in compared:
        print(_line_of(pair))
    all_findings = list(findings(compared, implementations))
    print(*all_findings, sep="\n")
    return 0 if all(finding.good for finding in all_findings) else 1


if __name__ == "__main__":
    sys.exit(main())
