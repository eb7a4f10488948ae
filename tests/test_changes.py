"""Changes that no release has yet: each is a file that the next release can take."""

import re
import subprocess
import sys
from pathlib import Path

from fecbench.checkout import REPOSITORY

FRAGMENTS = [path for path in (REPOSITORY / "changelog.d").iterdir() if path.name != "README.md"]


def test_every_change_has_a_kind_and_a_text() -> None:
    for path in FRAGMENTS:
        assert re.fullmatch(r"\+[a-z0-9-]+\.(added|changed|fixed|removed)\.md", path.name), path.name
        assert path.read_text().strip().endswith("."), path.name


def test_a_draft_of_the_next_release_has_every_change() -> None:
    towncrier = str(Path(sys.executable).with_name("towncrier"))
    draft = subprocess.run(
        [towncrier, "build", "--draft", "--version", "9.9.9"],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "## 9.9.9 (" in draft
    for path in FRAGMENTS:
        assert path.read_text().split()[0] in draft, path.name
