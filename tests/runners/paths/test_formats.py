"""Paths by files as other tools write them. What is right follows from how each file is made."""

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest

from fecbench.errors import BadInput
from fecbench.runners.paths import Path, measured
from tests.support import captures, qlogs
from tests.support.captures import CLIENT, SERVER, framed, pcap, udp

IPUTILS = """PING example.org (192.0.2.7) 56(84) bytes of data.
64 bytes from host.example.org (192.0.2.7): icmp_seq=1 ttl=56 time=31.2 ms
64 bytes from host.example.org (192.0.2.7): icmp_seq=2 ttl=56 time=30.8 ms
64 bytes from host.example.org (192.0.2.7): icmp_seq=4 ttl=56 time=31.0 ms
64 bytes from host.example.org (192.0.2.7): icmp_seq=4 ttl=56 time=4.0 ms (DUP!)
64 bytes from host.example.org (192.0.2.7): icmp_seq=5 ttl=56 time=30.9 ms
64 bytes from host.example.org (192.0.2.7): icmp_seq=6 ttl=56 time=35.1 ms
64 bytes from host.example.org (192.0.2.7): icmp_seq=7 ttl=56 time=31.4 ms

--- example.org ping statistics ---
8 packets transmitted, 6 received, +1 duplicates, 25% packet loss, time 7010ms
rtt min/avg/max/mdev = 30.800/31.733/35.100/1.490 ms
"""
MACOS = """PING example.org (192.0.2.7): 56 data bytes
64 bytes from 192.0.2.7: icmp_seq=0 ttl=56 time=31.205 ms
64 bytes from 192.0.2.7: icmp_seq=1 ttl=56 time=30.801 ms
Request timeout for icmp_seq 2
64 bytes from 192.0.2.7: icmp_seq=3 ttl=56 time=31.020 ms
64 bytes from 192.0.2.7: icmp_seq=4 ttl=56 time=30.900 ms
64 bytes from 192.0.2.7: icmp_seq=5 ttl=56 time=35.100 ms
64 bytes from 192.0.2.7: icmp_seq=6 ttl=56 time=31.400 ms
Request timeout for icmp_seq 7

--- example.org ping statistics ---
8 packets transmitted, 6 packets received, 25.0% packet loss
round-trip min/avg/max/stddev = 30.801/31.733/35.100/1.490 ms
"""
BUSYBOX = """PING example.org (192.0.2.7): 56 data bytes
64 bytes from 192.0.2.7: seq=0 ttl=56 time=31.205 ms
64 bytes from 192.0.2.7: seq=1 ttl=56 time=30.801 ms
64 bytes from 192.0.2.7: seq=3 ttl=56 time=31.020 ms
64 bytes from 192.0.2.7: seq=4 ttl=56 time=30.900 ms
64 bytes from 192.0.2.7: seq=5 ttl=56 time=35.100 ms
64 bytes from 192.0.2.7: seq=6 ttl=56 time=31.400 ms

--- example.org ping statistics ---
8 packets transmitted, 6 packets received, 25% packet loss
round-trip min/avg/max = 30.801/31.733/35.100 ms
"""


