"""The state of a trial by its endpoints, when the harness can vouch for the network and the CPU."""

import signal
from collections.abc import Iterator, Mapping

from fecbench.results.store.records import State
from fecbench.runners.tasks.outcome import EndpointOutcome, Outcome
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial.endpoint import UNSUPPORTED
from fecbench.runners.trial.judging import conservation, plausibility


def state(task: Task, outcome: Outcome) -> tuple[State, str]:
    """Return the first state for which there is a reason, and the reason."""
    return next(_reasons(task, outcome), ("ok", ""))


def _reasons(task: Task, outcome: Outcome) -> Iterator[tuple[State, str]]:
    endpoints = outcome.endpoints
    yield from _refused(endpoints)
    if not (outcome.background_lasted or outcome.timed_out):
        for name in filter(_is_background_client, endpoints):
            # Its kernel answers later packets, with packets that no loss model judges.
            yield "failed", f"{name} ended first: {_tail(endpoints[name])}"
    for problem in (conservation.overflow(outcome), conservation.bypass(task, outcome)):
        if problem:
            yield "failed", problem
    if outcome.timed_out and "client" not in endpoints:
        yield "timeout", "the background transfer did not fill the link in time"
    if outcome.timed_out:
        yield "timeout", "the client did not end in time"
    for name, endpoint in endpoints.items():
        if endpoint.was_slow:
            yield "failed", f"{name} was not ready in time: {_tail(endpoint)}"
    yield from (("failed", problem) for problem in _ends(endpoints))
    if "client" not in endpoints:
        yield "failed", _unready(endpoints)
    elif not completion_s(task, outcome) > 0.0:
        yield "failed", f"client reported no {task.completion} above 0"
    else:
        for problem in plausibility.problems(task, outcome):
            yield "failed", problem


def _refused(endpoints: Mapping[str, EndpointOutcome]) -> Iterator[tuple[State, str]]:
    """Yield the endpoints that broke their contract, or that do not support their task."""
    for name, endpoint in endpoints.items():
        if endpoint.complaint:
            yield "failed", f"{name} {endpoint.complaint}"
    if any(endpoint.exit_code == UNSUPPORTED for endpoint in endpoints.values()):
        yield "unsupported", _last_line(endpoints, "unsupported by an endpoint")


def succeeded(outcome: Outcome) -> bool:
    """Whether the whole content arrived and each endpoint ended as it should, however long it took."""
    endpoints = outcome.endpoints
    if "client" not in endpoints or any(endpoint.complaint for endpoint in endpoints.values()):
        return False
    return next(_ends(endpoints), None) is None


def state_by_ends(task: Task, outcome: Outcome) -> tuple[State, str]:
    """Return the state by the reports of both ends, regardless of the network and of times.

    Whether two stacks can talk to each other is decided by it, and a busy machine changes nothing of it.
    A transfer that was too slow is a timeout, whose cause may be the machine.
    """
    return next(_reasons_of_ends(task, outcome), ("ok", ""))


def _reasons_of_ends(task: Task, outcome: Outcome) -> Iterator[tuple[State, str]]:
    endpoints = outcome.endpoints
    yield from _refused(endpoints)
    if outcome.timed_out:
        yield "timeout", "the client did not end in time"
    for name, endpoint in endpoints.items():
        if endpoint.was_slow or endpoint.was_forced:
            deed = "was not ready" if endpoint.was_slow else "did not end"
            yield "timeout", f"{name} {deed} in time: {_tail(endpoint)}"
    yield from (("failed", problem) for problem in _ends(endpoints))
    if "client" not in endpoints:
        yield "failed", _unready(endpoints)
    yield from (("failed", problem) for problem in plausibility.problems_between_ends(task, outcome))


def completion_s(task: Task, outcome: Outcome) -> float:
    """Return the time of the transfer in s as the client reported it; 0 without a report."""
    client = outcome.endpoints.get("client")
    return (client.metrics or {}).get(task.completion, 0.0) if client else 0.0


def _ends(endpoints: Mapping[str, EndpointOutcome]) -> Iterator[str]:
    for name, endpoint in endpoints.items():
        if _is_background_client(name):  # it is ended with the client's transfer
            continue
        if endpoint.served_to_the_end:
            continue
        if endpoint.exit_code != 0:
            yield f"{name} ended with {_exit(endpoint)}: {_tail(endpoint)}"
        elif endpoint.metrics is None:
            yield f"{name} ended without a done message"


def _exit(endpoint: EndpointOutcome) -> str:
    """Return the exit code, with the name of a signal, and whether the harness sent it."""
    code = endpoint.exit_code
    if code is None or code >= 0:
        return str(code)
    sent = ", since it did not end in time when it was asked to" if endpoint.was_forced else ""
    return f"{code} ({signal.strsignal(-code)}{sent})"


def _is_background_client(name: str) -> bool:
    return name.startswith("background") and name.endswith("_client")


def _unready(endpoints: Mapping[str, EndpointOutcome]) -> str:
    for name, endpoint in endpoints.items():
        if not endpoint.ready:
            return f"{name} was not ready in time: {_tail(endpoint)}"
    return "the client was not started"


def _tail(endpoint: EndpointOutcome) -> str:
    lines = endpoint.stderr.strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _last_line(endpoints: Mapping[str, EndpointOutcome], otherwise: str) -> str:
    ends = [endpoint.stderr.strip().splitlines() for endpoint in endpoints.values()]
    return next((lines[-1] for lines in ends if lines), otherwise)
