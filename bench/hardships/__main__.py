"""Hardships of the commands that write: they are killed or stopped, the disk is full, or the clock leaps.

    python -m bench.hardships [kill|disk|stop|clock] [--command NAME] [--times N] [--seed N]

After each hardship the same command is given once more. It has to end as it does undisturbed, with every
trial once, whole files, and nothing left behind. Prints how often each hardship happened to each command, and
a line for whatever was wrong; ends with 1 then. Needs root. Everything happens in namespaces of its own.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.arguments import from_one
from bench.hardships.case import case_of
from bench.hardships.cluster import KILLS, cluster
from bench.hardships.deeds import DEEDS, Place, lay_ground
from bench.hardships.hardships import HARDSHIPS
from bench.hardships.surroundings import end_all_of

COMMANDS = [*DEEDS, *KILLS]
ALONE = "FECBENCH_ALONE"
ISOLATED = 'ip link set lo up && mount -t tmpfs none /run/netns && exec "$@"'


def main() -> int:
    parser = argparse.ArgumentParser("bench.hardships", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("hardships", nargs="*", metavar="HARDSHIP", help=", ".join(HARDSHIPS))
    parser.add_argument("--command", action="append", choices=COMMANDS, help="only this one; repeatable")
    parser.add_argument("--times", type=from_one, default=1, help="each hardship for each command")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    options = parser.parse_args()
    if unknown := set(options.hardships) - HARDSHIPS.keys():
        parser.error(f"{', '.join(sorted(unknown))}: must be among {', '.join(HARDSHIPS)}")
    if os.geteuid() != 0:
        print("bench.hardships: makes namespaces and disks: run it as root", file=sys.stderr)
        return 2
    if ALONE not in os.environ:
        return isolated()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # and end what runs beside
    with tempfile.TemporaryDirectory(prefix="hardships-") as folder:
        return meet(Path(folder), options.hardships or list(HARDSHIPS), options.command or COMMANDS, options)


def isolated() -> int:
    """Run this program again with its own mounts, interfaces and named namespaces."""
    Path("/run/netns").mkdir(exist_ok=True)
    own = ["unshare", "--mount", "--net", "sh", "-c", ISOLATED, "sh"]
    again = [*own, sys.executable, "-m", "bench.hardships", *sys.argv[1:]]
    return subprocess.run(again, env={**os.environ, ALONE: "1"}).returncode


def meet(folder: Path, hardships: list[str], commands: list[str], options: argparse.Namespace) -> int:
    ground = folder / "ground"
    ground.mkdir()
    lay_ground(ground, (DEEDS[name] for name in commands if name in DEEDS))
    counts: Counter[tuple[str, str]] = Counter()
    problems = 0
    try:
        for command, hardship, happen in all_of(folder, ground, hardships, commands):
            chance = random.Random(f"{options.seed} {command} {hardship}")
            for number in range(1, options.times + 1):
                wrong = happen(chance)
                if wrong is not None:
                    counts[command, hardship] += 1
                    problems += len(wrong)
                line = "it did not happen" if wrong is None else "; ".join(wrong) or "nothing wrong"
                print(f"{command}, {hardship} {number}: {line}", flush=True)
    finally:  # also of a run that takes too long for somebody
        end_all_of(folder)
        print_counts(counts, hardships)
    if not counts:
        print("nothing has happened: stops are of commands that run trials, and clusters know kills alone")
        return 2
    print(f"{problems} things were wrong" if problems else "nothing was wrong")
    return 1 if problems else 0


Happen = Callable[[random.Random], list[str] | None]


def all_of(
    folder: Path, ground: Path, hardships: list[str], commands: list[str]
) -> Iterator[tuple[str, str, Happen]]:
    """Yield each hardship of each command, which is ready for it until the next is asked for."""
    for command in filter(DEEDS.__contains__, commands):
        case = case_of(DEEDS[command], Place(folder / command, ground))
        for hardship in hardships:
            if hardship != "stop" or case.deed.trials:
                yield command, hardship, partial(HARDSHIPS[hardship], case)
    of_clusters = [command for command in commands if command in KILLS]
    if "kill" in hardships and of_clusters:
        with cluster(ground / "virtual.toml") as one_cluster:
            for command in of_clusters:
                yield command, "kill", partial(KILLS[command], one_cluster)


def print_counts(counts: Counter[tuple[str, str]], hardships: list[str]) -> None:
    table = Table(title="how often each hardship happened", title_justify="left")
    table.add_column("command")
    for hardship in hardships:
        table.add_column(hardship, justify="right")
    for command in dict.fromkeys(command for command, _ in counts):
        table.add_row(command, *(str(counts[command, hardship] or "") for hardship in hardships))
    Console(width=100).print(table)


if __name__ == "__main__":
    sys.exit(main())
