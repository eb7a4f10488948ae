"""The workload `competing`: a download beside that of another variant, which fills the link before."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from fecbench.hints import nearest
from fecbench.runners.options import Option
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.workloads.workload import Surroundings, Transfer, Workload, size_bytes
from fecbench.topologies.link import LinkSettings


class Competing(Workload):
    name = "competing"
    asked_for = "download"  # neither of the two downloads knows of the other
    summary = "A download beside one of another variant, which fills the link before."
    parameters: ClassVar = {
        "background": Option(
            type="string", default="", help="Label of the variant whose transfer fills the link before."
        ),
        "size_bytes": size_bytes(),
    }
    pairs = 2

    def check(self, choices: Mapping[str, Any], labels: Collection[str], where: str) -> None:
        super().check(choices, labels, where)
        background = str(choices["background"])
        if background not in labels:
            raise Refusal(
                f"{where}: workload {self.name}: background = {background!r}: is no label of a variant;"
                f" {nearest(background, labels)}"
            )

    def transfers(self, choices: Mapping[str, Any], around: Surroundings) -> list[Transfer]:
        assert around.link is not None  # a topology with two pairs has links
        endless = endless_bytes(around.link, around.timeout_s)
        return [
            Transfer(
                variant,
                {"name": self.asked_for, "size_bytes": size},
                Demand(down_bytes=size, round_trips=1),
            )
            for variant, size in (
                (around.variant, choices["size_bytes"]),
                (choices["background"], endless),
            )
        ]


def endless_bytes(link: LinkSettings, limit_s: float) -> int:
    """More bytes than a link can carry downwards in `limit_s`: a transfer that does not end before it."""
    return int(link.down.rate.most_bytes(0, limit_s))
