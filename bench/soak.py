"""A thousand short trials in one campaign: nothing of harness and workers may grow.

    python -m bench.soak [--engine local|virtual] [--jobs N|auto] [--trials N]

Prints how much memory, how many descriptors, processes, network namespaces and temporary files there are
while the campaign runs, at first and at last, and ends with 1 if any of them grew or no trial was ok. Takes
minutes; needs root, but for trials in virtual time.
"""

import argparse
import contextlib
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.arguments import from_one
from fecbench.checkout import REPOSITORY

DESIGN = REPOSITORY / "bench" / "soak.toml"
TRIALS_PER_REPETITION = 10  # five points, two variants
SAMPLE_EVERY_S = 1.0
SETTLED_SHARE = 0.1  # of the trials: imports, caches and the pools of the allocator have their size by then
MEMORY_MAY_GROW_MIB = 4.0
PIPES_OF_A_WORKER = 2
NAMESPACES_OF_A_TRIAL = 5  # of its four nodes, and the one that it begins in


@dataclass(frozen=True)
class Sample:
    """The state of a running campaign. The counts exclude what belongs to a running trial."""

    trials: int
    at_once: int
    harness_mib: float
    worker_mib: float
    harness_descriptors: int
    worker_descriptors: int
    processes: int
    namespaces: int
    temporary_folders: int


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--engine", choices=("local", "virtual"), default="local")
    parser.add_argument("--jobs", default="1", help="trials at the same time")
    parser.add_argument("--trials", type=from_one, default=1000, help="trials in the campaign, in tens")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        temporary, database = Path(folder) / "temporary", Path(folder) / "soak.sqlite"
        temporary.mkdir()
        messages = Path(folder) / "said"
        design = Path(folder) / "soak.toml"
        repetitions = f"repetitions = {-(-options.trials // TRIALS_PER_REPETITION)}"
        design.write_text(DESIGN.read_text().replace("repetitions = 100", repetitions))
        command = [str(Path(sys.executable).parent / "fecbench"), "run", "--no-calibrate", str(design)]
        harness = subprocess.Popen(
            [*command, "--db", str(database), "--jobs", options.jobs, "--engine", options.engine],
            stdout=subprocess.DEVNULL,
            stderr=messages.open("w"),
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        sampled = in_virtual_time if options.engine == "virtual" else emulated
        samples = watch(harness, lambda: sampled(harness.pid, database, temporary))
        if harness.returncode not in (0, 1) or not states(database):
            print(messages.read_text(), file=sys.stderr)
            return 1
        leftovers = [path.name for path in temporary.iterdir()]
        print_samples(samples)
        done = states(database)
    print("states:", ", ".join(f"{state} {count}" for state, count in sorted(done.items())))
    settled = [sample for sample in samples if sample.trials >= SETTLED_SHARE * options.trials]
    grown = growths(settled)
    problems = [*grown, *(f"left behind: {name}" for name in leftovers)]
    if "ok" not in done:
        problems.append("no trial was ok, so none shows what trials leave behind")
    print("\n".join(problems) or "nothing grew")
    return 1 if problems else 0


def watch(harness: subprocess.Popen[bytes], sampled: Callable[[], Sample]) -> list[Sample]:
    """Samples until the campaign ends, but for moments between two trials or at the end of a process."""
    samples: list[Sample] = []
    while True:
        try:
            harness.wait(SAMPLE_EVERY_S)
            return samples
        except subprocess.TimeoutExpired:
            # A process has ended meanwhile, there is none yet, or there are no tables.
            with contextlib.suppress(
                FileNotFoundError, ProcessLookupError, ValueError, sqlite3.OperationalError
            ):
                samples.append(sampled())


def emulated(harness: int, database: Path, temporary: Path) -> Sample:
    """Raises ValueError where there is no worker."""
    children = children_of(harness)
    workers = [child for child in children if b"fecbench.runners.engines.trial_worker" in cmdline(child)]
    of_workers = [children_of(worker) for worker in workers]
    busy = sum(1 for trials in of_workers if trials)
    return Sample(
        trials=sum(states(database).values()),
        at_once=busy,
        harness_mib=anonymous_mib(harness),
        worker_mib=max(map(anonymous_mib, workers)),
        harness_descriptors=descriptors(harness) - PIPES_OF_A_WORKER * len(workers),
        worker_descriptors=max(map(descriptors, workers)),
        processes=1 + len(children) + sum(map(len, of_workers)) - len(workers) - busy,
        namespaces=max(1, len(namespaces_of(harness)) - NAMESPACES_OF_A_TRIAL * busy),
        temporary_folders=max(0, sum(1 for _ in temporary.glob("*/trial-*")) - busy),
    )


def in_virtual_time(harness: int, database: Path, temporary: Path) -> Sample:
    """Simulators stay from trial to trial: the workers here. Raises ValueError where there is none."""
    workers = descendants_of(harness)
    return Sample(
        trials=sum(states(database).values()),
        at_once=len(children_of(harness)),
        harness_mib=anonymous_mib(harness),
        worker_mib=max(map(anonymous_mib, workers)),
        harness_descriptors=descriptors(harness),
        worker_descriptors=max(map(descriptors, workers)),
        processes=1 + len(workers),
        namespaces=len(namespaces_of(harness)),
        temporary_folders=sum(1 for _ in temporary.glob("*/*")),
    )


def namespaces_of(harness: int) -> set[Path]:
    return {
        Path(f"/proc/{process_id}/ns/net").readlink() for process_id in [harness, *descendants_of(harness)]
    }


def children_of(process: int) -> list[int]:
    return [
        int(process_id) for process_id in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def descendants_of(process: int) -> list[int]:
    children = children_of(process)
    return [*children, *(process_id for child in children for process_id in descendants_of(child))]


def cmdline(process: int) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


def anonymous_mib(process: int) -> float:
    """The memory of the process that is of no file, in MiB, be it shared with a fork or not."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    kib = [int(line.split()[1]) for line in lines if line.startswith("Anonymous:")]
    return sum(kib) / 1024


def descriptors(process: int) -> int:
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def states(database: Path) -> dict[str, int]:
    """Return how many trials have ended in each state."""
    if not database.exists():
        return {}
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        count = "SELECT state, count(*) FROM trials WHERE NOT superseded GROUP BY state"
        return dict(connection.execute(count).fetchall())


def growths(settled: list[Sample]) -> list[str]:
    """Print the values of the first quarter and of the last; return a line for each that grew.

    A memory's value is its median, a count's its least: growth stays, but a running trial's share does not.
    """
    quarter = len(settled) // 4
    if not quarter:
        return [f"only {len(settled)} samples after the beginning: too few to tell growth"]
    lines = []
    for field in fields(Sample)[2:]:
        memory = field.name.endswith("_mib")
        first, last = (
            (statistics.median if memory else min)([getattr(sample, field.name) for sample in part])
            for part in (settled[:quarter], settled[-quarter:])
        )
        name = field.name.replace("_", " ")
        print(f"{name:20} first {first:8.4g}   last {last:8.4g}")
        if last - first > (MEMORY_MAY_GROW_MIB if memory else 0):
            lines.append(f"{name} grew from {first:g} to {last:g}")
    return lines


def print_samples(samples: list[Sample]) -> None:
    """Print about twenty of the samples."""
    table = Table(title=f"one campaign, sampled every {SAMPLE_EVERY_S:g} s", title_justify="left")
    for field in fields(Sample):
        table.add_column(field.name.replace("_", " "), justify="right")
    for sample in samples[:: max(1, len(samples) // 20)]:
        values = (getattr(sample, field.name) for field in fields(Sample))
        table.add_row(*(f"{value:.1f}" if isinstance(value, float) else str(value) for value in values))
    Console(width=120).print(table)


if __name__ == "__main__":
    sys.exit(main())
