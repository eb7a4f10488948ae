"""`fecbench replay`: the same trial again, same seeds, with packet captures, qlog and TLS secrets."""

from pathlib import Path
from typing import Annotated, Any

import typer

import designs
from results.store.database import CampaignInfo, Database, StoredTrial, VerdictLog
from runners.campaign import provenance, schedule
from runners.campaign.campaign import implementations_of, record_of
from runners.campaign.schedule import Setting
from runners.commands import arguments
from runners.commands.choice import one_campaign, open_database
from runners.commands.document import print_document, trial_document
from runners.commands.tables import print_table, table_of
from runners.commands.terminal import note, say
from runners.engines import scratch
from runners.engines.crew import Crew, Finished
from runners.refusal import Refusal
from runners.trial import certificates, isolation
from runners.trial import judge as verification
from runners.trial.trial import SERVER_NAME


def replay(
    trial: Annotated[int, typer.Argument(help="The id of the trial: fecbench show --trials tells it.")],
    output: arguments.OutputFolder,
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    as_json: arguments.Json = False,
) -> int:
    """Run a trial again as it was and record everything; 0 when state and losses are the same.

    The database is not changed.
    """
    isolation.require("fecbench replay")
    if output.exists():
        raise Refusal(f"--output {output}: exists: give the name of a new folder")
    with open_database(db) as database:
        info = one_campaign(database, campaign)
        before = _trial_of(database, info, trial)
    again = _run(info, before, output)
    judgement = verification.judge(again.task, again.outcome)
    after = StoredTrial(before.id, before.attempt + 1, record_of(again, judgement))
    same = _same_losses(before, after) and before.record.state == after.record.state
    recorded, replayed = trial_document(info, before), trial_document(info, after)
    if as_json:
        print_document({"same": same, "recorded": recorded, "replayed": replayed})
    else:
        _print_comparison(recorded, replayed)
        say(f"{'the same losses' if same else 'NOT the same'}; artefacts in {output}")
    return 0 if same else 1


def _trial_of(database: Database, campaign: CampaignInfo, number: int) -> StoredTrial:
    for stored in database.trials(campaign.id):
        if stored.id == number:
            return stored
    raise Refusal(f"{database.address}: campaign {campaign.name!r} has no trial {number}; see show --trials")


def _run(campaign: CampaignInfo, stored: StoredTrial, output: Path) -> Finished:
    with scratch.folder() as folder:
        # The design as it was stored, not as it may be now.
        design = designs.parse(campaign.design_text, f"campaign {campaign.name}")
        used = implementations_of(design)
        for program, digest in provenance.binaries(used).items():
            if campaign.provenance["binaries"].get(program) != digest:
                note(f"{program} is not the one that the campaign ran")
        certificates.write(folder, SERVER_NAME)
        pages = campaign.provenance.get("pages", {})  # older campaigns have none
        setting = Setting(design, campaign.points, campaign.provenance["link"], folder, pages)
        task = schedule.task_of(setting, stored.record.key, output.absolute(), capture=True)
        with Crew(jobs=1) as crew:
            crew.add(stored.record.key, task)
            return next(crew.results())


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
    rows = [("state", recorded["state"], replayed["state"])]
    for name, log in recorded["verdicts"].items():
        again = replayed["verdicts"].get(name, log)
        rows.append((f"{name} packets", log["packets"], again["packets"]))
        rows.append((f"{name} dropped", len(log["dropped"]), len(again["dropped"])))
    for endpoint, metrics in recorded["metrics"].items():
        for name, value in metrics.items():
            again = replayed["metrics"].get(endpoint, {}).get(name)
            rows.append((f"{endpoint} {name}", f"{value:.6g}", "-" if again is None else f"{again:.6g}"))
    numbers = ("recorded", "replayed")
    print_table(table_of(("", *numbers), rows, right=numbers))
    if replayed["reason"]:
        say(replayed["reason"])
