"""qlog of a sender: JSON, JSON text sequences (RFC 7464) or one JSON document a line (NDJSON).

The logs of stacks differ from the drafts and from each other. The forms of aioquic, mvfst, quic-go, quiche,
picoquic, quinn, ngtcp2, s2n-quic and neqo are read. Until draft-02, events are arrays, whose places
`event_fields` names. If an endpoint was killed, its last record may be cut off; that record is left out.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fecbench.dropper.recordings.endpoint_log import DATA, EARLY_DATA, EndpointLog, Range
from fecbench.errors import BadInput

_RECORD_SEPARATOR = "\x1e"
_KINDS = {
    **dict.fromkeys(("1rtt", "onertt", "short", "shortheader", "applicationdata", "application"), DATA),
    **dict.fromkeys(("0rtt", "zerortt"), EARLY_DATA),
    **dict.fromkeys(("unknown", "none", ""), ""),
}
_DELTAS = {"delta", "relative_to_previous_event"}
"""Formats of times that count from the event before, until draft-07 and since."""
_TIMES = ("time", "relative_time", "delta_time", "timestamp")
_LOSS, _SUMS = {"packet_lost", "packets_lost"}, ("lost_packets",)
_QUICHE_SUM = "cf_lost_packets"


@dataclass
class _Trace:
    """A trace of a file: its heading, and its events."""

    heading: Mapping[str, Any] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)


def logs(text: str) -> tuple[list[EndpointLog], list[str]]:
    """Return the logs of a qlog, and remarks. Raises BadInput, without the name of the file."""
    if text.startswith(_RECORD_SEPARATOR):
        records, notes = _records(text.split(_RECORD_SEPARATOR))
        return _logs_of(_of_records(records)), notes
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            raise BadInput(f"is no whole qlog: {error}") from None
        records, notes = _records(text.splitlines())
        return _logs_of(_of_records(records)), notes
    except (ValueError, RecursionError) as error:
        raise BadInput(f"is no whole qlog: {error}") from None
    return of_document(document), []


def of_document(document: Any) -> list[EndpointLog]:
    """Return the logs of a qlog that is one JSON document. Raises BadInput."""
    traces = document.get("traces") if isinstance(document, dict) else None
    if isinstance(document, dict) and traces is None and "trace" in document:
        traces = [document["trace"]]
    if not isinstance(traces, list):
        raise BadInput("is no qlog: it has no traces with events")
    read = [trace for trace in traces if isinstance(trace, dict) and isinstance(trace.get("events"), list)]
    if not read:
        raise BadInput("is no qlog: it has no traces with events")
    return _logs_of(_Trace(trace, trace["events"]) for trace in read)


def _records(texts: Iterable[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """The records of a sequence, without a last one that is cut off."""
    nonempty = [text for text in texts if text.strip()]
    records, notes = [], []
    for number, text in enumerate(nonempty, start=1):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            if number < len(nonempty):
                raise BadInput(f"is no whole qlog: record {number}: {error}") from None
            notes.append("Its last record is cut off, and left out.")
            continue
        if isinstance(record, dict):
            records.append(record)
    if notes and not any("name" in record for record in records):
        raise BadInput("is no whole qlog: it is cut off before its first event")
    return records, notes


def _of_records(records: Iterable[dict[str, Any]]) -> Iterator[_Trace]:
    """The traces of a sequence: a heading, and its events."""
    trace = _Trace()
    for record in records:
        if "name" in record or "data" in record:
            trace.events.append(record)
            continue
        heading = record.get("trace", record)
        if trace.events:
            yield trace
            trace = _Trace()
        if isinstance(heading, dict):
            trace.heading = heading
    yield trace


def _logs_of(traces: Iterable[_Trace]) -> list[EndpointLog]:
    logs = list[EndpointLog]()
    for trace in traces:
        by_group: dict[str, EndpointLog] = {}
        for number, event in enumerate(_events(trace), start=1):
            log = by_group.setdefault(event.group, EndpointLog())
            try:
                _note(log, event)
            except BadInput as error:
                raise BadInput(f"event {number}: {event.name}: {error}") from None
        vantage, name = _vantage(trace.heading)
        for log in by_group.values():
            log.vantage, log.name = vantage, name
        logs += by_group.values()
    return logs


def _vantage(heading: Mapping[str, Any]) -> tuple[str, str]:
    """The side that kept a trace, and what a person calls it."""
    point = heading.get("vantage_point")
    if not isinstance(point, dict):
        return "", ""
    kind = str(point.get("type", "")).lower()
    name = "".join(letter for letter in str(point.get("name") or "") if letter.isprintable())[:40]
    return kind, " ".join(part for part in (kind, name) if part)


# Events


@dataclass(frozen=True)
class _Event:
    name: str
    """The name without its category, in small letters."""
    data: Any
    path: str = ""
    group: str = ""
    """The connection, in a file of several."""
    at_s: float = math.nan


def _events(trace: _Trace) -> Iterator[_Event]:
    common = trace.heading.get("common_fields")
    fields = trace.heading.get("event_fields")
    fixed = common if isinstance(common, dict) else {}
    unit_s, at_s = _unit_s(trace.heading), 0.0
    for event in trace.events:
        if isinstance(event, list):
            if not isinstance(fields, list):
                raise BadInput("its events are arrays, and it has no event_fields, which name their places")
            event = dict(zip((str(field).lower() for field in fields), event, strict=False))
        if isinstance(event, dict):
            name = event.get("name") or event.get("event") or event.get("event_type") or event.get("type")
            group = _text(event.get("group_id") or fixed.get("group_id") or "")
            path = _text(next((event[key] for key in ("path_id", "path") if event.get(key) is not None), ""))
            time = unit_s * _time(event)
            at_s = at_s + time if _is_delta(event, fixed) else time
            yield _Event(str(name).rpartition(":")[2].lower(), event.get("data"), path, group, at_s)


def _is_delta(event: Mapping[str, Any], fixed: Mapping[str, Any]) -> bool:
    """Whether the time of an event counts from the one before."""
    return "delta_time" in event or event.get("time_format", fixed.get("time_format")) in _DELTAS


def _time(event: Mapping[str, Any]) -> float:
    """The time of an event, in the unit of its trace; NaN: it has none."""
    value = next((event[key] for key in _TIMES if key in event), None)
    try:
        time = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return math.nan
    return time if math.isfinite(time) else math.nan


def _unit_s(heading: Mapping[str, Any]) -> float:
    """The unit of a trace's times (s): ms, but for drafts that let a trace name another."""
    places = [heading, heading.get("configuration"), heading.get("common_fields")]
    units = [place.get("time_units") for place in places if isinstance(place, dict)]
    return 1e-6 if "us" in units else 1e-3


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _note(log: EndpointLog, event: _Event) -> None:
    """Add an event to the log of its endpoint. Raises BadInput for a loss that cannot be read."""
    data = event.data
    if event.name in _LOSS:
        _note_loss(log, data)
    elif not isinstance(data, dict):
        return
    elif event.name == "packet_sent":
        kind, number, path = _packet(data)
        if number is not None:
            log.send(kind, number, path or event.path, event.at_s, _size_bytes(data))
        elif kind == DATA:
            raise BadInput("has no packet number")
    elif event.name == "spurious_loss":
        kind, number, _ = _packet(data)
        if number is None:
            raise BadInput("has no packet number")
        if kind in (DATA, ""):
            log.spurious.add(number)
    elif event.name == "packet_received":
        if _packet(data)[0] in (DATA, ""):
            if not math.isnan(event.at_s):
                log.received.append((event.at_s, _size_bytes(data)))
            for ranges in _acknowledged(data.get("frames")):
                log.acknowledge(ranges, event.at_s)
    elif event.name in ("packets_acked", "packet_ack"):
        arrived = list(_acknowledged_packets(data))
        log.arrived += arrived
        if not math.isnan(event.at_s):
            log.acks_at.append((event.at_s, arrived))
    elif event.name.endswith("metrics_updated") and isinstance(data.get(_QUICHE_SUM), dict):
        log.uncounted = max(log.uncounted, _whole(data[_QUICHE_SUM].get("total")) or 0)


