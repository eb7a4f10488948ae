"""The workloads that endpoints are asked for, and their parameters."""

from collections.abc import Mapping

from fecbench.hints import nearest
from runners.options import Option
from runners.refusal import Refusal

_SIZE = Option(type="integer", minimum=0, maximum=2**40, default=0, help="Bytes to transfer.")

PARAMETERS: dict[str, dict[str, Option]] = {
    "download": {"size_bytes": _SIZE},
    "upload": {"size_bytes": _SIZE},
    "competing": {
        "background": Option(
            type="string", default="", help="Label of the variant whose transfer fills the link before."
        ),
        "size_bytes": _SIZE,
    },
    "page": {
        "graph": Option(
            type="string", default="photo-site", help="pages/NAME.json beside the design: what the page is."
        ),
        "connections": Option(
            type="string",
            choices=["one", "per_origin"],
            default="one",
            help="One connection for all objects, or one for each origin.",
        ),
    },
}


COMPETING = "competing"


def of_endpoints(name: str) -> str:
    """The workload that endpoints are asked for: two downloads compete, and neither knows of the other."""
    return "download" if name == COMPETING else name


def pairs_of(name: str) -> int:
    """How many client-server pairs a workload needs."""
    return 2 if name == COMPETING else 1


def parameters_of(name: str, where: str) -> dict[str, Option]:
    """The parameters of a workload. Raises Refusal when there is no workload of that name."""
    if name not in PARAMETERS:
        raise Refusal(f"{where}: there is no workload {name!r}; {nearest(name, PARAMETERS)}")
    return PARAMETERS[name]


def check(name: str, parameters: Mapping[str, object], where: str) -> None:
    """Raises Refusal for an unknown workload, or a parameter that is unknown, missing or out of range."""
    known = parameters_of(name, where)
    for parameter, value in parameters.items():
        if parameter not in known:
            hint = nearest(parameter, known)
            raise Refusal(f"{where}: workload {name} has no parameter {parameter!r}; {hint}")
        if problem := known[parameter].problem_of(value):
            raise Refusal(f"{where}: workload {name}: {parameter} = {value!r} {problem}")
    for parameter in known:
        if parameter not in parameters:
            raise Refusal(f"{where}: workload {name}: {parameter} is missing")
