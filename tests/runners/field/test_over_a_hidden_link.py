"""Campaigns over a path that the harness does not know: an emulated link between two namespaces."""

import contextlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fecbench.checkout import REPOSITORY
from fecbench.dropper.command import Attachment, attach, detach
from fecbench.dropper.model import GilbertElliott, Uniform, markov
from fecbench.results.analysis import circle, dependent, path_probes
from fecbench.results.store.database import Database
from fecbench.runners import authority
from fecbench.topologies.link import DIRECTIONS, LinkSettings
from fecbench.topologies.topology import Host, Topology, build
from tests.support import needs
from tests.support.campaigns import only_campaign
from tests.support.designs import OFF, downloads, over_a_path, variant

pytestmark = needs.TRIALS

PORT = 4477
FECBENCH = (str(Path(sys.executable).with_name("fecbench")),)


@dataclass
class Hidden:
    """Two hosts and their path."""

    topology: Topology
    client: Host
    server: Host
    folder: Path
    design: Path

    @contextlib.contextmanager
    def without_a_cable(self) -> Iterator[None]:
        """Lose all packets of both directions meanwhile."""
        ends = [self.topology.exits["internet", direction] for direction in DIRECTIONS]
        where = [Attachment(end.netns_path, end.interface, "ingress") for end in ends]
        try:
            for attachment in where:
                attach(attachment, Uniform(1.0), 1)
            yield
        finally:
            for attachment in where:
                detach(attachment)

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
        self,
        *more: str,
        papers: Path | None = None,
        port: int = PORT,
        db: str = "db.sqlite",
        design: Path | None = None,
    ) -> list[str]:
        where = ["--server", f"{self.server.address}:{port}", "--path", "hidden"]
        rest = ["--certificates", str(papers or self.papers), "--db", str(self.folder / db)]
        return [*FECBENCH, "run", str(design or self.design), "--engine", "field", *where, *rest, *more]

    def run(
        self, *more: str, papers: Path | None = None, port: int = PORT, db: str = "db.sqlite"
    ) -> tuple[int, str]:
        """Run a campaign; its status and what it said on standard error."""
        command = self.command(*more, papers=papers, port=port, db=db)
        process = self.client.popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        output, text = process.communicate(timeout=120)
        return process.returncode, text + output


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hidden]:
    folder = tmp_path_factory.mktemp("hidden")
    authority.write(folder / "papers")
    design = folder / "over.toml"
    design.write_text(over_a_path("over", 2, 50_000))
    with build("single-path", {"internet": LinkSettings.symmetric(20, 10)}) as topology:
        topology.start()
        yield Hidden(topology, topology.client, topology.server, folder, design)


@pytest.fixture
def served(hidden: Hidden) -> Iterator[Hidden]:
    process = hidden.serve()
    try:
        yield hidden
    finally:
        process.terminate()
        process.communicate(timeout=10)


def test_a_campaign_is_run_block_by_block_judged_and_told(served: Hidden) -> None:
    status, text = served.run()
    assert "2 blocks" in text and "On the path “hidden”" in text, text
    with only_campaign(served.folder / "db.sqlite") as (database, campaign):
        assert (campaign.engine, campaign.provenance["field"]["path"]) == ("field", "hidden")
        records = [stored.record for stored in database.trials(campaign.id)]
        volleys = path_probes.volleys(database, campaign)
    assert len(volleys) == 2
    for volley in volleys:
        for direction in DIRECTIONS:
            sent_s, came_s = volley.of(direction)
            assert len(sent_s) == 100 and np.isfinite(came_s).sum() > 25  # the queue has room for so many
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
        assert path["ttl"] == {"up": 62, "down": 62} and path["mtu"] == 1500, path  # two routers between
        carried = path["hosts"]["client"]["received_bytes"], path["hosts"]["server"]["sent_bytes"]
        assert all(50_000 < count < 100_000 for count in carried), carried
    assert list(blocks) == [0, 1]
    for block in blocks.values():
        assert [place for _, place, _ in block] == [0, 1]
        assert len({name for name, _, _ in block}) == 1
        assert {variant for _, _, variant in block} == {"off", "rlc"}


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
    text = process.stderr.read()
    process.wait()
    server.terminate()
    server.communicate(timeout=10)
    assert text.count("the server was lost") >= 1, text
    with only_campaign(hidden.folder / "killed.sqlite") as (database, campaign):
        states = database.states(campaign.id)
    assert len(states) == 4
    assert sum(key.repetition == 1 and state == "ok" for key, (state, _) in states.items()) >= 1