def _note_loss(log: EndpointLog, data: Any) -> None:
    if not isinstance(data, dict):
        raise BadInput(f"its data is {json.dumps(data)[:40]}: must say which packet was lost")
    kind, number, _ = _packet(data)
    if number is not None:
        is_probe = any(data.get(key) is True for key in ("is_mtu_probe_packet", "is_mtu_probe"))
        log.lose(kind, number, is_probe)
        return
    count = next((count for key in _SUMS if (count := _whole(data.get(key))) is not None), None)
    if count is not None:
        log.uncounted += count
    elif kind in (DATA, ""):
        raise BadInput(f"{json.dumps(data)[:80]}: must have a packet number")


def _packet(data: Mapping[str, Any]) -> tuple[str, int | None, str]:
    """The kind of a packet, its number and its path; a kind of "" is not known."""
    headers = (data[key] for key in ("header", "packet_header") if isinstance(data.get(key), dict))
    header: dict[str, Any] = next(headers, {})
    if len(header) == 1 and isinstance(inner := next(iter(header.values())), dict):
        header = {
            **inner,
            "packet_type": next(iter(header)),
        }  # as s2n-quic names it: {"OneRtt": {"number": 7}}
    places = (header, data)
    kinds = (
        place[key]
        for place in places
        for key in ("packet_type", "type", "packet_number_space")
        if isinstance(place.get(key), str)
    )
    numbers = (
        number
        for place in places
        for key in ("packet_number", "number", "packet_num")
        if (number := _whole(place.get(key))) is not None
    )
    path = next((place["path_id"] for place in places if place.get("path_id") is not None), "")
    return kind_of(next(kinds, "")), next(numbers, None), _text(path)


