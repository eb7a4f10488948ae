"""Write the claims of the papers, as the recorded campaigns judge them, into the pages of docs/findings, and
what the papers' words are taken for there and into the guide.

    make findings

A page is written by hand but for what stands between START and END. A sample of recorded campaigns is called
by how its trials were run. Where a campaign of the paper's size leaves a claim open, the campaign with more
trials (`-more`), or with points that were chosen for the claim (`-r`), judges it, where that tells more.
"""

from __future__ import annotations

import lzma
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path

from fecbench.checkout import REPOSITORY
from fecbench.results import papers
from fecbench.results.papers import words
from fecbench.results.papers.claim import Claim, size_and_ours
from fecbench.results.reading import Results

PAGES = REPOSITORY / "docs" / "findings"
GUIDE = REPOSITORY / "docs" / "reproduce-a-paper.md"
SAMPLES = REPOSITORY / "notebooks" / "samples"
START = "<!-- `make findings` writes from here -->\n"
END = "<!-- to here -->\n"

# The samples of each page, by how their trials were run.
RECORDED = {
    "networking2019": {"emulated": ["networking2019"], "virtual": ["networking2019-virtual"]},
    "rquic2021": {
        "emulated": ["rquic2021"],
        "virtual": ["rquic2021-virtual", "rquic2021-video"],
        "as in 2020": ["rquic2021-recovery2020"],
    },
    "starlink2022": {"virtual": ["starlink2022-virtual"]},
    "thesis2018": {"virtual": ["thesis2018-one-path"]},
}

Key = tuple[str, str, str]
"""A claim's figure ("Fig. 5"), its text and the paper's value."""


@dataclass
class Findings:
    """The findings of a sample's campaigns about a paper."""

    claims: dict[Key, Claim] = field(default_factory=dict)
    departures: dict[str, list[str]] = field(default_factory=dict)
    """Sentences by campaign: where it departs from the paper's experiment."""

    @property
    def tally(self) -> str:
        verdicts = Counter(claim.verdict for claim in self.claims.values())
        agree = f"{verdicts['agrees']} agree, {verdicts['agrees in direction']} agree in direction"
        rest = f"{verdicts['differs']} differ, {verdicts['cannot tell']} cannot be told"
        return f"of {verdicts.total()} claims, {agree}, {rest}"


def judge(samples: Sequence[str]) -> Findings:
    """Return the findings of `notebooks/samples/SAMPLE.sqlite.xz`, of all these samples."""
    findings = Findings()
    for sample in samples:
        _judge(sample, findings)
    return findings


def _judge(sample: str, findings: Findings) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / f"{sample}.sqlite"
        database.write_bytes(lzma.decompress((SAMPLES / f"{sample}.sqlite.xz").read_bytes()))
        with Results(str(database)) as recorded:
            for name in sorted(recorded.campaigns()["campaign"], key=_has_more):
                campaign = recorded[name]
                trials = campaign.trials()
                for figure in papers.figures_of(campaign.info):
                    number = figure.number.rpartition(", ")[2]
                    for claim in figure.claims(trials, campaign.info):
                        key = (number, claim.text, claim.paper)
                        earlier = findings.claims.get(key)
                        if _tells_more(claim, earlier) if earlier else not _has_more(name):
                            findings.claims[key] = claim
                    sentences = findings.departures.setdefault(name, [])
                    sentences += figure.differences(trials, campaign.info)


def _tells_more(claim: Claim, earlier: Claim) -> bool:
    """Whether a claim decides what trials before left open. More trials may be of fewer networks."""
    is_other = claim.verdict not in ("cannot tell", earlier.verdict)
    return earlier.is_open and (is_other or not claim.is_open)


def _has_more(campaign: str) -> bool:
    return campaign.endswith(("-more", "-r"))


def text_of(paper: str) -> str:
    """Return what stands between START and END of a paper's page."""
    samples = {how: judge(recorded) for how, recorded in RECORDED[paper].items()}
    parts = ["\n".join(f"- {how}: {findings.tally}." for how, findings in samples.items())]
    parts += ["### What the paper's words are taken for", words.table()]
    keys = dict.fromkeys(key for findings in samples.values() for key in findings.claims)
    for figure, of_figure in groupby(sorted(keys, key=lambda key: _order(key[0])), lambda key: key[0]):
        parts += [f"### {figure}", _table(list(of_figure), samples)]
    parts += ["### Where our experiments depart from the paper's", _departures(samples)]
    return "\n" + "\n\n".join(parts) + "\n\n"


def _order(figure: str) -> tuple[int, ...]:
    """Figures without a number go first."""
    number = figure.rpartition(" ")[2].split(".")
    return tuple(map(int, number)) if all(part.isdigit() for part in number) else ()


def _table(keys: list[Key], samples: dict[str, Findings]) -> str:
    """A row for each claim and sample; the claim stands in its first row alone."""
    rows = ["| claim | the paper | trials | paper's size, ours | measured | verdict |"]
    rows += ["|---|---|---|---|---|---|"]
    for key in keys:
        claimed = f"{key[1]} | {key[2]}"
        for how, findings in samples.items():
            claim = findings.claims.get(key)
            measured = (
                f"{size_and_ours(claim.size, claim.ours)} | {claim.measured} | {claim.verdict}"
                if claim
                else "– | not run | –"
            )
            rows.append(f"| {claimed} | {how} | {measured} |")
            claimed = " | "
    return "\n".join(rows)


def _departures(samples: dict[str, Findings]) -> str:
    """The sentences of each campaign that no campaign before it has."""
    earlier: set[str] = set()
    lines = []
    for how, findings in samples.items():
        for campaign, sentences in findings.departures.items():
            fresh = [sentence for sentence in dict.fromkeys(sentences) if sentence not in earlier]
            earlier.update(fresh)
            if fresh:
                lines += [f"- `{campaign}`, {how}:", *(f"  - {sentence}" for sentence in fresh)]
    return "\n".join(lines)


def with_findings(page: str, text: str) -> str:
    """Return a page with `text` between START and END."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}{text}{END}{after}"


def pages() -> dict[Path, Callable[[], str]]:
    """Return the pages, and how to write what stands between START and END."""
    of_papers: dict[Path, Callable[[], str]] = {
        PAGES / f"{paper}.md": partial(text_of, paper) for paper in RECORDED
    }
    return {GUIDE: lambda: f"\n{words.table()}\n\n", **of_papers}


def main() -> None:
    for page, text in pages().items():
        page.write_text(with_findings(page.read_text(encoding="utf-8"), text()))


if __name__ == "__main__":
    main()
