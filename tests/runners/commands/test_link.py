"""`fecbench link`: traces of links are made, imported and shown."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.topologies import link_traces


def test_a_made_trace_is_shown_and_drawn(tmp_path: Path, fecbench_here: Callable[..., Any]) -> None:
    trace, figure = tmp_path / "lte.csv", tmp_path / "lte.png"
    result = fecbench_here("link", "make", "lte", "--seed", 4, "--duration-s", 30, "--output", trace)
    assert result.returncode == 0 and "300 steps, 30 s" in result.stdout
    assert link_traces.read(trace)[0] == link_traces.make("lte", 4, 30)
    output = fecbench_here("link", "show", trace, "--output", figure)
    assert output.returncode == 0
    assert "rate (Mbit/s)" in output.stdout and "one-way delay (ms)" in output.stdout
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_an_imported_trace_tells_when_it_carries_nothing(
    tmp_path: Path, fecbench_here: Callable[..., Any]
) -> None:
    recorded, trace = tmp_path / "rates.txt", tmp_path / "r.csv"
    recorded.write_text("0 5\n1 0\n3 0\n4 5\n5 0\n6 1\n")
    result = fecbench_here("link", "import", "rates", recorded, "--output", trace)
    assert result.returncode == 0 and "6 steps, 7 s, 1.57 Mbit/s on average\n" in result.stdout
    printed = " ".join(fecbench_here("link", "show", trace).stdout.split())
    assert (
        "carries nothing 2 times, 3 s at the longest and 4 s in all: at 1 s for 3 s, at 5 s for 1 s."
        in printed
    )


def test_opportunities_of_mahimahi_are_shown_as_rates_with_their_outages(
    tmp_path: Path, fecbench_here: Callable[..., Any]
) -> None:
    """12 Mbit/s for 5 s, but for 1.2 s without an opportunity: the gaps of 1 ms are no outages."""
    recorded, trace, figure = (tmp_path / name for name in ("up", "r.csv", "r.png"))
    recorded.write_text("".join(f"{ms}\n" for ms in range(1, 5001) if not 2000 < ms < 3200))
    assert fecbench_here("link", "import", "mahimahi", recorded, "--output", trace).returncode == 0
    document = json.loads(fecbench_here("link", "show", trace, "--json", "--output", figure).stdout)
    full_mbps = 8 * 1514 / 1e3
    assert document["rate_mbps"]["most"] == pytest.approx(full_mbps)
    assert document["rate_mbps"]["median"] == pytest.approx(full_mbps)
    assert document["rate_mbps"]["least"] == 0
    assert document["rate_mbps"]["mean"] == pytest.approx(full_mbps * 3801 / 5000)
    assert document["outages"] == [{"begin_s": 2.0, "lasts_s": 1.2}]
    printed = " ".join(fecbench_here("link", "show", trace).stdout.split())
    assert "Rates are of 10 windows of 500 ms. It carries nothing once, 1.2 s at the longest" in printed
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("last_mbps", "is_one"), [(0, True), (5, False)])
def test_an_outage_at_both_ends_of_a_trace_is_one_where_it_loops(
    last_mbps: int, is_one: bool, tmp_path: Path, fecbench_here: Callable[..., Any]
) -> None:
    trace = tmp_path / "x.csv"
    rates = ((2, 0), (4, 10), (1, 0), (1, 10), (3, last_mbps))
    trace.write_text("".join(("keep_us,rate_bps\n", *(f"{s}000000,{mbps}000000\n" for s, mbps in rates))))
    printed = " ".join(fecbench_here("link", "show", trace).stdout.split())
    assert ("Where it loops, the last and the first are one of 5 s." in printed) == is_one


def test_an_import_says_the_rate_and_the_delays_so_that_units_are_seen(
    tmp_path: Path, fecbench_here: Callable[..., Any]
) -> None:
    theirs = tmp_path / "theirs"
    words = (theirs, "--output", tmp_path / "x.csv")
    theirs.write_text("0 12000\n1 12000\n")
    assert "2 s, 12000 Mbit/s on average\n" in fecbench_here("link", "import", "rates", *words).stdout
    theirs.write_text("timestamp,rtt\n0,0.04\n1,30\n")
    assert "2 s, one way in 0.02 to 15 ms\n" in fecbench_here("link", "import", "irtt", *words).stdout


def test_what_a_form_has_not_is_refused(tmp_path: Path, fecbench_here: Callable[..., Any]) -> None:
    words = ("link", "import", "mahimahi", tmp_path / "x", "--output", tmp_path / "x.csv")
    assert "only irtt has columns" in fecbench_here(*words, "--column", "rtt").refusal()
    assert "only rates hold" in fecbench_here(*words, "--holds", "before").refusal()


def test_what_a_trace_has_no_place_for_is_told(tmp_path: Path, fecbench_here: Callable[..., Any]) -> None:
    recorded = tmp_path / "theirs.csv"
    recorded.write_text("1000,2000000,5000000,42949673,100\n")
    result = fecbench_here("link", "import", "theaterq", recorded, "--output", tmp_path / "x.csv")
    assert 'write loss.model = "uniform" and loss.p = 0.01' in " ".join(result.stdout.split())


def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path, fecbench_here: Callable[..., Any]) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("keep_us,rate_bps\n5,-1\n")
    assert "line 2: rate_bps = '-1'" in fecbench_here("link", "show", bad).refusal()
    words = ("link", "import", "mahimahi", tmp_path / "none", "--output", tmp_path / "x.csv")
    assert "none: cannot be read" in fecbench_here(*words).refusal()
    assert ".csv" in fecbench_here("link", "make", "5g", "--output", tmp_path / "x.json").refusal()
