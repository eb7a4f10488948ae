"""`fecbench link`: traces of links are made, imported and shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fecbench.topologies import link_traces


def test_a_made_trace_is_shown_and_drawn(tmp_path: Path, fecbench_here: Callable[..., Any]) -> None:
    trace, figure = tmp_path / "lte.csv", tmp_path / "lte.png"
    made = fecbench_here("link", "make", "lte", "--seed", 4, "--duration-s", 30, "--output", trace)
    assert made.returncode == 0 and "300 steps, 30 s" in made.stdout
    assert link_traces.read(trace)[0] == link_traces.make("lte", 4, 30)
    shown = fecbench_here("link", "show", trace, "--output", figure)
    assert shown.returncode == 0
    assert "rate (Mbit/s)" in shown.stdout and "one-way delay (ms)" in shown.stdout
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_an_imported_trace_tells_when_it_carries_nothing(
    tmp_path: Path, fecbench_here: Callable[..., Any]
) -> None:
    recorded, trace = tmp_path / "rates.txt", tmp_path / "r.csv"
    recorded.write_text("0 5\n1 0\n3 0\n4 5\n5 0\n6 1\n")
    done = fecbench_here("link", "import", "rates", recorded, "--output", trace)
    assert done.returncode == 0 and "6 steps, 7 s" in done.stdout
    assert "carries nothing 2 times, 3 s at the longest" in fecbench_here("link", "show", trace).stdout


def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path, fecbench_here: Callable[..., Any]) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("keep_us,rate_bps\n5,-1\n")
    assert "line 2: rate_bps = '-1'" in fecbench_here("link", "show", bad).refusal()
    asked = ("link", "import", "mahimahi", tmp_path / "none", "--output", tmp_path / "x.csv")
    assert "none: cannot be read" in fecbench_here(*asked).refusal()
    assert ".csv" in fecbench_here("link", "make", "5g", "--output", tmp_path / "x.json").refusal()
