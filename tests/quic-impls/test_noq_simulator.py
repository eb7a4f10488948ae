"""noq-fec's simulator: whole trials in virtual time (quic-impls/contract/simulators.md)."""

import base64
import csv
import json
import shutil
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from fecbench.dropper import model as dropper_model
from fecbench.dropper import recordings
from fecbench.dropper.draws import pack, unpack
from fecbench.dropper.model import GilbertElliott, Pattern, Uniform
from fecbench.dropper.parameters import LossModel
from fecbench.runners.implementations.finding import ours
from fecbench.runners.trial import certificates
from fecbench.runners.trial.certificates import NOT_AFTER, NOT_BEFORE
from fecbench.runners.trial.competition import FULL_SHARE, INTERVAL_S
from fecbench.runners.trial.simulation import losses

IMPLEMENTATION = ours().find("noq-fec", "tests")
SCHEMES = list(map(str, IMPLEMENTATION.declaration.options["scheme"].choices or []))
CONTROLS = list(map(str, IMPLEMENTATION.declaration.options["congestion_control"].choices or []))
NOTHING = Uniform(0.0)
QEMU = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
SEEDS = {"up": 2**64 - 1, "down": 4}
TIMEOUT_S = 60.0
FILLING = {"full_share": FULL_SHARE, "window_s": 1.0, "interval_s": INTERVAL_S}
Task = dict[str, Any]
Answer = dict[str, Any]


