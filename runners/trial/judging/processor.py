"""Whether the endpoints had the CPU: an endpoint without it gives a wrong number, or none."""

from collections.abc import Iterator

from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.validity import Validity


def doubts(outcome: Outcome, validity: Validity, duration_s: float) -> Iterator[str]:
    """Yield why the harness cannot vouch for endpoints' time on the CPU, in a trial whose result is
    `duration_s`."""
    yield from _doubts_of_transfer(outcome, validity, duration_s)
    yield from _doubts_of_servers(outcome, validity)


def _doubts_of_transfer(outcome: Outcome, validity: Validity, duration_s: float) -> Iterator[str]:
    """A completion time or a timeout is doubtful then; how a program failed is not."""
    if not duration_s:
        return
    bound_s = max(validity.stall_at_least_s, validity.stall_share * duration_s)
    if outcome.stalled_s is not None and outcome.stalled_s > bound_s:
        yield f"the endpoints were kept from running for {_excess(outcome.stalled_s, bound_s)}"
    # If the kernel does not report waits, a harness that could not run itself shows them.
    if outcome.stalled_s is None and outcome.longest_gap_s > bound_s:
        yield f"nobody could look at the endpoints for {_excess(outcome.longest_gap_s, bound_s)}"
    bound_s = max(validity.stolen_at_least_s, validity.stolen_share * duration_s)
    if outcome.stolen_s is not None and outcome.stolen_s > bound_s:
        yield f"a hypervisor took a CPU for {_excess(outcome.stolen_s, bound_s)}"


def _doubts_of_servers(outcome: Outcome, validity: Validity) -> Iterator[str]:
    """A server that passed the limit of its start or its end is not to blame then."""
    servers = {name: end for name, end in outcome.endpoints.items() if name.endswith("server")}
    overran = {
        "server_start": [f"{name} was not ready in time" for name, end in servers.items() if end.was_slow],
        "endpoints_end": [f"{name} did not end in time" for name, end in servers.items() if end.was_forced],
    }
    for phase, problems in overran.items():
        hindered_s, took_s = outcome.hindered_s.get(phase, 0.0), outcome.phases_s.get(phase, 0.0)
        bound_s = max(validity.stall_at_least_s, validity.stall_share * took_s)
        if problems and hindered_s > bound_s:
            yield f"{problems[0]}, and was kept from running for {_excess(hindered_s, bound_s)}"


def _excess(measured_s: float, bound_s: float) -> str:
    return f"{1e3 * measured_s:.1f} ms, the bound is {1e3 * bound_s:.1f}"