def read(folder: File, content: str | bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return measured(path)


@pytest.mark.parametrize("text", [IPUTILS, MACOS, BUSYBOX], ids=["iputils", "macOS", "busybox"])
def test_ping_is_read_as_each_program_prints_it(tmp_path: File, text: str) -> None:
    path = read(tmp_path, text)
    assert path.form == "ping" and (path.packets, path.lost) == (8, 2)
    assert path.rtt_ms is not None and path.rtt_ms.value == path.rtt_ms.high == pytest.approx(30.8, abs=0.01)
    # 2 of 8 both ways: (1 - q)² = 6/8.
    assert path.loss is not None and path.loss.value == pytest.approx(1 - math.sqrt(0.75))
    assert path.loss.low < path.loss.value < 0.25 < path.loss.high
    assert path.bandwidth_mbps is None and path.burst is None


def test_a_ping_that_was_killed_is_read_to_its_last_answer(tmp_path: File) -> None:
    path = read(tmp_path, IPUTILS[: IPUTILS.index("\n---")])
    assert (path.packets, path.lost) == (7, 1)
    assert any("no summary" in note for note in path.notes)


def test_a_ping_whose_lines_were_left_out_is_refused(tmp_path: File) -> None:
    lines = IPUTILS.splitlines(keepends=True)
    with pytest.raises(BadInput, match="8 sent and 6 received, and its lines have 5 answers"):
        read(tmp_path, "".join(lines[:2] + lines[3:]))


def test_numbers_of_a_long_ping_wrap_at_16_bits(tmp_path: File) -> None:
    numbers = [number for number in range(65_000, 66_000) if number != 65_600]
    lines = [f"64 bytes from 192.0.2.7: icmp_seq={number % 65536} ttl=9 time=20.0 ms" for number in numbers]
    path = read(tmp_path, "PING a (192.0.2.7) 56(84) bytes of data.\n" + "\n".join(lines))
    assert path.lost == 65_000 - 1 + 1  # those before the first line, and the one left out


def test_an_answer_that_is_late_when_numbers_begin_again_is_no_loss(tmp_path: File) -> None:
    numbers = [*range(1, 65_535), 65_536, 65_535, *range(65_537, 65_600)]
    lines = [f"64 bytes from 192.0.2.7: icmp_seq={number % 65536} ttl=9 time=20.0 ms" for number in numbers]
    path = read(tmp_path, "PING a (192.0.2.7) 56(84) bytes of data.\n" + "\n".join(lines))
    assert (path.packets, path.lost) == (65_599, 0)


def test_ping_may_begin_with_a_mark_of_utf_8(tmp_path: File) -> None:
    assert read(tmp_path, "\ufeff" + IPUTILS) == read(tmp_path, IPUTILS)


def test_ping_with_times_of_answers_has_probes_evenly_apart(tmp_path: File) -> None:
    """Lost ones have no time: two clocks are not mixed."""
    lines = [
        f"[{1_700_000_000 + 0.01 * number + 0.02:.6f}] 64 bytes from a: icmp_seq={number} ttl=9 time=20 ms"
        for number in range(1, 41)
        if number % 3 == 0
    ]
    path = read(tmp_path, "PING a (192.0.2.7) 56(84) bytes of data.\n" + "\n".join(lines))
    assert (path.packets, path.lost) == (39, 26) and path.lasts_s == pytest.approx(0.38)


@pytest.mark.parametrize(
    ("word", "note"), [("true_down", ["Of the lost probes, 0 were lost up and 2 down."]), ("true", [])]
)
def test_irtt_has_round_trips_and_losses(tmp_path: File, word: str, note: list[str]) -> None:
    def trip(number: int) -> dict[str, Any]:
        lost = number in (7, 8)
        return {
            "lost": word if lost else "false",
            "timestamps": {"client": {"send": {"wall": 10**18 + number * 10_000_000}}},
            "delay": {} if lost else {"rtt": 40_000_000 + number % 3 * 1_000_000},
        }

    path = read(tmp_path, json.dumps({"version": 1, "round_trips": [trip(number) for number in range(200)]}))
    assert path.form == "irtt" and (path.packets, path.lost) == (200, 2)
    assert [text for text in path.notes if "Of the lost" in text] == note
    assert "A probe is lost in either direction: half of the losses are taken for each." in path.notes
    assert path.rtt_ms is not None and path.rtt_ms.value == 40
    # Two probes in a row, 10 ms apart, are lost for some time, in which a transfer sends many packets.
    assert path.burst is None and path.ends == "time" and path.burst_s is not None
    assert path.burst_s.low < 0.02 < path.burst_s.high


def iperf3(**more: Any) -> dict[str, Any]:
    """A download of 10 s, 1 MSS of 1448 bytes in 10,000 sent again a hundred times."""
    sender = {"min_rtt": 40_000, "max_rtt": 90_000, "mean_rtt": 60_000, "retransmits": 100}
    intervals = [{"sum": {"bits_per_second": rate, "omitted": False}} for rate in (4e6, 10e6, 11e6, 10e6)]
    return {
        "start": {"tcp_mss_default": 1448, "test_start": {"protocol": "TCP"}},
        "intervals": intervals,
        "end": {
            "streams": [{"sender": sender, "receiver": {}}],
            "sum_sent": {"bytes": 14_480_000, "seconds": 10, "retransmits": 100},
            "sum_received": {"bits_per_second": 9.5e6},
        },
        **more,
    }


def test_iperf3_over_tcp_has_its_least_rtt_its_rate_and_retransmissions(tmp_path: File) -> None:
    path = read(tmp_path, json.dumps(iperf3()))
    assert path.rtt_ms is not None and path.rtt_ms.value == 40
    assert path.loss is not None and path.loss.value == pytest.approx(100 / 10_100)
    assert path.bandwidth_mbps is not None
    on_wire = (1448 + 52) / 1448
    assert path.bandwidth_mbps.value == pytest.approx(10.5 * on_wire, rel=0.05)
    assert path.bandwidth_mbps.high == pytest.approx(11 * on_wire)


def test_iperf3_that_never_filled_the_queue_gives_a_lower_bound(tmp_path: File) -> None:
    report = iperf3()
    report["end"]["streams"][0]["sender"]["max_rtt"] = 42_000
    path = read(tmp_path, json.dumps(report))
    assert path.bandwidth_mbps is not None and path.bandwidth_mbps.high == math.inf


def test_iperf3_over_udp_has_losses(tmp_path: File) -> None:
    total = {"packets": 1000, "lost_packets": 25, "bits_per_second": 1e7, "seconds": 10}
    end = {"sum": total, "streams": []}
    path = read(tmp_path, json.dumps({"start": {"test_start": {"protocol": "UDP"}}, "end": end}))
    assert path.loss is not None and path.loss.value == 0.025
    assert path.rtt_ms is None
    end |= {"sum_received": total, "sum_sent": {**total, "packets": 1200}}
    path = read(tmp_path, json.dumps({"start": {"test_start": {"protocol": "UDP"}}, "end": end}))
    assert (path.packets, path.lost) == (1000, 25)
    assert path.notes[-1] == "200 packets were sent behind the last that came, and are left out."


def test_mahimahi_has_the_rate_and_its_spread(tmp_path: File) -> None:
    # 1,500 bytes each ms are 12 Mbit/s for 5 s; then every 4 ms.
    times = [*range(1, 5001), *range(5004, 10_001, 4)]
    path = read(tmp_path, "\n".join(map(str, times)))
    assert path.form == "mahimahi" and path.bandwidth_mbps is not None
    assert path.bandwidth_mbps.value == pytest.approx((12 + 3) / 2, rel=0.002)
    assert path.bandwidth_mbps.low == pytest.approx(3, rel=0.02)
    assert path.bandwidth_mbps.high == pytest.approx(12, rel=0.02)
    assert path.loss is None and path.rtt_ms is None


def test_a_list_of_losses_is_no_trace_of_mahimahi(tmp_path: File) -> None:
    path = read(tmp_path, "\n".join("0001000110" * 10))
    assert path.form == "list of losses" and (path.packets, path.lost) == (100, 30)


@pytest.mark.parametrize("form", qlogs.FORMS)
def test_each_form_of_log_has_the_same_losses(tmp_path: File, form: str) -> None:
    path = read(tmp_path, qlogs.FORMS[form]())
    assert path.lost == len(qlogs.LOST), form


def test_a_file_may_be_packed_by_gzip(tmp_path: File) -> None:
    plain, packed = read(tmp_path, MACOS), read(tmp_path, gzip.compress(MACOS.encode()))
    assert plain == packed


def test_captures_of_both_sides_may_come_in_either_order(tmp_path: File) -> None:
    def payload(number: int) -> bytes:
        return number.to_bytes(8, "big") + bytes(1100)

    data = [udp(payload(number)) for number in range(60)]
    acks = [udp(b"ack" + number.to_bytes(20, "big"), CLIENT, SERVER) for number in range(20)]
    server, client = tmp_path / "server", tmp_path / "client"
    server.write_bytes(pcap(framed([*data, *acks])))
    client.write_bytes(pcap(framed([*(one for place, one in enumerate(data) if place not in (7, 8)), *acks])))
    one, other = measured(server, client), measured(client, server)
    assert (one.packets, one.lost) == (other.packets, other.lost) == (60, 2)


REFUSED: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "is empty"),
    ("blanks", b" \n\n", "is empty"),
    ("words", b"hello\nworld\n", "no recording that is known here"),
    ("another CSV", b"number,delay\n1,20\n", "A CSV must have the columns timestamp (s) and rtt (ms)"),
    ("bytes that are no text", b"\xff\xfe\xfd" * 99, "is none of: qlog, NetLog, packet capture"),
    ("another packer", b"BZh91AY", "is packed by bzip2: unpack it first"),
    ("gzip that is cut off", gzip.compress(MACOS.encode())[:-30], "its gzip is cut off or broken"),
    ("one capture of UDP", pcap(framed([udp(bytes(50))])), "one capture of UDP, in which a loss is not seen"),
    ("a capture without IP", pcap([]), "has no packet of TCP or UDP over IP"),
    ("a ping without an answer", b"PING a (192.0.2.1): 56 data bytes\n", "has no answer with a time"),
    ("two pings", (MACOS + BUSYBOX).encode(), "has the outputs of 2 pings"),
    ("few pings", "\n".join(MACOS.splitlines()[:3]).encode(), "must have 5 probes or more"),
    ("iperf3 with an error", json.dumps(iperf3(error="unable to connect")).encode(), "unable to connect"),
    ("a report that is cut", json.dumps(iperf3()).encode()[:200], "is no whole report of iperf3"),
    ("a hostile rate", json.dumps(iperf3()).replace("9500000.0", "1e400").encode(), "must be a number"),
    ("an empty object", b"{}", "is no qlog"),
    ("a qlog of nobody", b'{"traces": []}', "is no qlog"),
    ("a deep document", b'{"round_trips": ' + b"[" * 100_000, "is no whole JSON"),
    ("numbers that fall", b"5\n4\n", "times must not fall"),
    ("a huge time", b"1\n99999999999999\n", "trace of mahimahi"),
]


