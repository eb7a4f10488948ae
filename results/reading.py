"""A results database as a notebook reads it.

    from fecbench import results

    db = results.open("campaigns.sqlite")
    db.campaigns()                              # what is in it
    demo = db["demo"]
    demo.trials(["client.dct_s"])               # a row a trial
    demo.paired("Cubic, no FEC", "Cubic, safe").ratios

Units stand in the names of columns: `_s`, `_ms`, `_bytes`, `_mbps`; probabilities are 0 to 1. Nothing is
written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pandas as pd

from fecbench.complaint import wrong_value
from fecbench.hints import nearest
from fecbench.results.analysis import attempts, cards, frames, intervals, paper_table, targets, tidy
from fecbench.results.analysis.averages import SENT
from fecbench.results.analysis.pairing import Pairing, comparisons, of_arms
from fecbench.results.metrics import RATIOS, choose, of_workloads
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.export import Table
from fecbench.results.store.records import CampaignInfo

if TYPE_CHECKING:
    from fecbench.results.plotting import Plots


@dataclass(frozen=True, repr=False)
class Campaign:
    """One campaign of an open database; `info` is the design as it was run."""

    database: Database
    info: CampaignInfo

    @property
    def columns(self) -> pd.DataFrame:
        """A dictionary of the columns of its frames, a row each: `unit`, `meaning`, `better` ("less", "more"
        or ""), `plain`, the name that `query` takes, and the `tables` that have it."""
        points = [str(name) for name in self.points()]
        of_trials = [*map(str, self.trials([], harness=True)), *self.database.metric_names(self.info.id)]
        of_ratios = [column.name for column in RATIOS]
        parts = [
            tidy.dictionary(points, "points, trials, ratios"),
            tidy.dictionary(of_trials, "trials"),
            tidy.dictionary(of_ratios, "ratios"),
        ]
        return pd.concat(parts, ignore_index=True).drop_duplicates("column").set_index("column")

    @property
    def plot(self) -> Plots:
        """The campaign's figures, each also into axes of the reader's: `campaign.plot.ratio(ax=axes)`."""
        from fecbench.results.plotting import Plots

        return Plots(self.info, self.trials)

    def points(self, *, plain: bool = False) -> pd.DataFrame:
        """Return a row for each point: `point`, and a column for each factor (`loss.p`, …), with `rtt_ms`
        where delays are known. With `plain`, names are such that `query` takes them (`loss_p`). Units stand
        in `attrs["units"]`, as in all frames."""
        return tidy.finished(tidy.with_round_trips(frames.points(self.info), self.info), plain=plain)

    def trials(
        self,
        metrics: Collection[str] | None = None,
        harness: bool | None = None,
        *,
        first_attempts: bool = False,
        plain: bool = False,
    ) -> pd.DataFrame:
        """Return a row for each trial, as `frames.trials`.

        It has its key, state and duration, its factors (with `rtt_ms`) and the parameters of its workload,
        and the metrics named ("client.dct_s"), NaN where a trial has none; all for None. With `harness`, also
        what the harness itself measured: `started_at`, `internet.down.lost`, `seed.content`, and so on
        (`results.analysis.harness`); None adds it when all metrics are read. `first_attempts` leaves out the
        groups in which any trial was run again, or is invalid (`results.analysis.attempts`). `plain` as in
        `points`.

        Raises DatabaseError for a metric that no trial of the campaign measured, if any measured one.
        """
        if isinstance(metrics, str):
            raise TypeError(wrong_value("metrics", metrics, f"a list of names: [{metrics!r}]"))
        frame = frames.trials(self.database, self.info, metrics, harness)
        absent = [name for name in metrics or () if name not in frame]
        # If all trials failed, the compared metric is still a right name. If nothing was measured, no name is
        # known to be wrong.
        has_metrics = self.database.metric_names(self.info.id) if absent else []
        for name in absent if has_metrics else ():
            names = sorted(
                {*frames.metric_names(self.database, self.info), *of_workloads(self.info).values()}
            )
            _require_known(name, names, f"campaign {self.info.name!r}: metric")
        first = attempts.first_attempts(frame) if first_attempts else frame
        whole = first.assign(**dict.fromkeys(absent, math.nan))
        return tidy.finished(tidy.with_round_trips(whole, self.info), plain=plain)

    def attempts(self) -> pd.DataFrame:
        """Return how often the trials of each variant were run, and to which state, as
        `attempts.by_variant`."""
        return attempts.by_variant(self.database, self.info)

    def metrics(self, metrics: Collection[str] | None = None) -> pd.DataFrame:
        """One row a (trial, metric) that was measured: `variant`, `workload`, `point`, `repetition`, `state`,
        `metric` ("client.dct_s") and `value`."""
        return frames.metrics(self.trials(metrics, harness=False))

    def series(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """A series that trials left ("cwnd"), as `frames.series`: the tables of all trials as one, with the
        `id` and key of the trial and the `endpoint`; only the columns named are read, or all for None.

        Raises DatabaseError for a series that no trial of the campaign left, and for a column that it lacks.
        """
        if isinstance(columns, str):
            raise TypeError(wrong_value("columns", columns, f"a list of names: [{columns!r}]"))
        columns_of_series = self.database.series_columns(self.info.id)
        _require_known(name, list(columns_of_series), f"campaign {self.info.name!r}: series")
        for column in columns or ():
            _require_known(
                column, columns_of_series[name], f"campaign {self.info.name!r}: series {name!r}: column"
            )
        return frames.series(self.database, self.info, name, columns)

    def table(self, kind: Table, series: str = "") -> pd.DataFrame:
        """Return a table that `results.store.export` writes; `series` names the one of that kind."""
        if kind == "series":
            return self.series(series)
        tables: dict[str, Callable[[], pd.DataFrame]] = {
            "trials": self.trials,
            "points": self.points,
            "ratios": self.ratios,
            "summary": self.summary,
            "targets": self.targets,
            "metrics": self.metrics,
        }
        return tables[kind]()

    def ratios(self, metric: str = "", *, plain: bool = False) -> pd.DataFrame:
        """One row a (variant, workload, point) that has a ratio to the variant's baseline, by a metric, by
        default that of each workload: `variant`, `workload`, `size_bytes`, `point`, the factors,
        `compared_with` (the baseline's label), `metric`, `pairs`, `baseline_value` and `variant_value` (in
        the metric's unit), `ratio`, its interval `low` to `high`, `margin`, `verdict` and `discovery`
        (`intervals.ratio_intervals`)."""
        info = choose(self.info, metric)
        trials = self.trials(list(dict.fromkeys(of_workloads(info).values())))
        key = ["variant", "workload", "point"]
        columns = [*key, "compared_with", "metric", "pairs", "baseline_value", "variant_value"]
        columns += ["ratio", "low", "high", "margin", "verdict", "discovery"]
        parts = [
            intervals.of_campaign(pairing, info)
            .rename(columns={"baseline": "baseline_value", "variant": "variant_value"})
            .assign(variant=variant, compared_with=pairing.baseline_label)
            for variant, pairing in comparisons(trials, info).items()
        ]
        ratios = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
        points = self.points()
        whole = ratios[columns].merge(points, on="point", how="left", validate="many_to_one")
        factors = [name for name in points if name != "point"]
        in_order = whole[[*key, *factors, *columns[len(key) :]]]
        return tidy.finished(tidy.with_sizes(in_order, self.info), plain=plain)

    def targets(self) -> pd.DataFrame:
        """Return one row a (network, target, variant with a baseline) of live broadcasts: the share of video
        frames usable with both, the difference, its interval and verdict (`analysis.targets.verdicts`)."""
        return targets.verdicts(self.trials(), self.info)

    def summary(self, metric: str = "") -> pd.DataFrame:
        """Return a row for each variant with a baseline and workload.

        It says at how many points the variant `helps`, `harms`, is `equivalent` or `undecided`, the
        `median_ratio` with its interval `low` to `high`, and more, as `paper_table.summary_table`; by a
        metric, by default that of each workload."""
        info = choose(self.info, metric)
        sent = [name for name in SENT if name in self.database.metric_names(info.id)]
        trials = self.trials(list(dict.fromkeys([*of_workloads(info).values(), *sent])))
        return paper_table.summary_table(trials, info)

    def paired(
        self, baseline: str, variant: str, metric: str = "", *, first_attempts: bool = False
    ) -> Pairing:
        """Two variants compared by a metric, by default that of each workload, as `pairing.paired`: `ratios`
        by point, `matched` by repetition, and `unpaired`: what was left out, and why; of all trials, or of
        those of `first_attempts`. Raises DatabaseError for a label that the campaign lacks."""
        labels = [variant_table["label"] for variant_table in self.info.variants]
        for label in (baseline, variant):
            _require_known(label, labels, f"campaign {self.info.name!r}: variant")
        info = choose(self.info, metric)
        names = list(dict.fromkeys(of_workloads(info).values()))
        return of_arms(self.trials(names, first_attempts=first_attempts), info, baseline, variant)

    def intervals(
        self, baseline: str, variant: str, metric: str = "", *, first_attempts: bool = False
    ) -> pd.DataFrame:
        """The ratios by point with their intervals and verdicts, as `intervals.of_campaign`."""
        pairing = self.paired(baseline, variant, metric, first_attempts=first_attempts)
        return intervals.of_campaign(pairing, choose(self.info, metric))

    def counts(self, baseline: str, variant: str, metric: str = "", *, margin: float) -> pd.DataFrame:
        """Return, by workload, in how many points the ratio is surely below 1 by more than `margin`,
        surely above or surely not, how many are open, the share in which it is above, of all networks that
        have a ratio, and its geometric mean: `intervals.counts`. Verdicts have a margin of their own, at
        least what the engine is vouched for; here the caller gives it."""
        return intervals.counts(self.intervals(baseline, variant, metric), margin)

    def __repr__(self) -> str:
        return cards.campaign_in_a_line(self.database, self.info)

    def _repr_html_(self) -> str:
        return cards.of_campaign(self.database, self.info)


class Results:
    """An open results database, for reading. Close it, or use it in a `with` block."""

    def __init__(self, path_or_url: str | PathLike[str]) -> None:
        self.database = Database.open(fspath(path_or_url))

    def __repr__(self) -> str:
        return cards.database_in_a_line(self.database)

    def _repr_html_(self) -> str:
        return cards.of_database(self.database, self.campaigns())

    def campaigns(self) -> pd.DataFrame:
        """One row a campaign, oldest first: `campaign`, `title`, `created_at` (UTC), `points`, `variants`,
        `workloads`, `repetitions`, `planned_trials`, `trials` that were run, `engine` (virtual or emulated),
        and `checks`: the campaign in virtual time of which this one is an emulated sample, null for others.
        """
        columns = ["campaign", "title", "created_at", "points", "variants", "workloads", "repetitions"]
        rows = [
            (
                *(info.name, info.title, info.created_at, len(info.points)),
                *(len(info.variants), len(info.workloads), info.repetitions),
                *(info.planned_trials, self.database.trial_count(info.id), info.engine, info.checked),
            )
            for info in self.database.campaigns()
        ]
        return pd.DataFrame(rows, columns=[*columns, "planned_trials", "trials", "engine", "checks"])

    def __iter__(self) -> Iterator[str]:
        """Return the names of the campaigns, oldest first."""
        return iter([info.name for info in self.database.campaigns()])

    def __getitem__(self, name: str) -> Campaign:
        """The campaign of that name. Raises DatabaseError when there is none."""
        names = list(self)
        if not names:
            raise DatabaseError(f"{self.database.address}: is empty: no campaign was run into it")
        _require_known(name, names, f"{self.database.address}: campaign")
        campaign = self.database.campaign(name)
        assert campaign is not None
        return Campaign(self.database, campaign)

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _require_known(name: str, existing: list[str], what: str) -> None:
    if name not in existing:
        raise DatabaseError(f"{what} {name!r}: there is none; {nearest(name, existing)}")
