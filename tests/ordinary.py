"""Has an ordinary user run a program wherever the checkout lies: nobody but root enters a home such as /root.

Where a folder that he needs is closed to him, he runs the program in a mount namespace of its own. What
closes it is covered there by an empty folder, in which his lies at its own path. No rights are changed.
"""

import os
import sys
from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.sandbox import kernel, rights, view

USER = 65534
FOLDERS = sorted({REPOSITORY, Path(sys.prefix), *rights.prefixes(Path(sys.executable))})
"""Folders of our programs, and of the Python that runs them, which an ordinary user needs; parents first."""


def command() -> list[str]:
    """Return the first words of a command that root runs as an ordinary user; empty for other users.

    Skips the test where he can be given no way to our folders.
    """
    if os.geteuid() != 0:
        return []
    if _closed() and not kernel.may_administer():
        pytest.skip("needs CAP_SYS_ADMIN: an ordinary user may not go to where this checkout lies")
    return [sys.executable, "-P", __file__]


def _closed() -> list[Path]:
    """The folders that he cannot go to."""
    return [path for path in FOLDERS if not view.is_reachable(path, view.open_path(path))]


def _main() -> None:
    os.umask(0o022)
    view.open_ways(FOLDERS)
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    _main()
