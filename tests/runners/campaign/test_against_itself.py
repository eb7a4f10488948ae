"""The design of an A/A campaign has one variant twice; all else is the design's, bit for bit."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fecbench import designs
from fecbench.designs import Design
from fecbench.runners.campaign.against_itself import against_itself
from fecbench.runners.refusal import Refusal
from tests.support.designs import LITTLE, variant


def test_the_design_against_itself_differs_in_its_variants_alone(little_design: Path) -> None:
    design = designs.load(little_design)
    other = against_itself(design, "xor, 4/5")
    assert [variant.label for variant in other.variants] == ["xor, 4/5 (A)", "xor, 4/5 (B)"]
    assert [variant.options for variant in other.variants] == [design.variants[1].options] * 2
    assert [variant.implementation for variant in other.variants] == ["rquic", "rquic"]
    assert [variant.baseline for variant in other.variants] == [True, False]
    for name in set(Design.model_fields) - {"variants"}:
        assert getattr(other, name) == getattr(design, name)
    assert other.plan() == design.plan()


def test_variants_that_are_written_inline_can_be_run_against_themselves(
    write_design: Callable[..., Path], tmp_path: Path
) -> None:
    design = write_design(tmp_path, variants=[variant('of "two" [lines]', "rquic")])
    assert "variants = [" in design.read_text()
    other = against_itself(designs.load(design), 'of "two" [lines]')
    assert [variant.label for variant in other.variants] == ['of "two" [lines] (A)', 'of "two" [lines] (B)']


def test_an_unknown_variant_is_refused_with_the_nearest(little_design: Path) -> None:
    with pytest.raises(Refusal, match=r"--variant of: has no such variant; did you mean 'off'\?"):
        against_itself(designs.load(little_design), "of")


def test_a_variant_that_competes_with_others_is_refused() -> None:
    design = designs.load(designs.catalogue()["networking2019-fairness"])
    with pytest.raises(Refusal, match="its transfers compete with other variants"):
        against_itself(design, design.variants[0].label)


def test_a_variant_whose_servers_are_anothers_is_refused_and_its_own_are_not(
    write_design: Callable[..., Path], tmp_path: Path
) -> None:
    off, xor = LITTLE["variants"]
    for server, refusal in (("off", True), ("xor, 4/5", False)):
        design = designs.load(write_design(tmp_path, variants=[off, xor | {"server": server}]))
        if refusal:
            with pytest.raises(Refusal, match="its servers are another variant's"):
                against_itself(design, "xor, 4/5")
        else:
            assert [variant.server for variant in against_itself(design, "xor, 4/5").variants] == [None, None]
