"""The errors that end a command with one line, and the exit status of each."""

BAD_INPUT, FAILED = 2, 1


def status_of(error: Exception) -> int | None:
    """The status with which an error ends the command; None for one that is a mistake in fecbench."""
    # Imported here: whoever raised one of them has loaded what it takes to name them.
    from fecbench.designs import DesignError
    from fecbench.dropper.command import DropperError
    from fecbench.dropper.model import LossModelError
    from fecbench.results.store.database import DatabaseError
    from fecbench.runners.engines.engine import EngineError
    from fecbench.runners.refusal import Refusal
    from fecbench.runners.sandbox.isolation import IsolationError
    from fecbench.topologies.link import LinkError, TopologyError

    if isinstance(error, Refusal | DesignError | DatabaseError | LossModelError | TopologyError):
        return BAD_INPUT
    if isinstance(error, DropperError | EngineError | IsolationError | LinkError | OSError):
        return FAILED
    return None
