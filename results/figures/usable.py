"""Live video at latency targets: where more frames are usable in time with FEC, and where without."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from fecbench.quantities import counted
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.analysis.summary import of_whole_groups
from fecbench.results.analysis.targets import half_interval, shares
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.seaborn_alone import sns
from fecbench.results.figures.sheet import Given, sheet
from fecbench.results.figures.style import across, line, looks, variant_marks, wide, wrapped
from fecbench.results.store.records import CampaignInfo

_CLASSES = (0, 1, 2, 3, 5, np.inf)
_NAMES = ("below 1", "1 to 2", "2 to 3", "3 to 5", "5 and more")
"""Classes of targets in round trips: the upper end of each is in the next. A rule that people quote has its
border at 2 (moq.dev, "Forward? Error? Correction?", 2024)."""
_BORDER = 1.5  # between the second class and the third one
_PANEL = 2.2  # inches high
_TRIAL = ["workload", "point", "variant", "repetition"]


def usable_over_targets(frame: pd.DataFrame, campaign: CampaignInfo, *, ax: Given = None) -> Figure:
    """The share of video frames that is usable over the latency target in round trips: a panel for each kind
    of network and baseline, and a line for each variant.

    A value is the mean over the networks and targets of a class, and over repetitions, with the 95 %
    interval over these, of whole groups (`summary.of_whole_groups`): no variant is drawn in other networks
    than the others. A broken line stands at two round trips.

    Raises NothingToDraw for a campaign without live broadcasts, or whose design says no delay.
    """
    table = shares(frame, campaign)
    if table.empty:
        raise NothingToDraw("No trial broadcast live video over a link of known delay: there is no target.")
    trials = table[_TRIAL].drop_duplicates()
    whole = trials[of_whole_groups(trials, pd.Series(True, trials.index))]
    if whole.empty:
        raise NothingToDraw("In no repetition did all variants broadcast live video.")
    table = table.merge(whole, on=_TRIAL)
    classes = pd.cut(table["round_trips"], _CLASSES, right=False, labels=_NAMES)
    place = ["workload", "network", "variant", "class", "repetition"]
    values = table.assign(**{"class": classes}).groupby(place, observed=True)["share"].mean().reset_index()
    there = set(values["variant"])
    panels = [
        (workload, network, arms)
        for workload in dict.fromkeys(table["workload"])
        for network in dict.fromkeys(table[table["workload"] == workload].sort_values("point")["network"])
        for arms in _families(campaign)
        if there.intersection(arms)
    ]
    columns = min(across(), len(panels))
    size = (wide(), 1.9 + (_PANEL + 0.4) * -(-len(panels) // columns))
    with sheet(len(panels), size, ax, columns=columns, sharex=True, what="choose fewer variants") as page:
        for axes, (workload, network, arms) in zip(page.panels, panels, strict=True):
            rows = values[(values["workload"] == workload) & (values["network"] == network)]
            present = [arm for arm in arms if (rows["variant"] == arm).any()]
            sns.pointplot(
                rows.assign(variant=rows["variant"].astype(str)),
                x="class",
                y="share",
                order=_NAMES,
                hue="variant",
                hue_order=present,
                palette=[looks(campaign)[arm].color for arm in present],
                markers=[looks(campaign)[arm].marker for arm in present],
                dodge=0.4,
                errorbar=_interval,
                linewidth=line(0.6),
                markersize=line(3),
                legend=False,
                ax=axes,
            )
            axes.axvline(_BORDER, color="black", linestyle="--", linewidth=line(0.5), zorder=0)
            title = ", ".join([network, *_where_several(panels, workload, arms[0])])
            axes.set_title(wrapped(title, page.width), fontsize="medium")
            axes.set(xlabel="", ylabel="", ylim=(-0.03, 1.03))
            axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        for axes in page.last_row:
            axes.tick_params(axis="x", labelbottom=True, rotation=30)
            axes.set_xlabel("latency target (round-trip times)", fontsize="medium")
        page.label_up("video frames usable in time")
        border = Line2D([], [], color="black", linestyle="--", linewidth=line(0.5), label="two round trips")
        page.legend([*variant_marks(campaign, there), border])
        page.heading(
            "At which latency target does FEC help live media?",
            f"{campaign.averaged_heading} · {counted(table['point'].nunique(), 'network')} ·"
            f" {counted(_trials(table), 'trial')}"
            " · bars: 95 % interval of the mean over repetitions",
        )
    return page.figure


def _families(campaign: CampaignInfo) -> list[list[str]]:
    """Return the variants of a panel: each baseline with those that are compared with it, or all."""
    baselines = baselines_of(campaign)
    families = [
        [baseline, *(arm for arm, of_arm in baselines.items() if of_arm == baseline)]
        for baseline in dict.fromkeys(baselines.values())
    ]
    return families or [[variant["label"] for variant in campaign.variants]]


def _interval(values: pd.Series) -> tuple[float, float]:
    """Return the interval of a mean over repetitions; its ends are the mean where these are too few."""
    mean = float(values.mean())
    half = float(np.nan_to_num(half_interval(float(values.std()), len(values))))
    return mean - half, mean + half


def _where_several(panels: list[tuple[str, str, list[str]]], workload: str, baseline: str) -> list[str]:
    """Return what the title of a panel says besides the network: what is not the same in all panels."""
    workloads, _, families = zip(*panels, strict=True)
    several = [workload] if len(set(workloads)) > 1 else []
    return [*several, f"beside {baseline}"] if len({arms[0] for arms in families}) > 1 else several


def _trials(table: pd.DataFrame) -> int:
    return len(table[_TRIAL].drop_duplicates())
