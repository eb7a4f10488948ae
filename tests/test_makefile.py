"""The Makefile tests and checks what is ours, whatever folder somebody puts beside it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from fecbench import designs
from fecbench.checkout import REPOSITORY
from fecbench.runners.implementations.finding import OWN, ours

VARIABLES = ("GO_FOLDERS", "RUST_FOLDERS", "C_FILES", "NOT_OTHERS")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that looks like the checkout to the Makefile."""
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    for name in ("rquic", "stranger"):
        folder = tmp_path / "quic-impls" / name
        folder.mkdir(parents=True)
        for file in ("go.mod", "Cargo.toml", "endpoint.c"):
            (folder / file).write_text("")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    return tmp_path


def value(checkout: Path, variable: str) -> list[str]:
    words = ["make", "--no-print-directory", "--eval", f"print: ; @echo $({variable})", "print"]
    result = subprocess.run(words, cwd=checkout, capture_output=True, text=True, check=True)
    return result.stdout.split()


def test_the_flags_of_the_shell_are_the_same_when_they_are_expanded_once_more() -> None:
    """make 4.4 does so, and ran nothing, with status 0."""
    once = "$(eval MORE = $(value .SHELLFLAGS)) $(info $(value .SHELLFLAGS)) $(info $(MORE))"
    words = ["make", "--no-print-directory", "--file", "Makefile", "--file", "-", "path"]
    result = subprocess.run(words, cwd=REPOSITORY, input=once, capture_output=True, text=True, check=True)
    first, more = result.stdout.splitlines()
    assert "umask" in first
    assert more == first


@pytest.mark.parametrize(
    ("user", "right"),
    [
        (0, (["apt-get update -qq", "installing offered offered"], "")),
        (1000, ([], "missing packages; as root: apt-get install offered offered\n")),
    ],
)
def test_a_package_of_several_names_is_missing_once(
    tmp_path: Path, user: int, right: tuple[list[str], str]
) -> None:
    """The first name that is installed is enough; with a comma at the end, none is needed."""
    (tmp_path / "dpkg-query").write_text("#!/bin/sh\ncase $* in *there) printf installed;; *) exit 1;; esac")
    (tmp_path / "apt-get").write_text("#!/bin/sh\necho apt-get $*")
    (tmp_path / "apt-cache").write_text("#!/bin/sh\ncase $* in *offered) echo Package;; esac")
    (tmp_path / "id").write_text(f"#!/bin/sh\necho {user}")
    for program in tmp_path.iterdir():
        program.chmod(0o755)
    packages = "there gone,there gone,offered,offered never, offered,"
    words = [
        "make",
        "--no-print-directory",
        "packages",
        f"PACKAGES={packages}",
        f"PATH={tmp_path}:{os.environ['PATH']}",
    ]
    result = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True)
    assert result.stdout.splitlines() == right[0]
    assert result.stderr.startswith(f"left out, since this system does not have it: never\n{right[1]}")
    assert result.returncode == (2 if user else 0)


def test_no_list_of_what_is_checked_has_a_folder_of_somebody_else(checkout: Path) -> None:
    assert {name: value(checkout, name) for name in VARIABLES} == {
        "GO_FOLDERS": ["quic-impls/rquic"],
        "RUST_FOLDERS": ["quic-impls/rquic"],
        "C_FILES": ["quic-impls/rquic/endpoint.c"],
        "NOT_OTHERS": ["--extend-exclude", "quic-impls/stranger/"],
    }


def test_every_implementation_of_ours_is_tested_and_checked() -> None:
    assert set(OWN) <= set(value(REPOSITORY, "OWN"))


def test_the_demonstration_builds_what_it_runs_and_no_more() -> None:
    words = ["make", "--dry-run", "--always-make", "demo"]
    result = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    (built,) = re.findall("implementations.build ?(.*)", result.stdout)
    design = designs.load(REPOSITORY / "designs/catalog/demo.toml")
    assert built.split() == sorted({variant.implementation for variant in design.variants})


