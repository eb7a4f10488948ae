"""A bar of the figures of a report, on standard error of a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def figures_bar() -> Iterator[Callable[[int, int, str], None]]:
    """Yield what to call with the number of figures that are drawn, their total, and what is made now. The
    bar is gone at the end; elsewhere than on a terminal nothing is shown."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def tell(count: int, total: int, what: str) -> None:
            progress.update(task, completed=count, total=total or None, description=what)

        yield tell
