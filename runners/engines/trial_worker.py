"""A worker: reads orders, one line of JSON each, and answers each with two: its trial's outcome, and seconds.

It exists so that the imports are paid for once, and so that the process that forks is small and has one
thread. Each trial runs in namespaces of its own. The worker ends with its standard input, or with its parent.
"""

import json
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


ANSWER_LINES = 2


def answer(line: str) -> bytes:
    """Run the trial whose order is `line`. Return two lines: its outcome as its process wrote it, and the
    seconds that this took, or null when that process did not answer."""
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
        return Outcome(failure=f"the trial's process: {error}").model_dump_json().encode() + b"\nnull\n"
    return document + f"\n{time.monotonic() - begun}\n".encode()


def outcome_in(lines: bytes | bytearray) -> Outcome:
    """Return the outcome in an answer. Its phase `isolation` is the time that no other phase took."""
    document, seconds = lines.splitlines()
    outcome = Outcome.model_validate_json(document)
    if (took_s := json.loads(seconds)) is not None:
        outcome.phases_s["isolation"] = took_s - sum(outcome.phases_s.values())
    return outcome


def main() -> None:
    harness, name = sys.argv[1:]
    isolation.die_with_parent(int(harness))
    # The harness ends a worker by a kill, and removes its cgroups then.
    cgroup.enter(f"{name}.{os.getpid()}")
    trial.load_mininet()
    for line in sys.stdin:
        sys.stdout.buffer.write(answer(line))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