class Simulator:
    """A running one."""

    def __init__(self, *machine: str) -> None:
        """`machine` is a program that runs it, with its options."""
        command = IMPLEMENTATION.declaration.simulator
        assert command is not None
        self.process = subprocess.Popen(
            [*machine, *command], cwd=IMPLEMENTATION.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def line(self, task: Task | bytes) -> bytes:
        """The answer to a task as it is."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(task if isinstance(task, bytes) else json.dumps(task).encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def answer(self, task: Task) -> Answer:
        """The answer to a task that can be carried out."""
        answer: Answer = json.loads(self.line(task))
        assert "error" not in answer, answer
        return answer

    def error(self, task: Task | bytes) -> str:
        """Why a task cannot be carried out."""
        answer: Answer = json.loads(self.line(task))
        assert answer.keys() == {"number", "error"}
        error: str = answer["error"]
        assert "\n" not in error
        return error

    def memory_kb(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (line,) = (line for line in status if line.startswith("VmRSS:"))
        return int(line.split()[1])

    def close(self) -> None:
        """End its input; it ends as a success."""
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0


@pytest.fixture
def simulator(endpoints_of: Callable[[str], Any]) -> Iterator[Simulator]:
    endpoints_of("noq-fec")
    simulator = Simulator()
    yield simulator
    simulator.close()


@pytest.fixture
def task(identity: dict[str, str], tmp_path: Path) -> Task:
    return task_of(identity, tmp_path)


def task_of(identity: dict[str, str], folder: Path) -> Task:
    """A download of 50 kB over 10 Mbps with an RTT of 40 ms, without losses."""
    direction = {"rate_bps": 10_000_000, "delay_ns": 20_000_000, "queue_bytes": 75_000, "queue_packets": None}
    return {
        "version": 1,
        "number": 17,
        "pairs": [pair(identity, folder, 0)],
        "links": {
            "internet": {way: {**direction, "losses": losses(NOTHING, seed)} for way, seed in SEEDS.items()}
        },
        "completion": "dct_s",
        "timeout_s": TIMEOUT_S,
        "seed": 12345,
        "filling": None,
        "processor": {"handshake_ns": 0, "datagram_ns": 0},
        "capture": None,
    }


def pair(identity: dict[str, str], folder: Path, number: int) -> dict[str, Any]:
    logs = folder / "background" if number else folder
    return {
        role: {
            "version": 1,
            "role": role,
            "address": f"10.0.{2 + 2 * number}.2",
            "port": 4433,
            "workload": {"name": "download", "size_bytes": 50_000},
            "content_seed": 2**64 - 1,
            "options": dict(IMPLEMENTATION.options({}, "defaults")),
            "log_folder": str(logs / role),
            "deadline_s": TIMEOUT_S,
            **identity,
        }
        for role in ("client", "server")
    }


def told(task: Task, **changes: Any) -> Task:
    """The task with other values in all assignments; options are merged."""
    pairs = [
        {
            role: {
                **assignment,
                **changes,
                "options": {**assignment["options"], **changes.get("options", {})},
            }
            for role, assignment in ends.items()
        }
        for ends in task["pairs"]
    ]
    return {**task, "pairs": pairs}


def download(task: Task, size_bytes: int, **options: Any) -> Task:
    return told(task, workload={"name": "download", "size_bytes": size_bytes}, options=options)


def losing(task: Task, **models: LossModel) -> Task:
    link = task["links"]["internet"]
    directions = {
        way: {**settings, "losses": losses(models.get(way, NOTHING), SEEDS[way])}
        for way, settings in link.items()
    }
    return {**task, "links": {"internet": directions}}


def competing(task: Task, identity: dict[str, str], folder: Path, background_bytes: int = 10**9) -> Task:
    background = pair(identity, folder, 1)
    for end in background.values():
        end["workload"] = {"name": "download", "size_bytes": background_bytes}
    return {**task, "pairs": [*task["pairs"], background], "filling": FILLING}


def metrics(answer: Answer, endpoint: str = "client") -> dict[str, float]:
    measured: dict[str, float] = answer["endpoints"][endpoint]["metrics"]
    return measured


def ends(answer: Answer) -> dict[str, int]:
    return {name: endpoint["exit_code"] for name, endpoint in answer["endpoints"].items()}


# ---- The same line, the same answer ----


def long_and_lossy(task: Task) -> Task:
    """What differs at once when a byte of the handshake does, or a packet number is skipped elsewhere."""
    return losing(download(task, 500_000), up=Uniform(0.02), down=Uniform(0.02))


def test_a_line_has_one_answer_in_each_process_after_any_tasks_and_with_any_keys(
    simulator: Simulator, task: Task, tmp_path: Path
) -> None:
    asked = long_and_lossy(task)
    first = simulator.line(asked)
    simulator.line(losing(download(task, 200_000, scheme="vandermonde"), down=GilbertElliott(0.05, 0.3)))
    simulator.line(b"no task\n")
    assert simulator.line(asked) == first
    certificates.write(tmp_path, "server.fecbench")
    files = {"certificate": "server.pem", "private_key": "server.key", "authority": "authority.pem"}
    others = told(asked, **{key: str(tmp_path / name) for key, name in files.items()})
    another = Simulator()
    assert another.line(others) == first
    another.close()


@pytest.mark.parametrize("control", CONTROLS)
def test_a_line_has_one_answer_with_each_congestion_control(
    simulator: Simulator, task: Task, control: str
) -> None:
    """In 16 s, BBRv3 probes for bandwidth five times or more, after waits of a random length."""
    task["links"]["internet"]["down"]["rate_bps"] = 1_000_000
    asked = download(task, 2_000_000, congestion_control=control)
    first, again = simulator.line(asked), simulator.line(asked)
    assert again == first
    assert ends(json.loads(first)) == {"client": 0, "server": 0}
    another = Simulator()
    assert another.line(asked) == first
    another.close()


def test_a_line_has_one_answer_over_http3_with_fec_in_the_tail(simulator: Simulator, task: Task) -> None:
    for workload in ("download", "upload"):
        options = {"http": "h3", "scheme": "rlc", "controller": "tail"}
        transfer = told(task, workload={"name": workload, "size_bytes": 60_000}, options=options)
        asked = losing(transfer, up=Uniform(0.05), down=Uniform(0.05))
        first, again = simulator.line(asked), simulator.line(asked)
        assert again == first
        answer = json.loads(first)
        assert ends(answer) == {"client": 0, "server": 0}
        assert min(metrics(answer, end)["repair_sent"] for end in ("client", "server")) > 0
        another = Simulator()
        assert another.line(asked) == first
        another.close()


def test_congestion_controls_differ(simulator: Simulator, task: Task) -> None:
    asked = losing(task, down=Uniform(0.02))
    answers = {simulator.line(download(asked, 300_000, congestion_control=control)) for control in CONTROLS}
    assert len(answers) == len(CONTROLS)


@pytest.mark.skipif(not QEMU, reason="needs qemu-x86_64 of Debian's qemu-user or qemu-user-static")
def test_another_processor_comes_to_the_same(simulator: Simulator, task: Task) -> None:
    """One that has special instructions neither for cryptography nor for vectors."""
    another = Simulator(str(QEMU), "-cpu", "qemu64")
    for scheme in SCHEMES:
        asked = losing(download(task, 200_000, scheme=scheme), down=Uniform(0.03))
        assert another.line(asked) == simulator.line(asked)
    another.close()


def test_the_seed_decides_what_is_random(simulator: Simulator, task: Task) -> None:
    asked = long_and_lossy(task)
    answers = {simulator.line({**asked, "seed": seed}) for seed in (0, 1, 2**64 - 1)}
    assert len(answers) == 3
    del asked["seed"]
    assert "seed" in simulator.error(asked)


@pytest.mark.parametrize(
    ("signing", "own", "what"), [("ec", "ed25519", "authority's"), ("ed25519", "ec", "certificate's")]
)
def test_a_certificate_whose_handshakes_differ_in_length_is_refused(
    simulator: Simulator, task: Task, tmp_path: Path, signing: str, own: str, what: str
) -> None:
    files = certified(tmp_path, KEYS[own](), KEYS[signing](), NOT_AFTER)
    error = simulator.error(told(task, **files))
    assert f"{what} key must be Ed25519: signatures of other keys vary in length" in error
    assert str(tmp_path) in error


KEYS: dict[str, Callable[[], Any]] = {
    "ed25519": Ed25519PrivateKey.generate,
    "ec": lambda: ec.generate_private_key(ec.SECP256R1()),
}


def certified(folder: Path, key: Any, authority: Any, until: datetime) -> dict[str, str]:
    """The files of a server with this key, whose certificate that of an authority signs; it is an anchor of
    trust itself."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server.fecbench")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOT_BEFORE)
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("server.fecbench")]), critical=False)
        .sign(authority, None if isinstance(authority, Ed25519PrivateKey) else hashes.SHA256())
    )
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "own.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "own.key").write_bytes(key.private_bytes(pem, pkcs8, serialization.NoEncryption()))
    files = {"certificate": "own.pem", "private_key": "own.key", "authority": "own.pem"}
    return {key: str(folder / name) for key, name in files.items()}


