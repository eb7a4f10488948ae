"""The far host: strangers get nothing of it and disturb nothing, and a network without UDP is named."""

import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fecbench.results.store.records import TrialKey
from fecbench.runners import authority
from fecbench.runners.commands.console.over_path import of_field
from fecbench.runners.engines.engine import EngineError
from fecbench.runners.field.client_session import OrderRefusal, Session
from fecbench.runners.field.connection import Connection, ConnectionLost, Place, context
from fecbench.runners.field.field_engine import FieldEngine
from fecbench.runners.implementations.finding import ours
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.task import EndpointTask, PairTask, Task
from tests.support import needs

FECBENCH = str(Path(sys.executable).with_name("fecbench"))
HOME = "127.0.0.1"


def task(timeout_s: float = 20.0, size_bytes: int = 1000, implementation: str = "noq-fec") -> Task:
    end = EndpointTask(implementation=implementation, options={})
    demand, workload = Demand(down_bytes=size_bytes), {"name": "download", "size_bytes": size_bytes}
    pair = PairTask(client=end, server=end, workload=workload, demand=demand)
    return Task(
        **{"topology": "field", "backend": "field", "links": {}, "seeds": {"content": 1}},
        **{"pairs": [pair], "completion": "dct_s", "timeout_s": timeout_s},
    )


@dataclass
class Far:
    """A host that serves at this machine's own address."""

    place: Place
    papers: Path
    foreign: Path

    @property
    def tls(self) -> ssl.SSLContext:
        return context(self.papers, server=False)

    def session(self) -> Session:
        return Session(self.place, self.tls, ["noq-fec"])


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    folder = tmp_path_factory.mktemp("far")
    authority.write(folder / "papers")
    authority.write(folder / "foreign")
    with socket.create_server((HOME, 0)) as free:
        place = Place(HOME, free.getsockname()[1])
    words = ["field", "serve", "--listen", str(place), "--certificates", str(folder / "papers")]
    limits = ["--transfer-bytes", "5000", "--transfer-s", "30", "--hourly", "100"]
    process = subprocess.Popen([FECBENCH, *words, *limits], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr and "listens at" in process.stderr.readline()
        yield Far(place, folder / "papers", folder / "foreign")
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_a_million_bytes_of_noise_and_a_foreign_paper_get_nothing_and_disturb_nothing(far: Far) -> None:
    answered_bytes = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(0.0001)
        for _ in range(1000):
            with contextlib.suppress(OSError):
                datagrams.sendto(os.urandom(1000), (HOME, far.place.port))
            with contextlib.suppress(OSError):
                answered_bytes += len(datagrams.recv(2048))
    with socket.create_connection((HOME, far.place.port)) as stream, contextlib.suppress(OSError):
        for _ in range(1000):
            stream.sendall(os.urandom(1000))
    silent = socket.create_connection((HOME, far.place.port))  # says nothing, and holds up nobody
    forged = context(far.foreign, server=False)
    forged.verify_mode = ssl.CERT_NONE
    with pytest.raises(ConnectionLost, match=r"refused|broke|closed"):
        connection = Connection.to(far.place, forged)
        connection.send({"order": "hello", "implementations": []})
        answered_bytes += len(str(connection.receive(5)))
    with pytest.raises(ConnectionLost, match="another authority"):
        Connection.to(far.place, context(far.foreign, server=False))
    assert answered_bytes == 0
    session = far.session()
    train = session.train(0.1)
    session.close()
    silent.close()
    assert train.answered_ms and train.outside == HOME


@pytest.mark.parametrize(
    ("order", "why"),
    [
        (task(size_bytes=5001), "a transfer of 5001 bytes: at most 5000"),
        (task(timeout_s=31), "timeout_s = 31: at most 30"),
        (task(implementation="none-such"), "none-such"),
        (task().model_copy(update={"backend": "wire"}), "none of the field"),
    ],
)
def test_the_far_host_refuses_what_is_beyond_its_limits_and_goes_on(far: Far, order: Task, why: str) -> None:
    session = far.session()
    with pytest.raises(OrderRefusal, match=why):
        session.begin(order)
    assert session.train(0.05).answered_ms
    session.close()


def test_an_order_that_is_none_ends_its_session_alone(far: Far) -> None:
    for order in ({"order": "rm"}, {"order": "probe", "token": 7}, {"order": "transfer", "task": {"a": 1}}):
        connection = Connection.to(far.place, far.tls)
        connection.send(order)
        with pytest.raises(ConnectionLost):
            connection.receive(10)
        connection.close()
    far.session().close()


def test_a_network_that_blocks_udp_is_named(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((HOME, 0)) as listener:
        threading.Thread(target=relay, args=(listener, far.place.port), daemon=True).start()
        place = Place(HOME, listener.getsockname()[1])
        monkeypatch.setattr("fecbench.runners.field.client_session.ANSWERED_S", 0.2)
        engine = FieldEngine(
            place, far.tls, "home", {"noq-fec": ours().find("noq-fec", "")}, print, train_s=0.1
        )
        with engine, pytest.raises(EngineError, match="TCP passes and UDP does not"):
            list(engine.run([(TrialKey("plain", "download", 0, 0), task())]))


def relay(listener: socket.socket, port: int) -> None:
    """Pass TCP on, and no UDP."""
    near, _ = listener.accept()
    far_end = socket.create_connection((HOME, port))
    for source, target in ((near, far_end), (far_end, near)):
        threading.Thread(target=pass_on, args=(source, target), daemon=True).start()


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while content := source.recv(65536):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("local", "h:1", "", "", None), "--server h:1: is of --engine field"),
        (("field", "", "home", "", Path("x")), "needs --server"),
        (("field", "h:1", "", "", Path("x")), "needs --path"),
        (("field", "h:1", "home", "", None), "needs --certificates"),
        (("field", "h:1", "home", "", Path("absent")), "fecbench field certificates DIR"),
    ],
)
def test_options_of_a_path_go_together(options: tuple[str, str, str, str, Path | None], why: str) -> None:
    with pytest.raises(Refusal, match=why):
        of_field(*options)


def test_a_port_that_is_taken_is_refused(far: Far) -> None:
    with socket.create_server((HOME, 0)) as holder:
        place = f"{HOME}:{holder.getsockname()[1]}"
        command = [FECBENCH, "field", "serve", "--listen", place, "--certificates", str(far.papers)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2 and "cannot listen there" in result.stderr


pytestmark = needs.ROOT
