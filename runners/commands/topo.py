"""`fecbench topo`: a shell in a topology, or commands from standard input; then the links' reports."""

from __future__ import annotations

import os
import signal
import sys
import tomllib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fecbench.hints import nearest
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.terminal import say
from fecbench.runners.refusal import Refusal
from fecbench.topologies.family import Family
from fecbench.topologies.link import QUEUES, Queue
from fecbench.topologies.topology import TOPOLOGIES

if TYPE_CHECKING:
    from fecbench.topologies.link import LinkSettings
    from fecbench.topologies.link_report import DirectionReport, LinkReport
    from fecbench.topologies.topology import Topology


def topo(
    topology: Annotated[str, typer.Argument(help=f"One of: {', '.join(TOPOLOGIES)}.")],
    bandwidth_mbps: Annotated[float, typer.Option(help="Of each emulated link, in each direction.")],
    owd_ms: Annotated[float, typer.Option(help="One-way delay of each emulated link.")],
    queue_bdp: Annotated[
        float | None, typer.Option(help="Queue in BDPs (without any queue option: 1.5).")
    ] = None,
    queue_bytes: Annotated[int | None, typer.Option(help="Queue in bytes of Ethernet frames.")] = None,
    queue_packets: Annotated[int | None, typer.Option(help="Queue in packets.")] = None,
    queue: Annotated[Queue, typer.Option(help=f"One of {', '.join(QUEUES)}.")] = "droptail",
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter by its name in designs, such as path2.owd_ms=100; it may be given again.",
        ),
    ] = None,
    family: Annotated[Family, typer.Option(help="ipv4 or ipv6: the family of all addresses.")] = "ipv4",
    link: arguments.Link = "auto",
    as_json: arguments.Json = False,
) -> int:
    """Open Mininet's command line in a topology; without a terminal, run the commands of standard input.

    Outages are counted from the first frame that the client sends when the commands have begun.
    """
    from fecbench.topologies.topology import build

    if os.geteuid() != 0:
        raise Refusal("fecbench topo must be root: it makes network namespaces")
    if topology not in TOPOLOGIES:
        raise Refusal(f"topology {topology!r}: there is none of that name; {nearest(topology, TOPOLOGIES)}")
    values = {
        "bandwidth_mbps": bandwidth_mbps,
        "owd_ms": owd_ms,
        "queue_bdp": queue_bdp,
        "queue_bytes": queue_bytes,
        "queue_packets": queue_packets,
        "queue": queue,
    }
    choices = {name: value for name, value in values.items() if value is not None}
    links = _links(topology, choices, setting or [])
    # Ctrl-C is for the command that runs in the shell, not for the shell.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with build(topology, links, link, family=family) as network:
        network.start()
        _run_commands(network)
        reports = network.finish()
    if as_json:
        print_document({name: report.model_dump() for name, report in reports.items()})
    else:
        for name, report in reports.items():
            _print_report(name, report)
    return 0 if all(report.conserved for report in reports.values()) else 1


def _links(topology: str, values: dict[str, Any], settings: list[str]) -> dict[str, LinkSettings]:
    """Return the settings of each link: `settings` by their own names, and `values` for all links."""
    from fecbench.runners.campaign.links import link_tasks, setting_names

    names = [emulated.name for emulated in TOPOLOGIES[topology].links]
    names_of_settings = setting_names(names)
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in names_of_settings:
            raise Refusal(
                f"--set {setting}: {name!r} is not a parameter of a link; {nearest(name, names_of_settings)}"
            )
        values = {**values, name: _value(text)}
    return {name: task.settings for name, task in link_tasks(values, names).items()}


def _value(text: str) -> Any:
    """Return the value as a design would have it; a text that is not a TOML value stays text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _run_commands(network: Topology) -> None:
    from mininet.cli import CLI

    CLI.readlineInited = True  # else it writes a history file into the home folder
    if sys.stdin.isatty():
        import readline  # noqa: F401  (line editing for input(), by being there)

        CLI(network.mininet())
        return
    # While a command runs, the command line hands it what comes in on its own standard input: the commands to
    # follow must come from elsewhere.
    silent, unused = os.pipe()
    with os.fdopen(silent) as silence, os.fdopen(unused, "w"):
        CLI(network.mininet(), stdin=silence, script="/dev/stdin")


def _print_report(name: str, report: LinkReport) -> None:
    from fecbench.topologies.link import DIRECTIONS

    say(f"link {name} ({report.backend} {report.version}):")
    for direction in DIRECTIONS:
        say(f"  {direction:<4} {_line(report.directions[direction])}")


def _line(report: DirectionReport) -> str:
    from fecbench.topologies.link_report import EFFECTS

    parts = [
        f"{report.frames_in} frames in",
        f"{report.queue_dropped} dropped by the queue",
        *(f"{count} {effect}" for name, effect in EFFECTS.items() if (count := getattr(report, name))),
        f"{report.frames_out} out",
        f"{report.in_flight} in flight",
        "conserved" if report.conserved else "NOT CONSERVED",
    ]
    if report.lateness_us is not None:
        lateness = report.lateness_us
        parts.append(f"late by {lateness.p50:.0f} / {lateness.p99:.0f} / {lateness.max:.0f} µs (p50/p99/max)")
    return ", ".join(parts)