def test_certificates_are_judged_by_the_day_on_which_virtual_time_begins(
    simulator: Simulator, task: Task, tmp_path: Path
) -> None:
    key = Ed25519PrivateKey.generate()
    files = certified(tmp_path, key, key, NOT_BEFORE + timedelta(days=1))
    assert ends(simulator.answer(told(task, **files))) == {"client": 0, "server": 0}


# ---- The link ----


def test_the_handshake_takes_a_round_trip_and_two_full_datagrams_with_42_bytes_each_on_the_link(
    simulator: Simulator, task: Task
) -> None:
    answer = simulator.answer(task)
    link = task["links"]["internet"]["up"]
    assert metrics(answer)["handshake_s"] == pytest.approx(
        2 * link["delay_ns"] / 1e9 + 2 * 8 * (1200 + 42) / link["rate_bps"], abs=1e-8
    )


@pytest.mark.parametrize(
    ("up", "down"),
    [
        (Uniform(0.05), Uniform(0.1)),
        (GilbertElliott(0.03, 0.4, 0.99, 0.2), GilbertElliott(0.02, 0.5)),
        (Pattern((3, 4)), Pattern((1, 7), 11, repeat=True)),
    ],
)
def test_the_packets_that_the_oracle_names_are_lost_and_no_packet_disappears(
    simulator: Simulator, task: Task, up: LossModel, down: LossModel
) -> None:
    for workload in ("download", "upload"):
        transfer = told(task, workload={"name": workload, "size_bytes": 300_000})
        answer = simulator.answer(losing(transfer, up=up, down=down))
        assert ends(answer) == {"client": 0, "server": 0}
        for way, model in (("up", up), ("down", down)):
            report = answer["links"]["internet"][way]
            verdicts = dropper_model.verdicts(model, SEEDS[way], report["packets"])
            assert base64.b64decode(report["bitmap"]) == pack(verdicts)
            assert report["dropped"] == int(np.sum(verdicts)) > 0
            assert report["packets"] == report["frames_out"] > 20
            dropped = report["queue_dropped"] + report["oversize_dropped"]
            assert report["frames_in"] == report["frames_out"] + dropped + report["in_flight"]
            assert report["conserved"]
        client, server, links = metrics(answer), metrics(answer, "server"), answer["links"]["internet"]
        assert client["bytes_sent"] + 42 * links["up"]["frames_in"] == links["up"]["bytes_in"]
        assert server["bytes_sent"] + 42 * links["down"]["frames_in"] == links["down"]["bytes_in"]


@pytest.mark.parametrize(
    ("limit", "fullest"),
    [
        ({"queue_packets": 5, "queue_bytes": None}, {"max_queue_packets": {5}}),
        # Less than a full frame was left.
        ({"queue_packets": None, "queue_bytes": 9000}, {"max_queue_bytes": set(range(9001 - 1514, 9001))}),
    ],
    ids=["packets", "bytes"],
)
def test_the_queue_holds_what_it_has_room_for_and_no_more(
    simulator: Simulator, task: Task, limit: dict[str, int], fullest: dict[str, set[int]]
) -> None:
    task["links"]["internet"]["down"] |= {"rate_bps": 1_000_000, **limit}
    report = simulator.answer(download(task, 200_000))["links"]["internet"]["down"]
    assert report["queue_dropped"] > 0
    assert all(report[name] in allowed for name, allowed in fullest.items())
    assert report["conserved"]


def test_codel_keeps_a_deep_queue_short(simulator: Simulator, task: Task) -> None:
    """Slow start fills a queue of 1,000 packets, and CoDel drops of it long before it is full."""
    down, longest = task["links"]["internet"]["down"], {}
    down |= {"rate_bps": 4_000_000, "queue_bytes": None, "queue_packets": 1000}
    for queue in ("droptail", "codel"):
        down["queue"] = queue
        report = simulator.answer(download(task, 3_000_000))["links"]["internet"]["down"]
        assert report["conserved"]
        longest[queue] = report["max_queue_packets"]
        assert (report["queue_dropped"] > 0) == (queue == "codel" or longest[queue] == 1000)
    assert longest["codel"] < longest["droptail"] / 2


# ---- Endpoints ----


def test_each_scheme_protects_and_recovers(simulator: Simulator, task: Task) -> None:
    for scheme in SCHEMES:
        for workload in ("download", "upload"):
            content = {"name": workload, "size_bytes": 300_000}
            asked = losing(
                told(task, workload=content, options={"scheme": scheme, "controller": "constant"}),
                up=Uniform(0.03),
                down=Uniform(0.03),
            )
            answer = simulator.answer(asked)
            sender, receiver = metrics(answer, "server"), metrics(answer)
            if workload == "upload":
                sender, receiver = receiver, sender
            fec = [sender["source_sent"], sender["repair_sent"], receiver["packets_recovered"]]
            assert all(fec) if scheme != "none" else not any(fec)


def test_the_metrics_are_those_of_the_real_endpoint(
    simulator: Simulator, task: Task, endpoints_of: Callable[[str], Any], assignment: dict[str, Any]
) -> None:
    client, server = endpoints_of("noq-fec").transfer(assignment)
    answer = simulator.answer(task)
    assert list(metrics(answer)) == list(client)
    assert list(metrics(answer, "server")) == list(server)


