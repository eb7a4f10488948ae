"""A file of losses, whichever it is: a list, a qlog or a NetLog, packet captures of one side or of both."""

from pathlib import Path

from fecbench.dropper.recordings import both_sides, loss_list, netlog, qlog, sequence_number
from fecbench.dropper.recordings.capture_file import LARGEST_BYTES, is_capture
from fecbench.dropper.recordings.endpoint_log import chosen
from fecbench.dropper.recordings.recording import MOST_PACKETS, Recording, Verdicts
from fecbench.dropper.recordings.sequence_number import Sequence
from fecbench.errors import BadInput
from fecbench.unpacking import content_of, opened

_TEXT_BYTES = 512 << 20
_START_BYTES = 256


def recorded(
    path: Path, received: Path | None = None, sequence: Sequence | None = None, trace: int | None = None
) -> Recording:
    """Return which packets were lost, in the order in which they were sent.

    `trace` chooses among the recordings of a qlog that has several, from 1 on. Raises BadInput, which names
    the file.
    """
    with opened(path, LARGEST_BYTES) as file:
        start = file.read(_START_BYTES)
    is_log = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"\x1e")
    if trace is not None and not is_log:
        raise BadInput(f"{path}: --trace {trace}: it is no qlog or NetLog, which may have several recordings")
    if is_capture(start):
        if (received is None) == (sequence is None):
            raise BadInput(f"{path}: a capture needs either --received, the other side's, or --sequence")
        if received is not None:
            recording = both_sides.read(path, received)
        else:
            assert sequence is not None
            recording = sequence_number.read(path, sequence)
    elif received is not None or sequence is not None:
        raise BadInput(f"{path}: is no packet capture (pcap or pcapng)")
    elif is_log:
        recording = _of_endpoint(path, trace)
    else:
        recording = loss_list.read(path)
    if recording.lost.size > MOST_PACKETS:
        raise BadInput(f"{path}: has more than {MOST_PACKETS} packets")
    return recording


def read(path: Path, received: Path | None = None, sequence: Sequence | None = None) -> Verdicts:
    """Return the losses alone of `recorded()`."""
    return recorded(path, received, sequence).lost


def _of_endpoint(path: Path, trace: int | None) -> Recording:
    try:
        text = content_of(path, _TEXT_BYTES).decode("utf-8-sig").lstrip(" \t\r\n")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is no text") from None
    try:
        form = netlog if netlog.is_netlog(text[:_START_BYTES]) else qlog
        logs, notes = form.logs(text)
        return chosen(logs, trace).noting(*notes)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
