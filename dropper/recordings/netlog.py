"""NetLog of Chromium (chrome://net-export): the QUIC sessions of a browser, each with what it sent and lost.

In Chromium, all packets of a session share their numbers, so an event of loss needs no kind of packet.
A file that was cut off, since the browser was killed, is read up to its last whole event.
"""

import json
import math
from typing import Any

from fecbench.dropper.recordings.endpoint_log import DATA, EndpointLog, Range
from fecbench.errors import BadInput

_PREFIX = "QUIC_SESSION_"
_SENT, _LOST, _ACK, _RECEIVED = (
    _PREFIX + name for name in ("PACKET_SENT", "PACKET_LOST", "ACK_FRAME_RECEIVED", "PACKET_RECEIVED")
)


def is_netlog(start: str) -> bool:
    """Whether a text that begins so is a NetLog."""
    return start.lstrip().startswith("{") and start.lstrip()[1:].lstrip().startswith('"constants"')


def logs(text: str) -> tuple[list[EndpointLog], list[str]]:
    """Return the logs of a NetLog's sessions, and remarks. Raises BadInput, without the name of the file."""
    document, notes = _document(text)
    try:
        names = {code: name for name, code in document["constants"]["logEventTypes"].items()}
        sessions: dict[int, EndpointLog] = {}
        for event in document["events"]:
            name = names.get(event["type"])
            if name in (_SENT, _LOST, _ACK, _RECEIVED) and isinstance(params := event.get("params"), dict):
                number = event["source"]["id"]
                log = sessions.setdefault(number, EndpointLog(f"session {number} of Chromium", "client"))
                _note(log, str(name), params, _at_s(event.get("time")))
    except (KeyError, TypeError, AttributeError):
        raise BadInput(
            "is no NetLog: it has no constants with types of events, or events without them"
        ) from None
    return [sessions[number] for number in sorted(sessions)], notes


def _document(text: str) -> tuple[dict[str, Any], list[str]]:
    try:
        return json.loads(text), []
    except (ValueError, RecursionError):
        whole = text[: text.rfind("\n")].rstrip().rstrip(",")
    try:
        return json.loads(whole + "]}"), ["It is cut off, and read up to its last whole event."]
    except (ValueError, RecursionError) as error:
        raise BadInput(f"is no whole NetLog: {error}") from None


def _at_s(time: Any) -> float:
    """The time of an event (s), which has ms as a text."""
    whole = isinstance(time, int | str) and str(time).isascii() and str(time).isdecimal()
    return int(time) / 1e3 if whole and len(str(time)) < 16 else math.nan


def _note(log: EndpointLog, name: str, params: dict[str, Any], at_s: float) -> None:
    if name == _ACK:
        missing = [_number(number) for number in params.get("missing_packets", ())]
        begin = _number(params.get("smallest_observed", 0))
        spans = list[Range]()
        for number in [*sorted(missing), _number(params["largest_observed"]) + 1]:
            if begin < number:
                spans.append((begin, number - 1))
            begin = number + 1
        log.arrived += spans
        if not math.isnan(at_s):
            log.acks_at.append((at_s, spans))
    elif name == _LOST:
        log.lose("", _number(params["packet_number"]))
    elif name == _RECEIVED:
        if not math.isnan(at_s):
            log.received.append((at_s, _size_bytes(params)))
    else:
        is_data = str(params.get("encryption_level", "")).endswith("FORWARD_SECURE")
        size_bytes = _size_bytes(params)
        log.send(DATA if is_data else "handshake", _number(params["packet_number"]), "", at_s, size_bytes)


def _size_bytes(params: dict[str, Any]) -> int:
    """The size of a packet; 0: the event does not say."""
    size = params.get("size")
    return size if isinstance(size, int) and 0 < size < 1 << 16 else 0


def _number(value: Any) -> int:
    """A number that is a text where it is too large for JSON."""
    number = int(value) if isinstance(value, int | str) and str(value).isdecimal() else -1
    if not 0 <= number < 1 << 63:
        raise BadInput(f"{str(value)[:40]!r} is no packet number")
    return number
