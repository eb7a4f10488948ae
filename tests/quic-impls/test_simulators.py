"""Laws of every simulator: one line has one answer, byte for byte, and its losses are the oracle's."""

import base64
import json
import random
import re
from ipaddress import ip_address
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fecbench.checkout import REPOSITORY
from fecbench.dropper import recordings
from fecbench.dropper.draws import pack
from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import GilbertElliott, Pattern, Uniform, verdicts
from fecbench.runners.implementations.finding import ours
from fecbench.runners.trial import certificates
from tests.support.simulations import (
    OVERHEAD_BYTES,
    QUEUE,
    SEEDS,
    Simulator,
    Task,
    Tasks,
    check_conserved,
    download,
    exits,
    metrics,
    upload,
    with_changes,
)

PAGE = json.loads((REPOSITORY / "designs/catalog/pages/photo-site.json").read_text())["objects"]
CONTROLS = ours().find("noq-fec", "tests").declaration.options["congestion_control"].choices or []


@pytest.fixture(params=["noq-fec", "rquic"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# ---- The same line, the same answer ----


def of_noq_fec(tasks: Tasks) -> list[Task]:
    """Return tasks that differ at once when a byte of the handshake does, or a skipped packet number.

    In 16 s, BBRv3 probes for bandwidth five times or more, after waits of a random length.
    """
    lossy = {"up": Uniform(0.05), "down": Uniform(0.05)}
    return [
        tasks(download(500_000), up=Uniform(0.02), down=Uniform(0.02)),
        tasks(download(200_000), down=GilbertElliott(0.05, 0.3), scheme="vandermonde"),
        *(tasks(download(2_000_000), mbps=1, congestion_control=control) for control in CONTROLS),
        *(
            tasks(workload, **lossy, http="h3", scheme="rlc", controller="tail")
            for workload in (download(60_000), upload(60_000))
        ),
    ]


def of_rquic(tasks: Tasks) -> list[Task]:
    """Transfers of all kinds, pages above all: in them, many goroutines can run at a time."""

    def page(connections: str) -> dict[str, Any]:
        return {"name": "page", "connections": connections, "graph": {"objects": PAGE}}

    burst, late = GilbertElliott(0.02, 0.4, 0.999, 0.2), {"timeout_s": 300.0}
    return [
        tasks(page("one"), http="h3", mbps=20, owd_ms=12.5),
        tasks(page("one"), http="h3", down=Uniform(0.02), scheme="none", mbps=1.5, owd_ms=200, **late),
        tasks(page("per_origin"), up=Uniform(0.05), down=Uniform(0.05), rate="paper", **late),
        tasks(page("per_origin"), http="h3", down=burst, scheme="plain", **late),
        tasks(download(1_000_000), down=Uniform(0.02)),
        tasks(download(500_000), down=burst, scheme="rlc", redundancies=2),
        tasks(upload(300_000), up=Uniform(0.03), down=Uniform(0.03), rate="code2021"),
        tasks(upload(100_000), http="h3", up=Uniform(0.03), scheme="none"),
    ]


def test_a_line_has_one_answer_in_each_process_after_any_tasks_and_with_any_keys(
    simulator: Simulator, tasks: Tasks, tmp_path: Path
) -> None:
    kinds = {"noq-fec": of_noq_fec, "rquic": of_rquic}[tasks.name]
    batch = kinds(tasks)
    first = [simulator.line(task) for task in batch]
    assert [exits(json.loads(answer)) for answer in first] == [{"client": 0, "server": 0}] * len(batch)
    certificates.write(tmp_path, "server.fecbench")
    files = {"certificate": "server.pem", "private_key": "server.key", "authority": "authority.pem"}
    others = {**tasks.identity, **{key: str(tmp_path / file) for key, file in files.items()}}
    with_other_keys = kinds(Tasks(tasks.name, others, tmp_path))
    order = list(range(len(batch)))
    random.Random(1).shuffle(order)
    assert [simulator.line(batch[i]) for i in order] == [first[i] for i in order]
    with Simulator(tasks.name) as another:
        assert [another.line(with_other_keys[i]) for i in order] == [first[i] for i in order]


def test_the_seed_decides_what_is_random_and_has_to_be_there(simulator: Simulator, tasks: Tasks) -> None:
    batch = tasks(download(1_000_000), up=Uniform(0.02), down=Uniform(0.02))
    answers = [json.loads(simulator.line({**batch, "seed": seed})) for seed in (0, 1, 2**64 - 1)]
    assert len({json.dumps(answer["endpoints"]) for answer in answers}) == 3
    del batch["seed"]
    assert "seed" in simulator.error(batch)


# ---- The link ----


LOSSES: list[tuple[LossModel, LossModel]] = [
    (Uniform(0.0), Uniform(0.0)),
    (Uniform(0.05), Uniform(0.1)),
    (GilbertElliott(0.03, 0.4, 0.99, 0.2), GilbertElliott(0.02, 0.5)),
    (Pattern((3, 4)), Pattern((1, 7), 11, repeat=True)),
]


def test_the_packets_that_the_oracle_names_are_lost_and_no_packet_disappears(
    simulator: Simulator, tasks: Tasks
) -> None:
    for up, down in LOSSES:
        for workload in (download(300_000), upload(300_000)):
            answer = simulator.answer(tasks(workload, up=up, down=down))
            assert exits(answer) == {"client": 0, "server": 0}
            check_conserved(answer)
            for way, model, sender in (("up", up, "client"), ("down", down, "server")):
                report = answer["links"]["internet"][way]
                expected = verdicts(model, SEEDS[way], report["packets"])
                assert base64.b64decode(report["bitmap"]) == pack(expected)
                assert report["dropped"] == int(np.sum(expected))
                assert report["packets"] == report["frames_out"] > 20
                overhead = OVERHEAD_BYTES * report["frames_in"]
                assert metrics(answer, sender)["bytes_sent"] + overhead == report["bytes_in"]


def test_over_ipv6_each_frame_is_20_bytes_longer_and_captures_say_so(
    simulator: Simulator, tasks: Tasks, tmp_path: Path
) -> None:
    server, client = "fd00:fec:a00:2::2", "fd00:fec:a00:1::2"
    six = with_changes(
        tasks(download(300_000), down=Uniform(0.02), queue={**QUEUE, "family": "ipv6"}), address=server
    )
    captures = tmp_path / "captures"
    captures.mkdir()
    answer = simulator.answer({**with_changes(six, log_folder=str(captures)), "capture": str(captures)})
    assert exits(answer) == {"client": 0, "server": 0}
    check_conserved(answer)
    own = list(recordings.packets(captures / "client.pcapng"))
    for way, sender, source, destination in (
        ("up", "client", client, server),
        ("down", "server", server, client),
    ):
        report = answer["links"]["internet"][way]
        assert metrics(answer, sender)["bytes_sent"] + 62 * report["frames_in"] == report["bytes_in"]
        ends = [ip_address(address).packed.hex() for address in (source, destination)]
        captured = [
            packet
            for packet in own
            if [end.partition(":")[0] for end in (packet.source, packet.destination)] == ends
        ]
        assert len(captured) == (
            report["frames_in"] if way == "up" else report["frames_out"] - report["dropped"]
        )
    four = simulator.answer(tasks(download(300_000), down=Uniform(0.02)))
    assert metrics(answer)["dct_s"] > metrics(four)["dct_s"]


def test_the_queue_holds_what_it_has_room_for_and_no_more(simulator: Simulator, tasks: Tasks) -> None:
    for limit, name, fullest in (
        ({"queue_packets": 5}, "max_queue_packets", {5}),
        # Less than a full frame was left.
        ({"queue_bytes": 9000}, "max_queue_bytes", range(9001 - 1514, 9001)),
    ):
        answer = simulator.answer(tasks(download(200_000), mbps=1, queue=limit))
        report = answer["links"]["internet"]["down"]
        assert report["queue_dropped"] > 0
        assert report[name] in fullest
        check_conserved(answer)


def test_codel_keeps_a_deep_queue_short(simulator: Simulator, tasks: Tasks) -> None:
    """Slow start fills a queue of 1,000 packets, and CoDel drops of it long before it is full."""
    longest = {}
    for queue in ("droptail", "codel"):
        deep = {"queue_packets": 1000, "queue": queue}
        answer = simulator.answer(tasks(download(3_000_000), mbps=4, queue=deep))
        check_conserved(answer)
        report = answer["links"]["internet"]["down"]
        longest[queue] = report["max_queue_packets"]
        assert (report["queue_dropped"] > 0) == (queue == "codel" or longest[queue] == 1000)
    assert longest["codel"] < {"noq-fec": 0.5, "rquic": 1}[tasks.name] * longest["droptail"]


def test_while_a_link_is_out_it_takes_nothing_and_counts_that(simulator: Simulator, tasks: Tasks) -> None:
    batch = tasks(download(300_000), mbps=5)
    whole = simulator.answer(batch)
    batch["links"]["internet"]["down"] += "outage_ns 100000000 600000000\n"
    answer = simulator.answer(batch)
    check_conserved(answer)
    assert answer["links"]["internet"]["up"]["outage_dropped"] == 0
    assert answer["links"]["internet"]["down"]["outage_dropped"] > 0
    assert answer["client_s"] > max(0.6, whole["client_s"])


def test_a_transfer_that_hangs_ends_at_its_deadline(simulator: Simulator, tasks: Tasks) -> None:
    answer = simulator.answer(tasks(down=Uniform(1.0)))
    assert exits(answer) == {"client": 1, "server": 0}
    assert answer["timed_out"]
    assert answer["client_s"] == answer["virtual_s"] == 60
    line = rf"{tasks.name}: client: .+: not done within the deadline of 60 s\n"
    assert re.fullmatch(line, answer["endpoints"]["client"]["stderr"])
    assert metrics(answer) is None


def test_content_of_any_size_is_transferred_by_each_scheme(simulator: Simulator, tasks: Tasks) -> None:
    schemes, protocols = (
        tasks.implementation.declaration.options[name].choices for name in ("scheme", "http")
    )
    for transfer, size, scheme, http in product((download, upload), (0, 1, 1000), schemes, protocols):
        answer = simulator.answer(tasks(transfer(size), scheme=scheme, http=http))
        assert exits(answer) == {"client": 0, "server": 0}, (transfer(size), scheme, http)
        assert max(metrics(answer, end)["bytes_received"] for end in ("client", "server")) > size


# ---- Endurance ----


@pytest.mark.parametrize(
    ("warm", "count", "most_kb"),
    [
        (300, 500, {"noq-fec": 2000, "rquic": 32_000}),
        # Go itself keeps 200 bytes of each trial for ever: rquic's simulator/overlay.sh mends it.
        pytest.param(10_000, 90_000, {"noq-fec": 2000, "rquic": 8000}, marks=pytest.mark.slow),
    ],
    ids=["some", "a hundred thousand"],
)
def test_many_tasks_take_no_more_memory_than_the_first(
    simulator: Simulator, tasks: Tasks, warm: int, count: int, most_kb: dict[str, int]
) -> None:
    """The first tasks, which include the largest, need as much memory as any later ones."""
    schemes = tasks.implementation.declaration.options["scheme"].choices or []
    kinds = [
        tasks(download(size), down=Uniform(0.02), scheme=scheme)
        for size in (200_000, 1000)
        for scheme in schemes
    ]
    small = tasks(download(1000))
    for kind in kinds:
        simulator.answer(kind)
    for seed in range(warm):
        simulator.line({**small, "seed": seed})
    before = simulator.memory_kb()
    for seed in range(count):
        task = kinds[seed // 50 % len(kinds)] if seed % 50 == 0 else small
        assert b'"error"' not in simulator.line({**task, "seed": seed})
    assert simulator.memory_kb() < before + most_kb[tasks.name]
