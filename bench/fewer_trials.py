"""Methods that may save repetitions of a conclusion, tried on a campaign that has run:

    python -m bench.fewer_trials --db demo.sqlite demo

The interval of a network's mean difference is as wide as its variance over repetitions says. A method that
makes this variance f times as small needs f times fewer repetitions. Three are compared:

- *common losses*: both arms of a pair meet the same losses, as all campaigns have it, over arms that do not;
- *losses as covariates*: a regression takes out what the first lost packets of each direction explain (a
  control variate: the seed says which these are, for any number of repetitions). It is
  judged on repetitions that it was not fitted on;
- *allocation*: networks get repetitions by their spread (Neyman), for the mean over all of them, over the
  same number for each.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from fecbench import results
from fecbench.dropper.draws import unpack
from fecbench.results.analysis.pairing import comparisons
from fecbench.results.metrics import of_workloads
from fecbench.results.reading import Campaign
from fecbench.results.store.records import VerdictLog

Floats = NDArray[np.float64]
FIRST = (10, 40, 160)
"""Packets of each direction whose losses are counted: of the handshake, a short download, a longer one."""
LEAST_REPETITIONS = 20
"""Networks with fewer are left out: no regression fits them."""
ARMS = ("baseline", "variant")
_TRIAL = ["workload", "point", "repetition"]


def first_losses(campaign: Campaign) -> dict[tuple[str, int, int], Floats]:
    """Return how many of the first packets were lost, by (workload, point, repetition): for each direction of
    each link, of so many packets. The arm that sent the most packets tells."""
    longest: dict[tuple[str, int, int], dict[tuple[str, str], VerdictLog]] = {}
    for trial in campaign.database.trials(campaign.info.id, {"ok"}):
        key = trial.record.key
        logs = longest.setdefault((key.workload, key.point, key.repetition), {})
        for log in trial.record.verdicts:
            place = (log.link, log.direction)
            if place not in logs or log.packets > logs[place].packets:
                logs[place] = log
    return {
        key: np.concatenate([_counts(log) for _, log in sorted(logs.items())])
        for key, logs in longest.items()
    }


def _counts(log: VerdictLog) -> Floats:
    lost = unpack(log.bitmap, min(log.packets, 8 * len(log.bitmap), max(FIRST)))
    return np.array([lost[:packets].sum() for packets in FIRST], np.float64)


def left_by_regression(values: Floats, covariates: Floats) -> float:
    """Return the variance of `values` (n) that a linear regression on `covariates` (n, d) leaves: each value
    by the regression on all others."""
    design = np.column_stack([np.ones(len(values)), covariates - covariates.mean(axis=0)])
    hat = design @ np.linalg.pinv(design)
    leverage = np.minimum(np.diag(hat), 1 - 1e-9)
    return float(np.mean(((values - hat @ values) / (1 - leverage)) ** 2))


def factors(baseline: Floats, variant: Floats, covariates: Floats) -> tuple[float, float, float]:
    """Return the variance of the mean difference with independent losses, with common ones, and with the
    regression besides, of one network: all for one repetition."""
    difference = variant - baseline
    independent = float(np.var(baseline, ddof=1) + np.var(variant, ddof=1))
    common = left_by_regression(difference, np.empty((len(difference), 0)))
    return independent, common, left_by_regression(difference, covariates)


def of_campaign(campaign: Campaign) -> Iterator[tuple[str, str, int, float, float, float]]:
    """Yield workload, arm, number of networks, and the three factors: of the first two
    methods the median over the networks."""
    losses = first_losses(campaign)
    trials = campaign.trials(list(dict.fromkeys(of_workloads(campaign.info).values())))
    for arm, pairing in comparisons(trials, campaign.info).items():
        matched = pairing.matched
        finite = matched[np.isfinite(matched[["baseline", "variant"]]).all(axis=1)]
        for workload, of_workload in finite.groupby("workload"):
            variances = []
            for _, pairs in of_workload.groupby("point"):
                if len(pairs) < LEAST_REPETITIONS:
                    continue
                covariates = np.array(
                    [losses[key] for key in pairs[_TRIAL].itertuples(index=False, name=None)]
                )
                scale = pairs["baseline"].mean()
                baseline, variant = (pairs[name].to_numpy(np.float64) / scale for name in ARMS)
                variances.append(factors(baseline, variant, covariates))
            spread = np.array([of_network for of_network in variances if min(of_network) > 0])
            if not len(spread):
                continue
            independent, common, regressed = spread.T
            allocation = common.mean() / np.sqrt(common).mean() ** 2
            shared, explained = (
                float(np.median(ratio)) for ratio in (independent / common, common / regressed)
            )
            yield str(workload), arm, len(spread), shared, explained, float(allocation)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fewer_trials", description=__doc__)
    parser.add_argument("--db", type=Path, required=True)
    parser.add_argument("campaign")
    arguments = parser.parse_args()
    table = Table(title="times fewer repetitions for an interval as wide", title_justify="left")
    for heading in ("workload", "arm", "networks", "common losses", "losses as covariates", "allocation"):
        table.add_column(heading, justify="left" if heading in ("workload", "arm") else "right")
    with results.open(arguments.db) as opened:
        for workload, arm, networks, *times in of_campaign(opened[arguments.campaign]):
            table.add_row(workload, arm, str(networks), *(f"{factor:.2f}" for factor in times))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
