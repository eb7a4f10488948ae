"""The place of this checkout: fecbench builds programs and reads folders beside its packages.

A wheel holds the Python packages and what they read, and no program. So it plans and reads results anywhere.
Whatever runs a trial refuses, and names the command of a checkout that does it.
"""

import shlex
from pathlib import Path

from fecbench.errors import BadInput

_PACKAGE = Path(__file__).parent
REPOSITORY = _PACKAGE.resolve().parent


def is_whole() -> bool:
    """Whether this is a checkout, and no installed wheel."""
    return (REPOSITORY / "quic-impls").is_dir() and (REPOSITORY / "topologies" / "wire" / "wire.c").is_file()


DECLARATIONS = REPOSITORY / "quic-impls" if is_whole() else _PACKAGE / "quic-impls"
"""The folders of our implementations; in a wheel with their impl.toml alone, by which designs are checked."""


COMMIT = _PACKAGE / "commit.txt"
"""File in a wheel with the commit of its source, and `changed` behind it if files differed from that."""


def require_whole(words: list[str]) -> None:
    """Raises BadInput in a wheel, which cannot do this command; its line names the one to use instead."""
    if not is_whole():
        raise BadInput(
            f"fecbench {words[0]}: needs programs, and a wheel has none: in a checkout of fecbench, run"
            f" `make build` and use `.venv/bin/fecbench {shlex.join(words)}` instead"
        )
