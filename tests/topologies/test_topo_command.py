"""`fecbench topo`: commands in, reports out, nothing left."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fecbench.checkout import REPOSITORY
from fecbench.runners.commands.topo import topo as command

COMMAND = """
import sys, typer
from fecbench.runners.commands.topo import topo
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(topo)
sys.exit(app(standalone_mode=False))
"""
LINK = ["single-path", "--bandwidth-mbps", "10", "--owd-ms", "5"]

pytestmark = pytest.mark.root


def topo(*words: str, commands: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        input=commands,
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        timeout=200,
    )


def test_each_link_has_a_report_for_people_too() -> None:
    result = topo(*LINK, "--queue-packets", "7", commands="client ping -q -c 3 -i 0.01 server\n")
    assert result.returncode == 0
    assert result.stdout.startswith("link internet (wire ")
    assert result.stdout.count("3 frames in, 0 dropped by the queue, 3 out, 0 in flight, conserved") == 2


BAD: list[tuple[list[str], str]] = [
    (
        ["singel-path", *LINK[1:]],
        "topology 'singel-path': there is none of that name; did you mean 'single-path'",
    ),
    ([*LINK[:3], "--owd-ms", "-1"], "owd_ms = -1.0: must be"),
    ([*LINK, "--set", "path2.owd_ms=1"], "--set path2.owd_ms=1: 'path2.owd_ms' is not a parameter of a"),
    ([*LINK, "--set", "internet.owd_ms=fast"], "owd_ms = 'fast': must be a number"),
    ([*LINK, "--queue-bdp", "1", "--queue-packets", "9"], "queue_bdp = 1.0 and queue_packets = 9 are given"),
]


def test_bad_input_is_one_line() -> None:
    app = typer.Typer()
    app.command()(command)
    for words, named in BAD:
        refusal = CliRunner().invoke(app, words)
        assert named in str(refusal.exception), words
        assert "\n" not in str(refusal.exception) and not refusal.stdout, words


def test_a_terminal_gets_mininet_s_command_line(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(REPOSITORY)
        environment = os.environ | {"HOME": str(tmp_path)}
        os.execve(sys.executable, [sys.executable, "-c", COMMAND, *LINK], environment)
    expect(terminal, "mininet> ")
    os.write(terminal, b"client ping -q -c 1 server\n")
    assert "1 received" in expect(terminal, "mininet> ")
    os.write(terminal, b"exit\n")
    expect(terminal, "down 1 frames in")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
    assert list(tmp_path.iterdir()) == []


def expect(terminal: int, expected: str, timeout_s: float = 60) -> str:
    text, deadline = "", time.monotonic() + timeout_s
    while expected not in text:
        ready, _, _ = select.select([terminal], [], [], deadline - time.monotonic())
        assert ready, f"{expected!r} did not come after {text!r}"
        text += os.read(terminal, 4096).decode()
    return text


def test_it_runs_the_commands_of_standard_input_and_prints_reports_of_links_with_their_own_values() -> None:
    """Outages count from the first command."""
    own = ["--set", "path2.owd_ms=7", "--set", "path2.down.outage_s=[0, 1000]"]
    pings = [f"client ping -q -c 3 -i 0.01 -W 1 -I 10.0.{number}.2 server\n" for number in (2, 1)]
    result = topo("multipath", *LINK[1:], *own, "--json", commands="".join(pings))
    assert result.returncode == 0
    assert result.stderr.count("3 received") == 1
    paths = json.loads(result.stdout)
    assert {path: report["configuration"]["delay_ns"] for path, report in paths.items()} == {
        "path1": 5_000_000,
        "path2": 7_000_000,
    }
    assert paths["path2"]["directions"]["down"]["outage_dropped"] == 3
    assert paths["path1"]["directions"]["down"]["frames_out"] == 3