def test_a_transfer_that_hangs_ends_at_its_deadline(simulator: Simulator, task: Task) -> None:
    answer = simulator.answer(losing(task, down=Uniform(1.0)))
    assert ends(answer) == {"client": 1, "server": 0}
    assert answer["timed_out"]
    assert answer["client_s"] == answer["virtual_s"] == TIMEOUT_S
    line = "noq-fec: client: download of 50000 bytes: not done within the deadline of 60 s\n"
    assert answer["endpoints"]["client"]["stderr"] == line
    assert metrics(answer) is None


def test_a_client_that_has_more_time_than_the_trial_is_ended_with_it(
    simulator: Simulator, task: Task
) -> None:
    asked = {**losing(download(task, 10**7), down=Uniform(0.02)), "timeout_s": 0.5}
    answer = simulator.answer(asked)
    assert answer["timed_out"]
    assert answer["client_s"] == 0.5
    assert ends(answer) == {"client": 1, "server": 0}


def test_a_server_that_refuses_its_assignment_has_no_client(simulator: Simulator, task: Task) -> None:
    for changes, code in (
        ({"workload": {"name": "page"}}, 127),
        ({"options": {"scheme": "xor", "n": 9, "k": 3, "controller": "constant"}}, 2),
        ({"deadline_s": -1}, 2),
    ):
        answer = simulator.answer(told(task, **changes))
        assert ends(answer) == {"server": code}
        assert not answer["endpoints"]["server"]["ready"]
        assert answer["endpoints"]["server"]["stderr"].startswith("noq-fec: ")
        assert answer["client_s"] is None


def test_a_client_that_expects_other_content_fails(simulator: Simulator, task: Task) -> None:
    task["pairs"][0]["client"]["content_seed"] = 1
    answer = simulator.answer(task)
    assert ends(answer) == {"client": 1, "server": 0}
    assert "byte 0 is not that of the content" in answer["endpoints"]["client"]["stderr"]
    assert not answer["timed_out"]


def test_a_client_that_trusts_another_authority_fails(
    simulator: Simulator, task: Task, tmp_path: Path
) -> None:
    certificates.write(tmp_path, "server.fecbench")
    task["pairs"][0]["client"]["authority"] = str(tmp_path / "authority.pem")
    answer = simulator.answer(task)
    assert ends(answer)["client"] == 1
    assert "handshake" in answer["endpoints"]["client"]["stderr"]


def test_processors_delay_what_is_sent_by_just_what_they_take(simulator: Simulator, task: Task) -> None:
    asked = download(task, 1000)
    none = metrics(simulator.answer(asked))
    handshake = metrics(
        simulator.answer({**asked, "processor": {"handshake_ns": 1_000_000, "datagram_ns": 0}})
    )
    # The server's TLS before its first answer, and the client's before its second flight, with the request.
    assert handshake["handshake_s"] == pytest.approx(none["handshake_s"] + 0.001, abs=1e-9)
    assert handshake["dct_s"] == pytest.approx(none["dct_s"] + 0.002, abs=1e-9)
    datagram = metrics(simulator.answer({**asked, "processor": {"handshake_ns": 0, "datagram_ns": 50_000}}))
    # The client's first datagram, and the server's answer to it.
    assert datagram["handshake_s"] == pytest.approx(none["handshake_s"] + 0.0001, abs=1e-5)


def test_the_initial_window_in_bytes_takes_the_place_of_that_in_packets(
    simulator: Simulator, task: Task
) -> None:
    slow = {**losing(task), "seed": 1}
    packets, as_many, papers, fewer = (
        metrics(simulator.answer(download(slow, 50_000, scheme="none", **options)))["dct_s"]
        for options in (
            {"initial_window": 37},
            {"initial_window": 2, "initial_window_bytes": 37 * 1252},
            {"initial_window": 2, "initial_window_bytes": 46_720},
            {"initial_window": 32},
        )
    )
    assert packets == as_many
    # 46,720 bytes have room for as many whole packets.
    assert papers == pytest.approx(packets, rel=0.01) and papers < fewer


def test_slow_start_with_another_pace_takes_less_time(simulator: Simulator, task: Task) -> None:
    dct_s = {
        pace: metrics(simulator.answer(download(task, 50_000, scheme="none", slow_start_pacing=pace)))[
            "dct_s"
        ]
        for pace in ("1.25", "2")
    }
    assert (
        dct_s["2"]
        < dct_s["1.25"]
        == metrics(simulator.answer(download(task, 50_000, scheme="none")))["dct_s"]
    )


# ---- Two pairs ----


def test_the_foreground_begins_in_a_full_link_and_each_transfers_part_is_measured(
    simulator: Simulator, task: Task, identity: dict[str, str], tmp_path: Path
) -> None:
    answer = simulator.answer(competing(download(task, 1_000_000), identity, tmp_path))
    assert ends(answer) == {"client": 0, "server": 0, "background_client": 1, "background_server": 0}
    assert "ended by a signal" in answer["endpoints"]["background_client"]["stderr"]
    assert answer["background_lasted"]
    measured = answer["competition"]
    assert measured["filling_s"] >= FILLING["window_s"]
    # A reading stands at a multiple of the interval.
    assert measured["filling_s"] / INTERVAL_S == pytest.approx(round(measured["filling_s"] / INTERVAL_S))
    assert answer["virtual_s"] == pytest.approx(measured["filling_s"] + answer["client_s"])
    rates = measured["foreground_mbps"], measured["background_mbps"]
    assert min(rates) > 0.5
    # The full link of 10 Mbps, but for what its queue held before and holds after.
    assert sum(rates) == pytest.approx(10, rel=0.02)
    client = metrics(answer)
    came = client["packets_received"] - client["packets_recovered"] + client["repair_received"]
    frames = client["bytes_received"] + 42 * came
    assert 8e-6 * frames / answer["client_s"] == pytest.approx(rates[0], rel=0.01)


