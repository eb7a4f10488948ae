"""Names of a package that are loaded when they are used: pandas and matplotlib take longer to load than most
commands take to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pkgutil import resolve_name
from typing import Any


def names_of(package: str, names_of_modules: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package that offers names of its modules as its own."""
    modules = {name: module for module, names in names_of_modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return resolve_name(f"{package}.{modules[name]}:{name}")

    return load
