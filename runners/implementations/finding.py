"""Where implementations are looked for: quic-impls/ of this checkout."""

from pathlib import Path

from fecbench.checkout import REPOSITORY
from fecbench.hints import nearest
from runners.implementations.implementation import Implementation, load
from runners.refusal import Refusal

IMPLEMENTATIONS = REPOSITORY / "quic-impls"


def names(root: Path = IMPLEMENTATIONS) -> list[str]:
    """The names of all implementations."""
    return sorted(path.parent.name for path in root.glob("*/impl.toml"))


def find(name: str, where: str, root: Path = IMPLEMENTATIONS) -> Implementation:
    """The implementation of that name. Raises Refusal with the nearest right name."""
    known = names(root)
    if name not in known:
        raise Refusal(f"{where}: there is no implementation {name!r}; {nearest(name, known)}")
    return load(root / name)


def all_of_them(root: Path = IMPLEMENTATIONS) -> dict[str, Implementation]:
    """Every implementation by name."""
    return {name: load(root / name) for name in names(root)}


def option_names(root: Path = IMPLEMENTATIONS) -> set[str]:
    """The names of the options of all implementations."""
    return {
        option
        for implementation in all_of_them(root).values()
        for option in implementation.declaration.options
    }
