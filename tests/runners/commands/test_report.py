"""`fecbench report` writes a page, and prints what it says as a document."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.report.collecting import collect
from fecbench.results.report.document import Document
from fecbench.results.store.database import Database


@pytest.mark.usefixtures("unrendered")
def test_the_printed_document_is_what_the_page_says_and_names_the_files(
    fecbench_here: Any, plant: Callable[..., Path], tmp_path: Path
) -> None:
    planted, folder = plant(tmp_path / "x.sqlite", points=12), tmp_path / "report"
    printed = json.loads(fecbench_here("report", "--db", planted, "--output", folder, "--json").stdout)
    with Database.open(str(planted)) as database:
        assert Document.model_validate(printed) == collect(database, database.campaign("planted"))
    files = [printed["html"], *printed["pngs"], *printed["svgs"], *printed["pdfs"]]
    assert sorted(files) == sorted(map(str, folder.iterdir()))
    shown = json.loads(fecbench_here("show", "--db", planted, "--json").stdout)
    assert printed["comparisons"] == shown["campaigns"][0]["comparisons"]
