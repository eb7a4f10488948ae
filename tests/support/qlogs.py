"""The same connection as different stacks log it: 40 packets, of which 5, 6 and 30 were lost.

The forms follow the public sources of each stack (2026-11) and the drafts of qlog; all content is made up.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

SENT, LOST = 40, (5, 6, 30)
Event = dict[str, Any]


def header(number: int, kind: str = "1RTT", **more: Any) -> dict[str, Any]:
    return {"packet_type": kind, "packet_number": number, **more}


def document(events: Sequence[Any], vantage: str = "server", name: str = "", **trace: Any) -> dict[str, Any]:
    point = {"type": vantage, **({"name": name} if name else {})}
    return {
        "qlog_version": "0.3",
        "traces": [{"vantage_point": point, "common_fields": {}, "events": list(events), **trace}],
    }


def by_header(number: int) -> Event:
    return {"header": header(number)}


def events(
    lost: Callable[[int], Event] | None = None,
    numbers: Sequence[int] = LOST,
    sent: Callable[[int], Event] = by_header,
    prefix: tuple[str, str] = ("transport:", "recovery:"),
) -> list[Event]:
    """The packets of a handshake, of which one was lost; then the others, each loss three packets later."""
    of_handshake = [
        {"time": 0, "name": f"{prefix[0]}packet_sent", "data": {"header": header(number, "initial")}}
        for number in (0, 1)
    ]
    written = [*of_handshake]
    for number in range(SENT):
        written.append({"time": number, "name": f"{prefix[0]}packet_sent", "data": sent(number)})
        written += [
            {"time": number + 0.5, "name": f"{prefix[1]}packet_lost", "data": lost(which)}
            for which in numbers
            if lost is not None and which == number - 3
        ]
    return written


def acknowledged(*ranges: list[int], kind: str = "1RTT") -> Event:
    frames = [{"frame_type": "ack", "ack_delay": 1.5, "acked_ranges": list(ranges)}]
    return {
        "time": 99,
        "name": "transport:packet_received",
        "data": {"header": header(7, kind), "frames": frames},
    }


ALL_BUT_THE_LOST = acknowledged([0, 4], [7, 29], [31, 39])


def aioquic() -> str:
    return json.dumps(
        document(events(lambda number: {"type": "1RTT", "packet_number": number}), name="aioquic")
    )


def with_header() -> str:
    return json.dumps(
        document(events(lambda number: {"header": header(number), "trigger": "time_threshold"}))
    )


def sequence(written: Sequence[Event], separator: str = "\x1e", **heading: Any) -> str:
    trace = {"vantage_point": {"type": "server"}, "common_fields": {"group_id": "0a"}, **heading}
    first = {"qlog_format": "JSON-SEQ", "qlog_version": "0.3", "trace": trace}
    return "".join(f"{separator}{json.dumps(record)}\n" for record in (first, *written))


def quic_go() -> str:
    """Return the log of quic-go: two packets were declared lost too early."""
    declared = events(by_header, (*LOST, 20, 21))
    spurious = [
        {
            "time": 90,
            "name": "recovery:spurious_loss",
            "data": {
                "packet_number_space": "application_data",
                "packet_number": number,
                "reordering_packets": 4,
            },
        }
        for number in (20, 21)
    ]
    return sequence([*declared, *spurious])


def late_acknowledgement() -> str:
    """20 and 21 were declared lost, and a later ACK has them."""
    return sequence([*events(by_header, (*LOST, 20, 21)), ALL_BUT_THE_LOST])


def noq() -> str:
    """Return the log of noq: ranges of ACKs end before their last number. Packets 20 and 21 were declared
    lost, and came late."""
    declared = events(by_header, (*LOST, 20, 21))
    late = [acknowledged([0, 5], [7, 20], [22, 30], [31, 40]), acknowledged([0, 5], [7, 30], [31, 40])]
    return sequence([*declared, *late])


def quiche() -> str:
    """The number of losses alone, among the metrics."""
    metrics = {
        "time": 98,
        "name": "quic:recovery_metrics_updated",
        "data": {"congestion_window": 9, "cf_lost_packets": {"total": 3, "delta": 3}},
    }
    return sequence([*events(), ALL_BUT_THE_LOST, metrics])


def mvfst() -> str:
    """Sums, with the largest number of each."""
    sums = [
        {
            "time": 50 + largest,
            "name": "quic:packet_lost",
            "data": {"largest_lost_packet_num": largest, "lost_bytes": 1200 * count, "lost_packets": count},
        }
        for largest, count in ((6, 2), (30, 1))
    ]
    return json.dumps(document([*events(), ALL_BUT_THE_LOST, *sums]))


def old_mvfst() -> str:
    written = arrays([*events(), ALL_BUT_THE_LOST])
    written.append(["98", "LOSS", "packets_lost", {"largest_lost_packet_num": 30, "lost_packets": 3}])
    return json.dumps(document(written, event_fields=["relative_time", "CATEGORY", "EVENT_TYPE", "DATA"]))


def arrays(written: Sequence[Event]) -> list[list[Any]]:
    return [[event["time"], *event["name"].split(":"), event["data"]] for event in written]


def picoquic() -> str:
    """Arrays of four places, with type and number twice."""
    written = events(lambda number: {**header(number), "trigger": "repeat", "header": header(number)})
    fields = ["relative_time", "category", "event", "data"]
    return json.dumps(document(arrays(written), event_fields=fields))


def picoquic_with_paths() -> str:
    written = [[time, 0, *rest] for time, *rest in arrays(events(by_header))]
    fields = ["relative_time", "path_id", "category", "event", "data"]
    return json.dumps(document(written, event_fields=fields))


def draft_00() -> str:
    """The type beside the header, numbers as texts."""
    written = events(
        lambda number: {"packet_type": "1RTT", "packet_number": str(number)},
        sent=lambda number: {
            "packet_type": "1RTT",
            "header": {"packet_number": str(number), "packet_size": 9},
        },
    )
    fields = ["relative_time", "category", "event", "data"]
    return json.dumps({**document(arrays(written), event_fields=fields), "qlog_version": "draft-00"})


def capitals() -> str:
    written = [
        [event["time"], *event["name"].upper().split(":"), "LINE", event["data"]]
        for event in events(by_header)
    ]
    fields = ["time", "CATEGORY", "EVENT_TYPE", "TRIGGER", "DATA"]
    return json.dumps(document(written, event_fields=fields))


def ngtcp2() -> str:
    return sequence(events(by_header))


def quinn() -> str:
    written = events(
        lambda number: {"header": header(number, length=1200), "trigger": "reordering_threshold"},
        prefix=("quic:", "quic:"),
    )
    return sequence([{**event, "group_id": "0a"} for event in written])


def neqo() -> str:
    """Return the log of neqo: acknowledged packets are events."""
    acked = {
        "time": 99,
        "name": "quic:packets_acked",
        "data": {
            "packet_number_space": "application_data",
            "packet_numbers": [number for number in range(SENT) if number not in LOST],
        },
    }
    declared = events(lambda number: {"header": header(number), "trigger": "pto_expired"}, (*LOST, 20))
    return sequence([*declared, acked])


def s2n() -> str:
    """The names of its events' fields."""
    written = events(
        lambda number: {
            "packet_header": {"OneRtt": {"number": number}},
            "bytes_lost": 1200,
            "is_mtu_probe": False,
        },
        sent=lambda number: {"packet_header": {"OneRtt": {"number": number}}, "packet_len": 1200},
    )
    return sequence(written)


