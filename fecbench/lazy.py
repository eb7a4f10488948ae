"""Names of a package that are loaded when they are used: pandas and matplotlib take longer to load than most
commands take to run."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any


def names_of(package: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """Return the names that a package offers of its modules, and the `__getattr__` that loads them.

    Its `file` lists each once, for type checkers, in the block `if TYPE_CHECKING`.
    """
    (block,) = (node for node in ast.parse(Path(file).read_bytes()).body if isinstance(node, ast.If))
    modules = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return resolve_name(f"{modules[name]}:{name}")

    return sorted(modules), load


class _Name:
    """A function, class or module of a package that is loaded when it is called or asked for an attribute."""

    def __init__(self, package: str, name: str) -> None:
        self._place = f"{package}.{name}"

    def __call__(self, *values: Any, **options: Any) -> Any:
        return resolve_name(self._place)(*values, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(resolve_name(self._place), name)


class _Later(ModuleType):
    """A package that is not loaded, with any name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        spec = find_spec(name)
        self.__path__ = list((spec and spec.submodule_search_locations) or ())

    def __getattr__(self, name: str) -> _Name:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return _Name(self.__name__, name)


@contextmanager
def standing_aside(*packages: str) -> Iterator[None]:
    """Have packages stand aside that are not loaded yet, while modules in them are loaded, or others that
    import names of them. Later they are loaded as ever."""
    absent = [name for name in packages if name not in sys.modules]
    for name in absent:  # a package before its own: to find one loads what it is in
        sys.modules[name] = _Later(name)
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, sys.modules[name])  # as loading it does
    try:
        yield
    finally:
        for name in absent:
            later = sys.modules.pop(name)
            parent, _, own = name.rpartition(".")
            if parent in sys.modules and vars(sys.modules[parent]).get(own) is later:
                delattr(sys.modules[parent], own)
