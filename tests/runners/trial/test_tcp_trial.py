"""Trials over TCP: a handshake of two round trips, losses that are the oracle's, a segment a frame, paths, a
background."""

from collections.abc import Callable
from typing import Any

import pytest

from fecbench.runners.engines.engine import Finished
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.task import ROLES, EndpointTask, PairTask, Task
from fecbench.runners.tasks.validity import Validity
from fecbench.runners.trial.site import Commands
from fecbench.topologies import tcp
from fecbench.topologies.link import LinkSettings
from tests.support import needs, tasks
from tests.support.patience import carried_out
from tests.support.trials import Trials

TCP = ours().find("tcp", "tests")
pytestmark = [*needs.TRIALS, needs.built(TCP)]


CarryOut = Callable[..., Finished]


def end(**options: Any) -> EndpointTask:
    choice = TCP.options(options, "tests")
    return EndpointTask(implementation="tcp", options=dict(choice), local_addresses=True, transport="tcp")


def pair(size_bytes: int, workload: str = "download", **options: Any) -> PairTask:
    up = size_bytes if workload == "upload" else 0
    return PairTask(
        client=end(**options),
        server=end(**options),
        workload={"name": workload, "size_bytes": size_bytes},
        demand=Demand(up_bytes=up, down_bytes=size_bytes - up, round_trips=1),
    )


def task(topology: str, pairs: list[PairTask], p: float = 0.0, owd_ms: float = 5.0) -> Task:
    names = {"multipath": ["path1", "path2"]}.get(topology, ["internet"])
    losses = {"model": "uniform", "p": p}
    link = tasks.link(LinkSettings.symmetric(10, owd_ms), losses, losses)
    seeds = tasks.seeds(3, {name: {"up": n, "down": n + 10} for n, name in enumerate(names)})
    usual = {"topology": topology, "seeds": seeds, "timeout_s": 30, "validity": tasks.SLOW_MACHINE}
    return tasks.task(dict.fromkeys(names, link), *pairs, **usual)


@pytest.fixture
def carry_out(trials: Trials) -> CarryOut:
    def carry_out(trial_task: Task, is_right: Callable[[Finished], bool] = lambda _: True) -> Finished:
        """The trial of a task, whose state has to be ok."""
        commands: Commands = {"tcp": {role: TCP.command(role) for role in ROLES}}
        folders = {"tcp": TCP.folder}
        result, judgement = carried_out(
            trials, trial_task, commands, folders, lambda result, _: is_right(result)
        )
        assert (judgement.state, judgement.reason) == ("ok", "")
        return result

    return carry_out


def metrics(finished: Finished, endpoint: str) -> dict[str, float]:
    found = finished.outcome.endpoints[endpoint].metrics
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("controller", "workload"), [("reno", "download"), ("cubic", "upload"), ("bbr", "download")]
)
def test_losses_are_the_oracle_s_and_a_segment_is_a_frame(
    carry_out: CarryOut, controller: str, workload: str
) -> None:
    if controller not in tcp.controllers():
        pytest.skip(f"this kernel has no {controller}")
    transfer = pair(150_000, workload, congestion_control=controller)
    result = carry_out(task("single-path", [transfer], p=0.05))
    (link,), (droppers,) = result.outcome.links.values(), result.outcome.droppers.values()
    for role, direction in (("client", "up"), ("server", "down")):
        report, counters = link.directions[direction], droppers[direction].counters
        # The SYN-ACK and what closes the connection are frames that an endpoint does not tell of.
        assert 0 <= report.frames_in - metrics(result, role)["packets_sent"] <= 8
        assert (counters.gso, counters.other, report.oversize_dropped) == (0, 0, 0)
        assert counters.seen == report.frames_out
    sender = metrics(result, "server" if workload == "download" else "client")
    assert droppers["down" if workload == "download" else "up"].counters.dropped > 0
    assert sender["packets_lost"] > 0


def test_a_handshake_is_a_round_trip_of_tcp_and_one_of_tls(carry_out: CarryOut) -> None:
    undisturbed = task("single-path", [pair(1000)], owd_ms=250)
    result = carry_out(undisturbed.model_copy(update={"validity": Validity()}))
    client = metrics(result, "client")
    # A third round trip would make 1.5 s of it; the request takes one more.
    assert 1.0 <= client["handshake_s"] < 1.5
    assert 0.5 <= client["dct_s"] - client["handshake_s"] < 1.0


@pytest.mark.parametrize("controller", [name for name in ("cubic", "bbr") if name in tcp.controllers()])
def test_without_losses_it_takes_the_rate_of_the_link(carry_out: CarryOut, controller: str) -> None:
    """A machine that stands still for a tenth of a second makes a transfer of four longer by too much."""
    long = task("single-path", [pair(5_000_000, congestion_control=controller)], owd_ms=25)

    def is_fast(result: Finished) -> bool:
        client, link = metrics(result, "client"), result.outcome.links["internet"].directions["down"]
        # With the slow start, which lasts some round trips.
        return link.bytes_out * 8 / (client["dct_s"] - client["handshake_s"]) / 10e6 >= 0.95

    assert is_fast(carry_out(long, is_fast))


def test_multipath_tcp_fills_both_paths(carry_out: CarryOut) -> None:
    def carried(result: Finished) -> dict[str, int]:
        return {name: link.directions["down"].frames_in for name, link in result.outcome.links.items()}

    def fills_both(result: Finished) -> bool:
        return min(carried(result).values()) > 0.2 * sum(carried(result).values())

    result = carry_out(task("multipath", [pair(1_500_000, paths=2)], p=0.001), fills_both)
    assert fills_both(result)
    for name, frames in carried(result).items():
        assert 0 <= frames - metrics(result, "server")[f"{name}.packets_sent"] <= 8


def test_a_transfer_over_tcp_is_a_background(carry_out: CarryOut) -> None:
    foreground = pair(300_000, congestion_control="cubic")
    background = pair(37_500_000, congestion_control="bbr" if "bbr" in tcp.controllers() else "reno")
    result = carry_out(task("dumbbell", [foreground, background]))
    competition = result.outcome.competition
    assert competition is not None
    assert competition.foreground_mbps and competition.background_mbps
    assert metrics(result, "background_server")["bytes_sent"] > 100_000