def one_a_line() -> str:
    return sequence(events(by_header), "")


def killed() -> str:
    return ngtcp2() + '\x1e{"time": 77, "name": "transport:pack'


def killed_one_a_line() -> str:
    return one_a_line() + '{"time": 77, "name": "transport:pack'


def chromium() -> str:
    """A NetLog, whose numbers go on behind the handshake's."""
    codes = {
        "QUIC_SESSION_PACKET_SENT": 7,
        "QUIC_SESSION_PACKET_LOST": 8,
        "QUIC_SESSION_ACK_FRAME_RECEIVED": 9,
    }

    def event(name: str, **params: Any) -> Event:
        return {
            "params": params,
            "phase": 0,
            "source": {"id": 31, "type": 9},
            "time": "1",
            "type": codes[f"QUIC_SESSION_{name}"],
        }

    def sent(number: int, level: str) -> Event:
        return event("PACKET_SENT", packet_number=number, encryption_level=f"ENCRYPTION_{level}", size=1200)

    first = 4
    written = [sent(number, "INITIAL") for number in range(1, first)]
    written += [sent(first + number, "FORWARD_SECURE") for number in range(SENT)]
    written += [
        event("PACKET_LOST", packet_number=number, detection_time_us="5") for number in (2, first + 20)
    ]
    written += [event("PACKET_LOST", packet_number=str(first + number)) for number in LOST]
    written.append(
        event(
            "ACK_FRAME_RECEIVED",
            smallest_observed=3,
            largest_observed=first + SENT - 1,
            missing_packets=[first + number for number in LOST],
        )
    )
    lines = ",\n".join(json.dumps(one) for one in written)
    return f'{{"constants": {json.dumps({"logEventTypes": codes})},\n"events": [\n{lines}]}}\n'


def killed_chromium() -> str:
    return chromium().rpartition("]}")[0] + ',\n{"params": {"pack'


FORMS: dict[str, Callable[[], str]] = {
    form.__name__: form
    for form in (
        *(aioquic, with_header, quic_go, late_acknowledgement, noq, quiche, mvfst, old_mvfst, picoquic),
        *(picoquic_with_paths, draft_00, capitals, ngtcp2, quinn, neqo, s2n, one_a_line, killed),
        *(killed_one_a_line, chromium, killed_chromium),
    )
}
