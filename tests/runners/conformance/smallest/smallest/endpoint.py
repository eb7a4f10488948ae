"""An endpoint made of quic-impls/contract/smallest-endpoint.md alone: a download over UDP, block by block."""

import hashlib
import json
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

BLOCK = 1000
MASK = 2**64 - 1


def fail(status: int, why: str) -> NoReturn:
    print(why, file=sys.stderr)
    sys.exit(status)


def say(event: str, **more: Any) -> None:
    print(json.dumps({"event": event, **more}), flush=True)


def content(seed: int, size: int) -> bytes:
    words = bytearray()
    for number in range(-(-size // 8)):
        z = (seed + (number + 1) * 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        words += (z ^ z >> 31).to_bytes(8, "little")
    return bytes(words[:size])


def end(_number: int, _frame: object) -> NoReturn:
    say("done", metrics={})
    sys.exit(0)


def serve(udp: socket.socket, place: tuple[str, int], whole: bytes) -> None:
    udp.bind(place)
    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    say("ready")
    while True:
        number, client = udp.recvfrom(100)
        at = int(number) * BLOCK
        udp.sendto(number + b" " + whole[at : at + BLOCK], client)


def download(udp: socket.socket, place: tuple[str, int], whole: bytes, deadline_s: float) -> None:
    start_s, handshake_s, received = time.monotonic(), 0.0, bytearray()
    udp.settimeout(0.1)
    for number in range(max(1, -(-len(whole) // BLOCK))):
        block = None
        while block is None:
            if time.monotonic() - start_s > deadline_s:
                fail(1, "the deadline is over")
            udp.sendto(b"%d" % number, place)
            try:
                answered, _, block = udp.recv(2000).partition(b" ")
            except TimeoutError:
                continue
            block = block if int(answered) == number else None
        handshake_s = handshake_s or time.monotonic() - start_s
        received += block
    if hashlib.sha256(received).digest() != hashlib.sha256(whole).digest():
        fail(1, "the content is another one")
    say("done", metrics={"dct_s": time.monotonic() - start_s, "handshake_s": handshake_s})


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text())
    if task["workload"]["name"] != "download":
        fail(127, "no such workload")
    whole = content(task["content_seed"], task["workload"]["size_bytes"])
    place = (task["address"], task["port"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        if task["role"] == "server":
            serve(udp, place, whole)
        download(udp, place, whole, task["deadline_s"])


main()
