"""The parameters that each name of a design sets, by link and direction."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.dropper.draws import LossModelError
from fecbench.runners.campaign import links
from fecbench.runners.tasks.task import LinkTask
from fecbench.topologies.link import DIRECTIONS, Direction, TopologyError

LINKS = ("near", "far")
PLAIN = {"bandwidth_mbps": 10, "owd_ms": 5}


def tasks(**values: Any) -> dict[str, LinkTask]:
    return links.link_tasks({**PLAIN, **values}, LINKS)


def rates(**values: Any) -> list[list[float]]:
    """Return the rates of each link: upwards and downwards."""
    return [
        [task.settings.of(direction).bandwidth_mbps for direction in DIRECTIONS]
        for task in tasks(**values).values()
    ]


NAMES: list[tuple[dict[str, float], list[list[float]]]] = [
    ({}, [[10, 10], [10, 10]]),
    ({"up.bandwidth_mbps": 1}, [[1, 10], [1, 10]]),
    ({"far.bandwidth_mbps": 2}, [[10, 10], [2, 2]]),
    ({"far.up.bandwidth_mbps": 3}, [[10, 10], [3, 10]]),
    ({"far.bandwidth_mbps": 2, "up.bandwidth_mbps": 1}, [[1, 10], [2, 2]]),
    ({"far.bandwidth_mbps": 2, "far.down.bandwidth_mbps": 4}, [[10, 10], [2, 4]]),
]


def test_the_name_that_says_more_goes_before() -> None:
    for values, expected in NAMES:
        assert rates(**values) == expected


def test_what_is_given_to_each_direction_of_each_link_needs_nothing_else() -> None:
    values = {
        f"{link}.{direction}.{name}": value
        for link in LINKS
        for direction in DIRECTIONS
        for name, value in PLAIN.items()
    }
    assert links.missing(values, LINKS) is None
    assert links.link_tasks(values, LINKS) == tasks()


def test_a_direction_without_a_rate_or_a_delay_lacks_it() -> None:
    every = {
        f"{link}.{direction}.{setting}" for link in LINKS for direction in DIRECTIONS for setting in PLAIN
    }
    for name in every:
        assert links.missing(every - {name}, LINKS) == name.rpartition(".")[2]


def test_a_queue_of_a_link_takes_the_place_of_that_of_all_links_whatever_its_unit() -> None:
    settings_of_links = tasks(**{"queue_packets": 100, "far.queue_bdp": 2, "far.down.queue_bytes": 9000})
    near, far = (task.settings for task in settings_of_links.values())
    assert (near.up.queue_packets, near.down.queue_packets) == (100, 100)
    assert (far.up.queue_packets, far.up.queue_bdp, far.up.queue_bytes) == (None, 2, None)
    assert (far.down.queue_packets, far.down.queue_bdp, far.down.queue_bytes) == (None, None, 9000)


def test_two_queues_of_one_name_s_level_are_refused() -> None:
    with pytest.raises(TopologyError, match="queue_bdp = 2 and queue_packets = 3"):
        tasks(**{"far.queue_bdp": 2, "far.queue_packets": 3})


def test_an_outage_may_be_given_whole_or_in_two_parts_of_which_each_can_be_a_factor() -> None:
    whole = tasks(**{"far.outage_s": [0.5, 2]})
    assert whole == tasks(**{"far.outage_from_s": 0.5, "far.outage_to_s": 2})
    assert whole["near"].settings.up.outage_s is None
    assert whole["far"].settings.down.outage_s == (0.5, 2)


def test_an_outage_in_part_or_given_twice_is_refused() -> None:
    for outage in ({"outage_from_s": 1}, {"far.outage_to_s": 1}, {"outage_s": [1, 2], "up.outage_to_s": 3}):
        with pytest.raises(TopologyError, match=r"^an outage is given by outage_s, or by "):
            tasks(**outage)


def losses(**values: Any) -> dict[tuple[str, Direction], dict[str, Any]]:
    return {
        (link, direction): parameters
        for link, task in tasks(**values).items()
        for direction, parameters in task.losses.items()
    }


def test_a_link_and_a_direction_may_have_losses_of_their_own() -> None:
    of_all = {"loss.model": "ge", "loss.p": 0.1, "loss.r": 0.5, "loss.up.p": 0.2}
    of_far = {"far.loss.model": "uniform", "far.loss.p": 0.3, "far.loss.down.p": 0.4}
    assert losses(**of_all, **of_far) == {
        ("near", "up"): {"model": "ge", "p": 0.2, "r": 0.5},
        ("near", "down"): {"model": "ge", "p": 0.1, "r": 0.5},
        ("far", "up"): {"model": "uniform", "p": 0.3},
        ("far", "down"): {"model": "uniform", "p": 0.4},
    }


def test_a_model_of_a_direction_has_nothing_of_the_common_one() -> None:
    models = losses(**{"loss.model": "ge", "loss.p": 0.1, "loss.r": 0.5, "loss.down.model": "none"})
    assert models["near", "down"] == {"model": "none"}
    assert models["near", "up"] == {"model": "ge", "p": 0.1, "r": 0.5}
    assert set(map(str, losses().values())) == {"{'model': 'none'}"}, "without a model nothing is lost"


def test_losses_that_are_no_model_are_refused() -> None:
    with pytest.raises(LossModelError):
        losses(**{"far.loss.model": "uniform", "far.loss.p": 1.5})


@given(owds_ms=st.tuples(*[st.floats(0, 400)] * 2))
def test_a_link_is_late_by_the_shorter_of_its_delays(owds_ms: tuple[float, float]) -> None:
    up, down = owds_ms
    task = tasks(**{"far.up.owd_ms": up, "far.down.owd_ms": down})["far"]
    assert task.late_bound_us == round(max(1000, 50 * min(up, down)))


def test_the_names_of_a_topology_name_its_links_only() -> None:
    known = links.names(["internet"])
    assert {"owd_ms", "up.owd_ms", "internet.owd_ms", "internet.down.owd_ms"} <= known
    assert {"loss.p", "loss.down.p", "internet.loss.p", "internet.loss.down.p"} <= known
    assert not any(name.startswith(("near.", "far.")) for name in known)


def test_a_round_trip_is_half_of_it_each_way_and_a_delay_that_says_more_goes_before() -> None:
    def delays(**values: Any) -> list[list[float]]:
        made = links.link_tasks({"bandwidth_mbps": 10, **values}, LINKS)
        return [[task.settings.of(way).owd_ms for way in DIRECTIONS] for task in made.values()]

    assert delays(rtt_ms=80) == [[40, 40], [40, 40]]
    assert delays(**{"rtt_ms": 80, "far.rtt_ms": 20}) == [[40, 40], [10, 10]]
    assert delays(**{"rtt_ms": 80, "far.owd_ms": 20}) == [[40, 40], [20, 20]]
    assert delays(**{"rtt_ms": 80, "up.owd_ms": 5}) == [[5, 40], [5, 40]]
    assert delays(**{"owd_ms": 80, "far.rtt_ms": 20}) == [[80, 80], [10, 10]]
    assert links.missing({"bandwidth_mbps", "rtt_ms"}, LINKS) is None
    assert links.missing({"bandwidth_mbps", "far.rtt_ms"}, LINKS) == "owd_ms"


def test_a_round_trip_is_of_no_single_direction_and_not_beside_a_delay() -> None:
    assert {"rtt_ms", "near.rtt_ms"} <= links.setting_names(LINKS)
    assert not {"up.rtt_ms", "near.down.rtt_ms"} & links.setting_names(LINKS)
    with pytest.raises(TopologyError, match="rtt_ms and owd_ms are given together"):
        tasks(rtt_ms=80)
    with pytest.raises(TopologyError, match="rtt_ms = 'far': must be a number"):
        links.link_tasks({"bandwidth_mbps": 10, "rtt_ms": "far"}, LINKS)
