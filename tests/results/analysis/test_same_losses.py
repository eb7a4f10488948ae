"""A recorded list of losses is the same in each repetition, and that is said; drawn ones differ."""

from fecbench.results.analysis.same_losses import sentences

WRITTEN = [
    '[constants]\nloss.model = "pattern"',
    '[constants]\n"internet.down.loss.model" = "pattern"',
    '[factors.loss.model]\nchoices = ["markov", "pattern"]',
    '[factors.network.linked]\na = { loss.model = "pattern", loss.drop = "3" }\nb = { loss.model = "none" }',
    '[plan]\nmethod = "list"\npoints = [{ loss.model = "pattern" }]',
]


def test_repetitions_of_a_list_are_said_to_meet_the_same_losses_wherever_it_is_written() -> None:
    for design in WRITTEN:
        (sentence,) = sentences(design, 6)
        assert "all 6 repetitions meet the same losses" in sentence, design
        assert sentences(design.replace("pattern", "uniform"), 6) == [], design


def test_one_repetition_is_compared_with_no_other() -> None:
    assert sentences(WRITTEN[0], 1) == []
