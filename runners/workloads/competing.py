"""The workload `competing`: a download beside those of another variant, which fill the link before, or join
and leave while it runs."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from fecbench.hints import nearest
from fecbench.runners.options import Option
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.workloads.workload import Surroundings, Transfer, Workload, size_bytes
from fecbench.topologies.link import LinkSettings

MOST_NEIGHBOURS = 4


class Competing(Workload):
    name = "competing"
    asked_for = "download"  # neither of the two downloads knows of the other
    summary = "A download beside those of another variant, which fill the link before, or join and leave."
    parameters: ClassVar = {
        "background": Option(
            type="string", default="", help="Label of the variant whose transfer fills the link before."
        ),
        "size_bytes": size_bytes(),
        "neighbours": Option(
            type="integer", minimum=1, maximum=MOST_NEIGHBOURS, default=1, help="Transfers of the background."
        ),
        "join_s": Option(
            type="number",
            minimum=0,
            maximum=3600,
            default=0,
            help="0: all fill the link before. Else the first does, and the n-th begins (n - 1) times as long"
            " after the measured one.",
        ),
        "stay_s": Option(
            type="number",
            minimum=0,
            maximum=3600,
            default=0,
            help="0: until the measured one has ended. Else each ends so long after both have begun.",
        ),
    }
    pairs = 2

    def check(self, choices: Mapping[str, Any], labels: Collection[str], where: str) -> None:
        super().check({**_ALONE, **choices}, labels, where)
        if choices.get("join_s") and choices.get("neighbours", 1) == 1:
            raise Refusal(
                f"{where}: workload {self.name}: join_s = {choices['join_s']!r}: the first of the neighbours"
                " begins before: must be 0, or neighbours 2 and more"
            )
        background = str(choices["background"])
        if background not in labels:
            raise Refusal(
                f"{where}: workload {self.name}: background = {background!r}: is no label of a variant;"
                f" {nearest(background, labels)}"
            )

    def transfers(self, choices: Mapping[str, Any], around: Surroundings) -> list[Transfer]:
        assert around.link is not None  # a topology with two pairs has links
        endless, own = endless_bytes(around.link, around.timeout_s), {**_ALONE, **choices}
        others = [
            replace(
                _download(choices["background"], endless),
                begins_s=number * own["join_s"] if number and own["join_s"] else None,
                lasts_s=own["stay_s"] or None,
            )
            for number in range(own["neighbours"])
        ]
        return [_download(around.variant, choices["size_bytes"]), *others]

    def reads(self, parameter: str, choices: Mapping[str, Any]) -> bool:
        return parameter != "join_s" or choices.get("neighbours", 1) > 1


_ALONE: Mapping[str, Any] = {"neighbours": 1, "join_s": 0, "stay_s": 0}


def _download(variant: str, size: int) -> Transfer:
    workload = {"name": Competing.asked_for, "size_bytes": size}
    return Transfer(variant, workload, Demand(down_bytes=size, round_trips=1))


def endless_bytes(link: LinkSettings, limit_s: float) -> int:
    """More bytes than a link can carry downwards in `limit_s`: a transfer that does not end before it."""
    return int(link.down.rate.most_bytes(0, limit_s))
