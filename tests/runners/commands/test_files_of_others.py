"""Files as other tools write them, each by its command: the right values, or a refusal with the true reason.

Small inputs that were once read wrongly, with status 0. Their values come from how they are made, not from
what is printed.
"""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.workloads.messages.traffic import Trace
from fecbench.runners.workloads.video import ladder
from fecbench.topologies import link_traces
from tests.support import captures, qlogs
from tests.support.captures import CLIENT, LINKS, SERVER, framed, pcap, pcapng, udp

Files = dict[str, bytes]
LOST, COUNT = (7, 20, 21), 60
CAME = [number for number in range(COUNT) if number not in LOST]


def payload(number: int) -> bytes:
    return number.to_bytes(8, "big") + bytes(1188)


def packets(numbers: Any, source: captures.End = SERVER) -> list[bytes]:
    return [udp(payload(number), source) for number in numbers]


def joined() -> list[bytes]:
    """Packets 30 and 31, and 39 and 40, are one datagram each."""
    first = [30, 39]
    skipped = [number + 1 for number in first]
    return [
        udp(payload(number) + (payload(number + 1) if number in first else b""))
        for number in range(COUNT)
        if number not in skipped
    ]


SENT, RECEIVED = pcap(framed(packets(range(COUNT)))), pcap(framed(packets(CAME)))
PAIRS = {
    "Ethernet": (SENT, RECEIVED),
    "addresses that are translated": (SENT, pcap(framed(packets(CAME, ("203.0.113.9", 61000))))),
    "a few datagrams that an offload joined": (pcap(framed(joined())), RECEIVED),
    "pcapng, and simple packets": (
        pcapng(framed(packets(range(COUNT)))),
        pcapng(framed(packets(CAME)), "simple"),
    ),
    "raw IP, 101": (
        pcap(framed(packets(range(COUNT)), LINKS["raw"])),
        pcap(framed(packets(CAME), LINKS["raw"])),
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_captures_of_both_sides_have_three_losses(pair: str, tmp_path: Path, fecbench_here: Any) -> None:
    for name, content in zip(("sender", "receiver"), PAIRS[pair], strict=True):
        (tmp_path / name).write_bytes(content)
    result = fecbench_here("losses", "import", tmp_path / "sender", "--received", tmp_path / "receiver")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("# 3 losses of 60 packets: 192.0.2.1:4433 to 198.51.100.2:50000\n")
    assert 'loss.down.model = "pattern"\nloss.down.drop = "7,20-21"\nloss.down.length = 60\n' in result.stdout


QLOGS = ("with_header", "aioquic", "draft_00", "quic_go")


@pytest.mark.parametrize("form", QLOGS)
def test_a_qlog_has_three_losses(form: str, tmp_path: Path, fecbench_here: Any) -> None:
    path = tmp_path / "trace.qlog"
    path.write_text(qlogs.FORMS[form]())
    document = json.loads(fecbench_here("losses", "import", path, "--json").stdout)
    assert (document["losses"], document["length"], document["drop"]) == (3, 40, "5-6,30")
    assert document["direction"] == "down"


def test_rtp_beside_stun_and_rtcp_has_three_losses(tmp_path: Path, fecbench_here: Any) -> None:
    def rtp(number: int) -> bytes:
        return udp(struct.pack(">BBHII", 0x80, 96, 1000 + number, 0, 0x1111) + bytes(80))

    stun = udp(b"\0\1\0\x4c\x21\x12\xa4\x42" + bytes(88))
    rtcp = udp(b"\x81\xc8\0\6\0\0\x11\x11" + bytes(20))
    arrived = [rtp(number) for number in range(100) if number not in (10, 50, 51)]
    path = tmp_path / "received.pcap"
    path.write_bytes(
        pcap(framed([arrived[0], stun, stun, *arrived[1:40], rtcp, *arrived[40:], rtcp, stun, stun]))
    )
    document = json.loads(fecbench_here("losses", "import", path, "--sequence", "2:2", "--json").stdout)
    assert (document["losses"], document["length"], document["drop"]) == (3, 100, "10,50-51")


def test_a_recording_says_of_which_direction_it_is(tmp_path: Path, fecbench_here: Any) -> None:
    path = tmp_path / "trace.qlog"
    path.write_text(json.dumps(qlogs.document(qlogs.events(qlogs.by_header), "client")))
    printed = fecbench_here("losses", "import", path).stdout
    assert 'loss.up.drop = "5-6,30"' in printed and "loss.drop" not in printed
    assert (
        'loss.down.drop = "5-6,30"' in fecbench_here("losses", "import", path, "--direction", "down").stdout
    )


LINKS_OF_OTHERS: dict[str, tuple[str, str, tuple[str, ...], dict[str, list[int]]]] = {
    "LENS in ns": (
        "irtt",
        "timestamp,rtt,uplink,downlink\n"
        + "".join(
            f"17000000000{number}0000000,{row}\n"
            for number, row in enumerate(
                ("60,40,20", "61,41,20", "62,42,20", "0,0,-1", "-1,0,0", "0,-1,0", "66,46,20")
            )
        ),
        ("--column", "uplink"),
        {"keep_us": [10_000] * 7, "owd_us": [40_000, 41_000, *[42_000] * 4, 46_000]},
    ),
    "TheaterQ EXTENDED": (
        "theaterq",
        "".join(f"1000000,2{n}000000,500000,1{n}000000,0,100,0,0,1,1\n" for n in range(4)),
        (),
        {
            "keep_us": [10**6] * 4,
            "rate_bps": [10_000_000 + n * 10**6 for n in range(4)],
            "owd_us": [20_000 + 1000 * n for n in range(4)],
        },
    ),
    "TheaterQ with losses": (
        "theaterq",
        "1000000,20000000,10000000,429496730,100\n500000,30000000,5000000,4294967295,100\n",
        (),
        {"keep_us": [10**6, 500_000], "rate_bps": [10**7, 0], "owd_us": [20_000, 30_000]},
    ),
    "TheaterQ with comments": (
        "theaterq",
        "# KEEP,LATENCY,RATE,LOSS,LIMIT\n1000000,20000000,10000000,0,100\n"
        "; more\n500000,30000000,5000000,0,100\n",
        (),
        {"keep_us": [10**6, 500_000], "rate_bps": [10**7, 5 * 10**6], "owd_us": [20_000, 30_000]},
    ),
    "rates before their time": (
        "rates",
        "0.5\t4\n1.0\t8\n31.0\t2\n32.0\t6\n",
        ("--holds", "before"),
        {"keep_us": [500_000, 30 * 10**6, 10**6], "rate_bps": [8 * 10**6, 2 * 10**6, 6 * 10**6]},
    ),
}


@pytest.mark.parametrize("what", LINKS_OF_OTHERS)
def test_a_link_of_others_has_its_rates_and_delays(what: str, tmp_path: Path, fecbench_here: Any) -> None:
    form, text, options, right = LINKS_OF_OTHERS[what]
    (tmp_path / "theirs").write_text(text)
    result = fecbench_here(
        "link", "import", form, tmp_path / "theirs", "--output", tmp_path / "x.csv", *options
    )
    assert result.returncode == 0, result.stderr
    trace, _ = link_traces.read(tmp_path / "x.csv")
    assert {name: column.tolist() for name, column in trace.columns.items()} == right
    assert ("LOSS" in result.stdout) == ("losses" in what)


def test_six_columns_are_no_times_and_rates(tmp_path: Path, fecbench_here: Any) -> None:
    (tmp_path / "log").write_text("1453121790686 190 51.0384 3.7319 2010240 1005\n")
    words = ("link", "import", "rates", tmp_path / "log", "--output", tmp_path / "x.csv")
    assert "line 1: has 6 columns: must have two" in fecbench_here(*words).refusal()


def test_lines_of_percent_are_comments_of_frame_lists(tmp_path: Path, fecbench_here: Any) -> None:
    (tmp_path / "frames.txt").write_text(
        "% Nframe | type | X | timestamp | size (Bytes)\n0 U 0. 0.000000 1000\n1 U 0. 0.033000 1200\n"
        "2 U 0. 0.066000 800\n"
    )
    output = tmp_path / "made.json"
    assert fecbench_here("trace", "from-list", tmp_path / "frames.txt", "--output", output).returncode == 0
    assert Trace.load(output).messages == [[0, 1000], [33_000, 1200], [66_000, 800]]


SIZES = (1000, 1200, 800, 900, 500)
MPD = (
    '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT10S"><Period><AdaptationSet'
    ' contentType="video"><SegmentTemplate timescale="1000" media="$RepresentationID$/$Number$.m4s"'
    ' duration="2000"/><Representation id="v" bandwidth="4000" width="640" height="360" frameRate="25"/>'
    "</AdaptationSet></Period></MPD>"
)
MPDS = {
    "plain": MPD,
    "years of none": MPD.replace("PT10S", "P0Y0M0DT0H0M10.000S"),
    "an end": MPD.replace("PT10S", "PT1H").replace('duration="2000"', 'duration="2000" endNumber="5"'),
}
VARYING = MPD.replace("PT10S", "PT30S").replace(
    ' duration="2000"/>',
    "><SegmentTimeline>"
    + "".join(f'<S d="{length}000"/>' for length in (4, 8, 4, 10, 4))
    + "</SegmentTimeline></SegmentTemplate>",
)


def from_mpd(folder: Path, text: str, fecbench_here: Callable[..., Any]) -> Any:
    (folder / "v").mkdir()
    for number, size in enumerate(SIZES, 1):
        (folder / "v" / f"{number}.m4s").write_bytes(bytes(size))
    (folder / "it.mpd").write_text(text)
    return fecbench_here("video", "from-mpd", folder / "it.mpd", "--output", folder / "made.json")


@pytest.mark.parametrize("what", MPDS)
def test_a_presentation_has_five_segments_of_2_s(what: str, tmp_path: Path, fecbench_here: Any) -> None:
    assert from_mpd(tmp_path, MPDS[what], fecbench_here).returncode == 0
    video = ladder.load(tmp_path / "made.json")
    assert (video.segments, video.segment_s, video.levels[0].kbps) == (5, 2.0, 3.52)
    assert video.levels[0].sizes == SIZES


def test_segments_of_several_lengths_are_refused_with_them(tmp_path: Path, fecbench_here: Any) -> None:
    assert (
        "its segments last 4, 8, 4, 10, 4 s, 30 s in all"
        in from_mpd(tmp_path, VARYING, fecbench_here).refusal()
    )


def test_a_client_of_a_port_below_others_sends_up(tmp_path: Path, fecbench_here: Any) -> None:
    (tmp_path / "sender").write_bytes(pcap(framed([udp(payload(n), CLIENT, SERVER) for n in range(9)])))
    words = ("losses", "import", tmp_path / "sender", "--received", tmp_path / "sender")
    assert 'loss.up.drop = ""' in fecbench_here(*words).stdout
