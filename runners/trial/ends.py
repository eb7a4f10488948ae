"""Tasks of the ends of a pair, from their implementations and options."""

from collections.abc import Collection, Mapping
from typing import Any

from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.implementations.interop import Interop
from fecbench.runners.tasks.task import EndpointTask, InteropTask, Role


def end_of(
    implementation: Implementation,
    options: Mapping[str, Any],
    series: Collection[str] = (),
    role: Role = "client",
) -> EndpointTask:
    """Return the task of an end with these options (all of them). It records those of `series` that it
    can."""
    declaration = implementation.declaration
    return EndpointTask(
        implementation=declaration.name,
        options=dict(options),
        series=[name for name in declaration.series if name in series],
        local_addresses=declaration.local_addresses,
        transport=declaration.transport,
        content_seed_hex=declaration.content_seed_hex,
        fec=None if declaration.fec is None else declaration.fec.is_on(options),
        owes_repair=declaration.fec is None or declaration.fec.owes_repair(options),
        owes_source=declaration.fec is None or declaration.fec.owes_source(options),
        certificates=declaration.certificates,
        interop=_interop(role, declaration.interop),
    )


def pair_of(
    client: tuple[Implementation, Mapping[str, Any]],
    server: tuple[Implementation, Mapping[str, Any]],
    series: Collection[str] = (),
) -> tuple[EndpointTask, EndpointTask]:
    """Return the tasks of both ends of a pair.

    If both have FEC, but not the same, neither must send any: they may have no code in common, and then use
    plain QUIC.
    """
    asking, serving = end_of(*client, series, "client"), end_of(*server, series, "server")
    switch = client[0].declaration.fec
    same = client[0] == server[0] and (switch is None or switch.agrees(client[1], server[1]))
    if same or not (asking.fec and serving.fec):
        return asking, serving
    nothing = {"owes_repair": False, "owes_source": False}
    return asking.model_copy(update=nothing), serving.model_copy(update=nothing)


def _interop(role: Role, declared: Interop | None) -> InteropTask | None:
    if declared is None:
        return None
    return InteropTask(testcase=declared.testcase, env=declared.env, params=declared.params_of(role))
