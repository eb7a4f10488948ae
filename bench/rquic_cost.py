"""Costs of rQUIC's coding: downloads over plain loopback (`loopback.py`).

Coded packets take their share of throughput and CPU time; the rows that leave it out count them as if they
carried content.
"""

from bench.loopback import download
from bench.table import Row, print_table

ROUNDS = 5
SIZE_BYTES = 150_000_000
SCHEMES = ("none", "plain", "xor", "rlc")
CODES = ("xor", "rlc")


def run() -> None:
    """Print a table of throughput and one of CPU time."""
    rounds = [
        {scheme: download("rquic", {"scheme": scheme}, SIZE_BYTES) for scheme in SCHEMES}
        for _ in range(ROUNDS)
    ]
    by_scheme = {scheme: [one[scheme] for one in rounds] for scheme in SCHEMES}
    rates = [Row(scheme, [one.mbps for one in by_scheme[scheme]]) for scheme in SCHEMES]
    costs = [Row(scheme, [one.cpu_us for one in by_scheme[scheme]]) for scheme in SCHEMES]
    for scheme in CODES:
        name, downloads = f"{scheme}, coded packets' share off", by_scheme[scheme]
        rates.append(Row(name, [one.mbps * one.sent_to_source for one in downloads]))
        costs.append(Row(name, [one.cpu_us / one.sent_to_source for one in downloads]))
    what = f"rquic, download of {SIZE_BYTES / 1e6:g} MB over loopback, {ROUNDS} rounds"
    print_table(what, "Mbit/s", rates)
    print_table(what, "µs of CPU/packet", costs)
