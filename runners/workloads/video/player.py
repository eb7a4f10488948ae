"""A player of DASH video, without a network and without a clock: times go in, requests come out.

It asks for one segment after another, each when the one before has arrived and its buffer has room. It plays
as soon as so many segments are there, and stalls when its buffer is empty, until the next segment is whole.

It may give up a segment that comes too slowly, and ask for it again at a lower level (`abandon`).

A live video is there in chunks, each from the time at which its last picture was taken. The player asks for
one chunk after another, plays from the first one on, and wants to show each picture `live_latency_s` after it
was taken. It plays faster while it is later than that, and skips to the present where it is far too late.

The video's rates need no room in the link: a viewer leaves when twice the video's length has passed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from fecbench.runners.workloads.video.abandon import TELL_EVERY_S, Download
from fecbench.runners.workloads.video.abr import RULES, View, estimated
from fecbench.runners.workloads.video.ladder import Ladder

PATIENCE = 2.0
"""A viewer leaves after so many times the video's length."""
CHUNK_S = 0.5
"""Length of a chunk of live video."""
CATCHING_UP = 1.1
"""A player of live video plays so much faster while it is late."""
SKIPS_AFTER_S = 4.0
"""A player of live video that is later than it wants by this skips to the present."""
NOTHING_S = 1e-9
"""A shorter time is none: sums of times are rounded."""


@dataclass(frozen=True)
class Settings:
    """Settings of a session, besides the ladder."""

    abr: str
    start_segments: int
    buffer_s: float
    live_latency_s: float = 0.0
    """Latency of live video; 0: the video is not live."""
    level: int = 0
    """Level of the rule `fixed`."""
    abandon: bool = False
    """Whether a segment is given up that comes too slowly."""

    @property
    def is_live(self) -> bool:
        return self.live_latency_s > 0


@dataclass(frozen=True)
class Request:
    """A request of a player, and its time: seconds since the session began."""

    at_s: float
    index: int
    """Number of the segment."""
    chunk: int
    level: int
    bytes: int
    tell_every_s: float | None = None
    """Interval at which the player wants progress reports; None: none."""


@dataclass(frozen=True)
class GivenUp:
    """A segment that was given up, and asked for again."""

    request: Request
    bytes: int
    """Bytes that had arrived."""
    requested_s: float
    done_s: float


@dataclass(frozen=True)
class Arrival:
    """A segment, or a chunk of one, that has arrived. Times are seconds since the session began."""

    request: Request
    requested_s: float
    first_byte_s: float
    done_s: float
    buffer_s: float
    """Buffer at that time, before the object was whole."""
    buffer_after_s: float
    estimate_kbps: float
    """Estimate of the throughput, this object included."""


@dataclass(frozen=True)
class Stall:
    """A time in which the picture stands still."""

    media_s: float
    """Place in the video."""
    length_s: float
    end_s: float
    """Time at which the picture moved again, or the viewer left."""


@dataclass
class Session:
    """Events of a session so far."""

    arrivals: list[Arrival] = field(default_factory=list)
    given_up: list[GivenUp] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    startup_s: float | None = None
    """Time at which the first picture was shown; None: not yet."""
    ended_s: float | None = None
    """Time at which the last picture was shown, or the viewer left; None: the session goes on."""
    played_s: float = 0.0
    """Media that was shown."""
    skipped_s: float = 0.0
    """Media that was passed over."""
    left: bool = False
    """Whether the viewer left before the end."""
    path: list[tuple[float, float]] = field(default_factory=list)
    """Times, and where in the video the player was then; straight lines between them."""


