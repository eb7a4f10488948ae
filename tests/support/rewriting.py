"""Test modules loaded by each worker in an order of its own.

pytest rewrites the assertions of a module when it is first loaded, and keeps the result in a file. To rewrite
all of them takes eleven seconds of CPU, and workers that begin together with the first module rewrite each of
them at the same time. So each begins with a part of its own, and reads what others have rewritten.
"""

import importlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def load_own_part_first(config: pytest.Config) -> None:
    """Load the modules in the order of this worker, where all tests are asked for.

    One that cannot be loaded is for the collection to report. So is one whose markers the conftest.py beside
    it declares, which is loaded then: its assertions are rewritten all the same.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker or [Path(config.rootpath, name) for name in config.args] != [TESTS]:
        return
    names = [
        ".".join(path.relative_to(TESTS.parent).with_suffix("").parts)
        for path in sorted(TESTS.rglob("test_*.py"))
    ]
    workers = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for name in own_part_first(names, int(worker.removeprefix("gw")), workers):
        with suppress(Exception, pytest.skip.Exception, pytest.fail.Exception):
            importlib.import_module(name)


def own_part_first(names: Sequence[str], worker: int, workers: int) -> list[str]:
    """Return this worker's part of the names, then those of others, the last of each part first: there its
    own worker comes last."""
    first, end = (len(names) * place // workers for place in (worker, worker + 1))
    return [*names[first:end], *reversed([*names[end:], *names[:first]])]
