"""Campaigns of any size without running any: what readers of results are measured and tested with.

The trials are such as virtual time gives. A transfer without losses takes the same time to the last bit with
each variant that sends nothing more, and in every repetition; so there are ratios of exactly 1, and medians
without spread. Losses are those of a repetition, which all variants meet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import adbc_driver_sqlite.dbapi
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, NewCampaign, NewStart, Variant, Workload

VARIANTS = {"FEC off": 0.0, "RLC (3, 2)": 0.5, "RS (30, 20)": 0.5, "XOR (10, 9)": 1 / 9}
"""The repair symbols of each for a source symbol."""
SIZES = (1_000, 10_000, 50_000, 1_000_000)
POINTS_AT_ONCE = 100
PACKET_BYTES = 1200
TIMEOUT_S = 300.0
# Metrics of each noq-fec endpoint, without its times.
COUNTERS = (
    *("bytes_received", "bytes_sent", "congestion_window_bytes", "packets_lost", "packets_received"),
    *("packets_recovered", "packets_sent", "recovered_by_peer", "recovered_late", "repair_received"),
    *("repair_sent", "repair_useless", "smoothed_rtt_ms", "source_received", "source_sent"),
    *("spurious_losses", "useless_retransmissions", "window_reductions", "window_restorations"),
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trials:
    """A part of the trials, in the order of their ids."""

    point: NDArray[np.int64]
    repetition: NDArray[np.int64]
    variant: NDArray[np.int64]
    """The index of its variant, as `workload` has that of its workload."""
    workload: NDArray[np.int64]
    lost: NDArray[np.int64]
    """Packets of the download that were lost."""
    packets: NDArray[np.int64]
    """Packets of the download that were sent."""
    dct_s: Floats


def fill(path: str, name: str, points: int, repetitions: int, seed: int = 1) -> CampaignInfo:
    """Add a campaign of so many points to an SQLite file, which is made when it is absent, with all trials of
    VARIANTS and SIZES."""
    random = np.random.default_rng(seed)
    factors = factors_of(random, points)
    with Database.open(path, create=True) as database:
        start = database.begin(_campaign(name, factors, repetitions), NewStart(host="here", provenance={}))
        campaign = database.campaign(name)
        assert start and campaign
        ranges = [database.id_range(item.id) or (0, 0) for item in database.campaigns()]
        latest = max(last for _, last in ranges)
    with adbc_driver_sqlite.dbapi.connect(path) as connection, connection.cursor() as cursor:
        for trials in _trials(random, factors, repetitions):
            ids = latest + 1 + np.arange(len(trials.point))
            latest = int(ids[-1])
            for table, rows in (
                ("trials", _rows(trials, ids, campaign, start.id)),
                ("metrics", _metrics(trials, ids)),
                ("verdicts", _verdicts(trials, ids)),
            ):
                cursor.adbc_ingest(table, rows, mode="append")
        connection.commit()
    return campaign


def factors_of(random: np.random.Generator, points: int) -> dict[str, Floats]:
    """The value of each factor at each point."""
    return {
        "bandwidth_mbps": random.uniform(0.3, 10, points).round(6),
        "loss.p": random.uniform(0.0, 0.08, points).round(6),
        "owd_ms": random.uniform(5, 400, points).round(6),
        "queue_bdp": np.exp(random.uniform(np.log(0.1), np.log(10), points)).round(6),
    }


def _campaign(name: str, factors: dict[str, Floats], repetitions: int) -> NewCampaign:
    columns = [values.tolist() for values in factors.values()]
    return NewCampaign(
        name=name,
        title="What do readers make of a large campaign?",
        design_text=f'name = "{name}"\n',
        seed=1,
        repetitions=repetitions,
        statistic="median",
        provenance={},
        points=[dict(zip(factors, point, strict=True)) for point in zip(*columns, strict=True)],
        variants=[
            Variant(label=label, implementation="noq-fec", options={}, baseline=not repair)
            for label, repair in VARIANTS.items()
        ],
        workloads=[
            Workload(label=f"download-{size}", name="download", parameters={"size_bytes": size})
            for size in SIZES
        ],
    )


def _trials(random: np.random.Generator, factors: dict[str, Floats], repetitions: int) -> Iterator[Trials]:
    points = len(factors["owd_ms"])
    for first in range(0, points, POINTS_AT_ONCE):
        of_points = np.arange(first, min(first + POINTS_AT_ONCE, points))
        keys = np.meshgrid(
            of_points, np.arange(repetitions), np.arange(len(SIZES)), np.arange(len(VARIANTS)), indexing="ij"
        )
        point, repetition, workload, variant = (key.ravel() for key in keys)
        group = (np.ravel_multi_index((point - first, repetition, workload), keys[0].shape[:3])).ravel()
        size = np.array(SIZES)[workload]
        repair = np.array(list(VARIANTS.values()))[variant]
        source = -(-size // PACKET_BYTES)
        # A single packet's repair follows it: the download does not wait for it.
        coded_bytes = np.where(source > 1, size * (1 + repair), size)
        rtt_s = 2 * factors["owd_ms"][point] / 1000
        lossless_s = 3 * rtt_s + coded_bytes * 8 / (factors["bandwidth_mbps"][point] * 1e6)
        groups = int(group.max()) + 1
        lost = random.binomial(source, factors["loss.p"][point])[:: len(VARIANTS)][group]
        delay = random.exponential(0.5, groups)[group]
        recovered = random.random(len(group)) < np.minimum(1.6 * repair, 0.9)
        noise = np.exp(random.normal(0, 0.02, len(group)))
        hurt_s = lossless_s * (1 + np.where(recovered, 0.01, delay) * np.log1p(lost)) * noise
        dct_s = np.where(lost == 0, lossless_s, hurt_s).round(9)
        packets = np.ceil(source * (1 + repair)).astype(np.int64)
        yield Trials(point, repetition, variant, workload, lost, packets, dct_s)


def _states(trials: Trials) -> NDArray[np.str_]:
    """Return the states: some trials that lose packets time out, and a few are invalid."""
    number = trials.point * 31 + trials.repetition * 7 + trials.variant
    timeout = (trials.dct_s > TIMEOUT_S) | (trials.lost > 0) & (number % 701 == 0)
    return np.select([timeout, number % 3001 == 0], ["timeout", "invalid"], "ok")


def _rows(trials: Trials, ids: NDArray[np.int64], campaign: CampaignInfo, start_id: int) -> pa.Table:
    count, states = len(ids), _states(trials)
    labels = [np.array([item["label"] for item in some]) for some in (campaign.variants, campaign.workloads)]
    rows = list(zip(ids.tolist(), trials.packets.tolist(), trials.lost.tolist(), strict=True))
    documents = {
        "seeds": [
            _json({"content": i, "internet/up": 2**63 + i, "internet/down": 2**62 + i}) for i, _, _ in rows
        ],
        "dropper": [
            _json({"internet/up": _counted(packets // 2, 0), "internet/down": _counted(packets, lost)})
            for _, packets, lost in rows
        ],
        "links": [_json({"internet": _link(packets, lost)}) for _, packets, lost in rows],
        "exits": [_json({"client": 0, "server": 0})] * count,
        "stderr": [_json({"client": "", "server": ""})] * count,
        "overhead_s": [_json({"results": 0.001, "total": 0.0015 + packets / 1e6}) for _, packets, _ in rows],
        "checks": [_json(_checks(packets, lost)) for _, packets, lost in rows],
    }
    return pa.table(
        {
            "id": ids,
            "campaign_id": np.full(count, campaign.id),
            "variant": pa.array(labels[0][trials.variant].tolist()),
            "workload": pa.array(labels[1][trials.workload].tolist()),
            "point": trials.point,
            "repetition": trials.repetition,
            "attempt": np.ones(count, dtype=np.int64),
            "superseded": np.zeros(count, dtype=np.int64),
            "state": pa.array(states.tolist()),
            "reason": pa.array(["" if state == "ok" else f"it was {state}" for state in states.tolist()]),
            "started_at": pa.array(
                [f"2026-01-02T03:{i // 60 % 60:02}:{i % 60:02}+00:00" for i, _, _ in rows]
            ),
            "duration_s": 0.001 + trials.packets / 1e5,
            **{column: pa.array(texts) for column, texts in documents.items()},
            "start_id": np.full(count, start_id),
        }
    )


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document)


def _counted(packets: int, lost: int) -> dict[str, int]:
    return {"seen": packets, "dropped": lost, "other": 0, "gso": 0, "truncated": 0, "fragments": 0}


def _link(packets: int, lost: int) -> dict[str, Any]:
    none = {"p50": 0.0, "p99": 0.0, "p999": 0.0, "max": 0.0}
    directions = {
        direction: {
            "frames_in": frames,
            "bytes_in": PACKET_BYTES * frames,
            "queue_dropped": 0,
            "oversize_dropped": 0,
            "frames_out": frames,
            "bytes_out": PACKET_BYTES * frames,
            "in_flight": 0,
            "max_queue_bytes": 10 * PACKET_BYTES,
            "max_queue_packets": 10,
            "write_errors": 0,
            "kernel_dropped": 0,
            "lateness_us": none,
            "read_lag_us": none,
            "late": 0,
            "conserved": True,
        }
        for direction, frames in (("up", packets // 2), ("down", packets + lost))
    }
    configuration = {"rate_bps": 10_000_000, "delay_ns": 50_000_000, "queue_bytes": 100_000, "mtu": 1500}
    return {"backend": "virtual", "version": "1", "configuration": configuration, "directions": directions}


def _checks(packets: int, lost: int) -> dict[str, Any]:
    verdicts = {
        "packets": packets,
        "dropped": lost,
        "differing": 0,
        "first_difference": None,
        "same_total": True,
    }
    return {
        "verdicts": {"internet/up": {**verdicts, "dropped": 0}, "internet/down": verdicts},
        "links": {},
        "late_max_ms": 0.0,
        "late_sum_ms": 0.0,
        "stalled_s": 0.0,
        "watch_gap_s": 0.0,
        "stolen_s": 0.0,
        "lost_elsewhere": {"packets": 0, "places": {}},
        "trials_at_once": 2,
        "digest": f"{packets:064x}",
    }


def _metrics(trials: Trials, ids: NDArray[np.int64]) -> pa.Table:
    values = {
        ("client", "dct_s"): trials.dct_s,
        ("client", "handshake_s"): trials.dct_s / 3,
        **{
            (end, name): (trials.packets * (place + 1) + trials.lost).astype(np.float64)
            for end in ("client", "server")
            for place, name in enumerate(COUNTERS)
        },
    }
    # By trial, as they are written one after another. A trial that has timed out has no metrics of its end.
    ended = np.flatnonzero(_states(trials) != "timeout")
    names = sorted(values)
    return pa.table(
        {
            "trial_id": np.repeat(ids[ended], len(names)),
            "endpoint": pa.array([end for end, _ in names] * len(ended)),
            "name": pa.array([name for _, name in names] * len(ended)),
            "value": np.stack([values[name][ended] for name in names], axis=1).ravel(),
        }
    )


def _verdicts(trials: Trials, ids: NDArray[np.int64]) -> pa.Table:
    """The packets that were lost are the first ones."""
    count = len(ids)
    rows = list(zip(trials.packets.tolist(), trials.lost.tolist(), strict=True))
    up = [(packets // 2, 0) for packets, _ in rows]
    both = [item for pair in zip(rows, up, strict=True) for item in pair]
    return pa.table(
        {
            "trial_id": np.repeat(ids, 2),
            "link": pa.array(["internet"] * 2 * count),
            "direction": pa.array(["down", "up"] * count),
            "packets": pa.array([packets for packets, _ in both]),
            "dropped": pa.array([lost for _, lost in both]),
            "bitmap": pa.array(
                [((1 << lost) - 1).to_bytes((packets + 7) // 8, "little") for packets, lost in both]
            ),
        }
    )