def test_a_background_that_ends_first_is_told(
    simulator: Simulator, task: Task, identity: dict[str, str], tmp_path: Path
) -> None:
    long = download(task, 2_000_000)
    answer = simulator.answer(competing(long, identity, tmp_path, background_bytes=2_000_000))
    assert ends(answer)["background_client"] == 0
    assert not answer["background_lasted"]
    assert answer["competition"] is not None
    answer = simulator.answer(competing(long, identity, tmp_path, background_bytes=1000))
    assert list(ends(answer)) == ["server", "background_client", "background_server"]
    assert not answer["background_lasted"]
    assert answer["competition"] is None
    assert not answer["timed_out"]


def test_one_time_limit_is_for_both_transfers(
    simulator: Simulator, task: Task, identity: dict[str, str], tmp_path: Path
) -> None:
    asked = competing(download(task, 10**9), identity, tmp_path)
    never_full = simulator.answer({**asked, "timeout_s": 0.9})
    assert (never_full["timed_out"], never_full["competition"]) == (True, None)
    assert "client" not in never_full["endpoints"]
    answer = simulator.answer({**asked, "timeout_s": 5.0})
    assert answer["timed_out"]
    assert answer["virtual_s"] == 5.0
    left = 5.0 - answer["competition"]["filling_s"]
    assert answer["client_s"] == pytest.approx(left)


# ---- Files ----


def test_what_endpoints_record_has_virtual_times_and_changes_nothing(
    simulator: Simulator, task: Task, identity: dict[str, str], tmp_path: Path
) -> None:
    asked = competing(download(task, 100_000), identity, tmp_path)
    without = simulator.line(asked)
    captures = tmp_path / "captures"
    logs = [Path(end["log_folder"]) for ends in asked["pairs"] for end in ends.values()]
    for folder in (captures, *logs):
        folder.mkdir(parents=True)
    assert simulator.line(told({**asked, "capture": str(captures)}, series=["cwnd"])) == without
    answer = json.loads(without)
    assert {str(path.relative_to(captures)) for path in captures.rglob("*.pcapng")} == {
        f"{folder}{role}.pcapng" for folder in ("", "background/") for role in ("client", "server")
    }
    for folder in logs:
        assert "CLIENT_HANDSHAKE_TRAFFIC_SECRET" in (folder / "keys.log").read_text()
        (trace,) = folder.glob("*.qlog")
        times = [json.loads(record)["time"] for record in trace.read_text().split("\x1e")[2:]]
        with (folder / "cwnd.series.csv").open(newline="") as file:
            times_of_series = [float(row["t_s"]) for row in csv.DictReader(file)]
        for seconds in ([ms / 1e3 for ms in times], times_of_series):
            assert seconds == sorted(seconds)
            assert seconds[0] < 0.001
            assert 0.1 < seconds[-1] <= answer["virtual_s"]


def test_the_losses_of_a_trial_can_be_imported_from_what_it_records(
    simulator: Simulator, task: Task, tmp_path: Path
) -> None:
    """The captures of both sides tell what the loss model dropped; so does the sender's qlog but for the
    handshake, which loses nothing here."""
    lossy = losing(download(task, 300_000), down=GilbertElliott(0.02, 0.3))
    asked = told({**lossy, "capture": str(tmp_path)}, log_folder=str(tmp_path))
    answer = simulator.answer(asked)
    report = answer["links"]["internet"]["down"]
    assert report["queue_dropped"] == 0
    dropped = unpack(base64.b64decode(report["bitmap"]), report["packets"])
    lost = recordings.read(tmp_path / "server.pcapng", tmp_path / "client.pcapng")
    assert lost.sum() > 3
    assert np.array_equal(lost, dropped[: lost.size])
    (trace,) = tmp_path.glob("*-server.qlog")
    assert not dropped[:10].any()
    assert recordings.read(trace).sum() == lost.sum()


def test_a_replay_leaves_traces_of_the_same_names(simulator: Simulator, task: Task, tmp_path: Path) -> None:
    """They are the first connection ID, which follows from the seed."""

    def traces(folder: Path, seed: int) -> set[str]:
        folder.mkdir()
        asked = told({**task, "seed": seed, "capture": str(folder)}, log_folder=str(folder))
        assert ends(simulator.answer(asked)) == {"client": 0, "server": 0}
        return {path.name for path in folder.glob("*.qlog")}

    first, again, other = (traces(tmp_path / f"{n}", seed) for n, seed in enumerate((1, 1, 2)))
    assert len(first) == 2
    assert first == again
    assert not first & other


