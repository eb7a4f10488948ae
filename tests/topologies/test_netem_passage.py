"""The passage of frames: which of those that entered a link is the one that leaves, by netem's clock."""

import ctypes
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fecbench.checkout import REPOSITORY

ENTRIES_MAX, PASSED_MAX = 1 << 18, 1 << 12


class Entry(ctypes.Structure):
    _fields_ = [("key", ctypes.c_uint64), ("at_ns", ctypes.c_uint64), ("has_left", ctypes.c_bool)]


class State(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("oldest", "waiting", "end")),
        ("entries", Entry * ENTRIES_MAX),
    ]


class Passage:
    def __init__(self, library: ctypes.CDLL, state: State) -> None:
        self._library, self._state = library, state
        self._library.passage_leave.restype = ctypes.c_uint64
        state.oldest = state.waiting = state.end = 0

    def enter(self, key: int, at_ns: int) -> None:
        self._library.passage_enter(ctypes.byref(self._state), ctypes.c_uint64(key), ctypes.c_uint64(at_ns))

    def leave(self, key: int) -> int:
        entered: int = self._library.passage_leave(ctypes.byref(self._state), ctypes.c_uint64(key))
        return entered


@pytest.fixture(scope="module")
def passage(shared_library: Callable[..., ctypes.CDLL]) -> Callable[[], Passage]:
    """passage(): one that nothing has entered. The one before ends."""
    library, state = shared_library(REPOSITORY / "topologies" / "clock" / "passage.c"), State()
    return lambda: Passage(library, state)


# Of each frame that enters: its key, whether it is dropped, and how many leave before it enters.
FRAMES = st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 4)), max_size=60)


def passed(passage: Passage, frames: list[tuple[int, bool, int]]) -> list[tuple[int, int, int]]:
    """Return the key of each frame that leaves, when it entered, and when it did by the passage."""
    queue: list[tuple[int, int]] = []
    exits = []

    def leave() -> None:
        key, entered_ns = queue.pop(0)
        exits.append((key, entered_ns, passage.leave(key)))

    for at_ns, (key, is_dropped, leaving) in enumerate(frames, start=1):
        for _ in range(min(leaving, len(queue))):
            leave()
        passage.enter(key, at_ns)
        if not is_dropped:
            queue.append((key, at_ns))
    while queue:
        leave()
    return exits


@given(FRAMES)
@settings(max_examples=300, deadline=None)
def test_each_frame_is_itself_where_none_of_its_key_is_dropped(
    passage: Callable[[], Passage], frames: list[tuple[int, bool, int]]
) -> None:
    dropped = {key for key, is_dropped, _ in frames if is_dropped}
    for key, entered_ns, found_ns in passed(passage(), frames):
        assert key in dropped or found_ns == entered_ns


@given(FRAMES)
@settings(max_examples=300, deadline=None)
def test_a_frame_is_one_of_its_key_that_entered_no_later_and_no_two_are_the_same(
    passage: Callable[[], Passage], frames: list[tuple[int, bool, int]]
) -> None:
    exits = passed(passage(), frames)
    assert all(0 < found_ns <= entered_ns for _, entered_ns, found_ns in exits)
    assert all(frames[found_ns - 1][0] == key for key, _, found_ns in exits)
    assert len({found_ns for _, _, found_ns in exits}) == len(exits)


@given(FRAMES)
@settings(max_examples=150, deadline=None)
def test_a_frame_is_the_oldest_that_can_have_left(
    passage: Callable[[], Passage], frames: list[tuple[int, bool, int]]
) -> None:
    last_ns = 0
    for key, _, found_ns in passed(passage(), frames):
        of_key = [at_ns for at_ns, frame in enumerate(frames, start=1) if frame[0] == key and at_ns > last_ns]
        assert found_ns == of_key[0]
        last_ns = found_ns


def test_a_frame_is_not_an_earlier_one_of_its_key_that_was_passed_over(
    passage: Callable[[], Passage],
) -> None:
    link = passage()
    for at_ns, key in enumerate((7, 8, 7), start=1):
        link.enter(key, at_ns)
    assert [link.leave(8), link.leave(7)] == [2, 3]


@given(st.permutations(range(1, 9)), st.integers(0, 100))
@settings(max_examples=100, deadline=None)
def test_frames_whose_order_two_cpus_have_swapped_are_themselves(
    passage: Callable[[], Passage], order: list[int], before: int
) -> None:
    link = passage()
    for number in range(before):
        link.enter(100 + number, 10**6 + number)
    for number in range(1, 9):
        link.enter(number, number)
    assert [link.leave(number) for number in order] == order


def test_a_frame_that_nobody_saw_enter_is_none_and_no_other_is_passed_over(
    passage: Callable[[], Passage],
) -> None:
    link = passage()
    assert link.leave(7) == 0
    link.enter(8, 1)
    assert [link.leave(7), link.leave(8), link.leave(8)] == [0, 1, 0]


def test_what_was_passed_over_long_ago_was_dropped(passage: Callable[[], Passage]) -> None:
    link = passage()
    for number in range(1, PASSED_MAX + 3):
        link.enter(number, number)
    assert link.leave(PASSED_MAX + 2) == PASSED_MAX + 2
    assert [link.leave(3), link.leave(2)] == [3, 0]


def test_a_link_that_holds_too_many_frames_forgets_the_oldest(passage: Callable[[], Passage]) -> None:
    link = passage()
    for number in range(1, ENTRIES_MAX + 2):
        link.enter(number, number)
    assert [link.leave(1), link.leave(2), link.leave(ENTRIES_MAX + 1)] == [0, 2, ENTRIES_MAX + 1]
