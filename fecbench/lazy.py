"""Names of a package that are loaded when they are used: pandas and matplotlib take longer to load than most
commands take to run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any


def names_of(package: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """Return the names that a package offers of its modules, and the `__getattr__` that loads them.

    Its `file` lists each once, for type checkers, in the block `if TYPE_CHECKING`.
    """
    (block,) = (node for node in ast.parse(Path(file).read_bytes()).body if isinstance(node, ast.If))
    modules = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return resolve_name(f"{modules[name]}:{name}")

    return sorted(modules), load
