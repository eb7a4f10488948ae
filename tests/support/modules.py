"""Our modules and their imports, by names of folders: `fecbench.results.store` is `results.store`."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fecbench.checkout import REPOSITORY

OURS = {path.name for path in (REPOSITORY / "fecbench").iterdir() if path.is_symlink()} - {"quic-impls"}
OURS |= {"fecbench", "bench"}


def modules() -> Iterator[tuple[str, Path]]:
    """Yield every module of ours, by its name."""
    for package in sorted(OURS):
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            parts = path.relative_to(REPOSITORY).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@cache
def imports(path: Path) -> frozenset[str]:
    """Return the modules that a file imports anywhere; of `from a import b` both `a` and `a.b`."""
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {node.module} | {f"{node.module}.{name.name}" for name in node.names}
    return frozenset(_in_its_folder(name) for name in imported)


def _in_its_folder(module: str) -> str:
    """Return the name by the folder: that of `fecbench.results.metrics` is `results.metrics`."""
    inner = module.removeprefix("fecbench.")
    return inner if inner.partition(".")[0] in OURS else module


def is_within(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


MODULES = dict(modules())
