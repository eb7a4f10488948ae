"""What a trial came to, as one number: the same when it came to the same, whenever and wherever it was run.

A trial in virtual time comes to the same each time; an emulated one has some other number each time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from results.store.records import TrialKey, TrialRecord

COUNTERS = (
    *("frames_in", "bytes_in", "frames_out", "bytes_out", "queue_dropped", "oversize_dropped", "in_flight"),
    *("max_queue_bytes", "max_queue_packets"),
)
"""What links count. How late they were is no part of what a trial came to."""


def of_trial(record: TrialRecord) -> str:
    """SHA-256 of state, metrics, verdicts and counters of links as canonical JSON, in hexadecimal."""
    return _digest(
        {
            "state": record.state,
            "metrics": {
                endpoint: {name: float(value) for name, value in values.items()}
                for endpoint, values in record.metrics.items()
            },
            "verdicts": {
                f"{log.link}/{log.direction}": [log.packets, log.dropped, log.bitmap.hex()]
                for log in record.verdicts
            },
            "links": {name: _counters(report) for name, report in record.links.items()},
        }
    )


def of_trials(trials: Iterable[tuple[TrialKey, str]]) -> str:
    """SHA-256 of the keys of trials and their digests, in whatever order they come."""
    rows = sorted((key.variant, key.workload, key.point, key.repetition, digest) for key, digest in trials)
    return _digest(rows)


def _counters(report: Mapping[str, Any]) -> dict[str, list[int | None]]:
    directions: Mapping[str, Mapping[str, Any]] = report.get("directions", {})
    return {
        direction: [*(counted.get(name) for name in COUNTERS), *_of_outages(counted)]
        for direction, counted in directions.items()
    }


def _of_outages(counted: Mapping[str, Any]) -> list[int]:
    """Nothing where nothing was dropped while the link was out: so digests are what they were before links
    could be out."""
    dropped = counted.get("outage_dropped", 0)
    return [dropped] if dropped else []


def _digest(document: object) -> str:
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
