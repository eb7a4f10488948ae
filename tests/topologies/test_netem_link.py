"""The netem backend: the tc commands that it gives, and links made by them as far as the kernel can."""

import json
import math
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.dropper.command import Counters
from fecbench.runners.tasks.outcome import DropperOutcome
from fecbench.runners.tasks.validity import Validity
from fecbench.runners.trial.judging.conservation import (
    doubts_of_configuration,
    doubts_of_link,
    late_s,
    longest_late_s,
)
from fecbench.topologies import netem_clock, netem_link, netem_shown
from fecbench.topologies.link import (
    DIRECTIONS,
    DirectionSettings,
    LinkEnd,
    LinkError,
    LinkSettings,
    QueueLimit,
)
from fecbench.topologies.link_report import DirectionConfiguration
from fecbench.topologies.namespace import run_in_new, run_inside, run_tool
from fecbench.topologies.netem_clock import NetemClock
from fecbench.topologies.netem_link import (
    NetemLink,
    burst_bytes,
    delay_commands,
    drain_s,
    netem_is_available,
    queue_commands,
    root_counters,
)
from fecbench.topologies.netem_shown import DELAY_LINE_LIMIT_PACKETS
from fecbench.topologies.sysctls import QUIET_SYSCTLS, write_sysctls
from fecbench.topologies.topology import DEFAULT_LATE_BOUND_US, Host, Topology, build
from tests.support.patience import ahead

Netem = tuple[Callable[..., Topology], bool]

root = pytest.mark.root

# Verbatim of iproute2 6.1: nine frames of 1042 bytes were offered to the shaper, with room for five.
SHOWN_BY_TC = (Path(__file__).parent / "tc_qdisc_show.json").read_text()


def test_a_queue_in_bytes_is_the_limit_of_the_shaper() -> None:
    assert queue_commands("r1-r2", DirectionSettings(10, 20), QueueLimit(bytes=75_000)) == [
        "qdisc add dev r1-r2 root handle 1: tbf rate 10000000bit burst 1639 limit 75000"
    ]


def test_a_queue_in_packets_is_a_queue_below_the_shaper() -> None:
    shaper, queue = queue_commands("r1-r2", DirectionSettings(0.3, 20), QueueLimit(packets=7))
    assert shaper.startswith("qdisc add dev r1-r2 root handle 1: tbf rate 300000bit ")
    assert queue == "qdisc add dev r1-r2 parent 1:1 handle 10: pfifo limit 7"


@given(st.floats(0.1, 10_000), st.floats(0, 10_000))
def test_no_link_can_fill_the_delay_line(bandwidth_mbps: float, owd_ms: float) -> None:
    settings = DirectionSettings(bandwidth_mbps, owd_ms)
    (command,) = delay_commands("far", settings)
    limit = int(re.search(r"limit (\d+) rate", command)[1])
    smallest_frame_bits = 8 * 14
    assert limit == DELAY_LINE_LIMIT_PACKETS
    assert limit > settings.rate_bps * settings.delay_ns / 1e9 / smallest_frame_bits
    delay_us = float(re.search(r"delay ([\d.]+)us", command)[1])
    assert round(delay_us * 1000) == settings.delay_ns


@given(st.floats(0.1, 10_000))
def test_the_shaper_lets_a_full_frame_pass(bandwidth_mbps: float) -> None:
    assert burst_bytes(DirectionSettings(bandwidth_mbps, 1)) >= 1514


def test_a_link_has_drained_when_its_slower_direction_has() -> None:
    slow, fast = DirectionSettings(1, 300, queue_bytes=25_000), DirectionSettings(100, 20, queue_packets=10)
    assert drain_s(LinkSettings(up=slow, down=fast)) == pytest.approx(0.2 + 0.3)
    assert drain_s(LinkSettings(up=fast, down=slow)) == pytest.approx(0.2 + 0.3)
    assert drain_s(LinkSettings(up=fast, down=fast)) == pytest.approx(10 * 1514 * 8 / 100e6 + 0.02)


def test_the_counters_are_those_of_the_root_qdisc() -> None:
    counters = root_counters(SHOWN_BY_TC)
    assert (counters.packets, counters.bytes, counters.drops, counters.queued) == (1, 1042, 3, 5)


