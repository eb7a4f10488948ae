"""A compiler that is missing or too old is refused with what installs it."""

import os
from pathlib import Path

import pytest

from fecbench.runners.implementations import build
from fecbench.runners.implementations.finding import ours
from fecbench.runners.implementations.toolchains import TOOLCHAINS
from fecbench.runners.refusal import Refusal


def _only(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    """Let this machine have a `go` that says this version, and no other program."""
    program = folder / "go"
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


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
    assert TOOLCHAINS["rust"].problem == (
        "needs Rust 1.89 or newer, found none; install it with:"
        " apt-get install cargo-web (Ubuntu: cargo-1.97)"
    )
