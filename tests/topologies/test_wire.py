"""The wire as a process: real frames through real TAPs, its report, its ends, its command line."""

import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fecbench.topologies.counters import discarded
from fecbench.topologies.jitter import Jitter
from fecbench.topologies.link import (
    DIRECTIONS,
    Direction,
    DirectionSettings,
    LinkEnd,
    LinkError,
    LinkSettings,
)
from fecbench.topologies.link_report import DirectionReport, LinkReport
from fecbench.topologies.namespace import run_inside, run_tool
from fecbench.topologies.origin import Origin
from fecbench.topologies.programs import WIRE
from fecbench.topologies.wire_link import WireLink
from tests.topologies.law_of_jitter import NORMAL, drawn, noise_ns
from tests.waiting import wait_until

root = pytest.mark.root


AT_ONCE_S = 0.008
"""Less than the first frame takes to leave."""


@dataclass(frozen=True)
class Burst:
    """50 frames in each of some directions."""

    came_ms: dict[Direction, NDArray[np.float64]]
    """Arrival of each frame that the link did not drop, since the first was sent."""
    report: LinkReport
    at_once: bool
    """Whether the link had read all of them before the first could leave."""


Bursts = Callable[..., Burst]


@pytest.fixture
def burst(wire: Any, patiently: Callable[..., Burst]) -> Bursts:
    """burst(link, directions): sent again where a busy machine held it up."""

    def send(link: LinkSettings, directions: tuple[Direction, ...]) -> Burst:
        ends = wire(link)
        start_s = time.monotonic()
        for _, direction in product(range(50), directions):
            ends.send(1242, direction)
        took_s = time.monotonic() - start_s
        received = {direction: ends.receive(50, timeout_s=1, direction=direction) for direction in directions}
        report = ends.link.finish()
        lags_us = [report.directions[direction].read_lag_us for direction in directions]
        return Burst(
            came_ms={direction: (times[:, 1] - times[0, 0]) / 1e6 for direction, times in received.items()},
            report=report,
            at_once=took_s + max(lag_us.max for lag_us in lags_us if lag_us) / 1e6 < AT_ONCE_S,
        )

    def burst(link: LinkSettings, directions: tuple[Direction, ...]) -> Burst:
        return patiently(lambda _: send(link, directions), lambda burst: not burst.at_once)

    return burst


