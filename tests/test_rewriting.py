"""Each worker loads every test module, and no two begin with the same ones."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.support.rewriting import own_part_first


@given(st.integers(0, 30), st.integers(1, 8))
def test_the_parts_that_workers_begin_with_are_all_modules_once(count: int, workers: int) -> None:
    names = [f"module {number}" for number in range(count)]
    orders = [own_part_first(names, worker, workers) for worker in range(workers)]
    assert all(Counter(order) == Counter(names) for order in orders)
    ends = [count * worker // workers for worker in range(workers + 1)]
    parts = zip(orders, ends, ends[1:], strict=False)
    assert [name for order, first, end in parts for name in order[: end - first]] == names


def test_what_another_worker_comes_to_last_is_the_first_that_it_takes_from_it() -> None:
    assert own_part_first("abcdef", 1, 3) == ["c", "d", "b", "a", "f", "e"]
