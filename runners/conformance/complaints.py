"""Faults in how an endpoint started, reported and ended, in words."""

import json
import signal
from collections.abc import Mapping, Sequence

from fecbench.runners.conformance.part import Part
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.tasks.task import Role
from fecbench.runners.trial.endpoint import Endpoint


def problem_of_start(server: Endpoint, limit_s: float) -> str:
    """Return why a server is not ready after so much time; "" if it is."""
    if server.ready:
        return ""
    if server.exit_code is not None:
        return f"the server {how_ended(server)} before it was ready"
    return f"the server wrote no ready line within {limit_s:g} s"


def problem_of_success(role: Role, endpoint: Endpoint) -> str:
    """Return why an endpoint that has ended did not succeed; "" if it did."""
    return "" if endpoint.exit_code == 0 else f"the {role} {how_ended(endpoint)}; it must exit with 0"


def problem_of_done(role: Role, endpoint: Endpoint) -> str:
    """Return the fault of its last line; "" if none."""
    if endpoint.complaint:
        return f"the {role} {endpoint.complaint}"
    if endpoint.rest:
        return f"the {role}'s last line has no newline at its end: {endpoint.rest[:80]!r}"
    if endpoint.metrics is None:
        return f'the {role} wrote no line {{"event": "done", "metrics": …}}'
    return ""


def how_ended(endpoint: Endpoint) -> str:
    """Return how it ended, with the last line of its standard error."""
    lines = lines_of(endpoint)
    reason = f" ({lines[-1].strip()[:200]})" if lines else ""
    if endpoint.complaint:
        return f"{endpoint.complaint}{reason}"
    if endpoint.exit_code is None:
        return f"does not end{reason}"
    if endpoint.exit_code < 0:
        return f"was ended by signal {-endpoint.exit_code} ({signal.strsignal(-endpoint.exit_code)}){reason}"
    return f"exited with {endpoint.exit_code}{reason}"


def lines_of(endpoint: Endpoint) -> list[str]:
    """Return the lines of its standard error that are not empty."""
    return [line for line in endpoint.stderr.splitlines() if line.strip()]


NO_REPAIR = "no repair symbol was sent"


def hint_of_repair(problem: str, implementation: Implementation, choices: Mapping[str, object]) -> str:
    """Return what impl.toml has to say where no repair symbol was sent, if that is how the code works; "" for
    other problems."""
    fec = implementation.declaration.fec
    if NO_REPAIR not in problem or fec is None:
        return ""
    options = implementation.with_defaults(dict(choices))
    table = ", ".join(f"{name} = {json.dumps(options[name])}" for name in fec.off)
    return (
        "; if the code waits for a full block or for the end with these options, say so in [fec] of"
        f" impl.toml: repair_may_lack = [{{ {table} }}]"
    )


def seen_repair(part: str, sent: Sequence[float]) -> Part:
    """Whether any transfer with FEC on had a repair symbol: else nothing was tried of the FEC."""
    if not sum(sent):
        return Part(part, True, f"never saw one, in {len(sent)} transfers with FEC on", tried=False)
    return Part(part, True, f"{sum(sent):g} repair packets were sent in {len(sent)} transfers with FEC on")