def _size_bytes(data: Mapping[str, Any]) -> int:
    """The size of a packet; 0: the log does not say."""
    places = (data.get(key) for key in ("raw", "header", "packet_header"))
    sizes = (
        _whole(place.get(key))
        for place in (*places, data)
        if isinstance(place, dict)
        for key in ("length", "packet_size", "packet_len")
    )
    return next((size for size in sizes if size), 0)


def kind_of(name: str) -> str:
    """Return the kind of a packet by any of its names; "" is not known."""
    bare = "".join(letter for letter in name.lower() if letter.isalnum())
    return _KINDS.get(bare, bare)


def _whole(value: Any) -> int | None:
    """A number that JSON may have as a text, since it has 62 bits."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None


def _acknowledged(frames: Any) -> Iterator[list[Range]]:
    """The ranges of each ACK frame of a packet."""
    for frame in frames if isinstance(frames, list) else ():
        if isinstance(frame, dict) and str(frame.get("frame_type", frame.get("type"))).lower() == "ack":
            ranges, read = frame.get("acked_ranges"), list[Range]()
            for span in ranges if isinstance(ranges, list) else ():
                ends = [_whole(end) for end in span] if isinstance(span, list) else [_whole(span)]
                numbers = [end for end in ends if end is not None]
                if 0 < len(ends) == len(numbers) <= 2:
                    read.append((min(numbers), max(numbers)))
            yield read


def _acknowledged_packets(data: Mapping[str, Any]) -> Iterator[Range]:
    if kind_of(str(data.get("packet_number_space", ""))) not in (DATA, ""):
        return
    numbers = data.get("packet_numbers", data.get("packet_num"))
    for number in numbers if isinstance(numbers, list) else [numbers]:
        if (whole := _whole(number)) is not None:
            yield whole, whole
