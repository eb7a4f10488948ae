"""The moment when a link is full, in times that the tests set, and designs of competing transfers."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.outcome import Competition
from fecbench.runners.trial.competition import (
    FULL_RTTS,
    FULL_SHARE,
    INTERVAL_S,
    Clients,
    Filling,
    metrics,
)
from fecbench.runners.trial.supervisor import Supervisor
from fecbench.runners.workloads.competing import Competing, endless_bytes
from fecbench.runners.workloads.workload import Surroundings
from fecbench.topologies.link import DirectionSettings, LinkSettings
from tests.support import tasks
from tests.support.experiments import experiment_of
from tests.support.refusals import refusal_of

LINK = LinkSettings.symmetric(bandwidth_mbps=1.89, owd_ms=380.5)
BYTES_PER_S = 1.89e6 / 8
WINDOW_S = FULL_RTTS * 0.761


def readings(rate: Callable[[float], float], until_s: float) -> Iterator[tuple[float, int]]:
    """Times, and the bytes carried by then, of a link that carries `rate(time)` of what it can."""
    carried = 0.0
    for i in range(round(until_s / INTERVAL_S)):
        now = 1000 + i * INTERVAL_S
        yield now, int(carried)
        carried += rate(i * INTERVAL_S) * BYTES_PER_S * INTERVAL_S


def full_after_s(rate: Callable[[float], float], link: LinkSettings = LINK) -> float | None:
    """Return when the link became full, in seconds from the beginning, within a minute."""
    filling = Filling(link)
    return next((now - 1000 for now, carried in readings(rate, 60) if filling.is_full(now, carried)), None)


def test_a_link_that_carries_its_rate_is_full_after_the_round_trips_and_no_sooner() -> None:
    assert full_after_s(lambda _: 1.0) == pytest.approx(WINDOW_S, abs=2 * INTERVAL_S)


def test_what_fills_a_link_are_downloads_over_the_delay_of_both_directions() -> None:
    fast_up = LinkSettings(up=DirectionSettings(1000, 700), down=DirectionSettings(1.89, 61))
    assert full_after_s(lambda _: 1.0, link=fast_up) == full_after_s(lambda _: 1.0)
    assert endless_bytes(fast_up, 600) == endless_bytes(LINK, 600)


def test_a_link_is_full_from_its_share_on() -> None:
    assert full_after_s(lambda _: FULL_SHARE + 0.005) is not None
    assert full_after_s(lambda _: FULL_SHARE - 0.005) is None


def test_what_came_before_counts_no_more_than_the_round_trips() -> None:
    slow_start_s = 5.0
    answers = full_after_s(lambda passed_s: 0.01 if passed_s < slow_start_s else 1.0)
    assert answers is not None
    assert answers <= slow_start_s + WINDOW_S + 2 * INTERVAL_S
    assert answers >= slow_start_s + FULL_SHARE * WINDOW_S - WINDOW_S * 0.05


def test_a_transfer_that_pauses_again_and_again_does_not_fill_the_link() -> None:
    assert full_after_s(lambda passed_s: 0.0 if passed_s % 4 < 0.5 else 1.0) is None


def test_a_link_without_delay_is_watched_for_a_time_that_its_counters_can_show() -> None:
    filling = Filling(LinkSettings.symmetric(bandwidth_mbps=1.89, owd_ms=0))
    answers = [filling.is_full(now, carried) for now, carried in readings(lambda _: 1.0, 1.0)]
    assert answers.index(True) == pytest.approx(FULL_RTTS, abs=1)


def test_the_background_has_more_to_move_than_the_link_carries_in_time() -> None:
    assert endless_bytes(LINK, 600) >= 600 * BYTES_PER_S - 1


# Where it is not the little design.
DESIGN = """
topology = "dumbbell"
timeout_s = 100

[plan]
method = "grid"
levels = 2

[factors]
bandwidth_mbps = { min = 1, max = 2 }

[constants]
owd_ms = 10

