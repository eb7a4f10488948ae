"""The workloads `download` and `upload`: one object, in one direction."""

from collections.abc import Mapping
from typing import Any, ClassVar

from fecbench.runners.tasks.demand import Demand
from fecbench.runners.workloads.workload import SAMPLE_BYTES, Workload, size_bytes


class Download(Workload):
    name = asked_for = "download"
    summary = "The server sends one object to the client."
    parameters: ClassVar = {"size_bytes": size_bytes()}
    sample: ClassVar = {"name": name, "size_bytes": SAMPLE_BYTES}

    def demand(self, choices: Mapping[str, Any]) -> Demand:
        """The request goes up, the object comes down."""
        return Demand(down_bytes=choices["size_bytes"], round_trips=1)


class Upload(Workload):
    name = asked_for = "upload"
    summary = "The client sends one object to the server."
    parameters: ClassVar = {"size_bytes": size_bytes()}
    sample: ClassVar = {"name": name, "size_bytes": SAMPLE_BYTES}
    verifier = "server"

    def demand(self, choices: Mapping[str, Any]) -> Demand:
        """The object goes up, the server's confirmation comes down."""
        return Demand(up_bytes=choices["size_bytes"], round_trips=1)
