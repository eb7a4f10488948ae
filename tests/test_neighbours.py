"""A further thing of a kind costs as few files as its neighbour, and none in Rust or Go."""

import pytest

from tests.neighbours import NEIGHBOURS, naming


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_neighbour_is_named_in_few_source_files_and_in_none_of_a_stack(name: str) -> None:
    files = naming(NEIGHBOURS[name])
    assert files and len(files) <= NEIGHBOURS[name].most, files
    assert not [path for path in files if path.endswith((".rs", ".go"))]
