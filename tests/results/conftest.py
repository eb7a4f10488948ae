"""Databases and campaigns for the tests of `results`; a PostgreSQL server of our own where there is one."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, NewCampaign, TrialKey, TrialRecord, Variant, Workload

SERVER_USER = "nobody"  # PostgreSQL refuses to run as root


def _programs() -> list[Path]:
    """The folders of PostgreSQL's programs, newest version last."""
    return sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))


@contextmanager
def _serve(
    *authentication: str | Path,
    options: str = "-c listen_addresses=''",
    files: Mapping[str, bytes] | None = None,
) -> Iterator[Path]:
    """A running server of our own, which listens on a UNIX socket in this folder, and where `options` say.

    `authentication` are arguments of initdb; `files` are put into the folder first, for the server alone.
    """
    programs = _programs()
    if not programs:
        pytest.skip("PostgreSQL's server is missing: apt-get install postgresql")
    # The path of a socket is limited to 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="fecbench-pg-", dir="/tmp"))
    as_server = {"user": SERVER_USER, "cwd": folder} if os.geteuid() == 0 else {"cwd": folder}
    for name, content in (files or {}).items():
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(content)
    if os.geteuid() == 0:
        for path in (folder, *folder.iterdir()):
            os.chown(path, pwd.getpwnam(SERVER_USER).pw_uid, -1)
    data, log = folder / "data", folder / "log"
    initdb = [programs[-1] / "initdb", "-D", data, "-U", "fecbench", "-E", "UTF8", "--no-sync"]
    subprocess.run([*initdb, *authentication], check=True, capture_output=True, **as_server)
    control = [programs[-1] / "pg_ctl", "-D", data, "-w"]
    # A server that is killed leaves its shared memory: in its folder, not in the machine's.
    own = f"-c unix_socket_directories={folder} -c fsync=off -c dynamic_shared_memory_type=mmap"
    start = [*control, "-l", log, "-o", f"{own} {options}", "start"]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL, **as_server)
    try:
        yield folder
    finally:
        stop = [*control, "-m", "immediate", "stop"]
        subprocess.run(stop, check=True, capture_output=True, **as_server)
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def serve_postgresql() -> Callable[..., AbstractContextManager[Path]]:
    """Runs a PostgreSQL server: `_serve`."""
    return _serve


_ENDS = ExitStack()
"""The end of the server of this process."""


@cache
def _server() -> Path:
    return _ENDS.enter_context(_serve("-A", "trust"))


@pytest.fixture(scope="session")
def postgresql_folder() -> Iterator[Path]:
    """A running server that listens on a UNIX socket in this folder only. Modules elsewhere take this fixture
    for themselves, and the same server. It ends with the last test: then a worker has seconds to live."""
    yield _server()
    _ENDS.close()


def new_postgresql(folder: Path) -> str:
    """The URL of a new, empty database of the server that listens in this folder."""
    name = f"test_{secrets.token_hex(8)}"
    subprocess.run([_programs()[-1] / "createdb", "-h", folder, "-U", "fecbench", name], check=True)
    return f"postgresql://fecbench@/{name}?host={folder}"


@pytest.fixture
def postgresql(postgresql_folder: Path) -> str:
    """The URL of a new, empty PostgreSQL database."""
    return new_postgresql(postgresql_folder)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The path of an SQLite database that does not exist yet."""
    return str(tmp_path / "campaigns.sqlite")


either = pytest.mark.parametrize("address", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def address(request: pytest.FixtureRequest) -> str:
    """The address of a new database: a file, or each kind in turn for tests marked with `either`."""
    return str(request.getfixturevalue(getattr(request, "param", "sqlite")))


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    with Database.open(address, create=True) as opened:
        yield opened


@pytest.fixture
def campaign(database: Database) -> CampaignInfo:
    return create_campaign(database)


VARIANTS = [
    Variant(label="rquic-off", implementation="rquic", options={"scheme": "none"}, baseline=True),
    Variant(label="rquic-xor", implementation="rquic", options={"scheme": "xor"}, baseline=False),
]


def create_campaign(database: Database, name: str = "demo", **changes: Any) -> CampaignInfo:
    """Two points, two variants, two workloads: `changes` replaces fields."""
    fields: dict[str, Any] = {
        "design_text": 'name = "demo"\n',
        "seed": 2**64 - 1,
        "provenance": {"git": "0123abc", "kernel": None, "cpus": 2},
        "points": [{"bandwidth_mbps": 1.5, "owd_ms": 20}, {"bandwidth_mbps": 8.0, "owd_ms": 100}],
        "variants": VARIANTS,
        "workloads": [
            Workload(label="download-10000", name="download", parameters={"size_bytes": 10_000}),
            Workload(label="download-2000", name="download", parameters={"size_bytes": 2_000}),
        ],
        "repetitions": 1000,
        "statistic": "median",
        "title": "Does FEC help?",
    }
    return database.create_campaign(NewCampaign(name=name, **(fields | changes)))


@pytest.fixture
def new_campaign() -> Callable[..., CampaignInfo]:
    return create_campaign


def make_record(
    repetition: int = 0, state: str = "ok", variant: str = "rquic-off", **fields: object
) -> TrialRecord:
    return TrialRecord(
        **{
            "key": TrialKey(variant, "download-10000", 0, repetition),
            "state": state,
            "reason": "" if state == "ok" else f"it was {state}",
            "started_at": "2026-01-02T03:04:05+00:00",
            "duration_s": 1.5,
            "metrics": {"client": {"dct_s": 0.25, "packets_sent": 12.0}},
            **fields,
        }
    )


@pytest.fixture
def make() -> Callable[..., TrialRecord]:
    """Make a record of one trial of `create_campaign`."""
    return make_record


@pytest.fixture
def filled(sqlite: str) -> Iterator[Callable[..., tuple[Database, CampaignInfo]]]:
    """Make a new campaign that holds these outcomes: key → (state, DCT in seconds)."""
    with Database.open(sqlite, create=True) as database:

        def fill(
            outcomes: Mapping[TrialKey, tuple[str, float]], **changes: Any
        ) -> tuple[Database, CampaignInfo]:
            campaign = create_campaign(database, f"campaign-{len(database.campaigns())}", **changes)
            records = []
            for key, (state, dct_s) in outcomes.items():
                metrics = {"client": {"dct_s": dct_s}, "server": {"packets_sent": 7.0}}
                records.append(make_record(key=key, state=state, metrics=metrics))
            database.record_all(campaign.id, records)
            return database, campaign

        yield fill


@pytest.fixture
def variants_without_baseline() -> list[Variant]:
    return [Variant(**(variant | {"baseline": False})) for variant in VARIANTS]
