"""The folders with implementations: quic-impls/ of this checkout, folders that a command is given, and those
of the environment variable FECBENCH_IMPLEMENTATIONS.

A name stands for one implementation. If two folders have it, it is refused where it is used. An
implementation whose impl.toml cannot be read is refused where it is used, too; it disturbs no other.
`NAME=DIR` gives the implementation in one folder another name, so that two of its builds can be compared.
"""

import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from fecbench.hints import nearest
from fecbench.runners.implementations.implementation import (
    DECLARATION,
    IMPLEMENTATIONS,
    Implementation,
    load,
    read,
)
from fecbench.runners.refusal import Refusal

OWN = ("noq-fec", "rquic", "tcp", "udp")
"""Implementations of this project. Other implementations must do only what quic-impls/README.md says."""

OPTION = "--implementations"
VARIABLE = "FECBENCH_IMPLEMENTATIONS"
_NAMED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)=(?P<folder>.+)")


def in_folders(extra: Sequence[Path] = ()) -> "Implementations":
    """Return our implementations, those of `extra`, and those of the environment's variable.

    Raises Refusal as `search_path` does, and for `NAME=DIR` where DIR is no implementation.
    """
    folders_by_name, folders = {}, []
    for folder in extra:
        parts = None if folder.is_dir() else _NAMED.fullmatch(str(folder))
        if parts is None:
            folders.append(folder)
        elif not (own := Path(parts["folder"])).joinpath(DECLARATION).is_file():
            raise Refusal(f"{OPTION}: {folder}: {own}: must be a folder with an impl.toml")
        else:
            folders_by_name[parts["name"]] = own.resolve()
    return Implementations(search_path(folders), folders_by_name)


def search_path(extra: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Return the folders of implementations, absolute, each once: ours, `extra`, then those of the variable.

    Raises Refusal for one that does not exist, and for the folder of an implementation itself.
    """
    of_variable = [Path(folder) for folder in os.environ.get(VARIABLE, "").split(":") if folder]
    folders = (IMPLEMENTATIONS, *checked(OPTION, extra), *checked(VARIABLE, of_variable))
    return tuple(dict.fromkeys(folders))


def checked(origin: str, folders: Sequence[Path]) -> list[Path]:
    """Folders of implementations as absolute paths. Raises Refusal that begins with `origin`."""
    for folder in folders:
        if not folder.is_dir():
            raise Refusal(f"{origin}: {folder}: must be a folder that holds folders with an impl.toml")
        if (folder / DECLARATION).is_file():
            raise Refusal(f"{origin}: {folder}: is an implementation itself; give the folder that holds it")
    return [folder.resolve() for folder in folders]


class Implementations:
    """The implementations in some folders. Each impl.toml is read once, when it is needed first.

    `named` are folders of single implementations, by the names that they have here in place of their own.
    """

    def __init__(self, roots: Sequence[Path], folders_by_name: Mapping[str, Path] | None = None) -> None:
        self.roots = tuple(roots)
        self._named = dict(folders_by_name or {})
        self._read: dict[str, Implementation | Refusal] = {}

    @cached_property
    def folders(self) -> dict[str, list[Path]]:
        """The folders that have an impl.toml, by their name, which is the name of the implementation."""
        folders: dict[str, list[Path]] = {}
        for root in self.roots:
            for path in sorted(root.glob(f"*/{DECLARATION}")):
                folders.setdefault(path.parent.name, []).append(path.parent)
        for name, folder in self._named.items():
            folders.setdefault(name, []).append(folder)
        return folders

    def names(self) -> list[str]:
        """The names of all implementations, of broken ones, too."""
        return sorted(self.folders)

    def find(self, name: str, where: str) -> Implementation:
        """The implementation of that name. Raises Refusal, which begins with `where`."""
        if name not in self.folders:
            raise Refusal(f"{where}: there is no implementation {name!r}; {nearest(name, self.folders)}")
        implementation = self._get(name)
        if isinstance(implementation, Refusal):
            raise Refusal(f"{where}: {implementation}")
        return implementation

    def problem(self, name: str) -> str | None:
        """Return why one of the `names` cannot be used, if it cannot."""
        implementation = self._get(name)
        return str(implementation) if isinstance(implementation, Refusal) else None

    def all(self) -> dict[str, Implementation | Refusal]:
        """Return every implementation by its name, or why it cannot be used."""
        return {name: self._get(name) for name in self.names()}

    def _get(self, name: str) -> Implementation | Refusal:
        if name not in self._read:
            self._read[name] = self._load(name)
        return self._read[name]

    def _load(self, name: str) -> Implementation | Refusal:
        folder, *others = self.folders[name]
        if others:
            places = " and ".join(map(str, self.folders[name]))
            return Refusal(f"implementation {name!r} is in several folders: {places}; rename all but one")
        try:
            return read(folder).called(name) if name in self._named else load(folder)
        except Refusal as refusal:
            return refusal


def ours() -> Implementations:
    """Return the implementations of this checkout: `OWN`, and others that somebody has put there."""
    return Implementations((IMPLEMENTATIONS,))
