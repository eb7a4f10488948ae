"""A client that is told in the course of a trial what to ask for, as a process: what it reads, and when."""

import subprocess
import sys
import time

from fecbench.runners.tasks.requests import Dialogue, Line, Object
from fecbench.runners.trial.asking import Asker
from fecbench.runners.trial.endpoint import Endpoint
from fecbench.runners.trial.supervisor import Supervisor

LIMIT_S = 60.0
CLIENT = """
import json, sys, time
for line in sys.stdin:
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    size = json.loads(line)["get"]
    said = {"event": "object", "bytes": size, "requested_at": now, "first_byte_at": now, "done_at": now}
    print(json.dumps(said), flush=True)
print('{"event": "done", "metrics": {"dct_s": 1}}', flush=True)
"""


class Script:
    """Asks for 1, 2, … bytes, each so long after the one before, and lets the client end after the last."""

    def __init__(self, objects: int, pause_s: float, ends_s: float = 600.0) -> None:
        self._objects, self._pause_s, self._ends_s = objects, pause_s, ends_s
        self.heard_of: list[Object] = []

    def begin(self) -> list[Line]:
        return [Line(0.0, 1), Line(self._ends_s, None)]

    def heard(self, arrived: Object) -> list[Line]:
        self.heard_of.append(arrived)
        if len(self.heard_of) == self._objects:
            return [Line(arrived.done_at, None)]
        return [Line(arrived.done_at + self._pause_s, len(self.heard_of) + 1), Line(self._ends_s, None)]


def run(program: str, script: Script) -> tuple[Endpoint, Dialogue]:
    supervisor = Supervisor()
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    client, dialogue = supervisor.follow("client", process), Dialogue(script)
    asker = Asker(client, dialogue, supervisor)
    assert supervisor.wait(lambda: client.exit_code is not None, LIMIT_S)
    asker.close()
    supervisor.end(client)
    return client, dialogue


def test_each_line_is_read_at_its_time_since_the_first_request_and_none_before() -> None:
    pause_s, script = 0.2, Script(4, 0.2)
    client, dialogue = run(CLIENT, script)
    assert (client.exit_code, client.complaint) == (0, "")
    assert [arrived.bytes for arrived in dialogue.said] == [1, 2, 3, 4]
    for before, after in zip(dialogue.said, dialogue.said[1:], strict=False):
        assert after.requested_at - before.done_at >= pause_s
    assert script.heard_of[0].requested_at == 0.0
    assert pause_s <= script.heard_of[1].requested_at < LIMIT_S


def test_the_input_ends_at_its_time_though_nothing_arrives() -> None:
    start_s = time.monotonic()
    client, dialogue = run("import sys; sys.stdin.read()", Script(1, 0.0, ends_s=0.3))
    assert client.exit_code == 0
    assert dialogue.said == []
    assert time.monotonic() - start_s >= 0.3


SAYS = """
import json, sys, time
sys.stdin.readline()
now = time.clock_gettime(time.CLOCK_MONOTONIC)
good = {"event": "object", "bytes": 1, "requested_at": now, "first_byte_at": now, "done_at": now}
progress = {"event": "progress", "bytes": 1, "requested_at": now, "at": now}
for said in WRONG:
    print(json.dumps(said), flush=True)
time.sleep(600)
"""
HOSTILE = {
    "[good, good]": "was not asked for them",
    "[{**good, 'done_at': float('nan')}]": "which is no object message",
    "[{**good, 'done_at': 1e12}]": "done_at",
    "[{**good, 'done_at': now + 10}]": "by CLOCK_MONOTONIC it was started at",
    "[{**good, 'requested_at': now - 10}]": "by CLOCK_MONOTONIC it was started at",
    "[{'event': 'object'}]": "no object message",
    "[progress]": "more often than it was asked",
}


def test_a_client_that_says_what_cannot_be_is_ended_and_it_is_told_why() -> None:
    for lines, why in HOSTILE.items():
        client, _ = run(SAYS.replace("WRONG", lines), Script(5, 30.0))
        assert client.exit_code == -9, lines
        assert why in client.complaint


def test_a_client_that_reads_nothing_and_goes_is_no_error_of_the_harness() -> None:
    client, dialogue = run("import os; os.close(0)", Script(1, 0.0))
    assert client.exit_code == 0
    assert dialogue.said == []
