"""The summary of a campaign as a table for a paper: where each arm helps, harms, or does neither, and by how
much."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args

import pandas as pd

from fecbench.results.analysis import comparison
from fecbench.results.analysis.workload_names import workload_names
from fecbench.results.metrics.units import ratio_text
from fecbench.results.store.records import CampaignInfo

Form = Literal["md", "csv", "latex"]
FORMS: tuple[str, ...] = get_args(Form)
_HEADS = ("variant", "workload", "helps", "harms", "no difference", "undecided", "of", "ratio [95 %]", "to")
_NUMBERS = range(2, 7)  # the places of those columns that stand right


def summary_table(trials: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """Return a row for each variant with a baseline and workload, with `comparison.COLUMNS`: the counts of
    verdicts over points, the ratio with its interval, and more. Variants are in the order of the
    design."""
    table = comparison.of_frame(trials, campaign)
    order = {variant["label"]: place for place, variant in enumerate(campaign.variants)}
    in_order: pd.DataFrame = table.sort_values(
        "variant", key=lambda labels: labels.map(order), kind="stable", ignore_index=True
    )
    return in_order[["variant", *(name for name in comparison.COLUMNS if name != "variant")]]


def in_words(table: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """The rows of `summary_table` as a reader sees them: with names for workloads, and the digits that an
    interval allows."""
    names = workload_names(campaign)
    rows = [
        (
            *(row["variant"], names[row["workload"]], *(int(row[name]) for name in comparison.COUNTS)),
            *(int(row["points"]), _ratio(row), row["compared_with"]),
        )
        for row in table.to_dict("records")
    ]
    return pd.DataFrame(rows, columns=list(_HEADS))


def _ratio(row: Mapping[Any, Any]) -> str:
    if not row["points"]:
        return "–"
    return ratio_text(row["ratio"], row["ratio_low"], row["ratio_high"])


def as_markdown(words: pd.DataFrame) -> str:
    """A table of `in_words` in Markdown."""
    marks = ["---:" if place in _NUMBERS else "---" for place in range(len(words.columns))]
    lines: list[list[str]] = [list(words.columns), marks, *words.astype(str).to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return str(text).replace("\\", "\\\\").replace("|", "\\|")


def as_latex(words: pd.DataFrame) -> str:
    """A table of `in_words` in LaTeX, with the rules of the package booktabs."""
    style = words.style.format(escape="latex").format_index(escape="latex", axis=1).hide(axis="index")
    columns = "".join("r" if place in _NUMBERS else "l" for place in range(len(words.columns)))
    text: str = style.to_latex(hrules=True, column_format=columns)
    return text.replace("∞", r"$\infty$").replace("–", "--")


def as_csv(table: pd.DataFrame) -> str:
    """The rows of `summary_table` with all their digits; what is unknown is empty."""
    return table.to_csv(index=False)


def texts(campaigns: Iterable[tuple[pd.DataFrame, CampaignInfo]], form: Form) -> str:
    """The summaries of several campaigns (`summary_table`): a table each, with its name above, or in CSV one
    table with a column for the name."""
    tables = list(campaigns)
    if form == "csv":
        return as_csv(pd.concat([rows.assign(campaign=info.name) for rows, info in tables]))
    write: Callable[[pd.DataFrame], str] = as_markdown if form == "md" else as_latex
    parts = []
    for rows, info in tables:
        name = " ".join(info.averaged_heading.split())
        is_alone = len(tables) == 1 and info.averaged_repetitions == info.repetitions
        above = "" if is_alone else f"% {name}\n" if form == "latex" else f"{name}\n\n"
        parts.append(above + write(in_words(rows, info)))
    return "\n".join(parts)