@root
@pytest.mark.parametrize(("bandwidth_mbps", "frames"), [(1, 60), (100, 6000)])
def test_a_burst_leaves_at_the_rate(wire: Any, bandwidth_mbps: float, frames: int) -> None:
    ends = wire(LinkSettings.symmetric(bandwidth_mbps, 10, queue_packets=frames))
    ends.send(1242, times=frames)
    sent_ns = time.time_ns()
    times = ends.receive(frames)
    assert len(times) == frames
    # A busy machine delays the sender, too: a frame entered after its own time, and before the next one's.
    soonest_ns, latest_ns = (
        departures_ns(entered, 1242 * 8e3 / bandwidth_mbps, 10e6)
        for entered in (times[:, 0], np.append(times[1:, 0], sent_ns))
    )
    lateness_us = ends.link.finish().directions["up"].lateness_us
    assert lateness_us
    early_us = (soonest_ns - times[:, 1]).max() / 1e3
    # It delays frames, and never lets one out early: the least delayed one of the last third tells.
    late_us = (times[:, 1] - latest_ns)[-(frames // 3) :].min() / 1e3
    took_us = (times[-1, 1] - times[0, 1]) / 1e3
    print(
        f"\n{bandwidth_mbps} Mbit/s: {early_us:.1f} µs early, {late_us:.1f} µs late in {took_us / 1e3:.0f} ms"
    )
    assert early_us < 10  # up to the two clocks' reading
    assert late_us < 0.005 * took_us + lateness_us.max


def departures_ns(
    entered_ns: NDArray[np.int64], serialization_ns: float, delay_ns: float
) -> NDArray[np.float64]:
    """Return the departures of frames of one size, by the law of a link whose queue is long."""
    departures, free_ns = [], 0.0
    for at_ns in entered_ns:
        free_ns = max(free_ns, float(at_ns)) + serialization_ns
        departures.append(free_ns + delay_ns)
    return np.array(departures)


@root
@pytest.mark.parametrize("owd_ms", [0, 20])
def test_a_lone_frame_takes_the_delay_and_its_serialization(wire: Any, owd_ms: float) -> None:
    ends = wire(LinkSettings(DirectionSettings(100, owd_ms), DirectionSettings(50, owd_ms + 7)))
    rng = random.Random(1)
    for _ in range(200):
        ends.send(1242)
        time.sleep(rng.uniform(0.0005, 0.003))  # the traffic, not a wait
    times = ends.receive(200)
    error_us = (times[:, 1] - times[:, 0]) / 1e3 - owd_ms * 1e3 - 1242 * 8 / 100
    print(f"\nOWD {owd_ms} ms: error p50/p99/max {np.percentile(error_us, [50, 99, 100]).round(1)} µs")
    assert len(times) == 200
    assert error_us.min() > -10  # nothing is faster than light, up to the two clocks' reading
    lateness_us = ends.link.finish().directions["up"].lateness_us
    assert lateness_us  # on a busy machine, which the link tells of
    assert lateness_us.p99 <= lateness_us.p999 == lateness_us.max  # of 200
    assert np.median(error_us) < 2000 + lateness_us.p50


@root
def test_codel_drops_from_a_queue_that_stays_long(wire: Any) -> None:
    """40 frames of 10 ms each at once: the last ones would wait for 400 ms."""
    ends = wire(LinkSettings.symmetric(1, 5, queue_packets=100, queue="codel"))
    ends.send(1242, times=40)
    received = len(ends.receive(40, timeout_s=1))
    up = ends.link.finish().directions["up"]
    assert (up.frames_in, up.frames_out) == (40, received)
    assert up.conserved
    assert received == 40 - up.queue_dropped < 40


@pytest.fixture
def origin() -> Iterator[Origin]:
    new_origin = Origin()
    yield new_origin
    new_origin.close()


@root
def test_frames_that_come_while_the_link_is_out_are_dropped_and_counted(wire: Any, origin: Origin) -> None:
    """Time is what the link is told that it is: the first frame came a while ago, just now, or will come."""
    outage = LinkSettings(up=DirectionSettings(100, 1, outage_s=(20, 40)), down=DirectionSettings(100, 1))
    ends = wire(outage, origin=origin)
    ends.send(500)
    assert len(ends.receive(1)) == 1, "it has not been started"
    ends.link.start(time.monotonic_ns())
    for ago_s, passes in ((0, True), (30, False), (50, True), (-30, True)):
        origin.ns = time.monotonic_ns() - ago_s * 10**9
        for direction in DIRECTIONS:
            ends.send(500, direction)
        assert len(ends.receive(1, direction="down")) == 1
        assert len(ends.receive(1, timeout_s=30 if passes else 0.3)) == passes
    report = ends.link.finish()
    up, down = report.directions["up"], report.directions["down"]
    assert (up.frames_in, up.outage_dropped, up.frames_out) == (5, 1, 4)
    assert (down.frames_in, down.outage_dropped, down.frames_out) == (4, 0, 4)
    assert report.conserved
    assert report.configuration.up.outage_ns == (20 * 10**9, 40 * 10**9)
    assert report.configuration.down.outage_ns is None


@root
def test_outages_count_from_the_clients_first_frame_and_not_from_the_start_of_a_process(wire: Any) -> None:
    """The client's program took 30 s to start."""
    ends = wire(LinkSettings.symmetric(100, 1, outage_s=(20, 40)))
    ends.link.start(time.monotonic_ns() - 30 * 10**9)
    ends.send(500, "down")
    assert len(ends.receive(1, direction="down")) == 1, "no client has sent anything"
    ends.send(500)
    assert len(ends.receive(1)) == 1, "the client begins"


@root
def test_links_of_a_topology_count_outages_from_the_first_frame_to_any_of_them(
    wire: Any, origin: Origin
) -> None:
    first = wire(LinkSettings.symmetric(100, 1), origin=origin)
    second = wire(LinkSettings.symmetric(100, 1, outage_s=(0, 1000)), origin=origin)
    for ends in (first, second):
        ends.link.start(time.monotonic_ns())
    second.send(500, "down")
    assert len(second.receive(1, direction="down")) == 1
    first.send(500)
    first.receive(1)
    second.send(500, "down")
    assert len(second.receive(1, timeout_s=0.3, direction="down")) == 0
    up = first.link.finish().directions["up"]
    assert origin.ns == up.first_in_ns is not None


@root
def test_frames_of_others_than_the_client_begin_no_outage(wire: Any) -> None:
    """The background that shares the link is such another sender."""
    for clients, passes in ((["10.9.9.9"], 1), (["10.9.9.9", "10.9.0.1"], 0)):
        ends = wire(LinkSettings.symmetric(100, 1, outage_s=(0, 1000)), clients=clients)
        ends.link.start(time.monotonic_ns())
        ends.send(500)
        assert len(ends.receive(1, timeout_s=30 if passes else 0.3)) == passes, clients


@root
def test_what_is_in_the_link_when_it_goes_out_comes_out(wire: Any, origin: Origin) -> None:
    ends = wire(LinkSettings.symmetric(100, 300, outage_s=(20, 40)), origin=origin)
    ends.link.start(time.monotonic_ns())
    ends.send(500)
    wait_until(lambda: origin.ns is not None, "the first frame")
    origin.ns = time.monotonic_ns() - 20 * 10**9  # a frame is in the kernel when its send has returned
    ends.send(500)
    assert len(ends.receive(1)) == 1
    assert len(ends.receive(1, timeout_s=0.5)) == 0
    up = ends.link.finish().directions["up"]
    assert (up.outage_dropped, up.frames_out, up.conserved) == (1, 1, True)


@root
def test_the_first_frame_is_the_first_that_came_after_the_start(wire: Any) -> None:
    ends = wire(LinkSettings.symmetric(100, 1))
    ends.send(500)  # before the start: it is none
    ends.receive(1)
    started_ns = time.monotonic_ns()
    ends.link.start(started_ns)
    ends.send(500)
    sent_ns = time.monotonic_ns()  # a frame is in the kernel when its send has returned
    ends.send(500)
    assert len(ends.receive(2)) == 2
    report = ends.link.finish()
    assert started_ns <= report.directions["up"].first_in_ns <= sent_ns
    assert report.directions["down"].first_in_ns is None, "nothing was sent"


@root
def test_each_direction_is_that_of_the_symmetric_link_with_its_settings(burst: Bursts) -> None:
    # 20 and 10 ms for each frame
    link = LinkSettings(
        up=DirectionSettings(0.5, 30, queue_packets=15), down=DirectionSettings(1, 5, queue_bytes=25_000)
    )
    both = burst(link, DIRECTIONS)
    for direction in DIRECTIONS:
        settings = link.of(direction)
        alone = burst(LinkSettings(settings, settings), (direction,))
        reports = [run_of_link.report.directions[direction] for run_of_link in (both, alone)]
        for counter in ("frames_in", "queue_dropped", "frames_out", "max_queue_bytes", "conserved"):
            assert getattr(reports[0], counter) == getattr(reports[1], counter)
        assert reports[0].frames_in == 50
        came_ms = alone.came_ms[direction]
        expected_ms = settings.owd_ms + 1242 * 8e3 / settings.rate_bps * np.arange(1, len(came_ms) + 1)
        # Loose, since the machine may be busy.
        assert np.median(np.abs(both.came_ms[direction] - came_ms)) < 3
        assert np.median(np.abs(both.came_ms[direction] - expected_ms)) < 3
    assert [len(both.came_ms[direction]) for direction in DIRECTIONS] == [15, 20]


@root
def test_no_frame_is_late_because_the_other_direction_has_a_longer_delay(wire: Any) -> None:
    ends = wire(LinkSettings(up=DirectionSettings(100, 0), down=DirectionSettings(100, 100)))
    rng = random.Random(1)
    for _ in range(200):  # always, a frame of the other direction is due within 4 ms
        ends.send(100, "down")
        time.sleep(rng.uniform(0.0005, 0.0025))  # the traffic, not a wait
        ends.send(100)
        time.sleep(rng.uniform(0.0005, 0.0015))
    assert len(ends.receive(200)) == 200
    assert ends.link.finish().directions["up"].lateness_us.p50 < 500


@root
def test_real_frames_have_the_noise_of_the_law_and_overtake_where_they_may(wire: Any) -> None:
    seed, count = 2**64 - 3, 40
    settings = DirectionSettings(1000, 5, jitter=Jitter(30, "normal", seed), reorder=True)
    ends = wire(LinkSettings(settings, settings))
    ends.send(500, times=count)
    times = ends.receive(count)
    assert len(times) == count
    came_ms = (times[:, 1] - times[:, 0])[np.argsort(times[:, 0])] / 1e6
    expected_ms = 5 + np.array([noise_ns(NORMAL, 30 * 10**6, seed, number) for number in range(count)]) / 1e6
    # Loose, since the machine may be busy.
    assert np.median(np.abs(came_ms - expected_ms)) < 3
    assert (np.diff(times[:, 0]) < 0).sum() > count / 4, "many overtake"
    assert ends.link.finish().conserved


@root
def test_a_frame_that_is_duplicated_comes_twice_and_counts_as_two(wire: Any) -> None:
    ends = wire(
        LinkSettings(DirectionSettings(100, 1, duplicate=1.0, duplicate_seed=7), DirectionSettings(100, 1))
    )
    for _ in range(20):
        ends.send(500)
        ends.send(500, "down")
    assert (len(ends.receive(40)), len(ends.receive(20, direction="down"))) == (40, 20)
    report = ends.link.finish()
    assert (report.directions["up"].frames_in, report.directions["up"].frames_out) == (40, 40)
    assert report.conserved
    assert report.configuration.up.duplicate == [2**32, 7]
    assert not hasattr(report.configuration.down, "duplicate")


@root
def test_a_queue_marks_real_packets_that_can_be_marked_and_their_checksums_stay_right(wire: Any) -> None:
    up = DirectionSettings(1, 0, queue_packets=100, ecn=True, ecn_threshold_ms=25)
    ends = wire(LinkSettings(up, DirectionSettings(100, 1)))
    ends.receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    for codepoint in (0, 1, 2):
        ends.sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x20 | codepoint)
        ends.send(1250, times=8)  # 10 ms each: three of them wait for less than 25 ms
        tos = []
        ends.receiver.settimeout(10)
        while len(tos) < 8:
            _, control, _, _ = ends.receiver.recvmsg(2048, 256)
            tos += [
                data[0]
                for level, kind, data in control
                if (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS)
            ]
        assert tos == [0x20 | codepoint] * 3 + [0x20 | (3 if codepoint else 0)] * 5
    report = ends.link.finish()
    assert (report.directions["up"].marked, report.directions["down"].marked) == (10, 0)
    assert report.configuration.up.ecn and report.configuration.up.ecn_threshold_ns == 25 * 10**6
    assert not hasattr(report.configuration.down, "ecn")


@root
def test_scalable_packets_overtake_in_dualpi2_and_are_marked(wire: Any) -> None:
    """Five of either sort come at once, and take 10 ms each."""
    up = DirectionSettings(1, 0, queue_packets=100, queue="dualpi2", ecn=True)
    ends = wire(LinkSettings(up, DirectionSettings(100, 1)))
    ends.receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    for codepoint in (2, 1):
        ends.sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, codepoint)
        ends.send(1250, times=5)
    tos: list[int] = []
    ends.receiver.settimeout(10)
    while len(tos) < 10:
        _, control, _, _ = ends.receiver.recvmsg(2048, 256)
        tos += [
            data[0] for level, kind, data in control if (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS)
        ]
    report = ends.link.finish()
    # The scalable ones were sent last.
    assert tos[-1] != 1 and tos[-3:].count(3) < 3
    assert report.directions["up"].marked == tos.count(3) >= 2 and report.conserved
    assert report.configuration.up.queue == "dualpi2"


