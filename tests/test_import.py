"""`import fecbench` is the door for scripts; a wheel has the packages alone, and its command says so."""

import lzma
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import fecbench
from fecbench.checkout import REPOSITORY, is_whole

PARTS = ("dropper", "topologies", "designs", "runners", "results")
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
COMMAND = "from fecbench.runners.commands.command_line import main; main()"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installed wheel."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    shutil.copy(REPOSITORY / "pyproject.toml", source)
    ignored = shutil.ignore_patterns("build", "__pycache__")
    shutil.copytree(REPOSITORY / "fecbench", source / "fecbench", symlinks=True, ignore=ignored)
    for part in PARTS:
        shutil.copytree(REPOSITORY / part, source / part, ignore=ignored)
    built = subprocess.run(
        [sys.executable, "-c", BUILD, source], cwd=source, check=True, capture_output=True, text=True
    )
    with zipfile.ZipFile(source / built.stdout.split()[-1]) as archive:
        archive.extractall(site)
    return site


def python(site: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run outside of the checkout, with the wheel's packages before all others."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=site,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )


def test_a_checkout_is_whole() -> None:
    assert is_whole()


def test_a_folder_named_as_a_part_of_ours_hides_nothing(tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / part).mkdir()
        (tmp_path / part / "__init__.py").touch()
    program = (
        "from fecbench import designs, dropper, results, runners, topologies; designs.load; results.open"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


def test_fecbench_opens_a_database_and_tells_its_version(tmp_path: Path) -> None:
    file = tmp_path / "demo.sqlite"
    file.write_bytes(lzma.decompress((REPOSITORY / "notebooks/samples/demo.sqlite.xz").read_bytes()))
    with fecbench.open(str(file)) as database:
        assert len(database["demo"].trials(["client.dct_s"])) == 4800
    assert fecbench.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="opne"):
        _ = fecbench.opne  # type: ignore[attr-defined]


@pytest.mark.parametrize("arguments", [["doctor"], ["plan", "smoke"], ["run", "smoke"]])
def test_the_command_of_a_wheel_refuses_in_one_line(wheel: Path, arguments: list[str]) -> None:
    ended = python(wheel, COMMAND, *arguments)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1), ended.stderr
    assert "is no checkout of fecbench" in ended.stderr


def test_a_wheel_reads_databases_and_draws_their_report(wheel: Path, tmp_path: Path) -> None:
    file = tmp_path / "demo.sqlite"
    file.write_bytes(lzma.decompress((REPOSITORY / "notebooks/samples/demo.sqlite.xz").read_bytes()))
    program = (
        "import sys, fecbench\n"
        "from fecbench.results.report.report import report\n"
        "with fecbench.open(sys.argv[1]) as database:\n"
        "    campaign = database['demo']\n"
        "    report(campaign.database, campaign.info, sys.argv[2])\n"
        "    print(fecbench.__file__)\n"
    )
    ended = python(wheel, program, str(file), str(tmp_path / "report"))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(str(wheel))
    assert (tmp_path / "report" / "report.html").stat().st_size > 100_000
