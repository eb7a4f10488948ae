"""Judgement of a command after a hardship: what it left, compared with the same command undisturbed."""

import hashlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from bench.hardships.deeds import Deed
from fecbench.results.store.database import Database

Key = tuple[str, str, str, int, int]
"""Campaign, variant, workload, point and repetition of a trial."""

HIDDEN = "."
FULL = "No space left on device: '/"
"""Message of a trial that had no room for a file; the file's name follows."""


@dataclass(frozen=True)
class Run:
    """A run of a trial as it lies in the database."""

    key: Key
    attempt: int
    state: str
    counts: int
    duration_s: float
    dct_s: float | None


@dataclass(frozen=True)
class Stored:
    """The content of a database: nothing if there is no file or no table yet."""

    runs: Mapping[int, Run] = field(default_factory=dict)
    claims: int = 0
    digests: tuple[str, ...] = ()
    fault: str = ""
    """The reason for which it cannot be read."""

    def trials(self) -> list[Key]:
        return sorted(run.key for run in self.runs.values() if run.counts)


@dataclass(frozen=True)
class Left:
    """The result of a command."""

    status: int
    words: str
    """The standard error."""
    seconds: float
    files: Mapping[str, str]
    """The digest of each file in `output`, by its name."""
    stored: Stored
    said: str = ""
    """The standard output."""


def files_in(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if not path.is_dir())
    return {str(path.relative_to(folder)): _digest(path) for path in paths}


def _digest(path: Path) -> str:
    return str(path.readlink()) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()


RUNS = """
SELECT trials.id, campaigns.name, variant, workload, point, repetition, attempt, state, NOT superseded,
  duration_s, metrics.value
FROM trials JOIN campaigns ON campaigns.id = campaign_id
LEFT JOIN metrics ON trial_id = trials.id AND metrics.name = 'dct_s' AND endpoint = 'client'
"""


def stored_in(path: Path) -> Stored:
    """Return the content of the file, read by plain SQLite; the digest of the events on the wire is
    fecbench's."""
    if not path.exists() or not path.stat().st_size:
        return Stored()
    try:
        with closing(sqlite3.connect(path, timeout=60)) as connection:
            if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                return Stored(fault=f"{path.name} is damaged")
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'series'").fetchone():
                return Stored()
            rows = connection.execute(RUNS).fetchall()
            claims = connection.execute("SELECT count(*) FROM claims").fetchone()[0]
    except sqlite3.DatabaseError as error:
        return Stored(fault=f"{path.name}: {error}")
    runs = {row[0]: Run(row[1:6], *row[6:]) for row in rows}
    with Database.open(str(path)) as database:
        ids = [campaign.id for campaign in database.campaigns()] if runs else []
        digests = tuple(
            digest(number) for number in ids for digest in (database.digest, database.metrics_digest)
        )
    return Stored(runs, claims, digests)


def broken_off(before: Stored, stored: Stored, files: Path) -> list[str]:
    """Return the faults at the moment at which a command broke off: it began with `before`."""
    return [*_lost(before, stored), *_twice(stored), *half_written(files)]


def usual_statuses(deed: Deed, undisturbed: Left) -> set[int]:
    """Return the statuses with which a command may end: emulated trials may be invalid."""
    return {0, 1} if deed.emulated else {undisturbed.status}


def finished(deed: Deed, undisturbed: Left, before: Stored, after: Left) -> list[str]:
    """Return the faults of a command that continued where the database had `before`."""
    usual = usual_statuses(deed, undisturbed)
    wrong = (
        [] if after.status in usual else [f"status {after.status}, not {undisturbed.status}: {after.words}"]
    )
    wrong += traceback(after.words)
    if after.status not in usual:
        return wrong
    stored = after.stored
    wrong += [*_lost(before, stored), *_twice(stored)]
    if stored.trials() != undisturbed.stored.trials():
        wrong.append(f"{len(stored.trials())} trials, not {len(undisturbed.stored.trials())}")
    if stored.claims:
        wrong.append(f"{stored.claims} groups are still claimed")
    if not deed.emulated and stored.digests != undisturbed.stored.digests:
        wrong.append("trials in virtual time came to something else")
    usual_names, names = (Counter(map(_unnumbered, outcome.files)) for outcome in (undisturbed, after))
    if not (deed.emulated and FULL in after.said):  # such a trial is invalid, and leaves what it could
        wrong += [f"missing: {name}" for name in sorted((usual_names - names).elements())]
    wrong += [f"left: {name}" for name in sorted((names - usual_names).elements())]
    for name in sorted(after.files.keys() & undisturbed.files.keys()):
        if deed.same_files and after.files[name] != undisturbed.files[name]:
            wrong.append(f"other content: {name}")
    return wrong


