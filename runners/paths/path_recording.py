"""A recording of a path, whichever form it has. A file of no known form is refused in one line."""

import json
from pathlib import Path as File
from typing import Any

from fecbench.dropper import recordings
from fecbench.dropper.recordings import Packet, Recording
from fecbench.dropper.recordings.capture_file import LARGEST_BYTES, is_capture
from fecbench.dropper.recordings.flow import by_flow
from fecbench.dropper.recordings.packet import Seen
from fecbench.errors import BadInput
from fecbench.runners.paths import iperf3, irtt_recording, mahimahi_trace, packets, ping, tcp_capture
from fecbench.runners.paths.path import Path
from fecbench.unpacking import content_of, opened

MOST_BYTES = 512 << 20
_START_BYTES = 4096
_FEWEST_LOSSES = 20
"""A list of losses has more packets than that."""


def measured(file: File, other: File | None = None, trace: int | None = None) -> Path:
    """Return the path of a recording, or of captures of both sides. Raises BadInput, which names the file.

    `trace` chooses among the recordings of a qlog that has several, from 1 on.
    """
    with opened(file, LARGEST_BYTES) as opened_file:
        start = opened_file.read(_START_BYTES)
    if not start.strip():
        raise BadInput(f"{file}: is empty")
    if is_capture(start):
        return _of_one_capture(file) if other is None else _of_captures(file, other)
    if other is not None:
        raise BadInput(f"{file}: is no packet capture: two files are captures of both sides")
    content = content_of(file, MOST_BYTES)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    try:
        if text[:1] in (b"{", b"\x1e"):
            return _of_json(file, content, trace)
        if trace is not None:
            raise BadInput(f"--trace {trace}: it is no qlog or NetLog, which may have several recordings")
        if text.startswith(b"timestamp"):
            return irtt_recording.path(content)
        written = start.decode("utf-8-sig", errors="replace")
        if ping.is_ping(written):
            return ping.path(content.decode("utf-8-sig", errors="replace"))
        return _of_numbers(file, content)
    except BadInput as error:
        message = str(error)
        raise BadInput(message if message.startswith(str(file)) else f"{file}: {message}") from None


def _of_json(file: File, content: bytes, trace: int | None) -> Path:
    document: Any = None
    if b'"round_trips"' in content:
        return irtt_recording.path(content)
    if b'"test_start"' in content or b'"iperf' in content[:_START_BYTES]:
        try:
            document = json.loads(content.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise BadInput(f"is no whole report of iperf3: {error}") from None
    if iperf3.is_iperf3(document):
        return iperf3.path(document)
    recording = recordings.recorded(file, trace=trace)
    path = packets.path_of(recording, "log of an endpoint")
    return _of_receiver(recording, path)


def _of_receiver(recording: Recording, path: Path) -> Path:
    """The path of a log, with a remark where its endpoint received more than it sent."""
    course = recording.course
    if course is None or not course.received.size:
        return path
    sent, received = (
        float(course.sizes_bytes[course.sizes_bytes > 0].sum()),
        float(course.received[:, 1].sum()),
    )
    if received <= 2 * sent:
        return path
    return path.noting(
        "This endpoint received more than it sent: its losses are those of the other direction than the"
        " data's. The log of the data's sender tells more."
    )


def _of_numbers(file: File, content: bytes) -> Path:
    """A list of losses, or a trace of mahimahi: both are numbers."""
    try:
        digits = "".join(content.decode("utf-8-sig").split()).replace(",", "")
    except UnicodeDecodeError:
        raise BadInput(
            "is none of: qlog, NetLog, packet capture, output of ping, irtt or iperf3 -J, mahimahi trace,"
            " list of losses"
        ) from None
    if digits and not digits.strip("01") and len(digits) > _FEWEST_LOSSES:
        return packets.path_of(recordings.recorded(file), "list of losses")
    return mahimahi_trace.path(content)


def _flows(file: File, seen: Seen) -> dict[tuple[str, str], list[Packet]]:
    flows = by_flow(recordings.packet.packets(file, seen))
    if not flows:
        raise BadInput(f"{file}: has no packet of TCP or UDP over IP")
    return flows


def _of_one_capture(file: File) -> Path:
    seen = Seen()
    flows = _flows(file, seen)
    packets_of_all = [packet for of_flow in flows.values() for packet in of_flow]
    of_udp = sum(packet.length for packet in packets_of_all if packet.is_udp)
    if 2 * of_udp > sum(packet.length for packet in packets_of_all):
        raise BadInput(
            f"{file}: is one capture of UDP, in which a loss is not seen: give the other side's capture, too,"
            " or the sender's qlog"
        )
    return tcp_capture.path(file, flows, seen.notes)


def _of_captures(file: File, other: File) -> Path:
    """The path from one side to the other, in the direction of most data, whichever file comes first."""
    read = list[tuple[float, Recording]]()
    refusals = list[BadInput]()
    for sender, receiver in ((file, other), (other, file)):
        try:
            recording = recordings.recorded(sender, receiver)
        except BadInput as refusal:
            refusals.append(refusal)
            continue
        course = recording.course
        read.append((0.0 if course is None else float(course.sizes_bytes.sum()), recording))
    if not read:
        raise refusals[0]
    return packets.path_of(max(read, key=lambda one: one[0])[1], "captures of both sides")
