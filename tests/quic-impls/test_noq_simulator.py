"""noq-fec's simulator: whole trials in virtual time (quic-impls/contract/simulators.md)."""

import base64
import csv
import json
import shutil
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
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
from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import GilbertElliott, Uniform
from fecbench.runners.implementations.finding import ours
from fecbench.runners.trial import certificates
from fecbench.runners.trial.competition import INTERVAL_S
from fecbench.runners.trial.signed_certificates import NOT_AFTER, NOT_BEFORE
from tests.support.simulations import (
    FILLING,
    NOTHING,
    OVERHEAD_BYTES,
    SEEDS,
    Answer,
    Simulator,
    Task,
    Tasks,
    check_conserved,
    download,
    exits,
    metrics,
    upload,
    way,
    with_changes,
)

NAME = "noq-fec"

SCHEMES = list(map(str, ours().find("noq-fec", "tests").declaration.options["scheme"].choices or []))
QEMU = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")


def competing(tasks: Tasks, size_bytes: int, background_bytes: int = 10**9, **chosen: Any) -> Task:
    batch = tasks(download(size_bytes), queue={"queue_bytes": 75_000}, **chosen)
    others = replace(tasks, logs=tasks.logs / "background")
    background = others.pair(download(background_bytes), address="10.0.4.2", series=chosen.get("series", ()))
    return {**batch, "pairs": [*batch["pairs"], background], "filling": FILLING}


# ---- The same line, the same answer ----


def test_congestion_controls_differ(simulator: Simulator, tasks: Tasks) -> None:
    controls = tasks.implementation.declaration.options["congestion_control"].choices or []
    batch = [
        {**tasks(download(300_000), down=Uniform(0.02), congestion_control=control), "number": 1}
        for control in controls
    ]
    assert len(set(map(simulator.line, batch))) == len(controls)


@pytest.mark.skipif(not QEMU, reason="needs qemu-x86_64 of Debian's qemu-user or qemu-user-static")
def test_another_processor_comes_to_the_same(simulator: Simulator, tasks: Tasks) -> None:
    """This processor has special instructions neither for cryptography nor for vectors."""
    with Simulator("noq-fec", str(QEMU), "-cpu", "qemu64") as another:
        for scheme in SCHEMES:
            batch = tasks(download(200_000), down=Uniform(0.03), scheme=scheme)
            assert another.line(batch) == simulator.line(batch)


def test_a_certificate_whose_handshakes_differ_in_length_is_refused(
    simulator: Simulator, tasks: Tasks, tmp_path: Path
) -> None:
    for signing, own, what in (("ec", "ed25519", "authority's"), ("ed25519", "ec", "certificate's")):
        files = certified(tmp_path, KEYS[own](), KEYS[signing](), NOT_AFTER)
        error = simulator.error(with_changes(tasks(), **files))
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
    simulator: Simulator, tasks: Tasks, tmp_path: Path
) -> None:
    key = Ed25519PrivateKey.generate()
    files = certified(tmp_path, key, key, NOT_BEFORE + timedelta(days=1))
    assert exits(simulator.answer(with_changes(tasks(), **files))) == {"client": 0, "server": 0}


# ---- The link ----


def test_the_handshake_takes_a_round_trip_and_two_full_datagrams_with_42_bytes_each_on_the_link(
    simulator: Simulator, tasks: Tasks
) -> None:
    answer = simulator.answer(tasks(mbps=10, owd_ms=20))
    full_s = 8 * (1200 + OVERHEAD_BYTES) / 10e6
    assert metrics(answer)["handshake_s"] == pytest.approx(0.04 + 2 * full_s, abs=1e-8)


# ---- Endpoints ----


def test_each_scheme_protects_and_recovers(simulator: Simulator, tasks: Tasks) -> None:
    for scheme, workload in product(SCHEMES, (download(300_000), upload(300_000))):
        lossy = {"up": Uniform(0.03), "down": Uniform(0.03)}
        answer = simulator.answer(tasks(workload, **lossy, scheme=scheme, controller="constant"))
        sender, receiver = metrics(answer, "server"), metrics(answer)
        if workload["name"] == "upload":
            sender, receiver = receiver, sender
        fec = [sender["source_sent"], sender["repair_sent"], receiver["packets_recovered"]]
        assert all(fec) if scheme != "none" else not any(fec)


