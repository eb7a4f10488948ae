"""Live media in virtual time, by moq: what arrives, when, and the same each time."""

import signal
import statistics
from pathlib import Path
from typing import Any

import pytest

from fecbench.dropper.model import GilbertElliott, Pattern, Uniform
from fecbench.runners.conformance import contract
from fecbench.runners.conformance import simulator as simulator_check
from fecbench.runners.implementations.finding import ours
from tests.support.live import (
    GROUP,
    LINK_BYTES,
    MBPS,
    NO_WINDOW,
    OWD_MS,
    PACKET_BYTES,
    QUIC_BYTES,
    Broadcasts,
    latencies_ms,
    live,
    places,
    rows,
    track,
)
from tests.support.simulations import Simulator

IN_BURSTS = GilbertElliott(0.01, 0.25, 1, 0)

TWO_TRACKS = (
    track("video", "group", *[20_000, *[4000] * (GROUP - 1)] * 6),
    track("audio", "group", *[160] * 50, every_us=20_000, priority=2),
)


@pytest.fixture(params=["moq"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def broadcasts(name: str, identity: dict[str, str], tmp_path: Path) -> Broadcasts:
    assert name == "moq"
    return Broadcasts(tmp_path, identity)


@pytest.mark.on_demand
def test_a_frame_takes_the_delay_and_its_own_bytes_where_nothing_is_lost(broadcasts: Broadcasts) -> None:
    sizes = (40_000, 1, 1000, 1200, 7000, 16_000, 300, 20_000, 90, 5000)
    task = broadcasts.task(live(track("video", "group", *sizes, every_us=100_000)), **NO_WINDOW)
    broadcasts.carry_out(task)
    took_ms = latencies_ms(task)
    assert sorted(took_ms) == [(0, number) for number in range(len(sizes))]
    for number, size in enumerate(sizes):
        packets = -(-size // (PACKET_BYTES - QUIC_BYTES))
        most_bytes = size + packets * (LINK_BYTES + QUIC_BYTES)
        least_bytes = size + (size // PACKET_BYTES) * LINK_BYTES
        own_ms = took_ms[0, number] - OWD_MS
        assert least_bytes * 8e-3 / MBPS <= own_ms <= most_bytes * 8e-3 / MBPS, (number, size)


@pytest.mark.on_demand
@pytest.mark.parametrize("direction", ["down", "up"])
@pytest.mark.parametrize("delivery", ["group", "frame", "datagram"])
def test_all_frames_arrive_where_nothing_is_lost(
    broadcasts: Broadcasts, delivery: str, direction: str
) -> None:
    tracks = (track("video", delivery, *[1000] * 20), track("audio", "group", *[160] * 30, every_us=20_000))
    task = broadcasts.task(live(*tracks, direction=direction))
    broadcasts.carry_out(task)
    for sends in (True, False):
        table = rows(task, sends)
        assert [places(table, number) for number in (0, 1)] == [list(range(20)), list(range(30))]


@pytest.mark.on_demand
def test_the_same_task_has_the_same_tables_whatever_came_before(broadcasts: Broadcasts) -> None:
    _assert_same(broadcasts, 10)


@pytest.mark.slow
@pytest.mark.on_demand
def test_a_hundred_times_the_same_task_has_the_same_tables(broadcasts: Broadcasts) -> None:
    _assert_same(broadcasts, 100)


def _assert_same(broadcasts: Broadcasts, times: int) -> None:
    """Assert that a task has one outcome each time, with others in between, in one process."""
    other = live(track("video", "frame", *[3000] * 7), direction="up")
    tasks, order = [], []
    for number in range(times):
        tasks.append(broadcasts.task(live(*TWO_TRACKS), IN_BURSTS, congestion_control="bbr3"))
        order.append(tasks[-1])
        order += [broadcasts.task(other, Uniform(0.02)) for _ in range(number % 3)]
    broadcasts.carry_out(*order)
    tables = [(rows(task, sends=True), rows(task, sends=False)) for task in tasks]
    assert all(table == tables[0] for table in tables)


@pytest.mark.on_demand
def test_a_late_group_is_cut_at_its_end_alone_and_later_ones_are_whole(broadcasts: Broadcasts) -> None:
    # So many packets in a row are lost that nothing comes for longer than a group may be late.
    sizes = [2000] * 300
    blackout = Pattern(tuple(range(60, 80)), length=100_000, repeat=False)
    workload = live(track("video", "group", *sizes), max_age_ms=100)
    task = broadcasts.task(workload, blackout, scheme="none")
    broadcasts.carry_out(task)
    arrivals = set(places(rows(task, sends=False), 0))
    groups = [[frame in arrivals for frame in range(first, first + GROUP)] for first in range(0, 300, GROUP)]
    assert any(not all(group) for group in groups)
    assert all(group == sorted(group, reverse=True) for group in groups)
    assert groups[-1] == [True] * GROUP, groups


@pytest.mark.on_demand
def test_audio_goes_before_video_where_the_link_is_too_slow_for_both(broadcasts: Broadcasts) -> None:
    tasks = [
        broadcasts.task(
            live(TWO_TRACKS[0], {**TWO_TRACKS[1], "priority": priority}, send_buffer_bytes=2**14),
            mbps=0.8,
            queue_packets=10,
            scheme="none",
        )
        for priority in (2, 0)
    ]
    broadcasts.carry_out(*tasks)
    medians_ms = []
    for task in tasks:
        took_ms = latencies_ms(task)
        medians_ms.append(statistics.median(took_ms.get((1, frame), 1e9) for frame in range(50)))
    assert medians_ms[0] < 0.7 * medians_ms[1], medians_ms


@pytest.mark.on_demand
def test_fec_recovers_lost_packets_of_a_broadcast(broadcasts: Broadcasts) -> None:
    code = {"controller": "constant", "n": 6, "k": 5, "window": 20}
    task = broadcasts.task(live(*TWO_TRACKS), IN_BURSTS, **code)
    (answer,) = broadcasts.carry_out(task)
    metrics = answer["endpoints"]["client"]["metrics"]
    assert metrics["packets_recovered"] > 0
    assert metrics["packets_recovered"] + metrics["repair_useless"] <= metrics["repair_received"]


@pytest.mark.on_demand
def test_a_frame_that_fits_into_no_datagram_is_refused_with_what_would(broadcasts: Broadcasts) -> None:
    task = broadcasts.task(live(track("audio", "datagram", 160, 1200)))
    with Simulator("moq") as simulator:
        answer = simulator.answer(task)
    for end in answer["endpoints"].values():
        assert end["exit_code"] == 2
        assert 'track "audio": a frame of 1200 bytes' in end["stderr"]
        assert "at most 1" in end["stderr"]


@pytest.mark.on_demand
def test_a_client_of_another_protocol_is_refused_and_the_server_lives_on(
    name: str, endpoints_of: Any, assignment: dict[str, Any]
) -> None:
    workload = live(track("video", "group", *[1000] * 6))
    of_moq = {**assignment, "workload": workload}
    moq, other = endpoints_of(name), endpoints_of("noq-fec")
    with moq.serving(of_moq) as server:
        failure = other.start("client", {**assignment, "options": {"scheme": "none"}}).failure()
        assert "known protocol" in failure
        moq.start("client", of_moq).metrics()
        server.process.send_signal(signal.SIGTERM)
        server.metrics()


@pytest.mark.on_demand
@pytest.mark.parametrize("direction", ["down", "up"])
def test_a_broadcast_of_other_content_is_named_by_its_first_wrong_byte(
    name: str, endpoints_of: Any, assignment: dict[str, Any], direction: str
) -> None:
    workload = live(track("video", "group", *[1000] * 6), direction=direction)
    moq = endpoints_of(name)
    right = {**assignment, "workload": workload}
    with moq.serving({**right, "content_seed": 7}) as server:
        client = moq.start("client", right)
        receiver = client if direction == "down" else server
        assert "frame 0 of track 0: byte 0 is not that of the content" in receiver.failure()


@pytest.mark.on_demand
def test_a_broadcast_that_lacks_a_track_is_no_success(
    name: str, endpoints_of: Any, assignment: dict[str, Any]
) -> None:
    video = track("video", "group", *[1000] * 6)
    moq = endpoints_of(name)
    with moq.serving({**assignment, "workload": live(video)}):
        workload = live(video, track("audio", "group", 160))
        failure = moq.start("client", {**assignment, "deadline_s": 3.0, "workload": workload}).failure()
    assert "live broadcast of 7 frames" in failure


@pytest.mark.on_demand
def test_it_meets_the_contract(name: str, tmp_path: Path) -> None:
    parts = contract.check(ours().find(name, "tests"), tmp_path)
    assert [part for part in parts if not part.good] == []


@pytest.mark.on_demand
def test_its_simulator_answers_the_same_each_time(name: str) -> None:
    assert [part for part in simulator_check.check(ours().find(name, "tests")) if not part.good] == []


@pytest.mark.on_demand
def test_repair_follows_each_frame_of_a_stream_that_always_has_more_to_send(broadcasts: Broadcasts) -> None:
    frames = 60
    workload = live(track("video", "group", *[6000] * frames, every_us=10_000), max_age_ms=60_000)
    sent = {}
    for flush in ("message", "never"):
        code = {"scheme": "rlc", "controller": "constant", "n": 51, "k": 50, "window": 50, "flush": flush}
        (answer,) = broadcasts.carry_out(broadcasts.task(workload, mbps=2, **code))
        sent[flush] = answer["endpoints"]["server"]["metrics"]["repair_sent"]
    assert sent["message"] > 0.8 * frames > 3 * sent["never"]