@root
def test_fq_codel_lets_another_flow_s_packet_pass_those_of_a_long_queue(wire: Any) -> None:
    up = DirectionSettings(0.5, 0, queue_packets=100, queue="fq_codel")  # 20 ms each
    ends = wire(LinkSettings(up, DirectionSettings(100, 1)))
    ends.send(1250, times=5)
    make = partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
    with run_inside(ends.near.netns_path, make) as other:
        other.sendto(bytes(100), ends.receiver.getsockname())
    ends.receiver.settimeout(10)
    lengths = [len(ends.receiver.recv(2048)) for _ in range(6)]
    assert lengths.index(100) <= 2
    assert ends.link.finish().conserved


def udp_checksum_errors() -> int:
    return discarded(threading.get_native_id())["UDP checksum"]


@root
def test_frames_of_a_wire_meet_all_effects_and_the_kernel_drops_the_corrupted_ones(wire: Any) -> None:
    up = DirectionSettings(
        100,
        20,
        duplicate=1.0,
        corrupt_p=0.5,
        corrupt_seed=3,
        reorder_p=0.25,
        reorder_by_packets=2,
        reorder_seed=5,
        mtu_bytes=600,
        policer_mbps=1,
        policer_burst_bytes=30 * 542,
        shaper_burst_bytes=9000,
    )
    ends = wire(LinkSettings(up, DirectionSettings(100, 20)))
    ends.send(700, times=4)  # longer than the MTU
    ends.send(542, times=40)  # in less than the 4 ms in which the policer earns another frame
    times, report = ends.receive(80, timeout_s=0.5), ends.link.finish()
    counted = report.directions["up"]
    passed = counted.frames_out // 2
    assert counted.oversize_dropped == 4
    assert 30 <= passed < 40 and counted.policer_dropped == 40 - passed
    corrupted = [drawn(3, n) < 2**31 for n in range(passed)]
    assert counted.corrupted == 2 * sum(corrupted)
    assert len(times) == 2 * (passed - sum(corrupted))
    assert run_inside(ends.far.netns_path, udp_checksum_errors) == counted.corrupted
    assert (np.diff(times[:, 0]) < 0).any(), "some overtake"
    assert report.conserved
    assert report.configuration.up.overtake == [2**30, 5, 2]
    assert report.configuration.up.policer == [10**6, 30 * 542]
    assert report.configuration.up.mtu_bytes == 600 and not hasattr(report.configuration.down, "mtu_bytes")


