"""The function that a scheduler calls at a worker, by its name, with a line of JSON."""

from collections.abc import Callable

_carrier: Callable[[str], str] | None = None


def carry_out(proposal: str) -> str:
    """The worker's answer to a proposal."""
    if _carrier is None:
        raise RuntimeError("this is no worker of fecbench: fecbench worker starts one")
    return _carrier(proposal)


def carry_by(carrier: Callable[[str], str]) -> None:
    """Have proposals answered so in this process."""
    global _carrier
    _carrier = carrier
