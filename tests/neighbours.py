"""The cost of one more thing: the source files that name a neighbour, which is a thing of the same kind.

    python -m tests.neighbours

prints them. Tests, benches, pages and designs are not counted. Each kind is a row of "Where to add what" in
docs/how-it-is-built.md.
"""

import re
import subprocess
from dataclasses import dataclass

from fecbench.checkout import REPOSITORY

SOURCES = ("*.py", "*.[ch]", "*.rs", "*.go", "*.toml")
APART = (":!tests/", ":!bench/", ":!quic-impls/*/tests/*", ":!*_test.go", ":!designs/catalog/")
PAGE = REPOSITORY / "docs" / "how-it-is-built.md"


@dataclass(frozen=True)
class Neighbour:
    """A thing that is there already, and the words by which source files name it."""

    row: str
    """Kind of thing that is added: the row of the page."""
    name: str
    words: str
    """A regular expression of `git grep -E`."""
    where: tuple[str, ...] = ()
    """Folders; none: all."""


_OF_LINKS = ("topologies", "runners", "quic-impls/lane")
NEIGHBOURS = (
    # The judge and netem have to know of both: order is lost, or some packets come twice.
    Neighbour("a factor of links", "reorder", r"\breorder", _OF_LINKS),
    Neighbour(
        "a factor of links",
        "duplicate",
        r"has_duplicates|\bduplicate|is_copy|leaves_again|leaves_as_copy|EFFECT_COPY|EFFECT_LEAVES_AGAIN",
        _OF_LINKS,
    ),
    Neighbour("a factor of links", "corrupt", r"[cC]orrupt|CORRUPTION", _OF_LINKS),
    Neighbour("a factor of links", "overtake", r"[oO]vertak|reorder_p", _OF_LINKS),
    Neighbour("a factor of links", "fq_codel", r"fq_codel|FQ_CODEL", _OF_LINKS),
    Neighbour("a factor of links", "policer", r"\bpolicer", _OF_LINKS),
    Neighbour("a factor of links", "shaper_burst_bytes", r"\bshaper_burst_bytes", _OF_LINKS),
    Neighbour("a loss model", "beginning", r"\bBeginning\b|BEGINNING|\"beginning\"|losses beginning"),
    # Papers have their own words for what they compare.
    Neighbour("a workload", "competing", r"\b[cC]ompeting\b", ("runners", "results/metrics", "quic-impls")),
    Neighbour("a policy of repair", "flec-limited", r"FlecLimited|flec-limited"),
    Neighbour("an option of noq-fec", "initial_window_bytes", r"\binitial_window_bytes"),
    Neighbour("an option of noq-fec", "ack_path", r"\back_path"),
    Neighbour("a congestion controller of noq-fec", "prague", r"\bprague\b|Prague"),
    Neighbour("a congestion controller of noq-fec", "olia", r"\bolia\b|Olia"),
    Neighbour("a metric or a series", "messages.freezes", r"\bfreezes\b|\bfreeze_s", ("runners", "results")),
    Neighbour("a topology", "dumbbell", r"\bdumbbell|DUMBBELL"),
    Neighbour("another way to carry out trials", "virtual", r"VirtualEngine"),
    Neighbour("a paper's figures and claims", "moskvitin", r"moskvitin"),
    Neighbour("a table or column of the database", "superseded", r"\bsuperseded\b", ("results/store",)),
)


def naming(neighbour: Neighbour) -> list[str]:
    """Return the source files that name it."""
    places = [f"{folder}/{kind}" for folder in neighbour.where for kind in SOURCES] or list(SOURCES)
    command = ["git", "grep", "-lE", neighbour.words, "--", *places, *APART]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True).stdout.splitlines()


def rows() -> dict[str, str]:
    """Return the rows of "Where to add what": where it goes into, by what somebody wants."""
    table = PAGE.read_text().partition("## Where to add what")[2]
    return dict(re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)[1:])


def paths(row: str) -> tuple[set[str], set[str]]:
    """Return the paths that a row names, and those in parentheses, which not every thing needs."""
    named = {path for path in re.findall(r"`([^`]+)`", row) if "/" in path and (REPOSITORY / path).exists()}
    aside = {path for part in re.findall(r"\([^)]*\)", row) for path in re.findall(r"`([^`]+)`", part)}
    return named, named & aside


def main() -> None:
    for neighbour in NEIGHBOURS:
        files = naming(neighbour)
        print(f"{neighbour.row}: {neighbour.name}: {len(files)} source files")
        for path in files:
            print(f"  {path}")


if __name__ == "__main__":
    main()
