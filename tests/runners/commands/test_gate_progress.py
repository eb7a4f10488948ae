"""The one bar of a comparison: what it says of the ratio so far, and of when it is decided."""

import math

import pytest

from fecbench.results.gate.overall import UNKNOWN, Ratio
from fecbench.runners.commands.console.gate_progress import next_look

LOOKS = (6, 12, 24, 48)


def ratio(value: float, half: float) -> Ratio:
    return Ratio(value, value / math.exp(half), value * math.exp(half))


@pytest.mark.parametrize(
    ("current", "repetitions", "look"),
    [
        (UNKNOWN, 1, 6),
        (ratio(1.05, 0.01), 6, 12),  # it is decided: the next look says so
        (ratio(1.05, 0.08), 6, 48),  # twice as narrow takes four times as many
        (ratio(1.05, 0.05), 6, 12),
        (ratio(1.01, 0.02), 6, None),  # at the very end of the margin
        (ratio(1.0, 0.011), 6, 12),
        (ratio(1.0, 0.05), 24, None),
        (ratio(1.05, 0.01), 48, None),
    ],
)
def test_the_look_at_which_a_ratio_is_decided(current: Ratio, repetitions: float, look: int | None) -> None:
    assert next_look(current, 0.01, repetitions, LOOKS) == look
