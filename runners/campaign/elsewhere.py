"""Trials of a comparison of two builds as JSON: all that another machine needs to run them again, but for the
builds themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fecbench.complaint import complaint
from fecbench.results.store.records import CampaignInfo, StoredTrial, TrialRecord
from fecbench.runners.campaign.two_builds import NEW, OLD
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.implementations.implementation import DECLARATION
from fecbench.runners.implementations.revisions import SHOWN, Build, build_of
from fecbench.runners.refusal import Refusal

KINDS = ("worst", "failing")
"""Lists of pairs in the answer of a comparison."""
_OF_CAMPAIGN = (
    *("id", "created_at", "name", "title", "design_text", "seed", "repetitions", "statistic", "provenance"),
    *("points", "variants", "workloads"),
)


@dataclass(frozen=True)
class Pair:
    """A pair of trials that a comparison named, and the builds that it was measured with."""

    campaign: CampaignInfo
    trials: tuple[StoredTrial, StoredTrial]
    """The trial of the old build, and that of the new one."""
    builds: Mapping[str, Mapping[str, Any]]
    """`builds_document`."""
    path: Path


def builds_document(old: Build, new: Build) -> dict[str, dict[str, Any]]:
    """Return how to recognise both builds, as JSON."""
    return {
        arm: {
            "name": build.implementation.declaration.name,
            "given": build.word,
            "commit": build.commit,
            "folder": str(build.implementation.folder),
        }
        for arm, build in ((OLD, old), (NEW, new))
    }


def document(campaign: CampaignInfo, trials: Iterable[StoredTrial]) -> dict[str, Any]:
    """Return a campaign and some of its trials as JSON."""
    return {
        "campaign": {name: getattr(campaign, name) for name in _OF_CAMPAIGN},
        "trials": {str(trial.id): _trial(trial.record) for trial in trials},
    }


def _trial(record: TrialRecord) -> dict[str, Any]:
    values = asdict(replace(record, series=[], stderr={}))
    for log in values["verdicts"]:
        log["bitmap"] = log["bitmap"].hex()
    return values


def pair_in(path: Path, kind: str, number: int) -> Pair:
    """Return a pair that a file of a comparison names, by its list and its number from 1. Raises Refusal."""
    answer = _read(path)
    if kind not in KINDS:
        raise Refusal(f"--from {path}: {kind} {number}: must be {' or '.join(KINDS)} and a number")
    try:
        pairs, builds, record_of = answer[kind], answer["builds"], answer["replays"]
        if not 1 <= number <= len(pairs):
            which = f"1 to {len(pairs)}" if pairs else "none, since there is no such pair"
            raise Refusal(f"--from {path}: {kind} {number}: must be {which}")
        numbers = [pairs[number - 1][name] for name in ("old_trial", "new_trial")]
        campaign = CampaignInfo(**{name: record_of["campaign"][name] for name in _OF_CAMPAIGN})
        old, new = (_stored(campaign, trial, record_of["trials"][str(trial)]) for trial in numbers)
        if not all(isinstance(builds[arm][name], str) for arm in (OLD, NEW) for name in ("name", "folder")):
            raise TypeError
    except (KeyError, TypeError, ValueError) as error:
        what = complaint(error) if isinstance(error, ValidationError) else str(error)
        raise Refusal(f"--from {path}: {_FORM}{f' ({what})' * bool(what)}") from None
    return Pair(campaign, (old, new), builds, path)


_FORM = "must be a compare.json of fecbench compare --output"


def _read(path: Path) -> Mapping[str, Any]:
    try:
        answer = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refusal(f"--from {path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise Refusal(f"--from {path}: is no JSON ({error}): {_FORM}") from None
    if not isinstance(answer, dict):
        raise Refusal(f"--from {path}: {_FORM}")
    return answer


def _stored(campaign: CampaignInfo, number: int, record_of: Mapping[str, Any]) -> StoredTrial:
    values = {
        **record_of,
        "verdicts": [{**log, "bitmap": bytes.fromhex(log["bitmap"])} for log in record_of["verdicts"]],
    }
    record = TypeAdapter(TrialRecord).validate_python(values)
    return StoredTrial(id=number, campaign_id=campaign.id, start_id=None, attempt=1, record=record)


def builds_for(pair: Pair, old: str, new: str) -> Implementations:
    """Return both builds by their names in the campaign: those that `old` and `new` name, or for an empty one
    the build that was compared, if it is here. Raises Refusal."""
    folders = {}
    for arm, word in ((OLD, old), (NEW, new)):
        was = pair.builds[arm]
        if not word and not (Path(was["folder"]) / DECLARATION).is_file():
            commit = was.get("commit")
            of = f", commit {commit[:SHOWN]}" if commit else ""
            form = f"FOLDER@{commit[:SHOWN]}" if commit else "FOLDER"
            raise Refusal(
                f"--from {pair.path}: the {arm} build of {was['name']}, {was['folder']}{of}, is not here:"
                f" give --{arm} {form}"
            )
        implementation = build_of(f"--{arm}", word or was["folder"]).implementation
        if implementation.declaration.name != was["name"]:
            raise Refusal(
                f"--{arm} {word}: is {implementation.declaration.name}, and must be a build of {was['name']}"
            )
        folders[f"{was['name']}.{arm}"] = implementation.folder
    return Implementations((), folders)
