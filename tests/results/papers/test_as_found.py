"""The guide's tables of what was found say what the recorded campaigns give, word by word."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

import results
from results import papers

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reproduce-a-paper.md"
HEAD = "| Fig. | claim | the paper | measured | verdict |"
OURS = "rQUIC, XOR as in the paper: "  # the page has this variant only, and says so


def found(sample: Path) -> tuple[list[str], list[str]]:
    """The rows of all claims of the recorded campaigns, and the verdict of each."""
    rows, verdicts = [], []
    with results.open(str(sample)) as database:
        for name in database.campaigns()["campaign"]:
            campaign = database[name]
            trials = campaign.trials()
            for figure in papers.figures_of(campaign.info):
                number = figure.number.rpartition(" ")[2]
                for claim in figure.claims(trials, campaign.info):
                    text = claim.text.removeprefix(OURS)
                    rows.append(f"| {number} | {text} | {claim.paper} | {claim.measured} | {claim.verdict} |")
                    verdicts.append(claim.verdict)
    return rows, verdicts


def section(title: str) -> str:
    (found,) = (part for part in PAGE.read_text().split("\n### ") if part.startswith(title))
    return found


@pytest.mark.parametrize(
    ("title", "name", "figures"),
    [("Networking 2019", "networking2019", 6), ("rQUIC 2021", "rquic2021", 4)],
)
def test_the_guide_quotes_what_was_found(title: str, name: str, figures: int, tmp_path: Path) -> None:
    sample = tmp_path / f"{name}.sqlite"
    sample.write_bytes(lzma.decompress((ROOT / "notebooks/samples" / f"{name}.sqlite.xz").read_bytes()))
    rows, verdicts = found(sample)
    text = section(title)
    quoted = text.partition(HEAD)[2].splitlines()[2:]
    quoted = quoted[: quoted.index("")]
    assert [row for row in quoted if row not in rows] == []
    assert len({row.split("|")[1] for row in quoted}) == figures
    agree, differ, open_ = (verdicts.count(verdict) for verdict in ("agrees", "differs", "cannot tell"))
    tally = f"Of {len(verdicts)} claims, {agree} agree, {differ} differ, and of {open_} these trials"
    assert f"{tally} cannot tell." in " ".join(text.split())
