"""Endpoints that are programs in Python, which a test writes."""

import sys

from fecbench.runners.trial.site import Commands

HEAD = """
import json, os, selectors, signal, socket, sys, time
task = json.load(open(sys.argv[1]))
begun, server = time.monotonic(), (task["address"], task["port"])
socket_ = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def say(event, **metrics):  # a signal's handler may call it within another call, and print() may not be
    os.write(1, f"{json.dumps({'event': event, 'metrics': metrics})}\\n".encode())
def done(**metrics):
    say("done", dct_s=time.monotonic() - begun, **metrics)
"""
"""The task, a socket, and what an endpoint says."""
SERVE = f"""{HEAD}
counts = {{}}
def finish(*_):
    say("done", **counts)
    sys.exit(0)
signal.signal(signal.SIGINT, finish)
socket_.bind(server)
say("ready")
"""
"""A server that is ready; when it is asked to end, it reports its counts."""


def commands_of(client: str, server: str) -> dict[str, list[str]]:
    return {role: [sys.executable, "-c", text] for role, text in (("client", client), ("server", server))}


def scripted(client: str, server: str) -> Commands:
    """Return the commands of the implementation `script`, whose ends are these programs."""
    return {"script": commands_of(client, server)}
