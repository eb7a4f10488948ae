"""The rest of a busy wire: none if it uses little CPU time, and long enough if it uses too much."""

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent.parent / "topologies" / "wire" / "rest.c"
LONGEST_NS = 40_000
TOO_MUCH = 0.85


class Rest(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("ns", "adapted_ns", "cpu_ns"))


class Machine:
    """A machine on which a link takes so much CPU time for each frame, and so much to wake."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library, self.rest = library, Rest()
        self.now_ns, self.cpu_ns = 10**12, 0
        library.rest_is_due.restype = ctypes.c_bool
        library.rest_init(ctypes.byref(self.rest), ctypes.c_uint64(self.now_ns), ctypes.c_uint64(self.cpu_ns))

    def carry(self, gap_ns: int, frame_ns: int = 3500, wake_ns: int = 14_000, asleep_ns: int = 2000) -> float:
        """Frames that come so far apart, for a second; the share of the processor that they took in its last
        half."""
        begun_ns, from_cpu_ns = self.now_ns, 0
        carried_ns = self.now_ns
        while self.now_ns < begun_ns + 10**9:
            if not from_cpu_ns and self.now_ns > begun_ns + 5 * 10**8:
                from_ns, from_cpu_ns = self.now_ns, self.cpu_ns
            due_ns = max(carried_ns + gap_ns, self.now_ns + self.rest.ns)
            if due_ns > self.now_ns:
                self._pass(max(0, due_ns - self.now_ns - wake_ns), 0)
                self._pass(wake_ns, wake_ns)
                self._pass(asleep_ns, 0)
            frames = max(1, (self.now_ns - carried_ns) // gap_ns)
            carried_ns += frames * gap_ns
            self._pass(frames * frame_ns, frames * frame_ns)
        return (self.cpu_ns - from_cpu_ns) / (self.now_ns - from_ns)

    def _pass(self, time_ns: int, cpu_ns: int) -> None:
        self.now_ns += time_ns
        self.cpu_ns += cpu_ns
        now_ns, rest = ctypes.c_uint64(self.now_ns), ctypes.byref(self.rest)
        if self._library.rest_is_due(rest, now_ns):
            self._library.rest_adapt(rest, now_ns, ctypes.c_uint64(self.cpu_ns))


@pytest.fixture
def machine(shared_library: Callable[..., ctypes.CDLL]) -> Machine:
    return Machine(shared_library(SOURCE))


def test_a_link_that_takes_little_does_not_rest(machine: Machine) -> None:
    assert machine.carry(gap_ns=100_000) < 0.2
    assert machine.rest.ns == 0


@pytest.mark.parametrize("gap_ns", [12_000, 8_000, 5_000])
def test_a_link_that_wakes_for_each_frame_rests_until_it_takes_less_than_the_kernel_allows(
    machine: Machine, gap_ns: int
) -> None:
    assert machine.carry(gap_ns) <= TOO_MUCH + 0.01


def test_a_link_rests_no_longer_once_its_traffic_is_over(machine: Machine) -> None:
    machine.carry(gap_ns=8_000)
    assert machine.rest.ns > 0
    machine.carry(gap_ns=1_000_000)
    assert machine.rest.ns == 0


def test_a_rest_is_short_even_where_the_frames_alone_take_the_processor(machine: Machine) -> None:
    machine.carry(gap_ns=3_600)
    assert machine.rest.ns == LONGEST_NS
