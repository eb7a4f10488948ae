"""The wake-ups of the wire for frames: the law of its alarm, with a clock that the test sets."""

import ctypes
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

SOURCE = Path(__file__).parent.parent.parent / "topologies" / "wire" / "waking.c"
SHARE = 0.01
SAVED_NS = 500_000
BEGUN_NS = 10**12


class Waking(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("margin_ns", "budget_ns", "spun_ns", "counted_ns"))


@pytest.fixture(scope="module")
def waking(shared_library: Callable[..., ctypes.CDLL]) -> Callable[[], "Sleeper"]:
    library = shared_library(SOURCE)
    library.waking_alarm.restype = ctypes.c_uint64
    return lambda: Sleeper(library)


class Sleeper:
    """Waits for frames as the wire does; the machine takes as long to wake it as the test says."""

    def __init__(self, library: Any) -> None:
        self._library, self._state = library, Waking()
        self.now_ns = BEGUN_NS
        self.spun_ns = 0
        self._call("init", self.now_ns)

    def wait(self, wait_ns: int, waking_ns: int) -> int:
        """Wait for a frame that is due then; how late it leaves."""
        due_ns = self.now_ns + wait_ns
        alarm_ns = self._call("alarm", due_ns, self.now_ns)
        assert alarm_ns <= due_ns
        if alarm_ns > self.now_ns:
            self.now_ns = alarm_ns + waking_ns
            self._call("learn", waking_ns)
        late_ns = max(0, self.now_ns - due_ns)
        spun_ns = max(0, due_ns - self.now_ns)
        self._call("spend", spun_ns)
        self.spun_ns += spun_ns
        assert self._state.spun_ns == self.spun_ns, "what the report tells"
        self.now_ns += spun_ns
        return late_ns

    def _call(self, deed: str, *times: int) -> int:
        call = getattr(self._library, f"waking_{deed}")
        return int(call(ctypes.byref(self._state), *map(ctypes.c_uint64, times)))


@given(waits=st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(0, 200_000)), max_size=300))
def test_the_time_that_is_spun_is_a_hundredth_and_what_was_saved(
    waking: Callable[[], Sleeper], waits: list[tuple[int, int]]
) -> None:
    sleeper = waking()
    for wait_ns, waking_ns in waits:
        sleeper.wait(wait_ns, waking_ns)
        assert sleeper.spun_ns <= SAVED_NS + SHARE * (sleeper.now_ns - BEGUN_NS)


def test_frames_in_a_quick_row_use_up_what_may_be_spun_and_no_more(waking: Callable[[], Sleeper]) -> None:
    sleeper, rng = waking(), random.Random(1)
    for _ in range(20_000):
        sleeper.wait(60_000, rng.randrange(40_000))
    assert sleeper.spun_ns <= SAVED_NS + SHARE * (sleeper.now_ns - BEGUN_NS)
    assert sleeper.spun_ns > 0.9 * SHARE * (sleeper.now_ns - BEGUN_NS)


@pytest.mark.parametrize("waking_us", [(5, 10), (20, 40), (10, 90)])
def test_half_of_the_frames_leave_in_time_however_long_the_machine_takes_to_wake(
    waking: Callable[[], Sleeper], waking_us: tuple[int, int]
) -> None:
    sleeper, rng = waking(), random.Random(1)
    for _ in range(1000):
        sleeper.wait(100_000_000, rng.randrange(*(1000 * us for us in waking_us)))
    late = [
        sleeper.wait(100_000_000, rng.randrange(*(1000 * us for us in waking_us))) > 0 for _ in range(4000)
    ]
    assert 0.45 < sum(late) / len(late) < 0.55
