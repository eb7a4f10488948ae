"""What loading a large campaign costs: all trials as a frame, beside SQLite's and pandas' ways to the same
numbers, which give a row for each metric and leave the table still to be made.

    python -m bench.results_cost [TRIALS]

Each way is a process of its own, imports included. The memory is that of it and of the processes that it
starts, what they share counted for each.
"""

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench.soak import descendants_of
from bench.table import Row, print_table
from results.store.database import Database
from results.store.records import NewCampaign, TrialKey, TrialRecord, Variant, Workload

TRIALS = 200_000
ROUNDS = 3
NAME = "load"
VARIANTS, SIZES, REPETITIONS = ("off", "xor"), (10_000, 50_000), 5
AT_A_POINT = len(VARIANTS) * len(SIZES) * REPETITIONS
METRICS = 16  # of each endpoint
OTHER_BYTES = 2000  # of a trial: seeds, counters, overheads
SAMPLE_EVERY_S = 0.05
MIB = 2**20

READ = "import results; database = results.open(path); trials = database[name].trials"
WAYS = {
    "sqlite3, each row of metrics": (
        "import sqlite3; print(sum(1 for _ in sqlite3.connect(path).execute('SELECT * FROM metrics')))"
    ),
    "pandas.read_sql, metrics": (
        "import pandas, sqlite3; print(len(pandas.read_sql('SELECT * FROM metrics', sqlite3.connect(path))))"
    ),
    "trials()": f"{READ}; print(trials()['client.m0'].size)",
    "trials(harness=False)": f"{READ}; print(trials(harness=False)['client.m0'].size)",
    'trials(["client.m0"])': f"{READ}; print(trials(['client.m0'])['client.m0'].size)",
}

# Trial n + 1 as trial 1 is, but of the n-th key of the design.
FILL = """
CREATE TEMP TABLE counted AS
    WITH RECURSIVE counting(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting WHERE n + 1 < {trials})
    SELECT n FROM counting;
CREATE TEMP TABLE first AS SELECT * FROM trials;
CREATE TEMP TABLE its_metrics AS SELECT * FROM metrics;
INSERT INTO trials ({columns}) SELECT {values} FROM counted CROSS JOIN first;
INSERT INTO metrics SELECT n + 1, endpoint, name, random() / 1e9 FROM counted CROSS JOIN its_metrics
    ORDER BY n, endpoint, name;
"""


@dataclass(frozen=True)
class Load:
    """What one way took."""

    seconds: float
    cpu_s: float
    mib: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("trials", type=int, nargs="?", default=TRIALS)
    run(parser.parse_args().trials)


def run(trials: int = TRIALS) -> None:
    """Print tables of time, CPU time and memory. The campaign has that many trials, in full points."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "load.sqlite"
        made = fill(path, trials)
        expected = {way: made if "trials" in way else made * 2 * METRICS for way in WAYS}
        rounds = [{way: load(way, path, expected[way]) for way in WAYS} for _ in range(ROUNDS)]
    what = f"loading {made:,} trials with {2 * METRICS} metrics each, {ROUNDS} rounds"
    for unit, field in (("s", "seconds"), ("s of CPU", "cpu_s"), ("MiB", "mib")):
        print_table(what, unit, [Row(way, [getattr(each[way], field) for each in rounds]) for way in WAYS])


def fill(path: Path, trials: int) -> int:
    """Make a database with about this many trials; how many they are."""
    points = -(-trials // AT_A_POINT)
    workloads = [
        Workload(label=str(size), name="download", parameters={"size_bytes": size}) for size in SIZES
    ]
    variants = [
        Variant(label=label, implementation="rquic", options={}, baseline=label == VARIANTS[0])
        for label in VARIANTS
    ]
    first = TrialRecord(
        TrialKey(VARIANTS[0], str(SIZES[0]), 0, 0),
        state="ok",
        reason="",
        started_at="2026-01-01T00:00:00+00:00",
        duration_s=1.0,
        metrics={end: {f"m{i}": float(i) for i in range(METRICS)} for end in ("client", "server")},
        checks={"other": "x" * OTHER_BYTES},
    )
    with Database.open(str(path), create=True) as database:
        campaign = database.create_campaign(
            NewCampaign(
                name=NAME,
                title=NAME,
                design_text=f'name = "{NAME}"\n',
                seed=1,
                repetitions=REPETITIONS,
                statistic="median",
                provenance={},
                points=[{"owd_ms": point} for point in range(points)],
                variants=variants,
                workloads=workloads,
            )
        )
        database.record(campaign.id, first)
    key = {
        "id": "n + 1",
        "variant": _nth(VARIANTS, f"n % {len(VARIANTS)}"),
        "workload": _nth(SIZES, f"n / {len(VARIANTS)} % {len(SIZES)}"),
        "repetition": f"n / {len(VARIANTS) * len(SIZES)} % {REPETITIONS}",
        "point": f"n / {AT_A_POINT}",
    }
    with closing(sqlite3.connect(path)) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(trials)")]
        values = [key.get(column, column) for column in columns]
        script = FILL.format(trials=points * AT_A_POINT, columns=", ".join(columns), values=", ".join(values))
        connection.executescript(f"PRAGMA synchronous = OFF; BEGIN; {script} COMMIT;")
    return points * AT_A_POINT


def _nth(labels: tuple[object, ...], index: str) -> str:
    """SQL for the label of that index."""
    cases = " ".join(f"WHEN {i} THEN '{label}'" for i, label in enumerate(labels))
    return f"CASE {index} {cases} END"


def load(way: str, path: Path, expected: int) -> Load:
    """Load once in a process of its own. Raises ValueError when it has loaded another number of rows."""
    code = f"path, name = {str(path)!r}, {NAME!r}; {WAYS[way]}"
    started, before, peak = time.monotonic(), os.times(), 0.0
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, resident_mib(process.pid))
            time.sleep(SAMPLE_EVERY_S)
        assert process.stdout
        said = process.stdout.read().strip()
    seconds, after = time.monotonic() - started, os.times()
    if said != str(expected):
        raise ValueError(f"{way}: loaded {said or 'nothing'}, not {expected}")
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return Load(seconds, cpu_s, peak)


def resident_mib(process: int) -> float:
    """The resident memory of a process and of its descendants; 0 when one ends meanwhile."""
    try:
        everything = [process, *descendants_of(process)]
        pages = [int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in everything]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / MIB


if __name__ == "__main__":
    main()