def test_a_file_that_cannot_be_written_is_told(simulator: Simulator, task: Task, tmp_path: Path) -> None:
    answer = simulator.answer(told(task, series=["cwnd"], log_folder="/proc/nonexistent"))
    assert ends(answer) == {"client": 1, "server": 1}
    assert "series cwnd: /proc/nonexistent" in answer["endpoints"]["client"]["stderr"]
    error = simulator.error(told({**task, "capture": str(tmp_path)}, log_folder="/proc/nonexistent"))
    assert "/proc/nonexistent/keys.log" in error
    error = simulator.error(told({**task, "capture": "/proc/nonexistent"}, log_folder=str(tmp_path)))
    assert "capture: /proc/nonexistent" in error


# ---- Tasks that are wrong ----


NO_TASKS: list[tuple[bytes, int | None]] = [
    (b"\n", None),
    (b"{}\n", None),
    (b"\xff\x00{\n", None),
    (b'{"number": 3}\n', 3),
    (b'{"number": -1, "version": 1}\n', None),
    (b"[" * 100_000 + b"\n", None),
]


def test_a_line_that_is_no_task_is_answered_and_harms_no_other(simulator: Simulator, task: Task) -> None:
    for line, number in NO_TASKS:
        before = simulator.line(task)
        answer = json.loads(simulator.line(line))
        assert (answer["number"], list(answer)) == (number, ["number", "error"])
        assert simulator.line(task) == before


WRONG_TASKS: list[tuple[dict[str, Any], str]] = [
    ({"version": 2}, "version: 2"),
    ({"pairs": []}, "pairs: 0"),
    ({"filling": FILLING}, "pairs: 1"),
    ({"links": {}}, "links: []"),
    ({"timeout_s": 0}, "timeout_s: 0"),
    ({"seed": -1}, "-1"),
    ({"unknown": 1}, "unknown"),
    ({"processor": {"handshake_ns": -1, "datagram_ns": 0}}, "-1"),
]


def test_a_task_that_is_wrong_is_refused_with_what_is_wrong(simulator: Simulator, task: Task) -> None:
    for changes, named in WRONG_TASKS:
        assert named in simulator.error({**task, **changes})


WRONG_LINKS: list[tuple[dict[str, Any], str]] = [
    ({"rate_bps": 0}, "links.internet.down: rate_bps: 0"),
    ({"delay_ns": 2**63}, "links.internet.down: delay_ns"),
    ({"queue_packets": 5}, "a queue has one limit"),
    ({"queue_bytes": None}, "a queue has one limit"),
    ({"queue": "red"}, "red"),
    ({"losses": {"seed": 1}}, "loss_good"),
    ({"losses": {"pattern": "AA==", "packets": 9, "repeats": False}}, "1 bytes are not those of 9"),
    ({"losses": {"pattern": "?", "packets": 8, "repeats": False}}, "pattern"),
    ({"outage_ns": [5, 5]}, "links.internet.down: outage_ns: [5, 5]"),
    ({"outage_ns": [-1, 5]}, "-1"),
]


def test_a_link_that_is_wrong_is_refused_with_what_is_wrong(simulator: Simulator, task: Task) -> None:
    for changes, named in WRONG_LINKS:
        link = task["links"]["internet"]
        wrong = {**link, "down": {**link["down"], **changes}}
        assert named in simulator.error({**task, "links": {"internet": wrong}})


def test_ends_that_do_not_belong_together_are_refused(simulator: Simulator, task: Task) -> None:
    swapped = {
        **task,
        "pairs": [{"client": task["pairs"][0]["server"], "server": task["pairs"][0]["server"]}],
    }
    assert "the client is told that it is a server" in simulator.error(swapped)
    task["pairs"][0]["client"]["port"] = 4434
    assert "10.0.2.2:4434" in simulator.error(task)


# ---- Several links ----

WAYS = ("up", "down")
SERVER = "10.0.100.2"


def client_addresses(count: int) -> list[str]:
    return [f"10.0.{number}.2" for number in range(1, count + 1)]


def link(rate_mbps: float, owd_ms: float, number: int = 0, **models: LossModel) -> dict[str, Any]:
    """Both directions of a link; each has a seed of its own."""
    rate_bps, delay_ns = round(rate_mbps * 1e6), round(owd_ms * 1e6)
    queue_bytes = max(round(1.5 * rate_bps / 8 * 2 * delay_ns / 1e9), 10 * 1514)
    return {
        way: {
            "rate_bps": rate_bps,
            "delay_ns": delay_ns,
            "queue_bytes": queue_bytes,
            "queue_packets": None,
            "losses": losses(models.get(way, NOTHING), seed(number, way)),
        }
        for way in WAYS
    }


def seed(number: int, way: str) -> int:
    return 2**64 - 1 - 2 * number - WAYS.index(way)


def over(identity: dict[str, str], folder: Path, links: list[dict[str, Any]], **options: Any) -> Task:
    """A download over these links, with a path over each unless the options say otherwise."""
    task = task_of(identity, folder)
    task["links"] = {f"path{number}": one for number, one in enumerate(links, 1)}
    task = told(task, address=SERVER, options={"paths": len(links), **options})
    task["pairs"][0]["client"]["local_addresses"] = client_addresses(len(links))
    task["pairs"][0]["server"]["local_addresses"] = [SERVER]
    return task


def of_size(task: Task, size_bytes: int, name: str = "download") -> Task:
    return told(task, workload={"name": name, "size_bytes": size_bytes})


