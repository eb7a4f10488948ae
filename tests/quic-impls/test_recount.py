"""Both ends report what the captures of both show: packets, bytes, times and losses are counted anew.

Networks and options are random. The captures are decrypted by the secrets that endpoints leave, and read by
the RFCs (tests/support/quic_packets.py): no line of a stack counts here.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.dropper.model import GilbertElliott, Uniform
from tests.support.live import TWO_TRACKS, live
from tests.support.quic_packets import read, secrets
from tests.support.recount import ENDS, bytes_of, check_losses, recount
from tests.support.simulations import Simulator, Tasks, download, exits, metrics, upload

TRIALS = 16
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "noq-fec": [
        {"scheme": "none"},
        {"scheme": "none", "congestion_control": "bbr3"},
        {"scheme": "rlc", "controller": "constant"},
        {"scheme": "xor", "n": 6, "k": 5, "controller": "constant", "recovered": "mask"},
        {"scheme": "rlc", "controller": "safe"},
        {"scheme": "rlc", "controller": "deadline"},
        {"scheme": "rlc", "controller": "quirl", "source_symbols": "short"},
        {"scheme": "rlc", "controller": "flec", "recovered": "notify_until_acknowledged"},
    ],
    "rquic": [
        *({"scheme": scheme} for scheme in ("none", "plain", "hold", "xor")),
        {"scheme": "rlc", "redundancies": 2, "code_rate": 0.8},
        {"scheme": "xor", "rate": "paper"},
    ],
    "moq": [{"scheme": "none"}, {"scheme": "rlc", "controller": "deadline"}],
    "quinn": [{}],
}
TRANSFERS = [kind(size) for kind in (download, upload) for size in (1000, 10_000, 50_000, 300_000)]
MESSAGES = [
    {
        "name": "messages",
        "direction": direction,
        "delivery": delivery,
        "part_bytes": 1000,
        "timetable": [[20_000 * number, (160, 3000, 9000)[number % 3]] for number in range(40)],
        **({"deadline_ms": 100.0} if delivery == "deadline" else {}),
    }
    for direction in ("up", "down")
    for delivery in ("datagram", "stream", "deadline")
]
WORKLOADS = {"noq-fec": TRANSFERS + MESSAGES, "rquic": TRANSFERS + MESSAGES, "moq": [live(*TWO_TRACKS)]}
QUEUES = [
    {"queue_packets": 100},
    {"queue_packets": 8},
    {"queue_packets": 1000, "queue": "codel"},
    {"queue_packets": 100, "duplicate": "85899345 7"},
    {"queue_packets": 100, "corrupt": "85899345 7"},
    {"queue_packets": 100, "overtake": "85899345 7 8"},
    {"queue_packets": 100, "jitter": "uniform 5000000 7", "reorder": "true"},
]
MODELS = [Uniform(0.0), Uniform(0.03), GilbertElliott(0.02, 0.4)]


@pytest.mark.parametrize(
    "name",
    ["noq-fec", "rquic", *(pytest.param(name, marks=pytest.mark.on_demand) for name in ("moq", "quinn"))],
)
def test_both_ends_count_what_their_captures_show(
    name: str, endpoints_of: Callable[[str], Any], identity: dict[str, str], tmp_path: Path
) -> None:
    endpoints_of(name)
    checked: set[str] = set()
    with Simulator(name) as simulator:
        for number in range(TRIALS):
            draw, logs = random.Random(number).choice, tmp_path / str(number)
            for end in ENDS:
                (logs / end).mkdir(parents=True)
            options = OPTIONS[name][number % len(OPTIONS[name])]
            workload = draw(WORKLOADS.get(name, TRANSFERS))
            task = Tasks(name, identity, logs)(
                workload,
                mbps=draw((2, 10, 50)),
                owd_ms=draw((5, 20, 100)),
                up=draw(MODELS),
                down=draw(MODELS),
                queue=draw(QUEUES),
                seed=number,
                capture=True,
                series=[workload["name"]] if workload["name"] in ("messages", "live") else [],
                **options,
            )
            answer = simulator.answer(task)
            assert exits(answer) == {"client": 0, "server": 0}
            wrapped = name == "rquic" and options["scheme"] != "plain"
            keys = secrets(next(logs.rglob("keys.log")))
            captured = {end: list(read(logs / f"{end}.pcapng", keys, wrapped)) for end in ENDS}
            for end in ENDS:
                counted = metrics(answer, end)
                expected = recount(name, end, captured, counted, workload in TRANSFERS)
                expected |= bytes_of(logs / f"{end}.pcapng", end)
                assert {metric: counted[metric] for metric in expected} == expected, (number, end, options)
                checked |= expected.keys()
                check_losses(name, end, captured[end], counted)
    assert len(checked) >= {"noq-fec": 16, "moq": 12, "rquic": 9, "quinn": 6}[name], checked