@root
def test_finish_stops_every_frame_and_leaves_the_interfaces(wire: Any) -> None:
    ends = wire(LinkSettings.symmetric(100, 1000))
    ends.send(1000, times=5)
    assert len(ends.receive(5)) == 5
    ends.send(1000, times=7)  # they are in the kernel, and none is due
    report = ends.link.finish()
    ends.send(1000, times=3)
    assert len(ends.receive(1, timeout_s=0.5)) == 0
    up = report.directions["up"]
    assert (up.frames_in, up.frames_out, up.in_flight) == (12, 5, 7)
    assert (up.bytes_in, up.bytes_out) == (12_000, 5_000)
    assert report.conserved
    assert report.directions["down"].frames_in == 0
    received = json.loads(
        run_inside(ends.far.netns_path, partial(run_tool, ["ip", "-j", "-s", "link", "show", "far"]))
    )
    assert received[0]["stats64"]["rx"]["packets"] == up.frames_out


@root
def test_a_frame_longer_than_the_mtu_is_dropped_and_counted(wire: Any) -> None:
    ends = wire(LinkSettings.symmetric(100, 1))
    run_inside(ends.near.netns_path, partial(run_tool, ["ip", "link", "set", "near", "mtu", "9000"]))
    ends.send(1514)
    ends.send(1515)
    ends.send(9014)
    assert len(ends.receive(1)) == 1
    assert len(ends.receive(1, timeout_s=0.3)) == 0
    up = ends.link.finish().directions["up"]
    assert (up.frames_in, up.bytes_in) == (3, 1514 + 1515 + 9014)
    assert (up.oversize_dropped, up.frames_out) == (2, 1)
    assert up.conserved


