"""Costs of reading a large campaign: all trials as a frame, beside SQLite's and pandas' ways to the same
numbers, which give a row for each metric and leave the table still to be made; then each command that reads
all of it.

    python -m bench.results_cost [TRIALS] [--commands]
    python -m bench.results_cost --database FILE

Each way is a process of its own, imports included. The memory is that of it and of the processes that it
starts, what they share counted for each. The campaign is that of `bench.synthetic`, or that of a database.
"""

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench.arguments import from_one
from bench.soak import descendants_of
from bench.synthetic import SIZES, VARIANTS, fill
from bench.table import Row, print_table

TRIALS = 200_000
ROUNDS = 3
NAME = "load"
REPETITIONS = 6
AT_A_POINT = len(VARIANTS) * len(SIZES) * REPETITIONS
SAMPLE_EVERY_S = 0.05
# Limits of a million trials of 10,000 points.
MOST_MIB, MOST_PAGE_MB = 4096, 20
MIB = 2**20

READ = "from fecbench import results; database = results.open(path); trials = database[name].trials"
WAYS = {
    "sqlite3, each row of metrics": (
        "import sqlite3; print(sum(1 for _ in sqlite3.connect(path).execute('SELECT * FROM metrics')))"
    ),
    "pandas.read_sql, metrics": (
        "import pandas, sqlite3; print(len(pandas.read_sql('SELECT * FROM metrics', sqlite3.connect(path))))"
    ),
    "trials()": f"{READ}; print(trials()['client.dct_s'].size)",
    "trials(harness=False)": f"{READ}; print(trials(harness=False)['client.dct_s'].size)",
    'trials(["client.dct_s"])': f"{READ}; print(trials(['client.dct_s'])['client.dct_s'].size)",
}

# The words of each; a folder follows `--output`.
COMMANDS = {
    "fecbench show": ["show"],
    "fecbench show --overhead": ["show", "--overhead"],
    "fecbench explain": ["explain"],
    "fecbench report": ["report", "--output"],
}
UNITS = {"s": "seconds", "s of CPU": "cpu_s", "MiB": "mib"}


@dataclass(frozen=True)
class Load:
    """Time and memory of one way."""

    seconds: float
    cpu_s: float
    mib: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("trials", type=from_one, nargs="?", default=TRIALS)
    parser.add_argument("--commands", action="store_true", help="the commands alone: pandas has no room")
    parser.add_argument("--database", type=Path, help="the commands alone, of a campaign that was run")
    options = parser.parse_args()
    if options.database is None:
        run(options.trials, {} if options.commands else WAYS)
        return
    if not options.database.is_file():
        parser.error(f"{options.database}: there is no such file")
    try:
        count(options.database, "trials")
    except sqlite3.Error as error:
        parser.error(f"{options.database} is no database of campaigns: {error}")
    run_commands(options.database)


def run(trials: int = TRIALS, codes: Mapping[str, str] = WAYS) -> None:
    """Print tables of time, CPU time and memory. The campaign has about that many trials, in full points."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "load.sqlite"
        points = -(-trials // AT_A_POINT)
        fill(str(path), NAME, points, REPETITIONS)
        rows, trial_count = count(path, "metrics"), count(path, "trials")
        ways = {
            way: [sys.executable, "-c", f"path, name = {str(path)!r}, {NAME!r}; {code}"]
            for way, code in codes.items()
        }
        rounds = [
            {
                way: load(way, command, str(trial_count if "trials" in way else rows))
                for way, command in ways.items()
            }
            for _ in range(ROUNDS)
        ]
        for unit, field in UNITS.items() if ways else ():
            table = [Row(way, [getattr(process[way], field) for process in rounds]) for way in ways]
            print_table(f"loading {trial_count:,} trials of {points:,} points, {ROUNDS} rounds", unit, table)
        run_commands(path)


def run_commands(database: Path) -> None:
    """Print what each command takes that reads the whole campaign of a database."""
    trial_count, rows = count(database, "trials"), count(database, "metrics")
    print(
        f"{trial_count:,} trials; a trial has {database.stat().st_size / trial_count:.0f} bytes,"
        f" {rows / trial_count:.1f} metrics"
    )
    with tempfile.TemporaryDirectory() as folder:
        program, output = str(Path(sys.executable).parent / "fecbench"), Path(folder) / "report"
        loads = {}
        for what, words in COMMANDS.items():
            into = [str(output)] if words[-1] == "--output" else []
            loads[what] = load(what, [program, *words, *into, "--db", str(database)])
        page_mb = (output / "report.html").stat().st_size / 1e6
        files_mb = sum(file.stat().st_size for file in output.iterdir()) / 1e6
    for unit, field in UNITS.items():
        bound = [Row("most that it may be", [MOST_MIB])] if unit == "MiB" else []
        table = [Row(command, [getattr(process, field)]) for command, process in loads.items()]
        print_table("each command once", unit, bound + table)
    sizes = {"most that the page may have": MOST_PAGE_MB, "the page": page_mb, "all files": files_mb}
    print_table("the report", "MB", [Row(of, [size]) for of, size in sizes.items()])


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def load(way: str, command: list[str], expected: str | None = None) -> Load:
    """Run a command once. Raises ValueError when it ends otherwise than well, or prints other than that."""
    started, before, peak = time.monotonic(), os.times(), 0.0
    with tempfile.TemporaryFile("w+") as output, subprocess.Popen(command, stdout=output) as process:
        while process.poll() is None:
            peak = max(peak, resident_mib(process.pid))
            time.sleep(SAMPLE_EVERY_S)
        output.seek(0)
        output_text = output.read().strip()
    seconds, after = time.monotonic() - started, os.times()
    if process.returncode:
        raise ValueError(f"{way}: ended with {process.returncode}")
    if expected is not None and output_text != expected:
        raise ValueError(f"{way}: loaded {output_text or 'nothing'}, not {expected}")
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return Load(seconds, cpu_s, peak)


def resident_mib(process: int) -> float:
    """The resident memory of a process and of its descendants; 0 when one ends meanwhile."""
    try:
        everything = [process, *descendants_of(process)]
        pages = [int(Path(f"/proc/{load}/statm").read_text().split()[1]) for load in everything]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / MIB


if __name__ == "__main__":
    main()
