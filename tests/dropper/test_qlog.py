"""Losses by an endpoint's log are the same in every form that stacks write; what it cannot say is refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fecbench.dropper.recordings import Recording, drop_list, recorded
from fecbench.errors import BadInput
from tests.support import qlogs
from tests.support.qlogs import FORMS, LOST, SENT, acknowledged, by_header, document, events, header, sequence


def of_text(tmp_path: Path, text: str | dict[str, Any], trace: int | None = None) -> Recording:
    path = tmp_path / "trace.qlog"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return recorded(path, trace=trace)


def lost_numbers(recording: Recording) -> tuple[int, ...]:
    return tuple(np.flatnonzero(recording.lost).tolist())


@pytest.mark.parametrize("form", FORMS)
def test_every_form_tells_the_same_losses(tmp_path: Path, form: str) -> None:
    recording = of_text(tmp_path, FORMS[form]())
    assert (lost_numbers(recording), recording.lost.size) == (LOST, SENT)
    assert recording.direction == ("up" if "chromium" in form else "down")


def test_a_qlog_may_be_packed(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlog.gz"
    path.write_bytes(gzip.compress(qlogs.ngtcp2().encode()))
    assert lost_numbers(recorded(path)) == LOST


DELTAS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "of a trace, until draft-07": ({"time_format": "delta"}, {}),
    "of a trace": ({"time_format": "relative_to_previous_event"}, {}),
    "of each event": ({}, {"time_format": "relative_to_previous_event"}),
}
"""Fields of a trace and of events that say that times count from the event before."""


@pytest.mark.parametrize("whose", DELTAS)
def test_times_may_count_from_the_event_before(tmp_path: Path, whose: str) -> None:
    of_trace, of_events = DELTAS[whose]
    written = [*events(by_header), acknowledged([0, 4], [7, 29], [31, 39])]
    steps = np.diff([event["time"] for event in written], prepend=0)
    counted = [{**event, **of_events, "time": step} for event, step in zip(written, steps, strict=True)]
    expected, course = (
        of_text(tmp_path, document(rows, common_fields=fields)).course
        for rows, fields in ((written, {}), (counted, of_trace))
    )
    assert expected is not None and course is not None
    assert course.sent_s == pytest.approx(expected.sent_s) and course.sent_s[-1] == pytest.approx(0.039)
    assert course.came_s == pytest.approx(expected.came_s, nan_ok=True)


def test_a_client_sends_up(tmp_path: Path) -> None:
    recording = of_text(tmp_path, document(events(by_header), "client", "quiche"))
    assert (recording.direction, recording.source) == ("up", "client quiche")
    assert of_text(tmp_path, document(events(by_header), "network")).direction is None


def test_remarks_say_what_does_not_count(tmp_path: Path) -> None:
    spurious = "2 packets were declared lost and came all the same: they do not count as losses."
    assert of_text(tmp_path, qlogs.quic_go()).notes == (spurious,)
    assert of_text(tmp_path, qlogs.killed()).notes == ("Its last record is cut off, and left out.",)
    (note,) = of_text(tmp_path, qlogs.quiche()).notes
    assert note.startswith("It names no lost packet: those count that no ACK has")
    probe = {
        "time": 41,
        "name": "recovery:packet_lost",
        "data": {**by_header(12), "is_mtu_probe_packet": True},
    }
    recording = of_text(tmp_path, document([*events(by_header), probe]))
    assert (recording.lost.sum(), recording.lost.size) == (3, SENT - 1)
    assert recording.notes == ("1 lost probes of the MTU are left out: they were lost for their size.",)


def test_a_trace_without_losses_has_none(tmp_path: Path) -> None:
    for written in (events(by_header, ()), [*events(by_header, ()), qlogs.acknowledged([0, 39])]):
        recording = of_text(tmp_path, document(written))
        assert (recording.lost.sum(), recording.lost.size, recording.notes) == (0, SENT, ())


def test_packets_of_the_handshake_have_numbers_of_their_own(tmp_path: Path) -> None:
    """Initial 1 was lost, and 1 of application data was not; an ACK of the handshake is none of data."""
    handshake = {"time": 1, "name": "recovery:packet_lost", "data": {"type": "initial", "packet_number": 1}}
    acked = qlogs.acknowledged([0, 39], kind="handshake")
    assert lost_numbers(of_text(tmp_path, document([*events(by_header), handshake, acked]))) == LOST


def test_ranges_that_touch_or_reach_beyond_what_was_sent_end_before_their_last_number(tmp_path: Path) -> None:
    """Each case shows it alone; packet 30 was lost for good, and such an ACK seems to have it."""
    declared = events(by_header, (*LOST, 20))
    both_ends, touching = ([0, 4], [7, 30], [32, 39]), ([0, 5], [7, 30], [31, 39])
    beyond = ([0, 5], [7, 30], [33, 40])
    for ranges, right in ((both_ends, (5, 6)), (touching, LOST), (beyond, LOST)):
        recording = of_text(tmp_path, document([*declared, qlogs.acknowledged(*ranges)]))
        assert lost_numbers(recording) == right, ranges


def two_traces(*vantages: str) -> dict[str, Any]:
    """A sender of 40 packets with three losses, and one of 20 that lost its first two."""
    one = document(events(by_header), vantages[0])
    other = document([event for event in events(by_header, (0, 1)) if event["time"] < 20], vantages[1])
    return {**one, "traces": one["traces"] + other["traces"]}


def test_two_vantage_points_are_two_recordings(tmp_path: Path) -> None:
    both = two_traces("server", "client")
    with pytest.raises(BadInput) as refusal:
        of_text(tmp_path, both)
    assert str(refusal.value).endswith(
        "has 2 recordings; choose one by --trace NUMBER"
        " (1: server, 40 packets sent; 2: client, 20 packets sent)"
    )
    assert lost_numbers(of_text(tmp_path, both, 1)) == LOST
    assert lost_numbers(of_text(tmp_path, both, 2)) == (0, 1)
    with pytest.raises(BadInput, match="has 2 recordings: there is none with number 3"):
        of_text(tmp_path, both, 3)


def test_connections_in_one_sequence_are_recordings_of_their_own(tmp_path: Path) -> None:
    grouped = [{**event, "group_id": group} for group in ("0a", "0b") for event in events(by_header)]
    with pytest.raises(BadInput, match="has 2 recordings; choose one by --trace"):
        of_text(tmp_path, sequence(grouped))
    assert lost_numbers(of_text(tmp_path, sequence(grouped), 2)) == LOST


def test_a_trace_that_the_peer_only_received_is_no_second_recording(tmp_path: Path) -> None:
    received = [{"time": 1, "name": "transport:packet_received", "data": by_header(3)}]
    both = {"traces": document(events(by_header))["traces"] + document(received, "client")["traces"]}
    assert lost_numbers(of_text(tmp_path, both)) == LOST


def loss(data: Any, name: str = "recovery:packet_lost") -> dict[str, Any]:
    return document([*events(by_header, ()), {"time": 5, "name": name, "data": data}])


def of_paths() -> dict[str, Any]:
    return document(events(by_header, sent=lambda number: {"header": header(number, path_id=number % 2)}))


ARRAYS = document(qlogs.arrays(events(by_header)))
NO_SENT = document([event for event in events(by_header) if event["name"].endswith("lost")])
SUMS = loss({"largest_lost_packet_num": 9, "lost_packets": 4})
BROKEN = sequence(events(by_header)).replace('"time": 3,', '"time": ,')
REFUSED = {
    "a loss without a number": (loss({"type": "1RTT"}), "event 43: packet_lost: {.*}: must have a"),
    "a loss that is no object": (loss([7]), r"event 43: packet_lost: its data is \[7\]"),
    "a loss without anything": (loss({}), "event 43: packet_lost: {}: must have a packet number"),
    "a loss with a wrong number": (loss({"header": header("seven")}), "must have a packet number"),
    "a negative number": (loss({"header": header(-7)}), "must have a packet number"),
    "sums without ACKs": (SUMS, "4 packets were lost, and neither events nor received ACKs say which"),
    "a loss of any number space": (loss({"packet_number": 1}), "and it does not say of which"),
    "a loss of what was not sent": (loss(by_header(77)), "packet 77 was lost, and no event says"),
    "no packet that was sent": (NO_SENT, "has events of loss and none of packet_sent"),
    "arrays without names": (ARRAYS, "its events are arrays, and it has no event_fields"),
    "several paths": (of_paths(), "has packets of 2 paths, which lose each its own"),
    "the same numbers twice": (document(2 * events(by_header)), "has the same packet numbers twice"),
    "a broken record": (BROKEN, "record 7: Expecting"),
    "a spurious loss without number": (loss({}, "recovery:spurious_loss"), "has no packet number"),
    "a packet without number": (loss({"packet_type": "1RTT"}, "packet_sent"), "has no packet number"),
    "no constants": ('{"constants": {}, "events": []}', "is no NetLog"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_log_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path, what: str) -> None:
    text, why = REFUSED[what]
    with pytest.raises(BadInput, match=why) as refusal:
        of_text(tmp_path, text)
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).startswith(str(tmp_path))


def test_sessions_of_a_browser_are_recordings_of_their_own(tmp_path: Path) -> None:
    text = qlogs.chromium()
    lines = text.splitlines()
    others = lines[2:]
    others[-1] = others[-1].removesuffix("]}") + ","
    others = [line.replace('"id": 31', '"id": 32') for line in others]
    both = "\n".join([*lines[:2], *others, *lines[2:]])
    with pytest.raises(BadInput, match="1: session 31 of Chromium, 40 packets sent; 2: session 32"):
        of_text(tmp_path, both)
    assert drop_list(of_text(tmp_path, both, 2).lost) == "5-6,30"
