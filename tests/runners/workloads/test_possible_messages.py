"""The judge of messages: an endpoint may write anything, and what cannot be is `failed`, in one line."""

import dataclasses
import random
from collections.abc import Callable
from itertools import product

import pytest

from fecbench.runners.tasks import series
from fecbench.runners.trial.judge import Judgement, judge
from fecbench.runners.workloads import timed
from tests.runners.workloads.radio import (
    ARRIVED_HEADER,
    BEGAN_S,
    HEADER_BYTES,
    SENT_HEADER,
    Radio,
    Row,
    in_stream_order,
    lossless,
)

SMALL = {"timetable": [[0, 2500], [33_333, 2500], [66_667, 1]]}


def small(**changes: object) -> Radio:
    return lossless(**{**SMALL, **changes})  # type: ignore[arg-type]


def reason_of(radio: Radio, **files: str | bytes) -> str:
    """Return the reason for which the trial failed, a short line."""
    judgement = judge(radio.task(), radio.outcome(**files))
    assert judgement.state == "failed", judgement
    assert "\n" not in judgement.reason
    assert 0 < len(judgement.reason) < 500
    assert judgement.metrics == {}
    return judgement.reason


def test_what_is_possible_is_ok_and_measured() -> None:
    for direction, delivery in product(("down", "up"), ("datagram", "deadline", "stream", "reliable")):
        radio = lossless(direction=direction, delivery=delivery)
        judgement = judge(radio.task(), radio.outcome())
        assert (judgement.state, judgement.reason) == ("ok", "")
        assert judgement.metrics["messages"]["on_time_ratio_100ms"] == 1
        assert judgement.series == {}, "nobody asked for it"


def test_what_was_sent_is_the_udp_payload_of_all_links() -> None:
    radio = lossless()
    outcome = radio.outcome()
    links = dict.fromkeys(("path1", "path2"), outcome.links["internet"])
    payload = sum(HEADER_BYTES + row.bytes for row in radio.rows)
    sent = timed.sent_bytes(radio.task(), outcome.model_copy(update={"links": links}))
    assert sent == 2 * payload


def test_the_series_is_kept_when_the_design_wants_it() -> None:
    radio = small(series=["messages"])
    judgement = judge(radio.task(), radio.outcome())
    assert judgement.series.keys() == {("client", "messages")}
    assert judgement.series["client", "messages"].num_rows == 3


HEADER = ARRIVED_HEADER.encode()
ROWS = {
    "text": b"0,0,first,0,81234.6,1000",
    "not finite": b"0,0,0,0,nan,1000",
    "infinite": b"0,0,0,0,inf,1000",
    "empty fields": b"0,0,,0,81234.6,1000",
    "half a message": b"0,0,0.5,0,81234.6,1000",
    "a negative message": b"0,0,-1,0,81234.6,1000",
    "an unknown message": b"0,0,3,0,81234.6,1000",
    "a huge message": b"0,0,1e300,0,81234.6,1000",
    "an unknown part": b"0,0,0,3,81234.6,1000",
    "a part of another message": b"0,0,2,1,81234.6,1000",
    "a large part": b"0,0,0,0,81234.6,1001",
    "a last part that is too large": b"0,0,0,2,81234.6,1000",
    "time before all": b"0,0,0,0,-1e308,1000",
}
HOSTILE_FILES = {
    "nothing": b"",
    "no columns": b"t_s\n",
    "other columns": b"t_s,connection,message,part,bytes\n0,0,0,0,1000\n",
    "binary": random.Random(1).randbytes(5000),
    "a part twice": HEADER + 2 * b"\n0,0,0,0,81234.6,1000",
    "a million rows": HEADER + 1_000_000 * b"\n0,0,0,0,0,0",
    "a line break in a name": b"t_s,conn\x0bection,message,part,arrived_s,bytes\n",
    **{kind: HEADER + b"\n" + row + b"\n" for kind, row in ROWS.items()},
}


def test_a_hostile_file_of_the_receiver_or_the_sender_fails_the_trial_in_one_line() -> None:
    for arrived in HOSTILE_FILES.values():
        assert reason_of(small(), arrived=arrived).startswith("client: ")
        sent = arrived.replace(b"arrived_s", b"due_s,sent_s").replace(b"81234.6", b"81234.5,81234.6")
        assert reason_of(small(), sent=sent).startswith("server: ")


