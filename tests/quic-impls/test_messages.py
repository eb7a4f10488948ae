"""Messages in virtual time: what arrives is what the oracle lets pass, and when; by noq-fec and udp."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import GilbertElliott, Pattern, Uniform, verdicts

NAME = "udp"

SCHEMES = {"noq-fec": ("none", "rlc", "rs", "xor", "vandermonde"), "rquic": ("none", "rlc", "xor")}

MODELS = [
    Uniform(0.05),
    GilbertElliott(0.03, 0.3, 0.99, 0.1),
    Pattern((0, 3, 4, 5, 17, 100, 101), length=120, repeat=True),
]
DELIVERIES = ("datagram", "deadline", "stream", "reliable")
COUNT, PARTS, PART_BYTES = 30, 8, 1000
EVERY = set(itertools.product(range(COUNT), range(PARTS)))
LINK_BYTES = 42  # what Ethernet, IPv4 and UDP add to a datagram
PART_HEADER = 7  # what udp adds to a part without protection
BLOCK = {"scheme": "rs", "n": 30, "k": 20, "flush": "never"}


def frames(
    delivery: str = "datagram", direction: str = "down", deadline_ms: float = 100.0, parts: int = PARTS
) -> dict[str, Any]:
    """A second of messages."""
    return {
        "name": "messages",
        "direction": direction,
        "delivery": delivery,
        "deadline_ms": deadline_ms,
        "part_bytes": PART_BYTES,
        "timetable": [[33_333 * number, parts * PART_BYTES] for number in range(COUNT)],
    }


def received(exchanges: Any, task: dict[str, Any]) -> list[tuple[int, int]]:
    """The parts that arrived, in order; none came twice."""
    parts = [(int(row["message"]), int(row["part"])) for row in exchanges.rows(task, "receiver")]
    assert len(set(parts)) == len(parts)
    return parts


def metrics(answer: dict[str, Any], role: str) -> dict[str, float]:
    measured: dict[str, float] = answer["endpoints"][role]["metrics"]
    return measured


# ---- udp and the oracle ----


def test_the_parts_received_are_those_that_the_oracle_lets_pass(exchanges: Any) -> None:
    for number, (model, direction) in enumerate(itertools.product(MODELS, ("down", "up"))):
        task = exchanges.task(frames(direction=direction), number=number)
        task["links"]["internet"][direction] = lossy(exchanges, model, direction)
        exchanges.carry_out(task)
        # The sender's first packet is WELCOME, or HELLO, which is sent again when it is lost.
        lost = verdicts(model, exchanges.seeds[direction], 10 + COUNT * PARTS)
        first = 1 if direction == "down" else list(lost).index(False) + 1
        passed = [part for place, part in enumerate(sorted(EVERY)) if not lost[first + place]]
        assert received(exchanges, task) == passed, (model, direction)


def lossy(exchanges: Any, model: LossModel, direction: str) -> str:
    """The text of a direction of the link with these losses."""
    text: str = exchanges.task(frames(), model, number=99)["links"]["internet"][direction]
    return text


def blocks_losing(places: list[list[int]]) -> Pattern:
    """Behind a first packet, the n-th list has the places of those lost in the n-th block of 30 packets."""
    dropped = [1 + 30 * block + place for block, lost in enumerate(places) for place in lost]
    return Pattern(tuple(dropped), length=1 + 30 * len(places))


@pytest.mark.parametrize("code", ["rs", "xor"])
def test_blocks_that_lose_no_more_than_their_repair_symbols_bring_every_part(
    exchanges: Any, code: str
) -> None:
    if code == "rs":
        options: dict[str, Any] = BLOCK
        lost = [list(range(block, block + 10)) for block in range(12)]
    else:  # blocks of two and their repair symbol: of ten in a row, each loses one
        options = {"scheme": "xor", "n": 3, "k": 2, "flush": "never"}
        lost = [[3 * place + (place + block) % 3 for place in range(10)] for block in range(12)]
    task = exchanges.task(frames(), blocks_losing(lost), **options)
    task["links"]["internet"]["up"] = lossy(exchanges, Uniform(0.0), "up")
    (answer,) = exchanges.carry_out(task)
    assert set(received(exchanges, task)) == EVERY
    repairs = [20, 21, 22, 23, 24, 25, 26, 27, 28, 29] if code == "rs" else range(2, 30, 3)
    sources = sum(place not in repairs for places in lost for place in places)
    counted = metrics(answer, "client")
    assert (counted["packets_recovered"], counted["recovered_spurious"]) == (sources, 0)
    assert metrics(answer, "server")["repair_sent"] == 12 * 10


def test_a_block_that_loses_more_than_its_repair_symbols_brings_what_came_itself(exchanges: Any) -> None:
    lost = [[], list(range(11)), []]
    task = exchanges.task(frames(), blocks_losing(lost), **BLOCK)
    task["links"]["internet"]["up"] = lossy(exchanges, Uniform(0.0), "up")
    exchanges.carry_out(task)
    parts = sorted(EVERY)
    assert received(exchanges, task) == parts[:20] + parts[31:]


def test_without_losses_a_message_takes_the_links_delay_and_its_own_bits(exchanges: Any) -> None:
    for number, direction in enumerate(("down", "up")):
        task = exchanges.task(frames(direction=direction), number=number)
        exchanges.carry_out(task)
        packet_s = 8 * (PART_BYTES + PART_HEADER + LINK_BYTES) / (exchanges.mbps * 1e6)
        for part, lateness_s in latencies(exchanges, task):
            # Only the first message meets something else on the link, which is the WELCOME.
            welcome_s = (
                8 * (1 + LINK_BYTES) / (exchanges.mbps * 1e6) if (direction, part[0]) == ("down", 0) else 0
            )
            own_s = exchanges.owd_s + (1 + part[1]) * packet_s
            assert lateness_s == pytest.approx(own_s + welcome_s, abs=2e-9 * PARTS), (direction, part)


def latencies(exchanges: Any, task: dict[str, Any]) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield each arrived part, and its latency since it was due."""
    due = {row["message"]: row["due_s"] for row in exchanges.rows(task, "sender")}
    for row in exchanges.rows(task, "receiver"):
        yield (int(row["message"]), int(row["part"])), row["arrived_s"] - due[row["message"]]