@root
def test_a_wire_that_is_kept_from_running_reports_it(wire: Any) -> None:
    ends = wire(LinkSettings.symmetric(100, 1), late_bound_us=20_000)
    cpu = min(os.sched_getaffinity(0))
    os.sched_setaffinity(ends.link._process.pid, {cpu})
    # Something of higher priority takes the wire's CPU while the frames arrive and for 60 ms more.
    script = (
        f"import os, select, time; os.sched_setaffinity(0, {{{cpu}}});"
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60)); print(flush=True);"
        "end = time.monotonic() + 2\n"
        "while time.monotonic() < end and not select.select([0], [], [], 0)[0]: pass"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1) as hog:
        assert hog.stdin is not None
        assert hog.stdout is not None
        hog.stdout.readline()
        ends.send(500, times=10)
        time.sleep(0.06)
        hog.stdin.close()
    assert len(ends.receive(10)) == 10
    report = ends.link.finish()
    up = report.directions["up"]
    print(f"\nread lag {up.read_lag_us}, lateness {up.lateness_us}")
    assert up.read_lag_us.max > 50_000
    assert up.lateness_us.max > 50_000
    assert up.late == 10
    assert report.late == 10


@root
def test_frames_that_came_while_the_wire_was_stopped_are_late(wire: Any) -> None:
    ends = wire(LinkSettings.symmetric(100, 1), late_bound_us=20_000)
    pid = ends.link._process.pid
    ends.send(500, times=5)
    ends.receive(5)
    os.kill(pid, signal.SIGSTOP)
    ends.send(500, times=10)
    time.sleep(0.06)  # the length of the stop
    os.kill(pid, signal.SIGCONT)
    assert len(ends.receive(10)) == 10
    report = ends.link.finish()
    up = report.directions["up"]
    assert report.late == up.late == 10
    assert min(up.read_lag_us.max, up.lateness_us.max) > 50_000
    assert up.lateness_us.max <= up.late_sum_us < 3 * up.lateness_us.max, "ten frames were late together"
    assert up.conserved