class Player:
    """A player of one video: `request` is due now, `arrived` takes the answer, until there is no request.

    The object on its way may be watched: `progressed` returns whether to give it up, `gave_up` records that.
    """

    def __init__(self, ladder: Ladder, settings: Settings) -> None:
        self._ladder, self._settings = ladder, settings
        self.session = Session()
        self.leaves_s = PATIENCE * ladder.duration_s
        """Latest time at which the viewer leaves."""
        self._view = View(
            kbps=tuple(level.kbps for level in ladder.levels),
            segment_s=ladder.segment_s,
            buffer_most_s=settings.buffer_s,
            fixed=settings.level,
        )
        self._now_s = self._position_s = self._end_s = 0.0
        """The time, the place in the video that is shown, and the place up to which it has arrived."""
        self._stalled_since_s: float | None = None
        self._chunks = math.ceil(ladder.segment_s / CHUNK_S) if settings.is_live else 1
        self._next = (0, 0)
        """The segment of the next request, and its chunk."""
        self._download = Download(0, 0)
        """The object on its way."""
        self.instead: int | None = None
        """The level to which it is given up, once that is decided."""
        self.request: Request | None = self._decide()
        """The request that is due now, or later; None: no more requests."""

    def arrived(self, requested_s: float, first_byte_s: float, done_s: float) -> None:
        """The request was answered, at these times since the session began."""
        request = self.request
        assert request is not None
        self._advance(done_s)
        self.instead = None
        before_s = self.buffer_s
        sample_kbps = 8e-3 * request.bytes / max(done_s - requested_s, NOTHING_S)
        self._view.estimate_kbps = estimated(self._view.estimate_kbps, sample_kbps)
        self._view.level = request.level
        self._end_s = self._end_of(request.index, request.chunk)
        self.session.arrivals.append(
            Arrival(
                request=request,
                requested_s=requested_s,
                first_byte_s=first_byte_s,
                done_s=done_s,
                buffer_s=before_s,
                buffer_after_s=self.buffer_s,
                estimate_kbps=self._view.estimate_kbps,
            )
        )
        last = request.chunk + 1 == self._chunks
        self._next = (request.index + 1, 0) if last else (request.index, request.chunk + 1)
        self._show()
        self.request = self._decide()

    def progressed(self, received: int, now_s: float) -> bool:
        """Return whether the object on its way is to be given up, of which so much has come at this time."""
        self._advance(now_s)
        if self.instead is not None or self._has_given_up:
            return False
        view = self._view
        self.instead = self._download.instead(view.kbps, view.segment_s, self.buffer_s, received, now_s)
        return self.instead is not None

    def gave_up(self, received: int, requested_s: float, done_s: float) -> None:
        """Record that the object on its way was given up, with so many bytes received, at these times."""
        request = self.request
        assert request is not None
        assert self.instead is not None
        self._advance(done_s)
        self.session.given_up.append(GivenUp(request, received, requested_s, done_s))
        level, self.instead = self.instead, None
        at_s = self._now_s
        self.request = None if at_s >= self.leaves_s else self._ask(at_s, request.index, request.chunk, level)

    @property
    def buffer_s(self) -> float:
        """Video that has arrived and was not shown."""
        return self._end_s - self._position_s

    @property
    def _has_given_up(self) -> bool:
        """Whether it has done so with the segment that is on its way."""
        given_up, request = self.session.given_up, self.request
        return bool(given_up) and request is not None and given_up[-1].request.index == request.index

    def end(self) -> Session:
        """The session to its end: what has arrived is shown, or the viewer has left."""
        session = self.session
        rest_s = math.inf if self.request is not None else self._time_to_show(self.buffer_s)
        self._advance(min(self._now_s + rest_s, self.leaves_s))
        if self._stalled_since_s is not None:
            self._end_stall()
        session.ended_s, session.played_s = self._now_s, self._position_s - session.skipped_s
        session.left = self.request is not None or self.buffer_s > NOTHING_S
        return session

    # Requests

    def _decide(self) -> Request | None:
        """The next request. A live video may be skipped for it."""
        index, chunk = self._next
        if self._settings.is_live and chunk == 0:
            index = self._skip(index)
        if index >= self._ladder.segments:
            return None
        at_s = max(self._now_s, self._has_room_s(), self._is_there_s(index, chunk))
        if at_s >= self.leaves_s:
            return None
        self._advance(at_s)
        self._view.buffer_s = self.buffer_s
        level = self._view.level
        if chunk == 0 or level is None:
            level = RULES[self._settings.abr](self._view)
        return self._ask(at_s, index, chunk, level)

    def _ask(self, at_s: float, index: int, chunk: int, level: int) -> Request:
        size = self._bytes(index, chunk, level)
        self._download = Download(level, size)
        often_s = TELL_EVERY_S if self._settings.abandon else None
        return Request(at_s, index, chunk, level, size, often_s)

    def _has_room_s(self) -> float:
        """Return when the buffer has room for one more object: now, or once enough was played."""
        more_s = self._ladder.segment_s if self._chunks == 1 else CHUNK_S
        over_s = self.buffer_s + more_s - self._settings.buffer_s
        if over_s <= NOTHING_S or not self._plays:
            return self._now_s
        return self._now_s + self._time_to_show(over_s)

    def _is_there_s(self, index: int, chunk: int) -> float:
        """Return when a chunk of a live video exists. Any other video exists from the beginning."""
        if not self._settings.is_live:
            return 0.0
        return self._end_of(index, chunk) - self._settings.live_latency_s

    def _skip(self, index: int) -> int:
        """The segment that is asked for next: not this one, when the player is far too late."""
        if self._now_s - self._position_s <= SKIPS_AFTER_S:
            return index
        # From its beginning on it is at most a segment too late, and catches up.
        present = math.floor(self._now_s / self._ladder.segment_s)
        if present <= index:
            return index
        there_s = min(present * self._ladder.segment_s, self._ladder.duration_s)
        self.session.skipped_s += there_s - self._position_s
        self._position_s = self._end_s = there_s
        self.session.path.append((self._now_s, self._position_s))
        if self._plays:
            self._stalled_since_s = self._now_s
        return present

    def _end_of(self, index: int, chunk: int) -> float:
        """Return the place in the video at which a chunk ends."""
        begins_s, length_s = index * self._ladder.segment_s, self._ladder.segment_s
        return begins_s + (length_s if chunk + 1 == self._chunks else (chunk + 1) * CHUNK_S)

    def _bytes(self, index: int, chunk: int, level: int) -> int:
        """Return the size of a chunk. Chunks of a segment have one size, except for the last."""
        size = self._ladder.levels[level].sizes[index]
        chunk_size = max(1, size // self._chunks)
        return chunk_size if chunk + 1 < self._chunks else max(1, size - chunk_size * (self._chunks - 1))

    # Playback

    @property
    def _plays(self) -> bool:
        return self.session.startup_s is not None and self._stalled_since_s is None

    def _show(self) -> None:
        """Something has arrived: begin, or go on."""
        session, segments = self.session, self._next[0]
        if session.startup_s is None:
            enough = self._settings.is_live or segments >= min(
                self._settings.start_segments, self._ladder.segments
            )
            if enough:
                session.startup_s = self._now_s
                session.path.append((self._now_s, self._position_s))
        elif self._stalled_since_s is not None:
            self._end_stall()

    def _end_stall(self) -> None:
        assert self._stalled_since_s is not None
        length_s = self._now_s - self._stalled_since_s
        self.session.stalls.append(Stall(self._position_s, length_s, self._now_s))
        self.session.path.append((self._now_s, self._position_s))
        self._stalled_since_s = None

    def _advance(self, to_s: float) -> None:
        """Show the video until a time."""
        if not self._plays or to_s <= self._now_s:
            self._now_s = max(self._now_s, to_s)
            return
        shows_s = self._time_to_show(self.buffer_s)
        until_s = min(to_s, self._now_s + shows_s)
        self._play(until_s)
        if to_s - until_s > NOTHING_S:
            self._position_s = self._end_s  # to the last picture, however times are rounded
            if self._end_s < self._ladder.duration_s - NOTHING_S:
                self._stalled_since_s = until_s
        self._now_s = to_s

    def _play(self, until_s: float) -> None:
        late_s = self._late_s
        catching_s = min(late_s / (CATCHING_UP - 1), until_s - self._now_s)
        if catching_s > 0:
            self._position_s = min(self._end_s, self._position_s + CATCHING_UP * catching_s)
            self._now_s += catching_s
            self.session.path.append((self._now_s, self._position_s))
        self._position_s = min(self._end_s, self._position_s + max(0.0, until_s - self._now_s))
        self._now_s = until_s
        self.session.path.append((self._now_s, self._position_s))

    def _time_to_show(self, media_s: float) -> float:
        """Return how long it takes from now on to show so much of the video."""
        catching_s = self._late_s / (CATCHING_UP - 1)
        if media_s <= CATCHING_UP * catching_s:
            return media_s / CATCHING_UP
        return catching_s + media_s - CATCHING_UP * catching_s

    @property
    def _late_s(self) -> float:
        """The lateness of a live video beyond the intended latency: its picture of time t should be shown at
        t."""
        return max(0.0, self._now_s - self._position_s) if self._settings.is_live else 0.0


def latencies_s(session: Session, settings: Settings, step_s: float = 0.01) -> Sequence[float]:
    """Return the latencies of a live video at regular times from the first picture to the last."""
    import numpy as np

    assert session.startup_s is not None and session.ended_s is not None
    times, places = np.array(session.path).T
    at_s = np.arange(session.startup_s, session.ended_s, step_s)
    # Where two places have one time, the video was skipped: the later one holds from there on.
    latencies: Sequence[float] = at_s + settings.live_latency_s - np.interp(at_s, times, places)
    return latencies
