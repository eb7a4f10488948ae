"""The common part of tests of implementations: a folder with an impl.toml."""

from pathlib import Path

import pytest

WRITTEN = """
name = "example"
title = "An example"
build = ["true"]
server = ["build/example"]
client = ["build/example", "--fast"]
workloads = ["download"]

[options.scheme]
type = "string"
choices = ["none", "xor"]
default = "none"
help = "The code."

[options.code_rate]
type = "number"
minimum = 0.5
maximum = 1
default = 0.9
help = "k/n."

[options.window]
type = "integer"
default = 20
help = "Symbols."

[options.pacing]
type = "boolean"
default = true
help = "Whether repair symbols are paced."

[fec]
off = { scheme = "none" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "example"
    path.mkdir()
    (path / "impl.toml").write_text(WRITTEN)
    return path