@pytest.mark.parametrize(
    ("content", "why"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_what_tells_no_path_is_refused_in_one_line_that_names_the_file(
    tmp_path: File, content: bytes, why: str
) -> None:
    with pytest.raises(BadInput) as refusal:
        read(tmp_path, content, "given")
    assert str(refusal.value).startswith(f"{tmp_path / 'given'}: ") and why in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_two_files_must_be_captures(tmp_path: File) -> None:
    (tmp_path / "a").write_text(MACOS)
    with pytest.raises(BadInput, match="two files are captures of both sides"):
        measured(tmp_path / "a", tmp_path / "a")


def test_a_connection_of_tcp_in_one_capture_says_what_was_sent_again(tmp_path: File) -> None:
    """The same bytes are there twice at the sender; a hole is filled late at the receiver."""
    lost = (12, 13, 40)
    segments = [(number, captures.tcp(bytes(1000), 1 + 1000 * number)) for number in range(80)]
    resent = [segment for number, segment in segments if number in lost]
    acks = [captures.tcp(b"", 1, CLIENT, SERVER)] * 3
    at_sender = [
        *(segment for _, segment in segments[:60]),
        *resent,
        *(one for _, one in segments[60:]),
        *acks,
    ]
    came = [segment for number, segment in segments[:60] if number not in lost]
    at_receiver = [*came, *resent, *(one for _, one in segments[60:]), *acks]
    for packets in (at_sender, at_receiver):
        path = read(tmp_path, pcap(framed(packets)))
        assert path.lost == len(lost), path
        assert path.burst is not None and path.burst.low <= 1.5 <= path.burst.high


def test_segments_of_tcp_out_of_order_are_no_losses(tmp_path: File) -> None:
    segments = [captures.tcp(bytes(1000), 1 + 1000 * number) for number in range(80)]
    frames = framed(segments)
    # 30 comes 1 ms behind 31.
    swapped = [*frames[:30], frames[31], replace(frames[30], at_s=frames[31].at_s + 0.001), *frames[32:]]
    path = read(tmp_path, pcap(swapped))
    assert path.lost == 0 and any("out of order" in note for note in path.notes)
