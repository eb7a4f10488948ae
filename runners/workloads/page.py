"""The workload `page`: a web page's objects, each requested when its parents have arrived."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from fecbench.runners.options import Option
from fecbench.runners.workloads import page_graph
from fecbench.runners.workloads.workload import Surroundings, Transfer, Workload


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

    def transfers(self, chosen: Mapping[str, Any], around: Surroundings) -> list[Transfer]:
        workload = {"name": self.asked_for, **chosen, "graph": around.graphs[chosen["graph"]]}
        return [Transfer(around.variant, workload, page_graph.demand(workload["graph"]))]

    def page(self, chosen: Mapping[str, Any], design_path: str) -> tuple[str, Path] | None:
        name = str(chosen["graph"])
        return name, page_graph.path_of(name, design_path)
