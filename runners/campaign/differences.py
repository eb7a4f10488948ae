"""Differences between what a campaign was run with and what is here now, in words.

A campaign has trials of one kind: every later start must run the same points, tasks, programs and rules.
Kernel, machine, libraries and revision may differ; each start records its own.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from fecbench.results.store.database import Database
from fecbench.results.store.digest import TaskDocument
from fecbench.results.store.records import CampaignInfo
from fecbench.runners.campaign import links
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.refusal import Refusal
from fecbench.runners.workloads import KINDS

SHOWN = 3
"""A refusal names so many differences, and counts the others."""
_LONGEST = 60
_HASH = re.compile("[0-9a-f]{64}")
_OF_HASH = 12
_UNKNOWN = "not known"
_ABSENT = "absent"


@dataclass(frozen=True)
class Difference:
    """A thing that is not as it was."""

    what: str
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.what} was {self.was}, is {self.now}"


def check_same(
    database: Database, campaign: CampaignInfo, experiment: Experiment, collected: Mapping[str, Any]
) -> None:
    """Raises Refusal, which names the first differences, when the campaign cannot be gone on with.

    `collected` is the provenance of now.
    """
    differing = [
        (kind, difference)
        for kind, differences in _differences(campaign, experiment, collected)
        for difference in differences
    ]
    if not differing:  # if anything else differs, tasks do because of that
        differing = [("other tasks", difference) for difference in of_tasks(database, campaign, experiment)]
    if not differing:
        return
    kinds = " and ".join(dict.fromkeys(kind for kind, _ in differing))
    listing = "; ".join(str(difference) for _, difference in differing[:SHOWN])
    more = f"; and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
    raise Refusal(
        f"campaign {campaign.name!r} in {database.address} was run with {kinds}: {listing}{more}: give a new"
        " campaign a name with --campaign, or go back to what it was run with"
    )


def _differences(
    campaign: CampaignInfo, experiment: Experiment, collected: Mapping[str, Any]
) -> Iterator[tuple[str, Iterator[Difference]]]:
    """Yield the differences, with the kind of each."""
    was = campaign.provenance
    if campaign.design_text != experiment.design.text:
        # The consequences of another design are not listed.
        yield "another design", iter([of_texts("line", campaign.design_text, experiment.design.text)])
        return
    yield "other points", compare("point", list(campaign.points), list(experiment.points))
    engines = was.get("engine", "local"), collected["engine"]
    if engines[0] != engines[1]:
        # Its links and its programs follow from that.
        yield "another engine", compare("engine", *engines)
        return
    yield "another link", compare("link", was["link"], collected["link"])
    for kind in (*KINDS, links.KIND):
        yield f"other {kind}", compare(kind.removesuffix("s"), _hashes(was, kind), _hashes(collected, kind))
    yield from of_programs(was, collected)


def of_programs(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, Iterator[Difference]]]:
    """Yield the differences of the harness, and of binaries and declarations of today's implementations."""
    if "harness" in was:
        yield "another harness", compare("harness", was["harness"], now["harness"])
    else:
        # An earlier fecbench did not keep it: what is not known is not the same.
        unknown = Difference("harness", _UNKNOWN, f"version {now['harness']['version']}")
        yield "another harness", iter([unknown])
    for kind, what, before, after in (
        ("other binaries", "binary", was["binaries"], now["binaries"]),
        ("another impl.toml", "impl.toml of", _deciding(was), _deciding(now)),
    ):
        yield kind, compare(what, {name: before.get(name, _Absent) for name in after}, after)


def of_tasks(database: Database, campaign: CampaignInfo, experiment: Experiment) -> Iterator[Difference]:
    """Yield the differences between the recorded tasks of trials and those of now."""
    for stored in database.tasks(campaign.id):
        now = experiment.task(stored.key, campaign.provenance["link"]).document()
        if TaskDocument.of(now).digest != stored.digest:
            what = f"task of {stored.key.variant}, {stored.key.workload}, point {stored.key.point}:"
            yield from compare(what, database.task(stored.id), now)


def of_texts(what: str, was: str, now: str) -> Difference:
    """The first line in which two different texts differ."""
    lines = enumerate(zip_longest(was.splitlines(), now.splitlines(), fillvalue=_ABSENT), 1)
    for number, (before, after) in lines:
        if before != after:
            return Difference(f"{what} {number}", _shown(before), _shown(after))
    return Difference(f"{what} {len(was.splitlines())}", "with another end", "with this one")


def compare(what: str, was: Any, now: Any) -> Iterator[Difference]:
    """Yield where two documents differ, by the dotted names of their entries."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for name in dict.fromkeys([*was, *now]):
            yield from compare(_below(what, name), was.get(name, _Absent), now.get(name, _Absent))
    elif _is_list(was) and _is_list(now):
        for index, (before, after) in enumerate(zip_longest(was, now, fillvalue=_Absent)):
            yield from compare(_below(what, index), before, after)
    elif was != now:
        yield Difference(what, _shown(was), _shown(now))


class _Absent:
    """Marker for an absent value."""


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _below(what: str, name: object) -> str:
    """The name of a part: the first is a word of its own, as in `point 3.owd_ms`."""
    return f"{what}.{name}" if " " in what and not what.endswith((" of", ":")) else f"{what} {name}"


def _shown(value: object) -> str:
    if value is _Absent:
        return _ABSENT
    if value is None:
        return _UNKNOWN
    if isinstance(value, str) and _HASH.fullmatch(value):
        return value[:_OF_HASH]
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _hashes(provenance: Mapping[str, Any], kind: str) -> dict[str, str]:
    """Return the hash of each document of a kind."""
    return {name: file["sha256"] for name, file in provenance.get(kind, {}).items()}


def _deciding(provenance: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the parts of each implementation's impl.toml that decide how a trial goes."""
    implementations = provenance.get("implementations", {})
    commands = ("simulator",) if provenance.get("engine") == "virtual" else ("server", "client")
    return {name: _of_declaration(entry["declaration"], commands) for name, entry in implementations.items()}


def _of_declaration(text: str, commands: Iterable[str]) -> dict[str, Any]:
    written = tomllib.loads(text)
    options = {name: option.get("default") for name, option in written.pop("options", {}).items()}
    others = (
        "files",
        "series",
        "local_addresses",
        "content_seed_hex",
        "multipath",
        "transport",
        "certificates",
        "fec",
    )
    declared = {name: written.get(name) for name in (*commands, *others)}
    return {**{f"options.{name}.default": value for name, value in options.items()}, **declared}
