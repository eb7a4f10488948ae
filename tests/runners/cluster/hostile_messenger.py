"""A messenger that does not do as ours: the variable DASK_MANNER says what it does instead."""

import os
import sys
import time

MANNER = os.environ["DASK_MANNER"]
WORKERS = '{"kind": "workers", "addresses": ["tcp://ada:1"]}\n'

sys.stdin.readline()
if MANNER == "dies":
    sys.exit("I have had\nenough")
if MANNER not in ("silent", "roars"):
    sys.stdout.write(WORKERS)
    sys.stdout.flush()
if MANNER in ("deaf", "silent"):
    time.sleep(1000)
if MANNER == "leaves":
    sys.exit("and out")
text = {
    "garbage": b"well\n",
    "pickles": b"\x80\x04\x95\n",
    "unknown": b'{"kind": "outcome", "number": 0, "text": null, "more": 1}\n',
    "deep": b"[" * 100_000 + b"\n",
    "boasts": b"x" * (1 << 20),
    "roars": b"x" * (1 << 20),
    "floods": b'{"kind": "outcome", "number": 7, "text": null}\n' * 10_000,
}[MANNER]
while True:
    os.write(1, text)
