"""What the check of an implementation reports: the parts of the contract, one by one."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Part:
    """One part of the contract, and whether the implementation keeps it."""

    part: str
    good: bool
    detail: str
    """What was seen, and what would be right where it is not good."""


class Finding(NamedTuple):
    """A part of the contract, what is wrong with it (""), and what is good when nothing is."""

    part: str
    problem: str
    good: str
