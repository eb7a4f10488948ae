"""Two stacks are compared only where the design asks for it; a variant of another stack than the baseline's
is compared with its own stack without FEC."""

from pathlib import Path
from typing import Any

from fecbench import designs
from fecbench.runners.campaign.baselines import WITH_NONE, compared_with
from tests.support.experiments import experiment_of

OFF = 'options = { scheme = "none" }'
XOR = 'options = { scheme = "xor", n = 3, k = 2, controller = "constant" }'
RENO_OFF = 'options = { scheme = "none", congestion_control = "newreno" }'
RENO_XOR = (
    'options = { scheme = "xor", n = 3, k = 2, controller = "constant", congestion_control = "newreno" }'
)
BASE = ("base", "rquic", 'options = { scheme = "none" }\nbaseline = true')


def compared(write_design: Any, tmp_path: Path, *variants: tuple[str, str, str]) -> dict[str, str | None]:
    tables = [
        f'[[variants]]\nlabel = "{label}"\nimplementation = "{name}"\n{rest}\n'
        for label, name, rest in variants
    ]
    design = designs.load(write_design(tmp_path, "\n".join(tables)))
    return compared_with(design, experiment_of(design).arms)


STACKS: list[tuple[list[tuple[str, str, str]], dict[str, str | None]]] = [
    ([BASE, ("x", "rquic", 'options = { scheme = "xor" }')], {"base": None, "x": None}),
    ([BASE, ("n", "noq-fec", OFF), ("x", "noq-fec", XOR)], {"base": None, "n": WITH_NONE, "x": "n"}),
    ([BASE, ("x", "noq-fec", XOR)], {"base": None, "x": WITH_NONE}),
    ([BASE, ("x", "noq-fec", f'{XOR}\nbaseline = "base"')], {"base": None, "x": "base"}),
    ([("n", "noq-fec", OFF), ("x", "noq-fec", XOR)], {"n": WITH_NONE, "x": "n"}),
    # What is compared with another is nobody's twin.
    (
        [BASE, ("n", "noq-fec", f'{OFF}\nbaseline = "base"'), ("x", "noq-fec", XOR)],
        {"base": None, "n": "base", "x": WITH_NONE},
    ),
    # Of several, the one that differs in FEC alone, or least.
    (
        [BASE, ("n", "noq-fec", OFF), ("r", "noq-fec", RENO_OFF), ("x", "noq-fec", RENO_XOR)],
        {"base": None, "n": WITH_NONE, "r": WITH_NONE, "x": "r"},
    ),
    (
        [BASE, ("n", "noq-fec", OFF), ("again", "noq-fec", OFF), ("x", "noq-fec", XOR)],
        {"base": None, "n": WITH_NONE, "again": WITH_NONE, "x": WITH_NONE},
    ),
]


def test_each_variant_is_compared_with_its_own_stack(write_design: Any, tmp_path: Path) -> None:
    for variants, right in STACKS:
        assert compared(write_design, tmp_path, *variants) == right
