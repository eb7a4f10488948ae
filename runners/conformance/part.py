"""What the check of an implementation reports: the parts of the contract, one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Part:
    """One part of the contract, and whether the implementation keeps it."""

    part: str
    good: bool
    detail: str
    """What was seen, and what would be right where it is not good."""
    tried: bool = True
    """Or the detail says why not."""


class Finding(NamedTuple):
    """A part of the contract, what is wrong with it (""), and what is good when nothing is, or why it was not
    tried."""

    part: str
    problem: str
    good: str
    tried: bool = True


def summary(name: str, parts: Sequence[Part]) -> str:
    """What the parts come to, in a sentence: what was not tried is not called met."""
    if not all(part.good for part in parts):
        return f"{name} breaks the contract"
    untried = "; ".join(f"{part.part}: {part.detail}" for part in parts if not part.tried)
    if untried:
        return f"{name} meets what was tried of the contract. Not tried: {untried}"
    return f"{name} meets the contract"
