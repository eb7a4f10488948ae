"""Trials of messages over the emulated link: without losses each takes the link's delay and its own bits,
however it is delivered."""

from typing import Any

import pytest

from fecbench.runners.engines.engine import Finished
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import ROLES, EndpointTask, Task
from fecbench.runners.trial.judge import Judgement
from fecbench.runners.trial.site import Commands
from fecbench.runners.workloads.messages import form as messages
from fecbench.runners.workloads.messages import traffic
from fecbench.topologies.link import LinkSettings
from tests.support import needs, tasks
from tests.support.patience import carried_out
from tests.support.trials import Trials

# Neither window nor pacing where an implementation can do without, for both keep a message back.
OPTIONS = {
    "udp": {"scheme": "none"},
    "noq-fec": {"scheme": "none", "congestion_control": "none"},
    "rquic": {"scheme": "none"},
}
MODES = [("udp", "datagram")]
MODES += [
    (name, each) for name in ("noq-fec", "rquic") for each in ("datagram", "deadline", "stream", "reliable")
]
FOUND = {name: ours().find(name, "tests") for name in OPTIONS}
pytestmark = [*needs.TRIALS, needs.built(*FOUND.values())]

MBPS, OWD_MS, PARTS, PART_BYTES = 10, 20.0, 8, 1000
LEAST_MS = OWD_MS + 8e-3 * PARTS * PART_BYTES / MBPS
MOST_MS = OWD_MS + 8e-3 * PARTS * 1342 / MBPS  # a packet has no more, with what IP and Ethernet add
ENDPOINTS_MS = 8.0  # for waking up, encryption and system calls; a wait of less than 2 ms is no stall
TOO_SOON_MS, IN_TIME_MS = LEAST_MS - 0.1, 5000.0


def task(name: str, delivery: str) -> Task:
    workload: dict[str, Any] = {
        "name": "messages",
        "direction": "down",
        "delivery": delivery,
        "deadline_ms": IN_TIME_MS,
        "part_bytes": PART_BYTES,
        "timetable": traffic.regular(30, PARTS * PART_BYTES, 1.5),
    }
    end = EndpointTask(
        implementation=name,
        options=dict(FOUND[name].options(OPTIONS[name], "tests")),
        local_addresses=FOUND[name].declaration.local_addresses,
    )
    demand, playout_ms = messages.Messages().demand_of(workload), [TOO_SOON_MS, IN_TIME_MS]
    return tasks.task(
        tasks.link(LinkSettings.symmetric(MBPS, OWD_MS)),
        tasks.pair(client=end, server=end, workload=workload, demand=demand, playout_ms=playout_ms),
        timeout_s=30,
        validity=tasks.SLOW_MACHINE,  # which makes messages late, by no more than it says
    )


@pytest.mark.parametrize(("name", "delivery"), MODES)
def test_without_losses_a_message_takes_the_links_delay_and_its_own_bits(
    trials: Trials, name: str, delivery: str
) -> None:
    commands: Commands = {name: {role: FOUND[name].command(role) for role in ROLES}}

    def most_ms(result: Finished) -> float:
        down = result.outcome.links["internet"].directions["down"]
        return MOST_MS + ENDPOINTS_MS + 1e3 * (result.outcome.stalled_s or 0.0) + down.lateness_us.max / 1e3

    def is_in_time(result: Finished, judged: Judgement) -> bool:
        measured = judged.metrics["messages"]
        all_came = measured[f"on_time_ratio_{IN_TIME_MS:g}ms"] == 1
        return all_came and measured["latency_max_ms"] <= most_ms(result)

    result, judged = carried_out(
        trials, task(name, delivery), commands, {name: FOUND[name].folder}, is_in_time
    )
    assert (judged.state, judged.reason) == ("ok", "")
    measured = judged.metrics["messages"]
    assert measured["latency_p50_ms"] >= LEAST_MS
    assert is_in_time(result, judged)
    on_time = [measured[f"on_time_ratio_{playout_ms:g}ms"] for playout_ms in (TOO_SOON_MS, IN_TIME_MS)]
    assert on_time == [0, 1]
