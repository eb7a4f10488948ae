"""A password is refused in a URL, and no endpoint gets one of the environment."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.declarations import declare, option

SECRET = "s3cret"


URLS = [
    "postgresql://me:s3cret@127.0.0.1:1/db",
    "postgresql://127.0.0.1:1/db?user=me&password=s3cret",
    "postgresql://me:a/s3cret@127.0.0.1:1/db",
    "postgresql://me:s3cret%2@127.0.0.1:1/db",
    "postgresql://me:s3cret'\"\\s3cret@127.0.0.1:1/db",
    "mysql://me:s3cret@127.0.0.1/db",
]
CASES: list[tuple[str, ...]] = [
    ("plan",),
    ("show", "--db"),
    ("show", "-v", "--db"),
    ("run", "demo", "--db"),
    ("aa", "between", "one", "two", "--db"),
    ("worker", "tls://host:1", "--db"),
    (),
]


def test_every_command_refuses_a_password_in_a_line_that_names_pgpass(
    fecbench_here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url in URLS:
        for arguments in CASES:
            line = fecbench_here(*arguments, url).refusal()
            assert SECRET not in line
            assert "~/.pgpass" in line
        monkeypatch.setenv("FECBENCH_DB", url)
        line = fecbench_here("show").refusal()
        assert SECRET not in line
        assert "~/.pgpass" in line
        monkeypatch.delenv("FECBENCH_DB")


@pytest.mark.usefixtures("can_run_trials")
def test_what_endpoints_inherit_has_no_password(fecbench: Any, little_design: Path, tmp_path: Path) -> None:
    options = {"scheme": option("none"), "code_rate": option(1.0)}
    endpoint = declare(tmp_path / "folders" / "curious", "curious.sh", options=options)
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
