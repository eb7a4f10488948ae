"""A messenger that does not do as ours: a manner says what it does instead."""

import os
import sys
import time

WORKERS = '{"kind": "workers", "addresses": ["tcp://ada:1"]}\n'
TEXTS = {
    "garbage": b"well\n",
    "pickles": b"\x80\x04\x95\n",
    "unknown": b'{"kind": "outcome", "worker": "ada", "answer": null, "more": 1}\n',
    "deep": b"[" * 100_000 + b"\n",
    "roars": b"x" * (1 << 20),
    "lies": b'{"kind": "outcome", "worker": "tcp://ada:1", "answer": {"host": "ada", "state": "done"}}\n',
    "refuses": b'{"kind": "outcome", "worker": "tcp://ada:1",'
    b' "answer": {"host": "ada", "state": "refused", "why": "has other binaries"}}\n' + WORKERS.encode(),
}


def behave(manner: str) -> None:
    sys.stdin.readline()
    if manner == "dies":
        sys.exit("I have had\nenough")
    if manner not in ("silent", "roars"):
        os.write(1, WORKERS.encode())
    if manner == "leaves":
        sys.exit("and out")
    if manner in ("deaf", "silent"):
        time.sleep(1000)
    while True:
        os.write(1, TEXTS[manner])
        time.sleep(0.01 if manner in ("lies", "refuses") else 0.0)


def asked(number: int) -> str:
    """A request to a worker, as its messenger writes it."""
    join = f'{{"fecbench": "1", "database": "postgresql://ada/x", "campaign": "little-{number}"}}'
    return f'{{"kind": "asked", "number": {number}, "join": {join}}}\n'
