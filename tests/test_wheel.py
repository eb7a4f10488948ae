"""A wheel plans and reads results without rights, programs or what only Linux has; what needs a lab refuses.

It is installed into an environment that has no other fecbench, and run in an empty folder.
"""

import json
import os
import shutil
import site
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

import fecbench as fecbench_package
from fecbench import designs
from fecbench.checkout import REPOSITORY
from fecbench.errors import BadInput
from fecbench.results.analysis.rules import FEWEST_POINTS
from fecbench.runners.commands.command_line import NEED_PROGRAMS, app
from fecbench.runners.implementations.finding import OWN
from tests.runners.commands.conftest import write_campaign
from tests.support import samples

PARTS = ("dropper", "topologies", "designs", "runners", "results")
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
# Whatever of these a module takes as it is loaded, macOS does not have.
ONLY_LINUX = """
import os, select, signal, socket, time
for module, names in (
    (os, "sched_getaffinity sched_setaffinity sched_setscheduler sched_param SCHED_FIFO SCHED_RR pidfd_open"),
    (os, "memfd_create eventfd unshare setns splice posix_fallocate O_TMPFILE"),
    (select, "epoll"),
    (signal, "SIGRTMIN SIGRTMAX SIGPWR SIGPOLL SIGSTKFLT sigtimedwait sigwaitinfo"),
    (socket, "AF_NETLINK AF_PACKET AF_VSOCK SO_MARK SO_BINDTODEVICE"),
    (time, "CLOCK_BOOTTIME CLOCK_TAI"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
"""
FEW_POINTS = 4
# Root without what makes it root.
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, built from a copy of what it is made of."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    ignored = shutil.ignore_patterns("build", "target", "__pycache__")
    shutil.copytree(REPOSITORY / "fecbench", source / "fecbench", symlinks=True, ignore=ignored)
    for part in (*PARTS, "quic-impls"):
        shutil.copytree(REPOSITORY / part, source / part, ignore=ignored)
    (source / "fecbench" / "commit.txt").write_text("0123456789abcdef0123 changed\n")  # as `make wheel` does
    built = subprocess.run(
        [sys.executable, "-c", BUILD, source], cwd=source, check=True, capture_output=True, text=True
    )
    return source / built.stdout.split()[-1]


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and with the libraries that this one has."""
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", python)
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    # Only as paths: that of the editable installation is not followed.
    (packages / "libraries.pth").write_text("\n".join(site.getsitepackages()))
    (packages / "sitecustomize.py").write_text(ONLY_LINUX)
    return environment


@pytest.fixture
def database(tmp_path: Path, shared_folder: Path) -> str:
    shutil.copy(samples.database_of("demo", shared_folder), tmp_path)
    return "demo.sqlite"


def fecbench(
    environment: Path, folder: Path, *arguments: str, ahead: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ahead, str(environment / "bin" / "fecbench"), *arguments],
        cwd=folder,
        env={"PATH": str(environment / "bin"), "HOME": str(folder), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
    )


def printed(environment: Path, folder: Path, *arguments: str) -> str:
    """Return the command's standard output, for a user without any right of root."""
    setpriv = shutil.which(WITHOUT_RIGHTS[0]) if os.geteuid() == 0 else None
    ahead = [setpriv, *WITHOUT_RIGHTS[1:]] if setpriv else []
    result = fecbench(environment, folder, *arguments, ahead=ahead)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_wheel_has_each_design_with_what_it_names_each_declaration_and_no_source_of_a_program(
    wheel: Path,
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    catalogue = designs.catalogue()["smoke"].parent
    files = {path.relative_to(catalogue) for path in catalogue.rglob("*") if path.is_file()}
    assert {f"fecbench/designs/catalog/{path}" for path in files} <= names
    declared = {
        f"fecbench/quic-impls/{path.parent.name}/impl.toml"
        for path in REPOSITORY.glob("quic-impls/*/impl.toml")
        if path.parent.name in OWN
    }
    assert declared <= names
    assert {name for name in names if name.endswith((".c", ".h", ".rs", ".go", ".ipynb"))} == set()


def test_a_wheel_says_of_which_commit_it_was_made(environment: Path, tmp_path: Path) -> None:
    line = f"fecbench {fecbench_package.__version__} (no release: commit 0123456789ab, with changes)\n"
    assert printed(environment, tmp_path, "--version") == line


def test_a_wheel_refuses_to_run_and_names_the_command_to_use_instead(
    environment: Path, tmp_path: Path
) -> None:
    result = fecbench(environment, tmp_path, "run", "smoke", "--db", "of mine.sqlite")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.stderr
    assert "`.venv/bin/fecbench run smoke --db 'of mine.sqlite'`" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", sorted(NEED_PROGRAMS))
def test_each_command_that_needs_a_lab_refuses_elsewhere_but_gives_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.setattr("fecbench.checkout.is_whole", lambda: False)
    with pytest.raises(BadInput, match=f"`.venv/bin/fecbench {command} --some thing`"):
        app([command, "--some", "thing"], standalone_mode=False)
    app([command, "--help"], standalone_mode=False)
    assert "Usage" in capsys.readouterr().out


def test_a_wheel_plans_designs_of_the_catalogue_as_a_checkout_does(environment: Path, tmp_path: Path) -> None:
    document = json.loads(printed(environment, tmp_path, "plan", "rquic2021-page", "--json"))
    assert document["points"] == designs.load(designs.catalogue()["rquic2021-page"]).plan().points
    assert {
        entry["name"]
        for entry in json.loads(printed(environment, tmp_path, "list", "designs", "--json"))["designs"]
    } == set(designs.catalogue())
    assert "rquic" in printed(environment, tmp_path, "implementations")


def test_a_wheel_predicts_losses_and_advises(environment: Path, tmp_path: Path) -> None:
    document = json.loads(
        printed(environment, tmp_path, "losses", "uniform", "--p", "1", "--packets", "3", "--json")
    )
    assert document["dropped"] == [0, 1, 2]
    network = ("--rtt-ms", "80", "--bandwidth-mbps", "20", "--loss", "0.02", "--size-bytes", "50000")
    assert json.loads(printed(environment, tmp_path, "advise", *network, "--json"))


def test_a_wheel_reads_a_database_and_writes_its_report_and_its_tables(
    environment: Path, tmp_path: Path, database: str
) -> None:
    assert "demo" in printed(environment, tmp_path, "show", "--db", database)
    # Rules and figures of many arms take long.
    write_campaign(tmp_path / "rules.sqlite", points=FEWEST_POINTS)
    write_campaign(tmp_path / "few.sqlite", points=FEW_POINTS)
    assert "networks" in printed(environment, tmp_path, "explain", "--db", "rules.sqlite")
    printed(environment, tmp_path, "export", "--db", "rules.sqlite", "--output", "trials.parquet")
    assert len(pd.read_parquet(tmp_path / "trials.parquet")) == 2 * FEWEST_POINTS
    printed(environment, tmp_path, "report", "--db", "few.sqlite", "--output", "report")
    assert (tmp_path / "report" / "report.html").stat().st_size > 100_000
