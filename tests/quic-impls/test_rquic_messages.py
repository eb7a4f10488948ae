"""rquic's messages: what each takes, what arrives, and that one task in virtual time has one answer."""

import itertools
import json
import time
from collections.abc import Callable
from typing import Any, Literal

import pytest

from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import GilbertElliott, Uniform

NAME = "rquic"

Rows = Callable[[Literal["client", "server"], str], list[dict[str, float]]]
DELIVERIES = ["datagram", "deadline", "stream", "reliable"]
SCHEMES = ["none", "hold", "xor", "rlc", "plain"]
PART_BYTES, PARTS = 1000, 8
OVERHEAD_BYTES = 42  # Ethernet, IPv4 and UDP, for each packet
PACKET_BITS = 8 * (1300 + OVERHEAD_BYTES)  # more than any has

Direction = Literal["up", "down"]
WAYS: tuple[Direction, ...] = ("up", "down")
Task = dict[str, Any]
Row = dict[str, float]


def frames(
    delivery: str, direction: Direction = "down", count: int = 30, deadline_ms: float = 200.0
) -> dict[str, Any]:
    """30 messages of 8 kB in a second."""
    return {
        "name": "messages",
        "direction": direction,
        "delivery": delivery,
        "deadline_ms": deadline_ms,
        "part_bytes": PART_BYTES,
        "timetable": [[round(1e6 * number / 30), PARTS * PART_BYTES] for number in range(count)],
    }


def latencies(exchanges: Any, task: Task) -> list[float]:
    """Return the latency of each message, since it was due until its last part was whole."""
    due = {row["message"]: row["due_s"] for row in exchanges.rows(task, "sender")}
    arrived: dict[float, list[float]] = {}
    for row in exchanges.rows(task, "receiver"):
        arrived.setdefault(row["message"], []).append(row["arrived_s"])
    assert all(len(times) == PARTS for times in arrived.values())
    return [max(arrived[message]) - due[message] for message in sorted(due)]


def test_without_losses_a_message_takes_the_links_delay_and_its_own_bits(exchanges: Any) -> None:
    tasks = [
        exchanges.task(frames(delivery, direction), number=number, scheme=scheme)
        for number, (delivery, scheme, direction) in enumerate(itertools.product(DELIVERIES, SCHEMES, WAYS))
    ]
    exchanges.carry_out(*tasks)
    bits = 8 * PARTS * (PART_BYTES + OVERHEAD_BYTES * PART_BYTES / 1252)
    bps = exchanges.mbps * 1e6
    least = exchanges.owd_s + bits / bps
    for task in tasks:
        measured = latencies(exchanges, task)
        assert len(measured) == 30
        # Headers, repair packets among a message's own, and an acknowledgement on the way.
        assert least < min(measured) <= max(measured) < least + 3 * PACKET_BITS / bps, task["pairs"]


MODELS: list[LossModel] = [Uniform(0.05), GilbertElliott(0.02, 0.3, 0.99, 0.2)]


def test_streams_bring_every_byte_and_datagrams_one_copy_of_what_came(exchanges: Any) -> None:
    kinds = list(itertools.product(("stream", "reliable", "datagram"), MODELS, ("none", "xor")))
    tasks = [
        exchanges.task(frames(delivery), model, number=number, scheme=scheme)
        for number, (delivery, model, scheme) in enumerate(kinds)
    ]
    answers = exchanges.carry_out(*tasks)
    for (delivery, _, scheme), task, answer in zip(kinds, tasks, answers, strict=True):
        assert answer["links"]["internet"]["down"]["dropped"] > 0
        parts = [(row["message"], row["part"]) for row in exchanges.rows(task, "receiver")]
        every = set(itertools.product(range(30), range(PARTS)))
        assert len(parts) == len(set(parts)) and set(parts) <= every
        if delivery == "datagram":
            lost = answer["endpoints"]["server"]["metrics"]["packets_lost"]
            assert (scheme == "xor" or lost > 0) and len(every) - len(parts) <= lost
        else:
            assert set(parts) == every


