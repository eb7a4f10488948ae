"""The figures of a campaign, each a matplotlib Figure for a person who compares.

One style for all: a variant has the same colour in every figure, and is told apart without it. Drawing the
same data twice gives the same bytes. A campaign that lacks what a figure needs raises NothingToDraw with a
sentence that says what.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from results.database import CampaignInfo
from results.figure_style import (
    DASHES,
    axis_label,
    box,
    legend_below,
    looks,
    ratio_ticks,
    round_ticks,
    style,
    title,
)
from results.frames import DCT, Pairing, baseline_of, comparisons

_DATES_AND_PROGRAMS = {
    ".png": ["Software"],
    ".svg": ["Date", "Creator"],
    ".pdf": ["CreationDate", "Creator", "Producer"],
}


class NothingToDraw(ValueError):
    """Says in one sentence what a campaign lacks for a figure."""


def save(figure: Figure, path: Path) -> None:
    """Write a PNG, SVG or PDF file, by the suffix, without a date or a program's version in it."""
    with style():
        figure.savefig(path, metadata=dict.fromkeys(_DATES_AND_PROGRAMS[path.suffix]))


def dct(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """The DCT of every ok trial, by workload and variant: boxes, and dots while they can be told apart."""
    ok = _ok_with_dct(frame)
    look_of, names = looks(campaign), workload_names(campaign)
    step = 0.8 / len(look_of)
    with style():
        figure = Figure(figsize=(1.5 + 2.5 * len(names), 5))
        axes = figure.subplots()
        for i, workload in enumerate(names):
            for j, (variant, look) in enumerate(look_of.items()):
                values = ok.loc[(ok["workload"] == workload) & (ok["variant"] == variant), DCT].to_numpy()
                box(axes, i + (j - (len(look_of) - 1) / 2) * step, 0.8 * step, values, look)
        axes.set_xticks(range(len(names)), list(names.values()))
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.grid(False, axis="x")
        axes.set_xlabel(workload_axis(campaign))
        axes.set_ylabel("download completion time (s)")
        axes.set_yscale("log")
        round_ticks(axes.yaxis)
        handles = [
            Patch(facecolor=look.color, alpha=0.6, edgecolor="black", hatch=look.hatch, label=label)
            for label, look in look_of.items()
        ]
        legend_below(figure, handles)
        title(axes, "How long do downloads take?", f"{campaign.name} · {len(ok)} ok trials of {len(frame)}")
    return figure


def compared_with_baseline(frame: pd.DataFrame, campaign: CampaignInfo) -> tuple[str, dict[str, Pairing]]:
    """The baseline, and the DCT of each other variant compared with it. Raises NothingToDraw."""
    baseline = baseline_of(campaign)
    if baseline is None:
        raise NothingToDraw("No variant of this design is a baseline, so there is no DCT ratio to draw.")
    compared = comparisons(frame, campaign)
    if not compared:
        raise NothingToDraw("This design has one variant only, so there is no DCT ratio to draw.")
    ratios = pd.concat([pairing.ratios["ratio"] for pairing in compared.values()])
    if ratios.empty:
        raise NothingToDraw(
            "No repetition is ok for the baseline and for another variant, so there is no DCT ratio to draw."
        )
    if not (np.isfinite(ratios) & (ratios > 0)).all():
        raise NothingToDraw("A DCT of 0 s was measured, so there is no DCT ratio to draw.")
    return baseline, compared


def ratio_ecdf(frame: pd.DataFrame, campaign: CampaignInfo) -> Figure:
    """The ECDF over the points of the DCT ratio to the baseline, a panel a variant and a curve a workload.

    The form of Networking 2019, Fig. 6.
    """
    baseline, compared = compared_with_baseline(frame, campaign)
    reach = 1.1 * max(np.log(1.2), *(greatest_log(pairing.ratios["ratio"]) for pairing in compared.values()))
    with style():
        figure = Figure(figsize=(6.5 * len(compared), 5))
        panels = figure.subplots(1, len(compared), squeeze=False, sharey=True)[0]
        for axes, (variant, pairing) in zip(panels, compared.items(), strict=True):
            ratios = pairing.ratios
            _ratio_panel(axes, ratios, campaign, variant)
            axes.set_xlim(float(np.exp(-reach)), float(np.exp(reach)))
            ratio_ticks(axes.xaxis, reach)
            axes.set_xlabel(f"◀ faster      DCT / DCT of {baseline}      slower ▶")
            points = int(ratios["point"].nunique())
            trials = 2 * int(ratios["pairs"].sum())
            title(
                axes,
                f"At how many points does {variant} help?",
                f"{campaign.name} · {points} points of {len(campaign.points)} · {trials} ok trials in pairs",
            )
        panels[0].set_ylabel("share of points with at most this ratio")
    return figure


def greatest_log(ratios: pd.Series) -> float:
    """The greatest |log ratio|: how far an axis has to reach from 1; 0 for none."""
    return float(np.abs(np.log(ratios)).max()) if len(ratios) else 0.0


def _ratio_panel(axes: Axes, ratios: pd.DataFrame, campaign: CampaignInfo, variant: str) -> None:
    names = workload_names(campaign)
    color = looks(campaign)[variant].color
    light, dark = (tuple(0.45 * part + 0.55 * end for part in color) for end in (1, 0))
    shades = sns.blend_palette([light, color, dark], len(names)) if len(names) > 1 else [color]
    axes.axvline(1, color="black", linewidth=1)
    for i, (workload, name) in enumerate(names.items()):
        ratio = ratios.loc[ratios["workload"] == workload, "ratio"]
        if len(ratio):
            label = f"{name}: faster at {(ratio < 1).mean():.0%} of {len(ratio)}"
            dashes = DASHES[i % len(DASHES)]
            sns.ecdfplot(x=ratio, ax=axes, color=shades[i], linestyle=dashes, linewidth=2.5, label=label)
    axes.set_xscale("log")
    axes.set_ylim(-0.02, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.legend(title=workload_axis(campaign))


def points(campaign: CampaignInfo) -> Figure:
    """Where the points of the design lie, in each pair of its factors."""
    with style():
        figure, grid = pair_plot(campaign)
        for axes, across, up in grid:
            axes.scatter(across, up, s=20, color="0.25")
        title(grid[0][0], "Which networks were tried?", f"{campaign.name} · {len(campaign.points)} points")
    return figure


def pair_plot(campaign: CampaignInfo) -> tuple[Figure, list[tuple[Axes, pd.Series, pd.Series]]]:
    """A figure with an empty panel for each pair of factors, the first at the top left.

    With each panel, the values of its two factors at each point of the design. Raises NothingToDraw.
    """
    factors = pd.DataFrame(campaign.points)
    if not len(factors.columns):
        raise NothingToDraw("This design varies no factor, so there are no points to draw.")
    if len(factors.columns) == 1:
        factors.insert(0, "index of the point", factors.index)
    across, down = list(factors.columns[:-1]), list(factors.columns[1:])
    figure = Figure(figsize=(max(6, 2.5 + 2.5 * len(across)), 2 + 2.2 * len(down)))
    grid = figure.subplots(len(down), len(across), squeeze=False, sharex="col", sharey="row")
    panels = []
    for row, vertical in enumerate(down):
        for column, horizontal in enumerate(across):
            axes = grid[row][column]
            if column > row:
                axes.remove()
                continue
            axes.set_xlabel(axis_label(horizontal) if row == len(down) - 1 else "")
            axes.set_ylabel(axis_label(vertical) if column == 0 else "")
            panels.append((axes, factors[horizontal], factors[vertical]))
    return figure, panels


def _ok_with_dct(frame: pd.DataFrame) -> pd.DataFrame:
    ok = frame[frame["state"] == "ok"]
    if ok.empty:
        raise NothingToDraw("No trial is ok, so there is no download completion time to draw.")
    if DCT not in ok or ok[DCT].isna().all():
        raise NothingToDraw(f"No trial measured {DCT}, so there is no download completion time to draw.")
    return ok[ok[DCT].notna()]


def workload_names(campaign: CampaignInfo) -> dict[str, str]:
    """What each workload is called on an axis: its size where that says all, else its label."""
    if _differ_in_size_only(campaign):
        return {w["label"]: size(w["parameters"]["size_bytes"]) for w in campaign.workloads}
    return {w["label"]: w["label"] for w in campaign.workloads}


def workload_axis(campaign: CampaignInfo) -> str:
    """What `workload_names` are names of."""
    return f"{campaign.workloads[0]['name']} size" if _differ_in_size_only(campaign) else "workload"


def _differ_in_size_only(campaign: CampaignInfo) -> bool:
    kinds = {(workload["name"], *workload["parameters"]) for workload in campaign.workloads}
    return len(kinds) == 1 and kinds.pop()[1:] == ("size_bytes",)


def size(size_bytes: int) -> str:
    """A size as people say it, exact: 50000 is "50 kB"."""
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.12g} {unit}"
    return f"{size_bytes} B"
