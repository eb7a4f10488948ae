"""The clock of a netem link: its law, and what it says of a link that tells how late it was itself."""

import ctypes
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fecbench.checkout import REPOSITORY
from fecbench.dropper.command import Attachment, Filter, attach, show
from fecbench.dropper.model import Uniform
from fecbench.topologies.link import LinkError, LinkSettings
from fecbench.topologies.namespace import run_inside
from fecbench.topologies.netem_clock import EARLY_US, NetemClock
from fecbench.topologies.topology import Topology, build
from fecbench.topologies.wire_link import WireLink
from tests.support.patience import ahead
from tests.waiting import wait_until

root = pytest.mark.root
TOPOLOGIES = REPOSITORY / "topologies"
BUCKETS = 16 * 61


class Lateness(ctypes.Structure):
    _fields_ = [
        ("buckets", ctypes.c_uint64 * BUCKETS),
        ("count", ctypes.c_uint64),
        ("sum_ns", ctypes.c_uint64),
        ("max_ns", ctypes.c_uint64),
    ]


class Overdue(ctypes.Structure):
    _fields_ = [("total_ns", ctypes.c_uint64), ("until_ns", ctypes.c_uint64)]


class Law(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("bytes_per_s", "delay_ns", "late_bound_ns")),
        *((name, ctypes.c_uint64) for name in ("due_ns", "frames", "late", "early_max_ns")),
        ("lateness", Lateness),
        ("overdue", Overdue),
    ]


@pytest.fixture(scope="module")
def law_frame(shared_library: Callable[..., ctypes.CDLL]) -> Callable[..., None]:
    library = shared_library(TOPOLOGIES / "clock" / "law.c", TOPOLOGIES / "wire" / "lateness.c")

    def law_frame(law: Law, entered_ns: int, left_ns: int, size: int) -> None:
        arguments = map(ctypes.c_uint64, (entered_ns, left_ns, size))
        library.law_frame(ctypes.byref(law), *arguments)

    return law_frame


FRAMES = st.lists(
    st.tuples(st.integers(0, 3_000_000), st.integers(60, 1514), st.integers(0, 2_000_000)), max_size=40
)


