"""Fuzz targets: a function of bytes, and bytes that it accepts to begin with."""

import ctypes
import io
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from fecbench import designs
from fecbench.checkout import REPOSITORY
from fecbench.dropper import recordings
from fecbench.errors import BadInput, Failed
from fecbench.runners import paths
from fecbench.runners.implementations import implementation
from fecbench.runners.tasks import series
from fecbench.runners.tasks.series import SeriesError
from fecbench.runners.trial import own_report
from fecbench.runners.trial.endpoint import Endpoint
from fecbench.runners.workloads.live.recorded import Recording
from fecbench.runners.workloads.messages import real_time
from fecbench.runners.workloads.messages.traffic import Trace as Messages
from fecbench.runners.workloads.page import graph, har
from fecbench.runners.workloads.page.graph import Page
from fecbench.runners.workloads.video import ladder, mpd
from fecbench.topologies import link_traces
from fecbench.topologies.trace import Trace
from tests.support import captures, qlogs
from tests.support.lane_sources import LANE_SOURCES

REFUSALS = (BadInput, Failed, SeriesError)
"""Errors that refuse bytes."""

MOST_TRIALS = 2_000
"""Most trials of a design that is planned: larger ones only take longer."""

_KEPT = tempfile.TemporaryDirectory(prefix="fecbench-fuzz-")
_FOLDER = Path(_KEPT.name)
"""Folder of this process only: files have fixed names."""


@dataclass(frozen=True)
class Target:
    read: Callable[[bytes], object]
    seeds: Callable[[], Iterator[bytes]]


