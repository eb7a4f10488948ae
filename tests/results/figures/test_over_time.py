"""The figure of a trial over time shows every value that its endpoints left, at its time."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fecbench.results.figures import NothingToDraw, save, trial_over_time

CWND = ["congestion_window_bytes", "bytes_in_flight", "smoothed_rtt_ms"]

values = st.lists(st.floats(0, 1e6), min_size=1, max_size=20)


def table(of: dict[tuple[str, int], list[float]], columns: list[str], trial: int = 7) -> pd.DataFrame:
    """A row each 0.5 s, of endpoints and connections; each column is a multiple of the first."""
    rows: list[dict[str, Any]] = [
        {
            "id": trial,
            "variant": "rQUIC, XOR 4/5",
            "workload": "download-200000",
            "point": 3,
            "repetition": 1,
            "endpoint": endpoint,
            "t_s": 0.5 * n,
            "connection": connection,
            **{column: value * (i + 1) for i, column in enumerate(columns)},
        }
        for (endpoint, connection), of_connection in of.items()
        for n, value in enumerate(of_connection)
    ]
    return pd.DataFrame(rows)


def label(text: str) -> str:
    return " ".join(text.split())


@settings(max_examples=20, deadline=None)
@given(
    st.dictionaries(st.tuples(st.sampled_from(["client", "server"]), st.integers(0, 2)), values, min_size=1)
)
def test_each_column_has_a_panel_and_each_connection_of_an_endpoint_a_line(
    of: dict[tuple[str, int], list[float]],
) -> None:
    figure = trial_over_time({"cwnd": table(of, CWND)})
    assert [label(axes.get_ylabel()) for axes in figure.axes] == [
        "congestion window (bytes)",
        "bytes in flight",
        "smoothed RTT (ms)",
    ]
    for i, axes in enumerate(figure.axes):
        drawing = sorted([*zip(line.get_xdata(), line.get_ydata(), strict=True)] for line in axes.lines)
        is_rtt = i == CWND.index("smoothed_rtt_ms")  # 0 is no measurement
        output = [
            [(0.5 * n, value * (i + 1)) for n, value in enumerate(of_connection) if value > 0 or not is_rtt]
            for of_connection in of.values()
        ]
        assert drawing == sorted(filter(None, output))
        for line in axes.lines:
            assert line.get_drawstyle() == "steps-post", "a value holds until the next"
    assert label(figure.axes[-1].get_xlabel()) == "time since the connection began (s)"
    endpoints = {endpoint for endpoint, _ in of}
    assert {text.get_text() for text in figure.legends[0].get_texts()} == endpoints
    looks = {(line.get_color(), line.get_marker()) for axes in figure.axes for line in axes.lines}
    assert len(looks) == len({color for color, _ in looks}) == len(endpoints)


def test_the_heading_has_the_key_of_the_trial() -> None:
    texts = [
        label(text.get_text()) for text in trial_over_time({"cwnd": table({("client", 0): [1]}, CWND)}).texts
    ]
    assert texts[1] == "trial 7 · rQUIC, XOR 4/5 · download-200000 · point 3 · repetition 1"


def test_one_trial_of_several_is_chosen_and_no_two_are_mixed() -> None:
    both = pd.concat([table({("client", 0): [n, 2 * n]}, ["q"], trial=n) for n in (1, 2)])
    (axes,) = trial_over_time({"code_rate": both}, trial=2).axes
    assert [line.get_ydata().tolist() for line in axes.lines] == [[2, 4]]
    with pytest.raises(NothingToDraw, match="of 2 trials: choose one"):
        trial_over_time({"code_rate": both})


def test_several_series_share_the_axis_of_time_and_say_which_they_are() -> None:
    server = {("server", 0): [1.0, 2.0]}
    figure = trial_over_time({"cwnd": table(server, ["bytes_in_flight"]), "mine": table(server, ["gap_ms"])})
    assert [axes.get_title("left") for axes in figure.axes] == ["cwnd", "mine"]
    assert label(figure.axes[1].get_ylabel()) == "gap (ms)"
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()


def test_a_column_that_an_endpoint_lacks_has_no_line_of_it() -> None:
    frame = pd.concat([table({("client", 0): [1.0]}, ["a_ms"]), table({("server", 0): [2.0]}, ["b_ms"])])
    panels = trial_over_time({"mine": frame.assign(c_ms=np.nan)}).axes
    assert [label(axes.get_ylabel()) for axes in panels] == ["a (ms)", "b (ms)"]
    assert [len(axes.lines) for axes in panels] == [1, 1]


@pytest.mark.parametrize("series", [{}, {"cwnd": table({("client", 0): [1.0]}, CWND)}])
def test_a_trial_that_left_nothing_says_so(series: dict[str, pd.DataFrame]) -> None:
    with pytest.raises(NothingToDraw, match=r"Trial 8 left none of these series: (cwnd|none was named)"):
        trial_over_time(series, trial=8)


def test_the_same_series_give_the_same_bytes(tmp_path: Path) -> None:
    frame = table({("client", 0): [1.0, 3.0], ("server", 0): [2.0, 5.0]}, CWND)
    for name in ("one.svg", "two.svg"):
        save(trial_over_time({"cwnd": frame}), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