def check(answer: Answer) -> None:
    assert ends(answer) == {"client": 0, "server": 0}
    for one in answer["links"].values():
        for report in one.values():
            assert report["conserved"]
            dropped = report["queue_dropped"] + report["oversize_dropped"] + report.get("outage_dropped", 0)
            assert report["frames_in"] == report["frames_out"] + dropped + report["in_flight"]


@pytest.mark.parametrize("workload", ["download", "upload"])
def test_the_packets_that_the_oracle_names_are_lost_on_each_link(
    simulator: Simulator, identity: dict[str, str], tmp_path: Path, workload: str
) -> None:
    models: list[dict[str, LossModel]] = [
        {"up": Uniform(0.02), "down": GilbertElliott(0.02, 0.5)},
        {"up": GilbertElliott(0.02, 0.5), "down": Uniform(0.03)},
    ]
    links = [link(10, 20, number, **one) for number, one in enumerate(models)]
    answer = simulator.answer(of_size(over(identity, tmp_path, links), 600_000, workload))
    check(answer)
    for number, of_link in enumerate(models):
        for way, model in of_link.items():
            report = answer["links"][f"path{number + 1}"][way]
            verdicts = dropper_model.verdicts(model, seed(number, way), report["packets"])
            assert base64.b64decode(report["bitmap"]) == pack(verdicts)
            assert report["dropped"] == int(np.sum(verdicts))
        assert answer["links"][f"path{number + 1}"]["down" if workload == "download" else "up"]["dropped"] > 0


def test_what_an_end_has_sent_over_a_path_came_to_its_link(
    simulator: Simulator, identity: dict[str, str], tmp_path: Path
) -> None:
    links = [link(10, 20, 0, down=Uniform(0.02)), link(5, 40, 1), link(20, 5, 2, up=Uniform(0.02))]
    asked = over(identity, tmp_path, links, controller="constant")
    answer = simulator.answer(of_size(asked, 1_000_000))
    check(answer)
    for end, way in (("client", "up"), ("server", "down")):
        counted = metrics(answer, end)
        for number in (1, 2, 3):
            report = answer["links"][f"path{number}"][way]
            assert counted[f"path{number}.bytes_sent"] + 42 * report["frames_in"] == report["bytes_in"] > 0
        for name in ("packets_sent", "packets_lost", "bytes_sent", "source_sent", "repair_sent"):
            assert sum(counted[f"path{number}.{name}"] for number in (1, 2, 3)) == counted[name]
        recovered = sum(counted[f"path{number}.recovered"] for number in (1, 2, 3))
        assert recovered == counted["recovered_by_peer"]
    server = metrics(answer, "server")
    assert server["recovered_by_peer"] > 0
    assert min(server[f"path{number}.packets_sent"] for number in (1, 2, 3)) > 50


def test_two_equal_links_take_little_more_than_half_the_time_of_one(
    simulator: Simulator, identity: dict[str, str], tmp_path: Path
) -> None:
    links = [link(10, 25, 0), link(10, 25, 1)]
    took = {}
    for paths in (1, 2):
        answer = simulator.answer(
            of_size(over(identity, tmp_path, links, paths=paths, scheme="none"), 20_000_000)
        )
        check(answer)
        took[paths] = metrics(answer)["dct_s"]
    assert took[1] / took[2] >= 1.8


def test_each_path_has_the_round_trip_time_of_its_link(
    simulator: Simulator, identity: dict[str, str], tmp_path: Path
) -> None:
    """Messages of 8 packets, which take less than 1 ms of a link, turn by turn over the one and the other."""
    for owds in ((100, 10), (10, 100)):
        links = [link(100, owd_ms, number) for number, owd_ms in enumerate(owds)]
        options = {"congestion_control": "none", "scheduler": "round-robin", "scheme": "none"}
        messages = {
            "name": "messages",
            "direction": "down",
            "delivery": "datagram",
            "deadline_ms": 100.0,
            "part_bytes": 1000,
            "timetable": [[33_333 * number, 8000] for number in range(150)],
        }
        for role in ("client", "server"):
            (tmp_path / role).mkdir(exist_ok=True)
        answer = simulator.answer(told(over(identity, tmp_path, links, **options), workload=messages))
        check(answer)
        measured = metrics(answer, "server")
        for number, owd_ms in enumerate(owds, 1):
            assert measured[f"path{number}.smoothed_rtt_ms"] == pytest.approx(2 * owd_ms, rel=0.1)
            assert measured[f"path{number}.packets_sent"] == pytest.approx(600, rel=0.1)


def test_a_short_download_is_over_before_the_second_path_carries_anything_of_it(
    simulator: Simulator, identity: dict[str, str], tmp_path: Path
) -> None:
    answer = simulator.answer(of_size(over(identity, tmp_path, [link(10, 20, 0), link(10, 20, 1)]), 10_000))
    check(answer)
    server = metrics(answer, "server")
    assert server["path1.source_sent"] > 5
    assert server["path2.source_sent"] == server["path2.repair_sent"] == 0


