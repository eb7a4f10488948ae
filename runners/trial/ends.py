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


def _interop(role: Role, declared: Interop | None) -> InteropTask | None:
    if declared is None:
        return None
    return InteropTask(testcase=declared.testcase, env=declared.env, params=declared.params_of(role))
