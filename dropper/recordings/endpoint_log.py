"""Losses by an endpoint's own log: what it sent after the handshake, and what it declared lost.

A packet that was declared lost and then acknowledged was not lost. Where a log has the number of losses and
not which packets they were, those count that no acknowledgement has. An event of loss that cannot be read is
a refusal.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fecbench.dropper.recordings.course import Course, of_acknowledgements
from fecbench.dropper.recordings.recording import MOST_PACKETS, Direction, Recording, Verdicts
from fecbench.errors import BadInput
from fecbench.quantities import counted

DATA, EARLY_DATA = "1rtt", "0rtt"
"""Kinds of packets that share the numbers of application data."""
_DIRECTIONS: dict[str, Direction] = {"server": "down", "client": "up"}


Range = tuple[int, int]


@dataclass
class EndpointLog:
    """The packets of one endpoint of one connection, as its log has them."""

    name: str = ""
    """The endpoint, for a person."""
    vantage: str = ""
    """`server` or `client`; empty where the log does not say."""
    sent: list[int] = field(default_factory=list)
    """Numbers after the handshake, in their order."""
    sent_otherwise: set[int] = field(default_factory=set)
    """Numbers of packets of the handshake and of 0-RTT."""
    lost: set[int] = field(default_factory=set)
    spurious: set[int] = field(default_factory=set)
    probes: set[int] = field(default_factory=set)
    """Probes of the MTU, which were lost for their size."""
    arrived: list[Range] = field(default_factory=list)
    """Ranges of numbers that were acknowledged, both ends included."""
    acknowledged: list[Range] = field(default_factory=list)
    """Ranges of ACKs as they are written: mostly with both ends, by noq without the last one."""
    half_open: bool = False
    """Whether ranges are without their last number."""
    largest: int = -1
    """The largest number of application data that was sent."""
    paths: set[str] = field(default_factory=set)
    uncounted: int = 0
    """Losses of which the log has the number alone."""
    unsure: list[int] = field(default_factory=list)
    """Numbers that were lost, of packets whose kind the log does not say."""
    sent_at: list[tuple[float, int]] = field(default_factory=list)
    """The time (s) and the size (bytes) of each of `sent`; NaN and 0 where the log does not say."""
    acks_at: list[tuple[float, list[Range]]] = field(default_factory=list)
    """The time (s) of each ACK, and its ranges as they are in `acknowledged` or in `arrived`."""
    received: list[tuple[float, int]] = field(default_factory=list)
    """The time (s) and the size (bytes) of each packet of application data that was received."""

    @property
    def has_packets(self) -> bool:
        return bool(self.sent or self.lost or self.unsure or self.uncounted)

    def send(
        self, kind: str, number: int, path: str = "", at_s: float = math.nan, size_bytes: int = 0
    ) -> None:
        if kind in (DATA, EARLY_DATA):
            self.largest = max(self.largest, number)
        if kind == DATA:
            self.sent.append(number)
            self.sent_at.append((at_s, size_bytes))
            self.paths |= {path} - {""}
        else:
            self.sent_otherwise.add(number)

    def acknowledge(self, ranges: Iterable[Range], at_s: float = math.nan) -> None:
        """Add the ranges of an ACK, in the order of the log.

        Between two ranges of an ACK, a number is missing, and none is above what was sent: otherwise the last
        one of each is not meant.
        """
        spans = sorted(ranges) if self.largest >= 0 else []
        touching = any(after[0] == before[1] + 1 for before, after in pairwise(spans))
        self.half_open |= touching or any(last > self.largest for _, last in spans)
        self.acknowledged += spans
        if not math.isnan(at_s):
            self.acks_at.append((at_s, spans))

    def lose(self, kind: str, number: int, is_probe: bool = False) -> None:
        if kind == "":
            self.unsure.append(number)
        elif kind == DATA:
            (self.probes if is_probe else self.lost).add(number)

    def recording(self) -> Recording:
        """Return the losses. Raises BadInput, without the name of the file."""
        if len(self.sent) > MOST_PACKETS:
            raise BadInput(f"has more than {MOST_PACKETS} packets")
        sent = np.array(self.sent, dtype=np.uint64)
        self._require_readable()
        lost = self.lost | self._decided()
        if missing := lost - set(self.sent) - self.sent_otherwise:
            raise BadInput(
                f"packet {min(missing)} was lost, and no event says that it was sent: events of sent packets"
                " are missing"
            )
        source, direction, notes = self.name, _DIRECTIONS.get(self.vantage), list[str]()
        acknowledged = _within(sent, self.acknowledged, 1 if self.half_open else 0)
        acknowledged |= _within(sent, self.arrived, 0)
        if not lost and not self.spurious and not self.probes and acknowledged.any():
            behind = sent < sent[acknowledged].max()
            if (~acknowledged & behind).any():
                note = "It names no lost packet: those count that no ACK has, up to the last that one has."
                is_counted = acknowledged | behind
                course = self._course(is_counted)
                return Recording(~acknowledged[is_counted], source, direction, (note,), course)
        if self.uncounted and not lost and not acknowledged.any():
            raise BadInput(
                f"{counted(self.uncounted, 'packet', 'was/were')} lost, and neither events nor"
                " received ACKs say which"
            )
        if self.uncounted and not lost:
            notes.append(
                f"It counts {counted(self.uncounted, 'loss')}, and ACKs have all packets but those"
                " of the end."
            )
        declared = np.isin(sent, np.array(sorted(lost), dtype=np.uint64))
        spurious = declared & (acknowledged | np.isin(sent, np.array(sorted(self.spurious), dtype=np.uint64)))
        probes = np.isin(sent, np.array(sorted(self.probes), dtype=np.uint64))
        unknown = ~acknowledged & ~declared & ~probes if acknowledged.any() else np.zeros_like(declared)
        notes += _notes(spurious, probes, unknown)
        verdicts = (declared & ~spurious)[~probes]
        return Recording(verdicts, source, direction, tuple(notes), self._course(~probes))

    def _course(self, kept: Verdicts) -> Course | None:
        """The course of these of the packets; None where the log has no times."""
        if not self.sent_at or any(math.isnan(at_s) for at_s, _ in self.sent_at):
            return None
        return of_acknowledgements(
            [number for number, is_kept in zip(self.sent, kept, strict=True) if is_kept],
            [at for at, is_kept in zip(self.sent_at, kept, strict=True) if is_kept],
            self.acks_at,
            1 if self.half_open else 0,
            self.received,
        )

    def _require_readable(self) -> None:
        if not self.sent:
            if self.lost or self.unsure or self.uncounted:
                raise BadInput("has events of loss and none of packet_sent: which packets came is not known")
            raise BadInput("has no packet that was sent after the handshake")
        if len(self.paths) > 1:
            raise BadInput(
                f"has packets of {len(self.paths)} paths, which lose each its own: one path is read"
            )
        if len(set(self.sent)) < len(self.sent):
            raise BadInput("has the same packet numbers twice: are several connections in it?")

    def _decided(self) -> set[int]:
        """The losses of packets whose kind follows from their number alone."""
        sent, decided = set(self.sent), set()
        for number in self.unsure:
            if number in sent and number in self.sent_otherwise:
                raise BadInput(f"packet {number} was lost, and it does not say of which packet number space")
            if number not in self.sent_otherwise:
                decided.add(number)
        return decided


def _within(sent: NDArray[np.uint64], ranges: Iterable[Range], not_meant: int) -> Verdicts:
    """Return which numbers are in one of the ranges, less their last `not_meant` numbers."""
    spans = sorted({(first, last - not_meant) for first, last in ranges if last - not_meant >= first})
    if not spans:
        return np.zeros(sent.size, dtype=np.bool_)
    first = np.array([span[0] for span in spans], dtype=np.uint64)
    last = np.maximum.accumulate(np.array([span[1] for span in spans], dtype=np.uint64))
    place = np.searchsorted(first, sent, side="right")
    within: Verdicts = (place > 0) & (sent <= last[np.maximum(place, 1) - 1])
    return within


def _notes(spurious: Verdicts, probes: Verdicts, unknown: Verdicts) -> Iterable[str]:
    if count := int(unknown.sum()):
        yield (
            f"{counted(count, 'packet', 'was/were')} neither acknowledged nor declared lost: they count"
            " as received."
        )
    if count := int(spurious.sum()):
        yield (
            f"{counted(count, 'packet', 'was/were')} declared lost and came all the same: they do not"
            " count as losses."
        )
    if count := int(probes.sum()):
        yield f"{count} lost probes of the MTU are left out: they were lost for their size."


def chosen(logs: list[EndpointLog], trace: int | None) -> Recording:
    """Return the recording of one of several logs: the only one with packets, or the one of that number.

    Raises BadInput, without the name of the file.
    """
    if trace is not None and not 1 <= trace <= len(logs):
        raise BadInput(f"has {len(logs)} recordings: there is none with number {trace}")
    candidates = [log for log in logs if log.has_packets]
    if trace is None and len(candidates) > 1:
        numbers = [number for number, log in enumerate(logs, 1) if log.has_packets]
        listed = [
            f"{number}: {log.name or 'nameless'}, {counted(len(log.sent), 'packet')} sent"
            for number, log in zip(numbers, candidates, strict=True)
        ]
        more = f", and {len(listed) - _MOST_LISTED} more" if len(listed) > _MOST_LISTED else ""
        raise BadInput(
            f"has {len(listed)} recordings; choose one by --trace NUMBER"
            f" ({'; '.join(listed[:_MOST_LISTED])}{more})"
        )
    log = logs[trace - 1] if trace is not None else (candidates or logs or [EndpointLog()])[0]
    return log.recording()


_MOST_LISTED = 6