[[workloads]]
name = "competing"
background = ["off", "xor, 4/5"]
size_bytes = 1_000_000
"""


@pytest.fixture
def load(write_design: Any, tmp_path: Path) -> Callable[[str], Experiment]:
    def load(text: str) -> Experiment:
        return experiment_of(write_design(tmp_path, text))

    return load


NO_LABEL = "background = 'xor, 4/6': is no label of a variant; did you mean 'xor, 4/5'"
WRONG: list[tuple[str, str, str]] = [
    ('"dumbbell"', '"single-path"', "pair, and workload competing needs 2; it must be dumb"),
    ('["off", "xor, 4/5"]', '"xor, 4/6"', NO_LABEL),
    ('["off", "xor, 4/5"]', "7", "background = 7 must be"),
    ('background = ["off", "xor, 4/5"]\n', "", "background is missing"),
    ("size_bytes = 1_000_000\n", "", "size_bytes is missing"),
    ('background = ["off", "xor, 4/5"]', 'backgroud = "off"', "did you mean 'background'"),
]


def test_what_cannot_compete_is_refused(load: Callable[[str], Experiment]) -> None:
    load(DESIGN)
    for right, wrong, message in WRONG:
        assert right in DESIGN
        assert message in refusal_of(load, DESIGN.replace(right, wrong))


def test_a_point_may_name_the_background(load: Callable[[str], Experiment]) -> None:
    text = DESIGN.replace('background = ["off", "xor, 4/5"]\n', "").replace(
        "[constants]", 'workload.background = { choices = ["off", "xor, 4/5"] }\n[constants]'
    )
    assert "choices" in text
    load(text)


@pytest.mark.parametrize(
    ("choices", "times"),
    [
        ({}, [(None, None)]),
        ({"neighbours": 3}, [(None, None)] * 3),
        ({"neighbours": 3, "join_s": 2}, [(None, None), (2, None), (4, None)]),
        ({"neighbours": 2, "join_s": 1, "stay_s": 5}, [(None, 5), (1, 5)]),
    ],
)
def test_neighbours_join_one_after_another_and_stay_for_as_long(
    choices: dict[str, Any], times: list[tuple[float | None, float | None]]
) -> None:
    around = Surroundings("own", LinkSettings.symmetric(10, 5), 60)
    own, *others = Competing().transfers({"background": "it", "size_bytes": 1000, **choices}, around)
    assert (own.variant, own.begins_s, own.lasts_s) == ("own", None, None)
    assert [(other.begins_s, other.lasts_s) for other in others] == times
    assert {other.variant for other in others} == {"it"}


def clients_of(*readings: tuple[float, list[int]], monkeypatch: pytest.MonkeyPatch) -> Clients:
    """Clients that were read at these times, and had these bytes."""
    times, counts = (iter(values) for values in zip(*readings, strict=True))
    monkeypatch.setattr("fecbench.runners.trial.competition.time.monotonic", lambda: next(times))
    rows = [list(row) for row in zip(*counts, strict=True)]
    clients = Clients([partial(next, iter(row)) for row in rows], Supervisor())
    for _ in readings[1:]:
        clients.read()
    return clients


@pytest.mark.parametrize("reported_s", [math.inf, 0.5, 0.47, 0.0, -1.0])
def test_rates_are_of_the_transfer_and_not_of_the_start_of_its_program(
    reported_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The background has 2 Mbit/s until the transfer begins, and 1 from then on."""
    readings = [(10.0, [0, 0]), (10.02, [0, 5000]), (10.04, [100, 8750]), (10.52, [60_000, 68_750])]
    lasted_s, (own, other) = clients_of(*readings, monkeypatch=monkeypatch).rates_mbps(reported_s)
    begun_s = 10.52 - lasted_s
    assert lasted_s == pytest.approx(reported_s if 0 < reported_s < 1 else 0.52)
    came_before = {10.0: (0, 0), 10.02: (0, 5000), 10.05: (1348, 10_000)}[round(begun_s, 2)]
    assert own == pytest.approx(8e-6 * (60_000 - came_before[0]) / lasted_s, rel=1e-3)
    assert other == pytest.approx(8e-6 * (68_750 - came_before[1]) / lasted_s, rel=1e-3)


BOTH = Competition(filling_s=1, foreground_mbps=2, background_mbps=6, lasted_s=0.5)


@pytest.mark.parametrize(
    ("competition", "down", "background", "taken_bytes"),
    [
        (BOTH, {}, {}, 250_000),  # 10 Mbit/s for 0.5 s are 625,000 bytes, and 375,000 came
        (BOTH.model_copy(update={"background_mbps": 10.1}), {}, {}, 0),
        (BOTH, {"shaper_burst_bytes": 30_000}, {}, 250_000),
        (BOTH.model_copy(update={"background_mbps": None}), {}, {}, None),
        (BOTH.model_copy(update={"lasted_s": None}), {}, {}, None),
        *[
            (BOTH, down, {}, None)
            for down in ({"cross_mbps": 3, "cross_seed": 1}, {"policer_mbps": 9}, {"outage_s": (0.1, 0.2)})
        ],
        (BOTH, {}, {"lasts_s": 0.3}, None),  # nobody wants what the link could carry
    ],
)
def test_a_background_lacks_the_bytes_that_the_link_could_have_carried(
    competition: Competition, down: dict[str, Any], background: dict[str, Any], taken_bytes: float | None
) -> None:
    settings = LinkSettings.symmetric(10, 5, queue_packets=40)
    settings = replace(settings, down=replace(settings.down, **down))
    pairs = tasks.pair("foreground"), tasks.pair("background", **background)
    task = tasks.task(tasks.link(settings), *pairs, topology="dumbbell")
    result = metrics(task, competition)
    assert result.get("taken_bytes") == (None if taken_bytes is None else pytest.approx(taken_bytes))
    assert "lasted_s" not in result and result["filling_s"] == 1


def test_one_neighbour_alone_cannot_join() -> None:
    with pytest.raises(Refusal, match=r"join_s = 2: .* must be 0, or neighbours 2 and more"):
        Competing().check({"background": "it", "size_bytes": 1, "join_s": 2}, ["it"], "design")


def test_the_foreground_is_the_trials_variant_and_the_background_the_workloads(
    load: Callable[[str], Experiment],
) -> None:
    task = load(DESIGN).task(TrialKey("off", "competing-xor, 4/5-1000000", 1, 0), "wire")
    foreground, background = task.pairs
    for end in (foreground.client, foreground.server):
        assert end.options["scheme"] == "none"
    for end in (background.client, background.server):
        assert end.options["scheme"] == "xor"
    assert foreground.workload == {"name": "download", "size_bytes": 1_000_000}
    expected: dict[str, Any] = {"name": "download", "size_bytes": 25_000_000}  # 2 Mbit/s for 100 s
    assert background.workload == expected


def test_other_workloads_have_one_pair_in_a_dumbbell_too(load: Callable[[str], Experiment]) -> None:
    text = DESIGN.replace('name = "competing"\nbackground = ["off", "xor, 4/5"]', 'name = "download"')
    task = load(text).task(TrialKey("xor, 4/5", "download-1000000", 0, 0), "wire")
    assert [pair.client.options["scheme"] for pair in task.pairs] == ["xor"]
