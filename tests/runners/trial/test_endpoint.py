"""Endpoints that misbehave are bounded, told apart and ended with everything that they started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fecbench.runners.trial import endpoint as endpoints
from fecbench.runners.trial import supervisor as supervision
from fecbench.runners.trial.endpoint import Endpoint
from fecbench.runners.trial.supervisor import Supervisor
from tests.support.processes import is_running
from tests.waiting import wait_until

LIMIT_S = 60.0


def start(supervisor: Supervisor, program: str) -> Endpoint:
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    return supervisor.follow("client", process)


def run_to_end(program: str) -> Endpoint:
    supervisor = Supervisor()
    endpoint = start(supervisor, program)
    assert supervisor.wait(lambda: endpoint.exit_code is not None, LIMIT_S)
    supervisor.end(endpoint)
    return endpoint


def test_ready_and_done_are_taken_from_lines_however_they_are_cut() -> None:
    endpoint = run_to_end(
        "import sys, time\n"
        'for byte in \'{"event": "ready"}\\n{"event": "done", "metrics": {"dct_s": 1.5}}\\n\':\n'
        "    sys.stdout.write(byte); sys.stdout.flush(); time.sleep(0.001)\n"
    )
    assert endpoint.ready
    assert endpoint.metrics == {"dct_s": 1.5}
    assert endpoint.exit_code == 0
    assert endpoint.complaint == ""


NO_MESSAGES = [
    "hello",
    "{}",
    '{"event": "finished"}',
    '{"event": "done", "metrics": {"dct_s": "fast"}}',
    '{"event": "done", "metrics": {"dct_s": "12"}}',
    '{"event": "done", "metrics": {"dct_s": true}}',
    '{"event": "done", "metrics": {"dct_s": NaN}}',
    '{"event": "done", "metrics": {"dct_s": 1e999}}',
    '{"event": "done", "metrics": null}',
    '{"event": "ready", "metrics": {"dct_s": 1}}',
    '{"event": "done", "metrics": {"dct_s": 1}, "more": 1}',
    "[]",
    '"ready"',
]


def test_a_line_that_is_no_message_kills_the_endpoint_and_is_quoted() -> None:
    for line in NO_MESSAGES:
        endpoint = run_to_end(f"import time; print({line!r}, flush=True); time.sleep(600)")
        assert line[:20] in endpoint.complaint
        assert endpoint.exit_code == -signal.SIGKILL


READY, DONE, DONE_TWICE = (
    '{"event": "ready"}',
    '{"event": "done", "metrics": {"dct_s": 1.5}}',
    '{"event": "done", "metrics": {"dct_s": 0.5}}',
)


def test_what_is_said_twice_or_after_done_is_refused_and_changes_nothing() -> None:
    for before, after in ((DONE, DONE_TWICE), (DONE, READY), (READY, READY), (DONE, "")):
        program = f"print({before!r}); print({after!r}, flush=True); time.sleep(600)"
        endpoint = run_to_end(f"import time; {program}")
        assert repr(after.encode()) in endpoint.complaint
        assert endpoint.exit_code == -signal.SIGKILL
        assert endpoint.metrics == ({"dct_s": 1.5} if before == DONE else None)


def test_a_flood_of_messages_is_ended() -> None:
    endpoint = run_to_end('while True: print(\'{"event": "ready"}\')')
    assert "each is said once" in endpoint.complaint
    assert endpoint.exit_code == -signal.SIGKILL


def test_a_message_without_an_end_is_ended() -> None:
    endpoint = run_to_end(
        "import sys, time; sys.stdout.write('x' * 100_000); sys.stdout.flush(); time.sleep(600)"
    )
    assert "a message of more than" in endpoint.complaint


def test_only_the_end_of_standard_error_is_kept() -> None:
    endpoint = run_to_end("import sys; sys.stderr.write('x' * 10_000_000 + ' the cause\\n'); sys.exit(3)")
    assert endpoint.exit_code == 3
    assert endpoint.stderr.endswith("the cause\n")
    assert len(endpoint.stderr) <= endpoints.STDERR_TAIL_BYTES


def test_an_endpoint_that_obeys_sigint_ends_with_its_own_status() -> None:
    supervisor = Supervisor()
    endpoint = start(
        supervisor,
        # Waiting for the signal, not handling it: a handler may not print while `ready` is being printed.
        "import signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        'print(\'{"event": "ready"}\', flush=True); signal.sigwait({signal.SIGINT})\n'
        'print(\'{"event": "done", "metrics": {"packets_sent": 7}}\', flush=True)\n',
    )
    assert supervisor.wait(lambda: endpoint.ready, LIMIT_S)
    supervisor.end(endpoint)
    assert endpoint.exit_code == 0
    assert endpoint.metrics == {"packets_sent": 7}


def test_an_endpoint_that_ignores_every_signal_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "OBEY_LIMIT_S", 0.2)
    note = tmp_path / "child"
    supervisor = Supervisor()
    endpoint = start(
        supervisor,
        "import os, signal, time\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "if child:\n"
        f"    open({str(note)!r}, 'w').write(str(child)); print('{{\"event\": \"ready\"}}', flush=True)\n"
        "time.sleep(600)\n",
    )
    assert supervisor.wait(lambda: endpoint.ready, LIMIT_S)
    child = int(note.read_text())
    supervisor.end(endpoint)
    assert endpoint.exit_code == -signal.SIGKILL
    wait_until(lambda: not is_running(child), "its end")


def test_waiting_ends_at_its_limit() -> None:
    supervisor = Supervisor()
    endpoint = start(supervisor, "import time; time.sleep(600)")
    start_s = time.monotonic()
    assert not supervisor.wait(lambda: endpoint.ready, 0.3)
    assert time.monotonic() - start_s >= 0.3
    os.kill(endpoint.process.pid, signal.SIGKILL)
    supervisor.end(endpoint)
