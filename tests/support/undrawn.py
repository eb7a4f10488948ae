"""Reports whose figures nobody looks at: figures are made, and their files are there, but not drawn; the
interactive charts have one metric besides the compared one. Both take most of a report's time.

Half of the rest is making figures. Where another test makes those of the same kind of campaign, they are not
even made.
"""

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


def without_figures() -> Iterator[tuple[object, str, object]]:
    """Yield the same for reports whose figures are not made, either."""
    draw = saving.Folder.draw

    def draw_nothing(folder: saving.Folder, name: str, caption: str, _: object) -> saving.Drawing:
        return draw(folder, name, caption, lambda: None)  # type: ignore[arg-type,return-value]

    yield from replacements()
    yield saving.Folder, "draw", draw_nothing
    yield saving, "_keep_layout", lambda _: None


def replace(*, makes: bool = True) -> None:
    """Have all reports of this process be so; without `makes`, their figures are not made."""
    for module, name, replacement in list(replacements() if makes else without_figures()):
        setattr(module, name, replacement)
