"""Losses at a full queue are told from bursts of the medium that meet the longest queue by chance."""

import numpy as np
import pytest

from fecbench.dropper.recordings import Recording
from fecbench.dropper.recordings.course import Course
from fecbench.runners.paths.packets import at_full_queue, path_of

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


def test_one_packet_that_a_host_held_back_hides_no_full_queue() -> None:
    """The queue of 100 ms drops every eighth packet once it is full; one packet came a second later."""
    count = 1000
    sent_s = 0.001 * np.arange(count)
    wait_s = np.minimum(0.1, 0.0005 * np.arange(count))
    lost = (wait_s == 0.1) & (np.arange(count) % 8 == 0)
    came_s = np.where(lost, np.nan, sent_s + 0.02 + wait_s)
    came_s[501] += 1.0
    unknown = np.full(count, np.nan)
    course = Course(sent_s, np.full(count, 1200.0), came_s, unknown, np.empty((0, 2)), False, 0.04)
    path = path_of(Recording(lost, course=course), "captures")
    assert (path.queue_losses, path.lost) == (lost.sum(), 0)
    assert path.queue_bdp is not None and path.queue_bdp.value == pytest.approx(2.5, rel=0.01)