@root
def test_a_stop_that_ends_before_a_frame_is_due_delays_no_frame(wire: Any, patiently: Any) -> None:
    def stop(_: int) -> tuple[float, DirectionReport]:
        """Return the largest lateness of a frame in µs, and the link's report."""
        ends = wire(LinkSettings.symmetric(100, 200), late_bound_us=20_000)
        pid = ends.link._process.pid
        os.kill(pid, signal.SIGSTOP)
        ends.send(500, times=10)
        time.sleep(0.06)  # the length of the stop
        os.kill(pid, signal.SIGCONT)
        times = ends.receive(10)
        error_us = (times[:, 1] - times[:, 0]) / 1e3 - 200_000
        return float(error_us.max()), ends.link.finish().directions["up"]

    # The machine may stand still, too, or the sender between looking at its clock and sending.
    error_us, up = patiently(stop, lambda stopped: stopped[1].late > 0 or stopped[0] >= 20_000)
    assert error_us < 20_000
    assert up.read_lag_us.max > 50_000
    assert up.late == 0
    assert up.late_sum_us == 0


@root
def test_the_queue_is_that_of_the_arrivals_however_late_they_are_read(wire: Any) -> None:
    ends = wire(LinkSettings.symmetric(100, 1, queue_packets=2))  # 0.1 ms for each frame
    pid = ends.link._process.pid
    os.kill(pid, signal.SIGSTOP)
    for _ in range(20):
        ends.send(1242)
        time.sleep(0.001)  # the traffic, not a wait
    os.kill(pid, signal.SIGCONT)
    assert len(ends.receive(20)) == 20
    up = ends.link.finish().directions["up"]
    assert up.queue_dropped == 0
    assert up.max_queue_packets == 1


@root
def test_what_came_while_the_wire_slept_is_in_its_report(wire: Any) -> None:
    ends = wire(LinkSettings.symmetric(100, 5))
    ends.send(500, times=20)  # the first wakes the wire, which then sleeps until it is due
    up = ends.link.finish().directions["up"]
    assert up.frames_in == 20
    assert up.frames_out + up.in_flight == 20


@root
def test_a_frame_is_not_late_though_one_of_the_other_direction_is_due_long_after_it(
    wire: Any, patiently: Any
) -> None:
    def late(_: int) -> int:
        ends = wire(LinkSettings.symmetric(0.1, 1), late_bound_us=20_000)
        ends.send(1242)  # 99 ms
        ends.send(100, "down")  # 8 ms
        assert len(ends.receive(1, direction="down")) == len(ends.receive(1)) == 1
        return ends.link.finish().late

    assert patiently(late, bool) == 0  # the machine may stand still