def test_what_cannot_be_is_named_with_its_value_and_what_would_be_right() -> None:
    for kind, message in {
        "an unknown message": "row 1: message = 3: must be a whole number from 0 to 2",
        "a large part": "row 1: bytes = 1001: must be a whole number from 0 to 1000",
        "a last part that is too large": "message 0, part 2: bytes = 1000: must be 500",
        "a part twice": "message 0, part 0: is noted twice",
    }.items():
        assert reason_of(small(), arrived=HOSTILE_FILES[kind]) == f"client: series messages: {message}"
    assert "has more than 7 rows" in reason_of(small(), arrived=HOSTILE_FILES["a million rows"])


def test_a_series_that_is_too_long_is_not_taken(tmp_path: object) -> None:
    folder = tmp_path
    (folder / "messages.series.csv").write_text("x" * 101)  # type: ignore[operator]
    with pytest.raises(series.SeriesError, match="more than 100 bytes"):
        series.collect(folder, {"messages": 100})


def row_of(radio: Radio, message: int, part: int) -> Row:
    return next(row for row in radio.rows if (row.message, row.part) == (message, part))


def sooner_than_the_link(radio: Radio) -> None:
    row_of(radio, 1, 2).arrived_s = row_of(radio, 1, 2).sent_s + 0.0195


def before_it_was_sent(radio: Radio) -> None:
    row_of(radio, 1, 2).sent_s += 0.03


def before_it_was_due(radio: Radio) -> None:
    row_of(radio, 1, 0).sent_s -= 0.001


def by_another_timetable(radio: Radio) -> None:
    row_of(radio, 1, 0).due_s -= 0.001


def in_another_order(radio: Radio) -> None:
    radio.rows[0], radio.rows[1] = radio.rows[1], radio.rows[0]


def with_a_clock_that_goes_back(radio: Radio) -> None:
    row_of(radio, 0, 1).sent_s += 0.001


def leaving_one_out(radio: Radio) -> None:
    radio.rows.remove(row_of(radio, 2, 0))


def without_a_loss(radio: Radio) -> None:
    row_of(radio, 1, 1).lost = True


LIES: dict[Callable[[Radio], None], str] = {
    sooner_than_the_link: "client: message 1, part 2 arrived 19.500 ms after it was sent: the links carry",
    before_it_was_sent: "client: message 1, part 2 arrived -7.",
    before_it_was_due: "server: message 1, part 0 was sent 1.000 ms before it was due",
    by_another_timetable: "server: series messages: message 1, part 0: due_s = 81234.532333000",
    in_another_order: "server: message 0, part 0 was sent after a later one",
    with_a_clock_that_goes_back: "server: message 0, part 2 was sent before the part",
    leaving_one_out: "server: 6 parts were sent of 7: none may be left out",
    without_a_loss: "client: 1 parts never came, but 0 packets were lost on their way",
}


def test_what_is_impossible_of_datagrams_fails_the_trial() -> None:
    for lie, message in LIES.items():
        radio = small()
        lie(radio)
        assert reason_of(radio).startswith(message)


def test_what_arrives_must_have_been_sent() -> None:
    radio = small(delivery="deadline")
    sent = radio.sent_file()
    without_the_last = "".join(sent.splitlines(keepends=True)[:-1])
    assert reason_of(radio, sent=without_the_last) == "client: message 2, part 0 arrived, but was not sent"


def test_over_streams_without_a_deadline_all_arrives() -> None:
    for delivery in ("stream", "reliable"):
        radio = small(delivery=delivery)
        row_of(radio, 1, 2).lost = True
        message = reason_of(radio)
        assert message == f"client: 6 parts arrived of 7: with delivery {delivery} all of them must"


def test_a_stream_becomes_whole_in_its_order() -> None:
    for delivery in ("deadline", "stream", "reliable"):
        radio = small(delivery=delivery)
        row_of(radio, 1, 1).arrived_s += 0.1
        assert "became whole after a later one of its stream" in reason_of(radio)


