"""Campaigns over a path that the harness does not know: an emulated link between two namespaces."""

import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fecbench.results.store.database import Database
from fecbench.runners import authority
from fecbench.topologies.link import LinkSettings
from fecbench.topologies.topology import Host, build

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")

DESIGN = """
name = "over"
title = "Over a hidden path"
seed = 3
topology = "field"
repetitions = 2
timeout_s = 20
[[workloads]]
name = "download"
size_bytes = 50_000
[[variants]]
label = "off"
implementation = "noq-fec"
options = { scheme = "none" }
baseline = true
[[variants]]
label = "rlc"
implementation = "noq-fec"
options = { scheme = "rlc" }
"""
PORT = 4477
FECBENCH = (str(Path(sys.executable).with_name("fecbench")),)


@dataclass
class Hidden:
    """Two hosts and their path."""

    client: Host
    server: Host
    folder: Path
    design: Path

    @property
    def papers(self) -> Path:
        return self.folder / "papers"

    def serve(self) -> "subprocess.Popen[str]":
        """Start the far host, and wait until it listens."""
        words = ["field", "serve", "--listen", f"{self.server.address}:{PORT}", "--certificates"]
        command = [*FECBENCH, *words, str(self.papers)]
        process = self.server.popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr and "listens at" in process.stderr.readline()
        return process

    def command(
        self, *more: str, papers: Path | None = None, port: int = PORT, db: str = "db.sqlite"
    ) -> list[str]:
        where = ["--server", f"{self.server.address}:{port}", "--path", "hidden"]
        kept = ["--certificates", str(papers or self.papers), "--db", str(self.folder / db)]
        return [*FECBENCH, "run", str(self.design), "--engine", "field", *where, *kept, *more]

    def run(
        self, *more: str, papers: Path | None = None, port: int = PORT, db: str = "db.sqlite"
    ) -> tuple[int, str]:
        """Run a campaign; its status and what it said on standard error."""
        command = self.command(*more, papers=papers, port=port, db=db)
        process = self.client.popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        said, told = process.communicate(timeout=120)
        return process.returncode, told + said


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hidden]:
    folder = tmp_path_factory.mktemp("hidden")
    authority.write(folder / "papers")
    authority.write(folder / "foreign")
    design = folder / "over.toml"
    design.write_text(DESIGN)
    with build("single-path", {"internet": LinkSettings.symmetric(20, 10)}) as topology:
        topology.start()
        yield Hidden(topology.client, topology.server, folder, design)


@pytest.fixture(scope="module")
def served(hidden: Hidden) -> Iterator[Hidden]:
    process = hidden.serve()
    try:
        yield hidden
    finally:
        process.terminate()
        process.communicate(timeout=10)


def test_a_campaign_is_run_block_by_block_judged_and_told(served: Hidden) -> None:
    status, told = served.run()
    assert "2 blocks" in told and "On the path “hidden”" in told, told
    with Database.open(str(served.folder / "db.sqlite")) as database:
        (campaign,) = database.campaigns()
        assert (campaign.engine, campaign.provenance["field"]["path"]) == ("field", "hidden")
        records = [stored.record for stored in database.trials(campaign.id)]
    # A busy machine may make any of them invalid; it makes none of them anything else.
    assert status == (0 if {record.state for record in records} == {"ok"} else 1)
    assert {record.state for record in records} <= {"ok", "invalid"}, [record.reason for record in records]
    blocks: dict[int, list[tuple[str, int, str]]] = {}
    for record in sorted(records, key=lambda record: record.started_at):
        path = record.checks["path"]
        blocks.setdefault(record.key.repetition, []).append(
            (path["block"], path["place"], record.key.variant)
        )
        assert 19.5 < path["least_rtt_ms"] < 40, path
    assert list(blocks) == [0, 1]
    for block in blocks.values():
        assert [place for _, place, _ in block] == [0, 1]
        assert len({name for name, _, _ in block}) == 1
        assert {variant for _, _, variant in block} == {"off", "rlc"}


def test_strangers_get_nothing_and_disturb_nothing(served: Hidden) -> None:
    status, told = served.run(papers=served.folder / "foreign", db="foreign.sqlite")
    assert status == 1 and "another authority" in told.splitlines()[-1], told
    noise = textwrap.dedent(f"""
        import os, socket
        place = ("{served.server.address}", {PORT})
        heard = 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.settimeout(0.001)
            for _ in range(1000):
                for deed in (lambda: datagrams.sendto(os.urandom(1000), place), lambda: datagrams.recv(2000)):
                    try:
                        answer = deed()
                        heard += len(answer) if isinstance(answer, bytes) else 0
                    except OSError:
                        pass
        with socket.create_connection(place) as stream:
            try:
                for _ in range(1000):
                    stream.sendall(os.urandom(1000))
            except OSError:
                pass
        print(heard)
    """)
    process = served.client.popen([sys.executable, "-c", noise], stdout=subprocess.PIPE, text=True)
    heard, _ = process.communicate(timeout=60)
    assert heard == "0\n"
    status, told = served.run("--filter", "repetition=0", "--campaign", "after")
    assert "2 of 4 trials" in told, told


def test_a_network_that_blocks_udp_is_named(served: Hidden) -> None:
    relay = textwrap.dedent(f"""
        import socket, threading
        listener = socket.create_server(("{served.server.address}", {PORT + 1}))
        print("ready", flush=True)
        def pass_on(source, target):
            while content := source.recv(65536):
                target.sendall(content)
            target.shutdown(socket.SHUT_WR)
        while True:
            near, _ = listener.accept()
            far = socket.create_connection(("{served.server.address}", {PORT}))
            for ends in ((near, far), (far, near)):
                threading.Thread(target=pass_on, args=ends, daemon=True).start()
    """)
    process = served.server.popen([sys.executable, "-c", relay], stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline()
    status, told = served.run(port=PORT + 1, db="blocked.sqlite")
    process.kill()
    assert status == 1 and "TCP passes and UDP does not" in told.splitlines()[-1], told


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--most-bytes", "100kB"], "--most-bytes"),
        (["--link", "wire"], "no emulated link"),
        (["--path", ""], "needs --path"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_sent(
    served: Hidden, more: list[str], why: str
) -> None:
    status, told = served.run(*more, db="refused.sqlite")
    assert status == 2 and why in told.splitlines()[-1], told


@pytest.mark.slow
def test_a_server_that_is_killed_costs_its_block_alone(hidden: Hidden) -> None:
    server = hidden.serve()
    command = hidden.command("--campaign", "killed", db="killed.sqlite")
    process = hidden.client.popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    for line in process.stderr:
        if line.startswith("[1/"):
            os.killpg(server.pid, 9)
            server.wait()
            time.sleep(1)
            server = hidden.serve()
            break
    told = process.stderr.read()
    process.wait()
    server.terminate()
    server.communicate(timeout=10)
    assert told.count("the server was lost") >= 1, told
    with Database.open(str(hidden.folder / "killed.sqlite")) as database:
        (campaign,) = database.campaigns()
        states = database.states(campaign.id)
    assert len(states) == 4
    assert sum(key.repetition == 1 and state == "ok" for key, (state, _) in states.items()) >= 1


def test_the_port_of_another_program_is_refused(hidden: Hidden) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [*FECBENCH, "field", "serve", "--listen", place, "--certificates", str(hidden.papers)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2 and "cannot listen there" in ended.stderr
