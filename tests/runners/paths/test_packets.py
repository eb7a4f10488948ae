"""The path of packets: a full queue is told from bursts of the medium and from packets that a host held back,
and the fastest that ACKs tell is no faster than the path."""

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


@pytest.mark.parametrize("apart", [1, 4, 11])
def test_acks_of_many_packets_make_no_path_faster(apart: int) -> None:
    """A packet comes every 10 ms, and an ACK tells of so many of them; the round trip has 30 ms."""
    count = 210
    sent_s = 0.01 * np.arange(count)
    last = np.minimum(count - 1, np.arange(count) // apart * apart + apart - 1)
    rtt_s = np.where(last == np.arange(count), 0.03, np.nan)
    sizes, received = np.full(count, 1200.0), np.empty((0, 2))
    course = Course(sent_s, sizes, sent_s[last] + 0.03, rtt_s, received, True)
    rate = path_of(Recording(np.zeros(count, dtype=np.bool_), course=course), "log").bandwidth_mbps
    assert rate is not None and rate.low <= 1228 * 8 / 0.01 / 1e6 <= rate.high
