"""Measurements of trials by the harness itself, as columns of a frame: when and where a trial ran, how busy
the machine was, what happened to packets on each link, and the seeds that decided it.

| column | what it is |
|---|---|
| `started_at` | when it began, UTC |
| `host` | the machine that ran it, null where it is not known |
| `engine` | how it was run: virtual or emulated; of the campaign, so `frames` adds it |
| `reason` | why its state is not ok |
| `trials_at_once` | how many trials ran then |
| `stalled_s` | how long its endpoints were kept from running |
| `stolen_s` | how long a hypervisor kept a CPU from running |
| `watch_gap_s` | the longest time in which nobody looked whether endpoints were kept from running |
| `late_max_ms`, `late_sum_ms` | how late packets left a link: the latest, and for how long in all |
| `lost_elsewhere` | packets that were lost outside of link and dropper |
| `overhead_s` | the seconds that were not the client's own |
| `LINK.DIRECTION.packets` | packets that the dropper judged |
| `LINK.DIRECTION.lost` | those that it dropped: the injected losses |
| `LINK.DIRECTION.first_lost` | the first of them, counted from 0; NaN if it is none of the FIRST_PACKETS |
| `LINK.DIRECTION.queue_dropped` | packets that found the queue full |
| `LINK.DIRECTION.outage_dropped` | packets that came while the link was out |
| `LINK.DIRECTION.late` | packets that left the emulator later than its bound |
| `LINK.DIRECTION.lateness_max_us` | how late the latest left it |
| `seed.content`, `seed.LINK.DIRECTION` | unsigned, 64 bits |

Numbers are NaN, and seeds null, where a trial does not have them, for example since it failed before.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from fecbench.results.store.arrow import objects
from fecbench.results.store.records import HARNESS_COLUMNS

FIRST_PACKETS = 8192
"""The number of packets of a link and direction among which the first lost one is looked for."""

TIME = pa.timestamp("us", tz="UTC")
"""The type of times of day, which are texts in the database."""

_OF_CHECKS = ("trials_at_once", "stalled_s", "stolen_s", "watch_gap_s", "late_max_ms", "late_sum_ms")
_LOST_ELSEWHERE = pa.struct({"packets": pa.float64()})
_CHECKS = pa.schema(dict.fromkeys(_OF_CHECKS, pa.float64()) | {"lost_elsewhere": _LOST_ELSEWHERE})
_UNKNOWN = pa.scalar(None, pa.string())
_OVERHEAD = pa.schema({"total": pa.float64()})
_DROPPER = pa.struct({"seen": pa.float64(), "dropped": pa.float64(), "other": pa.float64()})
_DIRECTION = pa.struct(
    {
        "frames_in": pa.float64(),
        "in_flight": pa.float64(),
        "queue_dropped": pa.float64(),
        "outage_dropped": pa.float64(),
        "late": pa.float64(),
        "lateness_us": pa.struct({"max": pa.float64()}),
    }
)


def frame(trials: pa.Table, drops: pa.Table) -> pd.DataFrame:
    """The columns of these trials, which `arrow.harness` and `arrow.drops` have read, by the trials' ids.

    Raises ValueError when the database holds what no harness writes.
    """
    checks = objects(trials["checks"], _CHECKS)
    seeds = _names(trials["seeds"])
    directions = dict.fromkeys(name for name in (*seeds, *_names(trials["dropper"])) if "/" in name)
    # Copies: what the database's library has read is freed as a whole, texts of JSON and all.
    own = trials.select(["id", "reason"]).take(np.arange(len(trials)))
    columns = {
        "id": own["id"],
        "started_at": trials["started_at"].cast(TIME),
        "host": pc.if_else(pc.equal(trials["host"], ""), _UNKNOWN, trials["host"]),
        "reason": own["reason"],
        **{name: checks[name] for name in _OF_CHECKS},
        "lost_elsewhere": pc.struct_field(checks["lost_elsewhere"], "packets"),
        "overhead_s": objects(trials["overhead_s"], _OVERHEAD)["total"],
        **_of_links(trials["dropper"], trials["links"], list(directions)),
        **_of_seeds(trials["seeds"], seeds),
    }
    types = {pa.uint64(): pd.UInt64Dtype()}
    measured: pd.DataFrame = pa.table(columns).to_pandas(types_mapper=types.get).set_index("id")
    first_lost = _first_lost(drops).reindex(measured.index)
    places = [name.replace("/", ".") for name in directions]
    return measured.assign(**{f"{place}.first_lost": first_lost.get(place, math.nan) for place in places})


def phases(overheads: pa.Table) -> pd.DataFrame:
    """Return a column for each phase of `arrow.overheads`: its seconds, NaN where a trial has none of it.

    Raises ValueError when the database holds what no harness writes.
    """
    texts = overheads["overhead_s"]
    seconds: pd.DataFrame = objects(texts, pa.schema(dict.fromkeys(_names(texts), pa.float64()))).to_pandas()
    return seconds


def in_order(names: Iterable[str]) -> list[str]:
    """The names of these columns in the order of a table: HARNESS_COLUMNS, then links, then seeds."""
    of_trial = {name: place for place, name in enumerate(HARNESS_COLUMNS)}
    last = len(of_trial)
    return sorted(names, key=lambda name: (of_trial.get(name, last + name.startswith("seed.")), name))


def _of_links(
    dropper: pa.ChunkedArray, links: pa.ChunkedArray, directions: Sequence[str]
) -> dict[str, pa.ChunkedArray]:
    """The columns of each direction ("internet/up") of each link."""
    counted, reported = _counted_and_reported(dropper, links, directions)
    columns: dict[str, pa.ChunkedArray] = {}
    for name in directions:
        of_direction, prefix = reported[name], name.replace("/", ".")
        columns |= {
            f"{prefix}.packets": pc.struct_field(counted[name], "seen"),
            f"{prefix}.lost": pc.struct_field(counted[name], "dropped"),
            f"{prefix}.queue_dropped": pc.struct_field(of_direction, "queue_dropped"),
            f"{prefix}.outage_dropped": pc.struct_field(of_direction, "outage_dropped"),
            f"{prefix}.late": pc.struct_field(of_direction, "late"),
            f"{prefix}.lateness_max_us": pc.struct_field(of_direction, ["lateness_us", "max"]),
        }
    return columns


def _counted_and_reported(
    dropper: pa.ChunkedArray, links: pa.ChunkedArray, directions: Sequence[str]
) -> tuple[pa.Table, dict[str, pa.ChunkedArray]]:
    """Return by direction ("internet/up") the counters of the dropper, and of the link."""
    of_links: defaultdict[str, dict[str, pa.DataType]] = defaultdict(dict)
    for name in directions:
        link, _, direction = name.partition("/")
        of_links[link][direction] = _DIRECTION
    reports = {link: pa.struct({"directions": pa.struct(of_link)}) for link, of_link in of_links.items()}
    of_link = objects(links, pa.schema(reports))
    reported = {}
    for name in directions:
        link, _, direction = name.partition("/")
        reported[name] = pc.struct_field(of_link[link], ["directions", direction])
    return objects(dropper, pa.schema(dict.fromkeys(directions, _DROPPER))), reported


def unjudged(trials: pa.Table) -> pd.DataFrame:
    """Return for each direction of a link ("internet.up") the frames of endpoints that came to it, less those
    that the dropper judged and those still on their way: 0 where it judged each once. By the trials' ids."""
    directions = [name for name in _names(trials["dropper"]) if "/" in name]
    counted, reported = _counted_and_reported(trials["dropper"], trials["links"], directions)
    columns = {}
    for name in directions:
        arrived, on_its_way = (pc.struct_field(reported[name], of) for of in ("frames_in", "in_flight"))
        judged, other = (pc.struct_field(counted[name], of) for of in ("seen", "other"))
        accounted = pc.add(pc.add(judged, pc.fill_null(other, 0.0)), on_its_way)
        columns[name.replace("/", ".")] = pc.subtract(arrived, accounted)
    table: pd.DataFrame = pa.table({"id": trials["id"], **columns}).to_pandas()
    return table.set_index("id")


