"""Live media through a relay of moq, in virtual time: two hops, with losses and FEC of their own."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import GilbertElliott, Uniform
from tests.support.live import (
    EQUAL_TRACKS,
    LINK_BYTES,
    NO_WINDOW,
    PACKET_BYTES,
    PROTOCOLS,
    QUIC_BYTES,
    TWO_TRACKS,
    Broadcasts,
    assert_same,
    latencies_ms,
    live,
    places,
    rows,
    track,
)
from tests.support.simulations import NOTHING, Simulator, check_conserved, way

RELAY = "10.0.3.2"
HOPS = {"access": (20.0, 5.0), "backbone": (8.0, 40.0)}
"""Rate in Mbit/s and OWD in ms of each link."""
IN_BURSTS = GilbertElliott(0.02, 0.25, 1, 0)
RLC = {"scheme": "rlc", "controller": "constant", "n": 6, "k": 5, "window": 20}
OFF = {"scheme": "none"}

pytestmark = pytest.mark.on_demand


@pytest.fixture(params=["moq"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def relayed(
    broadcasts: Broadcasts,
    workload: dict[str, Any],
    lossy: str = "",
    model: LossModel = NOTHING,
    access: dict[str, Any] = OFF,
    backbone: dict[str, Any] = OFF,
    hops: dict[str, tuple[float, float]] = HOPS,
) -> dict[str, Any]:
    """The task of a broadcast over both hops, with the options of each; one of them loses packets."""
    task = broadcasts.task(workload, **access)
    (pair,) = task["pairs"]
    server = {**pair["server"], "options": {**pair["server"]["options"], **backbone}}
    folder = Path(server["log_folder"]).parent / "relay"
    folder.mkdir()
    of_relay = {
        **pair["server"],
        "role": "relay",
        "address": RELAY,
        "log_folder": str(folder),
        "series": [],
        "upstream": {name: server[name] for name in ("address", "port", "options")},
    }
    links = {
        link: {
            direction: way(mbps, owd_ms, model if link == lossy else NOTHING, seed, queue_packets=500)
            for direction, seed in (("up", 5), ("down", 6))
        }
        for link, (mbps, owd_ms) in hops.items()
    }
    pair = {"client": {**pair["client"], "address": RELAY}, "relay": of_relay, "server": server}
    return {**task, "pairs": [pair], "links": links}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("direction", ["down", "up"])
def test_a_frame_takes_both_delays_and_its_bytes_where_nothing_is_lost(
    broadcasts: Broadcasts, direction: str, protocol: str
) -> None:
    sizes = (40_000, 1, 1000, 1100, 7000, 16_000, 300, 20_000, 90, 5000)
    video = track("video", "group", *sizes, every_us=100_000)
    workload = live(video, direction=direction, protocol=protocol)
    task = relayed(broadcasts, workload, access=NO_WINDOW, backbone=NO_WINDOW)
    broadcasts.carry_out(task)
    took_ms = latencies_ms(task)
    assert sorted(took_ms) == [(0, number) for number in range(len(sizes))]
    rates = [mbps for mbps, _ in HOPS.values()]
    one_packet_ms = sum((PACKET_BYTES + LINK_BYTES) * 8e-3 / mbps for mbps in rates)
    for number, size in enumerate(sizes):
        packets = -(-size // (PACKET_BYTES - QUIC_BYTES))
        least_bytes = size + (size // PACKET_BYTES) * LINK_BYTES
        most_bytes = size + packets * (LINK_BYTES + QUIC_BYTES)
        own_ms = took_ms[0, number] - sum(owd_ms for _, owd_ms in HOPS.values())
        if packets == 1:
            least_ms, most_ms = (
                sum(count * 8e-3 / mbps for mbps in rates) for count in (least_bytes, most_bytes)
            )
        else:  # the slower link takes its time, and the relay passes each packet on as it comes
            least_ms, most_ms = (count * 8e-3 / min(rates) for count in (least_bytes, most_bytes))
            most_ms += one_packet_ms
        assert least_ms <= own_ms <= most_ms, (number, size)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("direction", ["down", "up"])
@pytest.mark.parametrize("delivery", ["group", "frame", "datagram", "parts"])
def test_all_frames_arrive_where_nothing_is_lost(
    broadcasts: Broadcasts, delivery: str, direction: str, protocol: str
) -> None:
    tracks = (track("video", delivery, *[1000] * 20), track("audio", "group", *[160] * 30, every_us=20_000))
    task = relayed(broadcasts, live(*tracks, direction=direction, protocol=protocol))
    (answer,) = broadcasts.carry_out(task)
    check_conserved(answer)
    assert list(answer["endpoints"]) == ["client", "relay", "server"]
    for sends in (True, False):
        table = rows(task, sends)
        assert [sorted(places(table, number)) for number in (0, 1)] == [list(range(20)), list(range(30))]


@pytest.mark.parametrize("lossy", list(HOPS))
@pytest.mark.parametrize("coded", ["access", "backbone", "both", "none"])
def test_repair_crosses_the_hops_that_have_fec_and_rebuilds_what_was_lost_there(
    broadcasts: Broadcasts, coded: str, lossy: str
) -> None:
    options = {link: RLC if coded in (link, "both") else OFF for link in HOPS}
    video = track("video", "group", *[20_000, *[4000] * 4] * 6)
    (answer,) = broadcasts.carry_out(relayed(broadcasts, live(video), lossy, IN_BURSTS, **options))
    reports = {name: endpoint["metrics"] for name, endpoint in answer["endpoints"].items()}
    repair = {"access": reports["relay"]["access.repair_sent"], "backbone": reports["server"]["repair_sent"]}
    rebuilt = {
        "access": reports["client"]["packets_recovered"],
        "backbone": reports["relay"]["backbone.packets_recovered"],
    }
    for link, own in options.items():
        assert (repair[link] > 0) == (own is RLC), link
        assert (rebuilt[link] > 0) == (own is RLC and link == lossy), link
        assert rebuilt[link] <= answer["links"][link]["down"]["dropped"], link


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_same_task_has_the_same_answer_whatever_came_before(
    broadcasts: Broadcasts, protocol: str
) -> None:
    _assert_same(broadcasts, 10, protocol)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hundred_times_the_same_task_has_the_same_answer(broadcasts: Broadcasts, protocol: str) -> None:
    _assert_same(broadcasts, 100, protocol)


def _assert_same(broadcasts: Broadcasts, times: int, protocol: str) -> None:
    bbr = {"congestion_control": "bbr3"}
    other = live(track("video", "frame", *[3000] * 7), direction="up")
    assert_same(
        broadcasts,
        times,
        lambda: relayed(
            broadcasts, live(*EQUAL_TRACKS, protocol=protocol), "access", IN_BURSTS, access=bbr, backbone=bbr
        ),
        lambda: relayed(broadcasts, other, "backbone", Uniform(0.02)),
        lambda: broadcasts.task(other, Uniform(0.02)),
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"links": {"internet": {}}}, "beside a relay they are"),
        ({"upstream": None}, "upstream: missing; a relay needs it"),
        ({"address": "10.0.9.9"}, "the client connects to"),
    ],
)
def test_a_relay_that_does_not_fit_its_task_is_refused(
    broadcasts: Broadcasts, change: dict[str, Any], why: str
) -> None:
    task = relayed(broadcasts, live(track("video", "group", 1000)))
    if "links" in change:
        task["links"] = {"internet": task["links"]["access"]}
    else:
        of_relay = {**task["pairs"][0]["relay"], **change}
        task["pairs"][0]["relay"] = {name: value for name, value in of_relay.items() if value is not None}
    with Simulator("moq") as simulator:
        simulator_line = simulator.line(task).decode()
    assert why in simulator_line


def test_each_frame_on_a_hop_is_20_bytes_longer_over_ipv6(broadcasts: Broadcasts) -> None:
    four = relayed(broadcasts, live(*TWO_TRACKS), "access", IN_BURSTS, access=RLC)
    text = re.sub(r"10\.0\.(\d)\.(\d)", r"fd00:fec:a00:\1::\2", json.dumps(four))
    six = json.loads(text)
    for ways in six["links"].values():
        for direction, link in ways.items():
            ways[direction] = link.replace("\n", "\nfamily ipv6\n", 1)
    (answer,) = broadcasts.carry_out(six)
    check_conserved(answer)
    reports = {name: endpoint["metrics"] for name, endpoint in answer["endpoints"].items()}
    assert reports["client"]["packets_recovered"] > 0
    for link, direction, place, name in (
        ("access", "up", "client", "bytes_sent"),
        ("access", "down", "relay", "access.bytes_sent"),
        ("backbone", "up", "relay", "backbone.bytes_sent"),
        ("backbone", "down", "server", "bytes_sent"),
    ):
        counted = answer["links"][link][direction]
        assert counted["bytes_in"] == reports[place][name] + (LINK_BYTES + 20) * counted["frames_in"], link


def test_a_relay_that_always_has_more_to_send_repairs_each_frame(broadcasts: Broadcasts) -> None:
    frames = 40
    workload = live(track("video", "group", *[6000] * frames, every_us=10_000), max_age_ms=60_000)
    slow_access = {"access": (2.0, 5.0), "backbone": (20.0, 40.0)}
    sent = {}
    for flush in ("message", "never"):
        code = {"scheme": "rlc", "controller": "constant", "n": 51, "k": 50, "window": 50, "flush": flush}
        (answer,) = broadcasts.carry_out(relayed(broadcasts, workload, access=code, hops=slow_access))
        sent[flush] = answer["endpoints"]["relay"]["metrics"]["access.repair_sent"]
        assert answer["endpoints"]["relay"]["metrics"]["backbone.repair_received"] == 0
    assert sent["message"] > 0.8 * frames > 3 * sent["never"], sent
