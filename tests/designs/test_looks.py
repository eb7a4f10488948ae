"""When a campaign that runs until its results decide looks at them."""

import pytest

from fecbench.looks import FEWEST, FIRST_LOOK, looks


@pytest.mark.parametrize(
    ("most", "expected"),
    [(300, (38, 75, 150, 300)), (40, (20, 40)), (41, (21, 41)), (39, (20, 39)), (38, (38,)), (1, (1,))],
)
def test_looks_are_halves_of_halves_down_to_the_first(most: int, expected: tuple[int, ...]) -> None:
    assert looks(most) == expected


def test_a_campaign_that_may_stop_has_two_looks_or_more() -> None:
    assert all(len(looks(most)) >= 2 and looks(most)[0] >= FIRST_LOOK for most in range(FEWEST, 1000))
