"""Costs of whole campaigns in virtual time, beside a share of the same trials emulated. They are run, judged
and stored on two cores, in virtual time by a user without rights.

    python -m bench.engine_cost [DESIGN …] [--repetitions N] [--no-emulation]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import harness_cost
from bench.arguments import from_one
from bench.simulator_cost import cpu_s
from fecbench import designs
from fecbench.checkout import REPOSITORY
from fecbench.designs import Design
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.crosscheck import SUFFIX, sample
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.implementations.finding import ours
from fecbench.runners.trial import certificates
from fecbench.runners.trial.assignment import SERVER_NAME
from fecbench.runners.trial.simulation import Place

CORES = 2
VIRTUAL, ALONE, EMULATED = "virtual", "its simulator alone", "emulated"
HARNESS = "the harness alone"
NOBODY = 65534
WITHOUT_RIGHTS = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
ALONE_SHARE = 0.05
"""Share of the trials that the simulator runs without a harness."""
SHORT_DESIGN = REPOSITORY / "bench" / "processor_time.toml"
SHORT_MS = 100
"""Most CPU time of an emulated download of 10 kB without losses, everything that sets it up included."""
WIDTH = 100  # no figure is cut


@dataclass(frozen=True)
class Bound:
    """Bounds of a design of the catalogue on two cores."""

    design: str
    seconds: float
    """Most time of the whole campaign in virtual time."""
    alone_per_s: float = 0.0
    """Least number of trials that its simulator runs in a second of one core."""
    harness_per_s: float = 0.0
    """Least number of trials that the harness runs, judges and stores in a second of one core, with a
    simulator that does nothing."""


BOUNDS = {
    bound.design: bound
    for bound in (Bound("networking2019-uniform", 150.0, 150.0, 3000.0), Bound("rquic2021-bulk", 900.0))
}


@dataclass(frozen=True)
class Cost:
    """Time that a number of trials took."""

    trials: int
    seconds: float
    harness_s: float
    """CPU time of fecbench's own process."""
    others_s: float
    """CPU time of simulators, or of endpoints and links, with all that sets them up."""

    @property
    def per_s(self) -> float:
        return self.trials / self.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "designs", metavar="DESIGN", nargs="*", help=f"of {', '.join(BOUNDS)}; by default all"
    )
    parser.add_argument(
        "--repetitions", type=from_one, help="fewer than the design has; then no bound is checked"
    )
    parser.add_argument("--no-emulation", dest="emulation", action="store_false", help="needs no root")
    options = parser.parse_args()
    chosen = options.designs or list(BOUNDS)
    if unknown := set(chosen) - BOUNDS.keys():
        parser.error(f"{min(unknown)}: must be one of {', '.join(BOUNDS)}")
    sys.exit("\n".join(run(chosen, options.repetitions, emulation=options.emulation)) or 0)


def run(
    chosen: Sequence[str] = tuple(BOUNDS), repetitions: int | None = None, *, emulation: bool = True
) -> list[str]:
    """Print a table for each design; a line for each bound that was missed."""
    lines = []
    for name in chosen:
        with tempfile.TemporaryDirectory() as path:
            folder = Path(path)
            if os.geteuid() == 0:
                os.chown(folder, NOBODY, NOBODY)
            costs = measured(_design(name, folder, repetitions), folder, emulation=emulation)
        print_costs(name, costs)
        lines += missed(BOUNDS[name], costs) if repetitions is None else []
    return lines + (short_trials() if emulation else [])