@pytest.mark.slow
def test_a_cable_that_is_out_for_90_s_costs_its_block_alone(served: Hidden) -> None:
    command = served.command("--campaign", "unplugged", db="unplugged.sqlite")
    process = served.client.popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr
    for line in process.stderr:
        if line.startswith("[1/"):
            with served.without_a_cable():
                time.sleep(90)
            break
    _, text = process.communicate(timeout=200)
    told_lines = [line for line in text.splitlines() if "trying to reach it again" in line]
    assert len(told_lines) == 1 and "Traceback" not in text, text
    with only_campaign(served.folder / "unplugged.sqlite") as (database, campaign):
        states = {key: state for key, (state, _) in database.states(campaign.id).items()}
    assert len(states) == 4
    assert all(state == "invalid" for key, state in states.items() if key.repetition == 0) or (
        sum(state == "invalid" for key, state in states.items() if key.repetition == 0) == 1
    )


@contextlib.contextmanager
def another_address(host: Host) -> Iterator[str]:
    """Give a host's interface the next address of its network in place of its own meanwhile."""
    (interface,), own = host.interfaces, IPv4Address(host.address)

    def give(address: IPv4Address, instead_of: IPv4Address) -> None:
        gateway = ip_in(host, "-json", "route", "show", "default")
        ip_in(host, "address", "add", f"{address}/24", "dev", interface)
        ip_in(host, "address", "delete", f"{instead_of}/24", "dev", interface)
        ip_in(host, "address", "replace", f"{address}/24", "dev", interface)  # gone with its elder
        ip_in(host, "route", "replace", "default", "via", json.loads(gateway)[0]["gateway"])

    give(own + 7, own)
    try:
        yield str(own + 7)
    finally:
        give(own, own + 7)


def ip_in(host: Host, *words: str) -> str:
    command = ["nsenter", f"--net=/proc/{host.pid}/ns/net", "ip", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wait_for_line(process: "subprocess.Popen[str]", begin: str) -> None:
    """Read what a process says until a line begins so."""
    assert process.stderr and any(line.startswith(begin) for line in process.stderr), begin


def wait_for_bytes(host: Host, count: int) -> None:
    """Wait until so many bytes more have come to a host."""
    end = host.received_bytes() + count
    while host.received_bytes() < end:
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["transfer", "probes"])
def test_another_address_of_this_host_costs_its_block_alone(served: Hidden, place: str) -> None:
    """The change is in the middle of the second transfer, or among the probes before the second block."""
    design = served.folder / "long.toml"
    design.write_text(over_a_path("over", 3, 3_000_000))
    db = f"moved-{place}.sqlite"
    command = served.command("--campaign", "moved", db=db, design=design)
    process = served.client.popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for_line(process, "[1/" if place == "transfer" else "[2/")
    wait_for_bytes(served.client, 1_000_000 if place == "transfer" else 3000)
    with another_address(served.client) as address:
        _, text = process.communicate(timeout=200)
    why = f"this host has no longer the address {served.client.address}"
    lost_lines = [line for line in text.splitlines() if "trying to reach it again" in line]
    assert lost_lines == [f"note: the server was lost: {why}; trying to reach it again"], text
    assert "Traceback" not in text
    with only_campaign(served.folder / db) as (database, campaign):
        records = [stored.record for stored in database.trials(campaign.id)]
    records.sort(key=lambda record: record.started_at)
    (lost,) = [record for record in records if record.reason == f"the server was lost: {why}"]
    block = records.index(lost) // 2
    assert block == (0 if place == "transfer" else 1)
    # A busy machine may make any of them invalid; it makes none of them anything else.
    assert {record.state for record in records} <= {"ok", "invalid"}
    after = records[2 * block + 2 :]
    assert after and {record.checks["path"]["address"] for record in after} == {address}
    assert not any(record.checks["path"].get("changes") for record in after)


