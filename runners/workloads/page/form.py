"""The workload `page`: a web page's objects, each requested when its parents have arrived."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from fecbench.runners.options import Option
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import Task
from fecbench.runners.workloads.page import graph as page_graph
from fecbench.runners.workloads.workload import SAMPLE_BYTES, Impossible, Surroundings, Transfer, Workload


class Page(Workload):
    name = asked_for = "page"
    summary = "The client loads a web page, each object when its parents have arrived and been processed."
    parameters: ClassVar = {
        "graph": Option(
            type="string", default="photo-site", help="pages/NAME.json beside the design: what the page is."
        ),
        "connections": Option(
            type="string",
            choices=["one", "per_origin"],
            default="one",
            help="One connection for all objects, or one for each origin.",
        ),
    }

    documents = "pages"
    sample: ClassVar = {
        "name": name,
        "connections": "one",
        "graph": {
            "objects": [
                {
                    "name": item,
                    "origin": "www.example",
                    "size_bytes": SAMPLE_BYTES // 2,
                    "parents": parents,
                    "processing_ms": 1.0,
                }
                for item, parents in (("document", []), ("photo", ["document"]))
            ]
        },
    }

    def transfers(self, choices: Mapping[str, Any], around: Surroundings) -> list[Transfer]:
        workload = {"name": self.asked_for, **choices, "graph": around.documents[choices["graph"]]["graph"]}
        return [Transfer(around.variant, workload, self.demand_of(workload))]

    def demand_of(self, workload: Mapping[str, Any]) -> Demand:
        return page_graph.demand(workload["graph"])

    def measure(self, task: Task, outcome: Outcome) -> None:
        """Compare the client's counters with the page. Raises Impossible."""
        workload, client = task.pairs[0].workload, outcome.endpoints["client"].metrics or {}
        objects = workload["graph"]["objects"]
        origins = {item["origin"] for item in objects} if workload["connections"] == "per_origin" else {""}
        for name, right in (("objects", len(objects)), ("connections", len(origins))):
            if client.get(name, right) != right:
                raise Impossible(f"client: {name} = {client[name]:g}: the page has {right}")
        whole_s, first_s = client[self.completion], client.get("first_object_s")
        if first_s is not None and not 0 < first_s <= whole_s:
            raise Impossible(
                f"client: first_object_s = {first_s:g}: must be above 0 and at most {whole_s:g}, its"
                f" {self.completion}"
            )

    def document(self, choices: Mapping[str, Any], folders: Sequence[Path]) -> tuple[str, Path] | None:
        name = str(choices["graph"])
        return name, page_graph.path_of(name, folders)

    def read_document(self, path: Path) -> dict[str, Any]:
        return page_graph.stored(path)