def _of_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    path = _FOLDER / name

    def written(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return written


def _files(pattern: str) -> Callable[[], Iterator[bytes]]:
    return lambda: (path.read_bytes() for path in sorted(REPOSITORY.glob(pattern)))


def _texts(*texts: str) -> Callable[[], Iterator[bytes]]:
    return lambda: (text.encode() for text in texts)


def _plan(path: Path) -> None:
    design = designs.load(path)
    if design.trial_count <= MOST_TRIALS:
        design.plan()


def _trace(path: Path) -> None:
    _same_again(link_traces.read(path)[0], path)


def _trace_of_parquet(path: Path) -> None:
    link_traces.read(path)


def _parquet() -> Iterator[bytes]:
    written = io.BytesIO()
    parquet.write_table(pa.table({"keep_us": [100, 200]}), written)
    yield written.getvalue()


def _of_format(kind: str) -> Callable[[Path], None]:
    return lambda path: _same_again(link_traces.imported(kind, path), path)


def _same_again(trace: Trace, path: Path) -> None:
    path.write_text(link_traces.text_of(trace))
    assert link_traces.read(path)[0] == trace


def _page(path: Path) -> None:
    _page_again(graph.load(path), path)


def _har(path: Path) -> None:
    _page_again(har.page_from(path), path)


def _page_again(page: Page, path: Path) -> None:
    path.write_text(page.text())
    assert graph.load(path) == page
    graph.demand(graph.stored(path)["graph"])


def _losses(path: Path) -> None:
    recordings.drop_list(recordings.read(path))


def _capture(path: Path) -> None:
    places = (recordings.Sequence(0, 4), recordings.Sequence(1, 1, "little"), recordings.Sequence(2, 2))
    refusals = []
    for sequence in places:
        try:
            recordings.drop_list(recordings.read(path, sequence=sequence))
        except BadInput as refusal:
            refusals.append(refusal)
    if len(refusals) == len(places):
        raise refusals[0]


def _both_sides(path: Path) -> None:
    """The bytes are the receiver's capture."""
    sent = path.with_name("sent")
    sent.write_bytes(captures.pcap(_FRAMES))
    recordings.drop_list(recordings.read(sent, path))


def _list(path: Path) -> None:
    trace = real_time.from_list(path, 30.0, "fuzz")
    path.write_text(trace.text())
    assert Messages.load(path) == trace


@cache
def _lane() -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """A lane and its functions, in which undefined behaviour ends the process."""
    library = _FOLDER / "lane.so"
    options = ["-shared", "-fPIC", "-std=gnu11", "-O1", "-g", "-fsanitize=undefined", "-fno-sanitize-recover"]
    subprocess.run(["cc", *options, "-o", library, *LANE_SOURCES, "-lm"], check=True)
    core = ctypes.CDLL(str(library))
    core.lane_new.restype = ctypes.c_void_p
    core.lane_begin.restype = ctypes.c_char_p
    return core, ctypes.c_void_p(core.lane_new())


def _begin(text: bytes) -> str | None:
    core, lane = _lane()
    refusal: bytes | None = core.lane_begin(lane, text)
    return None if refusal is None else refusal.decode("ascii")


def _link(data: bytes) -> None:
    """The order of its lines changes nothing, and a lane that takes a text carries a datagram."""
    lines = data.partition(b"\0")[0].split(b"\n")
    if lines[-1] == b"":
        del lines[-1]
    refusal, backwards = (_begin(b"".join(line + b"\n" for line in some)) for some in (lines, lines[::-1]))
    assert (refusal is None) == (backwards is None), (refusal, backwards)
    if refusal is not None:
        assert refusal.isprintable(), refusal
        raise BadInput(refusal)
    core, lane = _lane()
    core.lane_start(lane, ctypes.c_uint64(5))
    core.lane_send(lane, b"x", 1, ctypes.c_uint64(1), ctypes.c_uint8(2), ctypes.c_uint64(7))


_ENDED = subprocess.Popen(["true"])
_ENDED.wait()


def _lines(data: bytes) -> None:
    """Feed the output of an endpoint, in two pieces."""
    for cut in (0, len(data) // 2):
        endpoint = Endpoint("client", _ENDED)
        endpoint.exit_code = 0  # it is never killed
        endpoint.hear = lambda _: None
        endpoint.take_stdout(data[:cut])
        endpoint.take_stdout(data[cut:])
        if "\n" in endpoint.complaint:
            raise AssertionError(endpoint.complaint)


def _path(path: Path) -> None:
    """Estimates are in order, and within what they can be."""
    found = paths.measured(path)
    for name in ("rtt_ms", "bandwidth_mbps", "loss", "burst", "queue_bdp", "burst_s"):
        estimate = getattr(found, name)
        if estimate is not None:
            assert 0 <= estimate.low <= estimate.value <= estimate.high, (name, estimate)
    assert 0 <= found.lost <= found.packets
    json.dumps(found.document(), allow_nan=False)


_PACKETS = [captures.udp(b"\x80\x60" + number.to_bytes(2, "big") + bytes(8) + b"abcd") for number in range(3)]
_FRAMES = captures.framed([*_PACKETS, *captures.fragments(captures.udp(bytes(99)), 7, 56)])


def _captures() -> Iterator[bytes]:
    yield from (write(_FRAMES) for write in captures.FILES.values())
    for link in captures.LINKS.values():
        yield captures.pcap(captures.framed(_PACKETS, link))


def _capture_of_ipv6() -> Iterator[bytes]:
    yield from _captures()
    packet = captures.udp(b"abcdefgh", captures.SERVER_6, captures.CLIENT_6)
    yield captures.pcap(captures.framed([captures.extended(packet, (0, bytes(7)), (44, bytes(7)))]))


def _logs() -> Iterator[bytes]:
    yield from (form().encode() for form in qlogs.FORMS.values())


def _mpd(path: Path) -> None:
    for number in (1, 2):
        (path.parent / f"1-{number}").write_bytes(b"segment")
    mpd.video_from(path, "fuzz")


_TRIP = {"lost": "false", "timestamps": {"client": {"send": {"wall": 5}}}, "delay": {"rtt": 7, "send": 3}}
_OF_OTHERS = (
    *("0 1\n1 2\n", "1\n2\n", "0,1\n1,5\n", "# a\n1000,2000,3000,429496729,5\n"),
    *("1000,2000,3,4000,0,5,0,0,1,1\n", "timestamp,rtt\n1700000000000000000,50\n1700000000010000000,-1\n"),
    json.dumps({"round_trips": [_TRIP]}),
)
_ENTRY = {
    "startedDateTime": "2024-01-01T00:00:00Z",
    "time": 3,
    "request": {"url": "https://a/"},
    "response": {"status": 200, "bodySize": 10},
}
_ENTRIES = [
    _ENTRY,
    {**_ENTRY, "_initiator": "https://b/", "pageref": "page_1_0_1"},
    {**_ENTRY, "_initiator": {"type": "script", "stack": {"callFrames": [{"url": "https://b/"}]}}},
]
_PAGE = {
    "title": "a",
    "made_by": "b",
    "objects": [
        {"name": "a", "origin": "c", "size_bytes": 9, "parents": [], "processing_ms": 1.5},
        {"name": "d", "origin": "c", "size_bytes": 9, "parents": ["a"], "processing_ms": 0},
    ],
}
_RECORDING = {"title": "two frames", "made_by": "hand", "frames": [[0, 400, 1], [33_333, 70, 0]]}
_LADDER = {
    "title": "a",
    "made_by": "b",
    "segment_s": 2.0,
    "levels": [{"kbps": 235.0, "width": 320, "height": 240, "fps": 24.0, "sizes": [74949, 81291]}],
}
_STEPS = "QEIPAAAAAABAQg8AAAAAAAAAAAAAAAAAAAAAAAAAAAA="
_PING = """PING a (192.0.2.7) 56(84) bytes of data.
64 bytes from a (192.0.2.7): icmp_seq=1 ttl=5 time=31.2 ms
64 bytes from a (192.0.2.7): icmp_seq=2 ttl=5 time=0.8 ms
64 bytes from a (192.0.2.7): icmp_seq=6 ttl=5 time=31 ms

6 packets transmitted, 3 received, 50% packet loss, time 5010ms
"""
_IPERF3 = {
    "start": {"tcp_mss_default": 1448, "test_start": {"protocol": "TCP"}},
    "intervals": [{"sum": {"bits_per_second": 5e6}}, {"sum": {"bits_per_second": 6e6}}],
    "end": {
        "streams": [{"sender": {"min_rtt": 4, "max_rtt": 9}}],
        "sum_sent": {"bytes": 144800, "seconds": 1, "retransmits": 3},
        "sum_received": {"bits_per_second": 5e6},
        "sum": {"packets": 10, "lost_packets": 3, "bits_per_second": 5e6, "seconds": 1},
    },
}


def _recordings() -> Iterator[bytes]:
    yield from _logs()
    yield from (text.encode() for text in (_PING, *_OF_OTHERS, "0\n1\n" * 20, json.dumps(_IPERF3)))
    yield json.dumps(_IPERF3).replace("TCP", "UDP").encode()
    segments = [captures.tcp(bytes(100), 100 * number) for number in range(25)]
    acks = [captures.tcp(b"", number, captures.CLIENT, captures.SERVER) for number in range(3)]
    yield captures.pcap(captures.framed([*segments, segments[3], *acks]))


_MPD = """<MPD mediaPresentationDuration="PT4S"><Period><AdaptationSet contentType="video">
<SegmentTemplate timescale="1" duration="2" media="$RepresentationID$-$Number$"/>
<Representation id="1" bandwidth="1000" width="9" height="9"/></AdaptationSet></Period></MPD>"""
_RUNS = '><SegmentTimeline><S t="0" d="2" r="-1"/></SegmentTimeline></SegmentTemplate>'
_TIMELINE = _MPD.replace('duration="2"', "").replace("/>", _RUNS, 1)

TARGETS = {
    "design": Target(_of_file("design.toml", _plan), _files("designs/catalog/*.toml")),
    "declaration": Target(
        _of_file("impl.toml", lambda path: implementation.read(path.parent)), _files("quic-impls/*/impl.toml")
    ),
    "trace": Target(_of_file("trace.csv", _trace), _texts("1\n2\n5\n", "us,kbps\n100,5\n")),
    "link": Target(
        _link,
        _texts(
            "rate_bps 1000000\ndelay_ns 5\nqueue_bytes 9000\nqueue codel\noutage_ns 1 5\nmodel ge\np 0.1\n"
            "r 0.2\nk 1.0\nh 0.5\nseed 18446744073709551615\njitter pareto 5 7\nreorder true\n",
            f"rate_bps 1000\ndelay_ns 5\nqueue_ns 9\nschedule loop 7\nsteps {_STEPS}\nmodel slots\n"
            "slot_ms 5\ndrop 1,3-9\nlength 70\nrepeat true\n",
            "rate_bps 1000\ndelay_ns 5\nqueue_packets 9\nmodel ge-time\ngood_s 1\nbad_s 1e-3\n",
        ),
    ),
    "trace-parquet": Target(_of_file("trace.parquet", _trace_of_parquet), _parquet),
    **{
        f"trace-{kind}": Target(_of_file(kind, _of_format(kind)), _texts(*_OF_OTHERS))
        for kind in link_traces.FORMATS
    },
    "losses": Target(_of_file("losses", _losses), _texts("0,1,1\n0")),
    "qlog": Target(_of_file("qlog", _losses), _logs),
    "capture": Target(_of_file("capture", _capture), _capture_of_ipv6),
    "captures": Target(_of_file("received", _both_sides), _captures),
    "path": Target(_of_file("recording", _path), _recordings),
    "list": Target(
        _of_file("frames.txt", _list), _texts("% n | time | size\n0 0.5 7\n", "7\n8\n", "0.0 7\n0.5 8\n")
    ),
    "page": Target(_of_file("page.json", _page), _texts(json.dumps(_PAGE))),
    "har": Target(
        _of_file("page.har", _har), _texts(*(json.dumps({"log": {"entries": [entry]}}) for entry in _ENTRIES))
    ),
    "recording": Target(_of_file("frames.json", Recording.load), _texts(json.dumps(_RECORDING))),
    "ladder": Target(_of_file("video.json", ladder.stored), _texts(json.dumps(_LADDER))),
    "mpd": Target(_of_file("video.mpd", _mpd), _texts(_MPD, _TIMELINE)),
    "lines": Target(
        _lines,
        _texts('{"event": "ready"}\n{"event": "done", "metrics": {"dct_s": 1.5}}\n', '{"event": "object"}'),
    ),
    "series": Target(lambda data: series.table("cwnd", data), _texts("t_s,cwnd_bytes\n0,1\n0.5,2\n")),
    "report": Target(
        _of_file(own_report.NAME, lambda path: own_report.read(path.parent)),
        _texts('{"metrics": {"a": 1}, "series": {"cwnd": {"t_s": [0], "b": [1]}}}'),
    ),
}
