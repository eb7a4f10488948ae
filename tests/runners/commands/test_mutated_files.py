"""Files of others as a broken disk or a wrong hand leaves them: readers take them, or refuse in one line.

Atheris does the same by what the bytes reach (tests/fuzz); these examples are drawn anew in each run.
"""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import REFUSALS, TARGETS

READERS = [
    *("losses", "qlog", "capture", "captures", "list", "har", "mpd"),
    *(name for name in TARGETS if name.startswith("trace-") and name != "trace-parquet"),
]
SCRAPS = st.sampled_from(
    [
        b"",
        b"-1",
        b"0",
        b"9" * 20,
        b"1e999",
        b"nan",
        b"null",
        b"{}",
        b"[]",
        b'"',
        b"\n",
        b"\0",
        b"\xff\xff",
        b"\x1e",
    ]
)


@st.composite
def mutations(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """Replace, insert, and cut off, in a few places."""
    places = draw(
        st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9), SCRAPS | st.binary(max_size=6)), max_size=4)
    )
    keeps = draw(st.just(1.0) | st.floats(0, 1))

    def mutated(content: bytes) -> bytes:
        for share, skipped, scrap in places:
            at = round(share * len(content))
            content = content[:at] + scrap + content[at + skipped :]
        return content[: round(keeps * len(content))]

    return mutated


SEEDS = {name: list(TARGETS[name].seeds()) for name in READERS}


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=2 * settings().max_examples)
@given(number=st.integers(0, 1000), mutation=mutations())
def test_a_mutated_file_is_read_or_refused_in_one_line(
    name: str, number: int, mutation: Callable[[bytes], bytes]
) -> None:
    content = mutation(SEEDS[name][number % len(SEEDS[name])])
    try:
        TARGETS[name].read(content)
    except REFUSALS as refusal:
        assert len(str(refusal).splitlines()) == 1


@pytest.mark.parametrize("name", READERS)
def test_a_file_as_it_is_written_is_read(name: str) -> None:
    """A fuzzer whose beginnings are all refused looks at nothing. Each form of a link refuses the others'."""
    error = []
    for content in SEEDS[name]:
        try:
            TARGETS[name].read(content)
        except REFUSALS as refusal:
            error.append(str(refusal))
    assert len(error) <= (len(SEEDS[name]) - 1 if name.startswith("trace-") else 0), error
