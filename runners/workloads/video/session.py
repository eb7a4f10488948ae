"""A session: the requests of the harness to a client, and the worth of the session to the viewer.

The player decides twice: in the trial, and when the trial is judged, from what the client noted. Both
times it decides the same, or the client was asked for something else than it says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.requests import Line, Object, Progress, since
from fecbench.runners.workloads.video.ladder import Ladder, Level
from fecbench.runners.workloads.video.player import (
    NOTHING_S,
    Player,
    Request,
    Session,
    Settings,
    Stall,
    latencies_s,
)
from fecbench.runners.workloads.workload import Impossible
from fecbench.topologies.rate import Rate

if TYPE_CHECKING:
    import pyarrow as pa

CLOCK_S = 2e-6
"""Times of endpoints have nine decimals, and pass through two clocks."""
LEAST_SHARE = 0.99
"""Share of an object's shortest possible time that must have passed."""
STALL_WEIGHT_MBPS = 3.0
"""Yin et al. 2015, "balanced": a second without a picture costs as much as 3 Mbit/s for a second."""
STALL_WEIGHT_LOG = 2.66
"""The same where quality is the logarithm of the rate (Mao, Netravali and Alizadeh 2017, table 1)."""


def document(ladder: Ladder, settings: Settings) -> dict[str, Any]:
    """Return the document of a session, as a task stores it."""
    values = asdict(settings)
    if not settings.abandon:  # a task says of it nothing where it is not wanted
        del values["abandon"]
    return {"ladder": ladder.model_dump(mode="json"), "settings": values}


def read(written: Mapping[str, Any] | None) -> tuple[Ladder, Settings]:
    """Return the ladder and the settings of a session's document."""
    assert written is not None
    return Ladder.model_validate(written["ladder"]), Settings(**written["settings"])


class Asking:
    """A player's conversation with a client (`Conversation`)."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def begin(self) -> list[Line]:
        return self._lines()

    def heard(self, message: Object | Progress) -> list[Line]:
        player, now_s = self._player, message.done_at if isinstance(message, Object) else message.at
        if player.request is None:  # it was not asked for that
            return [Line(now_s)]
        if isinstance(message, Progress):
            gives_up = player.progressed(message.bytes, message.at)
            return [*([Line(now_s, stop=True)] if gives_up else []), Line(player.leaves_s)]
        if message.whole:
            player.arrived(message.requested_at, message.first_byte_at, message.done_at)
        elif player.instead is not None:
            player.gave_up(message.bytes, message.requested_at, message.done_at)
        return self._lines() or [Line(now_s)]

    def _lines(self) -> list[Line]:
        request = self._player.request
        if request is None:
            return []
        asks = Line(request.at_s, request.bytes, request.tell_every_s)
        return [asks, Line(self._player.leaves_s)]


@dataclass(frozen=True)
class Played:
    """A session as it went."""

    session: Session
    lags_s: list[float]
    """Time from the player's decision until the client read the request, for each request."""


def played(player: Player, outcome: Outcome, rate: Rate | None) -> Played:
    """Return the session that a client recorded, over links of this rate; None: nobody knows it.

    Raises Impossible with the first impossible object.
    """
    lags_s, number, progress = [], 0, Progress(event="progress", bytes=0, requested_at=0.0, at=0.0)
    stopped_s = 0.0
    for message in outcome.said:
        request = player.request
        if request is None:
            raise Impossible(f"client: object {number}: was not asked for: the session was over")
        relative = since(message, outcome.said[0].requested_at)
        if isinstance(relative, Progress):
            for problem in _problems_of_progress(relative, progress, request):
                raise Impossible(f"client: progress of object {number}: {problem}")
            progress = relative
            if player.progressed(relative.bytes, relative.at):
                stopped_s = relative.at
            continue
        assert isinstance(message, Object)
        for problem in _problems(message, relative, request, rate, gives_up=player.instead is not None):
            raise Impossible(f"client: object {number}: {problem}")
        lags_s.append(_at_least_0(relative.requested_at - request.at_s))
        if relative.whole:
            player.arrived(relative.requested_at, relative.first_byte_at, relative.done_at)
        else:
            lags_s.append(_at_least_0(relative.done_at - stopped_s))
            player.gave_up(relative.bytes, relative.requested_at, relative.done_at)
        number += 1
        progress = progress.model_copy(update={"bytes": 0})
    has_request = player.request is not None
    if has_request and outcome.client_s is not None and outcome.client_s < player.leaves_s - CLOCK_S:
        raise Impossible(
            f"client: ended after {number} objects and {outcome.client_s:g} s: it was asked for"
            f" another, and the viewer leaves after {player.leaves_s:g} s"
        )
    return Played(player.end(), lags_s)