def test_what_the_benchmark_builds_is_an_implementation_of_the_checkout() -> None:
    (name,) = re.findall(
        "^bench:.*\n.*implementations.build (.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE
    )
    assert name in ours().names()


@pytest.mark.parametrize(("rootless", "emulates"), [("1", False), ("", True)])
def test_the_demonstration_says_what_it_leaves_out_without_root(rootless: str, emulates: bool) -> None:
    words = ["make", "--dry-run", "demo", f"ROOTLESS={rootless}"]
    result = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert "fecbench run designs/catalog/demo.toml --engine virtual" in result.stdout
    assert ("fecbench crosscheck" in result.stdout) == emulates
    assert ("left out: the emulated sample" in result.stdout) != emulates


@pytest.mark.parametrize(
    ("crosscheck", "report", "status", "last"),
    [
        *((0, 0, 0, "figure "), (1, 0, 0, "figure "), (2, 0, 2, "the emulated sample did not end")),
        *((0, 3, 2, "drawing the report"), (2, 3, 2, "drawing the report"), (130, 0, 2, "running ")),
    ],
)
def test_the_demonstration_has_its_report_where_the_emulated_sample_is_refused(
    crosscheck: int, report: int, status: int, last: str, tmp_path: Path
) -> None:
    program = tmp_path / "bin/fecbench"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\ncase $1 in run) exit 1;; crosscheck) exit {crosscheck};; report) exit {report};; esac\n"
    )
    program.chmod(0o755)
    skipped = [word for target in ("path", "packages", "ready") for word in ("-o", target)]
    words = ["make", "--no-print-directory", *skipped, "demo"]
    settings = ["ROOTLESS=", f"VENV={tmp_path}", f"OUT={tmp_path}", "RUN=true"]
    ran = subprocess.run([*words, *settings], cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout.splitlines()[-1][: len(last)]) == (status, last)


def test_the_workflow_of_recordings_watches_files_that_exist_and_runs_tests_that_exist() -> None:
    workflow = yaml.load((REPOSITORY / ".github/workflows/recordings.yml").read_text(), yaml.BaseLoader)
    for event in ("push", "pull_request"):
        for pattern in workflow["on"][event]["paths"]:
            assert any(REPOSITORY.glob(pattern)), pattern
    (command,) = (step["run"] for step in workflow["jobs"]["slow"]["steps"] if "run" in step)
    (tests,) = re.findall(r'make test-slow TESTS="(.*)"$', command)
    for path in tests.split():
        assert (REPOSITORY / path).exists(), path


@pytest.mark.parametrize("character", [*"&'\"$:;()[]{}*?#`\\|<>"])
def test_a_path_that_nothing_can_be_built_in_is_refused_at_once(tmp_path: Path, character: str) -> None:
    place = tmp_path / f"a{character}b"
    place.mkdir()
    shutil.copy(REPOSITORY / "Makefile", place)
    for target in ("build", "demo", "test"):
        ran = subprocess.run(["make", target], cwd=place, capture_output=True, text=True, timeout=10)
        assert ran.returncode == 2
        assert f"in a path with {character}: move the checkout, to {tmp_path}/a-b for example" in ran.stderr
        assert not (place / ".venv").exists()


@pytest.mark.parametrize("name", ["with space", "Ünicode", "tilde~", "a+b=c,d@e%f"])
def test_any_other_path_is_taken(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    shutil.copy(REPOSITORY / "Makefile", tmp_path / name)
    subprocess.run(["make", "path"], cwd=tmp_path / name, check=True, timeout=10)


@pytest.mark.parametrize("mask", [0o027, 0o077, 0o177])
def test_what_make_makes_is_for_every_user_whatever_the_umask(checkout: Path, mask: int) -> None:
    words = ["make", "--no-print-directory", "--eval", "made: ; @mkdir made && touch made/file", "made"]
    subprocess.run(words, cwd=checkout, check=True, umask=mask)
    assert (checkout / "made").stat().st_mode & 0o777 == 0o755
    assert (checkout / "made" / "file").stat().st_mode & 0o777 == 0o644
