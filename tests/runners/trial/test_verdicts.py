"""Verdicts that follow from the time of arrival are held against the oracle by the recorded times."""

from typing import Any

import numpy as np

from fecbench.dropper.clocked import TimedGilbertElliott, verdicts_at
from fecbench.dropper.command import Counters
from fecbench.dropper.draws import pack
from fecbench.runners.tasks.outcome import DropperOutcome
from fecbench.runners.trial.judging.verdicts import compare, doubts

MODEL = TimedGilbertElliott(0.05, 0.02, 0.99, 0.1)
ARRIVALS_NS = np.arange(1000) * 1_000_000
LOST = verdicts_at(MODEL, 5, ARRIVALS_NS)


def recorded(**changes: Any) -> DropperOutcome:
    counters = Counters(len(LOST), int(LOST.sum()), other=0, gso=0, truncated=0, fragments=0)
    arrivals = ARRIVALS_NS.astype("<u8").tobytes()
    outcome = DropperOutcome(counters=counters, packets=len(LOST), bitmap=pack(LOST), arrivals=arrivals)
    return outcome.model_copy(update=changes)


def doubts_of(outcome: DropperOutcome) -> list[str]:
    return list(doubts(outcome, compare(outcome, MODEL, 5)))


def test_verdicts_that_follow_from_the_times_of_arrival_leave_no_doubt() -> None:
    assert doubts_of(recorded()) == []


DOUBTED: list[tuple[dict[str, Any], str]] = [
    ({"arrivals": (ARRIVALS_NS + 30_000_000).astype("<u8").tobytes()}, "verdicts differ"),
    ({"arrivals": (ARRIVALS_NS + 1).astype("<u8").tobytes()}, "packet 0 has not arrived at 0"),
    ({"bitmap": pack(~LOST)}, "1000 of 1000 verdicts differ from the oracle's, first at packet 0"),
    ({"arrivals": ARRIVALS_NS[:999].astype("<u8").tobytes()}, "999 of 1000 packets have a time of arrival"),
    ({"arrivals": b""}, "0 of 1000 packets have a time of arrival"),
    ({"arrivals": None}, "packets dropped, the oracle says 0"),
]


def test_other_times_and_other_verdicts_are_doubted() -> None:
    for changes, doubt in DOUBTED:
        doubts = doubts_of(recorded(**changes))
        assert any(doubt in line for line in doubts), doubts