def test_streams_of_messages_may_overtake_each_other_and_one_stream_may_not() -> None:
    for delivery, right in (("stream", True), ("deadline", True), ("reliable", False)):
        radio = small(delivery=delivery)
        for part in range(3):
            row_of(radio, 1, part).arrived_s += 0.1
        assert (judge(radio.task(), radio.outcome()).state == "ok") is right


def test_with_a_deadline_nothing_is_sent_after_it() -> None:
    radio = small(delivery="deadline", deadline_ms=10)
    row_of(radio, 2, 0).sent_s += 0.02
    row_of(radio, 2, 0).arrived_s += 0.02
    assert reason_of(radio) == "server: message 2, part 0 was sent after its deadline"


def test_with_a_deadline_parts_may_be_missing() -> None:
    radio = small(delivery="deadline")
    row_of(radio, 1, 2).lost = True
    judgement = judge(radio.task(), radio.outcome())
    assert (judgement.state, judgement.metrics["messages"]["messages_lost"]) == ("ok", 1)


def saying(radio: Radio, end: str, **metrics: float) -> Judgement:
    """Return the judge's reason if an endpoint reports these metrics, too."""
    outcome = radio.outcome()
    reported = outcome.endpoints[end].metrics
    assert reported is not None
    reported.update(metrics)
    return judge(radio.task(), outcome)


def test_a_datagram_that_an_endpoint_says_it_discarded_need_not_have_been_lost() -> None:
    radio = small()
    without_a_loss(radio)
    for end, metric in (
        ("client", "datagrams_overflowed"),
        ("server", "datagrams_dropped"),
        ("server", "datagrams_unsent"),
    ):
        assert [saying(radio, end, **{metric: count}).state for count in (0, 1)] == ["failed", "ok"]


def test_a_datagram_that_came_while_the_link_was_out_is_lost_on_its_way() -> None:
    radio = small()
    without_a_loss(radio)
    outcome = radio.outcome()
    task = radio.task()
    link = task.links["internet"]
    down = dataclasses.replace(link.settings.down, outage_s=(0.05, 0.07))
    settings = dataclasses.replace(link.settings, down=down)
    task = task.model_copy(update={"links": {"internet": link.model_copy(update={"settings": settings})}})
    # The lost packet never came to the dropper.
    report, dropper = outcome.links["internet"].directions["down"], outcome.droppers["internet"]["down"]
    carried = {"frames_out": report.frames_out - 1, "outage_dropped": 1}
    outcome.links["internet"].directions["down"] = report.model_copy(update=carried)
    dropper.packets -= 1
    dropper.counters = dataclasses.replace(dropper.counters, seen=dropper.packets)
    judgement = judge(task, outcome)
    assert (judgement.state, judgement.reason) == ("ok", "")
    assert judgement.metrics["messages"]["messages_lost"] == 1


def test_what_was_never_sent_cannot_have_come() -> None:
    radio = small()
    without_a_loss(radio)
    for unsent in (-1, 2):
        judgement = saying(radio, "server", datagrams_unsent=unsent)
        message = f"client: 1 parts never came, but datagrams_unsent = {unsent} of the server"
        assert (judgement.state, judgement.reason) == ("failed", message)


def test_a_receiver_that_reports_a_stream_later_is_measured_as_late() -> None:
    radio = Radio(delivery="reliable")
    in_stream_order(radio, 0.5)
    judgement = judge(radio.task(), radio.outcome())
    assert judgement.state == "ok", judgement.reason
    assert judgement.metrics["messages"]["messages_late"] > 0


def test_a_transfer_is_not_over_before_its_last_message_is_due() -> None:
    radio = small(timetable=[[0, 1000], [5_000_000, 1000]])
    judgement = saying(radio, "client", dct_s=4.9)
    assert judgement.state == "failed"
    assert "the links carry what was asked for in 5.04 s at the soonest" in judgement.reason


def test_the_clock_of_the_files_is_that_of_both_ends() -> None:
    header, row = SENT_HEADER, f"0,0,0,0,{BEGAN_S:.9f},{BEGAN_S:.9f},1000"
    radio = small(timetable=[[0, 1000]])
    other_clock = f"{ARRIVED_HEADER}\n0,0,0,0,12.5,1000\n"
    assert "ms after it was sent" in reason_of(radio, sent=f"{header}\n{row}\n", arrived=other_clock)