def _unnumbered(name: str) -> str:
    """The name without what an implementation made up for a connection."""
    return re.sub("[0-9a-f]{12,}", "*", name)


def is_carried_out(deed: Deed, undisturbed: Left, after: Left) -> bool:
    """Whether a command went on to its end. With status 1 it failed, and says why, or trials are invalid."""
    return after.status in usual_statuses(deed, undisturbed) and not _failures(after)


def _failures(after: Left) -> list[str]:
    return [line for line in after.words.splitlines() if line.startswith("fecbench: ")]


def refused(after: Left, root: Path) -> list[str]:
    """Return the faults in the words of a command that failed: it prints one line, which names a file below
    `root`."""
    lines = _failures(after)
    if len(lines) != 1 or not after.words.endswith(lines[0] + "\n"):
        return [f"it does not end with one line: {after.words[-600:]!r}"]
    wrong = traceback(after.words)
    if str(root) not in lines[0]:
        wrong.append(f"no file is named: {lines[0]}")
    return wrong


def traceback(words: str) -> list[str]:
    return [f"a traceback: {words[-600:]!r}"] if "Traceback" in words else []


def _lost(before: Stored, now: Stored) -> list[str]:
    if now.fault:
        return [now.fault]
    same = {
        number: run
        for number, run in before.runs.items()
        if number in now.runs and (now.runs[number].key, now.runs[number].state) == (run.key, run.state)
    }
    return (
        [f"{len(before.runs) - len(same)} runs were lost or changed"] if len(same) < len(before.runs) else []
    )


def _twice(stored: Stored) -> list[str]:
    trials = stored.trials()
    doubled = len(trials) - len(set(trials))
    return [f"{doubled} trials count twice"] if doubled else []


def _ends_with(end: bytes) -> Callable[[Path], bool]:
    return lambda path: path.read_bytes().rstrip().endswith(end)


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text())
    except ValueError:
        return False
    return True


def _is_xml(path: Path) -> bool:
    try:
        ElementTree.parse(path)
    except ElementTree.ParseError:
        return False
    return True


WHOLE: Mapping[str, Callable[[Path], bool]] = {
    ".html": _ends_with(b"</html>"),
    ".svg": _ends_with(b"</svg>"),
    ".png": _ends_with(b"IEND\xaeB`\x82"),
    ".pdf": _ends_with(b"%%EOF"),
    ".parquet": _ends_with(b"PAR1"),
    ".pem": _ends_with(b"-----"),
    ".json": _is_json,
    ".xml": _is_xml,
    ".csv": lambda path: path.read_bytes().endswith(b"\n"),
    ".md": lambda path: path.read_bytes().endswith(b"\n"),
}
"""Test of whether a file of each kind is whole. Others are not judged."""


def beside(database: Path) -> list[str]:
    """A line for each file that lies beside a database that nobody uses."""
    return [f"beside the database: {path.name}" for path in database.parent.iterdir() if path != database]


def half_written(folder: Path) -> list[str]:
    """A line for each file under its own name that is not whole. Hidden files may be unfinished."""
    return [
        f"half written: {path.relative_to(folder)}"
        for path in sorted(folder.rglob("*"))
        if path.suffix in WHOLE
        and path.is_file()
        and not any(part.startswith(HIDDEN) for part in path.relative_to(folder).parts)
        and not WHOLE[path.suffix](path)
    ]
