"""The trials with which a campaign in virtual time begins: the two that differ most."""

import pytest

from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.self_check import _chosen
from tests.runners.conftest import WriteDesign
from tests.runners.engines.conftest import experiment_of, tasks_of


@pytest.mark.parametrize(
    ("due", "chosen"),
    [
        ("MOMM", "MO"),  # the first of another variant
        ("MMOM", "MO"),
        ("OOO", "OO"),
        ("M", "M"),
    ],
)
def test_a_trial_is_checked_beside_one_of_another_variant_or_else_the_last(
    made_up: WriteDesign, due: str, chosen: str
) -> None:
    experiment = experiment_of(made_up(repetitions=3))
    first, other = {key.variant: None for key, _ in tasks_of(experiment)}
    names = {"M": first, "O": other}
    keys = [TrialKey(names[letter], "download-20000", 0, number) for number, letter in enumerate(due)]
    (found,) = _chosen(experiment, keys).values()
    assert [key.variant for key in found] == [names[letter] for letter in chosen]
    assert found[0] == keys[0]
    if len(set(due)) == 1:
        assert found[-1] == keys[-1]
    else:
        assert found[-1] == keys[due.index("O")]
