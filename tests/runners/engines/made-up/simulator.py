"""A simulator without endpoints, for tests: its numbers are made up of its task alone, and they are possible.

Its losses are drawn as the contract says. The option `manner` tells what it does in place of answering well.
"""

import base64
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MASK = (1 << 64) - 1
PAYLOAD, OVERHEAD = 1200, 42
answered = 0


def draw(seed: int, n: int, j: int) -> int:
    z = (seed + (2 * n + j + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return (z ^ (z >> 31)) >> 32


def lines_of(text: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in text.splitlines())


def listed(drop: str) -> set[int]:
    ranges = [part.split("-") for part in drop.split(",") if part]
    return {n for ends in ranges for n in range(int(ends[0]), int(ends[-1]) + 1)}


def threshold(probability: float) -> int:
    return round(probability * 2**32)


def verdicts(losses: dict[str, str], packets: int) -> bytearray:
    bitmap, bad, seed = bytearray((packets + 7) // 8), False, int(losses["seed"])
    if losses["model"] == "pattern":
        dropped, length = listed(losses["drop"]), int(losses["length"])
        for n in range(packets):
            if (n % length if losses["repeat"] == "true" and length else n) in dropped:
                bitmap[n // 8] |= 1 << n % 8
        return bitmap
    p, r, k, h = (float(losses.get(name, absent)) for name, absent in zip("prkh", "0010", strict=True))
    good, bad_loss, leave_good, leave_bad = map(threshold, (1 - k, 1 - h, p, r))
    if losses["model"] == "uniform":
        good, leave_good = threshold(p), 0
    for n in range(packets):
        if draw(seed, n, 0) < (bad_loss if bad else good):
            bitmap[n // 8] |= 1 << n % 8
        bad = bad != (draw(seed, n, 1) < (leave_bad if bad else leave_good))
    return bitmap


def directions_of(task: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {name: lines_of(text) for name, text in task["links"]["internet"].items()}


def report(direction: dict[str, str], packets: int) -> dict[str, Any]:
    bitmap = verdicts(direction, packets)
    size = packets * (PAYLOAD + OVERHEAD)
    return {
        "frames_in": packets,
        "bytes_in": size,
        "frames_out": packets,
        "bytes_out": size,
        "queue_dropped": 0,
        "oversize_dropped": 0,
        "in_flight": 0,
        "max_queue_bytes": PAYLOAD + OVERHEAD,
        "max_queue_packets": 1,
        "dropped": sum(byte.bit_count() for byte in bitmap),
        "conserved": True,
        "packets": packets,
        "bitmap": base64.b64encode(bitmap).decode(),
    }


def answer(task: dict[str, Any]) -> dict[str, Any]:
    link, client = directions_of(task), task["pairs"][0]["client"]
    if client["workload"]["name"] == "messages":
        return answer_messages(task)
    size = client["workload"]["size_bytes"]
    down_packets = math.ceil(size / PAYLOAD) + 3
    up, down = report(link["up"], down_packets // 2 + 2), report(link["down"], down_packets)
    rtt_s = (int(link["up"]["delay_ns"]) + int(link["down"]["delay_ns"])) / 1e9
    jitter_s = task["seed"] % 1000 / 1e6
    link_s = 8 * down["bytes_out"] / int(link["down"]["rate_bps"])
    dct_s = (2 + down["dropped"] / 4) * rtt_s + link_s + jitter_s
    metrics = {
        "dct_s": dct_s,
        "handshake_s": rtt_s,
        "packets_sent": up["packets"],
        "packets_lost": up["dropped"],
        "packets_received": down["packets"] - down["dropped"],
    }
    served = {
        "packets_sent": down["packets"],
        "packets_lost": down["dropped"],
        "packets_received": up["packets"] - up["dropped"],
    }
    for pair in task["pairs"]:
        for end in pair.values():
            leave_series(end)
    if task["capture"]:
        for role in ("client", "server"):
            (Path(task["capture"]) / f"{role}.pcapng").write_bytes(b"packets")
        (Path(task["capture"]) / "link").symlink_to("/etc/passwd")
    return {
        "number": task["number"],
        "endpoints": {
            "client": {"ready": False, "exit_code": 0, "metrics": metrics, "stderr": ""},
            "server": {"ready": True, "exit_code": 0, "metrics": served, "stderr": ""},
        },
        "timed_out": False,
        "background_lasted": True,
        "competition": None,
        "links": {"internet": {"up": up, "down": down}},
        "client_s": dct_s,
        "virtual_s": dct_s + rtt_s,
    }


def answer_messages(task: dict[str, Any]) -> dict[str, Any]:
    """Answer with each part of a message in a datagram of its own, and nothing else."""
    pair, link = task["pairs"][0], directions_of(task)
    workload = pair["client"]["workload"]
    down = workload["direction"] == "down"
    way, sender, receiver = ("down", "server", "client") if down else ("up", "client", "server")
    rtt_s = (int(link["up"]["delay_ns"]) + int(link["down"]["delay_ns"])) / 1e9
    sent, arrived, packets, free_s, began_s = [], [], 0, 0.0, 0.5
    parts = [
        (message, part, due_us / 1e6, min(workload["part_bytes"], size - part * workload["part_bytes"]))
        for message, (due_us, size) in enumerate(workload["timetable"])
        for part in range(-(-size // workload["part_bytes"]))
    ]
    bitmap = verdicts(link[way], len(parts))
    for message, part, due_s, size in parts:
        free_s = max(free_s, due_s) + 8 * (PAYLOAD + OVERHEAD) / int(link[way]["rate_bps"])
        due = f"{began_s + due_s:.9f}"
        sent.append(f"{due_s:.6f},0,{message},{part},{due},{due},{size}")
        if not bitmap[packets // 8] >> packets % 8 & 1:
            at_s = free_s + int(link[way]["delay_ns"]) / 1e9
            arrived.append(f"{at_s:.6f},0,{message},{part},{began_s + at_s:.9f},{size}")
        packets += 1
    for role, columns, rows in ((sender, "due_s,sent_s", sent), (receiver, "arrived_s", arrived)):
        if "messages" in pair[role].get("series", []):
            path = Path(pair[role]["log_folder"]) / "messages.series.csv"
            path.write_text("\n".join([f"t_s,connection,message,part,{columns},bytes", *rows, ""]))
        leave_series(pair[role])
    dct_s = free_s + rtt_s
    result = {"exit_code": 0, "stderr": ""}
    return {
        "number": task["number"],
        "endpoints": {
            "client": {"ready": False, "metrics": {"dct_s": dct_s, "handshake_s": rtt_s}, **result},
            "server": {"ready": True, "metrics": {}, **result},
        },
        "timed_out": False,
        "background_lasted": True,
        "competition": None,
        "links": {
            "internet": {name: report(link[name], packets if name == way else 0) for name in ("up", "down")}
        },
        "client_s": dct_s,
        "virtual_s": dct_s + rtt_s,
    }


def leave_series(end: dict[str, Any]) -> None:
    for name in set(end.get("series", [])) - {"messages"}:
        path = Path(end["log_folder"]) / f"{name}.series.csv"
        path.write_text("t_s,connection,congestion_window_bytes\n0.0,0,12520\n")


def say(text: str) -> None:
    print(text, flush=True)


def misbehave(manner: str, task: dict[str, Any]) -> None:
    if manner == "forgets":
        for pair in task["pairs"]:
            for end in pair.values():
                end["series"] = []
    good = answer(task)
    metrics, links = good["endpoints"]["client"]["metrics"], good["links"]["internet"]
    match manner:
        case "hangs":
            print("let me think", file=sys.stderr, flush=True)
            time.sleep(1000)
        case "dies":
            print("I have had enough", file=sys.stderr, flush=True)
            os._exit(3)
        case "is_killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "closes":
            os.close(1)
            time.sleep(1000)
        case "garbage":
            say("well, well")
            return
        case "boasts":
            for _ in range(1024):
                print("x" * (1 << 20), end="")
        case "chatters":
            while True:
                say("well, well" * 1000)
        case "refuses":
            say(json.dumps({"number": task["number"], "error": "I cannot play this"}))
            return
        case "asks":
            say(json.dumps({"number": task["number"], "objects": [], "now_s": 0.0}))
            return
        case "disturbs":
            say(json.dumps({"number": task["number"], "invalid": "collected garbage within the trial"}))
            return
        case "other_number":
            good["number"] += 1
        case "no_links":
            good["links"] = {}
        case "no_server":
            del good["endpoints"]["server"]
        case "nan":
            metrics["dct_s"] = math.nan
        case "infinite":
            say(json.dumps(good).replace('"dct_s": ', '"dct_s": 1e999, "old_s": '))
            return
        case "text":
            metrics["dct_s"] = "0.5"
        case "twice":
            say(json.dumps(good))
        case "short_bitmap":
            links["down"]["bitmap"] = ""
        case "no_base64":
            links["down"]["bitmap"] = "?!"
        case "short_arrivals":
            links["down"]["arrivals"] = base64.b64encode(bytes(8)).decode()
        case "outlasts":
            good["client_s"] = 2 * good["virtual_s"]
        case "leaks":
            links["up"]["frames_in"] += 1
        case "lies":
            bitmap = bytearray(base64.b64decode(links["down"]["bitmap"]))
            bitmap[0] ^= 1
            links["down"]["bitmap"] = base64.b64encode(bitmap).decode()
        case "remembers":
            metrics["tasks_before"] = answered
        case "sleeps":
            time.sleep(0.05)
        case "links":
            folder = Path(task["pairs"][0]["client"]["log_folder"])
            folder.rename(folder.parent / "elsewhere")
            folder.symlink_to("elsewhere")
        case "leaves":
            # Its name tells whose it is.
            name = task["pairs"][0]["client"]["authority"]
            subprocess.Popen(["/bin/sh", "-c", "sleep 600; exit", name], start_new_session=True)
        case "shouts":
            print("x" * 100_000, file=sys.stderr, flush=True)
    say(json.dumps(good))


for line in sys.stdin:
    task = json.loads(line)
    client = task["pairs"][0]["client"]
    options = client["options"]
    if options["manner"] != "good" and client["content_seed"] % options["one_in"] == 0:
        misbehave(options["manner"], task)
    else:
        say(json.dumps(answer(task)))
    answered += 1
