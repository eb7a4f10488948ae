"""Seeds: the encoding that every recorded result depends on, and that no two paths share a seed."""

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.designs import seed

paths = st.lists(st.one_of(st.text(max_size=5), st.integers()), max_size=5)


@given(st.integers(0, 2**64 - 1), paths, st.integers(0, 2**64 - 1), paths)
def test_different_roots_or_paths_have_different_seeds(root, path, other_root, other_path) -> None:
    same = (root, path) == (other_root, other_path)
    assert (seed(root, *path) == seed(other_root, *other_path)) == same


ALIKE = [
    (["ab", "c"], ["a", "bc"]),
    (["asb"], ["a", "b"]),
    (["1"], [1]),
    (["a"], ["a", ""]),
    ([0], []),
    ([-1], [255]),
    ([1], [1, 0]),
]


def test_paths_that_look_alike_have_different_seeds() -> None:
    for one, other in ALIKE:
        assert seed(7, *one) != seed(7, *other)


def test_the_encoding_is_the_documented_one() -> None:
    # The database holds seeds: another encoding would make every recorded campaign unrepeatable.
    def element(kind: bytes, content: bytes) -> bytes:
        return kind + len(content).to_bytes(8, "little") + content

    hashed = element(b"i", b"\x2a") + element(b"s", b"point") + element(b"i", b"\x00\x01")
    expected = blake2b(hashed, digest_size=8, person=b"fecbench").digest()
    assert seed(42, "point", 256) == int.from_bytes(expected, "little")


def test_other_types_are_refused() -> None:
    for element in (True, 1.0, None, b"point"):
        with pytest.raises(TypeError, match="names and integers"):
            seed(1, element)
