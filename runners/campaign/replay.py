"""Runs a stored trial again, with the same seeds, and records packets, qlog, TLS secrets and series."""

import dataclasses
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import designs
from results.store.records import CampaignInfo, StoredTrial, VerdictLog
from runners.campaign import provenance
from runners.campaign.experiment import Experiment
from runners.campaign.record import record_of
from runners.engines.namespaces import NamespaceEngine
from runners.implementations.finding import Implementations
from runners.trial.judge import judge


@dataclass(frozen=True)
class Replay:
    """A trial as it was recorded, and as it went again."""

    recorded: StoredTrial
    replayed: StoredTrial
    differences: list[str]
    """What is not as it was when the trial was recorded, and may be why the two differ: a line each."""

    @property
    def same(self) -> bool:
        """Whether the state is the same, and every packet that both runs sent met the same verdict."""
        recorded, replayed = self.recorded.record, self.replayed.record
        return recorded.state == replayed.state and _same_losses(
            {(log.link, log.direction): log for log in recorded.verdicts},
            {(log.link, log.direction): log for log in replayed.verdicts},
        )


def replay(
    campaign: CampaignInfo, stored: StoredTrial, implementations: Implementations, folder: Path
) -> Replay:
    """Run the trial again, and leave its files in `folder`, which must not exist. Needs root.

    The design and the pages are those that were stored, not what their files hold now.
    """
    design = designs.parse(campaign.design_text, f"campaign {campaign.name}")
    pages = campaign.provenance.get("pages", {})  # older campaigns have none
    experiment = Experiment(design, campaign.points, implementations, pages)
    experiment.check_built()
    key, backend = stored.record.key, campaign.provenance["link"]
    with NamespaceEngine(1, experiment.commands, experiment.folders) as engine:
        (finished,) = engine.run([(key, experiment.task(key, backend, capture=True))])
        if finished.folder is not None:
            shutil.move(finished.folder, folder)
    record = record_of(finished, judge(finished.task, finished.outcome))
    return Replay(
        stored,
        dataclasses.replace(stored, attempt=stored.attempt + 1, record=record),
        _differences(campaign, stored, experiment),
    )


def _differences(campaign: CampaignInfo, stored: StoredTrial, experiment: Experiment) -> list[str]:
    ran = campaign.provenance["binaries"]
    now = provenance.binaries(experiment.implementations.values())
    differences = [
        f"{program} is not the one that the campaign ran"
        for program, digest in now.items()
        if ran.get(program) != digest
    ]
    task = experiment.task(stored.record.key, campaign.provenance["link"]).document()
    if stored.record.task not in ({}, task):  # {}: version 1 of the schema kept none
        differences.append("the trial's task is not the one that was recorded: defaults of options differ")
    return differences


def _same_losses(
    recorded: Mapping[tuple[str, str], VerdictLog], replayed: Mapping[tuple[str, str], VerdictLog]
) -> bool:
    common = recorded.keys() & replayed.keys()
    return bool(replayed) and all(_same_prefix(recorded[where], replayed[where]) for where in common)


def _same_prefix(one: VerdictLog, other: VerdictLog) -> bool:
    bits = min(one.packets, other.packets, 8 * len(one.bitmap), 8 * len(other.bitmap))
    mask = (1 << bits) - 1
    return (int.from_bytes(one.bitmap, "little") ^ int.from_bytes(other.bitmap, "little")) & mask == 0
