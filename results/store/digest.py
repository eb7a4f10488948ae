"""Digests of what a trial came to: equal when it came to the same, whenever and wherever it was run.

The digest of the wire is of what was asked of the network and of what happened on it. Whatever is computed of
that, by an endpoint or by the harness, is a metric, and metrics have a digest of their own: a metric that is
new moves no digest of the wire.

A trial in virtual time comes to the same each time; an emulated one has some other number each time.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from fecbench.results.store.records import TrialKey, TrialRecord

COUNTERS = (
    *("frames_in", "bytes_in", "frames_out", "bytes_out", "queue_dropped", "oversize_dropped", "in_flight"),
    *("max_queue_bytes", "max_queue_packets"),
)
"""Counts of links. How late they were is no part of what a trial came to."""
_NETWORK = ("topology", "backend", "timeout_s", "processor")
_LINK = ("settings", "losses")
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class TaskDocument(dict[str, Any]):
    """The document of a task. Nobody changes it: many trials share one, and what is computed of it is
    computed once."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> TaskDocument:
        """Return the document as one of these."""
        return document if isinstance(document, cls) else cls(document)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the document as canonical JSON: sorted keys, no spaces."""
        return _digest(self)

    @cached_property
    def network_request(self) -> str:
        """Canonical JSON of what it asks of the network."""
        return _canonical(_asked(self))


def of_trial(record: TrialRecord) -> str:
    """The digest of the wire: SHA-256, in hexadecimal, of what was asked of the network, state, verdicts,
    counters of links and times of packets as canonical JSON.

    Fields of the task that are 0, empty or null are left out, so that a field that older tasks lack moves no
    digest while it asks for nothing; and so are options of endpoints, which packets tell. Only trials in
    virtual time have times of packets.
    """
    links = {name: _counters(report) for name, report in record.links.items()}
    verdicts = {
        f"{log.link}/{log.direction}": [log.packets, log.dropped, log.bitmap.hex()] for log in record.verdicts
    }
    # The keys of one object, in their order.
    parts = (
        _canonical({"links": links, "state": record.state})[:-1],
        f'"task":{TaskDocument.of(record.task).network_request}',
        _canonical({"verdicts": verdicts, "virtual_s": record.checks.get("virtual_s")})[1:],
    )
    return _sha256(",".join(parts))


def of_metrics(record: TrialRecord) -> str:
    """The digest of all that was measured: SHA-256, in hexadecimal, of all metrics as canonical JSON."""
    return _digest(
        {
            endpoint: {name: float(value) for name, value in values.items()}
            for endpoint, values in record.metrics.items()
        }
    )


def as_far_as(record: TrialRecord, known: TrialRecord) -> TrialRecord:
    """The record without times of packets where another one, which an earlier fecbench kept, has none."""
    if _has_times(known) or not _has_times(record):
        return record
    links = copy.deepcopy(record.links)
    for counted in _directions(links):
        counted.pop("times", None)
    return dataclasses.replace(record, links=links)


def _has_times(record: TrialRecord) -> bool:
    return any("times" in counted for counted in _directions(record.links))


def _directions(links: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for report in links.values():
        yield from report.get("directions", {}).values()


def other_metrics(was: TrialRecord, now: TrialRecord) -> dict[str, tuple[float, float]]:
    """The metrics that both records have with another value: by their names, as they were and as they are."""
    return {
        f"{endpoint}.{name}": (value, now.metrics[endpoint][name])
        for endpoint, values in was.metrics.items()
        for name, value in values.items()
        if name in now.metrics.get(endpoint, {}) and now.metrics[endpoint][name] != value
    }


def of_trials(trials: Iterable[tuple[TrialKey, str]]) -> str:
    """SHA-256 of the keys of trials and their digests, in whatever order they come."""
    rows = sorted((key.variant, key.workload, key.point, key.repetition, digest) for key, digest in trials)
    return _digest(rows)


def _asked(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a task asks of the network, of whom and for what; nothing of the judge's bounds, of what
    endpoints record, and of what is measured."""
    network = {
        **{name: task.get(name) for name in _NETWORK},
        "links": {
            name: {part: link.get(part) for part in _LINK} for name, link in task.get("links", {}).items()
        },
    }
    pairs = [
        {
            **{role: pair[role]["implementation"] for role in ("client", "server")},
            "workload": _without_nothing(pair["workload"]),
        }
        for pair in task.get("pairs", [])
    ]
    asked: dict[str, Any] = _without_nothing(network)
    return {**asked, "pairs": pairs}


def _without_nothing(document: Any) -> Any:
    """The document without its fields that are 0, empty or null, at any depth."""
    if not isinstance(document, Mapping):
        return document
    fields = {name: _without_nothing(value) for name, value in document.items()}
    return {name: value for name, value in fields.items() if value}


def _counters(report: Mapping[str, Any]) -> dict[str, list[int | str | None]]:
    directions: Mapping[str, Mapping[str, Any]] = report.get("directions", {})
    return {
        direction: [*(counted.get(name) for name in COUNTERS), *_where_there(counted)]
        for direction, counted in directions.items()
    }


def _where_there(counted: Mapping[str, Any]) -> list[int | str]:
    """Drops of outages, and times of packets. Links that were never out, and emulated ones, lack them."""
    return [value for name in ("outage_dropped", "times") if (value := counted.get(name))]


def _digest(document: object) -> str:
    return _sha256(_canonical(document))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
