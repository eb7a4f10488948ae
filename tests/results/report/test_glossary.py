"""Page, figures and tables say each of eight things by its one word, and have one statistic:
docs/glossary.md."""

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import product
from typing import Literal, get_args

import pytest
from matplotlib.text import Text
from rich.console import Console

from fecbench.checkout import REPOSITORY
from fecbench.designs.sketch import Arm, Sketch
from fecbench.results.analysis import comparison, frames
from fecbench.results.analysis.averages import ratio_over
from fecbench.results.gate import build_answer, for_ci
from fecbench.results.gate.overall import NEW, OLD
from fecbench.results.gate.verdict import Verdict
from fecbench.results.report.collecting import document_of, document_with_rules
from fecbench.results.report.drawings import named
from fecbench.results.report.evidence import gather, with_explanations
from fecbench.results.report.tables import rules
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey, Variant
from fecbench.runners.commands.console.campaign_summary import table_of_answers
from tests import help as helps
from tests.results.pages import page_of, text_of

Campaign = tuple[Database, CampaignInfo]

SYNONYMS = {
    "variant": r"arms?",
    "network": r"(?<!percentage )points?",
    "helps": r"gains?|faster|shortens",
    "harms": r"slower|losses than",
    "no difference": r"equivalent|equal|same as|no gain",
    "undecided": r"open|cannot tell|cannot be told",
}
POINTS = [{"bandwidth_mbps": 1.0 + n % 6, "loss.p": 0.01 + 0.001 * n} for n in range(32)]
Filled = Callable[..., Campaign]


@pytest.fixture
def planted(filled: Filled) -> Campaign:
    """A campaign with rules, maps, and each of the verdicts."""
    factors = [0.5, 1.5, 1.0, None]  # None: now so, now so
    outcomes = {
        TrialKey(variant, workload, point, n): (
            "ok",
            1.0
            if variant == "rquic-off"
            else (0.5 if point > 15 else factors[point % 4]) or (0.5, 2.0)[n % 2],
        )
        for variant, workload, point, n in product(
            ("rquic-off", "rquic-xor"), ("download-2000", "download-10000"), range(len(POINTS)), range(6)
        )
    }
    return filled(outcomes, repetitions=6, points=POINTS)


def of_build(label: str, baseline: bool = False) -> Variant:
    """Return the variant of one of two builds."""
    return Variant(label=label, implementation="rquic", options={}, baseline=baseline)


