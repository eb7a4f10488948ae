"""Repetition of a campaign, in the words of the command line: no other file of `results` knows it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fecbench.results.gate.overall import NEW, OLD, is_of_two_builds
from fecbench.results.store.records import CampaignInfo

NOT_CALIBRATED = "not measured, on request (--no-calibrate)"
ALL_FIGURES = "fecbench figure"
ALL_TRIALS = "fecbench show --trials"
ALL_POINTS = "fecbench export --table points"


def commands(
    campaign: CampaignInfo,
    filters: Sequence[str],
    crosscheck_share: float = 0,
    crosscheck_arms: Sequence[str] = (),
) -> list[str]:
    """Return the commands that repeat a campaign, in a shell, in the folder of fecbench;
    `crosscheck_share` is the share of it that was emulated beside it, of these variants or of all."""
    provenance = campaign.provenance
    design, database = f"{campaign.name}.toml", f"{campaign.name}.sqlite"
    run = ["fecbench", "run", design, "--db", database]
    if campaign.design_name != campaign.name:
        run += ["--campaign", campaign.name]
    if campaign.engine == "virtual":
        run += ["--engine", "virtual"]
    elif campaign.engine == "field":
        path = provenance.get("field", {})
        run += ["--engine", "field", "--server", str(path.get("server")), "--path", str(path.get("path"))]
        run += ["--certificates", "DIR"]
    elif "link" in provenance:
        run += ["--link", str(provenance["link"])]
    if "jobs" in provenance and campaign.engine != "field":
        run += ["--jobs", str(provenance["jobs"])]
    for condition in filters:
        run += ["--filter", condition]
    report = ["fecbench", "report", "--db", database, "--output", campaign.name]
    crosscheck = ["fecbench", "crosscheck", design, "--share", f"{crosscheck_share:g}", "--db", database]
    for arm in crosscheck_arms:
        crosscheck += ["--arms", arm]
    if campaign.design_name != campaign.name:
        crosscheck += ["--campaign", campaign.name]
    return [shlex.join(command) for command in (run, *([crosscheck] if crosscheck_share else []), report)]


def replay(campaign: CampaignInfo, database: str) -> str:
    """The command that runs a trial of a campaign again, with TRIAL in the place of its number."""
    command = ["fecbench", "replay", "TRIAL", *_in(campaign, database)]
    return shlex.join([*command, "--output", "trial-TRIAL"])


def diff(campaign: CampaignInfo, database: str) -> str:
    """The command that shows where two trials of a campaign part, with FIRST and SECOND for their numbers."""
    return shlex.join(["fecbench", "diff", "FIRST", "SECOND", *_in(campaign, database), *_builds(campaign)])


def _builds(campaign: CampaignInfo) -> list[str]:
    """The options by which a command finds two builds, with OLD and NEW for their folders; none else."""
    if not is_of_two_builds(campaign):
        return []
    names = {variant["label"]: variant["implementation"] for variant in campaign.variants}
    return [f"--implementations={names[arm]}={arm.upper()}" for arm in (OLD, NEW)]


def _in(campaign: CampaignInfo, database: str) -> list[str]:
    where = database if "://" in database else Path(database).name
    return ["--db", where, "--campaign", campaign.name]


def filters_of(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str] | None:
    """The filters that choose the trials that were run; None when no filters do.

    They are derived: a campaign may have been resumed with others, or not have come to its end.
    """
    if len(frame) == campaign.planned_trials:
        return []
    planned: dict[str, list[Any]] = {
        "variant": [variant["label"] for variant in campaign.variants],
        "workload": [workload["label"] for workload in campaign.workloads],
        "point": list(range(len(campaign.points))),
        "repetition": list(range(campaign.repetitions)),
    }
    ran = {field: set(frame[field]) for field in planned}
    if len(frame) != math.prod(map(len, ran.values())):
        return None
    return [
        f"{field}={value}"
        for field, values in planned.items()
        for value in values
        if ran[field] and value in ran[field] and len(ran[field]) < len(values)
    ]


def doubts(frame: pd.DataFrame, campaign: CampaignInfo, filters: Sequence[str] | None) -> list[str]:
    """Return reasons why the commands may not repeat exactly what was run, in sentences."""
    revision = campaign.provenance.get("revision", {})
    run, planned = len(frame), campaign.planned_trials
    sentences = []
    if not revision.get("commit"):
        sentences.append("Which revision of fecbench it was run with is not known.")
    elif revision.get("changed") is None:
        sentences.append("Whether fecbench had changes that were not committed is not known.")
    elif revision["changed"]:
        sentences.append(
            "It was run with changes that were not committed: the revision that provenance names is not"
            " exactly what ran."
        )
    if run < planned:
        remark = "these are what the command runs" if filters else "the command runs all"
        sentences.append(f"{run} of {planned} planned trials were run; {remark}.")
    return sentences