def _problems_of_progress(progress: Progress, before: Progress, request: Request) -> Iterator[str]:
    if request.tell_every_s is None:
        yield "was not asked for"
    elif progress.at < before.at + (request.tell_every_s if before.bytes else 0.0) - CLOCK_S:
        yield f"at = {progress.at:.9f} s: is too soon after {before.at:.9f} s"
    elif not before.bytes < progress.bytes < request.bytes:
        yield f"bytes = {progress.bytes}: must be more than {before.bytes} and less than {request.bytes}"
    elif progress.requested_at < request.at_s - CLOCK_S or progress.at < progress.requested_at:
        yield f"requested_at = {progress.requested_at:.9f}: it was asked for at {request.at_s:.9f} s"


def _problems(
    message: Object, arrived: Object, request: Request, rate: Rate | None, *, gives_up: bool
) -> Iterator[str]:
    asked_s, size_bytes = request.at_s, message.bytes
    if message.whole and message.bytes != request.bytes:
        yield f"bytes = {message.bytes}: {request.bytes} were asked for"
    if not message.whole and not gives_up:
        yield "was given up, and nobody asked for that"
    if message.bytes > request.bytes:
        yield f"bytes = {message.bytes}: at most {request.bytes} can come"
    if not message.requested_at <= message.first_byte_at <= message.done_at:
        yield (
            f"requested_at = {message.requested_at:.9f}, first_byte_at = {message.first_byte_at:.9f},"
            f" done_at = {message.done_at:.9f}: must not decrease"
        )
    if arrived.requested_at < asked_s - CLOCK_S:
        yield f"requested_at is {asked_s - arrived.requested_at:.6f} s before it was asked for"
    if rate is None:
        return
    least_s, took_s = rate.least_time_s(size_bytes), message.done_at - message.requested_at
    if took_s < LEAST_SHARE * least_s:
        yield (f"took {took_s:.6f} s: the links carry {size_bytes} bytes in {least_s:.6f} s at the soonest")


# Worth to the viewer


def metrics(ladder: Ladder, settings: Settings, played: Played) -> dict[str, float]:
    """Return every metric of a session, by its name. A session without pictures lacks those of its
    pictures."""
    session, levels = played.session, _levels(played.session)
    stall_s = math.fsum(stall.length_s for stall in session.stalls)
    startup_s = session.ended_s if session.startup_s is None else session.startup_s
    assert startup_s is not None
    values = {
        "unplayed_s": _at_least_0(ladder.duration_s - session.played_s - session.skipped_s),
        "objects": float(len(session.arrivals)),
    }
    if settings.abandon:
        values["given_up"] = float(len(session.given_up))
        values["given_up_bytes"] = float(sum(item.bytes for item in session.given_up))
    if session.startup_s is not None:
        values |= {"startup_s": startup_s, "stalls": float(len(session.stalls)), "stall_s": stall_s}
        values["stall_ratio"] = stall_s / (stall_s + session.played_s) if stall_s else 0.0
    if levels:
        rates = [ladder.levels[level].kbps for level in levels]
        values["mean_kbps"] = math.fsum(rates) / len(rates)
        values["switches"] = float(sum(before != after for before, after in pairwise(levels)))
        without_s = (stall_s + startup_s) / len(rates)
        values["qoe_lin"] = _qoe([rate / 1e3 for rate in rates]) - STALL_WEIGHT_MBPS * without_s
        values["qoe_log"] = (
            _qoe([math.log(rate / ladder.levels[0].kbps) for rate in rates]) - STALL_WEIGHT_LOG * without_s
        )
        values |= _shares(ladder, levels)
    if played.lags_s:
        in_order = sorted(played.lags_s)
        values["request_lag_p99_ms"] = 1e3 * in_order[math.ceil(0.99 * len(in_order)) - 1]
    if settings.is_live:
        values["skipped_s"] = session.skipped_s
        if session.startup_s is not None:
            in_order = sorted(latencies_s(session, settings))
            for percent in (50, 95):
                if in_order:
                    place = math.ceil(percent / 100 * len(in_order)) - 1
                    values[f"latency_p{percent}_s"] = float(in_order[place])
    return values


