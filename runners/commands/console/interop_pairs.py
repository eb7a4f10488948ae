"""The design of an interoperability campaign: a variant for each pair of a client and a server."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from fecbench import designs
from fecbench.designs import Design
from fecbench.results.analysis.interoperability import Cell
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.options import Option, Value
from fecbench.runners.refusal import Refusal

WORKLOAD = "download"


@dataclass(frozen=True)
class End:
    """A stack with its options, as a client and as a server."""

    name: str
    implementation: Implementation
    options: dict[str, Value]

    @property
    def lack(self) -> str:
        """Reason why it can be no end of any pair; "" when it can."""
        declared = self.implementation.declaration
        return "" if WORKLOAD in declared.workloads else f"{declared.name} has no workload {WORKLOAD}"

    @property
    def wire(self) -> str:
        """Protocol of the end: ends that differ in it cannot talk to each other."""
        declared = self.implementation.declaration
        if declared.transport == "tcp":
            return "TLS over TCP"
        testcase = declared.interop.testcase if declared.interop else ""
        http3 = testcase == "http3" or self.options.get("http") == "h3"
        return f"{'HTTP/3' if http3 else 'hq-interop'} over QUIC"


def end_of(text: str, implementations: Implementations) -> End:
    """The end that is written as NAME, or NAME:OPTION=VALUE,…: options besides those of plain QUIC.

    Raises Refusal for an implementation or an option that there is not.
    """
    name, _, rest = text.partition(":")
    implementation = implementations.find(name, f"end {text!r}")
    declared = implementation.declaration
    chosen: dict[str, Value] = {}
    for word in filter(None, rest.split(",")):
        option, equals, value = word.partition("=")
        if not equals:
            raise Refusal(f"end {text!r}: {word!r}: must be OPTION=VALUE")
        known = declared.options.get(option)
        chosen[option] = value if known is None else _value(known, value)
    options = {**declared.plain_options, **chosen}
    implementation.options(options, f"end {text!r}")
    return End(text, implementation, options)


def _value(option: Option, text: str) -> Value:
    """The value that a text stands for; the text itself where it stands for none of the option's type."""
    if option.type == "boolean":
        return {"true": True, "false": False}.get(text, text)
    try:
        if option.type == "integer":
            return int(text)
        return float(text) if option.type == "number" else text
    except ValueError:
        return text


def ends_there_are(implementations: Implementations) -> tuple[list[End], list[str]]:
    """Every end of implementations that can download and are built; and those that are not, a line each.

    An implementation whose FEC is inside QUIC is there twice: without it, and with it as by default.
    """
    ends, left_out = [], []
    for name, implementation in implementations.all().items():
        if isinstance(implementation, Refusal):
            left_out.append(f"{name}: {implementation}")
            continue
        end = end_of(name, implementations)
        try:
            lack = implementation.lack("local")
        except Refusal as refusal:  # of its bundle
            left_out.append(str(refusal))
            continue
        if end.lack:
            left_out.append(end.lack)
        elif lack:
            left_out.append(f"{name}: {lack.problem}; mend: {lack.mend}")
        else:
            ends += [end, *_with_fec(end, implementations)]
    return ends, left_out


def _with_fec(end: End, implementations: Implementations) -> list[End]:
    declared = end.implementation.declaration
    if declared.fec is None or declared.plain is not None:
        return []
    defaults = {name: declared.options[name].default for name in declared.fec.off}
    if not declared.fec.is_on(end.implementation.options({}, end.name)):
        return []
    words = ",".join(f"{name}={value}" for name, value in defaults.items())
    return [end_of(f"{end.name}:{words}", implementations)]


def design_of_pairs(design: Design, ends: Sequence[End]) -> tuple[Design, list[Cell]]:
    """The design with a variant for each pair of ends that can meet, and the cells of those that cannot.

    Raises Refusal when two ends are the same, or none can meet any.
    """
    for one, other in combinations(ends, 2):
        if (one.implementation, one.options) == (other.implementation, other.options):
            raise Refusal(f"ends {one.name!r} and {other.name!r} are the same; name one of them")
    variants: list[dict[str, Any]] = []
    cells = []
    for client, server in product(ends, ends):
        if reason := _problem_of(client, server):
            cells.append(Cell(client.name, server.name, "unsupported", reason))
        else:
            variants.append(_variant(client, server))
    if not variants:
        raise Refusal(f"no two of these ends can meet: {cells[0].reason}")
    return designs.rewritten(design, variants=variants), cells


def _problem_of(client: End, server: End) -> str:
    """Return why the two cannot meet; "" when they can."""
    if lack := client.lack or server.lack:
        return lack
    if client.wire != server.wire:
        return f"{client.name} speaks {client.wire}, {server.name} {server.wire}"
    return ""


def _variant(client: End, server: End) -> dict[str, Any]:
    table: dict[str, Any] = {
        "label": client.name,
        "implementation": client.implementation.declaration.name,
        "options": client.options,
    }
    if client is server:
        return table
    return {**table, "label": f"{client.name}, server {server.name}", "server": server.name}
