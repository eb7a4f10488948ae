"""The guide's tables of what was found say what the recorded campaigns give, word by word."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from pathlib import Path

import pytest

from fecbench import results
from fecbench.results import papers
from fecbench.results.papers.claims import Claim

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reproduce-a-paper.md"
HEAD = "| Fig. | claim | the paper |"
COLUMNS = {"": "measured", "-virtual": "virtual", "-recovery2020": "as in 2020"}
"""What the tables call the samples of a paper, by what their names end with."""
OURS = "rQUIC, XOR as in the paper: "  # the page has this variant only, and says so
NOT_RUN = "not run | –"

Found = dict[tuple[str, str, str], Claim]


def found(sample: Path) -> Found:
    """The claims of the recorded campaigns, by their figure, what is claimed of what, and the paper's value.

    Of one that the campaign of the paper's size leaves open, that of the campaign with more trials (`-more`),
    or of points that were chosen for it (`-r`).
    """
    claims: Found = {}
    with results.open(str(sample)) as database:
        for name in sorted(database.campaigns()["campaign"], key=has_more):
            campaign = database[name]
            trials = campaign.trials()
            for figure in papers.figures_of(campaign.info):
                number = figure.number.rpartition(" ")[2]
                for claim in figure.claims(trials, campaign.info):
                    key = (number, claim.text.removeprefix(OURS), claim.paper)
                    if claims[key].holds is None if key in claims else not has_more(name):
                        claims[key] = claim
    return claims


def has_more(campaign: str) -> bool:
    return campaign.endswith(("-more", "-r"))


def rows(samples: Sequence[Found]) -> list[str]:
    """Those of the guide's table: each claim, with what was measured in each of the samples."""
    table = []
    for key in {key: None for sample in samples for key in sample}:
        columns = [
            f"{each[key].measured} | {each[key].verdict}" if key in each else NOT_RUN for each in samples
        ]
        table.append(f"| {' | '.join([*key, *columns])} |")
    return table


def tally(claims: Found) -> str:
    verdicts = [claim.verdict for claim in claims.values()]
    agree, differ, open_ = (verdicts.count(verdict) for verdict in ("agrees", "differs", "cannot tell"))
    return (
        f"of {len(verdicts)} claims, {agree} agree, {differ} differ, and of {open_} these trials cannot tell."
    )


def section(title: str) -> str:
    (found,) = (part for part in PAGE.read_text().split("\n### ") if part.startswith(title))
    return found


@pytest.mark.parametrize(
    ("title", "name", "endings", "figures"),
    [
        ("Networking 2019", "networking2019", ["", "-virtual"], 6),
        ("rQUIC 2021", "rquic2021", ["", "-virtual", "-recovery2020"], 6),
        ("The slides on uploads", "starlink2022", ["-virtual"], 1),
    ],
)
def test_the_guide_quotes_what_was_found(
    title: str, name: str, endings: list[str], figures: int, tmp_path: Path
) -> None:
    samples = []
    for recorded in (f"{name}{ending}" for ending in endings):
        sample = tmp_path / f"{recorded}.sqlite"
        compressed = ROOT / "notebooks/samples" / f"{recorded}.sqlite.xz"
        sample.write_bytes(lzma.decompress(compressed.read_bytes()))
        samples.append(found(sample))
    text = section(title)
    head, _, *quoted = text[text.index(HEAD) :].splitlines()
    assert head == f"{HEAD} {' | '.join(f'{COLUMNS[ending]} | verdict' for ending in endings)} |"
    quoted = quoted[: quoted.index("")]
    assert [row for row in quoted if row not in rows(samples)] == []
    assert len({row.split("|")[1] for row in quoted}) == figures
    for claims in samples:
        assert tally(claims) in " ".join(text.split())
