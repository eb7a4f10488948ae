"""Record samples/which-plan.parquet: the same question, asked by four plans at the same price.

    .venv/bin/python notebooks/plans.py out/which-plan.sqlite

Runs the design `which-plan` in virtual time with each plan, and seed by seed, as campaigns of one database.
An interrupted recording goes on where it was.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from fecbench import designs, results

SAMPLE = Path(__file__).parent / "samples" / "which-plan.parquet"
SEEDS = range(1, 11)
PLANS: dict[str, dict[str, Any]] = {
    "wsp": {"method": "wsp", "points": 32},
    "lhs": {"method": "lhs", "points": 32, "criterion": "maximin"},
    "sobol": {"method": "sobol", "points": 32},
}
# Nothing of a factorial is random but the losses.
ONCE: dict[str, dict[str, Any]] = {
    "factorial": {"method": "factorial"},
    "reference": {"method": "sobol", "points": 512},
}


def main(database: str) -> None:
    folder = Path(database).resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    frames = []
    for name, plan, seed in [
        *((name, plan, seed) for name, plan in PLANS.items() for seed in SEEDS),
        *((name, plan, 1000) for name, plan in ONCE.items()),
    ]:
        campaign = f"{name}-{seed}"
        design = designs.rewritten(designs.load(designs.catalogue()["which-plan"]), plan=plan, seed=seed)
        file = folder / f"{campaign}.toml"
        file.write_text(design.text)
        _run(str(file), database, campaign)
        file.unlink()
        frames.append(_ratios(database, campaign).assign(plan=name, seed=seed))
    pd.concat(frames, ignore_index=True).to_parquet(SAMPLE)


def _run(design: str, database: str, campaign: str) -> None:
    command = [str(Path(sys.executable).with_name("fecbench")), "run", design, "--engine", "virtual"]
    subprocess.run([*command, "--db", database, "--campaign", campaign], check=True, timeout=3600)


def _ratios(database: str, campaign: str) -> pd.DataFrame:
    with results.open(database) as opened:
        table = opened[campaign].table("ratios")
    factors = ["bandwidth_mbps", "owd_ms", "loss.p", "loss.r", "queue_bdp"]
    return table[["point", *factors, "ratio", "low", "high"]]


if __name__ == "__main__":
    main(*sys.argv[1:])
