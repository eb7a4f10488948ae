"""Report of a check of an implementation: the parts of the contract, one by one."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A part of the contract, and whether the implementation meets it."""

    part: str
    good: bool
    detail: str
    """The observation; if the part is not met, also what would be right."""
    tried: bool = True
    """Whether the part was tried; if not, the detail says why."""


def part_of(part: str, problem: str, good: str, tried: bool = True) -> Part:
    """Return the part, with its problem ("" for none), or else what is good or why it was not tried."""
    return Part(part, not problem, problem or good, tried)


def summary(name: str, parts: Sequence[Part]) -> str:
    """Return the result of all parts in a sentence. Parts that were not tried are not called met."""
    if not all(part.good for part in parts):
        return f"{name} breaks the contract"
    untried = "; ".join(f"{part.part}: {part.detail}" for part in parts if not part.tried)
    if untried:
        return f"{name} meets what was tried of the contract. Not tried: {untried}"
    return f"{name} meets the contract"
