"""Losses at a full queue are told from bursts of the medium that meet the longest queue by chance."""

import numpy as np
import pytest

from fecbench.runners.paths.packets import at_full_queue

WAIT_S = np.concatenate([np.linspace(0, 0.1, 400), np.linspace(0.1, 0, 400)])
"""A queue that grows and falls: from 80 ms on it counts as full."""


@pytest.mark.parametrize(("bursts", "is_full"), [([7, 8, 9], False), ([1, 1, 1, 1], True), ([20], False)])
def test_a_few_bursts_at_the_longest_queue_are_no_full_queue(bursts: list[int], is_full: bool) -> None:
    lost = np.zeros(WAIT_S.size, dtype=np.bool_)
    for number, length in enumerate(bursts):
        lost[330 + 30 * number : 330 + 30 * number + length] = True
    full = at_full_queue(lost, WAIT_S, 0.01)
    assert (full is not None) == is_full
    assert full is None or (full == (WAIT_S >= 0.08)).all()
