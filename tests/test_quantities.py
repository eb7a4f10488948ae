"""Quantities as people write them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.checkout import REPOSITORY
from fecbench.errors import BadInput
from fecbench.quantities import Kind, counted, quantities, quantity


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("80", "ms", 80),
        ("80ms", "ms", 80),
        ("0.08 s", "ms", 80),
        ("250us", "ms", 0.25),
        ("2", "s", 2),
        ("20Mbit/s", "Mbit/s", 20),
        ("800kbps", "Mbit/s", 0.8),
        ("1Gbit", "Mbit/s", None),
        ("50kB", "bytes", 50_000),
        ("1MiB", "bytes", 1_048_576),
        ("1e3", "bytes", 1000),
        ("3%", "share", 0.03),
        ("0.03", "share", 0.03),
        ("-1", "share", -1),
        ("2", "number", 2),
        ("2ms", "number", None),
        ("", "ms", None),
        ("ms", "ms", None),
        ("80 ms ms", "ms", None),
        ("nan", "ms", None),
        ("1e999", "ms", None),
        ("50KB", "bytes", 50_000),
        ("50kbit", "bytes", None),
        ("50kb", "bytes", None),
        ("1Mb", "bytes", None),
        ("3%", "ms", None),
    ],
)
def test_a_quantity_is_read_or_refused_with_an_example(text: str, kind: Kind, value: float | None) -> None:
    if value is not None:
        assert quantity(text, kind) == value
    else:
        with pytest.raises(BadInput, match=r"must be a .* such as"):
            quantity(text, kind)


@given(st.floats(1e-6, 1e9))
def test_a_quantity_that_is_written_with_its_unit_is_read_back(value: float) -> None:
    for kind, unit in (("ms", "ms"), ("Mbit/s", "Mbit/s"), ("bytes", "B"), ("s", "s")):
        assert quantity(f"{value!r}{unit}", kind) == pytest.approx(value, rel=1e-14)  # type: ignore[arg-type]


def test_the_low_end_of_a_range_has_the_unit_of_the_high_end() -> None:
    assert quantities("20..200ms", "ms") == (20, 200)
    assert quantities("20ms..0.2s", "ms") == (20, 200)
    assert quantities("0.5..5%", "share") == (0.005, 0.05)
    assert quantities("50kB", "bytes") == (50_000, 50_000)
    assert quantities("1..5", "Mbit/s") == (1, 5)


@pytest.mark.parametrize("text", ["5..1", "1..", "..", "1..2..3", "a..b"])
def test_a_range_of_another_form_is_refused_by_itself(text: str) -> None:
    with pytest.raises(BadInput, match="^" + repr(text).replace(".", r"\.")):
        quantities(text, "ms")


@pytest.mark.parametrize(
    ("count", "words", "text"),
    [
        (1, ("network",), "1 network"),
        (0, ("loss",), "0 losses"),
        (1000, ("pair", "has/have"), "1,000 pairs have"),
        (1, ("pair", "has/have"), "1 pair has"),
    ],
)
def test_one_is_no_plural(count: int, words: tuple[str, ...], text: str) -> None:
    assert counted(count, *words) == text


def test_no_caption_and_no_sentence_writes_its_plurals_itself() -> None:
    """Constants, ranges, lists of counts, and networks with workloads are never 1."""
    bare = re.compile(r"\{([^{}\n]+)\} (?:networks|pairs|trials|cases)\b(?! and)")
    lists = {"counts", "pairs.max()", "len(records)"}
    faults = [
        f"{path.name}: {match[0]}"
        for room in ("results", "runners", "topologies")
        for path in (REPOSITORY / room).rglob("*.py")
        for match in bare.finditer(path.read_text(encoding="utf-8"))
        if not match[1].isupper() and match[1] not in lists and not match[1].startswith("counted(")
    ]
    assert faults == []
