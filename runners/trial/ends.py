"""What one end of a pair is asked for, by its implementation and its options."""

from collections.abc import Collection, Mapping
from typing import Any

from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.implementations.interop import Interop
from fecbench.runners.tasks.task import EndpointTask, InteropTask, Role


def end_of(
    implementation: Implementation,
    options: Mapping[str, Any],
    wanted: Collection[str] = (),
    role: Role = "client",
) -> EndpointTask:
    """The task of an end with these options, all of them: of the series `wanted`, it leaves its own."""
    declaration = implementation.declaration
    return EndpointTask(
        implementation=declaration.name,
        options=dict(options),
        series=[name for name in declaration.series if name in wanted],
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
    wanted: Collection[str] = (),
) -> tuple[EndpointTask, EndpointTask]:
    """Both ends of a pair. Where FEC is on at both and is not the same, neither owes any: they may have found
    none that both have, and speak plain QUIC then."""
    asking, serving = end_of(*client, wanted, "client"), end_of(*server, wanted, "server")
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