@root
def test_the_report_says_what_ran_and_how(wire: Any) -> None:
    ends = wire(LinkSettings.symmetric(7.5, 12, queue_bytes=20_000), late_bound_us=345)
    ends.send(100)
    ends.receive(1)
    report = ends.link.finish()
    assert report.backend == "wire"
    assert report.command[0] == str(WIRE)
    of_each = {"rate_bps": 7_500_000, "delay_ns": 12_000_000, "queue_bytes": 20_000, "queue": "droptail"}
    shared = {"mtu": 1500, "late_bound_us": 345}
    # What both directions share stands beside them, too, as it did before they could differ.
    configuration = report.model_dump(exclude_none=True)["configuration"]
    assert configuration == {"up": of_each, "down": of_each, **of_each, **shared}
    assert LinkReport.model_validate_json(report.model_dump_json()) == report
    assert report.late_bound_us == 345
    assert 0 < report.cpu_s < report.elapsed_s
    assert report.spun_s is not None
    version = subprocess.run([WIRE, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.split() == ["wire", report.version]


TEXT = "rate_bps 1000000\ndelay_ns 0\nqueue_packets 10\n"


def arguments(near: str, far: str, **changes: str) -> list[str]:
    options = {
        "near-netns": near,
        "near-interface": "near",
        "far-netns": far,
        "far-interface": "far",
        "up": TEXT,
        "down": TEXT,
    } | {name.replace("_", "-"): value for name, value in changes.items()}
    return [str(WIRE), *(word for name, value in options.items() for word in (f"--{name}", value))]


@root
@pytest.mark.parametrize("ending", ["end of input", signal.SIGTERM])
def test_every_orderly_end_reports_and_removes_the_interfaces(two_namespaces: Any, ending: Any) -> None:
    near, far = two_namespaces
    with subprocess.Popen(arguments(near, far), stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "ready"
        if ending == "end of input":
            process.stdin.close()
        else:
            process.send_signal(ending)
        report = json.loads(process.stdout.read())
        assert report["event"] == "report"
        assert report["spun_s"] == 0, "nothing was due"
    assert process.returncode == 0
    for path in (near, far):
        links = json.loads(run_inside(path, partial(run_tool, ["ip", "-j", "link"])))
        assert [link["ifname"] for link in links] == ["lo"]


@root
def test_a_link_that_cannot_be_made_says_why_in_one_line(two_namespaces: Any) -> None:
    near, far = two_namespaces
    command = ["ip", "tuntap", "add", "dev", "kept", "mode", "tap"]
    subprocess.run(["nsenter", f"--net={near}", *command], check=True)
    for first, second in (("same", "same"), ("kept", "other")):
        ends = LinkEnd(near, first), LinkEnd(near, second)
        link = WireLink(*ends, LinkSettings.symmetric(1, 1), 1000)
        with pytest.raises(LinkError, match=r"^wire: cannot create the TAP .*busy$"):
            link.wait_ready()
        link.close()
    link = WireLink(LinkEnd("/nowhere", "near"), LinkEnd(far, "far"), LinkSettings.symmetric(1, 1), 1000)
    with pytest.raises(LinkError, match=r"^wire: cannot open /nowhere: No such file or directory$"):
        link.wait_ready()
    link.close()


@root
def test_a_wire_ends_with_its_parent_even_if_its_input_stays_open(two_namespaces: Any) -> None:
    script = (
        f"import subprocess, time; wire = subprocess.Popen({arguments(*two_namespaces)!r}, stdout=-1);"
        "wire.stdout.readline(); print(wire.pid, flush=True); time.sleep(1000)"
    )
    kept_open, wire_input = os.pipe()
    with subprocess.Popen([sys.executable, "-c", script], stdin=kept_open, stdout=-1, text=True) as parent:
        assert parent.stdout is not None
        wire_pid = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    result, _, _ = select.select([wire_pid], [], [], 60)
    for descriptor in (kept_open, wire_input, wire_pid):
        os.close(descriptor)
    assert result


@root
def test_a_wire_that_was_killed_is_an_error_of_finish(wire: Any) -> None:
    ends = wire(LinkSettings.symmetric(1, 1))
    ends.link._process.kill()
    ends.link._process.wait()
    with pytest.raises(LinkError, match="ended with SIGKILL"):
        ends.link.finish()


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"up": TEXT.replace("1000000", "fast")}, "--up: rate_bps fast: must be a whole number from 1000"),
    ({"down": TEXT + "speed 5"}, "--down: speed is no name: must be one of rate_bps, delay_ns"),
    ({"down": ""}, "--down: rate_bps is missing: must be"),
    ({"up_steps_fd": "x"}, "--up-steps-fd x: must be a whole number"),
    ({"down_steps_fd": "1000"}, "--down-steps-fd 1000: must be an open file of steps of 32 bytes"),
    ({"rate_bps": "1000000"}, "--rate-bps is not an option"),
    ({"client": "server"}, "--client server: must be an address of IPv4 or IPv6"),
    ({"origin_fd": "-1"}, "--origin-fd -1: must be"),
    ({"near_interface": "sixteen_letters_"}, "--near-interface sixteen_letters_: must be"),
    ({"near_interface": "a/b"}, "--near-interface a/b: must be"),
    ({"bogus": "1"}, "--bogus is not an option"),
]


