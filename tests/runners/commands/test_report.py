"""`fecbench report` writes a page, and prints what it says as a document."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.report.collecting import collect
from fecbench.results.report.document import Document
from fecbench.results.store.database import Database


@pytest.mark.usefixtures("unmade")
def test_the_printed_document_is_what_the_page_says_and_names_the_files(
    fecbench_here: Any, plant: Callable[..., Path], tmp_path: Path
) -> None:
    planted, folder = plant(tmp_path / "x.sqlite", points=12), tmp_path / "report"
    printed = json.loads(fecbench_here("report", "--db", planted, "--output", folder, "--json").stdout)
    with Database.open(str(planted)) as database:
        assert Document.model_validate(printed) == collect(database, database.campaign("planted"))
    files = [printed["html"], *printed["pngs"], *printed["svgs"], *printed["pdfs"]]
    assert sorted(files) == sorted(map(str, folder.iterdir()))
    output = json.loads(fecbench_here("show", "--db", planted, "--json").stdout)
    assert printed["comparisons"] == output["campaigns"][0]["comparisons"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
@pytest.mark.parametrize("size", [pytest.param("64k", marks=pytest.mark.slow), "512k"])
def test_on_a_full_disk_a_report_is_whole_or_not_there(
    plant: Callable[..., Path], tmp_path: Path, size: str
) -> None:
    plant(tmp_path / "x.sqlite", points=12)
    disk = tmp_path / "disk"
    disk.mkdir()
    fecbench = Path(sys.executable).parent / "fecbench"
    script = (
        f'mount -t tmpfs -o size={size} none "$1" && '
        '{ "$2" report --db "$3" --output "$1/above/report"; echo "$?"; find "$1" -mindepth 1; }'
    )
    within = ["unshare", "--mount", "sh", "-c", script, "sh", disk, fecbench, tmp_path / "x.sqlite"]
    ran = subprocess.run(within, capture_output=True, text=True, timeout=200)
    assert ran.stdout == "2\n", ran.stderr
    assert ran.stderr.count("\n") == 1
    assert "the report cannot be written here: No space left on device" in ran.stderr