@root
def test_this_kernel_s_queue_holds_exactly_its_limit() -> None:
    def count_drops(commands_of_queue: list[str]) -> tuple[int, int]:
        commands = [
            "link add v0 address 02:00:00:00:00:0a mtu 1500 type veth peer name v1",
            "link set v0 up",
            "link set v1 up",
            "address add 10.8.0.1/24 dev v0",
            "neighbour add 10.8.0.2 lladdr 02:00:00:00:00:0b dev v0 nud permanent",
        ]
        write_sysctls(QUIET_SYSCTLS)
        run_tool(["ip", "-batch", "-"], commands)
        run_tool(["tc", "-batch", "-"], commands_of_queue)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            for _ in range(50):
                sender.sendto(bytes(1200), ("10.8.0.2", 9))
        counters = root_counters(run_tool(["tc", "-s", "-j", "qdisc", "show", "dev", "v0"]))
        return counters.drops, counters.packets + counters.queued

    # The first frame finds a full bucket and does not wait.
    for limit in ({"queue_packets": 20}, {"queue_bytes": 20 * 1242 + 1241}):
        settings = LinkSettings.symmetric(0.1, 0, **limit)
        commands_of_queue = queue_commands("v0", settings.up, settings.queue_limit("up"))
        assert run_in_new(partial(count_drops, commands_of_queue)) == (29, 21), limit


def stand_in_for_delay(interface: str, _: DirectionSettings) -> list[str]:
    return [f"qdisc add dev {interface} root handle 1: tbf rate 10gbit burst 1000000 limit 1000000"]


