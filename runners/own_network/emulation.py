"""A design that emulates the path of a campaign in the field: its variants and workloads, over what was seen.

Each parameter stands in a line of its own, with what it rests on. It also says what was not seen: the
delay of one way is half of the round trip, and a queue that no volley filled has the length of a round trip
at least.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import tomli_w

from fecbench.designs import Design
from fecbench.designs.design import parse
from fecbench.designs.ranges import entry
from fecbench.designs.table import dotted
from fecbench.errors import BadInput
from fecbench.quantities import counted
from fecbench.results.analysis import path_probes
from fecbench.results.analysis.circle import emulated_name
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from fecbench.runners.own_network.own_design import loss_parameters, model_of
from fecbench.runners.paths import LONGEST, Estimate, Path
from fecbench.runners.paths.observed import FULL_BYTES, PROBE_BYTES, Observed, longest_wait_ms, path_of

Direction = Literal["up", "down"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
_NOISE, _NOISE_MS = 0.05, 1.0
"""Noise of the delay is emulated where it is a greater share of the least round trip, and longer."""
_LEAST_QUEUE_BYTES = 10 * FULL_BYTES
_TOPOLOGY = "single-path"


@dataclass(frozen=True)
class ObservedPath:
    """A path, as the probes and volleys of a campaign saw it."""

    name: str
    blocks: int
    up: Path
    down: Path
    noise_ms: float
    """The middle round-trip time less the least."""
    longest_wait_ms: Mapping[Direction, float]

    def of(self, direction: Direction) -> Path:
        return self.up if direction == "up" else self.down


def observed(database: Database, campaign: CampaignInfo) -> ObservedPath:
    """Return the path of a campaign. Raises BadInput for one that has too few probes or volleys."""
    where = f"campaign {campaign.name!r}"
    if campaign.engine != "field":
        raise BadInput(f"{where}: was not run with --engine field, so no path was observed")
    probes = path_probes.probes(database, campaign)
    volleys = path_probes.volleys(database, campaign)
    round_trips_ms = np.array([probe.rtt_ms for probe in probes if probe.rtt_ms is not None])
    if not round_trips_ms.size:
        raise BadInput(f"{where}: no probe was answered, so nothing is known of its path")
    sides = {
        "up": [(probe.at_s, probe.lost_up) for probe in probes],
        "down": [(probe.at_s, probe.lost_down) for probe in probes if not probe.lost_up],
    }
    path_seen = {
        direction: Observed(
            np.array([at_s for at_s, _ in sides[direction]]),
            np.array([lost for _, lost in sides[direction]], dtype=np.bool_),
            [volley.of(direction) for volley in volleys],
        )
        for direction in DIRECTIONS
    }
    paths = {direction: path_of(one, round_trips_ms, direction) for direction, one in path_seen.items()}
    return ObservedPath(
        name=str(campaign.provenance.get("field", {}).get("path", "")),
        blocks=len(volleys),
        up=paths["up"],
        down=paths["down"],
        noise_ms=float(np.median(round_trips_ms) - round_trips_ms.min()),
        longest_wait_ms={direction: longest_wait_ms(one) for direction, one in path_seen.items()},
    )


def emulation(campaign: CampaignInfo, path: ObservedPath, repetitions: int | None = None) -> str:
    """Return the text of the design. Raises BadInput where no rate is known."""
    lines = [
        f'# The path "{path.name}", as {counted(path.blocks, "block")} of the campaign {campaign.name} saw'
        " it.",
        "",
    ]
    tables = tomllib.loads(campaign.design_text)
    kept_constants = tables.pop("constants", {})
    tables |= {"name": emulated_name(campaign), "topology": _TOPOLOGY}
    tables |= {} if repetitions is None else {"repetitions": repetitions}
    lines += [tomli_w.dumps(tables), "[constants]", *_constants(path)]
    lines += [entry(name, value) for name, value in dotted(kept_constants).items()]
    return "\n".join([*lines, ""])


def design_of_path(campaign: CampaignInfo, path: ObservedPath, repetitions: int | None = None) -> Design:
    """Return that design. Raises BadInput for what no design can have."""
    return parse(emulation(campaign, path, repetitions), f"{emulated_name(campaign)}.toml")


def _constants(path: ObservedPath) -> Iterator[str]:
    for direction in DIRECTIONS:
        yield from _of_direction(path, direction)


def _of_direction(path: ObservedPath, direction: Direction) -> Iterator[str]:
    path_seen = path.of(direction)
    rate, rtt, loss = path_seen.bandwidth_mbps, path_seen.rtt_ms, path_seen.loss
    if rate is None or rtt is None or loss is None:
        raise BadInput(
            f"the rate {direction} is not known: too few volleys came back: run more blocks, 5 at least"
        )
    at_least = "" if np.isfinite(rate.high) else ", or more: packets came as fast as they were sent"
    yield _line(
        f"{direction}.bandwidth_mbps",
        f"{rate.value:.4g}",
        f"the middle of {counted(path.blocks, 'volley')} ({_interval(rate)}){at_least}",
    )
    sending_ms = sum(
        8 * PROBE_BYTES / (1e3 * other.value)
        for other in (path.up.bandwidth_mbps, path.down.bandwidth_mbps)
        if other is not None
    )
    yield _line(
        f"{direction}.owd_ms",
        f"{(rtt.value - sending_ms) / 2:.4g}",
        f"half of the least round trip, {rtt.value:.4g} ms; nobody knows how it divides",
    )
    if path.noise_ms > max(_NOISE_MS, _NOISE * rtt.value):
        yield _line(
            f"{direction}.jitter_ms",
            f"{path.noise_ms / 2:.3g}",
            f"half of {path.noise_ms:.3g} ms, by which the middle round trip is longer than the least",
        )
    yield _queue(path, direction, rate.value, rtt.value)
    yield from _losses(path_seen, loss, direction)


def _queue(path: ObservedPath, direction: Direction, rate_mbps: float, rtt_ms: float) -> str:
    queue, longest_ms = path.of(direction).queue_bdp, path.longest_wait_ms[direction]
    wait_ms = max(longest_ms, rtt_ms) if queue is None else queue.value * rtt_ms
    # A queue has the packet in it that is being sent.
    size_bytes = max(_LEAST_QUEUE_BYTES, round(wait_ms * rate_mbps * 1e3 / 8) + FULL_BYTES)
    why = (
        f"packets waited {wait_ms:.3g} ms where it was full"
        if queue is not None
        else f"no volley filled it: packets waited {longest_ms:.3g} ms at most; one round trip is taken"
    )
    return _line(f"{direction}.queue_bytes", str(size_bytes), why)


def _losses(path_seen: Path, loss: Estimate, direction: Direction) -> Iterator[str]:
    packets = f"{path_seen.lost:,} of {counted(path_seen.packets, 'packet')}"
    if path_seen.queue_losses:
        packets += f", without {path_seen.queue_losses} at a full queue"
    if path_seen.lost == 0:
        most = f"{100 * loss.high:.2g} % at most, if at most {LONGEST:g} are lost in a row on average"
        yield _line(f"loss.{direction}.model", '"none"', f"{packets} were lost: {most}")
        return
    ends = {
        "time": "time ends a burst: 20 times likelier than packets",
        "packets": "packets end a burst: 20 times likelier than time",
        "": "what ends a burst is not sure: packets are taken",
    }[path_seen.ends]
    model = model_of(path_seen)
    why = "no loss makes another likelier" if model == "uniform" else ends
    yield _line(f"loss.{direction}.model", f'"{model}"', why)
    for name, estimate in loss_parameters(path_seen).items():
        what = packets if name in ("loss.p", "loss.rate") else "on average"
        yield _line(
            f"loss.{direction}.{name.removeprefix('loss.')}",
            f"{estimate.value:.4g}",
            f"{what} ({_interval(estimate)})",
        )


def _interval(estimate: Estimate) -> str:
    high = f"{estimate.high:.4g}" if np.isfinite(estimate.high) else "?"
    return f"{estimate.low:.4g} to {high}"


def _line(name: str, value: str, why: str) -> str:
    return f"{name} = {value}  # {why}"