def test_the_metrics_are_those_of_the_real_endpoint(
    simulator: Simulator, tasks: Tasks, endpoints_of: Callable[[str], Any], assignment: dict[str, Any]
) -> None:
    client, server = endpoints_of("noq-fec").transfer({**assignment, "options": {"controller": "tail"}})
    answer = simulator.answer(tasks(controller="tail"))
    assert list(metrics(answer)) == list(client)
    assert list(metrics(answer, "server")) == list(server)


def test_a_client_that_has_more_time_than_the_trial_is_ended_with_it(
    simulator: Simulator, tasks: Tasks
) -> None:
    answer = simulator.answer({**tasks(download(10**7), down=Uniform(0.02)), "timeout_s": 0.5})
    assert answer["timed_out"]
    assert answer["client_s"] == 0.5
    assert exits(answer) == {"client": 1, "server": 0}


def test_a_server_that_refuses_its_assignment_has_no_client(simulator: Simulator, tasks: Tasks) -> None:
    for changes, code in (
        ({"workload": {"name": "page"}}, 127),
        ({"options": {"scheme": "xor", "n": 9, "k": 3, "controller": "constant"}}, 2),
        ({"deadline_s": -1}, 2),
    ):
        answer = simulator.answer(with_changes(tasks(), **changes))
        assert exits(answer) == {"server": code}
        assert not answer["endpoints"]["server"]["ready"]
        assert answer["endpoints"]["server"]["stderr"].startswith("noq-fec: ")
        assert answer["client_s"] is None


def test_a_client_that_expects_other_content_or_trusts_another_authority_fails(
    simulator: Simulator, tasks: Tasks, tmp_path: Path
) -> None:
    certificates.write(tmp_path, "server.fecbench")
    for changes, message in (
        ({"content_seed": 1}, "byte 0 is not that of the content"),
        ({"authority": str(tmp_path / "authority.pem")}, "handshake"),
    ):
        task = tasks()
        task["pairs"][0]["client"] |= changes
        answer = simulator.answer(task)
        assert exits(answer)["client"] == 1
        assert message in answer["endpoints"]["client"]["stderr"]
        assert not answer["timed_out"]


def test_processors_delay_what_is_sent_by_just_what_they_take(simulator: Simulator, tasks: Tasks) -> None:
    batch = tasks(download(1000))
    none = metrics(simulator.answer(batch))
    handshake = metrics(
        simulator.answer({**batch, "processor": {"handshake_ns": 1_000_000, "datagram_ns": 0}})
    )
    # The server's TLS before its first answer, and the client's before its second flight, with the request.
    assert handshake["handshake_s"] == pytest.approx(none["handshake_s"] + 0.001, abs=1e-9)
    assert handshake["dct_s"] == pytest.approx(none["dct_s"] + 0.002, abs=1e-9)
    datagram = metrics(simulator.answer({**batch, "processor": {"handshake_ns": 0, "datagram_ns": 50_000}}))
    # The client's first datagram, and the server's answer to it.
    assert datagram["handshake_s"] == pytest.approx(none["handshake_s"] + 0.0001, abs=1e-5)