def configuration_without_delay(
    expected: DirectionConfiguration, queue: str, _: str
) -> DirectionConfiguration:
    """The queue's is the kernel's word; the delay line's is made up as the stand-in is."""
    options = {
        "limit": DELAY_LINE_LIMIT_PACKETS,
        "delay": {"delay": expected.delay_ns / 1e9},
        "rate": {"rate": expected.rate_bps // 8},
    }
    line = [{"kind": "netem", "options": options}]
    return netem_shown.configuration(expected, queue, json.dumps(line))


def put_stand_in(
    monkeypatch: pytest.MonkeyPatch,
    commands: Callable[[str, DirectionSettings], list[str]] = stand_in_for_delay,
) -> None:
    monkeypatch.setattr(netem_clock, "EARLY_US", math.inf)
    output = SimpleNamespace(configuration=configuration_without_delay)
    monkeypatch.setattr(netem_link, "netem_shown", output)
    monkeypatch.setattr(netem_link, "delay_commands", commands)
    monkeypatch.setattr("fecbench.topologies.topology.netem_is_available", lambda: True)


@pytest.fixture(params=["without the delay", "with the delay"])
def netem_topology(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Netem]:
    """build() with the netem backend. Without the delay, a shaper that never shapes stands in for netem, so
    that everything else is tested on kernels without it."""
    delayed = request.param == "with the delay"
    if delayed and not netem_is_available():
        pytest.skip("needs sch_netem")
    if not delayed:
        put_stand_in(monkeypatch, stand_in_for_delay)
    yield lambda link: build("single-path", {"internet": link}, "netem"), delayed


with_the_delay = pytest.mark.parametrize("netem_topology", ["with the delay"], indirect=True)


@root
def test_a_ping_crosses_the_relay_and_every_frame_is_accounted_for(netem_topology: Netem) -> None:
    make, delayed = netem_topology
    with make(LinkSettings.symmetric(10, 20)) as topology:
        assert topology.backend == "netem"
        ping = ["ping", "-q", "-c", "20", "-i", "0.01", topology.server.address]
        summary, _ = topology.client.popen(ping, stdout=subprocess.PIPE, text=True).communicate(timeout=60)
        report = topology.finish()["internet"]
    minimum_ms = float(summary.split("rtt")[1].split("=")[1].split("/")[0])
    assert (40 if delayed else 0) <= minimum_ms < (45 if delayed else 5)
    assert report.conserved
    for direction in report.directions.values():
        assert (direction.frames_in, direction.frames_out, direction.in_flight) == (20, 20, 0)
        assert direction.bytes_out == 20 * 98
        assert direction.lateness_us
        assert direction.late is not None
    assert report.late_bound_us == DEFAULT_LATE_BOUND_US


@root
def test_it_says_when_the_first_frame_came_after_the_start(netem_topology: Netem) -> None:
    make, _ = netem_topology
    with make(LinkSettings.symmetric(10, 20)) as topology:
        send_50_datagrams(topology)
        started_ns = time.monotonic_ns()
        topology.start()
        send_50_datagrams(topology)
        first_ns = topology.finish()["internet"].directions["up"].first_in_ns
    assert first_ns
    assert started_ns < first_ns < time.monotonic_ns()


def change_report(monkeypatch: pytest.MonkeyPatch, **upwards: Any) -> None:
    """Have the clock's process report this of frames upwards, and all else as it is."""
    usual = NetemClock._answer

    def answer(clock: NetemClock, event: str) -> dict[str, Any]:
        document = usual(clock, event)
        if event == "report":
            document["up"] |= upwards
        return document

    monkeypatch.setattr(NetemClock, "_answer", answer)


@root
def test_how_late_frames_were_reaches_the_judge_as_the_clock_says_it(
    netem_topology: Netem, monkeypatch: pytest.MonkeyPatch
) -> None:
    lateness_us = {"p50": 30.5, "p99": 2500.25, "p999": 2600.5, "max": 2600.75}
    change_report(monkeypatch, late=3, late_sum_us=6500.125, lateness_us=lateness_us)
    make, _ = netem_topology
    with make(LinkSettings.symmetric(10, 20, queue_packets=50)) as topology:
        send_50_datagrams(topology)
        up = topology.finish()["internet"].directions["up"]
    assert up.lateness_us
    assert up.lateness_us.model_dump() == lateness_us
    assert (up.late, up.late_sum_us) == (3, 6500.125)
    assert (late_s(up), longest_late_s(up)) == (0.006500125, 0.00260075)
    met = Counters(seen=50, dropped=0, other=0, gso=0, truncated=0, fragments=0)
    recorded = DropperOutcome(counters=met, packets=50, bitmap=b"")
    assert list(doubts_of_link(up, recorded, Validity(), duration_s=0.1)) == [
        "3 of 50 packets left the emulator later than its bound",
        "packets were overdue for 6.5 ms, the bound is 5.0",
    ]


@root
@pytest.mark.parametrize("seen", [49, 51])
def test_another_number_of_frames_than_the_clock_saw_is_no_measurement(
    netem_topology: Netem, monkeypatch: pytest.MonkeyPatch, seen: int
) -> None:
    change_report(monkeypatch, frames=seen)
    make, _ = netem_topology
    with make(LinkSettings.symmetric(10, 20, queue_packets=50)) as topology:
        send_50_datagrams(topology)
        with pytest.raises(
            LinkError, match=f"^the clock of netem saw {seen} frames leave up, and netem sent 50$"
        ):
            topology.finish()


@root
def test_each_direction_is_shaped_and_delayed_by_its_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[str] = []

    def note_delay(interface: str, settings: DirectionSettings) -> list[str]:
        delays.extend(delay_commands(interface, settings))
        return stand_in_for_delay(interface, settings)

    put_stand_in(monkeypatch, note_delay)
    link = LinkSettings(
        up=DirectionSettings(2, 30, queue_bytes=30_000), down=DirectionSettings(20, 70, queue_packets=40)
    )
    with build("single-path", {"internet": link}, "netem") as topology:
        report = topology.finish()["internet"]
    # The queue of a direction is where frames enter the link, its delay line where they leave the relay.
    assert delays == [
        "qdisc add dev far root handle 1: netem delay 30000.000us limit 1000000000 rate 2000000bit",
        "qdisc add dev near root handle 1: netem delay 70000.000us limit 1000000000 rate 20000000bit",
    ]
    assert [command for command in report.command if "dev r" in command] == [
        "qdisc add dev r1-r2 root handle 1: tbf rate 2000000bit burst 1539 limit 30000",
        "qdisc add dev r2-r1 root handle 1: tbf rate 20000000bit burst 1764 limit 1514",
        "qdisc add dev r2-r1 parent 1:1 handle 10: pfifo limit 40",
    ]
    # By the kernel's word.
    droptail = {"queue": "droptail"}
    assert report.configuration.model_dump(exclude_none=True) == {
        "up": {"rate_bps": 2_000_000, "delay_ns": 30_000_000, "queue_bytes": 30_000, "burst_bytes": 1539}
        | droptail,
        "down": {"rate_bps": 20_000_000, "delay_ns": 70_000_000, "queue_packets": 40, "burst_bytes": 1764}
        | droptail,
        **droptail,
        "mtu": 1500,
    }


OTHER_QUEUES: list[tuple[str, str]] = [
    ("tbf rate 1mbit burst 1639 limit 30000", "rate_bps = 1000000, and should have 10000000"),
    ("tbf rate 10mbit burst 1639 limit 31000", "queue_bytes = 31000, and should have 30000"),
]


@root
def test_a_link_whose_queue_is_not_what_was_asked_says_what_it_is(netem_topology: Netem) -> None:
    for change, wrong in OTHER_QUEUES:
        make, _ = netem_topology
        assert doubts_after(make, 0, change) == [f"the link had {wrong}"]


MORE_THAN_SHAPED: list[tuple[str, str]] = [
    ("burst 1639 limit 30000 peakrate 20mbit mtu 1600", r"^tbf does more than shape: mtu, mtu_raw$"),
    ("burst 1639 limit 30000 mpu 64", r"^tbf does more than shape: mpu$"),
    ("burst 1639 limit 30000 overhead 4", r"^tbf does more than shape: overhead$"),
    ("burst 100000 limit 30000", r"^tbf lets out 100000 bytes at once: must be 1639$"),
]


@root
def test_a_link_whose_queue_does_more_than_was_asked_is_refused(netem_topology: Netem) -> None:
    for change, complaint in MORE_THAN_SHAPED:
        make, _ = netem_topology
        with pytest.raises(LinkError, match=complaint):
            doubts_after(make, 0, f"tbf rate 10mbit {change}")


@root
def test_frames_that_leave_sooner_than_they_can_are_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    put_stand_in(monkeypatch, stand_in_for_delay)
    monkeypatch.setattr(netem_clock, "EARLY_US", 2.0)
    with build("single-path", {"internet": LinkSettings.symmetric(10, 20)}, "netem") as topology:
        send_50_datagrams(topology)
        with pytest.raises(LinkError, match=r"^a frame left netem up \d+\.\d µs before it was due$"):
            topology.finish()


def doubts_after(make: Callable[..., Topology], which: int, change: str) -> list[str]:
    """Return the judge's doubts about a link whose queue (0) or delay line (1) upwards was changed by
    somebody."""
    settings = LinkSettings.symmetric(10, 20, queue_bytes=30_000)
    with make(settings) as topology:
        link = topology._links["internet"]
        assert isinstance(link, NetemLink)
        end = link._qdiscs["up"][which]
        replace = ["tc", "qdisc", "change", "dev", end.interface, "root", "handle", "1:", *change.split()]
        run_inside(end.netns_path, partial(run_tool, replace))
        report = topology.finish()["internet"]
    return [doubt for way in DIRECTIONS for doubt in doubts_of_configuration(report, settings, way)]


OTHER_DELAY_LINES: list[tuple[str, str]] = [
    ("delay 21ms limit 1000000000 rate 10mbit", "delay_ns = 21000000, and should have 20000000"),
    ("delay 20ms limit 1000000000 rate 9mbit", "rate_bps = 9000000, and should have 10000000"),
]


@root
@with_the_delay
def test_a_link_whose_delay_line_is_not_what_was_asked_says_what_it_is(netem_topology: Netem) -> None:
    for change, wrong in OTHER_DELAY_LINES:
        make, _ = netem_topology
        assert doubts_after(make, 1, f"netem {change}") == [f"the link had {wrong}"]


MORE_THAN_DELAYED: list[tuple[str, str]] = [
    ("limit 1000 rate 10mbit", r"^netem's limit is 1000: must be 1000000000$"),
    (
        "limit 1000000000 rate 10mbit 20 53 5",
        r"^netem does more than delay and serialize: celloverhead, cellsize, packetoverhead$",
    ),
]


@root
@with_the_delay
def test_a_link_whose_delay_line_does_more_than_was_asked_is_refused(netem_topology: Netem) -> None:
    for change, complaint in MORE_THAN_DELAYED:
        make, _ = netem_topology
        with pytest.raises(LinkError, match=complaint):
            doubts_after(make, 1, f"netem delay 20ms {change}")


@root
@with_the_delay
def test_a_delay_is_the_one_that_was_asked_whatever_tc_makes_of_its_digits(netem_topology: Netem) -> None:
    for owd_ms in (0, 0.0005, 0.001, 0.0999, 1.0007, 33.333333, 123.456789, 1234.567891):
        make, _ = netem_topology
        link = LinkSettings.symmetric(10, owd_ms)
        with make(link) as topology:
            report = topology.finish()["internet"]
        assert report.configuration, owd_ms
        assert report.configuration.up.delay_ns == link.up.delay_ns, owd_ms


@root
@pytest.mark.skipif(
    Path("/proc/sys/net/ipv6").exists(), reason="needs IPv6 as a module that is not loaded yet"
)
@with_the_delay
def test_ipv6_that_the_first_program_would_load_sends_no_frames(netem_topology: Netem) -> None:
    make, _ = netem_topology
    with make(LinkSettings.symmetric(10, 20)) as topology:
        ping = ["ping", "-q", "-c", "20", "-i", "0.1", topology.server.address]
        topology.client.popen(ping, stdout=subprocess.DEVNULL).wait(timeout=60)
        report = topology.finish()["internet"]
        assert topology.client.popen(["test", "-e", "/proc/sys/net/ipv6"]).wait(timeout=60) == 0
    assert {direction.frames_in for direction in report.directions.values()} == {20}
    assert report.conserved


@root
@with_the_delay
def test_frames_leave_one_serialization_apart_also_after_the_link_was_idle(netem_topology: Netem) -> None:
    make, _ = netem_topology
    link = LinkSettings(up=DirectionSettings(0.3, 20), down=DirectionSettings(0.2, 40))
    with make(link) as topology:
        up_s = arrivals_s(topology.client, topology.server)
        down_s = arrivals_s(topology.server, topology.client)
    for settings, received_s in ((link.up, up_s), (link.down, down_s)):
        delay_s, frame_s = settings.owd_ms / 1e3, 1242 * 8 / settings.rate_bps
        for number, at_s in enumerate(received_s, start=1):
            assert delay_s + number * frame_s <= at_s < delay_s + number * frame_s + 0.5 * frame_s


def arrivals_s(sender: Host, receiver: Host) -> list[float]:
    """Return when each of five datagrams that are sent at once arrives."""
    outgoing, incoming = (
        run_inside(f"/proc/{host.pid}/ns/net", partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM))
        for host in (sender, receiver)
    )
    with outgoing, incoming, ahead():
        incoming.bind((receiver.address, 9))
        incoming.settimeout(30)
        sent_s = time.monotonic()
        for _ in range(5):
            outgoing.sendto(bytes(1200), (receiver.address, 9))
        received_s = []
        for _ in range(5):
            incoming.recv(2048)
            received_s.append(time.monotonic() - sent_s)
    return received_s