# ---- noq-fec ----


@pytest.mark.parametrize("name", ["noq-fec"])
def test_without_a_window_each_scheme_brings_messages_without_waiting(exchanges: Any) -> None:
    schemes = [{"scheme": "none"}, {"scheme": "rlc"}, {"scheme": "xor", "interleave": 10}, BLOCK]
    for number, (delivery, options, direction) in enumerate(
        itertools.product(DELIVERIES, schemes, ("down", "up"))
    ):
        task = exchanges.task(
            frames(delivery, direction), number=number, congestion_control="none", **options
        )
        exchanges.carry_out(task)
        assert set(received(exchanges, task)) == EVERY
        packet_s = 8 * (1300 + LINK_BYTES) / (exchanges.mbps * 1e6)
        # Of ten blocks, or one of 20, all repair symbols may come in front of a part.
        most_s = exchanges.owd_s + (PARTS + 12) * packet_s
        late = [(part, late_s) for part, late_s in latencies(exchanges, task) if late_s > most_s]
        assert late == [], (delivery, options, direction)


@pytest.mark.parametrize("name", SCHEMES)
def test_streams_bring_every_byte_whatever_is_lost(exchanges: Any) -> None:
    cases = itertools.product(("stream", "reliable"), ("down", "up"), SCHEMES[exchanges.name])
    tasks = [
        exchanges.task(frames(delivery, direction), Uniform(0.1), number=number, scheme=scheme)
        for number, (delivery, direction, scheme) in enumerate(cases)
    ]
    exchanges.carry_out(*tasks)
    for task in tasks:
        assert set(received(exchanges, task)) == EVERY


@pytest.mark.parametrize("name", ["noq-fec", "rquic"])
def test_datagrams_are_protected_and_none_comes_twice(exchanges: Any) -> None:
    unhindered = {"noq-fec": {"congestion_control": "none"}, "rquic": {}}[exchanges.name]
    tasks = [
        exchanges.task(frames(), Uniform(0.05), number=number, scheme=scheme, **unhindered)
        for number, scheme in enumerate(("none", "rlc"))
    ]
    plain, coded = exchanges.carry_out(*tasks)
    lost = EVERY - set(received(exchanges, tasks[0]))
    assert 0 < len(lost) <= plain["links"]["internet"]["down"]["dropped"]
    assert len(EVERY - set(received(exchanges, tasks[1]))) < len(lost)
    assert metrics(coded, "client")["packets_recovered"] > 0


@pytest.mark.parametrize("name", ["noq-fec"])
def test_nothing_of_a_message_is_sent_after_its_deadline(exchanges: Any, tmp_path: Path) -> None:
    for number, (scheme, direction) in enumerate(itertools.product(("none", "rlc"), ("down", "up"))):
        choice = {"scheme": scheme, "congestion_control": "none"}
        deadline = frames("deadline", direction, deadline_ms=60.0)
        task = exchanges.task(deadline, Uniform(0.15), number=number, **choice)
        captures = tmp_path / f"captures-{number}"
        captures.mkdir()
        task["capture"] = str(captures)
        (answer,) = exchanges.carry_out(task)
        sender = "server" if direction == "down" else "client"
        assert metrics(answer, sender)["messages_reset"] > 0
        begun_s = min(row["due_s"] for row in exchanges.rows(task, "sender"))
        sent = list(stream_frames(Path(task["pairs"][0][sender]["log_folder"])))
        assert {message for message, _ in sent} == set(range(COUNT))
        for message, at_s in sent:
            assert at_s <= begun_s + message * 0.033333 + 0.060 + 1e-6, (scheme, direction, message)