@given(FRAMES, st.integers(100_000, 10**9), st.integers(0, 10**9))
@settings(max_examples=100, deadline=None)
def test_frames_are_due_one_serialization_after_another_and_then_the_delay(
    law_frame: Callable[..., None], frames: list[tuple[int, int, int]], rate_bps: int, delay_ns: int
) -> None:
    law = Law(bytes_per_s=rate_bps // 8, delay_ns=delay_ns, late_bound_ns=1_000_000)
    now_ns, free_ns, latenesses, until_ns, overdue_ns = 10**9, 0.0, [], 0.0, 0.0
    for gap_ns, size, late_ns in frames:
        now_ns += gap_ns
        free_ns = max(now_ns, free_ns) + 8e9 * size / (rate_bps // 8 * 8)
        left_ns = round(free_ns + delay_ns) + late_ns
        law_frame(law, now_ns, left_ns, size)
        latenesses.append(late_ns)
        if late_ns > 1_000_000:
            overdue_ns += left_ns - max(free_ns + delay_ns, until_ns)
            until_ns = left_ns
    # The law counts whole nanoseconds.
    slack_ns = len(frames) + 1
    assert law.early_max_ns == 0
    assert law.frames == law.lateness.count == len(frames)
    assert law.overdue.total_ns == pytest.approx(overdue_ns, abs=slack_ns * (len(frames) + 1)) or any(
        abs(late_ns - 1_000_000) <= slack_ns for late_ns in latenesses
    )
    assert law.lateness.max_ns == pytest.approx(max(latenesses, default=0), abs=slack_ns)
    assert law.late == pytest.approx(
        sum(late_ns > 1_000_000 for late_ns in latenesses),
        abs=sum(abs(late_ns - 1_000_000) <= slack_ns for late_ns in latenesses),
    )


def test_a_frame_that_leaves_too_soon_is_early(law_frame: Callable[..., None]) -> None:
    law = Law(bytes_per_s=1_250_000, delay_ns=20_000_000, late_bound_ns=1_000_000)
    law_frame(law, 0, 20_000_000 + 1_211_200, 1514)
    assert (law.early_max_ns, law.lateness.max_ns) == (0, 0)
    law_frame(law, 0, 20_000_000 + 2 * 1_211_200 - 3000, 1514)
    assert (law.early_max_ns, law.lateness.max_ns) == (3000, 0)


def test_time_in_which_several_frames_were_late_counts_once(law_frame: Callable[..., None]) -> None:
    law = Law(bytes_per_s=1_250_000, delay_ns=0, late_bound_ns=1_000_000)
    for _ in range(3):  # due at 1, 2 and 3 ms
        law_frame(law, 0, 10_000_000, 1250)
    assert (law.late, law.overdue.total_ns) == (3, 9_000_000)


Timed = tuple[Topology, NetemClock]


@pytest.fixture
def timed() -> Iterator[Timed]:
    """A link by wire, which knows how late it was, with the clock of netem around it."""
    link = LinkSettings.symmetric(10, 20)
    with build("single-path", {"internet": link}, "wire") as topology:
        exits = topology.exits
        clock = NetemClock(exits["internet", "down"], exits["internet", "up"], link, 1000)
        yield topology, clock
        clock.close()


def send(topology: Topology, datagrams: int, size: int = 1200) -> None:
    """Send datagrams at once to the server. Those of one size have the same bytes, ports and identification,
    too."""
    in_client = f"/proc/{topology.client.pid}/ns/net"
    opened = partial(socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    addresses = b"".join(map(socket.inet_aton, (topology.client.address, topology.server.address)))
    header = struct.pack("!BBHHHBBH8s", 0x45, 0, 0, 1, 0, 64, socket.IPPROTO_UDP, 0, addresses)
    datagram = header + struct.pack("!HHHH", 9, 9, 8 + size, 0) + bytes(size)
    with run_inside(in_client, opened) as sender, ahead():
        for _ in range(datagrams):
            sender.sendto(datagram, (topology.server.address, 0))


def await_frames(topology: Topology, frames: int) -> None:
    """Wait until so many of all datagrams have left the link."""
    await_bytes(topology, frames * 1242)


def await_bytes(topology: Topology, least: int) -> None:
    wait_until(lambda: topology.carried_bytes("internet", "up") >= least, "the frames")


@root
def test_it_sees_each_frame_leave_a_link_that_keeps_the_law(timed: Timed) -> None:
    topology, clock = timed
    ping = ["ping", "-q", "-c", "20", "-i", "0.01", "-s", "1000", topology.server.address]
    topology.client.popen(ping, stdout=subprocess.DEVNULL).wait(timeout=60)
    report, departures = topology.finish()["internet"], clock.finish()
    for direction, times in departures.items():
        counted = report.directions[direction]
        assert counted.lateness_us
        assert times.frames == counted.frames_out >= 20
        # Wire counts from when the kernel took the frame, a little later, to when it gave the frame back.
        assert times.early_us <= EARLY_US
        assert times.lateness_us.max >= counted.lateness_us.max * 15 / 16 - EARLY_US


@root
def test_it_says_when_the_first_frame_came_after_the_start(timed: Timed) -> None:
    topology, clock = timed
    send(topology, 3)
    started_ns = time.monotonic_ns()
    clock.start(started_ns)
    send(topology, 1)
    sent_ns = time.monotonic_ns()
    send(topology, 3)
    await_frames(topology, 7)
    topology.finish()
    first_ns = clock.finish()["up"].first_in_ns
    assert first_ns
    assert started_ns <= first_ns <= sent_ns


@root
def test_of_a_link_that_is_not_started_it_says_no_first_frame(timed: Timed) -> None:
    topology, clock = timed
    send(topology, 1)
    await_frames(topology, 1)
    topology.finish()
    assert clock.finish()["up"].first_in_ns is None


@root
def test_frames_of_the_same_bytes_and_those_that_are_dropped_behind_it_are_seen(timed: Timed) -> None:
    topology, clock = timed
    exit_ = topology.exits["internet", "up"]
    place = Attachment(exit_.netns_path, exit_.interface, "ingress")
    attach(place, Uniform(0.5), 1, Filter(protocol="udp"))
    send(topology, 30)
    await_frames(topology, 30)
    assert show(place).dropped > 5
    frames = topology.finish()["internet"].directions["up"].frames_out
    assert clock.finish()["up"].frames == frames >= 30


@root
def test_frames_of_the_same_bytes_that_its_queue_dropped_make_no_later_frame_late() -> None:
    link = LinkSettings.symmetric(10, 400, queue_packets=5)
    with build("single-path", {"internet": link}, "wire") as topology:
        exits = topology.exits
        clock = NetemClock(exits["internet", "down"], exits["internet", "up"], link, 1000)
        send(topology, 20)
        time.sleep(0.1)
        send(topology, 1, size=600)
        for _ in range(12):  # all of them are in the link at once
            time.sleep(0.02)
            send(topology, 1)
        await_bytes(topology, (5 + 12) * 1242 + 642)
        up = topology.finish()["internet"].directions["up"]
        assert up.queue_dropped > 10
        report = clock.finish()["up"]
        clock.close()
    assert report.frames == up.frames_out
    # Taken for those that were dropped, each would be 20 ms later than the one before.
    assert up.lateness_us
    assert report.lateness_us.max < 100_000 + up.lateness_us.max + up.read_lag_us.max


@root
def test_a_link_that_stands_still_is_late_for_so_long(timed: Timed) -> None:
    topology, clock = timed
    link = topology._links["internet"]
    assert isinstance(link, WireLink)
    link._process.send_signal(signal.SIGSTOP)
    send(topology, 5)
    time.sleep(0.2)
    link._process.send_signal(signal.SIGCONT)
    await_frames(topology, 5)
    topology.finish()
    report = clock.finish()["up"]
    # Due 20 ms and a few serializations after they were sent.
    assert report.late >= 5
    assert report.lateness_us.max >= 170_000
    assert report.late_sum_us >= 170_000


@root
def test_another_law_than_the_link_s_is_seen() -> None:
    link, other = LinkSettings.symmetric(10, 20), LinkSettings.symmetric(9, 20)
    with build("single-path", {"internet": link}, "wire") as topology:
        exits = topology.exits
        clock = NetemClock(exits["internet", "down"], exits["internet", "up"], other, 1000)
        send(topology, 30)
        await_frames(topology, 30)
        topology.finish()
        with pytest.raises(LinkError, match=r"^a frame left netem up .* µs before it was due$"):
            clock.finish()
        clock.close()


NOTHING: dict[str, Any] = {
    "frames": 9,
    "unseen": 0,
    "first_in_ns": None,
    "early_us": 0,
    "late": 0,
    "late_sum_us": 0,
}
NOTHING |= {"lateness_us": {"p50": 0, "p99": 0, "p999": 0, "max": 0}}


@root
def test_frames_that_were_missed_are_no_measurement(timed: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    _, clock = timed
    answer: dict[str, Any] = {"untold": 0, "up": NOTHING, "down": NOTHING}
    monkeypatch.setattr(clock, "_answer", lambda _: answer)
    assert clock.finish()["up"].frames == 9
    for unseen, untold, missed in ((1, 0, 1), (0, 2, 2)):
        answer |= {"untold": untold, "up": NOTHING | {"unseen": unseen}}
        with pytest.raises(LinkError, match=f"^the clock of netem missed {missed} frames up$"):
            clock.finish()


@root
def test_an_interface_that_is_not_there_is_one_line() -> None:
    link = LinkSettings.symmetric(10, 20)
    with build("single-path", {"internet": link}, "wire") as topology:
        end = topology.exits["internet", "up"]
        nowhere = type(end)(end.netns_path, "nowhere")
        with pytest.raises(LinkError, match=r"^clock: nowhere: .*$"):
            NetemClock(nowhere, end, link, 1000)
