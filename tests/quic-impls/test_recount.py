"""Both ends report what the captures of both show: packets, bytes, times and losses are counted anew.

Networks and options are random, over one path and over two, to the end of a transfer and cut short. The
captures are decrypted by the secrets that endpoints leave, and read by the RFCs
(tests/support/quic_packets.py): no line of a stack counts here.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import GilbertElliott, Uniform
from tests.support.live import TWO_TRACKS, live
from tests.support.quic_packets import read, secrets
from tests.support.recount import ENDS, bytes_of, check_losses, recount
from tests.support.simulations import Simulator, Tasks, download, exits, metrics, upload, way, with_changes

TRIALS = 16
RQUIC_SEEDS = {
    52: "quic-go has no room for packets before their keys, to another connection ID than those before",
    334: "packets never come, and are rebuilt when quic-go takes them for ones that it had",
    374: "packets come before their keys, and rQUIC holds them first",
    430: "lost packets are acknowledged when quic-go has forgotten them",
}
TRIALS_OVER_TWO_PATHS = 10
PATHS_WITHOUT_RTT = (271, 491)
"""Packets that come over a path on which no RTT was measured bring what was rebuilt before."""
TRIALS_CUT_SHORT = 8
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
OBJECTS = [
    {"name": "document", "origin": "a", "size_bytes": 38_000, "parents": [], "processing_ms": 20.5},
    {"name": "photo", "origin": "b", "size_bytes": 26_000, "parents": ["document"], "processing_ms": 0},
]
PAGES = [{"name": "page", "connections": "one", "graph": {"objects": OBJECTS}}]
WORKLOADS = {
    "noq-fec": TRANSFERS + MESSAGES,
    "rquic": TRANSFERS + MESSAGES + 4 * PAGES,
    "moq": [live(*TWO_TRACKS)],
}
HTTP = {"noq-fec": ("hq", "h3"), "rquic": ("hq", "h3")}
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
HARD_MODELS = [Uniform(0.05), Uniform(0.1), Uniform(0.2)]
BAD_OPTIONS = [
    *OPTIONS["rquic"],
    {"scheme": "rlc", "overlap": 2, "code_rate": 0.8},
    {"scheme": "rlc", "bto_ms": 0},
    {"scheme": "xor", "code_rate": 0.5},
    {"scheme": "xor", "rate": "campaign2021", "recovery": "2020"},
    {"scheme": "xor", "bto_rtt": 1.0},
    {"scheme": "rlc", "redundancies": 4, "code_rate": 0.6, "bto_ms": 100},
    {"scheme": "none", "recovery": "2020"},
    {"scheme": "hold", "bto_ms": 200},
]
BAD_MODELS = [
    *(Uniform(0.0), Uniform(0.1), Uniform(0.2)),
    *(GilbertElliott(0.02, 0.4), GilbertElliott(0.05, 0.2), GilbertElliott(0.1, 0.3)),
]
BAD_QUEUES = [
    *QUEUES,
    {"queue_packets": 3},
    {"queue_packets": 20, "duplicate": "429496729 7"},
    {"queue_packets": 20, "overtake": "429496729 7 30"},
    {"queue_packets": 100, "jitter": "uniform 50000000 7", "reorder": "true"},
]
BAD_SEEDS = {
    6: "packets come when quic-go takes them for ones that it had",
    24: "packets are held when the connection is closed",
    158: "a packet is rebuilt when QUIC has no keys for it any more",
    418: "a stream is reset of which all was acknowledged, and a copy is on its way",
    596: "copies come to a connection ID that is no more in use",
    797: "packets acknowledge others, and quic-go drops them",
    1063: "packets of the handshake come when 1-RTT packets were acknowledged",
    1274: "data comes in a packet that quic-go drops, and once more",
}
MULTIPATH: list[dict[str, Any]] = [
    {"scheme": "none"},
    {"scheme": "rlc", "controller": "constant"},
    {"scheme": "rlc", "controller": "safe"},
    {"scheme": "rlc", "controller": "constant", "recovered": "notify_at_once", "repair_path": "other"},
    {"scheme": "none", "congestion_control": "olia"},
]
SCHEDULERS = ["lowest-id", "round-robin", "lowest-rtt", "highrb", "redundant", "ecf"]
SERVER = "10.0.100.2"


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
        for number in (*range(TRIALS), *(RQUIC_SEEDS if name == "rquic" else ())):
            tasks = tasks_of(name, identity, tmp_path / str(number))
            task = random_task(
                tasks,
                number,
                OPTIONS[name],
                mbps=(2, 10, 50),
                owd_ms=(5, 20, 100),
                models=MODELS,
                queues=QUEUES,
            )
            answer = simulator.answer(task)
            assert exits(answer) == {"client": 0, "server": 0}
            checked |= check(name, task, answer)
    assert len(checked) >= {"noq-fec": 18, "moq": 13, "rquic": 15, "quinn": 6}[name], checked


def test_both_ends_of_rquic_count_what_comes_over_bad_networks(
    endpoints_of: Callable[[str], Any], identity: dict[str, str], tmp_path: Path
) -> None:
    endpoints_of("rquic")
    with Simulator("rquic") as simulator:
        for number in BAD_SEEDS:
            tasks = tasks_of("rquic", identity, tmp_path / str(number))
            task = random_task(
                tasks,
                number,
                BAD_OPTIONS,
                mbps=(1, 5, 100),
                owd_ms=(1, 20, 150, 300),
                models=BAD_MODELS,
                queues=BAD_QUEUES,
            )
            answer = simulator.answer(task)
            assert exits(answer) == {"client": 0, "server": 0}
            check("rquic", task, answer)


def test_both_ends_count_what_is_sent_over_two_paths(
    endpoints_of: Callable[[str], Any], identity: dict[str, str], tmp_path: Path
) -> None:
    endpoints_of("noq-fec")
    checked: set[str] = set()
    with Simulator("noq-fec") as simulator:
        for number in (*range(TRIALS_OVER_TWO_PATHS), *PATHS_WITHOUT_RTT):
            draw = random.Random(number).choice
            models = draw((MODELS, HARD_MODELS))
            task = tasks_of("noq-fec", identity, tmp_path / str(number))(
                draw(TRANSFERS),
                seed=number,
                capture=True,
                scheduler=draw(SCHEDULERS),
                ack_path=draw(("same", "lowest-rtt", "any")),
                paths=2,
                **MULTIPATH[number % len(MULTIPATH)],
            )
            task = with_changes(task, address=SERVER)
            (ends,) = task["pairs"]
            ends["client"]["local_addresses"] = ["10.0.1.2", "10.0.2.2"]
            ends["server"]["local_addresses"] = [SERVER]
            task["links"] = {
                f"path{path}": {
                    name: way(
                        draw((2, 10, 50)), draw((5, 20, 100)), draw(models), 100 * number + 10 * path + seed
                    )
                    for seed, name in enumerate(("up", "down"))
                }
                for path in (1, 2)
            }
            answer = simulator.answer(task)
            assert exits(answer) == {"client": 0, "server": 0}
            checked |= check("noq-fec", task, answer)
    assert {
        f"path2.{metric}" for metric in ("bytes_sent", "packets_sent", "recovered", "smoothed_rtt_ms")
    } <= checked


@pytest.mark.parametrize("name", ["noq-fec", "rquic"])
def test_a_server_counts_a_transfer_that_is_cut_short(
    name: str, endpoints_of: Callable[[str], Any], identity: dict[str, str], tmp_path: Path
) -> None:
    """Transfers end in the handshake or later: at the end of the trial, or while the link is out."""
    endpoints_of(name)
    with Simulator(name) as simulator:
        for number in range(TRIALS_CUT_SHORT):
            draw = random.Random(number).choice
            end_s = (0.03, 0.1, 0.3, 0.6)[number % 4]
            out = {"outage_ns": f"{int(end_s * 1e9)} {int(100e9)}"} if draw((True, False)) else {}
            task = tasks_of(name, identity, tmp_path / str(number))(
                draw((download(20_000_000), upload(20_000_000))),
                mbps=draw((2, 10)),
                owd_ms=draw((5, 20, 100)),
                up=draw(MODELS),
                down=draw(MODELS),
                queue={**draw(QUEUES), **out},
                timeout_s=1.0 if out else end_s,
                seed=number,
                capture=True,
                **draw(OPTIONS[name]),
            )
            answer = simulator.answer(task)
            assert exits(answer) == {"client": 1, "server": 0}
            check(name, task, answer)


def random_task(
    tasks: Tasks,
    number: int,
    options: Sequence[dict[str, Any]],
    *,
    mbps: Sequence[float],
    owd_ms: Sequence[float],
    models: Sequence[LossModel],
    queues: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Return the task of this number, with captures: its workload and its network are drawn."""
    draw = random.Random(number).choice
    of_task = options[number % len(options)]
    workload = draw(WORKLOADS.get(tasks.name, TRANSFERS))
    if tasks.name in HTTP and workload["name"] != "messages":
        of_task = {**of_task, "http": draw(HTTP[tasks.name])}
    return tasks(
        workload,
        mbps=draw(mbps),
        owd_ms=draw(owd_ms),
        up=draw(models),
        down=draw(models),
        queue=draw(queues),
        seed=number,
        capture=True,
        series=[workload["name"]] if workload["name"] in ("messages", "live") else [],
        **of_task,
    )


def tasks_of(name: str, identity: dict[str, str], logs: Path) -> Tasks:
    for end in ENDS:
        (logs / end).mkdir(parents=True)
    return Tasks(name, identity, logs)


def check(name: str, task: dict[str, Any], answer: dict[str, Any]) -> set[str]:
    """Check the metrics of both ends, where there are some; return the names of those counted anew."""
    logs = Path(task["capture"])
    assignment = task["pairs"][0]["client"]
    keys = secrets(next(logs.rglob("keys.log")))
    wrapped = name == "rquic" and assignment["options"]["scheme"] != "plain"
    captured = {end: list(read(logs / f"{end}.pcapng", keys, wrapped)) for end in ENDS}
    checked: set[str] = set()
    for end in ENDS:
        counted = metrics(answer, end)
        if counted is None:
            continue
        expected = recount(name, end, captured, counted, assignment)
        expected |= bytes_of(logs / f"{end}.pcapng", end, counted)
        assert {metric: counted[metric] for metric in expected} == expected, (task["seed"], end, assignment)
        checked |= expected.keys()
        check_losses(name, end, captured[end], counted)
    return checked
