"""The client's end of transfers, in a process with one thread: python -m fecbench.runners.field.client

It reads orders, one line of JSON each, and answers each with one. It ends with its standard input, or with
its parent.
"""

import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

from fecbench.checkout import REPOSITORY
from fecbench.errors import Failed
from fecbench.runners import workloads
from fecbench.runners.field.local_end import End, HostCounters, isolated
from fecbench.runners.implementations.implementation import Implementation, read
from fecbench.runners.sandbox import priority
from fecbench.runners.sandbox.isolation import die_with_parent
from fecbench.runners.tasks.outcome import EndpointOutcome, HostOutcome
from fecbench.runners.tasks.requests import Dialogue, Said
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial import starvation
from fecbench.runners.trial.asking import Asker
from fecbench.runners.trial.confinement import CANNOT_START, ConfinementError, StartError
from fecbench.runners.trial.supervisor import Supervisor

_MODULE = "fecbench.runners.field.client"
OVERRUN_S = 5.0


class Order(BaseModel):
    """A transfer to make."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: Task
    implementation: Path
    """Folder of the client's implementation."""
    name: str
    address: str
    port: int
    local_address: str
    folder: Path
    certificates: Path


class Transfer(BaseModel):
    """A transfer as the client saw it."""

    model_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    endpoint: EndpointOutcome
    host: HostOutcome
    messages: list[Said] = []
    client_s: float | None = None
    timed_out: bool = False
    failure: str = ""


def carry_out(order: Order, user: int | None) -> Transfer:
    """Run the client until it ends, or its time is over."""
    task, pair = order.task, order.task.pairs[0]
    supervisor, counters = Supervisor(), HostCounters(order.local_address)
    implementation: Implementation = read(order.implementation).called(order.name)
    deadline = time.monotonic() + task.timeout_s
    start_s = time.monotonic()
    try:
        end = End(
            "client",
            task,
            implementation,
            order.folder,
            supervisor,
            user=user if user is None else user + 1,
            address=order.address,
            local_address=order.local_address,
            port=order.port,
            certificates=order.certificates,
        )
    except (StartError, ConfinementError) as error:
        failure = EndpointOutcome(exit_code=CANNOT_START, stderr=str(error))
        return Transfer(endpoint=failure, host=HostOutcome())
    client = end.endpoint
    conversation = workloads.of(pair.workload).conversation(pair.session)
    dialogue = None if conversation is None else Dialogue(conversation)
    asker = None if dialogue is None else Asker(client, dialogue, supervisor)
    with supervisor.watching([client]) as watch:
        supervisor.wait(
            lambda: client.metrics is not None or client.exit_code is not None,
            deadline - time.monotonic(),
        )
        done_at = time.monotonic()
        lasted_s = (client.metrics or {}).get(task.completion, math.inf)
        stalled_s = watch.stalled_s(done_at - lasted_s, done_at) if starvation.is_known() else None
        host = counters.outcome(watch, stalled_s=stalled_s)
    supervisor.wait(lambda: client.exit_code is not None, deadline - time.monotonic())
    late_s = time.monotonic() - deadline
    timed_out = client.exit_code is None or (client.exit_code != 0 and late_s >= 0)
    if asker is not None:
        asker.close()
    return Transfer(
        endpoint=end.outcome(),
        host=host,
        messages=[] if dialogue is None else dialogue.said,
        client_s=done_at - start_s,
        timed_out=timed_out,
    )


class ClientProcess:
    """The process as its harness knows it. A context manager."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, str(os.getpid())],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is for the harness alone
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def transfer(self, order: Order) -> Transfer:
        """Make a transfer. A process that is lost is a failure of the harness."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(order.model_dump_json().encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return _lost("the client's process has ended")
        line = self._process.stdout.readline()
        return Transfer.model_validate_json(line) if line else _lost("the client's process has ended")


def _lost(why: str) -> Transfer:
    return Transfer(endpoint=EndpointOutcome(), host=HostOutcome(), failure=why)


def _answer(line: str) -> bytes:
    order = Order.model_validate_json(line)
    try:
        with priority.ahead_of_others():
            return isolated(lambda user: carry_out(order, user).model_dump_json().encode())
    except (Failed, OSError) as error:
        return _lost(f"the client's process: {error}").model_dump_json().encode()


def main() -> None:
    die_with_parent(int(sys.argv[1]))
    for line in sys.stdin:
        sys.stdout.buffer.write(_answer(line).replace(b"\n", b" ") + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
