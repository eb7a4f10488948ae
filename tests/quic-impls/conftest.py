"""The common parts of tests of endpoints: endpoints over loopback, and an assignment for them.

A test module says by NAME, or by a fixture `name`, which implementation its `endpoints` are of.
"""

import csv
import functools
import json
import math
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from fecbench.dropper.loss_model import LossModel
from fecbench.runners.implementations import build
from fecbench.runners.implementations.finding import ours
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.implementations.toolchains import TOOLCHAINS
from fecbench.runners.trial import certificates
from tests.support.live import Broadcasts
from tests.support.once import made_once
from tests.support.simulations import NOTHING, OF_SERVERS, Simulator, Tasks

LIMIT_S = 90
COUNTERS = {
    *("packets_sent", "packets_received", "bytes_sent", "bytes_received"),
    *("source_sent", "repair_sent", "source_received", "repair_received"),
    *("packets_recovered", "recovered_spurious", "repair_useless", "recovered_late", "recovered_in_time"),
}
OF_ACKNOWLEDGEMENTS = {"packets_lost", "losses_declared", "spurious_losses", "smoothed_rtt_ms"}
OF_TCP = {
    *("packets_sent", "packets_received", "packets_lost", "spurious_losses", "bytes_sent", "bytes_received"),
    *("smoothed_rtt_ms", "waited_for_window_s", "waited_for_buffer_s"),
}
UNACKNOWLEDGED = ("udp",)
"""The implementations whose senders are told nothing."""


def part_of_end(role: str, assignment: dict[str, Any]) -> dict[str, Any]:
    """Return the part of the assignment that one end gets, as in trials."""
    return {key: value for key, value in assignment.items() if role == "server" or key not in OF_SERVERS}


