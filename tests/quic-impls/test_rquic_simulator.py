"""rquic's simulator, the built program: what happens beside it and what it leaves behind change no answer."""

import csv
import json
import math
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.dropper.model import GilbertElliott, Uniform
from fecbench.runners.implementations.finding import ours
from fecbench.runners.implementations.implementation import load
from fecbench.runners.refusal import Refusal
from tests.support.simulations import OVERHEAD_BYTES, Simulator, Task, Tasks, download, exits, metrics, upload

IMPLEMENTATION = ours().find("rquic", "tests")
PAGE = json.loads((REPOSITORY / "designs/catalog/pages/photo-site.json").read_text())["objects"]


@pytest.fixture(scope="module")
def simulator(endpoints_of: Callable[[str], object]) -> Iterator[Simulator]:
    endpoints_of("rquic")  # it is built
    with Simulator("rquic") as simulator:
        yield simulator


@pytest.fixture
def tasks(identity: dict[str, str], tmp_path: Path) -> Tasks:
    for folder in ("client", "server"):
        (tmp_path / folder).mkdir()
    return Tasks("rquic", identity, tmp_path)


def page(connections: str = "one", objects: list[dict[str, Any]] = PAGE) -> dict[str, Any]:
    return {"name": "page", "connections": connections, "graph": {"objects": objects}}


def many_kinds(tasks: Tasks) -> list[Task]:
    """Pages above all: in them, many goroutines can run at a time."""
    burst = GilbertElliott(0.02, 0.4, 0.999, 0.2)
    return [
        tasks(page(), http="h3", mbps=20, owd_ms=12.5),
        tasks(page("per_origin"), up=Uniform(0.05), down=Uniform(0.05), rate="paper", timeout_s=300.0),
        tasks(download(500_000), down=burst, scheme="rlc", redundancies=2),
        tasks(upload(100_000), http="h3", up=Uniform(0.03), scheme="none"),
    ]


def test_a_download_takes_what_the_link_needs(simulator: Simulator, tasks: Tasks) -> None:
    # Less than the first window.
    answer = simulator.answer(tasks(download(30_000), owd_ms=50, scheme="none"))
    bits = 8 * (30_000 + 24 * OVERHEAD_BYTES)
    assert 0.2 + bits / 10e6 < metrics(answer)["dct_s"] < 0.21 + 1.1 * bits / 10e6
    down = answer["links"]["internet"]["down"]
    assert metrics(answer)["bytes_received"] + OVERHEAD_BYTES * down["packets"] == down["bytes_out"]


def test_programs_that_take_the_cpu_change_nothing(simulator: Simulator, tasks: Tasks) -> None:
    batch = many_kinds(tasks)
    first = [simulator.line(task) for task in batch]
    with ExitStack() as busy:
        for _ in range(6):
            loop = busy.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            busy.callback(loop.kill)
        assert [simulator.line(task) for task in batch] == first


def test_a_processor_that_has_no_special_instructions_changes_nothing(
    simulator: Simulator, tasks: Tasks
) -> None:
    """Neither for cryptography nor for vectors; no product is fused with a sum."""
    batch = many_kinds(tasks)
    with Simulator("rquic", GODEBUG="cpu.all=off") as plain:
        assert [plain.line(task) for task in batch] == [simulator.line(task) for task in batch]


def test_a_page_of_more_objects_than_a_queue_of_the_scheduler_holds_has_one_answer(tasks: Tasks) -> None:
    objects = [
        {"name": f"{i}", "origin": f"o{i % 5}", "size_bytes": 500 + i, "parents": [], "processing_ms": 0}
        for i in range(600)
    ]
    task = tasks(page("per_origin", objects), up=Uniform(0.02), down=Uniform(0.02), timeout_s=300.0)
    answers = set()
    for before in range(4):
        with Simulator("rquic") as simulator:
            for _ in range(before):  # so many goroutines have run before
                simulator.line(tasks(download(1000)))
            answers.add(simulator.line(task))
    (answer,) = answers
    assert metrics(json.loads(answer))["objects"] == 600


# quic-go acknowledges after 25 ms at the latest, and packets are held for 25 ms.
def test_timers_of_one_instant_have_one_order(simulator: Simulator, tasks: Tasks) -> None:
    lossy = {"up": Uniform(0.05), "down": Uniform(0.05)}
    task = tasks(download(300_000), owd_ms=50, **lossy, bto_ms=25, code_rate=0.98)
    assert len({simulator.line(task) for _ in range(10)}) == 1


def test_a_page_has_the_metrics_of_one(simulator: Simulator, tasks: Tasks) -> None:
    measured = metrics(simulator.answer(tasks(page("per_origin"))))
    assert measured["objects"] == len(PAGE)
    assert measured["connections"] == len({item["origin"] for item in PAGE})
    assert 0 < measured["handshake_s"] < measured["first_object_s"] < measured["dct_s"]


def test_a_line_that_is_no_task_is_answered_and_the_next_carried_out(
    simulator: Simulator, tasks: Tasks
) -> None:
    assert "not a task" in simulator.error(b'{"colour": 1}\n')
    task = tasks()
    assert simulator.error({**task, "version": 1}) == "version: 1; this program knows version 2"
    assert simulator.answer(task)["number"] == task["number"]