NEEDED = ["near-netns", "far-interface", "up", "down"]


def test_bad_input_is_refused_in_one_line() -> None:
    for changes, complaint in REFUSED:
        refusal = subprocess.run(arguments("-", "-", **changes), capture_output=True, text=True, check=False)
        assert (refusal.returncode, refusal.stdout) == (2, "")
        assert refusal.stderr.startswith(f"wire: {complaint}")
        assert refusal.stderr.count("\n") == 1
    for missing in NEEDED:
        words = arguments("-", "-")
        at = words.index(f"--{missing}")
        refusal = subprocess.run(words[:at] + words[at + 2 :], capture_output=True, text=True, check=False)
        assert refusal.returncode == 2
        assert f"--{missing}" in refusal.stderr


@root
def test_an_unknown_command_is_refused(two_namespaces: Any) -> None:
    for command in ("stop", "x" * 100):
        refusal = subprocess.run(
            arguments(*two_namespaces), input=f"{command}\n", capture_output=True, text=True, check=False
        )
        assert refusal.returncode == 2
        assert refusal.stderr.endswith("the only ones are start NS and finish\n")


@root
def test_the_queue_of_each_direction_holds_exactly_its_limit(wire: Any, patiently: Any) -> None:
    """The first frame takes 99 ms, and all are sent in less."""
    up, down = {"queue_packets": 20}, {"queue_bytes": 10 * 1242 + 1241}

    def fill(_: int) -> tuple[float, LinkReport]:
        ends = wire(LinkSettings(DirectionSettings(0.1, 0, **up), DirectionSettings(0.1, 0, **down)))
        start_s = time.monotonic()
        for _, direction in product(range(50), DIRECTIONS):
            ends.send(1242, direction)
        return time.monotonic() - start_s, ends.link.finish()

    _, report = patiently(fill, lambda filled: filled[0] > 0.09)
    for direction, most in zip(DIRECTIONS, (20, 10), strict=True):
        way = report.directions[direction]
        assert (way.frames_in, way.queue_dropped) == (50, 50 - most), direction
        assert (way.max_queue_packets, way.max_queue_bytes) == (most, 1242 * most), direction
        assert way.conserved, direction


@root
def test_frames_that_the_kernel_discards_break_conservation_and_are_not_looked_for(wire: Any) -> None:
    ends = wire(LinkSettings.symmetric(100, 1))
    pid = ends.link._process.pid
    os.kill(pid, signal.SIGSTOP)  # nobody reads: the TAP's queue of 10,000 overflows
    ends.send(100, times=10_500)
    os.kill(pid, signal.SIGCONT)
    ends.receive(1)
    time.sleep(1)  # nothing is to be done
    report = ends.link.finish()
    assert report.directions["up"].kernel_dropped == 500
    assert not report.directions["up"].conserved
    assert report.cpu_s < 0.5 * report.elapsed_s
