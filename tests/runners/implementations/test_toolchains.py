"""A compiler that is missing or too old is refused with what installs it; one that `make build` has installed
serves, whatever PATH a user has."""

import os
import re
from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.implementations import build, toolchains
from fecbench.runners.implementations.finding import ours
from fecbench.runners.implementations.toolchains import TOOLCHAINS, build_path
from fecbench.runners.refusal import Refusal


def _go(folder: Path, says: str) -> None:
    program = folder / "go"
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)


def _only(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    """Let this machine have a `go` that says this version, and no other program."""
    _go(folder, says)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(toolchains, "OF_MAKE", ())


@pytest.mark.parametrize(("says", "recent"), [("go1.25.9", False), ("go1.26.0", True), ("go2.1", True)])
def test_versions_compare_as_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, recent: bool
) -> None:
    _only(tmp_path, monkeypatch, f"go version {says} linux/amd64")
    assert TOOLCHAINS["go"].is_recent is recent


def test_an_implementation_is_not_built_with_an_old_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _only(tmp_path, monkeypatch, "go version go1.19.8 linux/amd64")
    with pytest.raises(
        Refusal, match=r"rquic: needs Go 1\.26 or newer, found go version go1\.19\.8.*pip install"
    ):
        build.build(ours().find("rquic", "test"))


def test_a_machine_without_the_compiler_is_told_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    monkeypatch.setattr(toolchains, "OF_MAKE", ())
    assert TOOLCHAINS["rust"].problem == (
        "needs Rust 1.89 or newer, found none; install it with:"
        " apt-get install cargo-web (Ubuntu: cargo-1.97)"
    )


def test_a_compiler_of_make_serves_before_that_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, says in (("make", "go1.26.6"), ("user", "go1.19.8")):
        (tmp_path / name).mkdir()
        _go(tmp_path / name, f"go version {says} linux/amd64")
    monkeypatch.setattr(toolchains, "OF_MAKE", (str(tmp_path / "make"),))
    monkeypatch.setenv("PATH", str(tmp_path / "user"))
    assert TOOLCHAINS["go"].version_text() == "go version go1.26.6 linux/amd64"
    monkeypatch.setattr(toolchains, "OF_MAKE", ())
    assert TOOLCHAINS["go"].version_text() == "go version go1.19.8 linux/amd64"


def test_builds_look_where_the_makefile_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "$(PATH)")
    makefile = (REPOSITORY / "Makefile").read_text()
    (rust,) = re.findall(r"^UBUNTU_RUST := (.*)$", makefile, re.MULTILINE)
    (path,) = re.findall(r"^export PATH := (.*)$", makefile, re.MULTILINE)
    of_make = path.replace("$(CURDIR)", str(REPOSITORY)).replace("$(UBUNTU_RUST)", rust)
    assert build_path() == of_make