def _first_lost(drops: pa.Table) -> pd.DataFrame:
    """The first packet that was dropped, by run: a column for each direction of a link ("internet.up")."""
    bitmaps = drops["bitmap"].combine_chunks()
    ends = np.frombuffer(bitmaps.buffers()[1], np.int64)[bitmaps.offset :][: len(bitmaps) + 1]
    content = np.frombuffer(bitmaps.buffers()[2] or b"", np.uint8)
    not_empty = np.append(np.flatnonzero(content), len(content))
    byte = not_empty[np.searchsorted(not_empty, ends[:-1])]
    is_within = byte < ends[1:]
    first_bit = np.array([(value & -value).bit_length() - 1 for value in range(256)])
    packet = 8 * (byte - ends[:-1])[is_within] + first_bit[content[byte[is_within]]]
    place = pc.binary_join_element_wise(drops["link"], drops["direction"], ".")
    rows = pd.DataFrame({"id": drops["trial_id"].to_numpy(), "place": place.to_pandas()})[is_within]
    return rows.assign(packet=packet.astype(np.float64)).pivot(index="id", columns="place", values="packet")


def _of_seeds(seeds: pa.ChunkedArray, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    values = objects(seeds, pa.schema(dict.fromkeys(names, pa.uint64())))
    return {f"seed.{name.replace('/', '.')}": values[name] for name in names}


def _names(texts: pa.ChunkedArray) -> list[str]:
    """The keys of these JSON objects. Most differ in their numbers alone: few are parsed."""
    shapes = pc.replace_substring_regex(texts, r'": ?[-+.\deE]+', '": 0').unique()
    return list(dict.fromkeys(name for shape in shapes.to_pylist() for name in json.loads(shape)))
