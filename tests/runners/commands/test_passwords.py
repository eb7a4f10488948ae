"""The password of a database's URL is in no list of processes, in no error line, and with no endpoint."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from tests.support.campaigns import new_campaign, trial

SECRET = "s3cret"


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that accepts connections, and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(60)
        yield server


@pytest.mark.parametrize(
    "option",
    [
        "--db postgresql://me:s3cret@127.0.0.1:{port}/db",
        "--db=postgresql://127.0.0.1:{port}/db?user=me&password=s3cret",
    ],
)
def test_the_list_of_processes_has_no_password(fecbench: Any, silent: socket.socket, option: str) -> None:
    arguments = option.format(port=silent.getsockname()[1]).split()
    process = subprocess.Popen(
        [fecbench.path, "show", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()  # which it says when it is hidden
        listed = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        output = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(process.pid)], capture_output=True)
    finally:
        process.kill()
        process.wait()
    assert "~/.pgpass" in line
    assert b"show\0" in listed
    assert SECRET.encode() not in listed + output.stdout
    assert SECRET not in line


def test_a_url_without_a_password_stays_as_it_was_typed(fecbench: Any, silent: socket.socket) -> None:
    url = f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/db"
    process = subprocess.Popen(
        [fecbench.path, "show", "--db", url], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        with silent.accept()[0]:  # still open when the process is killed, which would complain otherwise
            assert url.encode() in Path(f"/proc/{process.pid}/cmdline").read_bytes()
            process.kill()
    finally:
        process.kill()
        _, line = process.communicate()
    assert line == b""


URLS = [
    "postgresql://me:s3cret@127.0.0.1:1/db",
    "postgresql://me:s3cret@127.0.0.1:notaport/db",
    "postgresql://127.0.0.1:1/db?user=me&password=s3cret",
    "postgresql://me:a/s3cret@127.0.0.1:1/db",
    "postgresql://me:a@s3cret@127.0.0.1:1/db",
    "postgresql://me:s3cret%2@127.0.0.1:1/db",
    "postgresql://me:s3cret'\"\\s3cret@127.0.0.1:1/db",
    "postgresql://me:s3cret@127.0.0.1:1/db?sslmode=nonsense",
    "postgres://me:s3cret@127.0.0.1:1/db",
    "mysql://me:s3cret@127.0.0.1/db",
]


def test_no_error_line_has_a_password(fecbench_here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in URLS:
        monkeypatch.setenv("FECBENCH_DB", url)
        assert SECRET not in fecbench_here("show").refusal()
        monkeypatch.delenv("FECBENCH_DB")
        for words in (["--db"], ["-v", "--db"], []):  # the last as if it were a trial
            result = fecbench_here("show", *words, url)
            assert (result.returncode, result.stdout) == (2, "")
            assert SECRET not in result.stderr


CASES: list[tuple[str, ...]] = [
    ("plan",),
    ("explain", "--db"),
    ("report", "--output", "x", "--db"),
    ("export", "--output", "x.csv", "--db"),
    ("aa", "between", "one", "two", "--db"),
    ("replay", "1", "--output", "x", "--db"),
    ("implementations",),
    (),
]


def test_no_command_shows_a_password(
    fecbench_here: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for arguments in CASES:
        for url in URLS[:4]:
            monkeypatch.chdir(tmp_path)
            result = fecbench_here(*arguments, url)
            assert result.returncode in (1, 2)
            assert SECRET not in result.stdout + result.stderr


@pytest.mark.usefixtures("can_run_trials")
def test_what_endpoints_inherit_has_no_password(fecbench: Any, little_design: Path, tmp_path: Path) -> None:
    endpoint = tmp_path / "folders" / "curious"
    endpoint.mkdir(parents=True)
    (endpoint / "impl.toml").write_text(
        'name = "curious"\ntitle = "x"\nbuild = ["true"]\nworkloads = ["download"]\n'
        'server = ["curious.sh"]\nclient = ["curious.sh"]\n'
        '[options.scheme]\ntype = "string"\ndefault = "none"\nhelp = "x"\n'
        '[options.code_rate]\ntype = "number"\ndefault = 1\nhelp = "x"\n'
    )
    (endpoint / "curious.sh").write_text("#!/bin/sh\nenv | tr '\\n' ' ' >&2\nexit 3\n")
    (endpoint / "curious.sh").chmod(0o755)
    design = tmp_path / "curious.toml"
    design.write_text(little_design.read_text().replace('"rquic"', '"curious"'))
    database = tmp_path / "x.sqlite"
    ran = fecbench.run(
        *(design, database, "--implementations", endpoint.parent),
        *("--filter", "point=0", "--filter", "repetition=0", "--filter", "variant=off"),
        PGPASSWORD=SECRET,
        FECBENCH_URL=f"postgresql://me:{SECRET}@host/db",
    )
    assert ran.returncode == 1, ran.stderr
    reasons = [trial["reason"] for trial in fecbench.trials(database)]
    assert reasons
    assert all("PATH=" in reason and SECRET not in reason for reason in reasons)


def test_a_password_that_an_older_campaign_has_kept_is_shown_by_no_command(
    fecbench_here: Any, tmp_path: Path
) -> None:
    provenance = {"command": ["fecbench", "run", "--db", f"postgresql://host/db?user=me&password={SECRET}"]}
    database = tmp_path / "x.sqlite"
    with Database.open(str(database), create=True) as opened:
        campaign = opened.create_campaign(new_campaign("older", provenance=provenance))
        start = opened.start(campaign.id, "ada", provenance)
        opened.record(campaign.id, trial(TrialKey("off", "download-1", 0, 0)), start.id)
    for arguments in (("show", "--json"), ("show", 1, "--json"), ("show", 1)):
        result = fecbench_here(*arguments, "--db", database)
        assert result.returncode == 0, result.stderr
        assert SECRET not in result.stdout
        assert ("postgresql://me:***@host/db" in result.stdout) == ("--json" in arguments)