def short_trials() -> list[str]:
    """Print what emulated short downloads take, one after another; a line if it is more than SHORT_MS."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "short.sqlite"
        words = ["run", str(SHORT_DESIGN), "--db", str(database), "--no-calibrate"]
        cost = fecbench(words, database, designs.load(SHORT_DESIGN).name)
    taken_ms = 1e3 * cost.others_s / cost.trials
    message = f"an emulated download of 10 kB takes {taken_ms:.0f} ms of CPU; the bound is {SHORT_MS} ms"
    Console(width=WIDTH).print(message)
    return [f"missed: {message}"] if taken_ms > SHORT_MS else []


def measured(design: Design, folder: Path, *, emulation: bool) -> dict[str, Cost]:
    """A design in virtual time, then its simulator and the harness alone, and a sample of it emulated."""
    database = folder / "campaign.sqlite"
    options = [design.path, "--db", str(database), "--jobs", "auto"]
    whole = fecbench(["run", *options, "--engine", "virtual"], database, design.name, folder)
    if whole.trials != design.trial_count:
        raise RuntimeError(f"{design.name}: {whole.trials} trials were stored, not {design.trial_count}")
    costs = {VIRTUAL: whole, ALONE: alone(design, folder)}
    if BOUNDS[design.name].harness_per_s:
        costs[HARNESS] = harness(design, folder)
    if emulation:
        words = ["crosscheck", *options, "--no-calibrate"]
        costs[EMULATED] = fecbench(words, database, f"{design.name}{SUFFIX}")
    return costs


def fecbench(words: Sequence[str], database: Path, campaign: str, home: Path | None = None) -> Cost:
    """Run a command on two cores; with a home, as a user without rights, whose it is.

    Raises RuntimeError when it ends with neither 0 nor 1, which says that not every trial is ok.
    """
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:CORES]))
    program = str(Path(sys.executable).parent / "fecbench")
    without_rights = [] if home is None or os.geteuid() != 0 else WITHOUT_RIGHTS
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as message:
        process = subprocess.Popen(
            [*without_rights, "taskset", "--cpu-list", cores, program, *words],
            cwd=REPOSITORY,
            stdout=subprocess.DEVNULL,
            stderr=message,
            env=os.environ if home is None else {**os.environ, "HOME": str(home), "TMPDIR": str(home)},
        )
        # It has ended, and what it took is still known.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        seconds = time.monotonic() - started
        harness_s, others_s = _cpu_s_of(process.pid)
        if process.wait() not in (0, 1):
            message.seek(0)
            raise RuntimeError(f"fecbench {' '.join(words)}: {message.read().strip()}")
    return Cost(trials_of(database, campaign), seconds, harness_s, others_s)


def trials_of(database: Path, campaign: str) -> int:
    """Return how many trials of a campaign have a result."""
    with Database.open(str(database)) as opened:
        stored = opened.campaign(campaign)
        return 0 if stored is None else len(opened.states(stored.id))


def alone(design: Design, folder: Path) -> Cost:
    """The simulator without a harness: a share of the trials of every workload, by its CPU time."""
    experiment = Experiment(design, design.plan().points, ours())
    keys = [
        TrialKey(variant, group.workload, group.point, group.repetition)
        for group in sample(design, len(experiment.points), ALONE_SHARE)
        for variant in experiment.arms
    ]
    place = Place(folder, folder / "none")
    certificates.write(place.certificates, SERVER_NAME)
    taken_s = cpu_s(experiment, keys, place)
    return Cost(len(keys), taken_s, 0.0, taken_s)


def harness(design: Design, folder: Path) -> Cost:
    """The harness without a simulator, by its CPU time: a part of the repetitions."""
    short = _design(design.name, folder, min(design.repetitions, harness_cost.REPETITIONS))
    trials = short.trial_count
    (per_s,) = harness_cost.trials_per_s(short, folder)
    return Cost(trials, trials / per_s, trials / per_s, 0.0)


def missed(bound: Bound, costs: Mapping[str, Cost]) -> list[str]:
    """A line for each part of a bound that these costs of a whole design do not keep."""
    seconds, per_s, lines = costs[VIRTUAL].seconds, costs[ALONE].per_s, []
    if seconds > bound.seconds:
        lines.append(f"{VIRTUAL}: {seconds:.0f} s; the bound is {bound.seconds:g} s")
    if per_s < bound.alone_per_s:
        lines.append(f"{ALONE}: {per_s:.0f} trials/s of a core; the bound is {bound.alone_per_s:g}")
    if bound.harness_per_s and (harness_s := costs[HARNESS].per_s) < bound.harness_per_s:
        lines.append(f"{HARNESS}: {harness_s:.0f} trials/s of a core; the bound is {bound.harness_per_s:g}")
    return [f"missed: {bound.design}, {line}" for line in lines]


def print_costs(design: str, costs: Mapping[str, Cost]) -> None:
    """A line for each; the last column says how many times the rate of emulation it is."""
    emulated = costs.get(EMULATED)
    table = Table(title=f"{design}, {CORES} cores; alone, 1 core", title_justify="left")
    table.add_column("")
    for heading in ("trials", "s", "trials/s", "ratio", "ms of CPU/trial: harness", "others"):
        table.add_column(heading, justify="right")
    for what, cost in costs.items():
        ratio = "" if emulated is None else f"{cost.per_s / emulated.per_s:,.1f}"
        taken_ms = [f"{1e3 * taken_s / cost.trials:.2f}" for taken_s in (cost.harness_s, cost.others_s)]
        figures = (f"{cost.trials:,}", f"{cost.seconds:.1f}", f"{cost.per_s:.2f}")
        table.add_row(what, *figures, ratio, *taken_ms)
    Console(width=WIDTH).print(table)


def _cpu_s_of(process: int) -> tuple[float, float]:
    """The time of processors that a process took itself, and that of those that it awaited."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own, awaited = sum(map(int, fields[11:13])), sum(map(int, fields[13:15]))
    return own / os.sysconf("SC_CLK_TCK"), awaited / os.sysconf("SC_CLK_TCK")


def _design(name: str, folder: Path, repetitions: int | None) -> Design:
    """Return the design of the catalogue, or one in the folder that differs only in its repetitions."""
    design = designs.load(designs.catalogue()[name])
    if repetitions is None:
        return design
    path = folder / f"{name}.toml"
    path.write_text(designs.rewritten(design, repetitions=repetitions).text)
    return designs.load(path)


if __name__ == "__main__":
    main()