class Endpoint:
    """A running endpoint."""

    def __init__(self, command: list[str], environment: dict[str, str], counters: set[str]) -> None:
        """`counters` are those that it must report."""
        self._counters = counters
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def event(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        event: dict[str, Any] = json.loads(self.process.stdout.readline())
        return event

    def end(self) -> tuple[int, list[dict[str, Any]], str]:
        """Exit code, remaining events and standard error."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err

    def metrics(self, unmeasured: Set[str] = frozenset()) -> dict[str, float]:
        """Return the metrics of an endpoint that has to succeed: all of the contract but the unmeasured."""
        code, events, err = self.end()
        assert (code, err) == (0, "")
        assert [event["event"] for event in events] == ["done"]
        metrics: dict[str, float] = events[0]["metrics"]
        assert metrics.keys() >= self._counters - unmeasured
        assert metrics.keys().isdisjoint(unmeasured)
        return metrics

    def failure(self) -> str:
        """Standard error, one line, of an endpoint that has to fail."""
        code, events, err = self.end()
        assert (code, events, err.count("\n")) == (1, [], 1)
        return err


class Endpoints:
    """Endpoints of one implementation."""

    def __init__(self, implementation: Implementation) -> None:
        self._implementation = implementation
        name = implementation.declaration.name
        self._counters = COUNTERS | (set() if name in UNACKNOWLEDGED else OF_ACKNOWLEDGEMENTS)
        if name == "tcp":
            self._counters = OF_TCP

    def _start(
        self, command: list[str], environment: dict[str, str], without: frozenset[str] = frozenset()
    ) -> Endpoint:
        return Endpoint(command, environment, self._counters - without)

    def call(self, *arguments: object) -> Endpoint:
        """An endpoint with any arguments."""
        return self._start([*self._implementation.command("server"), *map(str, arguments)], {})

    def start(
        self, role: Literal["client", "server"], assignment: dict[str, Any], **environment: str
    ) -> Endpoint:
        """An endpoint with an assignment, which names the options that are not the default.

        Its log folder is below that of the assignment, and has its role's name.
        """
        log_folder = Path(assignment["log_folder"]) / role
        log_folder.mkdir(exist_ok=True)
        options = self._with_defaults(assignment["options"])
        own = {"role": role, "options": options, "log_folder": str(log_folder)}
        # noq-fec's safe knows of those source symbols that repair named, and tells no 0.
        names_packets = options.get("controller") == "safe" and options.get("scheme") != "none"
        without = frozenset({"source_received"} if names_packets else ())
        path = log_folder.with_suffix(".json")
        path.write_text(json.dumps(part_of_end(role, {**assignment, **own})))
        return self._start([*self._implementation.command(role), str(path)], environment, without)

    def _with_defaults(self, options: dict[str, Any]) -> dict[str, Any]:
        return {**self._implementation.options({}, "defaults"), **options}

    def check(self, options: dict[str, Any]) -> Endpoint:
        """The implementation, asked whether it takes these options and else the defaults."""
        command = self._implementation.check_command()
        assert command is not None
        return self._start([*command, json.dumps(self._with_defaults(options))], {})

    @contextmanager
    def serving(self, assignment: dict[str, Any], **environment: str) -> Iterator[Endpoint]:
        """A server that is ready."""
        server = self.start("server", assignment, **environment)
        try:
            assert server.event() == {"event": "ready"}
            yield server
        finally:
            server.process.kill()
            server.process.communicate()

    def transfer(
        self, assignment: dict[str, Any], **environment: str
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Metrics of a client and a server that both succeed."""
        with self.serving(assignment, **environment) as server:
            client = self.start("client", assignment, **environment).metrics()
            assert 0 < client["handshake_s"] <= client["dct_s"]
            server.process.send_signal(signal.SIGTERM)
            return client, server.metrics()


class Exchanges:
    """Carries out exchanges of messages in virtual time, with a folder for the tables of each."""

    mbps, owd_s = 20, 0.025
    """Rate and delay of the link, both ways."""
    seeds: ClassVar = {"up": 5, "down": 6}
    """Seeds of its losses."""

    def __init__(self, name: str, folder: Path, identity: dict[str, str]) -> None:
        self.name = name
        self._folder = folder
        self._identity = identity
        # What these tests count are repair symbols of fixed codes.
        self._usual = {"controller": "constant"} if name == "noq-fec" else {}

    def task(
        self, workload: dict[str, Any], model: LossModel | None = None, number: int = 1, **options: Any
    ) -> dict[str, Any]:
        folder = self._folder / str(number)
        for role in ("client", "server"):
            (folder / role).mkdir(parents=True, exist_ok=True)
        return Tasks(self.name, self._identity, folder, made=number - 1)(
            workload,
            mbps=self.mbps,
            owd_ms=1000 * self.owd_s,
            up=model or NOTHING,
            down=model or NOTHING,
            seeds=self.seeds,
            queue={"queue_packets": 200},
            series=["messages"],
            **{**self._usual, **options},
        )

    def answers(self, tasks: Sequence[dict[str, Any]]) -> list[bytes]:
        """The answers of one simulator, as they are."""
        with Simulator(self.name) as simulator:
            return [simulator.line(task) for task in tasks]

    def carry_out(self, *tasks: dict[str, Any]) -> list[dict[str, Any]]:
        """The answers to tasks whose endpoints have to succeed."""
        answers = [json.loads(line) for line in self.answers(tasks)]
        for answer in answers:
            assert "error" not in answer, answer
            for end in answer["endpoints"].values():
                assert (end["exit_code"], end["stderr"]) == (0, "")
        return answers

    def tables(self, tasks: Sequence[dict[str, Any]]) -> list[str]:
        """The text of the tables of both ends of each."""
        logs = (Path(end["log_folder"]) for task in tasks for end in task["pairs"][0].values())
        return [(folder / "messages.series.csv").read_text() for folder in logs]

    def rows(self, task: dict[str, Any], end: Literal["sender", "receiver"]) -> list[dict[str, float]]:
        """The table of one end."""
        sends = {"up": "client", "down": "server"}[task["pairs"][0]["client"]["workload"]["direction"]]
        role = sends if end == "sender" else {"client": "server", "server": "client"}[sends]
        path = Path(task["pairs"][0][role]["log_folder"]) / "messages.series.csv"
        with path.open(newline="") as file:
            return [
                {column: float(value) for column, value in row.items()}
                for row in csv.DictReader(file, strict=True)
            ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of stacks that `make build-all` builds, where it has not."""
    left_out = [item for item in items if item.get_closest_marker("on_demand") and is_unbuilt(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def is_unbuilt(item: pytest.Item) -> bool:
    """Whether the stack that a test is of, its parameter `name`, is not there."""
    assert isinstance(item, pytest.Function)
    return lacks_programs(item.callspec.params["name"])


@functools.cache
def lacks_programs(name: str) -> bool:
    return bool(ours().find(name, "tests").missing_programs())


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return str(request.module.NAME)


@pytest.fixture
def exchanges(
    name: str, endpoints_of: Callable[[str], Endpoints], identity: dict[str, str], tmp_path: Path
) -> Exchanges:
    endpoints_of(name)  # it is built
    return Exchanges(name, tmp_path, identity)


@pytest.fixture
def broadcasts(name: str, identity: dict[str, str], tmp_path: Path) -> Broadcasts:
    assert name == "moq"
    return Broadcasts(tmp_path, identity)


@pytest.fixture(scope="session")
def endpoints_of(shared_folder: Path) -> Callable[[str], Endpoints]:
    """Endpoints of an implementation, which is built here, once a session. Skips the test without its
    toolchain."""

    @functools.cache
    def endpoints_of(name: str) -> Endpoints:
        implementation = ours().find(name, "tests")
        if (needed := implementation.declaration.toolchain) and not TOOLCHAINS[needed].is_recent:
            pytest.skip(f"{name} {TOOLCHAINS[needed].problem}")

        def build_and_note(note: Path) -> None:
            build.build(implementation)
            note.touch()

        made_once(shared_folder / f"{name}.built", build_and_note)
        return Endpoints(implementation)

    return endpoints_of


@pytest.fixture
def endpoints(name: str, endpoints_of: Callable[[str], Endpoints]) -> Endpoints:
    return endpoints_of(name)


@pytest.fixture
def simulator(name: str, endpoints_of: Callable[[str], Endpoints]) -> Iterator[Simulator]:
    endpoints_of(name)  # it is built
    with Simulator(name) as simulator:
        yield simulator


@pytest.fixture
def tasks(name: str, identity: dict[str, str], tmp_path: Path) -> Tasks:
    return Tasks(name, identity, tmp_path)


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A server's name and certificate, as in an assignment."""
    folder = tmp_path_factory.mktemp("certificates")
    certificates.write(folder, "server.fecbench")
    files = {"certificate": "server.pem", "private_key": "server.key", "authority": "authority.pem"}
    return {"server_name": "server.fecbench", **{key: str(folder / name) for key, name in files.items()}}


@pytest.fixture
def rows_of(tmp_path: Path) -> Callable[[Literal["client", "server"], str], list[dict[str, float]]]:
    """The rows of a series that an endpoint with the fixture `assignment` has left; all values are finite."""

    def rows_of(role: Literal["client", "server"], series: str) -> list[dict[str, float]]:
        with (tmp_path / role / f"{series}.series.csv").open(newline="") as file:
            rows = [
                {column: float(value) for column, value in row.items()}
                for row in csv.DictReader(file, strict=True)
            ]
        assert all(math.isfinite(value) for row in rows for value in row.values())
        return rows

    return rows_of


@pytest.fixture
def assignment(identity: dict[str, str], tmp_path: Path) -> dict[str, Any]:
    """An assignment for a client and a server: a download of 1000 bytes with default options."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {
        "version": 1,
        "address": "127.0.0.1",
        "port": port,
        "workload": {"name": "download", "size_bytes": 1000},
        "content_seed": 2**64 - 1,
        "options": {},
        "log_folder": str(tmp_path),
        "deadline_s": 60.0,
        **identity,
    }
