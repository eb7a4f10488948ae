"""A design with a base says what differs, and is the design that says all of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fecbench import designs
from fecbench.designs import DesignError

BASE = """
name = "base"
title = "A base"
seed = 1
topology = "single-path"
repetitions = 3

[plan]
method = "wsp"
points = 5
candidates = 100

[factors]
loss.p = { min = 0.01, max = 0.1 }
owd_ms = { min = 10, max = 20 }

[constants]
bandwidth_mbps = 10
loss.model = "uniform"

[[workloads]]
name = "download"
size_bytes = 1000

[[variants]]
label = "off"
implementation = "rquic"
baseline = true

[[variants]]
label = "on"
implementation = "rquic"
options = { scheme = "xor" }
"""

Load = Callable[..., designs.Design]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str, **others: str) -> designs.Design:
        for name, content in {"base": BASE, **others}.items():
            (tmp_path / f"{name}.toml").write_text(content)
        (tmp_path / "own.toml").write_text(text)
        return designs.load(tmp_path / "own.toml")

    return load


def test_what_a_design_leaves_out_is_its_bases(load: Load, tmp_path: Path) -> None:
    own = load('name = "own"\nbase = "base.toml"\nrepetitions = 7\n[plan]\npoints = 4\n')
    base = designs.load(tmp_path / "base.toml")
    assert (own.name, own.repetitions, own.point_count) == ("own", 7, 4)
    for field in ("seed", "factors", "constants", "workloads", "variants"):
        assert getattr(own, field) == getattr(base, field)


def test_a_factor_and_a_list_take_the_place_of_the_bases(load: Load) -> None:
    own = load(
        'base = "base.toml"\nname = "own"\n'
        "[factors]\nloss.p = { choices = [0, 1] }\n"
        '[[workloads]]\nname = "upload"\nsize_bytes = 5\n'
    )
    assert list(own.factors) == ["loss.p", "owd_ms"]
    assert own.factors["loss.p"].model_dump() == {"choices": [0, 1]}
    assert [workload.name for workload in own.workloads] == ["upload"]


SPELLINGS = pytest.mark.parametrize(
    ("of_base", "of_own"), [("loss.p", '"loss.p"'), ('"loss.p"', "loss.p"), ('"loss.p"', '"loss.p"')]
)


@SPELLINGS
def test_a_name_overrides_and_leaves_out_however_both_write_it(load: Load, of_base: str, of_own: str) -> None:
    base = BASE.replace("loss.p =", f"{of_base} =").replace(
        'loss.model = "uniform"', '"loss.model" = "uniform"'
    )
    text = f'base = "base.toml"\nname = "own"\n[factors]\n{of_own} = {{ choices = [0, 1] }}\n[constants]\n'
    own = load(text + 'loss.model = "markov"\nloss.r = 0.5\n', base=base)
    assert list(own.factors) == ["loss.p", "owd_ms"]
    assert own.factors["loss.p"].model_dump() == {"choices": [0, 1]}
    assert own.constants["loss.model"] == "markov"
    without = load('base = "base.toml"\nname = "own"\nwithout = ["factors.loss.p"]\n', base=base)
    assert list(without.factors) == ["owd_ms"]


def test_labels_choose_variants_of_the_base_and_without_leaves_keys_out(load: Load) -> None:
    own = load('base = "base.toml"\nname = "own"\nvariants = ["on"]\nwithout = ["plan.candidates"]\n')
    assert [variant.label for variant in own.variants] == ["on"]
    assert "candidates" not in own.text


def test_a_factor_of_two_words_can_be_left_out_and_be_a_constant(load: Load) -> None:
    own = load(
        'base = "base.toml"\nname = "own"\nwithout = ["factors.loss.p"]\n[constants]\nloss.rate = 0.01\n'
    )
    assert list(own.factors) == ["owd_ms"]


def test_the_text_of_a_design_needs_no_other_file(load: Load) -> None:
    own = load('base = "base.toml"\nname = "own"\n')
    assert designs.parse(own.text, own.path).model_dump() == own.model_dump()
    assert "base =" not in own.text


def test_a_base_may_have_a_base_and_be_of_the_catalogue(load: Load) -> None:
    assert load('base = "middle.toml"\nname = "own"\n', middle='base = "base.toml"\nseed = 9\n').seed == 9
    assert load('base = "smoke"\nname = "own"\n').name == "own"


WRONG: list[tuple[str, str]] = [
    ('base = "smok"', "base = 'smok': is no design of the catalogue; did you mean 'smoke'?"),
    ("base = 3", "base = 3: must be the name of a design or of a .toml file"),
    ('base = "none.toml"', "none.toml: cannot be read: No such file or directory"),
    ('base = "own.toml"', "base = 'own.toml': is based on this design itself"),
    (
        'base = "base.toml"\nwithout = ["plan.candidate"]',
        "without = 'plan.candidate': the base has no such key; did you mean 'plan.candidates'?",
    ),
    (
        'base = "base.toml"\nwithout = ["factors.los.p"]',
        "without = 'factors.los.p': the base has no such key; did you mean 'factors.loss.p'?",
    ),
    ('base = "odd.toml"\nwithout = ["title"]', "the base has no such key; known: 'variants'"),
    ('base = "base.toml"\nwithout = 48', "without = 48: must be a list of keys of the base"),
    ('base = "base.toml"\nwithout = [48]', "without = [48]: must be a list of keys of the base"),
    ('base = "a\\u0000.toml"', "is no design of the catalogue"),
    ('base = "odd.toml"\nvariants = ["on"]', "variants: the base has no 'on'"),
    ('base = "base.toml"\nvariants = ["ofd"]', "variants: the base has no 'ofd'; did you mean 'off'?"),
    ('base = "base.toml"\nname = 3', "own.toml: name = 3: "),
    ('without = ["plan.candidates"]', "without"),
    ('base = "base.toml"\n[factors]\nloss.p = 1\n"loss.p" = 2', "loss.p: is given twice"),
    ('base = "base.toml"\n[factors]\nloss = 1\n"loss.p" = 2', "factors.loss = 1: "),
]


def test_a_wrong_base_is_one_line(load: Load) -> None:
    for text, message in WRONG:
        with pytest.raises(DesignError) as refusal:
            load(text, odd="variants = 3\n")
        assert message in str(refusal.value)
        assert "\n" not in str(refusal.value)
