"""The source files that name a thing are those of its row in "Where to add what"."""

import re

import pytest

from fecbench.checkout import REPOSITORY
from tests.neighbours import NEIGHBOURS, Neighbour, naming, paths, rows

SAYS_NO_FILE = {"a rule of the link", "a QUIC implementation"}
"""A rule is no thing with a name; an implementation needs no change here."""


@pytest.mark.parametrize("neighbour", NEIGHBOURS, ids=lambda neighbour: neighbour.name)
def test_a_thing_is_named_in_the_files_of_its_row(neighbour: Neighbour) -> None:
    named, aside = paths(rows()[neighbour.row])
    files = naming(neighbour)
    assert [file for file in files if not any(is_within(file, path) for path in named)] == []
    assert {path for path in named - aside if not any(is_within(file, path) for file in files)} == set()


def is_within(file: str, path: str) -> bool:
    return file == path or (path.endswith("/") and file.startswith(path))


def test_every_row_has_a_neighbour_and_every_path_of_it_is_there() -> None:
    assert {neighbour.row for neighbour in NEIGHBOURS} | SAYS_NO_FILE == rows().keys()
    for row in rows().values():
        for path in re.findall(r"`([a-z-]+/[^`]+)`", row):
            assert (REPOSITORY / path).exists(), path


@pytest.mark.parametrize(("row", "most"), [("a factor of links", 9), ("a loss model", 6)])
def test_what_a_link_has_is_named_in_few_files_and_in_no_stack(row: str, most: int) -> None:
    for neighbour in NEIGHBOURS:
        if neighbour.row == row:
            files = naming(neighbour)
            assert len(files) <= most, neighbour.name
            assert not [path for path in files if path.endswith((".rs", ".go"))]
