"""Declarations of implementations: what a test says of one, and else what is usual."""

from pathlib import Path
from typing import Any

import tomli_w


def declare(folder: Path, program: str = "/bin/true", *words: str, **keys: Any) -> Path:
    """Write the impl.toml of an implementation whose ends are this program; return its folder, whose name it
    has."""
    folder.mkdir(parents=True, exist_ok=True)
    usual = {"name": folder.name, "title": "x", "build": ["true"], "workloads": ["download"]}
    ends = {end: [program, *words] for end in ("server", "client")}
    (folder / "impl.toml").write_text(tomli_w.dumps(usual | ends | keys))
    return folder


def option(default: object, **keys: object) -> dict[str, object]:
    """Return the declaration of an option, whose type is that of its default."""
    kind = {str: "string", int: "integer", float: "number"}[type(default)]
    return {"type": kind, "default": default, "help": "x", **keys}


def declare_interop(folder: Path, program: str, options: dict[str, Any] | None = None, **keys: Any) -> Path:
    """Write the impl.toml of an implementation of the interop runner's contract; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    usual = {"name": folder.name, "title": "x", "contract": "interop", "workloads": ["download"]}
    tables = {"interop": {"server": [program], "client": [program], **keys}, "options": options or {}}
    (folder / "impl.toml").write_text(tomli_w.dumps(usual | tables))
    return folder
