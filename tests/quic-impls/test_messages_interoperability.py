"""Messages between noq-fec and quic-go, each as client and as server: one protocol, whoever speaks it."""

import itertools
import signal
from typing import Any

import pytest

from fecbench.runners.implementations.finding import ours

WITHOUT_FEC: dict[str, dict[str, Any]] = {"noq-fec": {"scheme": "none"}, "rquic": {"scheme": "plain"}}
SPEAKERS = [name for name in WITHOUT_FEC if "messages" in ours().find(name, "tests").declaration.workloads]
COUNT, PARTS = 20, 8


@pytest.mark.parametrize(("client", "server"), list(itertools.permutations(SPEAKERS)))
def test_every_part_crosses_from_either_to_the_other(
    endpoints_of: Any, assignment: dict[str, Any], rows_of: Any, client: str, server: str
) -> None:
    every = sorted(itertools.product(range(COUNT), range(PARTS)))
    deliveries = ("datagram", "deadline", "stream", "reliable")
    for delivery, direction in itertools.product(deliveries, ("up", "down")):
        workload = {
            "name": "messages",
            "direction": direction,
            "delivery": delivery,
            "deadline_ms": 10_000.0,
            "part_bytes": 1000,
            "timetable": [[number * 10_000, PARTS * 1000 - 500] for number in range(COUNT)],
        }
        assignment |= {"workload": workload, "series": ["messages"]}
        with endpoints_of(server).serving({**assignment, "options": WITHOUT_FEC[server]}) as serving:
            endpoints_of(client).start("client", {**assignment, "options": WITHOUT_FEC[client]}).metrics()
            serving.process.send_signal(signal.SIGTERM)
            serving.metrics()
        for role in ("client", "server"):
            rows = rows_of(role, "messages")
            assert sorted((row["message"], row["part"]) for row in rows) == every, (delivery, direction)
            assert sum(row["bytes"] for row in rows) == COUNT * (PARTS * 1000 - 500)
