"""Campaigns in the field, and of their emulations, that were never run: their ratios and paths are known."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fecbench.results.store import stored_series
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, SeriesTable, TrialKey
from tests.support.campaigns import new_campaign, trial, variants, workload
from tests.support.designs import over_a_path

Floats = NDArray[np.float64]
LABEL, UPLOAD = "download-1000", "upload-1000"
RTT_MS, RATE_MBPS, FRAME_BYTES = 50.0, 20.0, 1242


def plant(
    path: Path,
    name: str,
    log_ratios: Sequence[float] | Floats,
    *,
    engine: str = "field",
    timed_out: Sequence[int] = (),
    queue_packets: int = 0,
    begins: str = "2026-01-02T03:00:00+00:00",
    of_uploads: int = 0,
) -> CampaignInfo:
    """Store a campaign whose variant “rlc” has these ratios to “off”, a repetition and a
    minute each. With queues, the path was observed. There are `of_uploads` pairs of uploads."""
    generator = np.random.default_rng(len(log_ratios))
    topology = "field" if engine == "field" else "single-path"
    text = over_a_path(name, len(log_ratios), 1000, topology)
    with Database.open(str(path), create=True) as database:
        info = database.create_campaign(
            new_campaign(
                name,
                design_text=text,
                repetitions=len(log_ratios),
                points=[{}],
                variants=variants("off", "rlc"),
                workloads=[
                    workload(LABEL, size_bytes=1000),
                    *[workload(UPLOAD, "upload", size_bytes=1000)] * bool(of_uploads),
                ],
                provenance={"engine": engine, "field": {"path": "home", "server": "h:1"}},
            )
        )
        records = []
        for repetition, log_ratio in enumerate(log_ratios):
            took_s = math.exp(generator.normal(0, 0.3))
            for place, (variant, dct_s) in enumerate(
                {"off": took_s, "rlc": took_s * math.exp(log_ratio)}.items()
            ):
                is_late = variant == "rlc" and repetition in timed_out
                tables = _observed(repetition, queue_packets) if queue_packets and not place else []
                record = trial(
                    TrialKey(variant, LABEL, 0, repetition),
                    "timeout" if is_late else "ok",
                    metrics={"client": {} if is_late else {"dct_s": dct_s}},
                    checks={"path": _path(repetition, (place + repetition) % 2)} if engine == "field" else {},
                    series=tables,
                )
                at = datetime.fromisoformat(begins) + timedelta(minutes=repetition)
                records.append(replace(record, started_at=at.isoformat()))
                if repetition < of_uploads:
                    key = replace(record.key, workload=UPLOAD)
                    records.append(replace(record, key=key, started_at=at.isoformat()))
        database.record_all(info.id, records)
        return info


def _path(repetition: int, place: int) -> dict[str, object]:
    return {
        **{"name": "home", "block": f"b{repetition}", "place": place, "probes": 100, "lost_up": 0},
        **{"lost_down": 0, "rtt_ms": RTT_MS, "least_rtt_ms": RTT_MS, "is_rested": True, "rested_s": 0.1},
    }


def _observed(block: int, queue_packets: int) -> list[SeriesTable]:
    """Probes of a block, of which some are lost down, and a volley over queues of so many packets."""
    generator = np.random.default_rng(block)
    lost = generator.random(100) < 0.02
    gap_s = FRAME_BYTES * 8 / (1e6 * RATE_MBPS)
    probes = {
        "t_s": [10.0 * block + 0.02 * number for number in range(100)],
        "rtt_ms": [0.0 if is_lost else RTT_MS for is_lost in lost],
        "lost_up": [0] * 100,
        "lost_down": lost.astype(int).tolist(),
    }
    came_at = [gap_s * number if number < queue_packets else -1.0 for number in range(100)]
    volley = {
        "t_s": [2e-5 * number for number in range(100)],
        "came_s": came_at,
        "answered_s": [0.3 + 2e-5 * number for number in range(100)],
        "answer_s": came_at,
    }
    return [
        stored_series.of_endpoint("path", name, pa.table(columns))
        for name, columns in (("probes", probes), ("volley", volley))
    ]
