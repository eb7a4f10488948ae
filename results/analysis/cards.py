"""Cards: a database, a campaign or a comparison as a notebook shows it at the end of a cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from fecbench.quantities import counted
from fecbench.results import metrics
from fecbench.results.analysis import frames, paper_table
from fecbench.results.analysis.pairing import baselines_of, median_ratio
from fecbench.results.metrics import of_workloads
from fecbench.results.metrics.units import axis_label, number, quantity
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

if TYPE_CHECKING:
    from fecbench.results.analysis.pairing import Pairing

VERDICT_COLORS = {"gain": "#6a4a9c", "harm": "#e08214", "equivalent": "#9aa3ab", "undecided": "#dfe3e6"}
"""Purple helps and orange harms: on the page, in every figure, and here. No variant has a
colour near these."""
_MOST_TRIALS = 50_000  # of a campaign whose answer a card has: of more, reading takes long
_MOST_ROWS = 12
_STYLED = {"helps": "gain", "harms": "harm"}


def database_in_a_line(database: Database) -> str:
    names = [info.name for info in database.campaigns()]
    return f"<results of {database.address}: {', '.join(names) or 'no campaign'}>"


def of_database(database: Database, campaigns: pd.DataFrame) -> str:
    """The campaigns of a database, and how to go on."""
    rows = campaigns[["campaign", "title", "engine", "trials", "planned_trials", "created_at"]]
    heads = ("campaign", "title", "engine", "trials", "planned", "begun")
    first = campaigns["campaign"].iloc[0] if len(campaigns) else "NAME"
    return _card(
        f"Results in {database.address}",
        _table(heads, rows.head(_MOST_ROWS).to_numpy().tolist()),
        _more(len(rows)),
        _next([f'campaign = db["{first}"]', "db.campaigns()"]),
    )


def campaign_in_a_line(database: Database, info: CampaignInfo) -> str:
    return (
        f"<campaign {info.heading}: {counted(len(info.points), 'network')} ×"
        f" {counted(len(info.workloads), 'workload')} ×"
        f" {counted(len(info.variants), 'variant')} × {counted(info.repetitions, 'repetition')};"
        f" {_states(database, info)}>"
    )


def of_campaign(database: Database, info: CampaignInfo) -> str:
    """The question of a campaign, what was varied and compared, its answer, and how to go on."""
    baselines = baselines_of(info)
    arms = [
        label if label not in baselines else f"{label}, compared with {baselines[label]}"
        for label in (variant["label"] for variant in info.variants)
    ]
    facts = {
        "variants": "; ".join(arms),
        "factors": "; ".join(_ranges(info)) or "none",
        "workloads": ", ".join(workload["label"] for workload in info.workloads),
        "points": f"{len(info.points)}, {counted(info.repetitions, 'repetition')} each, {info.engine}",
        "trials": _states(database, info),
    }
    variant = next(iter(baselines), "")
    calls = ["campaign.trials()", "campaign.ratios()", "campaign.columns", "campaign.plot.ratio()"]
    if variant:
        calls.insert(2, f"campaign.paired({baselines[variant]!r}, {variant!r})")
    return _card(info.question, _facts(facts), _answer(database, info), _next(calls))


def of_pairing(pairing: Pairing) -> str:
    """The two arms of a comparison, its ratios, and what is in none of them."""
    rows = []
    for workload, ratios in pairing.ratios.groupby("workload", observed=True):
        metric = metrics.of(str(ratios["metric"].iloc[0]))
        of_averages = pairing.averaged_ratios
        ratio = median_ratio(of_averages[of_averages["workload"] == workload])
        rows.append((workload, metric.title, len(ratios), int(ratios["pairs"].sum()), number(ratio)))
    heads = ("workload", "metric", "networks", "pairs", "median ratio")
    unpaired = int(pairing.unpaired["repetitions"].sum()) if len(pairing.unpaired) else 0
    return _card(
        f"{pairing.variant_label} / {pairing.baseline_label}",
        _table(heads, rows),
        f"<p>{counted(unpaired, 'repetition', 'is/are')} in no ratio.</p>" if unpaired else "",
        _next(["pairing.ratios", "pairing.matched", "pairing.unpaired"]),
    )


def _answer(database: Database, info: CampaignInfo) -> str:
    count = database.trial_count(info.id)
    if not count or not baselines_of(info):
        return ""
    if count > _MOST_TRIALS:
        return "<p><code>campaign.summary()</code> counts where variants help and harm.</p>"
    trials = frames.trials(database, info, set(of_workloads(info).values()))
    words = paper_table.in_words(paper_table.summary_table(trials, info), info)
    return _table(words.columns, words.head(_MOST_ROWS).to_numpy().tolist()) + _more(len(words))


def _states(database: Database, info: CampaignInfo) -> str:
    states = database.states_of(info.id)
    counts = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
    return f"{counts or 'none'} of {info.planned_trials:,}"


def _ranges(info: CampaignInfo) -> Iterator[str]:
    points = pd.DataFrame(info.points)
    for name in map(str, points.columns):
        values = points[name].dropna()
        if pd.api.types.is_numeric_dtype(values) and values.nunique() > 1:
            low, high = (quantity(name, float(f"{end:.3g}")) for end in (values.min(), values.max()))
            yield f"{name} {low} to {high}"
        elif values.nunique() > 1:
            yield f"{axis_label(name)}: {', '.join(map(str, dict.fromkeys(values)))}"


def _card(title: str, *parts: str) -> str:
    box = "border:1px solid #9aa3ab;border-radius:6px;padding:.6em 1em;max-width:60em"
    return f'<div style="{box}"><b>{escape(title)}</b>{"".join(parts)}</div>'


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(
        f'<tr><td style="text-align:left"><i>{escape(name)}</i></td>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in facts.items()
    )
    return f"<table>{rows}</table>"


def _table(heads: Iterable[str], rows: Sequence[Sequence[Any]]) -> str:
    heads = list(heads)
    above = "".join(f'<th style="text-align:left">{escape(str(head))}</th>' for head in heads)
    body = "".join(
        f"<tr>{''.join(_cell(head, cell) for head, cell in zip(heads, row, strict=True))}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{above}</tr></thead><tbody>{body}</tbody></table>"


def _cell(head: str, value: Any) -> str:
    style = "text-align:left"
    if head in _STYLED and value:
        style += f";font-weight:bold;color:{VERDICT_COLORS[_STYLED[head]]}"
    return f'<td style="{style}">{escape(str(value))}</td>'


def _more(rows: int) -> str:
    return f"<p>and {rows - _MOST_ROWS} more</p>" if rows > _MOST_ROWS else ""


def _next(calls: Sequence[str]) -> str:
    return f"<p>Next: {' · '.join(f'<code>{escape(call)}</code>' for call in calls)}</p>"
