"""The check of the interop runner's contract says what a program of it breaks, and no more than follows."""

import os
from pathlib import Path

import pytest

from fecbench.dropper.command import COMMAND as DROPPER
from fecbench.runners.conformance import interop_contract
from fecbench.runners.implementations.implementation import load
from fecbench.topologies.programs import WIRE
from tests.support.declarations import declare_interop

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces"),
    pytest.mark.skipif(not (DROPPER.exists() and WIRE.exists()), reason="needs make build"),
]


def test_where_no_download_works_nothing_else_is_said(tmp_path: Path) -> None:
    folder = declare_interop(tmp_path / "broken", "/bin/false")
    programs, download = interop_contract.check(load(folder))
    assert (programs.part, programs.good) == ("programs", True)
    assert (download.part, download.good) == ("download of 10000 bytes", False)
    assert "it must arrive unchanged" in download.detail