HIDDEN_LOSS = {"p": 0.002, "r": 0.5}
IN_THE_FIELD = {"topology": "field", "repetitions": 26}
IN_NAMESPACES = {
    "repetitions": 50,
    "constants": {
        "bandwidth_mbps": 20,
        "owd_ms": 10,
        "loss": {"up": {"model": "none"}, "down": {"model": "markov", **HIDDEN_LOSS}},
    },
}
ARMS = (
    OFF,
    variant("tail", scheme="rlc", controller="tail"),
    variant("twice", scheme="rlc", controller="constant", n=2, k=1),
)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_verdicts_are_those_of_namespaces_over_the_same_hidden_link(served: Hidden) -> None:
    """A code that sends everything twice harms a download that the rate limits."""
    in_field, in_namespaces = served.folder / "verdicts.toml", served.folder / "namespaces.toml"
    for design, network in ((in_field, IN_THE_FIELD), (in_namespaces, IN_NAMESPACES)):
        design.write_text(downloads("verdicts", 1_000_000, *ARMS, seed=5, timeout_s=20, **network))
    end = served.topology.exits["internet", "down"]
    where = Attachment(end.netns_path, end.interface, "ingress")
    attach(where, markov(**HIDDEN_LOSS), 1)
    try:
        command = served.command("--campaign", "hidden", db="verdicts.sqlite", design=in_field)
        process = served.client.popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
        text, _ = process.communicate(timeout=800)
    finally:
        detach(where)
    database = str(served.folder / "verdicts.sqlite")
    command = [*FECBENCH, "run", str(in_namespaces), "--campaign", "namespaces", "--db", database]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=800)
    assert {process.returncode, ran.returncode} <= {0, 1}, (text, ran.stderr)
    with Database.open(database) as opened:
        field, namespaces = opened.campaign("hidden"), opened.campaign("namespaces")
        assert field and namespaces, (text, ran.stderr)
        rows = {row.variant: row for row in circle.closed(opened, field, namespaces)[0]}
    print(*rows.values(), sep="\n")
    assert rows.keys() == {"tail", "twice"}, (text, ran.stdout)
    assert rows["twice"].field.low > 1 and rows["twice"].emulated.low > 1
    for row in rows.values():
        verdicts = {(ratio.low > 1) - (ratio.high < 1) for ratio in (row.field, row.emulated)}
        assert verdicts != {1, -1}, row
        width = math.log(row.quotient.high / row.quotient.low) / 2
        # Twice the interval of 95 %: chance is beyond that in 1 of 10,000 campaigns.
        assert abs(math.log(row.quotient.value)) < 2 * width, row


RUNS, BLOCKS_OF_RUN = int(os.environ.get("FECBENCH_EQUAL_ARMS_RUNS", "10")), dependent.FEWEST
STEADY = {0.0: markov(0.01, 0.4)}
STEP = {0.0: markov(0.005, 0.5), 0.5: markov(0.05, 0.4)}
WAVE = {place / 8: markov(0.04, 0.4) if place % 2 else markov(0.005, 0.5) for place in range(8)}


@pytest.mark.slow
@pytest.mark.parametrize("course", [STEADY, STEP, WAVE], ids=["steady", "step", "wave"])
def test_equal_arms_differ_in_5_of_100_runs(served: Hidden, course: dict[float, GilbertElliott]) -> None:
    """Losses down change at shares of each run of 20 blocks. FECBENCH_EQUAL_ARMS_RUNS=200 is the whole."""
    end = served.topology.exits["internet", "down"]
    where = Attachment(end.netns_path, end.interface, "ingress")
    changes = {round(share * BLOCKS_OF_RUN): model for share, model in course.items()}
    command = [sys.executable, "-m", "tests.runners.field.equal_arms", f"{served.server.address}:{PORT}"]
    command += [str(served.papers), str(RUNS * BLOCKS_OF_RUN)]
    process = served.client.popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    assert process.stdout
    logs = list[float]()
    try:
        for block in range(RUNS * BLOCKS_OF_RUN):
            if (model := changes.get(block % BLOCKS_OF_RUN)) is not None:
                attach(where, model, block + 1)
            line = process.stdout.readline().strip()
            logs.append(float(line) if line != "-" else math.nan)
    finally:
        process.kill()
        process.wait()
        detach(where)
    differing = 0
    for begin in range(0, len(logs), BLOCKS_OF_RUN):
        of_run = np.array(logs[begin : begin + BLOCKS_OF_RUN])
        low, high = dependent.mean_of(of_run[np.isfinite(of_run)]).interval(0.05)
        differing += not low <= 0 <= high
    print(f"{differing} of {RUNS} runs of {BLOCKS_OF_RUN} blocks say that equal arms differ")
    assert differing <= stats.binom.ppf(0.999, RUNS, 0.05), (differing, RUNS)
