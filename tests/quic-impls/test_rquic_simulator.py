"""rquic's simulator, the built program: the same task has the same answer, byte for byte, whatever happens
beside it, and its losses are the oracle's."""

import base64
import csv
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.dropper.draws import pack
from fecbench.dropper.model import GilbertElliott, Pattern, Uniform, verdicts
from fecbench.dropper.parameters import LossModel
from fecbench.runners.implementations.finding import ours
from fecbench.runners.implementations.implementation import load
from fecbench.runners.refusal import Refusal
from fecbench.runners.trial import certificates
from fecbench.runners.trial.simulation import losses

IMPLEMENTATION = ours().find("rquic", "tests")
SERVER_NAME = "server.fecbench"
PAGE = json.loads((REPOSITORY / "designs/catalog/pages/photo-site.json").read_text())["objects"]
MBPS = 10**6
MS = 10**6
OVERHEAD = 42
FULL = 1500 + 14

Task = dict[str, Any]


class Simulator:
    """A running simulator."""

    def __init__(self, **environment: str) -> None:
        command = IMPLEMENTATION.declaration.simulator
        assert command is not None
        program = IMPLEMENTATION.folder / command[0]
        self.process = subprocess.Popen(
            [program, *command[1:]],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ask(self, task: Task) -> bytes:
        """The line that answers a task."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(task).encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def carry_out(self, task: Task) -> dict[str, Any]:
        """The answer to a task that can be carried out."""
        answer: dict[str, Any] = json.loads(self.ask(task))
        assert "error" not in answer, answer
        return answer

    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (line,) = (line for line in status if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    def end(self) -> tuple[bytes, int]:
        """What it still had to say when its input ended, and its exit code."""
        rest, _ = self.process.communicate(timeout=60)
        return rest, self.process.returncode


@contextmanager
def simulating(**environment: str) -> Iterator[Simulator]:
    simulator = Simulator(**environment)
    try:
        yield simulator
    finally:
        simulator.process.kill()
        simulator.process.communicate()


@pytest.fixture(scope="module")
def simulator(endpoints_of: Callable[[str], object]) -> Iterator[Simulator]:
    endpoints_of("rquic")
    with simulating() as simulator:
        yield simulator


@dataclass
class Tasks:
    """Makes tasks; each has a number of its own."""

    certificates: Path
    logs: Path
    made: int = 0

    def __call__(
        self,
        workload: dict[str, Any] | None = None,
        *,
        mbps: float = 10.0,
        owd_ms: float = 50.0,
        model: LossModel | None = None,
        seed: int = 1,
        timeout_s: float = 300.0,
        series: Sequence[str] = (),
        capture: bool = False,
        **options: Any,
    ) -> Task:
        self.made += 1
        chosen = {**IMPLEMENTATION.options({}, "defaults"), **options}
        common = {
            "version": 1,
            "address": "10.0.2.2",
            "port": 4433,
            "server_name": SERVER_NAME,
            "workload": workload or download(50_000),
            "content_seed": seed,
            "options": chosen,
            "authority": str(self.certificates / "authority.pem"),
            "deadline_s": timeout_s,
            "series": list(series),
        }
        own = {
            role: {**common, "role": role, "log_folder": str(self.logs / role)}
            for role in ("client", "server")
        }
        own["server"] |= {
            "certificate": str(self.certificates / "server.pem"),
            "private_key": str(self.certificates / "server.key"),
        }
        model = model or Uniform(0.0)
        directions = {
            direction: {
                "rate_bps": round(mbps * MBPS),
                "delay_ns": round(owd_ms * MS),
                "queue_bytes": None,
                "queue_packets": 100,
                "losses": losses(model, seed + number),
            }
            for number, direction in enumerate(("up", "down"))
        }
        return {
            "version": 1,
            "number": self.made,
            "pairs": [own],
            "links": {"internet": directions},
            "completion": "dct_s",
            "timeout_s": timeout_s,
            "seed": seed,
            "filling": None,
            "processor": {"handshake_ns": 0, "datagram_ns": 0},
            "capture": str(self.logs) if capture else None,
        }


@pytest.fixture
def tasks(tmp_path: Path, endpoints_of: Callable[[str], object]) -> Tasks:
    endpoints_of("rquic")  # it is built
    for folder in ("certificates", "client", "server"):
        (tmp_path / folder).mkdir()
    certificates.write(tmp_path / "certificates", SERVER_NAME)
    return Tasks(tmp_path / "certificates", tmp_path)


def download(size: int) -> dict[str, Any]:
    return {"name": "download", "size_bytes": size}


def page(connections: str = "one", objects: list[dict[str, Any]] = PAGE) -> dict[str, Any]:
    return {"name": "page", "connections": connections, "graph": {"objects": objects}}


def many_kinds(tasks: Tasks) -> list[Task]:
    """Transfers of all kinds, pages above all: in them, many goroutines can run at a time."""
    burst = GilbertElliott(0.02, 0.4, 0.999, 0.2)
    return [
        tasks(page(), http="h3", mbps=20, owd_ms=12.5),
        tasks(page(), http="h3", model=Uniform(0.02), scheme="none", mbps=1.5, owd_ms=200),
        tasks(page("per_origin"), model=Uniform(0.05), rate="paper"),
        tasks(page("per_origin"), http="h3", model=burst, scheme="plain"),
        tasks(download(1_000_000), model=Uniform(0.02)),
        tasks(download(500_000), model=burst, scheme="rlc", redundancies=2),
        tasks({"name": "upload", "size_bytes": 300_000}, model=Uniform(0.03), rate="code2021"),
        tasks({"name": "upload", "size_bytes": 100_000}, http="h3", model=Uniform(0.03), scheme="none"),
    ]


def test_a_download_takes_what_the_link_needs(simulator: Simulator, tasks: Tasks) -> None:
    answer = simulator.carry_out(tasks(download(30_000), scheme="none"))  # less than the first window
    client, server = answer["endpoints"]["client"], answer["endpoints"]["server"]
    assert (client["exit_code"], server["exit_code"], client["stderr"] + server["stderr"]) == (0, 0, "")
    bits = 8 * (30_000 + 24 * OVERHEAD)
    assert 0.2 + bits / 10e6 < client["metrics"]["dct_s"] < 0.21 + 1.1 * bits / 10e6
    assert (
        client["metrics"]["bytes_received"] + OVERHEAD * answer["links"]["internet"]["down"]["packets"]
        == (answer["links"]["internet"]["down"]["bytes_out"])
    )


def test_the_same_task_has_the_same_answer_whatever_was_before(simulator: Simulator, tasks: Tasks) -> None:
    asked = many_kinds(tasks)
    first = [simulator.ask(task) for task in asked]
    assert all(json.loads(answer)["endpoints"]["client"]["exit_code"] == 0 for answer in first)
    order = list(range(len(asked)))
    random.Random(1).shuffle(order)
    assert [simulator.ask(asked[i]) for i in order] == [first[i] for i in order]
    with simulating() as another:
        assert [another.ask(asked[i]) for i in order] == [first[i] for i in order]


def test_another_seed_gives_another_trial(simulator: Simulator, tasks: Tasks) -> None:
    task = tasks(download(1_000_000), model=Uniform(0.02))
    first, second = json.loads(simulator.ask(task)), json.loads(simulator.ask({**task, "seed": 2}))
    assert first["endpoints"] != second["endpoints"]


def test_programs_that_take_the_cpu_change_nothing(simulator: Simulator, tasks: Tasks) -> None:
    asked = many_kinds(tasks)
    first = [simulator.ask(task) for task in asked]
    with ExitStack() as busy:
        for _ in range(6):
            loop = busy.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            busy.callback(loop.kill)
        assert [simulator.ask(task) for task in asked] == first


def test_a_processor_that_has_no_special_instructions_changes_nothing(
    simulator: Simulator, tasks: Tasks
) -> None:
    """Neither for cryptography nor for vectors; no product is fused with a sum."""
    asked = many_kinds(tasks)
    with simulating(GODEBUG="cpu.all=off") as plain:
        assert [plain.ask(task) for task in asked] == [simulator.ask(task) for task in asked]


def test_another_key_pair_changes_nothing(simulator: Simulator, tasks: Tasks, tmp_path: Path) -> None:
    first = [simulator.ask(task) for task in many_kinds(tasks)]
    (tmp_path / "others").mkdir()
    certificates.write(tmp_path / "others", SERVER_NAME)
    assert [simulator.ask(task) for task in many_kinds(Tasks(tmp_path / "others", tmp_path))] == first


def test_a_page_of_more_objects_than_a_queue_of_the_scheduler_holds_has_one_answer(tasks: Tasks) -> None:
    objects = [
        {"name": f"{i}", "origin": f"o{i % 5}", "size_bytes": 500 + i, "parents": [], "processing_ms": 0}
        for i in range(600)
    ]
    task = tasks(page("per_origin", objects), model=Uniform(0.02))
    answers = set()
    for before in range(4):
        with simulating() as simulator:
            for _ in range(before):  # so many goroutines have run before
                simulator.ask(tasks(download(1000)))
            answers.add(simulator.ask(task))
    (answer,) = answers
    assert json.loads(answer)["endpoints"]["client"]["metrics"]["objects"] == 600


# quic-go acknowledges after 25 ms at the latest, and packets are held for 25 ms.
def test_timers_of_one_instant_have_one_order(simulator: Simulator, tasks: Tasks) -> None:
    task = tasks(download(300_000), model=Uniform(0.05), bto_ms=25, code_rate=0.98)
    assert len({simulator.ask(task) for _ in range(30)}) == 1


def test_without_a_seed_there_is_no_trial(simulator: Simulator, tasks: Tasks) -> None:
    task = tasks()
    assert json.loads(simulator.ask({**task, "seed": None}))["error"].startswith("seed: missing")
    del task["seed"]
    assert json.loads(simulator.ask(task))["error"].startswith("seed: missing")


MODELS: list[LossModel] = [
    Uniform(0.0),
    Uniform(0.1),
    GilbertElliott(0.05, 0.3, 0.99, 0.2),
    Pattern((0, 7, 8, 30), 31),
    Pattern((3,), 17, repeat=True),
]


def test_the_verdicts_are_the_oracles(simulator: Simulator, tasks: Tasks) -> None:
    for model in MODELS:
        answer = simulator.carry_out(tasks(download(300_000), model=model, seed=2**64 - 3))
        for number, direction in enumerate(("up", "down")):
            report = answer["links"]["internet"][direction]
            oracle = verdicts(model, 2**64 - 3 + number, report["packets"])
            assert base64.b64decode(report["bitmap"]) == pack(oracle)
            assert report["dropped"] == oracle.sum()
            assert report["conserved"] and report["packets"] == report["frames_out"]
            dropped = report["queue_dropped"] + report["oversize_dropped"]
            assert report["frames_in"] == report["frames_out"] + dropped + report["in_flight"]


@pytest.mark.parametrize(
    ("limit", "fullest"),
    [
        ({"queue_packets": 5, "queue_bytes": None}, {"max_queue_packets": {5}}),
        # Less than a full frame was left.
        ({"queue_packets": None, "queue_bytes": 9000}, {"max_queue_bytes": set(range(9001 - FULL, 9001))}),
    ],
    ids=["packets", "bytes"],
)
def test_the_queue_holds_what_it_has_room_for_and_no_more(
    simulator: Simulator, tasks: Tasks, limit: dict[str, int], fullest: dict[str, set[int]]
) -> None:
    task = tasks(download(200_000), mbps=1.0)
    task["links"]["internet"]["down"] |= limit
    report = simulator.carry_out(task)["links"]["internet"]["down"]
    assert report["queue_dropped"] > 0
    assert all(report[name] in allowed for name, allowed in fullest.items())


def test_codel_keeps_a_deep_queue_short(simulator: Simulator, tasks: Tasks) -> None:
    """Of a queue that would hold all that slow start sends, CoDel drops, and it does not become as long."""
    task, reports = tasks(download(3_000_000), mbps=5.0, owd_ms=15.0), {}
    down = task["links"]["internet"]["down"]
    for queue in ("droptail", "codel"):
        down |= {"queue_packets": 1000, "queue": queue}
        reports[queue] = simulator.carry_out(task)["links"]["internet"]["down"]
        assert reports[queue]["conserved"]
    assert reports["droptail"]["queue_dropped"] == 0
    assert reports["codel"]["queue_dropped"] > 0
    assert reports["codel"]["max_queue_packets"] < reports["droptail"]["max_queue_packets"]


def test_while_a_link_is_out_it_takes_nothing_and_counts_that(simulator: Simulator, tasks: Tasks) -> None:
    task = tasks(download(300_000), mbps=5.0, owd_ms=15.0)
    whole = simulator.carry_out(task)
    task["links"]["internet"]["down"]["outage_ns"] = [100_000_000, 600_000_000]
    answer = simulator.carry_out(task)
    up, down = answer["links"]["internet"]["up"], answer["links"]["internet"]["down"]
    assert "outage_dropped" not in up
    assert down["outage_dropped"] > 0
    assert down["conserved"]
    dropped = down["queue_dropped"] + down["oversize_dropped"] + down["outage_dropped"]
    assert down["frames_in"] == down["frames_out"] + dropped + down["in_flight"]
    assert answer["client_s"] > max(0.6, whole["client_s"])


def test_a_transfer_that_cannot_end_hits_its_deadline(simulator: Simulator, tasks: Tasks) -> None:
    nothing_arrives = Uniform(1.0)
    answer = simulator.carry_out(tasks(model=nothing_arrives, timeout_s=20.0))
    client = answer["endpoints"]["client"]
    assert (answer["timed_out"], answer["client_s"], client["exit_code"], client["metrics"]) == (
        True,
        20.0,
        1,
        None,
    )
    assert (
        client["stderr"]
        == "rquic: client: handshake with 10.0.2.2:4433: not done within the deadline of 20 s\n"
    )


def test_a_page_has_the_metrics_of_one(simulator: Simulator, tasks: Tasks) -> None:
    metrics = simulator.carry_out(tasks(page("per_origin")))["endpoints"]["client"]["metrics"]
    assert metrics["objects"] == len(PAGE)
    assert metrics["connections"] == len({each["origin"] for each in PAGE})
    assert 0 < metrics["handshake_s"] < metrics["first_object_s"] < metrics["dct_s"]


def test_a_line_that_is_no_task_is_answered_and_the_next_carried_out(tasks: Tasks) -> None:
    with simulating() as simulator:
        assert "not a task" in json.loads(simulator.ask({"colour": 1}))["error"]
        task = tasks()
        assert json.loads(simulator.ask({**task, "version": 2})) == {
            "number": task["number"],
            "error": "version: 2; this program knows version 1",
        }
        assert simulator.carry_out(task)["number"] == task["number"]
        assert simulator.end() == (b"", 0)


def test_what_is_left_behind_is_of_virtual_time_and_changes_nothing(
    simulator: Simulator, tasks: Tasks, tmp_path: Path
) -> None:
    asked = tasks(page(), http="h3", model=Uniform(0.02))
    left = tasks(page(), http="h3", model=Uniform(0.02), series=["cwnd", "code_rate"], capture=True)
    first, second = simulator.carry_out(asked), simulator.carry_out(left)
    assert second == {**first, "number": left["number"]}
    for role, endpoint in second["endpoints"].items():
        assert {path.suffix for path in (tmp_path / role).iterdir()} == {".csv", ".log", ".sqlog"}
        (qlog,) = (tmp_path / role).glob("*.sqlog")
        header, *events = [json.loads(text) for text in qlog.read_text().split("\x1e") if text]
        times = [event["time"] for event in events]
        assert times == sorted(times) and times[0] >= 0 and times[-1] <= 1e3 * second["virtual_s"]
        sent = sum(event["name"] == "transport:packet_sent" for event in events)
        assert abs(sent - endpoint["metrics"]["packets_sent"]) <= 2  # the packets that close the connection
        assert header["trace"]["common_fields"]["reference_time"]["wall_clock_time"].startswith(
            "2000-01-01T00:00:00"
        )
        assert "CLIENT_TRAFFIC_SECRET_0" in (tmp_path / role / "keys.log").read_text()
        with (tmp_path / role / "cwnd.series.csv").open(newline="") as file:
            rows = [[float(value) for value in row] for row in list(csv.reader(file))[1:]]
        assert rows and all(math.isfinite(value) for row in rows for value in row)
    up, down = (second["links"]["internet"][direction] for direction in ("up", "down"))
    packets = up["frames_in"] + down["frames_out"] - down["dropped"]
    assert packets_of(tmp_path / "client.pcapng") == packets
    packets = down["frames_in"] + up["frames_out"] - up["dropped"]
    assert packets_of(tmp_path / "server.pcapng") == packets


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


@pytest.mark.parametrize("workload", ["download", "upload"])
def test_without_losses_all_arms_send_the_same_quic_packets(
    simulator: Simulator, tasks: Tasks, tmp_path: Path, workload: str
) -> None:
    """What is coded travels beside QUIC's packets: they are as many, in the same order, of the same sizes and
    with the same frames, those of the handshake and those with ACKs, too. In longer transfers, the times that
    headers take on the link move an ACK now and then."""
    for size in (1000, 10_000, 40_000):
        sent = {}
        for scheme in ("plain", "none", "hold", "xor", "rlc"):
            # All is one generation, so that what is coded follows the content.
            task = tasks({"name": workload, "size_bytes": size}, capture=True, scheme=scheme, code_rate=0.985)
            answer = simulator.carry_out(task)
            repair = sum(end["metrics"]["repair_sent"] for end in answer["endpoints"].values())
            assert (repair > 0) == (scheme in ("xor", "rlc"))
            sent[scheme] = [quic_packets_sent(tmp_path / role) for role in ("client", "server")]
        for scheme in sent:
            assert sent[scheme] == sent["plain"], scheme


def packets_of(capture: Path) -> int:
    """How many packets a pcapng file has."""
    content, packets, at = capture.read_bytes(), 0, 0
    while at < len(content):
        kind, size = struct.unpack_from("=II", content, at)
        packets += kind == 6
        at += size
    return packets


def memory_after(simulator: Simulator, tasks: Tasks, count: int) -> float:
    """In MB, after so many more tasks."""
    kinds = [tasks(download(1000)), tasks(download(10_000), model=Uniform(0.02)), tasks(scheme="none")]
    for number in range(count):
        assert b'"error"' not in simulator.ask({**kinds[number % 3], "seed": number})
    return simulator.resident_mb()


def test_memory_stays_over_a_thousand_tasks(tasks: Tasks) -> None:
    with simulating() as simulator:
        before = memory_after(simulator, tasks, 600)
        assert memory_after(simulator, tasks, 900) < before + 32


# Go itself keeps 200 bytes of each trial for ever: simulator/overlay.sh mends it.
@pytest.mark.slow
@pytest.mark.parametrize(("after", "until", "most_mb"), [(2_000, 10_000, 4.0), (10_000, 100_000, 8.0)])
def test_ten_thousand_tasks_and_a_hundred_thousand_take_no_more_memory_than_the_first(
    tasks: Tasks, after: int, until: int, most_mb: float
) -> None:
    with simulating() as simulator:
        before = memory_after(simulator, tasks, after)
        assert memory_after(simulator, tasks, until - after) < before + most_mb


def test_a_long_download_fits_into_memory(tasks: Tasks) -> None:
    with simulating() as simulator:
        answer = simulator.carry_out(tasks(download(20 << 20), mbps=100, model=Uniform(0.01)))
        assert answer["endpoints"]["client"]["exit_code"] == 0
        assert simulator.resident_mb() < 512


def test_a_simulator_that_an_earlier_build_left_is_refused(
    endpoints_of: Callable[[str], object], tmp_path: Path
) -> None:
    """Its own word for its sources is changed, as a change of its sources would change it."""
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
