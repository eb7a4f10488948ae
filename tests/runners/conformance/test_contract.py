"""Each breach of the contract by an implementation is reported in words, part by part.

The example is sound; each test makes one thing of it wrong.
"""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fecbench.runners.conformance import contract, loopback
from fecbench.runners.conformance import transfers as contract_transfers
from fecbench.runners.conformance.contract import problem_of_metrics
from fecbench.runners.conformance.part import Part, summary
from fecbench.runners.implementations.implementation import load
from fecbench.runners.sandbox import isolation
from fecbench.runners.workloads import TOLD, WORKLOADS
from tests.support.patience import ahead

DECLARATION = """
name = "example"
title = "The content in blocks, one after another"
build = ["true"]
server = ["/usr/bin/python3", "-S", "endpoint.py"]
client = ["/usr/bin/python3", "-S", "endpoint.py"]
workloads = ["download"]

[options.copies]
type = "integer"
minimum = 1
maximum = 2
default = 1
help = "How often each block is sent."

[fec]
off = { copies = 1 }
"""

ENDPOINT = """
import json, os, signal, socket, sys, time

BLOCK = 50_000

class Ended(Exception):
    pass

def end(*_):
    raise Ended

def say(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)

def serve():
    udp.bind(place)
    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    say("ready")
    copies, source, repair = task["options"]["copies"], 0, 0
    try:
        while True:
            number, client = udp.recvfrom(100)
            at = int(number) * BLOCK
            for _ in range(copies):
                udp.sendto(number + b" " + content[at : at + BLOCK], client)
            source += 1
            repair += copies - 1
    except Ended:
        say("done", metrics={"packets_sent": source, "source_sent": source, "repair_sent": repair})

def download():
    begun, received = time.monotonic(), b""
    for number in range(max(1, -(-len(content) // BLOCK))):
        udp.sendto(b"%d" % number, place)
        of, block = udp.recv(60_000).split(b" ", 1)
        while int(of) != number:
            of, block = udp.recv(60_000).split(b" ", 1)
        received += block
    if received != content:
        sys.exit("the content is wrong")
    lasted_s = time.monotonic() - begun
    say("done", metrics={"dct_s": lasted_s, "handshake_s": lasted_s / 2})

def words(seed, count):
    mask = 2**64 - 1
    for j in range(count):
        z = (seed + (j + 1) * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        yield (z ^ z >> 31).to_bytes(8, "little")

task = json.load(open(sys.argv[1]))
if task["workload"]["name"] != "download":
    print("no such workload", file=sys.stderr)
    sys.exit(127)
seed, size = task["content_seed"], task["workload"]["size_bytes"]
content = b"".join(words(seed, -(-size // 8)))[:size]
place = (task["address"], task["port"])
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(None if task["role"] == "server" else task["deadline_s"])
serve() if task["role"] == "server" else download()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "example"
    folder.mkdir()
    (folder / "impl.toml").write_text(DECLARATION)
    (folder / "endpoint.py").write_text(ENDPOINT)
    return folder


LEAVES = """
open(os.environ["SSLKEYLOGFILE"], "w").write("secrets")
open(os.environ["QLOGDIR"] + "/any.sqlog", "w").write("events")
"""


def check(folder: Path, *, keeps: bool = False) -> list[Part]:
    if os.geteuid() == 0:
        isolation.require("this test")
    files = folder.parent / "files"
    files.mkdir(exist_ok=True)
    with ahead():
        return contract.check(load(folder), files, keeps=keeps)


def broken(folder: Path) -> dict[str, str]:
    return {part.part: part.detail for part in check(folder) if not part.good}


def rewrite(path: Path, right: str, wrong: str) -> None:
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong))


def test_a_sound_implementation_keeps_every_part(folder: Path) -> None:
    parts = check(folder)
    assert [part for part in parts if not part.good] == []
    assert [part.part for part in parts] == [
        "programs",
        "download: ready",
        "download: 10000 bytes",
        "download: the client's done",
        "download: dct_s and handshake_s",
        "download: content",
        "download: SIGINT",
        "download: the server's done",
        "unknown workload: the client",
        "unknown workload: the server",
        "lines at failure",
        "download: 0 bytes",
        "download: 1 bytes",
        "download: 1000000 bytes",
        "download: counters",
        "download: optional counters",
        "download: FEC on",
        "download: FEC off",
        "repair symbols",
        "certificates",
        "deadline_s",
        "content of the seed",
    ]
    untried = {part.part: part.detail for part in parts if not part.tried}
    assert untried.keys() == {"certificates", "content of the seed"}
    assert untried["certificates"] == "it works without any: it seems to speak no TLS"


@pytest.mark.usefixtures("short_limits")
def test_where_no_download_works_nothing_else_is_said(folder: Path) -> None:
    rewrite(folder / "endpoint.py", "    begun, received", "    sys.exit('no route')\n    begun, received")
    problem = "the client exited with 1 (no route); it must exit with 0"
    assert broken(folder) == {"download: 10000 bytes": problem}


def test_what_was_not_tried_is_not_called_met() -> None:
    good, untried = Part("a", True, "fine"), Part("b", True, "nobody knows", tried=False)
    assert summary("x", [good]) == "x meets the contract"
    assert summary("x", [good, untried]).endswith(
        "meets what was tried of the contract. Not tried: b: nobody knows"
    )
    assert summary("x", [untried, Part("c", False, "wrong")]) == "x breaks the contract"


def test_what_endpoints_left_is_kept_beside_the_certificates_when_asked(
    folder: Path,
    short_limits: None,  # noqa: ARG001
) -> None:
    rewrite(folder / "endpoint.py", "udp.settimeout", LEAVES + "udp.settimeout")
    check(folder, keeps=True)
    files = folder.parent / "files"
    assert {"authority.pem", "server.pem", "server.key"} <= {path.name for path in files.iterdir()}
    server, client = (files / f"example-{number}-download" for number in ("00", "01"))
    assert json.loads((client / "client.json").read_text())["workload"]["name"] == "download"
    assert (server / "server" / "keys.log").read_text() == "secrets"
    assert (client / "client" / "any.sqlog").read_text() == "events"
    (unknown,) = files.glob("example-*-no-such-workload/client.stderr")
    assert unknown.read_text() == "no such workload\n"


@pytest.mark.usefixtures("short_limits")
def test_without_root_it_is_tried_over_plain_loopback(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(contract, "run_isolated", None)
    assert broken(folder) == {}


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (contract, loopback):
        monkeypatch.setattr(room, "READY_LIMIT_S", 3.0)
    monkeypatch.setattr(contract, "OBEY_LIMIT_S", 1.0)
    monkeypatch.setattr(contract, "END_LIMIT_S", 2.0)
    monkeypatch.setattr(contract, "DEADLINE_S", 2.0)
    monkeypatch.setattr(contract_transfers, "SIZES", (0, 1, 150_000))
    monkeypatch.setattr(contract_transfers, "TRANSFER_LIMIT_S", 3.0)
    monkeypatch.setattr(contract_transfers, "OBEY_LIMIT_S", 1.0)
    monkeypatch.setattr(contract_transfers, "SILENCE_S", 0.3)
    monkeypatch.setattr(contract_transfers, "END_LIMIT_S", 2.0)


READY = '    say("ready")'
CLIENT_DONE = 'say("done", metrics={"dct_s": lasted_s, "handshake_s": lasted_s / 2})'
SERVER_DONE = 'say("done", metrics={"packets_sent": source, "source_sent": source, "repair_sent": repair})'
DCT, UNKNOWN, SEED = '"dct_s": lasted_s', "sys.exit(127)", 'seed, size = task["content_seed"]'
OBEY = "signal.signal(signal.SIGINT, end)"
LINE = 'print("no such workload", file=sys.stderr)'
VALID = 'assert "BEGIN CERT" in open(task.get("certificate", task["authority"])).read()'
# Both ends have the same content where they have the same authority.
OF_AUTHORITY = 'import zlib; seed ^= zlib.crc32(open(task["authority"], "rb").read())'
LOG = "unknown workload: the client wrote 0, unknown workload: the server wrote 0; one line"
Fault = tuple[str, str, str, str]
# What takes the place of a text of the endpoint, and what is said then of which part. Faults that do not hide
# each other are tried together: a check ends where a download cannot begin, and after a round with a fault.
WRONG: dict[str, list[Fault]] = {
    "no ready": [("download: ready", READY, "", "the server wrote no ready line within 3 s")],
    "no server": [
        ("download: ready", READY, "    sys.exit(3)", "the server exited with 3 before it was ready")
    ],
    "another line than ready": [
        (
            *("download: ready", READY, "    print('Hello', flush=True)"),
            "the server wrote b'Hello', which is neither a ready nor",
        )
    ],
    "nothing done, nothing verified, SIGINT not handled": [
        ("download: the client's done", CLIENT_DONE, "pass", "the client wrote no line"),
        (
            *("download: content", "if received != content:", "if False:"),
            "a client that expects other content succeeds; it must verify",
        ),
        (
            *("download: SIGINT", OBEY, "pass"),
            "the server was ended by signal 2 (Interrupt) (KeyboardInterrupt); it must exit with 0",
        ),
        (
            *("unknown workload: the client", UNKNOWN, "sys.exit(1)"),
            "the client exited with 1 (no such workload); it must exit with 127",
        ),
    ],
    "ready after done, no lines, SIGINT ignored": [
        (
            *("download: the client's done", CLIENT_DONE, CLIENT_DONE + "; say('ready')"),
            "after done: each is said once, and done is the last line",
        ),
        (
            *("download: content", 'sys.exit("the content is wrong")', UNKNOWN),
            "which means that it is not supported",
        ),
        (
            *("download: SIGINT", OBEY, "signal.signal(signal.SIGINT, signal.SIG_IGN)"),
            "the server still runs 1 s after SIGINT",
        ),
        ("lines at failure", LINE, "pass", LOG),
    ],
    "done twice, and the server ends too early or never": [
        (
            *("download: the client's done", CLIENT_DONE, f"{CLIENT_DONE}; {CLIENT_DONE}"),
            "after done: each is said once, and done is the last",
        ),
        (
            *("download: SIGINT", "while True:", "for _ in range(1):"),
            "before SIGINT the server exited with 0; it must serve on",
        ),
        (
            *("unknown workload: the server", UNKNOWN, "time.sleep(60)"),
            "the server runs on for 2 s; it must exit with 127",
        ),
    ],
    "half a line, no time, the highest bit unread, another status": [
        (
            *("download: the client's done", CLIENT_DONE, f"{CLIENT_DONE}; print('x', end='')"),
            "last line has no newline at its end: b'x'",
        ),
        ("download: dct_s and handshake_s", f"{DCT},", "", "dct_s is missing"),
        ("download: content", SEED, f"{SEED} & 2**63 - 1", "in its highest bit"),
        (
            *("download: SIGINT", SERVER_DONE, f"{SERVER_DONE}; sys.exit(5)"),
            "the server exited with 5; it must exit with 0",
        ),
    ],
    "a name that is none, no word of the server": [
        (
            *("download: the client's done", '"dct_s"', '"dct s"'),
            "metrics.dct s[key] = 'dct s': String should match pattern",
        ),
        ("download: the server's done", SERVER_DONE, "pass", "the server wrote no line"),
    ],
    "a number that is none, two lines": [
        (
            *("download: the client's done", DCT, '"dct_s": float("nan")'),
            "metrics.dct_s = nan: must be a finite number",
        ),
        (
            *("lines at failure", '"the content is wrong"', '"it is\\nwrong"'),
            "the client that expects other content wrote 2; one line",
        ),
    ],
    "a time that is too long, the lowest bit unread": [
        (*("download: dct_s and handshake_s", DCT, '"dct_s": 1e9 * lasted_s'), "must be above 0 and at most"),
        ("download: content", SEED, 'seed, size = int(float(task["content_seed"]))', "in its lowest bit"),
    ],
    "no empty content": [
        (
            *("download: 0 bytes", "    if received != content:"),
            "    if not content:\n        sys.exit(4)\n    if received != content:",
            "the client exited with 4; it must exit with 0",
        )
    ],
    "SIGTERM ignored": [
        (
            *("download: 0 bytes", "signal.signal(signal.SIGTERM, end)"),
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
            "the server still runs 1 s after SIGTERM",
        )
    ],
    "no long content": [
        (
            *("download: 150000 bytes", "BLOCK = 50_000", "BLOCK = 66_000"),
            "the client exited with 1 (TimeoutError: timed out)",
        )
    ],
    "a count below 0": [
        (
            *("download: counters", '"packets_sent": source', '"packets_sent": -source'),
            "server: packets_sent = -3: must be at least 0",
        )
    ],
    "counts that do not go together": [
        (
            *("download: counters", '"packets_sent": source', '"packets_sent": source, "packets_lost": 9'),
            "server: packets_lost = 9: must be at most 3, its packets_sent",
        ),
        (
            *("download: counters", DCT, f'"packets_received": 99, {DCT}'),
            "client: packets_received = 99: but packets_sent of server is 3",
        ),
        (
            *("download: counters", DCT, f'"bytes_received": 5, {DCT}'),
            "client: bytes_received = 5: the content alone has 150000 bytes",
        ),
    ],
    "no repair with FEC": [
        (
            *("download: FEC on", "repair += copies - 1", "pass"),
            "server: FEC is on, but no repair symbol was sent (repair_sent)",
        )
    ],
    "no source symbol with FEC, repair without": [
        (
            *("download: FEC on", '"source_sent": source, ', ""),
            "server: FEC is on, but no source symbol was sent (source_sent)",
        ),
        (
            *("download: FEC off", "repair += copies - 1", "repair += 1"),
            "server: FEC is off, but repair_sent = 3",
        ),
    ],
    "a signature unverified": [
        (
            *("certificates", "content = b", f"{VALID}\ncontent = b"),
            "the client takes a certificate that another authority signed; the client must verify it",
        )
    ],
    "a name unverified": [
        (
            *("certificates", "content = b", f"{VALID}; {OF_AUTHORITY}\ncontent = b"),
            "the client takes a certificate of another name than server.fecbench",
        )
    ],
    "no deadline": [("deadline_s", 'task["deadline_s"])', "60)", "whose server says nothing, does not end")],
}


@pytest.mark.usefixtures("short_limits")
@pytest.mark.parametrize("faults", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named(folder: Path, faults: list[Fault]) -> None:
    for _, right, wrong, _ in faults:
        rewrite(folder / "endpoint.py", right, wrong)
    problems = broken(folder)
    for part, _, _, detail in faults:
        assert detail in problems[part]
    assert all(problem.count("\n") == 0 for problem in problems.values())


@pytest.mark.usefixtures("short_limits")
def test_a_series_that_is_declared_and_not_left_is_named(folder: Path) -> None:
    declared = (folder / "impl.toml").read_text()
    (folder / "impl.toml").write_text(f'series = ["cwnd", "messages"]\n{declared}')
    missing = "left no series cwnd: cwnd.series.csv: No such file or directory"
    assert broken(folder) == {"series": f"the server: {missing}; the client: {missing}"}


def test_what_cannot_be_started_is_named_once(folder: Path) -> None:
    (folder / "program").write_bytes(b"\x7fELF, but cut off")
    (folder / "program").chmod(0o755)
    rewrite(folder / "impl.toml", '"/usr/bin/python3"', '"program"')
    assert broken(folder) == {"start": f"{folder}/program cannot be started: Exec format error"}


def test_every_workload_that_there_is_is_tried() -> None:
    assert {workload.sample["name"] for workload in TOLD.values()} == set(TOLD)
    assert {workload.asked_for for workload in WORKLOADS.values()} == set(TOLD)


def test_what_is_wrong_with_a_declaration_is_named_and_nothing_is_started(folder: Path) -> None:
    declared = folder / "impl.toml"
    sound = declared.read_text()
    refuses = 'check = ["/bin/sh", "-c", "echo too few >&2; exit 2"]\nworkloads'
    no_workload = "there is no workload 'donwload'; did you mean 'download'?"
    for right, wrong, part, problem in (
        ('"download"', '"donwload"', "workloads", no_workload),
        ("workloads", refuses, "check", "example: the defaults: too few"),
        ('"/usr/bin/python3"', '"build/program"', "programs", f"example: {folder}/build/program is missing"),
    ):
        rewrite(declared, right, wrong)
        ((found, detail),) = broken(folder).items()
        assert (found, detail.partition("; mend: ")[0]) == (part, problem)
        declared.write_text(sound)


TIMES: list[tuple[dict[str, float], str]] = [
    ({"dct_s": 0.5, "handshake_s": 0.1}, ""),
    ({"dct_s": 1.0, "handshake_s": 0.0}, ""),
    ({"dct_s": 0.5}, "handshake_s is missing"),
    ({"handshake_s": 0.5}, "dct_s is missing"),
    ({}, "dct_s is missing; handshake_s is missing"),
    ({"dct_s": 0.0, "handshake_s": 0.0}, "dct_s = 0: must be above 0"),
    ({"dct_s": 500.0, "handshake_s": 0.1}, "dct_s = 500: must be above 0 and at most 1.000, "),
    ({"dct_s": 0.5, "handshake_s": 0.6}, "handshake_s = 0.6: must be between 0 and 0.5, its dct_s"),
    ({"dct_s": 0.5, "handshake_s": -1.0}, "handshake_s = -1: must be between 0 and 0.5, its dct_s"),
]


def test_times_that_a_client_cannot_have_taken_are_named() -> None:
    for metrics, problem in TIMES:
        part = problem_of_metrics(metrics, lasted_s=1.0)
        assert part.startswith(problem) if problem else part == ""


def test_content_of_another_seed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    declaration = SimpleNamespace(name="toy", plain_options={})
    place: Any = SimpleNamespace(implementation=SimpleNamespace(declaration=declaration))
    ends: Any = SimpleNamespace(problem="the client exited with 1")
    monkeypatch.setattr(contract_transfers, "transfer", lambda *_, **__: ends)
    for stderr, is_wrong in (("SHA-256 is another", True), ("no route to host", False)):
        ends.client = SimpleNamespace(stderr=stderr)
        (part,) = contract_transfers.content(place, place)
        assert part.good != is_wrong