def _at_least_0(time_s: float) -> float:
    """A time that is a difference of others: rounding makes no time of none."""
    return time_s if time_s > NOTHING_S else 0.0


def _levels(session: Session) -> list[int]:
    """The level of each segment that has begun to arrive, in order."""
    return [arrival.request.level for arrival in session.arrivals if arrival.request.chunk == 0]


def _qoe(qualities: list[float]) -> float:
    """A segment's mean quality, less the mean of what each change costs (Yin et al. 2015)."""
    changes = math.fsum(abs(after - before) for before, after in pairwise(qualities))
    return (math.fsum(qualities) - changes) / len(qualities)


def _shares(ladder: Ladder, levels: list[int]) -> dict[str, float]:
    """Return the share of segments of each resolution."""
    names = {_name(level): 0 for level in ladder.levels}
    for level in levels:
        names[_name(ladder.levels[level])] += 1
    return {name: count / len(levels) for name, count in names.items()}


def _name(level: Level) -> str:
    return f"share_{level.resolution}"


# Series over time


def _segments(session: Session) -> pa.Table:
    import pyarrow as pa

    arrivals = session.arrivals
    return pa.table(
        {
            "t_s": pa.array([arrival.done_s for arrival in arrivals], pa.float64()),
            "index": pa.array([arrival.request.index for arrival in arrivals], pa.int64()),
            "chunk": pa.array([arrival.request.chunk for arrival in arrivals], pa.int64()),
            "level": pa.array([arrival.request.level for arrival in arrivals], pa.int64()),
            "bytes": pa.array([arrival.request.bytes for arrival in arrivals], pa.int64()),
            "requested_s": pa.array([arrival.requested_s for arrival in arrivals], pa.float64()),
            "first_byte_s": pa.array([arrival.first_byte_s for arrival in arrivals], pa.float64()),
            "done_s": pa.array([arrival.done_s for arrival in arrivals], pa.float64()),
            "buffer_s": pa.array([arrival.buffer_s for arrival in arrivals], pa.float64()),
            "buffer_after_s": pa.array([arrival.buffer_after_s for arrival in arrivals], pa.float64()),
            "estimate_kbps": pa.array([arrival.estimate_kbps for arrival in arrivals], pa.float64()),
        }
    )


def _stalls(session: Session) -> pa.Table:
    import pyarrow as pa

    startup_s = session.startup_s
    startup = [] if startup_s is None else [Stall(media_s=0.0, length_s=startup_s, end_s=startup_s)]
    stalls = [*startup, *session.stalls]
    columns = {
        "t_s": [stall.media_s for stall in stalls],
        "length_s": [stall.length_s for stall in stalls],
        "end_s": [stall.end_s for stall in stalls],
    }
    return pa.table({name: pa.array(values, pa.float64()) for name, values in columns.items()})


def _given_up(session: Session) -> pa.Table:
    import pyarrow as pa

    given_up = session.given_up
    return pa.table(
        {
            "t_s": pa.array([item.done_s for item in given_up], pa.float64()),
            "index": pa.array([item.request.index for item in given_up], pa.int64()),
            "level": pa.array([item.request.level for item in given_up], pa.int64()),
            "bytes": pa.array([item.bytes for item in given_up], pa.int64()),
            "requested_s": pa.array([item.requested_s for item in given_up], pa.float64()),
        }
    )


def series(session: Session) -> dict[tuple[str, str], pa.Table]:
    """Return the series of each session, by endpoint and name.

    `segments` has a row for each object that arrived. In `stalls`, t_s is the place in the video, end_s the
    time at which the stall ended, and the first row is the time before the first picture. `given_up` exists
    if segments were given up: its `bytes` are those that had arrived.
    """
    tables = {("client", "segments"): _segments(session), ("client", "stalls"): _stalls(session)}
    return tables | ({("client", "given_up"): _given_up(session)} if session.given_up else {})