def test_datagrams_of_which_none_is_lost_all_arrive_though_acknowledgements_are(exchanges: Any) -> None:
    task = exchanges.task(frames("datagram", "down"), scheme="none")
    lossy = exchanges.task(frames("datagram", "down"), GilbertElliott(0.05, 0.1, 1.0, 0.0), number=99)
    task["links"]["internet"]["up"] = lossy["links"]["internet"]["up"]
    exchanges.carry_out(task)
    assert len(exchanges.rows(task, "receiver")) == 30 * PARTS


def test_fec_brings_more_datagrams_than_none(exchanges: Any) -> None:
    tasks = [
        exchanges.task(frames("datagram", count=90), Uniform(0.03), number=number, scheme=scheme)
        for number, scheme in enumerate(("none", "xor"))
    ]
    exchanges.carry_out(*tasks)
    none, xor = (len(exchanges.rows(task, "receiver")) for task in tasks)
    assert none < xor < 90 * PARTS


def test_the_same_task_has_the_same_answer_and_the_same_tables(exchanges: Any) -> None:
    tasks = [
        exchanges.task(
            frames(delivery, direction, deadline_ms=60.0), Uniform(0.05), number=number, scheme=scheme
        )
        for number, (delivery, scheme, direction) in enumerate(
            itertools.product(DELIVERIES, ("none", "rlc"), WAYS)
        )
    ]
    first, remaining = exchanges.answers(tasks), exchanges.tables(tasks)
    again = exchanges.answers(tasks[::-1])[::-1]
    assert first == again and remaining == exchanges.tables(tasks)


def test_both_ends_count_what_the_workload_has(exchanges: Any) -> None:
    deadline, datagrams = exchanges.carry_out(
        exchanges.task(frames("deadline", deadline_ms=60.0), Uniform(0.1), number=1, scheme="none"),
        exchanges.task(frames("datagram"), Uniform(0.1), number=2, scheme="none"),
    )
    assert deadline["endpoints"]["server"]["metrics"]["messages_reset"] > 0
    for end in datagrams["endpoints"].values():
        assert (end["metrics"]["datagrams_dropped"], end["metrics"]["datagrams_overflowed"]) == (0, 0)


def test_what_is_not_supported_is_refused_with_127_and_what_cannot_be_with_2(exchanges: Any) -> None:
    refusal: list[tuple[int, dict[str, Any], dict[str, Any]]] = [
        (127, frames("stream"), {"http": "h3"}),
        (127, frames("stream", "up"), {"encoder": "server"}),
        (2, {**frames("datagram"), "part_bytes": 1300}, {}),
        (2, {**frames("stream"), "timetable": []}, {}),
    ]
    for code, workload, options in refusal:
        (answer,) = map(json.loads, exchanges.answers([exchanges.task(workload, **options)]))
        assert answer["endpoints"]["server"]["exit_code"] == code
        assert answer["endpoints"]["server"]["stderr"].count("\n") == 1


def test_over_loopback_both_ends_have_the_systems_clock(
    endpoints: Any, assignment: dict[str, Any], rows_of: Rows
) -> None:
    for delivery in DELIVERIES:
        before = time.clock_gettime(time.CLOCK_MONOTONIC)
        workload = frames(delivery, "up", count=5, deadline_ms=10_000.0)
        endpoints.transfer({**assignment, "workload": workload, "series": ["messages"]})
        after = time.clock_gettime(time.CLOCK_MONOTONIC)
        sent, arrived = rows_of("client", "messages"), rows_of("server", "messages")
        assert len(sent) == len(arrived) == 5 * PARTS
        due = {row["message"]: row["due_s"] for row in sent}
        assert [due[number] - due[0] for number in range(5)] == pytest.approx(
            [number / 30 for number in range(5)], abs=1e-6
        )
        arrivals = {(row["message"], row["part"]): row["arrived_s"] for row in arrived}
        assert all(row["due_s"] <= row["sent_s"] < arrivals[row["message"], row["part"]] for row in sent)
        assert before < min(due.values()) and max(arrivals.values()) < after
