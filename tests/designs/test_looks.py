"""The looks of a campaign that runs until its results decide."""

from fecbench.looks import FEWEST, FIRST_LOOK, looks


def test_looks_are_halves_of_halves_down_to_the_first() -> None:
    for most, expected in (
        (300, (38, 75, 150, 300)),
        (40, (20, 40)),
        (41, (21, 41)),
        (39, (20, 39)),
        (38, (38,)),
        (1, (1,)),
    ):
        assert looks(most) == expected


def test_a_campaign_that_may_stop_has_two_looks_or_more() -> None:
    assert all(len(looks(most)) >= 2 and looks(most)[0] >= FIRST_LOOK for most in range(FEWEST, 1000))
