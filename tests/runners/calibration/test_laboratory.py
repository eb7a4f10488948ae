"""The laboratory tells a true link from one that is not, in either direction and in any topology."""

import os
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fecbench.runners.calibration import laboratory
from fecbench.runners.calibration.laboratory import Datagrams, Laboratory, Traffic
from fecbench.runners.calibration.table import Measurement
from fecbench.topologies.link import DIRECTIONS, Direction, DirectionSettings, LinkSettings
from fecbench.topologies.programs import PROBER
from tests.support.link_reports import direction_report, link_report

built = pytest.mark.skipif(not PROBER.exists(), reason="needs make build")

# 3 ms for each frame up, 0.5 ms down
ASYMMETRIC = LinkSettings(
    up=DirectionSettings(3.3, 30, queue_packets=60), down=DirectionSettings(20, 5, queue_packets=60)
)


def delay_and_rate(room: Laboratory) -> Iterable[Measurement]:
    """Measure each direction of an asymmetric link."""
    for direction in DIRECTIONS:
        error_us = float(np.median(room.delay_error_us(ASYMMETRIC, 40, direction)))
        yield Measurement(name=f"delay error {direction}", value=error_us, bound=None, unit="µs")
        rate_mbps = float(np.median([room.burst(ASYMMETRIC, 60, direction)[0] for _ in range(3)]))
        yield Measurement(name=f"rate {direction}", value=rate_mbps, bound=None, unit="Mbps")


def slow(direction: Direction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build one direction of each link slower than asked for."""

    def build_slower(topology: str, links: dict[str, LinkSettings], *others: Any) -> Any:
        return real_build(topology, {name: slowed(link) for name, link in links.items()}, *others)

    def slowed(link: LinkSettings) -> LinkSettings:
        lane = link.of(direction)
        built = replace(lane, bandwidth_mbps=0.9 * lane.bandwidth_mbps, owd_ms=lane.owd_ms + 5)
        return replace(link, **{direction: built})

    real_build = laboratory.build  # type: ignore[attr-defined]
    monkeypatch.setattr(laboratory, "build", build_slower)


@pytest.mark.parametrize(
    ("topology", "link"), [("single-path", "internet"), ("dumbbell", "internet"), ("multipath", "path2")]
)
def test_each_direction_of_a_link_is_measured_against_its_own_settings(
    topology: str, link: str, measure: Any
) -> None:
    def is_right(lines: dict[str, Measurement]) -> bool:
        return all(is_as_asked(lines, direction) for direction in DIRECTIONS)

    lines = measure(delay_and_rate, is_right, topology=topology, link=link)
    assert is_right(lines), lines
    assert lines["packets out of order"].value == lines["packets not conserved"].value == 0


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_direction_that_is_slower_than_it_should_be_is_noticed(
    direction: Direction, measure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow(direction, monkeypatch)

    def is_right(lines: dict[str, Measurement]) -> bool:
        return all(is_as_asked(lines, way, slow=way == direction) for way in DIRECTIONS)

    assert is_right(lines := measure(delay_and_rate, is_right)), lines


def is_as_asked(lines: dict[str, Measurement], direction: Direction, *, slow: bool = False) -> bool:
    """Whether a direction has its rate and its delay, or those to which `slow` changes them."""
    asked_mbps = ASYMMETRIC.of(direction).bandwidth_mbps
    rate, error = lines[f"rate {direction}"].value, lines[f"delay error {direction}"].value
    return rate == pytest.approx((0.9 if slow else 1) * asked_mbps, rel=0.02) and (
        error > 4000 if slow else 0 <= error < 4000
    )


def traffic(numbers: list[int], **counted: int) -> Traffic:
    """Five datagrams were sent up, these received; the dropper dropped none."""
    report = link_report({"up": direction_report(0, **{"frames_in": 5, **counted})})
    datagrams = Datagrams(np.arange(5), np.array(numbers), 10 + np.array(numbers))
    return Traffic(datagrams, "up", report, np.zeros(5, dtype=np.bool_))


def test_a_datagram_that_comes_behind_a_later_one_is_out_of_order() -> None:
    assert traffic([0, 1, 2, 3, 4]).datagrams.disorder() == 0
    assert traffic([0, 2, 1, 3, 4]).datagrams.disorder() == 1
    assert traffic([0, 1, 1, 3, 4]).datagrams.disorder() == 1


def test_a_datagram_that_nobody_has_counted_is_not_conserved() -> None:
    assert traffic([0, 1, 2, 3, 4]).unaccounted() == 0
    assert traffic([0, 1, 2]).unaccounted() == 2
    assert traffic([0, 1, 2], queue_dropped=1, in_flight=1).unaccounted() == 0
    assert traffic([0, 1, 2, 3, 4], conserved=False).unaccounted() == 1
    # They went another way than the link.
    assert traffic([0, 1, 2, 3, 4], frames_in=0).unaccounted() == 5


def prober(*words: str) -> Any:
    return subprocess.run([PROBER, *words], capture_output=True, text=True, check=False)


BAD: list[tuple[tuple[str, ...], str]] = [
    ((), "--from-netns is missing"),
    (("--count", "0"), "--count 0: must be a whole number from 1 to 10000000"),
    (("--port", "-1"), "--port -1: must be"),
    (("--frame-bytes", "1515"), "--frame-bytes 1515: must be"),
    (("--address", "somewhere"), "--address somewhere: must be an IPv4 address"),
    (("--bogus",), "--bogus is not an option"),
    (("stray",), "stray is not an option"),
]


@built
def test_the_prober_refuses_bad_input_in_one_line() -> None:
    for words, complaint in BAD:
        refusal = prober(*words)
        assert refusal.returncode == 2
        assert refusal.stderr.startswith(f"prober: {complaint}")
        assert refusal.stderr.count("\n") == 1


def test_the_load_of_a_table_ends_with_it() -> None:
    def children() -> list[str]:
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()

    before = children()
    with laboratory.load_on_every_core():
        assert len(children()) == len(before) + len(os.sched_getaffinity(0))
    assert children() == before