def test_with_one_path_the_first_link_carries_all_as_if_it_were_alone(
    simulator: Simulator, identity: dict[str, str], tmp_path: Path
) -> None:
    first, second = link(10, 20, 0, down=Uniform(0.02)), link(10, 20, 1)
    of_two = simulator.answer(over(identity, tmp_path, [first, second], paths=1))
    alone = told({**task_of(identity, tmp_path), "links": {"internet": first}}, address=SERVER)
    of_one = simulator.answer(alone)
    assert of_two["endpoints"] == of_one["endpoints"]
    assert of_two["links"]["path1"] == of_one["links"]["internet"]
    assert of_two["links"]["path2"]["up"]["frames_in"] == of_two["links"]["path2"]["down"]["frames_in"] == 0


def test_while_a_link_is_out_it_takes_nothing_and_counts_that(
    simulator: Simulator, identity: dict[str, str], tmp_path: Path
) -> None:
    links = [link(10, 20, 0), link(10, 20, 1)]
    links[1]["down"]["outage_ns"] = [200_000_000, 400_000_000]
    answer = simulator.answer(of_size(over(identity, tmp_path, links), 2_000_000))
    check(answer)
    reports = {(name, way): one[way] for name, one in answer["links"].items() for way in WAYS}
    assert reports["path2", "down"]["outage_dropped"] > 0
    assert all(
        "outage_dropped" not in report for place, report in reports.items() if place != ("path2", "down")
    )


def test_each_end_captures_what_comes_to_each_link(
    simulator: Simulator, identity: dict[str, str], tmp_path: Path
) -> None:
    for role in ("client", "server"):
        (tmp_path / role).mkdir()
    links = [link(10, 20, 0), link(10, 20, 1, down=Uniform(0.02))]
    asked = of_size(over(identity, tmp_path, links), 200_000)
    answer = simulator.answer({**asked, "capture": str(tmp_path)})
    check(answer)
    sent = list(addresses_of(tmp_path / "server.pcapng"))
    for number, address in enumerate(client_addresses(2), 1):
        assert sent.count((SERVER, address)) == answer["links"][f"path{number}"]["down"]["frames_in"]
    assert {pair for pair in sent if pair[0] != SERVER} == {
        (address, SERVER) for address in client_addresses(2)
    }


def addresses_of(capture: Path) -> Iterator[tuple[str, str]]:
    """Source and destination of each packet: they are 54 bytes behind the start of its block."""
    blocks = capture.read_bytes()
    while blocks:
        kind, size = struct.unpack_from("=II", blocks)
        if kind == 6:
            yield socket.inet_ntoa(blocks[54:58]), socket.inet_ntoa(blocks[58:62])
        blocks = blocks[size:]


def test_paths_that_the_client_does_not_have_are_refused(
    simulator: Simulator, identity: dict[str, str], tmp_path: Path
) -> None:
    for changes, code, line in (
        ({"paths": 3}, 127, "options.paths: 3 paths from 2 local_addresses is not supported"),
        ({"paths": 4}, 2, "options.paths: 4 is not an integer in 1 to 3"),
        ({"paths": 0}, 2, "options.paths: 0 is not an integer in 1 to 3"),
    ):
        task = over(identity, tmp_path, [link(10, 20, 0), link(10, 20, 1)])
        task["pairs"][0]["client"]["options"] |= changes
        client = simulator.answer(task)["endpoints"]["client"]
        assert (client["exit_code"], client["stderr"]) == (code, f"noq-fec: {line}\n")


def test_a_server_without_further_paths_is_served_over_the_first(
    simulator: Simulator, identity: dict[str, str], tmp_path: Path
) -> None:
    task = over(identity, tmp_path, [link(10, 20, 0), link(10, 20, 1)])
    task["pairs"][0]["server"]["options"]["paths"] = 1
    answer = simulator.answer(task)
    check(answer)
    assert answer["links"]["path2"]["up"]["frames_in"] == 0


def test_links_that_no_topology_has_are_refused(
    simulator: Simulator, identity: dict[str, str], tmp_path: Path
) -> None:
    for names, addresses, named in (
        (["path1", "path3"], 2, "links: ['path1', 'path3']"),
        (["internet", "path1"], 2, "links: ['internet', 'path1']"),
        (["path1", "path2"], 3, "3 local_addresses, of 2 links"),
    ):
        task = over(identity, tmp_path, [link(10, 20, 0), link(10, 20, 1)])
        task["links"] = dict(zip(names, task["links"].values(), strict=True))
        task["pairs"][0]["client"]["local_addresses"] = client_addresses(addresses)
        assert named in simulator.error(task).replace('"', "'")


# ---- Endurance ----


def memory_stays(simulator: Simulator, task: Task, tasks: int) -> None:
    """Whatever a simulator needs it needs for its first tasks, which include the largest."""
    kinds = [
        download(losing(task, down=Uniform(0.02)), size, scheme=scheme)
        for size in (200_000, 1000)
        for scheme in SCHEMES
    ]
    for kind in kinds:
        simulator.line(kind)
    small = download(task, 1000)
    for _ in range(500):
        simulator.line(small)
    before = simulator.memory_kb()
    for number in range(tasks):
        simulator.line(kinds[number % len(kinds)] if number % 50 == 0 else small)
    assert simulator.memory_kb() < before + 2000


def test_two_thousand_tasks_take_no_more_memory_than_the_first(simulator: Simulator, task: Task) -> None:
    memory_stays(simulator, task, 2_000)


@pytest.mark.slow
def test_a_hundred_thousand_tasks_take_no_more_memory_than_the_first(
    simulator: Simulator, task: Task
) -> None:
    memory_stays(simulator, task, 100_000)
