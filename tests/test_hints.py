"""A message about an unknown name has the nearest one, or few enough to read."""

from fecbench.hints import MOST_NAMES, nearest


def test_few_names_are_all_told_and_of_many_the_nearest() -> None:
    few = [f"name{number}" for number in range(MOST_NAMES)]
    assert all(repr(name) in nearest("other", few) for name in few)
    hint = nearest("delay", [*few, *(f"link{number}.owd_ms" for number in range(100)), "link.dely_of_it"])
    assert hint.startswith(f"the nearest of {MOST_NAMES + 101}: ")
    assert "'link.dely_of_it'" in hint
    assert len(hint) < 250


def test_a_near_name_is_asked_for_and_no_names_are_none() -> None:
    assert nearest("owd_m", ["owd_ms", "loss.p"]) == "did you mean 'owd_ms'?"
    assert nearest("x", []) == "known: none"


def test_names_that_only_begin_as_the_wrong_one_are_no_near_names() -> None:
    names = ["loss.p", "loss.slot_ms", "owd_ms"]
    assert nearest("loss.loss", names) == nearest("loss.", names) == "known: 'loss.p', 'loss.slot_ms'"
    assert nearest("loss.slots", names) == nearest("loss.sl", names) == "did you mean 'loss.slot_ms'?"
