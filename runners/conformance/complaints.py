"""What is wrong with how an endpoint started, reported and ended, in words."""

import signal

from fecbench.runners.tasks.task import Role
from fecbench.runners.trial.endpoint import Endpoint


def problem_of_start(server: Endpoint, limit_s: float) -> str:
    """Why a server that had so much time is not ready; "" when it is."""
    if server.ready:
        return ""
    if server.exit_code is not None:
        return f"the server {how_ended(server)} before it was ready"
    return f"the server wrote no ready line within {limit_s:g} s"


def problem_of_success(role: Role, endpoint: Endpoint) -> str:
    """Why an endpoint that has ended is no success."""
    return "" if endpoint.exit_code == 0 else f"the {role} {how_ended(endpoint)}; it must exit with 0"


def problem_of_done(role: Role, endpoint: Endpoint) -> str:
    """What is wrong with its last line."""
    if endpoint.complaint:
        return f"the {role} {endpoint.complaint}"
    if endpoint.rest:
        return f"the {role}'s last line has no newline at its end: {endpoint.rest[:80]!r}"
    if endpoint.metrics is None:
        return f'the {role} wrote no line {{"event": "done", "metrics": …}}'
    return ""


def how_ended(endpoint: Endpoint) -> str:
    """How it ended, with the last line of what it wrote on standard error."""
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
    """What it wrote on standard error, without empty lines."""
    return [line for line in endpoint.stderr.splitlines() if line.strip()]
