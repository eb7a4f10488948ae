"""DualPI2 in the link's C core, against the procedures of RFC 9332, Appendix A, written anew in Python."""

import ctypes
import itertools
import random
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topologies.test_codel import Packet
from tests.topologies.test_link_core import ACCEPTED, DUALPI2, MS, Lane, core, run
from tests.topologies.test_marking import BYTE_NS, CE, ECT_0, ECT_1, NOT_CAPABLE, RATE_BPS

__all__ = ["core"]

TARGET, UPDATE, MIN_TH, RANGE = 15 * MS, 15 * MS, 800_000, 400_000
ALPHA, BETA, COUPLING = Fraction(15, 100), Fraction(3), 2
GRAIN = 2**48
"""Probabilities are whole numbers of such parts, rounded towards 0."""


def grains(probability: Fraction) -> Fraction:
    return Fraction(int(probability * GRAIN), GRAIN)


@dataclass
class Aqm:
    """dualpi2_enqueue(), dualpi2_dequeue() and dualpi2_update(), with the overload code."""

    codepoints: list[int]
    lq: deque[Packet] = field(default_factory=deque)
    cq: deque[Packet] = field(default_factory=deque)
    counts: dict[str, Fraction] = field(default_factory=lambda: {"l": Fraction(0), "c": Fraction(0)})
    base: Fraction = Fraction(0)
    last_wait: int = 0
    next_update: int | None = None
    balance: int = 0
    lost: list[int] = field(default_factory=list)

    def update_until(self, now: int) -> None:
        if self.next_update is None:
            self.next_update = now + UPDATE
        for at in range(self.next_update, now + 1, UPDATE):
            wait = max((at - queue[0].arrived for queue in (self.lq, self.cq) if queue), default=0)
            per_second = ALPHA * (wait - TARGET) + BETA * (wait - self.last_wait)
            self.base = min(max(self.base + grains(per_second / 10**9), Fraction(0)), Fraction(1))
            self.last_wait, self.next_update = wait, at + UPDATE

    def enqueue(self, packet: Packet) -> None:
        self.update_until(packet.arrived)
        (self.lq if self.codepoints[packet.index] % 2 else self.cq).append(packet)

    def recur(self, queue: str, likelihood: Fraction) -> bool:
        self.counts[queue] += likelihood
        if self.counts[queue] > 1:
            self.counts[queue] -= 1
            return True
        return False

    def laqm(self, wait: int) -> Fraction:
        if not self.lq or wait <= MIN_TH:
            return Fraction(0)
        return Fraction(1) if wait >= MIN_TH + RANGE else (wait - MIN_TH) * grains(Fraction(1, RANGE))

    def chooses_l4s(self) -> bool:
        """Weighted round robin, 15 bytes to 1, while both have packets."""
        if not (self.lq and self.cq):
            self.balance = 0
            return bool(self.lq)
        if self.balance >= 0:
            self.balance -= self.lq[0].length
            return True
        self.balance += 15 * self.cq[0].length
        return False

    def dequeue(self, now: int) -> Packet | None:
        self.update_until(now)
        while self.lq or self.cq:
            classic = grains(self.base**2)
            if self.chooses_l4s():
                packet = self.lq.popleft()
                coupled = min(COUPLING * self.base, Fraction(1))
                native = self.laqm(now - packet.arrived)
                if coupled == 1 and self.recur("l", classic):
                    self.lost.append(packet.index)
                    continue
                if self.recur("l", max(native, coupled)):
                    self.codepoints[packet.index] = CE
                return packet
            packet = self.cq.popleft()
            if self.recur("c", classic):
                if self.codepoints[packet.index] == NOT_CAPABLE or classic >= Fraction(1, COUPLING**2):
                    self.lost.append(packet.index)
                    continue
                self.codepoints[packet.index] = CE
            return packet
        return None


def expected(arrivals: list[int], lengths: list[int], codepoints: list[int]) -> tuple[dict[int, int], Aqm]:
    """Return when each packet that gets through leaves the transmitter, and what became of the others."""
    aqm, sent, free = Aqm(list(codepoints)), {}, 0
    coming = deque(map(Packet, itertools.count(), arrivals, lengths))
    while coming or aqm.lq or aqm.cq:
        # A packet that comes when the transmitter becomes free comes behind that turn.
        if coming and (not (aqm.lq or aqm.cq) or coming[0].arrived < free):
            packet = coming.popleft()
            aqm.enqueue(packet)
            if packet.arrived < free:
                continue
            free = packet.arrived
        if packet := aqm.dequeue(free):
            free = sent[packet.index] = free + packet.length * BYTE_NS
    return sent, aqm


LANE = Lane(RATE_BPS, MS, queue_packets=10**6, queue=DUALPI2, ecn=True)


def agrees(
    core: ctypes.CDLL, arrivals: list[int], lengths: list[int], codepoints: list[int], looks: list[int]
) -> tuple[int, int]:
    """Return how many packets were marked and dropped: the same ones in both."""
    result = run(core, LANE, arrivals, lengths, looks, codepoints=codepoints)
    sent, aqm = expected(arrivals, lengths, codepoints)
    assert {n: exit_ns - MS for n, exit_ns in enumerate(result.exits) if result.order[n]} == sent
    assert [n for n, place in enumerate(result.order) if not place] == sorted(aqm.lost)
    assert result.codepoints == aqm.codepoints
    assert set(result.fates) == {ACCEPTED} and result.outcome.conserved
    assert result.outcome.queue_dropped == len(aqm.lost)
    return result.outcome.marked, len(aqm.lost)


