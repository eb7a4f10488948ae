"""Costs of a cluster in virtual time: throughput with one, two, three and eight workers of one core each,
beside a campaign on one machine, and the CPU time of scheduler, run and database.

    python -m bench.cluster_cost [--repetitions N]

Needs PostgreSQL's server.
"""

import argparse
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.arguments import from_one
from bench.cluster_parts import FECBENCH, free_address, new_database, running, server_in, server_programs
from fecbench import designs
from fecbench.results.store.database import Database

DESIGN = "networking2019-uniform"
WORKERS = (1, 2, 3, 8)
SHARED = ("scheduler", "run", "database")
IDLE_S = 30.0
IDLE_BOUND = 0.005
"""Share of a core that an idle worker may take."""
WIDTH = 110


@dataclass(frozen=True)
class Cost:
    """Costs of a campaign."""

    trials: int
    groups: int
    seconds: float
    cpu_s: Mapping[str, float]
    """CPU time of scheduler, run, database and workers, less that of a campaign with nothing to run."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repetitions", type=from_one, default=3, help="of the design, so many")
    sys.exit("\n".join(run(parser.parse_args().repetitions)) or 0)


def run(repetitions: int = 3) -> list[str]:
    """Print the table; what missed its bound, a line each."""
    if server_programs() == Path():
        return ["PostgreSQL's server is missing: apt-get install postgresql"]
    costs: dict[str, Cost] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fecbench-bench-", dir="/tmp")))
        server = stack.enter_context(server_in(folder))
        design = folder / "design.toml"
        known = designs.load(designs.catalogue()[DESIGN])
        design.write_text(re.sub(r"(?m)^repetitions *=.*$", f"repetitions = {repetitions}", known.text))
        papers = folder / "papers"
        subprocess.run([FECBENCH, "cluster", "certificates", papers], check=True, capture_output=True)
        reach = [free_address(), "--certificates", str(papers)]
        scheduler = stack.enter_context(running("listens", "cluster", "scheduler", *reach))
        costs["at home, 1 core"] = _cost(design, server, "home", {}, [], within=["taskset", "-c", "0"])
        workers: dict[str, int] = {}
        idle = 0.0
        for count in WORKERS:
            for number in range(len(workers) + 1, count + 1):
                within = ["taskset", "-c", str((number - 1) % (os.cpu_count() or 1))]
                worker = running("connected", "worker", *reach, "--jobs", "1", within=within)
                workers[f"worker {number}"] = stack.enter_context(worker)
            if count == 1:
                before = _tree_s(workers["worker 1"])
                time.sleep(IDLE_S)
                idle = (_tree_s(workers["worker 1"]) - before) / IDLE_S
            watched = {"scheduler": scheduler, **workers}
            options = ["--cluster", *reach]
            name = f"{count} worker{'s' * (count > 1)}"
            costs[name] = _cost(design, server, f"with_{count}", watched, options)
    print_costs(costs)
    for who, carried in workers_carried(costs["1 worker"]).items():
        print(f"a core of {who} is busy with {carried:.0f} such workers")
    print(f"an idle worker takes {idle:.2%} of a core")
    return (
        [] if idle <= IDLE_BOUND else [f"an idle worker: {idle:.2%} of a core, the bound is {IDLE_BOUND:.1%}"]
    )


def workers_carried(cost: Cost) -> dict[str, float]:
    """Return how many workers like the one of `cost` keep a core of each shared part busy.

    On paper: what a group costs is taken to be the same whatever the number of workers. A scheduler and a run
    have one core each, a database as many as its host. A part that took no time allows infinitely many.
    """
    return {who: cost.seconds / cost.cpu_s[who] if cost.cpu_s[who] else math.inf for who in SHARED}


def _cost(
    design: Path,
    server: Path,
    name: str,
    watched: Mapping[str, int],
    options: list[str],
    within: list[str] | None = None,
) -> Cost:
    url = new_database(server, name)
    postmaster = int((server / "data" / "postmaster.pid").read_text().splitlines()[0])
    everyone = {**watched, "database": postmaster}
    jobs = [] if options else ["--jobs", "1"]
    command = [FECBENCH, "run", design, "--engine", "virtual", "--db", url, *jobs, *options]
    ran = _campaign([*(within or []), *map(str, command)], everyone)
    # Nothing is left to be run: what is left is the command itself.
    empty = _campaign([*(within or []), *map(str, command), "--resume"], everyone)
    with Database.open(url) as database:
        (campaign,) = database.campaigns()
        trials = database.trial_count(campaign.id)
    groups = trials // len(campaign.variants)
    cpu_s = {who: max(0.0, of_all - empty.cpu_s[who]) for who, of_all in ran.cpu_s.items()}
    return Cost(trials, groups, ran.seconds, cpu_s)


@dataclass(frozen=True)
class _Ran:
    """Costs of one command."""

    seconds: float
    cpu_s: Mapping[str, float]


def _campaign(command: list[str], everyone: Mapping[str, int]) -> _Ran:
    before = {who: _tree_s(process) for who, process in everyone.items()}
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    own_s = 0.0
    while process.poll() is None:
        own_s = max(own_s, _own_s(process.pid))
        time.sleep(0.1)
    seconds = time.monotonic() - begun
    if process.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    cpu_s = {who: _tree_s(pid) - before[who] for who, pid in everyone.items()}
    return _Ran(seconds, {**cpu_s, "run": own_s})


def print_costs(costs: Mapping[str, Cost]) -> None:
    table = Table(title=f"{DESIGN}, virtual", title_justify="left")
    table.add_column("")
    for heading in (
        *("trials", "s", "trials/s", "ratio"),
        *("ms a group: scheduler", "run", "database"),
        "scheduler's share of a core",
    ):
        table.add_column(heading, justify="right")
    first = next(iter(costs.values()))
    for name, cost in costs.items():
        rate = cost.trials / cost.seconds
        per_group = [
            f"{1e3 * cost.cpu_s[who] / cost.groups:.2f}" if who in cost.cpu_s else "-" for who in SHARED
        ]
        share = cost.cpu_s.get("scheduler", 0.0) / cost.seconds
        ratio = rate / (first.trials / first.seconds)
        table.add_row(
            name,
            str(cost.trials),
            f"{cost.seconds:.1f}",
            f"{rate:.0f}",
            f"{ratio:.2f}",
            *per_group,
            f"{share:.1%}",
        )
    Console(width=WIDTH).print(table)


def _own_s(process: int) -> float:
    """The CPU time of a process itself; 0 when it has ended."""
    try:
        user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _tree_s(process: int) -> float:
    """The CPU time of a process, of all that it has awaited, and of those below it that run."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        others = [
            child
            for thread in Path(f"/proc/{process}/task").iterdir()
            if int(thread.name) != process
            for child in (thread / "children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    below = sum(_tree_s(int(child)) for child in (*children, *others))
    return sum(map(int, stat)) / os.sysconf("SC_CLK_TCK") + below


if __name__ == "__main__":
    main()
