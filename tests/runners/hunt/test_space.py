"""The space of a hunt: networks and their places."""

import numpy as np
import pytest

from fecbench import designs
from fecbench.runners.hunt.hunt_question import question
from fecbench.runners.hunt.space import Space
from fecbench.runners.refusal import Refusal
from tests.runners.hunt.planted import design, design_text

SPACE = Space(design(1))
RANDOM = np.random.default_rng(3)
PLACES = RANDOM.random((200, SPACE.axes))


def test_a_network_that_was_placed_is_the_same_again() -> None:
    for place in PLACES:
        network = SPACE.at(place)
        assert SPACE.at(SPACE.place(network)) == network


def test_a_network_can_be_typed_again() -> None:
    """The numbers of a network have four digits at most, or are whole."""
    for place in PLACES:
        for name, value in SPACE.at(place).values:
            if isinstance(value, float):
                assert float(f"{value:.4g}") == value, name


def test_the_ends_of_the_space_are_within_its_ranges() -> None:
    for end in (0.0, 1.0):
        point = SPACE.at(np.full(SPACE.axes, end)).point
        assert 0.3 <= float(point["bandwidth_mbps"]) <= 100
        assert 1_000 <= int(point["workload.size_bytes"]) <= 5_000_000


def test_neighbours_are_new_and_of_the_space() -> None:
    parents = [SPACE.at(place) for place in PLACES[:5]]
    parents_so_far = set(parents)
    neighbours = SPACE.neighbours(parents, 300, parents_so_far, np.random.default_rng(1))
    assert len(set(neighbours)) == 300 and not parents_so_far & set(neighbours)
    assert all(SPACE.at(SPACE.place(network)) == network for network in neighbours)


def test_a_step_may_be_small_or_large() -> None:
    parent = SPACE.at(np.full(SPACE.axes, 0.5))
    near = SPACE.places(SPACE.neighbours([parent], 500, set(), np.random.default_rng(1)))
    far = np.abs(near - SPACE.place(parent))[:, SPACE.is_ranged].max(axis=1)
    assert (far < 0.02).mean() > 0.1 and (far > 0.2).mean() > 0.1


def test_the_scan_goes_on_with_the_sequence_of_the_start() -> None:
    start, scan = SPACE.spread(100, 0, 7), SPACE.spread(400, 100, 7)
    assert start + scan == SPACE.spread(500, 0, 7)
    assert len(set(start + scan)) == 500


def test_networks_that_are_chosen_apart_are_apart() -> None:
    networks = SPACE.spread(300, 0, 7)
    choice = [networks[index] for index in SPACE.apart(networks, 0.3)]
    places = SPACE.places(choice)
    for index, place in enumerate(places):
        others = np.delete(places, index, axis=0)
        assert (SPACE.distances(others, place) >= 0.3).all()


def test_a_space_without_a_range_is_refused_in_one_line() -> None:
    text = design_text(1, points=2, factors={}, bandwidth_mbps=1, owd_ms=5)
    with pytest.raises(Refusal, match=r"planted\.toml: factors: none has a range") as refusal:
        question(designs.parse(text, "planted.toml"), "new", "", "harm")
    assert "\n" not in str(refusal.value)