@root
def test_finish_waits_until_the_link_has_drained(netem_topology: Netem) -> None:
    make, _ = netem_topology
    with make(LinkSettings.symmetric(1, 10, queue_packets=30)) as topology:
        started = time.monotonic()
        send_50_datagrams(topology)
        up = topology.finish()["internet"].directions["up"]
        drained_s = time.monotonic() - started
    assert (up.frames_in, up.queue_dropped) == (50, 19)
    assert (up.frames_out, up.in_flight) == (31, 0)
    assert up.conserved
    assert drained_s > 0.3  # 31 frames of 9.9 ms


@root
def test_counters_of_a_link_that_has_drained_are_not_those_that_a_busy_machine_read_before(
    monkeypatch: pytest.MonkeyPatch, netem_topology: Netem
) -> None:
    read = netem_link._counters

    def read_slowly(end: LinkEnd) -> Any:
        counters = read(end)
        time.sleep(0.4)  # the machine's, which is busy
        return counters

    monkeypatch.setattr(netem_link, "_counters", read_slowly)
    make, _ = netem_topology
    with make(LinkSettings.symmetric(1, 10, queue_packets=30)) as topology:
        send_50_datagrams(topology)
        up = topology.finish()["internet"].directions["up"]
    assert (up.in_flight, up.conserved) == (0, True)
    assert up.frames_out == 50 - up.queue_dropped


def send_50_datagrams(topology: Topology) -> None:
    """Send 50 datagrams at once, with 1242 bytes each, to the server."""
    in_client = f"/proc/{topology.client.pid}/ns/net"
    opened = run_inside(in_client, partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM))
    with opened as sender, ahead():
        for _ in range(50):
            sender.sendto(bytes(1200), (topology.server.address, 9))


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@root
def test_a_topology_with_netem_leaves_nothing(netem_topology: Netem) -> None:
    make, _ = netem_topology
    before = descriptors()
    make(LinkSettings.symmetric(10, 20)).close()
    assert descriptors() == before
