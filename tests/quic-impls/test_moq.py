"""Live media in virtual time, by moq: what arrives, when, and the same each time."""

import math
import signal
import statistics
from pathlib import Path
from typing import Any

import pytest

from fecbench.dropper.model import Pattern, Uniform
from fecbench.runners.conformance import contract, simulator_trials
from fecbench.runners.implementations.finding import ours
from tests.support.live import (
    EQUAL_TRACKS,
    GROUP,
    IN_BURSTS,
    LINK_BYTES,
    MBPS,
    NO_WINDOW,
    OWD_MS,
    PACKET_BYTES,
    PART_BYTES,
    PART_HEADER_BYTES,
    PROTOCOLS,
    QUIC_BYTES,
    TWO_TRACKS,
    Broadcasts,
    assert_same,
    latencies_ms,
    live,
    parted,
    places,
    rows,
    track,
)
from tests.support.simulations import Simulator


@pytest.fixture(params=["moq"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


SYMBOL_MS = (PACKET_BYTES + LINK_BYTES) * 8e-3 / MBPS
VARINTS_MS = 0.02  # numbers that grow take a byte more in each of some packets
SIZES = (40_000, 1, 1000, 1200, 7000, 16_000, 300, 20_000, 90, 5000)


def own_ms(
    size: int, part_bytes: int = PACKET_BYTES - QUIC_BYTES, header_bytes: int = QUIC_BYTES
) -> tuple[float, float]:
    """The least and the most time that the bytes of a frame take on the link."""
    most_bytes = size + math.ceil(size / part_bytes) * (LINK_BYTES + header_bytes)
    least_bytes = size + (size // PACKET_BYTES) * LINK_BYTES
    return least_bytes * 8e-3 / MBPS, most_bytes * 8e-3 / MBPS


@pytest.mark.on_demand
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_frame_takes_the_delay_and_its_own_bytes_where_nothing_is_lost(
    broadcasts: Broadcasts, protocol: str
) -> None:
    workload = live(track("video", "group", *SIZES, every_us=100_000), protocol=protocol)
    task = broadcasts.task(workload, **NO_WINDOW)
    broadcasts.carry_out(task)
    took_ms = latencies_ms(task)
    assert sorted(took_ms) == [(0, number) for number in range(len(SIZES))]
    for number, size in enumerate(SIZES):
        least_ms, most_ms = own_ms(size)
        assert least_ms <= took_ms[0, number] - OWD_MS <= most_ms, (number, size)


@pytest.mark.on_demand
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("rate", [None, [21, 20]])
def test_a_frame_in_parts_takes_the_delay_and_its_own_bytes_and_waits_for_no_repair(
    broadcasts: Broadcasts, rate: list[int] | None, protocol: str
) -> None:
    workload = live(parted(*SIZES, rate=rate, every_us=100_000), protocol=protocol)
    task = broadcasts.task(workload, **NO_WINDOW)
    (answer,) = broadcasts.carry_out(task)
    took_ms = latencies_ms(task)
    assert sorted(took_ms) == [(0, number) for number in range(len(SIZES))]
    for number, size in enumerate(SIZES):
        least_ms, most_ms = own_ms(size, PART_BYTES, QUIC_BYTES + PART_HEADER_BYTES)
        # A repair symbol in the middle of a frame goes before the rest of it, and a short part may share its
        # packet with one.
        symbols = size // (20 * PART_BYTES) + (size < 100) if rate else 0
        most_ms += symbols * SYMBOL_MS
        assert least_ms <= took_ms[0, number] - OWD_MS <= most_ms, (number, size)
    sent = answer["endpoints"]["server"]["metrics"]
    assert sent["datagrams_unsent"] == 0
    assert sent.get("repair_track_sent") == (None if rate is None else expected_repairs(SIZES))
    received = answer["endpoints"]["client"]["metrics"]
    assert received.get("parts_recovered") == (None if rate is None else 0)


def expected_repairs(sizes: tuple[int, ...]) -> int:
    """A repair symbol after each 20 parts, and at the end of a frame for those since then."""
    return sum(math.ceil(math.ceil(size / PART_BYTES) / 20) for size in sizes)


@pytest.mark.on_demand
def test_a_frame_that_lacks_a_part_comes_with_its_repair_symbol_or_never(broadcasts: Broadcasts) -> None:
    # Frames of six parts, and one packet after the other that is lost alone.
    frames, size = 40, 6 * PART_BYTES - 100
    losses = Pattern(tuple(range(30, 200, 13)), length=100_000, repeat=False)
    tasks = [
        broadcasts.task(live(parted(*[size] * frames, rate=rate, every_us=50_000)), losses, **NO_WINDOW)
        for rate in ([21, 20], None)
    ]
    repaired, bare = broadcasts.carry_out(*tasks)
    took_ms, took_bare_ms = map(latencies_ms, tasks)
    recovered = repaired["endpoints"]["client"]["metrics"]["parts_recovered"]
    assert 0 < len(took_bare_ms) < frames
    assert len(took_ms) == frames
    assert recovered > 5
    usual_ms = min(took_ms.values())
    late = [ms for ms in took_ms.values() if ms > usual_ms + VARINTS_MS]
    assert len(late) == recovered
    assert all(0.9 * SYMBOL_MS < ms - usual_ms <= SYMBOL_MS for ms in late), (usual_ms, late)
    assert max(took_bare_ms.values()) <= usual_ms + VARINTS_MS
    assert "parts_recovered" not in bare["endpoints"]["client"]["metrics"]


@pytest.mark.on_demand
def test_a_broadcast_with_a_repair_track_is_the_same_each_time(broadcasts: Broadcasts) -> None:
    workload = live(
        parted(*[20_000, *[4000] * (GROUP - 1)] * 6, rate=[21, 20]),
        track("audio", "group", *[160] * 50, every_us=20_000),
    )
    other = live(track("video", "frame", *[3000] * 7), direction="up")
    tasks = [broadcasts.task(workload, IN_BURSTS, congestion_control="bbr3") for _ in range(4)]
    answers = broadcasts.carry_out(tasks[0], tasks[1], broadcasts.task(other), tasks[2], tasks[3])
    tables = [(rows(task, sends=True), rows(task, sends=False)) for task in tasks]
    assert all(table == tables[0] for table in tables)
    assert answers[0]["endpoints"]["client"]["metrics"]["parts_recovered"] > 0


@pytest.mark.on_demand
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("direction", ["down", "up"])
@pytest.mark.parametrize("delivery", ["group", "frame", "datagram", "parts"])
def test_all_frames_arrive_where_nothing_is_lost(
    broadcasts: Broadcasts, delivery: str, direction: str, protocol: str
) -> None:
    tracks = (track("video", delivery, *[1000] * 20), track("audio", "group", *[160] * 30, every_us=20_000))
    task = broadcasts.task(live(*tracks, direction=direction, protocol=protocol))
    broadcasts.carry_out(task)
    for sends in (True, False):
        table = rows(task, sends)
        assert [places(table, number) for number in (0, 1)] == [list(range(20)), list(range(30))]


@pytest.mark.on_demand
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_same_task_has_the_same_tables_whatever_came_before(
    broadcasts: Broadcasts, protocol: str
) -> None:
    _assert_same(broadcasts, 10, protocol)


@pytest.mark.slow
@pytest.mark.on_demand
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hundred_times_the_same_task_has_the_same_tables(broadcasts: Broadcasts, protocol: str) -> None:
    _assert_same(broadcasts, 100, protocol)


def _assert_same(broadcasts: Broadcasts, times: int, protocol: str) -> None:
    def other() -> dict[str, Any]:
        return broadcasts.task(live(track("video", "frame", *[3000] * 7), direction="up"), Uniform(0.02))

    def task() -> dict[str, Any]:
        workload = live(*EQUAL_TRACKS, protocol=protocol)
        return broadcasts.task(workload, IN_BURSTS, congestion_control="bbr3")

    assert_same(broadcasts, times, task, other, other)


@pytest.mark.on_demand
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_late_group_is_cut_at_its_end_alone_and_later_ones_are_whole(
    broadcasts: Broadcasts, protocol: str
) -> None:
    # So many packets in a row are lost that nothing comes for longer than a group may be late.
    sizes = [2000] * 300
    blackout = Pattern(tuple(range(60, 80)), length=100_000, repeat=False)
    workload = live(track("video", "group", *sizes), max_age_ms=100, protocol=protocol)
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
        of_transport = {**of_moq, "workload": {**workload, "protocol": "moq-transport-22"}}
        assert "known protocol" in moq.start("client", of_transport).failure()
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
    assert [part for part in simulator_trials.check(ours().find(name, "tests")) if not part.good] == []


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
