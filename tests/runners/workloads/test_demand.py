"""The least that a workload needs, with any implementation."""

from typing import Any

from fecbench.runners import workloads
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.workloads.page import graph as page_graph
from fecbench.runners.workloads.workload import Surroundings
from fecbench.topologies.link import LinkSettings

AROUND = Surroundings("FEC", LinkSettings.symmetric(10, 20), timeout_s=8.0)


def demands(name: str, **chosen: Any) -> list[Demand]:
    return [transfer.demand for transfer in workloads.find(name, "here").transfers(chosen, AROUND)]


def test_each_transfer_demands_its_own_bytes_and_a_round_trip() -> None:
    down = Demand(down_bytes=1234, round_trips=1)
    assert demands("download", size_bytes=1234) == [down]
    assert demands("upload", size_bytes=1234) == [Demand(up_bytes=1234, round_trips=1)]
    endless = Demand(down_bytes=10_000_000, round_trips=1)
    assert demands("competing", size_bytes=1234, background="other") == [down, endless]


def an_object(name: str, size_bytes: int, processing_ms: float, *parents: str) -> dict[str, Any]:
    return {"name": name, "size_bytes": size_bytes, "processing_ms": processing_ms, "parents": list(parents)}


def test_a_page_demands_all_objects_and_its_longest_chain() -> None:
    two = [an_object("a", 10, 5), an_object("b", 20, 7), an_object("c", 30, 0, "a", "b")]
    three = [an_object("a", 1, 0), an_object("b", 1, 0, "a"), an_object("c", 1, 0, "b")]
    for objects, demand in (
        ([an_object("a", 10, 5)], Demand(down_bytes=10, round_trips=1, pauses_s=0.005)),
        (two, Demand(down_bytes=60, round_trips=2, pauses_s=0.007)),
        (three, Demand(down_bytes=3, round_trips=3)),
    ):
        assert page_graph.demand({"objects": objects}) == demand
