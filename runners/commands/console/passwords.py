"""Passwords of database URLs on the command line: kept from the list of processes and from every error line.

Whoever lists processes reads their arguments. Linux keeps them in the memory of the process, where they are
overwritten as soon as the command begins. What sudo or a shell keeps of them is beyond our reach, so a line
says what to do instead.
"""

import ctypes
import sys
from collections.abc import Iterable
from pathlib import Path

from fecbench.results.store.postgresql_url import url_in, without_secrets
from fecbench.runners.commands.console.terminal import note

# The place in /proc/PID/stat, counted behind the command's name, of the address of the arguments.
_ADDRESS = 48 - 3


def hide() -> None:
    """Overwrite each argument that has a password where other processes read it, and say so."""
    if secret := _secret(sys.argv):
        hidden = _overwrite([argument.encode(errors="surrogateescape") for argument in secret])
        seen = "until it began" if hidden else "while it runs"
        note(
            f"whoever lists processes could read the password of this command {seen}: put the password into"
            " ~/.pgpass or a service file, or the URL into FECBENCH_DB"
        )


def without_passwords(line: str) -> str:
    """A line, which may quote an argument, without the passwords of its URL."""
    for argument in _secret(sys.argv):
        url = url_in(argument)
        # As a message quotes it, and as a path is written.
        for form in (url, repr(url)[1:-1], str(Path(url))):
            line = line.replace(form, without_secrets(url))
    return line


def _secret(arguments: Iterable[str]) -> list[str]:
    """Those with a URL that has a password, or may have one."""
    return [argument for argument in arguments if without_secrets(argument) != argument]


def _overwrite(secret: Iterable[bytes]) -> bool:
    """Whether asterisks are in the place of each of these arguments now."""
    try:
        address = int(
            Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[_ADDRESS]
        )
        arguments = b"\0" + Path("/proc/self/cmdline").read_bytes()
    except (OSError, ValueError, IndexError):
        return False
    if not address:
        return False
    for argument in secret:
        place = arguments.find(b"\0" + argument + b"\0")
        if place < 0:
            return False
        ctypes.memset(address + place, ord("*"), len(argument))
    return True
