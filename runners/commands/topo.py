"""`fecbench topo`: a shell in a topology, or commands from standard input; then the links' reports."""

import os
import signal
import sys
from typing import Annotated

import typer

from fecbench.hints import nearest
from runners.commands import arguments
from runners.commands.document import print_document
from runners.commands.terminal import say
from runners.refusal import Refusal
from topologies.link import DIRECTIONS, LinkSettings, Queue
from topologies.link_report import DirectionReport, LinkReport
from topologies.topology import TOPOLOGIES, Topology, build


def topo(
    topology: Annotated[str, typer.Argument(help=f"One of: {', '.join(TOPOLOGIES)}.")],
    bandwidth_mbps: Annotated[float, typer.Option(help="Of each emulated link, in each direction.")],
    owd_ms: Annotated[float, typer.Option(help="One-way delay of each emulated link.")],
    queue_bdp: Annotated[
        float | None, typer.Option(help="Queue in BDPs (without any queue option: 1.5).")
    ] = None,
    queue_bytes: Annotated[int | None, typer.Option(help="Queue in bytes of Ethernet frames.")] = None,
    queue_packets: Annotated[int | None, typer.Option(help="Queue in packets.")] = None,
    queue: Annotated[Queue, typer.Option(help="droptail or codel.")] = "droptail",
    link: arguments.Link = "auto",
    as_json: arguments.Json = False,
) -> int:
    """Open Mininet's command line in a topology; without a terminal, run the commands of standard input."""
    if os.geteuid() != 0:
        raise Refusal("fecbench topo must be root: it makes network namespaces")
    if topology not in TOPOLOGIES:
        raise Refusal(f"topology {topology!r}: there is none of that name; {nearest(topology, TOPOLOGIES)}")
    settings = LinkSettings.symmetric(bandwidth_mbps, owd_ms, queue_bdp, queue_bytes, queue_packets, queue)
    links = {emulated.name: settings for emulated in TOPOLOGIES[topology].links}
    # Ctrl-C is for the command that runs in the shell, not for the shell.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with build(topology, links, link) as network:
        _run_commands(network)
        reports = network.finish()
    if as_json:
        print_document({name: report.model_dump() for name, report in reports.items()})
    else:
        for name, report in reports.items():
            _print_report(name, report)
    return 0 if all(report.conserved for report in reports.values()) else 1


def _run_commands(network: Topology) -> None:
    from mininet.cli import CLI

    CLI.readlineInited = True  # else it writes a history file into the home folder
    if sys.stdin.isatty():
        import readline  # noqa: F401  (line editing for input(), by being there)

        CLI(network.mininet)
        return
    # While a command runs, the command line hands it what comes in on its own standard input: the commands to
    # follow must come from elsewhere.
    silent, unused = os.pipe()
    with os.fdopen(silent) as silence, os.fdopen(unused, "w"):
        CLI(network.mininet, stdin=silence, script="/dev/stdin")


def _print_report(name: str, report: LinkReport) -> None:
    say(f"link {name} ({report.backend} {report.version}):")
    for direction in DIRECTIONS:
        say(f"  {direction:<4} {_line(report.directions[direction])}")


def _line(report: DirectionReport) -> str:
    parts = [
        f"{report.frames_in} frames in",
        f"{report.queue_dropped} dropped by the queue",
        f"{report.frames_out} out",
        f"{report.in_flight} in flight",
        "conserved" if report.conserved else "NOT CONSERVED",
    ]
    if report.lateness_us is not None:
        lateness = report.lateness_us
        parts.append(f"late by {lateness.p50:.0f} / {lateness.p99:.0f} / {lateness.max:.0f} µs (p50/p99/max)")
    return ", ".join(parts)
