"""Seconds of CPU of each test, in the properties of pytest's report in XML: what its own process took, the
processes it waited for, and those of the server of `preloaded.py`. On a busy machine, how long a test took by
the clock says little about it."""

import os
from multiprocessing import forkserver
from pathlib import Path

import pytest

PROPERTY = "cpu_s"
_TICKS = os.sysconf("SC_CLK_TCK")
_START = pytest.StashKey[float]()


def cpu_s() -> float:
    """Return the seconds of CPU of this process, of those it waited for, and of the server with its own."""
    return sum(os.times()[:4]) + _seconds_of_server()


def _seconds_of_server() -> float:
    server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    if server is None:
        return 0.0
    try:
        text = Path(f"/proc/{server}/stat").read_text()
    except FileNotFoundError:
        return 0.0
    return sum(map(int, text.rpartition(")")[2].split()[11:15])) / _TICKS


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item):
    item.stash[_START] = cpu_s()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item):
    try:
        return (yield)
    finally:
        item.user_properties.append((PROPERTY, round(cpu_s() - item.stash[_START], 2)))
