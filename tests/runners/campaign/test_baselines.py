"""Two stacks are compared only where the design asks for it; a variant of another stack than the baseline's
is compared with its own stack without FEC."""

from pathlib import Path
from typing import Any

from fecbench import designs
from fecbench.results.analysis import uncompared
from fecbench.runners.campaign.baselines import WITH_NONE, baselines_in, compared_with
from tests.support.designs import Table, variant
from tests.support.experiments import experiment_of

XOR = {"scheme": "xor", "n": 3, "k": 2, "controller": "constant"}
RENO = {"congestion_control": "newreno"}
BASE = variant("base", "rquic", scheme="none", baseline=True)
N, X = variant("n", scheme="none"), variant("x", **XOR)
WITH_BASE = {"baseline": "base"}


STACKS: list[tuple[list[Table], dict[str, str | None]]] = [
    ([BASE, variant("x", "rquic", scheme="xor")], {"base": None, "x": None}),
    ([BASE, N, X], {"base": None, "n": WITH_NONE, "x": "n"}),
    ([BASE, X], {"base": None, "x": WITH_NONE}),
    ([BASE, X | WITH_BASE], {"base": None, "x": "base"}),
    ([N, X], {"n": WITH_NONE, "x": "n"}),
    # What is compared with another is nobody's twin.
    ([BASE, N | WITH_BASE, X], {"base": None, "n": "base", "x": WITH_NONE}),
    # Of several, the one that differs in FEC alone, or least.
    (
        [BASE, N, variant("r", scheme="none", **RENO), variant("x", **XOR, **RENO)],
        {"base": None, "n": WITH_NONE, "r": WITH_NONE, "x": "r"},
    ),
    (
        [BASE, N, variant("again", scheme="none"), X],
        {"base": None, "n": WITH_NONE, "again": WITH_NONE, "x": WITH_NONE},
    ),
]


def test_each_variant_is_compared_with_its_own_stack(write_design: Any, tmp_path: Path) -> None:
    for variants, right in STACKS:
        design = designs.load(write_design(tmp_path, variants=variants))
        arms = experiment_of(design).arms
        assert compared_with(design, arms) == right
        alone = [label for label, baseline in right.items() if baseline == WITH_NONE]
        unnamed = [label for label in alone if label not in right.values()]
        sentence = "".join(uncompared.sentences([*right], *baselines_in(design, arms)))
        assert [label for label in right if f"“{label}”" in sentence] == unnamed
