"""The cost of one more thing: the source files that name a neighbour, which is a thing of the same kind.

    python -m tests.neighbours

prints them. Tests, benches, pages and designs are not counted.
"""

import subprocess
from dataclasses import dataclass

from fecbench.checkout import REPOSITORY

SOURCES = ("*.py", "*.[ch]", "*.rs", "*.go")
APART = (":!tests/", ":!bench/", ":!quic-impls/*/tests/", ":!*_test.go")


@dataclass(frozen=True)
class Neighbour:
    """A thing, the words by which source files name it, and the most files that may."""

    words: str
    """A regular expression of `git grep -E`."""
    most: int
    where: tuple[str, ...] = ()
    """Folders; none: all."""


NEIGHBOURS = {
    "a loss model: beginning": Neighbour(r"\bBeginning\b|BEGINNING|\"beginning\"|losses beginning", 6),
    # The judge and netem have to know of both: order is lost, or some packets come twice.
    "a factor of links: reorder": Neighbour(r"\breorder", 10, ("topologies", "runners", "quic-impls/lane")),
    "a factor of links that is drawn: duplicate": Neighbour(
        r"has_duplicates|\bduplicate|is_duplicated|leaves_again",
        13,
        ("topologies", "runners", "quic-impls/lane"),
    ),
}


def naming(neighbour: Neighbour) -> list[str]:
    """Return the source files that name it."""
    places = [f"{folder}/{kind}" for folder in neighbour.where for kind in SOURCES] or list(SOURCES)
    command = ["git", "grep", "-lE", neighbour.words, "--", *places, *APART]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True).stdout.splitlines()


def main() -> None:
    for name, neighbour in NEIGHBOURS.items():
        files = naming(neighbour)
        print(f"{name}: {len(files)} source files")
        for path in files:
            print(f"  {path}")


if __name__ == "__main__":
    main()
