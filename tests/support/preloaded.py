"""The command `fecbench`, and scripts, as processes that begin with fecbench's libraries loaded.

To load them takes a second or two, each time. They are loaded once, by the server from which Python's
`multiprocessing` forks such a process; in it, all is as after `fecbench` or `python -` in a shell.
"""

import gc
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path

from fecbench.runners.campaign import provenance
from fecbench.runners.commands.command_line import COMMANDS, MODULES, main
from fecbench.runners.implementations import kept_answers
from tests.support import disk, undrawn

Ended = subprocess.CompletedProcess[str]

LOADED_WHEN_NEEDED = (
    "fecbench.designs.criteria",  # which loads scipy.stats: plans and campaigns need it
    *(f"fecbench.results.figures.{name}" for name in ("box_plots", "explanation", "ratios", "segments")),
    "matplotlib.backends.backend_agg",
    "fecbench.results.analysis.forest",
    "pyarrow.parquet",
)
"""Modules that take long to load, so that commands load them only where they need them."""

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        *(f"fecbench.runners.commands.{MODULES.get(name, name)}" for name in COMMANDS),
        "fecbench.results.report.report",
        "fecbench.runners.commands.console.clustered",
        *LOADED_WHEN_NEEDED,
        __name__,
    ]
)
disk.wait_for_none()
for record in (
    provenance.libraries,
    provenance.harness,
):  # of each campaign: they take as long as some trials
    record()


def begin() -> None:
    """Start the server, before a test has changed anything of the environment for itself."""
    forkserver.ensure_running()


def fecbench(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    limit_s: float,
    *,
    draws: bool = True,
    makes: bool = True,
) -> Ended:
    """Run `fecbench` with these arguments in a folder; without `draws`, files of figures are not drawn, and
    without `makes`, figures of reports are not even made. Raises TimeoutExpired when it was killed."""
    body = main if draws else _main_undrawn if makes else _main_unmade
    return _run(body, ["fecbench", *arguments], folder, environment, limit_s)


def script(text: str, folder: Path, environment: Mapping[str, str], limit_s: float) -> Ended:
    """Run a script in Python in a folder. Raises TimeoutExpired when it was killed."""
    return _run(_execute, ["-", text], folder, environment, limit_s)


def _main_undrawn() -> None:
    undrawn.replace()
    main()


def _main_unmade() -> None:
    undrawn.replace(makes=False)
    main()


def _execute() -> None:
    exec(compile(sys.argv[1], "<stdin>", "exec"), {"__name__": "__main__"})


def _run(
    body: Callable[[], None], words: list[str], folder: Path, environment: Mapping[str, str], limit_s: float
) -> Ended:
    with tempfile.TemporaryDirectory() as outputs:
        paths = [Path(outputs, name) for name in ("stdout", "stderr")]
        scheduling = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
        started = (body, words, folder, dict(environment), paths, kept_answers.NAME, *scheduling)
        process = _FORKS.Process(target=_begin, args=started)
        process.start()
        process.join(limit_s)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(words, limit_s)
        return Ended(words, process.exitcode, *(path.read_text() for path in paths))


def _begin(
    body: Callable[[], None],
    words: list[str],
    folder: Path,
    environment: dict[str, str],
    outputs: list[Path],
    answers: str,
    policy: int,
    priority: int,
) -> None:
    for number, path in enumerate(outputs, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    kept_answers.NAME = answers
    os.sched_setscheduler(0, policy, os.sched_param(priority))
    sys.argv = words
    gc.freeze()  # what is loaded stays: to look through it for garbage would copy all its memory
    body()