def test_what_is_left_behind_is_of_virtual_time_and_changes_nothing(
    simulator: Simulator, tasks: Tasks, tmp_path: Path
) -> None:
    batch = tasks(page(), http="h3", down=Uniform(0.02))
    other_tasks = tasks(page(), http="h3", down=Uniform(0.02), series=["cwnd", "code_rate"], capture=True)
    first, second = simulator.answer(batch), simulator.answer(other_tasks)
    assert second == {**first, "number": other_tasks["number"]}
    for role, endpoint in second["endpoints"].items():
        assert {path.suffix for path in (tmp_path / role).iterdir()} == {".csv", ".log", ".sqlog"}
        (qlog,) = (tmp_path / role).glob("*.sqlog")
        header, *events = [json.loads(text) for text in qlog.read_text().split("\x1e") if text]
        times = [event["time"] for event in events]
        assert times == sorted(times) and times[0] >= 0 and times[-1] <= 1e3 * second["virtual_s"] + 1e-6
        sent = sum(event["name"] == "transport:packet_sent" for event in events)
        assert abs(sent - endpoint["metrics"]["packets_sent"]) <= 2  # the packets that close the connection
        begins = header["trace"]["common_fields"]["reference_time"]["wall_clock_time"]
        assert begins.startswith("2000-01-01T00:00:00")
        assert "CLIENT_TRAFFIC_SECRET_0" in (tmp_path / role / "keys.log").read_text()
        with (tmp_path / role / "cwnd.series.csv").open(newline="") as file:
            rows = [[float(value) for value in row] for row in list(csv.reader(file))[1:]]
        assert rows and all(math.isfinite(value) for row in rows for value in row)
    up, down = (second["links"]["internet"][direction] for direction in ("up", "down"))
    for end, sent, arrived in (("client", up, down), ("server", down, up)):
        packets = sent["frames_in"] + arrived["frames_out"] - arrived["dropped"]
        assert packets_of(tmp_path / f"{end}.pcapng") == packets


def quic_packets_sent(folder: Path) -> list[tuple[str, int, list[str]]]:
    """Type, size and types of frames of each QUIC packet that an end sent, in their order."""
    (qlog,) = folder.glob("*.sqlog")
    events = [json.loads(text) for text in qlog.read_text().split("\x1e") if text][1:]
    sent = [event["data"] for event in events if event["name"] == "transport:packet_sent"]
    qlog.unlink()
    return [
        (
            packet["header"]["packet_type"],
            packet["raw"]["length"],
            [frame["frame_type"] for frame in packet["frames"]],
        )
        for packet in sent
    ]


def test_without_losses_all_arms_send_the_same_quic_packets(
    simulator: Simulator, tasks: Tasks, tmp_path: Path
) -> None:
    """Coded packets travel besides QUIC's packets. QUIC's packets are as many, in the same order, of the same
    sizes and with the same frames, including those of the handshake and those with ACKs. In longer transfers,
    the times of headers on the link move an ACK now and then."""
    for transfer, size in product((download, upload), (1000, 10_000, 40_000)):
        sent = {}
        for scheme in ("plain", "none", "hold", "xor", "rlc"):
            # All is one generation, so that what is coded follows the content.
            answer = simulator.answer(
                tasks(transfer(size), owd_ms=50, capture=True, scheme=scheme, code_rate=0.985)
            )
            repair = sum(end["metrics"]["repair_sent"] for end in answer["endpoints"].values())
            assert (repair > 0) == (scheme in ("xor", "rlc"))
            sent[scheme] = [quic_packets_sent(tmp_path / role) for role in ("client", "server")]
        for scheme in sent:
            assert sent[scheme] == sent["plain"], (scheme, transfer(size))


def packets_of(capture: Path) -> int:
    """Return the number of packets in a pcapng file."""
    content, packets, at = capture.read_bytes(), 0, 0
    while at < len(content):
        kind, size = struct.unpack_from("=II", content, at)
        packets += kind == 6
        at += size
    return packets


def test_a_long_download_fits_into_memory(tasks: Tasks) -> None:
    lossy = {"up": Uniform(0.01), "down": Uniform(0.01)}
    with Simulator("rquic") as simulator:
        answer = simulator.answer(tasks(download(20 << 20), mbps=100, **lossy, timeout_s=300.0))
        assert exits(answer)["client"] == 0
        assert simulator.memory_kb() < 512 << 10


def test_a_simulator_that_an_earlier_build_left_is_refused(
    endpoints_of: Callable[[str], object], tmp_path: Path
) -> None:
    """The test changes the program's report of its sources, as a change of the sources would."""
    endpoints_of("rquic")  # it is built
    IMPLEMENTATION.check_built("virtual")
    folder = tmp_path / "rquic"
    (folder / "build").mkdir(parents=True)
    for name in ("impl.toml", "build/rquic", "build/rquic-simulator"):
        shutil.copy(IMPLEMENTATION.folder / name, folder / name)
    load(folder).check_built("virtual")
    program = folder / "build" / "rquic-simulator"
    sources = subprocess.run([program, "--sources"], capture_output=True, check=True).stdout.strip()
    program.write_bytes(program.read_bytes().replace(sources, b"0" * len(sources)))
    with pytest.raises(Refusal, match=f"rquic from {sources.decode()}, .*rquic-simulator from 0000"):
        load(folder).check_built("virtual")