def test_the_initial_window_in_bytes_takes_the_place_of_that_in_packets(
    simulator: Simulator, tasks: Tasks
) -> None:
    packets, as_many, papers, fewer = (
        metrics(simulator.answer(tasks(scheme="none", **options)))["dct_s"]
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


def test_slow_start_with_another_pace_takes_less_time(simulator: Simulator, tasks: Tasks) -> None:
    paces: list[dict[str, str]] = [{"slow_start_pacing": "2"}, {"slow_start_pacing": "1.25"}, {}]
    fast, slow, usual = (metrics(simulator.answer(tasks(scheme="none", **pace)))["dct_s"] for pace in paces)
    assert fast < slow == usual


# ---- Two pairs ----


def test_the_foreground_begins_in_a_full_link_and_each_transfers_part_is_measured(
    simulator: Simulator, tasks: Tasks
) -> None:
    answer = simulator.answer(competing(tasks, 1_000_000))
    assert exits(answer) == {"client": 0, "server": 0, "background_client": 1, "background_server": 0}
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
    arrived = client["packets_received"] - client["packets_recovered"] + client["repair_received"]
    frames = client["bytes_received"] + OVERHEAD_BYTES * arrived
    assert 8e-6 * frames / answer["client_s"] == pytest.approx(rates[0], rel=0.01)


def test_a_background_that_ends_first_is_told(simulator: Simulator, tasks: Tasks) -> None:
    answer = simulator.answer(competing(tasks, 2_000_000, background_bytes=2_000_000))
    assert exits(answer)["background_client"] == 0
    assert not answer["background_lasted"]
    assert answer["competition"] is not None
    answer = simulator.answer(competing(tasks, 2_000_000, background_bytes=1000))
    assert list(exits(answer)) == ["server", "background_client", "background_server"]
    assert not answer["background_lasted"]
    assert answer["competition"] is None
    assert not answer["timed_out"]


def test_one_time_limit_is_for_both_transfers(simulator: Simulator, tasks: Tasks) -> None:
    batch = competing(tasks, 10**9)
    never_full = simulator.answer({**batch, "timeout_s": 0.9})
    assert (never_full["timed_out"], never_full["competition"]) == (True, None)
    assert "client" not in never_full["endpoints"]
    answer = simulator.answer({**batch, "timeout_s": 5.0})
    assert answer["timed_out"]
    assert answer["virtual_s"] == 5.0
    remaining_s = 5.0 - answer["competition"]["filling_s"]
    assert answer["client_s"] == pytest.approx(remaining_s)


# ---- Files ----


def test_what_endpoints_record_has_virtual_times_and_changes_nothing(
    simulator: Simulator, tasks: Tasks, tmp_path: Path
) -> None:
    without = simulator.answer(competing(tasks, 100_000))
    captures = tmp_path / "captures"
    batch = {**competing(tasks, 100_000, series=["cwnd"]), "capture": str(captures)}
    logs = [Path(end["log_folder"]) for ends in batch["pairs"] for end in ends.values()]
    for folder in (captures, *logs):
        folder.mkdir(parents=True)
    answer = simulator.answer(batch)
    assert answer == {**without, "number": batch["number"]}
    assert {str(path.relative_to(captures)) for path in captures.rglob("*.pcapng")} == {
        f"{folder}{role}.pcapng" for folder in ("", "background/") for role in ("client", "server")
    }
    for folder in logs:
        assert "CLIENT_HANDSHAKE_TRAFFIC_SECRET" in (folder / "keys.log").read_text()
        (trace,) = folder.glob("*.sqlog")
        times = [json.loads(record)["time"] for record in trace.read_text().split("\x1e")[2:]]
        with (folder / "cwnd.series.csv").open(newline="") as file:
            times_of_series = [float(row["t_s"]) for row in csv.DictReader(file)]
        for seconds in ([ms / 1e3 for ms in times], times_of_series):
            assert seconds == sorted(seconds)
            assert seconds[0] < 0.001
            assert 0.1 < seconds[-1] <= answer["virtual_s"]


@pytest.mark.parametrize("controller", ["tail", "safe"])
def test_the_losses_of_a_trial_can_be_imported_from_what_it_records(
    simulator: Simulator, tasks: Tasks, tmp_path: Path, controller: str
) -> None:
    """The captures of both sides tell what the loss model dropped; so does the sender's qlog but for the
    handshake, which loses nothing here."""
    # These losses spare the end of the connection, of which no sender learns.
    lossy = {"down": GilbertElliott(0.02, 0.3), "seeds": {**SEEDS, "down": 3}}
    batch = tasks(download(300_000), **lossy, capture=True, controller=controller)
    report = simulator.answer(with_changes(batch, log_folder=str(tmp_path)))["links"]["internet"]["down"]
    assert report["queue_dropped"] == 0
    dropped = unpack(base64.b64decode(report["bitmap"]), report["packets"])
    lost = recordings.read(tmp_path / "server.pcapng", tmp_path / "client.pcapng")
    assert lost.sum() > 3
    assert np.array_equal(lost, dropped[: lost.size])
    (trace,) = tmp_path.glob("*-server.sqlog")
    assert not dropped[:10].any()
    assert recordings.read(trace).sum() == lost.sum()


def test_a_replay_leaves_traces_of_the_same_names(simulator: Simulator, tasks: Tasks, tmp_path: Path) -> None:
    """The names are the first connection ID, which follows from the seed."""

    def traces(folder: Path, seed: int) -> set[str]:
        folder.mkdir()
        batch = with_changes({**tasks(seed=seed), "capture": str(folder)}, log_folder=str(folder))
        assert exits(simulator.answer(batch)) == {"client": 0, "server": 0}
        return {path.name for path in folder.glob("*.sqlog")}

    first, again, other = (traces(tmp_path / f"{n}", seed) for n, seed in enumerate((1, 1, 2)))
    assert len(first) == 2
    assert first == again
    assert not first & other


def test_a_file_that_cannot_be_written_is_told(simulator: Simulator, tasks: Tasks, tmp_path: Path) -> None:
    nowhere, task = "/proc/nonexistent", tasks(series=["cwnd"])
    answer = simulator.answer(with_changes(task, log_folder=nowhere))
    assert exits(answer) == {"client": 1, "server": 1}
    assert f"series cwnd: {nowhere}" in answer["endpoints"]["client"]["stderr"]
    for capture, logs, message in (
        (str(tmp_path), nowhere, f"{nowhere}/keys.log"),
        (nowhere, str(tmp_path), f"capture: {nowhere}"),
    ):
        assert message in simulator.error(with_changes({**task, "capture": capture}, log_folder=logs))


# ---- Tasks that are wrong ----


NO_TASKS: list[tuple[bytes, int | None]] = [
    (b"\n", None),
    (b"{}\n", None),
    (b"\xff\x00{\n", None),
    (b'{"number": 3}\n', 3),
    (b'{"number": -1, "version": 1}\n', None),
    (b"[" * 100_000 + b"\n", None),
]


def test_a_line_that_is_no_task_is_answered_and_harms_no_other(simulator: Simulator, tasks: Tasks) -> None:
    task = tasks()
    before = simulator.line(task)
    for line, number in NO_TASKS:
        answer = json.loads(simulator.line(line))
        assert (answer["number"], list(answer)) == (number, ["number", "error"])
        assert simulator.line(task) == before


WRONG_TASKS: list[tuple[dict[str, Any], str]] = [
    ({"version": 1, "links": 5}, "version: 1; this program knows version 2"),
    ({"pairs": []}, "pairs: 0"),
    ({"filling": FILLING}, "pairs: 1"),
    ({"links": {}}, "links: []"),
    ({"timeout_s": 0}, "timeout_s: 0"),
    ({"seed": -1}, "-1"),
    ({"unknown": 1}, "unknown"),
    ({"processor": {"handshake_ns": -1, "datagram_ns": 0}}, "-1"),
]


def test_a_task_that_is_wrong_is_refused_with_what_is_wrong(simulator: Simulator, tasks: Tasks) -> None:
    for changes, named in WRONG_TASKS:
        assert named in simulator.error({**tasks(), **changes})
    for changes, named in WRONG_LINKS:
        task = tasks(queue={"queue_bytes": 75_000})
        task["links"]["internet"]["down"] += changes
        assert named in simulator.error(task)
    ends = tasks()["pairs"][0]
    swapped = [{"client": ends["server"], "server": ends["server"]}]
    assert "the client is told that it is a server" in simulator.error({**tasks(), "pairs": swapped})
    ends["client"]["port"] = 4434
    assert "10.0.2.2:4434" in simulator.error({**tasks(), "pairs": [ends]})


WRONG_LINKS: list[tuple[str, str]] = [
    ("rate_bps 5\n", "links.internet.down: rate_bps is given twice"),
    ("queue_packets 5\n", "links.internet.down: two limits are given; a queue has one limit"),
    ("queue red\n", "links.internet.down: queue red: must be droptail, codel, pie, fq_codel or dualpi2"),
    ("p 2\n", "links.internet.down: p: given twice"),
    ("speed 9\n", "links.internet.down: speed is no name: must be one of rate_bps, delay_ns"),
    ("a\0b", "links.internet.down: a text has a zero in it"),
]
"""Some refused links; tests/topologies/test_written.py has all of them."""


# ---- Several links ----

WAYS = ("up", "down")
SERVER = "10.0.100.2"


def client_addresses(count: int) -> list[str]:
    return [f"10.0.{number}.2" for number in range(1, count + 1)]


def link(rate_mbps: float, owd_ms: float, number: int = 0, **models: LossModel) -> dict[str, str]:
    """Return both directions of a link; each has a seed of its own."""
    queue_bytes = max(round(1.5 * rate_mbps * 1e6 / 8 * 2 * owd_ms / 1e3), 10 * 1514)
    queue = {"queue_bytes": queue_bytes}
    return {w: way(rate_mbps, owd_ms, models.get(w, NOTHING), seed_of(number, w), **queue) for w in WAYS}


def seed_of(number: int, way: str) -> int:
    return 2**64 - 1 - 2 * number - WAYS.index(way)


def over(tasks: Tasks, links: list[dict[str, str]], workload: Any = None, **options: Any) -> Task:
    """A download over these links, with a path over each unless the options say otherwise."""
    task = with_changes(tasks(workload), address=SERVER, options={"paths": len(links), **options})
    task["links"] = {f"path{number}": one for number, one in enumerate(links, 1)}
    task["pairs"][0]["client"]["local_addresses"] = client_addresses(len(links))
    task["pairs"][0]["server"]["local_addresses"] = [SERVER]
    return task


def checked(answer: Answer) -> Answer:
    assert exits(answer) == {"client": 0, "server": 0}
    check_conserved(answer)
    return answer


@pytest.mark.parametrize("workload", ["download", "upload"])
def test_the_packets_that_the_oracle_names_are_lost_on_each_link(
    simulator: Simulator, tasks: Tasks, workload: str
) -> None:
    models: list[dict[str, LossModel]] = [
        {"up": Uniform(0.02), "down": GilbertElliott(0.02, 0.5)},
        {"up": GilbertElliott(0.02, 0.5), "down": Uniform(0.03)},
    ]
    links = [link(10, 20, number, **one) for number, one in enumerate(models)]
    answer = checked(simulator.answer(over(tasks, links, {"name": workload, "size_bytes": 600_000})))
    for number, of_link in enumerate(models):
        for direction, model in of_link.items():
            report = answer["links"][f"path{number + 1}"][direction]
            verdicts = dropper_model.verdicts(model, seed_of(number, direction), report["packets"])
            assert base64.b64decode(report["bitmap"]) == pack(verdicts)
            assert report["dropped"] == int(np.sum(verdicts))
        assert answer["links"][f"path{number + 1}"]["down" if workload == "download" else "up"]["dropped"] > 0


def test_what_an_end_has_sent_over_a_path_came_to_its_link(simulator: Simulator, tasks: Tasks) -> None:
    links = [link(10, 20, 0, down=Uniform(0.02)), link(5, 40, 1), link(20, 5, 2, up=Uniform(0.02))]
    answer = checked(simulator.answer(over(tasks, links, download(1_000_000), controller="constant")))
    for end, direction in (("client", "up"), ("server", "down")):
        counted = metrics(answer, end)
        for number in (1, 2, 3):
            report = answer["links"][f"path{number}"][direction]
            overhead = OVERHEAD_BYTES * report["frames_in"]
            assert counted[f"path{number}.bytes_sent"] + overhead == report["bytes_in"] > 0
        for name in ("packets_sent", "packets_lost", "bytes_sent", "source_sent", "repair_sent"):
            assert sum(counted[f"path{number}.{name}"] for number in (1, 2, 3)) == counted[name]
        recovered = sum(counted[f"path{number}.recovered"] for number in (1, 2, 3))
        assert recovered == counted["recovered_by_peer"]
    server = metrics(answer, "server")
    assert server["recovered_by_peer"] > 0
    assert min(server[f"path{number}.packets_sent"] for number in (1, 2, 3)) > 50


def test_two_equal_links_take_little_more_than_half_the_time_of_one(
    simulator: Simulator, tasks: Tasks
) -> None:
    links, took = [link(10, 25, 0), link(10, 25, 1)], {}
    for paths in (1, 2):
        batch = over(tasks, links, download(20_000_000), paths=paths, scheme="none")
        took[paths] = metrics(checked(simulator.answer(batch)))["dct_s"]
    assert took[1] / took[2] >= 1.8


def test_each_path_has_the_round_trip_time_of_its_link(
    simulator: Simulator, tasks: Tasks, tmp_path: Path
) -> None:
    """Messages of 8 packets, which take less than 1 ms of a link, turn by turn over the one and the other."""
    messages = {
        "name": "messages",
        "direction": "down",
        "delivery": "datagram",
        "deadline_ms": 100.0,
        "part_bytes": 1000,
        "timetable": [[33_333 * number, 8000] for number in range(150)],
    }
    options = {"congestion_control": "none", "scheduler": "round-robin", "scheme": "none"}
    for role in ("client", "server"):
        (tmp_path / role).mkdir()
    for owds in ((100, 10), (10, 100)):
        links = [link(100, owd_ms, number) for number, owd_ms in enumerate(owds)]
        measured = metrics(checked(simulator.answer(over(tasks, links, messages, **options))), "server")
        for number, owd_ms in enumerate(owds, 1):
            assert measured[f"path{number}.smoothed_rtt_ms"] == pytest.approx(2 * owd_ms, rel=0.1)
            assert measured[f"path{number}.packets_sent"] == pytest.approx(600, rel=0.1)


def test_a_short_download_is_over_before_the_second_path_carries_anything_of_it(
    simulator: Simulator, tasks: Tasks
) -> None:
    answer = checked(simulator.answer(over(tasks, [link(10, 20, 0), link(10, 20, 1)], download(10_000))))
    server = metrics(answer, "server")
    assert server["path1.source_sent"] > 5
    assert server["path2.source_sent"] == server["path2.repair_sent"] == 0


def test_with_one_path_the_first_link_carries_all_as_if_it_were_alone(
    simulator: Simulator, tasks: Tasks
) -> None:
    first, second = link(10, 20, 0, down=Uniform(0.02)), link(10, 20, 1)
    of_two = simulator.answer(over(tasks, [first, second], paths=1))
    of_one = simulator.answer(with_changes({**tasks(), "links": {"internet": first}}, address=SERVER))
    assert of_two["endpoints"] == of_one["endpoints"]
    assert of_two["links"]["path1"] == of_one["links"]["internet"]
    assert of_two["links"]["path2"]["up"]["frames_in"] == of_two["links"]["path2"]["down"]["frames_in"] == 0


def test_while_one_link_is_out_it_alone_takes_nothing_and_counts_that(
    simulator: Simulator, tasks: Tasks
) -> None:
    links = [link(10, 20, 0), link(10, 20, 1)]
    links[1]["down"] += "outage_ns 200000000 400000000\n"
    answer = checked(simulator.answer(over(tasks, links, download(2_000_000))))
    reports = {(name, w): one[w] for name, one in answer["links"].items() for w in WAYS}
    assert reports.pop(("path2", "down"))["outage_dropped"] > 0
    assert not any(report["outage_dropped"] for report in reports.values())


def test_each_end_captures_what_comes_to_each_link(
    simulator: Simulator, tasks: Tasks, tmp_path: Path
) -> None:
    for role in ("client", "server"):
        (tmp_path / role).mkdir()
    links = [link(10, 20, 0), link(10, 20, 1, down=Uniform(0.02))]
    batch = over(tasks, links, download(200_000))
    answer = checked(simulator.answer({**batch, "capture": str(tmp_path)}))
    sent = list(addresses_of(tmp_path / "server.pcapng"))
    for number, address in enumerate(client_addresses(2), 1):
        assert sent.count((SERVER, address)) == answer["links"][f"path{number}"]["down"]["frames_in"]
    to_server = {(address, SERVER) for address in client_addresses(2)}
    assert {pair for pair in sent if pair[0] != SERVER} == to_server


def test_paths_that_the_client_does_not_have_are_refused(simulator: Simulator, tasks: Tasks) -> None:
    for changes, code, line in (
        ({"paths": 3}, 127, "options.paths: 3 paths from 2 local_addresses is not supported"),
        ({"paths": 4}, 2, "options.paths: 4 is not an integer in 1 to 3"),
    ):
        task = over(tasks, [link(10, 20, 0), link(10, 20, 1)])
        task["pairs"][0]["client"]["options"] |= changes
        client = simulator.answer(task)["endpoints"]["client"]
        assert (client["exit_code"], client["stderr"]) == (code, f"noq-fec: {line}\n")


def test_a_server_without_further_paths_is_served_over_the_first(simulator: Simulator, tasks: Tasks) -> None:
    task = over(tasks, [link(10, 20, 0), link(10, 20, 1)])
    task["pairs"][0]["server"]["options"]["paths"] = 1
    assert checked(simulator.answer(task))["links"]["path2"]["up"]["frames_in"] == 0


def test_links_that_no_topology_has_are_refused(simulator: Simulator, tasks: Tasks) -> None:
    for names, addresses, named in (
        (["path1", "path3"], 2, "links: ['path1', 'path3']"),
        (["internet", "path1"], 2, "links: ['internet', 'path1']"),
        (["path1", "path2"], 3, "3 local_addresses, of 2 links"),
    ):
        task = over(tasks, [link(10, 20, 0), link(10, 20, 1)])
        task["links"] = dict(zip(names, task["links"].values(), strict=True))
        task["pairs"][0]["client"]["local_addresses"] = client_addresses(addresses)
        assert named in simulator.error(task).replace('"', "'")


def addresses_of(capture: Path) -> Iterator[tuple[str, str]]:
    """Source and destination of each packet: they are 54 bytes behind the start of its block."""
    blocks = capture.read_bytes()
    while blocks:
        kind, size = struct.unpack_from("=II", blocks)
        if kind == 6:
            yield socket.inet_ntoa(blocks[54:58]), socket.inet_ntoa(blocks[58:62])
        blocks = blocks[size:]
