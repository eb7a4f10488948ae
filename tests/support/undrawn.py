"""Reports whose figures nobody looks at: figures are made, and their files are there, but not drawn; the
interactive charts have one metric besides the compared one. Both take most of a report's time."""

from collections.abc import Iterator
from pathlib import Path

from fecbench.results.figures import saving


def leave(_: object, path: Path) -> None:
    path.write_bytes(b"not drawn")


def replacements() -> Iterator[tuple[object, str, object]]:
    """Yield each module with the name in it that is replaced, and its replacement."""
    from fecbench.results.report import exploring

    yield saving, "save", leave
    yield exploring, "_MOST_METRICS", 2


def replace() -> None:
    """Have all reports of this process be so."""
    for module, name, replacement in replacements():
        setattr(module, name, replacement)