loads = st.lists(
    st.tuples(
        *(st.integers(1, 150), st.integers(0, 2 * MS)),
        st.sampled_from([[ECT_1], [ECT_0, ECT_1], [NOT_CAPABLE], [NOT_CAPABLE, ECT_0, ECT_1, CE]]),
    ),
    min_size=1,
    max_size=6,
)


@given(loads, st.integers(0, 99), st.lists(st.integers(0, 10**9), max_size=20))
@settings(max_examples=80, deadline=None)
def test_dualpi2_sends_marks_and_drops_what_the_rfc_does(
    core: ctypes.CDLL, load: list[tuple[int, int, list[int]]], seed: int, looks: list[int]
) -> None:
    dice = random.Random(seed)
    arrivals = list(itertools.accumulate(gap for count, gap, _ in load for _ in range(count)))
    codepoints = [dice.choice(among) for count, _, among in load for _ in range(count)]
    agrees(core, arrivals, [dice.randrange(60, 1515) for _ in arrivals], codepoints, sorted(looks))


def test_dualpi2_marks_and_drops_in_long_overload_and_after_a_rest_as_the_rfc_does(core: ctypes.CDLL) -> None:
    for seed, load in enumerate([1.1, 1.5, 2.5, 4]):
        dice = random.Random(seed)
        gaps = [int(1000 * BYTE_NS / load) for _ in range(1500)]
        gaps[700] = 20 * 10**9
        codepoints = [dice.choice([NOT_CAPABLE, ECT_0, ECT_1]) for _ in gaps]
        marked, dropped = agrees(core, list(itertools.accumulate(gaps)), [1000] * 1500, codepoints, [])
        assert marked > 50 and dropped > 5


@pytest.mark.parametrize("load", [1.02, 1.1, 1.3, 1.6, 2.0])
def test_dualpi2_drops_the_share_of_an_overload_and_marks_scalable_senders_by_twice_its_root(
    core: ctypes.CDLL, load: float
) -> None:
    """Section 2.1: p_C = p'^2 and p_CL = 2 p'. Classic packets cannot be marked; one in fifty is scalable."""
    count = 60_000
    gap_ns = 1000 * BYTE_NS / load
    arrivals = [int(n * gap_ns) for n in range(count)]
    codepoints = [ECT_1 if n % 50 == 0 else NOT_CAPABLE for n in range(count)]
    result = run(core, LANE, arrivals, [1000] * count, codepoints=codepoints)
    classic = [n for n in range(10_000, count) if codepoints[n] == NOT_CAPABLE]
    scalable = [n for n in range(10_000, count) if codepoints[n] == ECT_1]
    drop_share = sum(not result.order[n] for n in classic) / len(classic)
    fits = 1 / load - 1 / 50
    if load < 1.34:  # below p_C = 25 %, scalable packets are only marked
        assert drop_share == pytest.approx(1 - fits / (1 - 1 / 50), rel=0.05)
        marked_share = sum(result.codepoints[n] == CE for n in scalable) / len(scalable)
        assert marked_share == pytest.approx(min(1, 2 * drop_share**0.5), rel=0.05)
    else:
        assert sum(not place for place in result.order[10_000:]) / (count - 10_000) == pytest.approx(
            1 - 1 / load, rel=0.05
        )


def test_scalable_packets_wait_for_a_millisecond_while_classic_ones_wait_for_fifteen(
    core: ctypes.CDLL,
) -> None:
    """A classic overload, and a scalable sender with a twentieth of the rate."""
    count = 30_000
    arrivals = [int(n * 1000 * BYTE_NS / 1.1) for n in range(count)]
    codepoints = [ECT_1 if n % 20 == 0 else NOT_CAPABLE for n in range(count)]
    result = run(core, LANE, arrivals, [1000] * count, codepoints=codepoints)
    waits: dict[int, list[int]] = {ECT_1: [], NOT_CAPABLE: []}
    for n in range(10_000, count):
        if result.order[n]:
            waits[codepoints[n]].append(result.exits[n] - arrivals[n] - 2 * MS)
    assert max(waits[ECT_1]) <= 2 * MS
    assert sorted(waits[NOT_CAPABLE])[len(waits[NOT_CAPABLE]) // 2] == pytest.approx(TARGET, rel=0.2)


def test_a_queue_of_scalable_packets_marks_from_its_threshold_on(core: ctypes.CDLL) -> None:
    """Packets of a tenth of a millisecond come in pairs, tens and thirties, with pauses between."""
    for burst, marks in ((2, False), (9, False), (13, True), (30, True)):
        arrivals = [n // burst * 10 * MS for n in range(20 * burst)]
        result = run(core, LANE, arrivals, [100] * len(arrivals), codepoints=[ECT_1] * len(arrivals))
        assert (result.outcome.marked > 0) == marks
    assert result.outcome.marked == pytest.approx(20 * (30 - 12), abs=60)


def test_a_classic_queue_is_not_starved_before_the_controller_knows_of_the_overload(
    core: ctypes.CDLL,
) -> None:
    """Scalable senders that answer to nothing: the classic queue has a sixteenth of the bytes."""
    count = 3000
    arrivals = [n * 100 * BYTE_NS // 3 for n in range(count)]
    codepoints = [ECT_0 if n % 3 == 0 else ECT_1 for n in range(count)]
    result = run(core, LANE, arrivals, [100] * count, end_ns=arrivals[-1], codepoints=codepoints)
    through = [n for n in range(count) if result.order[n]]
    share = sum(n % 3 == 0 for n in through) / len(through)
    assert len(through) > 900
    assert share == pytest.approx(1 / 16, rel=0.1)
