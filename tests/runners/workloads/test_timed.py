"""Parts that came sooner than links can carry them are those that each part's own least time tells."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.runners.workloads import timed
from fecbench.topologies.rate import ConstantRate, Rate, ShapedRate, in_series, together
from fecbench.topologies.trace import Trace, TraceRate

TRACE = Trace(
    keep_us=np.array([20_000, 5_000, 40_000]),
    rate_bps=np.array([2_000_000, 12_000_000, 600_000]),
    owd_us=None,
    burst_bytes=None,
    repeat="loop",
)
RATES = [ConstantRate(5e6), ShapedRate(1e6, 3_000), TraceRate(TRACE, 1e6)]
OWD_S = 0.01


def a_task(rates: list[Rate], has_relay: bool) -> Any:
    ways = [SimpleNamespace(least_owd_ms=1e3 * OWD_S, rate=rate) for rate in rates]
    links = {
        str(name): SimpleNamespace(settings=SimpleNamespace(up=None, down=way))
        for name, way in enumerate(ways)
    }
    pair = SimpleNamespace(workload={"direction": "down"})
    validity = SimpleNamespace(least_share=0.99)
    return SimpleNamespace(links=links, has_relay=has_relay, pairs=[pair], validity=validity)


@given(
    st.lists(st.sampled_from(RATES), min_size=1, max_size=2),
    st.booleans(),
    st.lists(st.tuples(st.integers(1, 60_000), st.floats(0, 0.3)), max_size=30),
)
def test_the_parts_that_came_too_early_are_those_of_each_parts_least_time(
    rates: list[Rate], has_relay: bool, parts: list[tuple[int, float]]
) -> None:
    sizes = np.array([size for size, _ in parts], dtype=np.int64)
    takes_s = np.array([takes_s for _, takes_s in parts], dtype=float)
    task = a_task(rates, has_relay)
    rate = in_series(rates) if has_relay else together(rates)
    owd_s = OWD_S * (len(rates) if has_relay else 1)
    least_s = [owd_s + rate.least_time_s(float(size)) for size in sizes]
    early = [row for row, least in enumerate(least_s) if takes_s[row] < 0.99 * least - 1e-6]
    expected = min(early, key=lambda row: (sizes[row], row), default=None)
    result = timed.too_early(task, takes_s, sizes)
    if expected is None:
        assert result is None
    else:
        assert result == (expected, pytest.approx(1e3 * least_s[expected]))
