"""The packet at which two trials part: the first that one of them sends otherwise."""

import dataclasses

import numpy as np
import pytest

from fecbench.results.analysis.parting import SIZE_BYTES, partings
from fecbench.results.analysis.trial_course import ARRIVED, LOST, UNDER_WAY, Course, Crossing

SENT_S = np.array([0.0, 0.1, 0.1, 0.2, 0.3])
DOWN = Crossing("internet", "down", SENT_S, SENT_S + 0.02, np.full(5, 1200), np.full(5, ARRIVED))
UP = dataclasses.replace(DOWN, direction="up", payload_bytes=np.full(5, 60))


def course(*crossings: Crossing) -> Course:
    return Course("trial", "server", crossings=crossings)


def changed(place: int, name: str, value: object, crossing: Crossing = DOWN) -> Crossing:
    values = getattr(crossing, name).copy()
    values[place] = value
    return dataclasses.replace(crossing, **{name: values})


def test_trials_that_are_alike_never_part() -> None:
    assert partings(course(DOWN, UP), course(DOWN, UP)) == []
    few_bytes = changed(1, "payload_bytes", 1200 - SIZE_BYTES + 1)
    a_hair = dataclasses.replace(few_bytes, sent_s=SENT_S + 0.0005, arrived_s=SENT_S + 0.0205)
    assert partings(course(DOWN), course(a_hair)) == []


PARTED = [
    (changed(2, "payload_bytes", 1200 - SIZE_BYTES), 3, "size"),
    (changed(3, "sent_s", 0.21), 4, "moment"),
    (changed(1, "fates", LOST), 2, "fate"),
]


@pytest.mark.parametrize(("other", "packet", "why"), PARTED)
def test_they_part_at_the_first_packet_that_differs(other: Crossing, packet: int, why: str) -> None:
    later = changed(4, "payload_bytes", 100, other)
    for one, again in ((DOWN, later), (later, DOWN)):
        (part,) = partings(course(one), course(again))
        assert (part.packet, part.why, part.direction) == (packet, why, "down")


def test_they_part_where_one_has_no_packet_left() -> None:
    shorter = Crossing(
        "internet", "down", DOWN.sent_s[:4], DOWN.arrived_s[:4], DOWN.payload_bytes[:4], DOWN.fates[:4]
    )
    (part,) = partings(course(shorter), course(DOWN))
    assert (part.packet, part.at_s, part.why) == (5, (None, 0.3), "number of packets")
    assert "A has no such packet, B sends it at 300.0 ms" in part.sentence(("A", "B"))


def test_each_direction_has_its_own_and_the_first_comes_first() -> None:
    late, early = changed(4, "payload_bytes", 100), changed(1, "payload_bytes", 200, UP)
    assert [part.direction for part in partings(course(DOWN, UP), course(late, early))] == ["up", "down"]


def test_a_packet_that_was_under_way_at_the_end_parts_nobody() -> None:
    assert partings(course(DOWN), course(changed(4, "fates", UNDER_WAY))) == []
