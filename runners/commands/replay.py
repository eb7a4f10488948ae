"""`fecbench replay`: the same trial again, same seeds, with packet captures, qlog and TLS secrets."""

import dataclasses
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

import designs
from results.store.database import Database
from results.store.records import CampaignInfo, StoredTrial, VerdictLog
from runners.campaign import provenance
from runners.campaign.experiment import Experiment
from runners.campaign.record import record_of
from runners.commands.show import one_campaign, trial_document
from runners.engines.engine import Finished
from runners.engines.namespaces import NamespaceEngine
from runners.implementations.finding import Implementations, search_path
from runners.refusal import Refusal
from runners.trial import isolation
from runners.trial.judge import judge


def replay(
    trial: Annotated[int, typer.Argument(help="The id of the trial: fecbench show --trials tells it.")],
    db: Annotated[str, typer.Option(help="The results database: a file, or a PostgreSQL URL.")],
    output: Annotated[Path, typer.Option(help="A new folder for captures, qlog, secrets and logs.")],
    campaign: Annotated[str, typer.Option(help="The campaign, when the database holds several.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print both runs as JSON.")] = False,
) -> int:
    """Run a trial again as it was and record everything; 0 when state and losses are the same.

    The database is not changed.
    """
    isolation.require("fecbench replay")
    if output.exists():
        raise Refusal(f"--output {output}: exists: give the name of a new folder")
    with Database.open(db) as database:
        info = one_campaign(database, campaign)
        before = _trial_of(database, info, trial)
    again = _run(info, before, output)
    judgement = judge(again.task, again.outcome)
    after = dataclasses.replace(before, attempt=before.attempt + 1, record=record_of(again, judgement))
    same = _same_losses(before, after) and before.record.state == after.record.state
    recorded, replayed = trial_document(info, before), trial_document(info, after)
    if as_json:
        print(json.dumps({"same": same, "recorded": recorded, "replayed": replayed}, indent=1))
    else:
        _print_comparison(recorded, replayed)
        print(f"{'the same losses' if same else 'NOT the same'}; artefacts in {output}")
    return 0 if same else 1


def _trial_of(database: Database, campaign: CampaignInfo, number: int) -> StoredTrial:
    for stored in database.trials(campaign.id):
        if stored.id == number:
            return stored
    raise Refusal(f"{database.address}: campaign {campaign.name!r} has no trial {number}; see show --trials")


def _run(campaign: CampaignInfo, stored: StoredTrial, output: Path) -> Finished:
    with tempfile.TemporaryDirectory() as folder:
        # The design as it was stored, not as it may be now.
        path = Path(folder) / "design.toml"
        path.write_text(campaign.design_text)
        pages = campaign.provenance.get("pages", {})  # older campaigns have none
        experiment = Experiment(designs.load(path), campaign.points, Implementations(search_path()), pages)
    experiment.check_built()
    for program, digest in provenance.binaries(experiment.implementations.values()).items():
        if campaign.provenance["binaries"].get(program) != digest:
            print(f"note: {program} is not the one that the campaign ran", file=sys.stderr)
    key = stored.record.key
    task = experiment.task(key, campaign.provenance["link"], capture=True)
    with NamespaceEngine(1, experiment.commands) as engine:
        (finished,) = engine.run([(key, task)])
        if finished.folder is not None:
            shutil.move(finished.folder, output)
        return finished


def _same_losses(before: StoredTrial, after: StoredTrial) -> bool:
    """Whether every packet that both runs sent met the same verdict."""
    recorded = {(log.link, log.direction): log for log in before.record.verdicts}
    return bool(after.record.verdicts) and all(
        _same_prefix(log, recorded[log.link, log.direction])
        for log in after.record.verdicts
        if (log.link, log.direction) in recorded
    )


def _same_prefix(one: VerdictLog, other: VerdictLog) -> bool:
    bits = min(one.packets, other.packets, 8 * len(one.bitmap), 8 * len(other.bitmap))
    mask = (1 << bits) - 1
    return (int.from_bytes(one.bitmap, "little") ^ int.from_bytes(other.bitmap, "little")) & mask == 0


def _print_comparison(recorded: dict[str, Any], replayed: dict[str, Any]) -> None:
    print(f"{'':32} {'recorded':>14} {'replayed':>14}")
    print(f"{'state':32} {recorded['state']:>14} {replayed['state']:>14}")
    for name, log in recorded["verdicts"].items():
        for what in ("packets", "dropped"):
            numbers = [each["verdicts"].get(name, log)[what] for each in (recorded, replayed)]
            counts = [len(number) if isinstance(number, list) else number for number in numbers]
            print(f"{f'{name} {what}':32} {counts[0]:>14} {counts[1]:>14}")
    for endpoint, metrics in recorded["metrics"].items():
        for name, value in metrics.items():
            now = replayed["metrics"].get(endpoint, {}).get(name)
            print(f"{f'{endpoint} {name}':32} {value:>14.6g} {'-' if now is None else f'{now:.6g}':>14}")
    if replayed["reason"]:
        print(replayed["reason"])
