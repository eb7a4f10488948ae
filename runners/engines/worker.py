"""A worker: reads orders, one line of JSON each, and answers each with the line of its trial's outcome.

It exists so that the imports are paid for once, and so that the process that forks is small and has one
thread. Each trial runs in namespaces of its own. The worker ends with its standard input, or with its parent.
"""

import os
import sys
import time

from pydantic import BaseModel, ConfigDict

from fecbench.runners.sandbox import isolation, rights
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial import cgroup, trial
from fecbench.runners.trial.site import Site

# A trial's own limits (its time limit, and those of its parts) end it long before this margin is used up.
MARGIN_S = 60.0


class Order(BaseModel):
    """A trial to run, here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: Task
    site: Site
    ahead: bool = False
    """Whether endpoints run ahead of ordinary programs."""


def answer(line: str) -> Outcome:
    """The outcome of the trial whose order is `line`."""
    order = Order.model_validate_json(line)
    first_user = rights.first_user(os.getpid())
    begun = time.monotonic()
    try:
        document = isolation.run_isolated(
            lambda: (
                trial.run(order.task, order.site, first_user, ahead=order.ahead).model_dump_json().encode()
            ),
            order.task.timeout_s + MARGIN_S,
        )
    except (isolation.IsolationError, OSError) as error:
        return Outcome(failure=f"the trial's process: {error}")
    outcome = Outcome.model_validate_json(document)
    outcome.phases_s["isolation"] = time.monotonic() - begun - sum(outcome.phases_s.values())
    return outcome


def main() -> None:
    harness, name = sys.argv[1:]
    isolation.die_with_parent(int(harness))
    # Who ends a worker kills it, and removes its cgroups then.
    cgroup.enter(f"{name}.{os.getpid()}")
    for line in sys.stdin:
        print(answer(line).model_dump_json(), flush=True)


if __name__ == "__main__":
    main()
