"""A scheduler, workers and a campaign over TLS: what comes of it is what comes of one host."""

import json
import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.results.store.records import Claimant, Group
from tests.results.conftest import postgresql, postgresql_folder  # noqa: F401 - fixtures
from tests.runners.conftest import Fecbench, WriteDesign
from tests.runners.engines.conftest import HERE
from tests.support.campaigns import only_campaign

FOLDER = ("--implementations", HERE)
END_S, LIMIT_S = 60, 500
HOSTS = ("ada", "bob")


@contextmanager
def running(until: str, *arguments: object, within: Sequence[str] = ()) -> Iterator["subprocess.Popen[str]"]:
    """A command of fecbench in the background, once it has said so."""
    command = [*within, Fecbench.path, *map(str, arguments)]
    with subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            said = next((line for line in process.stderr if until in line), None)
            assert said is not None, f"{command} ended with {process.wait()}"
            yield process
        finally:
            process.terminate()
            try:
                process.communicate(timeout=END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def on_host(name: str) -> list[str]:
    """Runs a command under another name of this machine."""
    if os.geteuid() != 0:
        return []
    return ["unshare", "--uts", "--", "sh", "-c", f'hostname {name} && exec "$@"', "sh"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster") / "papers"
    made = subprocess.run(
        [Fecbench.path, "cluster", "certificates", folder], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture(scope="module")
def scheduler(papers: Path) -> Iterator[str]:
    address = f"tls://127.0.0.1:{free_port()}"
    with running("listens", "cluster", "scheduler", address, "--certificates", papers):
        yield address


@pytest.fixture
def digest(fecbench: Fecbench) -> Callable[[object], str]:
    def digest(database: object) -> str:
        shown = fecbench("show", "--db", database, "--digest")
        assert shown.returncode == 0, shown.stderr
        return shown.stdout

    return digest


def test_a_campaign_of_two_workers_comes_to_the_same_as_at_home(
    scheduler: str,
    papers: Path,
    made_up: WriteDesign,
    fecbench: Fecbench,
    postgresql: str,  # noqa: F811
    tmp_path: Path,
    digest: Callable[[object], str],
) -> None:
    design = made_up(repetitions=20)
    cluster = ("--cluster", scheduler, "--certificates", papers)
    worker = ("worker", scheduler, "--certificates", papers, "--jobs", 1, *FOLDER)
    virtual = ("--engine", "virtual", *FOLDER)
    with (
        running("connected", *worker, within=on_host(HOSTS[0])),
        running("connected", *worker, within=on_host(HOSTS[1])),
    ):
        ran = fecbench("run", design, *virtual, "--db", postgresql, *cluster)
        assert ran.returncode == 0, ran.stderr
        assert "workers at the scheduler: 2" in ran.stderr
        resumed = fecbench("run", design, *virtual, "--db", postgresql, *cluster, "--resume", "--json")
        assert json.loads(resumed.stdout)["states"] == {"ok": 120}
    alone = tmp_path / "x.sqlite"
    assert fecbench("run", design, *virtual, "--db", alone).returncode == 0
    assert digest(postgresql) == digest(alone)
    with only_campaign(postgresql) as (database, campaign):
        assert database.claims(campaign.id) == {}
        assert {attempts for _, attempts in database.states(campaign.id).values()} == {1}
    shown = fecbench("show", "--hosts", "--json", "--db", postgresql)
    (of_campaign,) = json.loads(shown.stdout)["campaigns"]
    assert sum(host["done"] for host in of_campaign["hosts"]) == 120
    if os.geteuid() == 0:
        assert {host["host"] for host in of_campaign["hosts"]} <= set(HOSTS)


def test_an_interrupt_ends_a_campaign_whose_workers_give_up_their_claims(
    scheduler: str,
    papers: Path,
    made_up: WriteDesign,
    postgresql: str,  # noqa: F811
    fecbench: Fecbench,
) -> None:
    """First that of the worker, then that of whoever runs the campaign: the same command goes on."""
    reach = (scheduler, "--certificates", papers)
    worker = ("worker", *reach, "--jobs", 1, *FOLDER)
    design = made_up("sleeps", repetitions=30)  # 4.5 s for one worker, at least
    run = ("run", design, "--engine", "virtual", *FOLDER, "--db", postgresql, "--cluster", *reach)
    with running("connected", *worker) as one, running("[", *run) as ran:
        for process in (one, ran):
            process.send_signal(signal.SIGINT)
            _, words = process.communicate(timeout=LIMIT_S)
            assert process.returncode == 128 + signal.SIGINT
            assert words.splitlines()[-1] == "fecbench: ended by SIGINT: what was finished is kept"
            if process is one:
                assert claims_in(postgresql) == {}
    with only_campaign(postgresql) as (database, campaign):
        kept = database.trial_count(campaign.id)
        assert 0 < kept < 180
    with running("connected", *worker):
        ended = fecbench(*run, "--resume")
    assert ended.returncode == 0, ended.stderr
    assert f"{180 - kept} trials to run, {kept} of 180 are there already" in ended.stderr
    assert claims_in(postgresql) == {}


def claims_in(url: str) -> dict[Group, Claimant]:
    with only_campaign(url) as (database, campaign):
        return dict(database.claims(campaign.id))


def test_a_scheduler_that_ends_leaves_no_temporary_file(
    papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    address = f"tls://127.0.0.1:{free_port()}"
    with running("listens", "cluster", "scheduler", address, "--certificates", papers):
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_whoever_shows_no_certificate_is_not_let_in(scheduler: str) -> None:
    anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    host, port = scheduler.removeprefix("tls://").split(":")
    with (
        socket.create_connection((host, int(port)), END_S) as plain,
        anyone.wrap_socket(plain) as secured,
        pytest.raises(ssl.SSLError, match="certificate required"),
    ):
        secured.recv(1)


def test_whoever_has_certificates_of_another_cluster_is_refused_in_one_line(
    scheduler: str, fecbench_here: Callable[..., Any], made_up: WriteDesign, tmp_path: Path
) -> None:
    others = tmp_path / "others"
    assert fecbench_here("cluster", "certificates", others).returncode == 0
    reach = (scheduler, "--certificates", others)
    for command in (
        ("worker", *reach),
        ("run", made_up(), "--engine", "virtual", "--db", "postgresql://a@b/c", *FOLDER, "--cluster", *reach),
    ):
        ended = fecbench_here(*command)
        assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1), ended
        assert "its certificate is of another authority" in ended.stderr


REFUSED: list[tuple[Sequence[str], str]] = [
    (("--db", "x.sqlite"), "must be postgresql://"),
    (("--db", "postgresql://ada:secret@host/x"), "~/.pgpass"),
    (("--db", "postgresql://ada@host/x", "--jobs", "2"), "fecbench worker --jobs 2"),
    (("--db", "postgresql://ada@host/x", "--keep", "all", "/tmp/kept"), "leave it out"),
]


def test_options_that_do_not_serve_several_hosts_are_refused(
    fecbench_here: Callable[..., Any], made_up: WriteDesign
) -> None:
    for options, why in REFUSED:
        cluster = ("--cluster", "tcp://127.0.0.1:1", "--insecure", *FOLDER)
        ended = fecbench_here("run", made_up(), "--engine", "virtual", *cluster, *options)
        assert why in ended.stderr, options
        assert "secret" not in ended.stderr, options
        assert ended.returncode == 2, options


def test_options_of_a_cluster_alone_are_refused_without_one(
    fecbench_here: Callable[..., Any], made_up: WriteDesign
) -> None:
    assert "--cluster ADDRESS" in fecbench_here("run", made_up(), "--insecure", *FOLDER).refusal()


def test_what_dask_is_given_of_ours_is_the_name_of_one_function_and_a_text() -> None:
    from distributed.protocol.pickle import dumps

    from fecbench.runners.cluster import dask_side

    pickled = dumps(dask_side.take_part)
    assert b"fecbench.runners.cluster.dask_side" in pickled
    assert len(pickled) < 100, "it is sent by value"
