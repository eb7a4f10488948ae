"""The figures of a campaign as methods: `campaign.plot.ratio()`.

Each draws a figure of ours, or into axes that are given, which keep the reader's settings:

    fig, axes = plt.subplots(1, 2)
    campaign.plot.ratio(ax=axes[0])
    campaign.plot.over_factor("owd_ms", workload="download-50000", ax=axes[1])

`arms` and `workloads` choose by labels; each arm keeps its colour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fecbench.errors import BadInput
from fecbench.hints import nearest
from fecbench.results import figures
from fecbench.results.analysis.pairing import baselines_of, comparisons
from fecbench.results.analysis.rules import Explanation, NothingToExplain, explain
from fecbench.results.analysis.selection import chosen
from fecbench.results.figures import NothingToDraw
from fecbench.results.figures.sheet import Given
from fecbench.results.metrics import choose, of_workloads
from fecbench.results.store.records import CampaignInfo

Drawn = Figure | Axes | Sequence[Axes]
"""A figure of ours, or the axes that were given."""


class Plots:
    """The figures of one campaign. A figure that lacks what it needs raises NothingToDraw; an unknown label
    raises BadInput."""

    def __init__(self, info: CampaignInfo, trials: Callable[..., pd.DataFrame]) -> None:
        """`trials` reads the frame of its trials, with these metrics alone where some are named."""
        self._info = info
        self._trials = trials

    def ratio(
        self,
        *,
        metric: str = "",
        arms: Sequence[str] = (),
        workloads: Sequence[str] = (),
        ax: Given = None,
    ) -> Drawn:
        """The distribution over points of the ratio to the baseline; in one `ax`, all curves together."""
        trials, info = self._read(metric, arms, workloads)
        return _result(figures.ratio_ecdf(trials, info, ax=ax), ax)

    def bars(
        self,
        *,
        metric: str = "",
        arms: Sequence[str] = (),
        workloads: Sequence[str] = (),
        ax: Given = None,
    ) -> Drawn:
        """The median ratio of each arm and workload, with its interval over points."""
        ratios, info = self._ratios(metric, arms, workloads)
        return _result(figures.bars(ratios, info, ax=ax), ax)

    def values(
        self,
        *,
        metric: str = "",
        arms: Sequence[str] = (),
        workloads: Sequence[str] = (),
        ax: Given = None,
    ) -> Drawn:
        """The metric itself by workload and arm, as boxes."""
        trials, info = self._read(metric, arms, workloads)
        return _result(figures.boxes(trials, info, ax=ax), ax)

    def over_factor(
        self, *factors: str, workload: str = "", metric: str = "", arms: Sequence[str] = (), ax: Given = None
    ) -> Drawn:
        """The ratio at every point over some factors, or over all; a panel a factor."""
        workload = self._workload(workload)
        ratios, info = self._ratios(metric, arms, [workload])
        return _result(figures.over_factors(ratios, info, workload, factors=factors, ax=ax), ax)

    def cells(
        self,
        across: str = "",
        up: str = "",
        *,
        arm: str = "",
        metric: str = "",
        workloads: Sequence[str] = (),
        ax: Given = None,
    ) -> Drawn:
        """The median ratio in cells of two factors, by default the first two; a panel a workload."""
        arm = self._arm(arm)
        ratios, info = self._ratios(metric, [arm], workloads)
        two = (across, up) if across and up else None
        return _result(figures.heat_map(ratios, info, arm, two, ax=ax), ax)

    def map(
        self, *, arm: str = "", metric: str = "", workloads: Sequence[str] = (), ax: Given = None
    ) -> Drawn:
        """The ratio over the two strongest factors, as a random forest predicts it; a panel a workload."""
        arm = self._arm(arm)
        explanation, baseline = self._explained(arm, metric, workloads)
        return _result(figures.benefit_map(explanation, arm, baseline, ax=ax), ax)

    def effects(
        self,
        *factors: str,
        arm: str = "",
        metric: str = "",
        workloads: Sequence[str] = (),
        ax: Given = None,
    ) -> Drawn:
        """The effect of some factors on the ratio, or of all, the strongest first; a panel a factor."""
        arm = self._arm(arm)
        explanation, baseline = self._explained(arm, metric, workloads)
        return _result(figures.effects(explanation, arm, baseline, factors=factors, ax=ax), ax)

    def on_time(self, *, arms: Sequence[str] = (), workloads: Sequence[str] = (), ax: Given = None) -> Drawn:
        """The share of messages that are whole in time, over the playout delay."""
        trials, info = chosen(self._trials(), self._info, arms, workloads)
        return _result(figures.on_time(trials, info, ax=ax), ax)

    def targets(self, *, arms: Sequence[str] = (), workloads: Sequence[str] = (), ax: Given = None) -> Drawn:
        """The share of live video that is usable, over the latency target in round trips."""
        trials, info = chosen(self._trials(), self._info, arms, workloads)
        return _result(figures.usable_over_targets(trials, info, ax=ax), ax)

    def points(self) -> Figure:
        """The points of the design in each pair of its factors."""
        return figures.points(self._info)

    def pairs(self, *, arm: str = "", metric: str = "") -> Figure:
        """The points in each pair of factors, coloured by the median ratio over workloads."""
        arm = self._arm(arm)
        ratios, info = self._ratios(metric, [arm])
        return figures.pairs(ratios, info, arm)

    def _read(
        self, metric: str, arms: Sequence[str] = (), workloads: Sequence[str] = ()
    ) -> tuple[pd.DataFrame, CampaignInfo]:
        info = choose(self._info, metric)
        trials = self._trials(list(dict.fromkeys(of_workloads(info).values())))
        return chosen(trials, info, arms, workloads)

    def _ratios(
        self, metric: str, arms: Sequence[str] = (), workloads: Sequence[str] = ()
    ) -> tuple[pd.DataFrame, CampaignInfo]:
        trials, info = self._read(metric, arms, workloads)
        return figures.table(trials, info), info

    def _explained(self, arm: str, metric: str, workloads: Sequence[str]) -> tuple[Explanation, str]:
        trials, info = self._read(metric, [arm], workloads)
        pairing = comparisons(trials, info)[arm]
        try:
            return explain(pairing, info), pairing.baseline_label
        except NothingToExplain as nothing:
            raise NothingToDraw(f"{nothing}.") from None

    def _arm(self, arm: str) -> str:
        return _one_of(arm, list(baselines_of(self._info)), "arm", self._info)

    def _workload(self, workload: str) -> str:
        labels = [workload_table["label"] for workload_table in self._info.workloads]
        return _one_of(workload, labels, "workload", self._info)


def _one_of(name: str, existing: list[str], kind: str, info: CampaignInfo) -> str:
    """The name, or the only one where none is given."""
    if not name and len(existing) == 1:
        return existing[0]
    if name not in existing:
        hint = (
            nearest(name, existing) if name else f"choose one with {kind}=: {', '.join(map(repr, existing))}"
        )
        raise BadInput(f"campaign {info.name!r}: {kind} {name!r}: {hint}")
    return name


def _result(figure: Figure, ax: Given) -> Drawn:
    return figure if ax is None else ax