def synonyms_in(text: str, but: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return the words, `but` some, that say a thing by another word than its own, each with that word."""
    return [
        (match.group(), word)
        for word, pattern in SYNONYMS.items()
        for match in re.finditer(rf"\b({pattern})\b", text, re.IGNORECASE)
        if match.group() not in but
    ]


def test_a_synonym_is_found() -> None:
    assert synonyms_in("at 3 points the arm is faster; 2 percentage points") == [
        ("arm", "variant"),
        ("points", "network"),
        ("faster", "helps"),
    ]


def test_the_page_and_its_figures_use_the_words_of_the_glossary(planted: Campaign) -> None:
    texts = {"page": text_of(page_of(*planted))}
    evidence = gather(*planted)
    for name, figure in named(evidence).items():
        drawing = figure.draw()
        texts[name] = " ".join(text.get_text() for text in drawing.findobj(Text)) + f" {figure.caption}"
    assert len(texts) > 8
    design = planted[1].design_text
    assert {
        name: synonyms_in(text.replace(design, "")) for name, text in texts.items() if synonyms_in(text)
    } == {}


def test_no_axis_keeps_the_blank_that_it_had_before_its_label(planted: Campaign) -> None:
    for name, figure in named(gather(*planted)).items():
        labels = [label for axes in figure.draw().axes for label in (axes.get_xlabel(), axes.get_ylabel())]
        assert " " not in labels, name


def test_rules_that_come_after_the_first_page_make_the_same_document(planted: Campaign) -> None:
    first = gather(*planted, explained=False)
    document, whole = document_of(first), document_of(gather(*planted))
    assert document_with_rules(document, with_explanations(first)) == whole
    assert any(answer.rule for answer in whole.answers)
    assert not any(answer.rule for answer in document.answers)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_table_page_figures_and_rules_have_the_same_counts_and_the_same_ratio(
    planted: Campaign, statistic: Literal["mean", "median"]
) -> None:
    database, campaign = planted[0], replace(planted[1], statistic=statistic)
    evidence = gather(database, campaign)
    document, drawings = document_of(evidence), named(evidence)
    rows = {row.workload: row for row in document.findings if row.compared_with}
    titles = " ".join(text.get_text() for text in drawings["ratio"].draw().findobj(Text))
    of_maps = {one.workload: one for one in document.maps}
    bars = drawings["bars"].draw().axes[0].containers
    heights = [bar.get_y() + bar.get_height() for container in bars for bar in container]
    for row in rows.values():
        assert row.average == statistic
        assert f"helps in {row.helps}, harms in {row.harms} of {row.points}" in " ".join(titles.split())
        on_map = of_maps[row.workload]
        assert (on_map.helps, on_map.harms, on_map.undecided) == (row.helps, row.harms, row.undecided)
        assert any(height == pytest.approx(row.ratio) for height in heights), row.workload
    (explained,) = evidence.explained
    assert explained.explanation is not None
    assert {rule.average for rule in explained.explanation.rules} == {statistic}
    ratios = {
        kind: ratio_over(evidence.parts[0].ratios, evidence.parts[0].ratios["point"], kind).value
        for kind in ("mean", "median")
    }
    assert explained.explanation.everywhere.ratio == pytest.approx(ratios[statistic])


def test_the_table_of_answers_uses_the_words_of_the_glossary(planted: Campaign) -> None:
    database, campaign = planted
    table = comparison.of_frame(frames.trials(database, campaign), campaign)
    console = Console(width=250, record=True, quiet=False)
    console.print(table_of_answers(table, campaign))
    assert synonyms_in(console.export_text()) == []


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (1.2, "slower"),
        (0.8, "faster"),
        (1.0, "no difference that matters"),
        (None, "undecided"),
        (0, "fails"),
    ],
)
def test_the_gate_uses_the_words_of_the_glossary_beside_its_verdicts(
    filled: Filled, factor: float | None, verdict: str
) -> None:
    """`factor`: None for now so, now so; 0 for a build that fails."""

    def outcome(variant: str, n: int) -> tuple[str, float]:
        times = (1.0 if variant == OLD else factor) if factor is not None else (0.5, 2.0)[n % 2]
        return ("failed" if times == 0 else "ok", times)

    labels = ("download-2000", "download-10000")
    database, campaign = filled(
        {
            TrialKey(variant, workload, point, n): outcome(variant, n + point + (variant == OLD))
            for variant, workload, point, n in product((OLD, NEW), labels, range(8), range(6))
        },
        repetitions=6,
        points=POINTS[:8],
        variants=[of_build(OLD, baseline=True), of_build(NEW)],
        provenance={"engine": "virtual"},
    )
    result = build_answer.answer(database, campaign)
    assert result.verdict == verdict
    text = for_ci.markdown(result, lambda old, new: [f"fecbench replay {old} {new}"])
    assert synonyms_in(text.replace(campaign.title, ""), but=("faster", "slower")) == []


@pytest.mark.parametrize("burst", [(1.0, 1.0), (2.0, 4.0)])
def test_a_design_of_ones_own_ranges_is_remarked_in_the_words_of_the_glossary(
    burst: tuple[float, float],
) -> None:
    sketch = Sketch(
        name="mine",
        bandwidth_mbps=(5.0, 50.0),
        rtt_ms=(20.0, 200.0),
        loss=(0.005, 0.05),
        burst=burst,
        queue_bdp=(1.5, 1.5),
        sizes_bytes=[50_000],
        workload="download",
        arms=[Arm("none", "noq-fec", {"scheme": "none"}), Arm("safe", "noq-fec", {}, baseline="none")],
        trials=1000,
    )
    remarks = [line.partition("#")[2] for line in sketch.text().splitlines()]
    assert any(remarks)
    assert synonyms_in("\n".join((sketch.text().splitlines()[1], *remarks)), but=("shorten",)) == []


def test_the_help_of_every_command_calls_a_variant_so() -> None:
    looked_at = helps.PATH.read_text(encoding="utf-8")
    without_options = re.sub(r"--arms?\b", "", looked_at)
    assert re.findall(rf".*\b(?:{SYNONYMS['variant']}|equivalent|cannot tell)\b.*", without_options) == []


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_the_table_of_rules_is_headed_by_the_average_that_it_has(
    planted: Campaign, statistic: Literal["mean", "median"]
) -> None:
    (explained,) = document_of(gather(planted[0], replace(planted[1], statistic=statistic))).explained
    assert [column.head for column in rules(explained).columns][1] == f"{statistic} ratio [95 %]"


def test_the_glossary_has_each_word() -> None:
    page = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8")
    for word in (*SYNONYMS, "baseline", "case"):
        assert f"| **{word}** |" in page
    for verdict in get_args(Verdict):  # of the gate
        assert f"`{verdict}`" in page.replace("\n", " ")