def stream_frames(logs: Path) -> Iterator[tuple[int, float]]:
    """The number of each unidirectional stream of which a qlog file has a frame that was sent, and when."""
    (trace,) = logs.glob("*.sqlog")
    for record in trace.read_text().split("\x1e")[1:]:
        event = json.loads(record)
        if event.get("name") == "quic:packet_sent":
            for frame in event["data"].get("frames", []):
                if frame["frame_type"] == "stream" and frame["stream_id"] & 2:
                    yield frame["stream_id"] >> 2, event["time"] / 1e3


@pytest.mark.parametrize("name", ["noq-fec"])
def test_a_message_whose_turn_comes_too_late_is_reset_unsent(exchanges: Any) -> None:
    task = exchanges.task(frames("deadline", deadline_ms=300.0), scheme="none")
    for way, text in task["links"]["internet"].items():  # a quarter of what there is to send
        task["links"]["internet"][way] = text.replace("rate_bps 20000000\n", "rate_bps 500000\n")
    (answer,) = exchanges.carry_out(task)
    reset = metrics(answer, "server")["messages_reset"]
    whole = {
        message
        for message in range(COUNT)
        if {(message, part) for part in range(PARTS)} <= set(received(exchanges, task))
    }
    assert 0 < reset < COUNT and len(whole) >= COUNT - reset


@pytest.mark.parametrize("name", ["noq-fec"])
def test_the_longest_part_fits_and_a_longer_one_is_refused(exchanges: Any) -> None:
    for scheme, packet_size in itertools.product(("none", "rlc"), (1200, 1452)):
        most = packet_size - 44 - (17 if scheme == "rlc" else 0)
        sizes = {"scheme": scheme, "packet_size": packet_size}
        fits = {**frames(), "part_bytes": min(most, 1400)}
        exchanges.carry_out(exchanges.task(fits, number=packet_size, **sizes))
        if most < 1400:
            longer = {**frames(), "part_bytes": most + 1}
            (line,) = exchanges.answers([exchanges.task(longer, number=packet_size + 1, **sizes)])
            server = json.loads(line)["endpoints"]["server"]
            assert (server["exit_code"], server["stderr"].count("\n")) == (2, 1)
            assert f"at most {most} bytes" in server["stderr"]


# ---- Both ----


@pytest.mark.parametrize("name", ["noq-fec", "udp"])
def test_repair_symbols_follow_each_message_or_all_that_is_due_or_full_blocks(exchanges: Any) -> None:
    # Pairs of messages of one part, due together: blocks of four are never full before the third message.
    pairs = {**frames(), "timetable": [[10_000 * (number // 2), PART_BYTES] for number in range(10)]}
    flushes = ("message", "idle", "never")
    unhindered = {} if exchanges.name == "udp" else {"congestion_control": "none"}
    tasks = [
        exchanges.task(pairs, number=number, scheme="rs", n=5, k=4, flush=flush, **unhindered)
        for number, flush in enumerate(flushes)
    ]
    repairs = [metrics(answer, "server")["repair_sent"] for answer in exchanges.carry_out(*tasks)]
    # noq-fec ends by a stream of its own, which may get one more.
    own = [0] if exchanges.name == "udp" else [0, 1]
    for sent, right in zip(repairs, (10, 5, 2), strict=True):
        assert sent - right in own, repairs


@pytest.mark.parametrize("name", ["noq-fec", "udp"])
def test_a_message_that_fills_its_blocks_gets_no_more_repair_symbols(exchanges: Any) -> None:
    options: dict[str, Any] = {"scheme": "rs", "n": 5, "k": 4, "flush": "message"}
    unhindered = {} if exchanges.name == "udp" else {"congestion_control": "none"}
    (answer,) = exchanges.carry_out(exchanges.task(frames(parts=4), **options, **unhindered))
    assert metrics(answer, "server")["repair_sent"] - COUNT in ([0] if exchanges.name == "udp" else [0, 1])


@pytest.mark.parametrize("name", ["noq-fec", "rquic", "udp"])
def test_the_same_task_has_the_same_answer_and_the_same_tables(exchanges: Any) -> None:
    deliveries = ["datagram"] if exchanges.name == "udp" else ["datagram", "deadline", "stream", "reliable"]
    kinds = itertools.product(deliveries, ("none", "rlc"), ("down", "up"))
    tasks = [
        exchanges.task(frames(delivery, direction), Uniform(0.05), number=number, scheme=scheme)
        for number, (delivery, scheme, direction) in enumerate(kinds)
    ]

    first, remaining = exchanges.answers(tasks), exchanges.tables(tasks)
    again = exchanges.answers(tasks[::-1])[::-1]
    assert first == again and remaining == exchanges.tables(tasks)


def test_what_udp_does_not_have_ends_with_127(exchanges: Any) -> None:
    for delivery in DELIVERIES[1:]:
        (line,) = exchanges.answers([exchanges.task(frames(delivery))])
        server = json.loads(line)["endpoints"]["server"]
        assert (server["exit_code"], server["stderr"].count("\n")) == (127, 1)
        assert f'workload.delivery: "{delivery}" is not supported' in server["stderr"]
