"""The commands that write, each as small as it can be: what it is given, and what it is to leave.

A deed happens in a place of three folders: `database` with the results, `output` for all else that it writes,
and `temporary`, its TMPDIR. Its inputs are on the ground, which is made once.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.cluster_parts import FECBENCH
from fecbench.checkout import REPOSITORY

STACK = REPOSITORY / "quic-impls" / "noq-fec"
CAMPAIGN = """
base = "recovery"
name = "hardship"
title = "a small campaign for hard times"
repetitions = {repetitions}
without = ["workloads"]
[plan]
points = {points}
[[workloads]]
name = "download"
size_bytes = 20_000
"""
VIRTUAL, EMULATED = "virtual.sqlite", "emulated.sqlite"


@dataclass(frozen=True)
class Place:
    """The place of a deed."""

    root: Path
    ground: Path
    harnesses: set[int] = field(default_factory=set)
    """The numbers of all processes that have done it."""

    @property
    def database(self) -> Path:
        return self.root / "database" / "results.sqlite"

    @property
    def output(self) -> Path:
        return self.root / "output"

    @property
    def temporary(self) -> Path:
        return self.root / "temporary"

    def folders(self) -> dict[str, Path]:
        return {"database": self.database.parent, "output": self.output, "temporary": self.temporary}

    def environment(self) -> dict[str, str]:
        return {**os.environ, "TMPDIR": str(self.temporary), "COLUMNS": "200"}


@dataclass(frozen=True)
class Deed:
    """A command, and what may be said of it when nothing happens to it."""

    words: Callable[[Place], list[object]]
    prepared: str = ""
    """A database of the ground that it begins with."""
    trials: Literal["", "virtual", "emulated"] = ""
    """Kind of its trials. Emulated ones depend on the machine, and may be invalid."""
    same_files: bool = False
    """Whether it writes the same bytes each time."""

    @property
    def emulated(self) -> bool:
        return self.trials == "emulated"

    def command(self, place: Place) -> list[str]:
        return [FECBENCH, *map(str, self.words(place))]

    def prepare(self, place: Place) -> None:
        """A new place with what the deed begins with."""
        shutil.rmtree(place.root, ignore_errors=True)
        for folder in place.folders().values():
            folder.mkdir(parents=True)
        self.furnish(place)

    def furnish(self, place: Place) -> None:
        if self.prepared:
            shutil.copy(place.ground / self.prepared, place.database)


def lay_ground(ground: Path, deeds: Iterable[Deed]) -> None:
    """Make what these deeds read: designs, recordings, and databases of campaigns."""
    (ground / "virtual.toml").write_text(CAMPAIGN.format(repetitions=3, points=3))
    (ground / "emulated.toml").write_text(CAMPAIGN.format(repetitions=1, points=2))
    (ground / "frames.txt").write_text("".join(f"{900 + number % 300}\n" for number in range(20_000)))
    rates = (f"{number / 10},{5 + number % 7}\n" for number in range(20_000))
    (ground / "rates.csv").write_text("".join(rates))
    how = {VIRTUAL: ("--engine", "virtual"), EMULATED: ("--no-calibrate",)}
    for database in {deed.prepared for deed in deeds} - {""}:
        _run(ground, "run", ground / "emulated.toml", *how[database], "--db", ground / database)


def _run(ground: Path, *words: object) -> None:
    temporary = ground / "temporary"
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    ran = subprocess.run(
        [FECBENCH, *map(str, words)], env=environment, capture_output=True, text=True, cwd=ground
    )
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"fecbench {words[0]} ended with {ran.returncode}: {ran.stderr}")


def _compare(place: Place) -> list[object]:
    design = place.ground / "virtual.toml"
    options = ("--db", place.database, "--output", place.output)
    return ["compare", STACK, STACK, design, "--option", "scheme=none", *options]


DEEDS: Mapping[str, Deed] = {
    "run-virtual": Deed(
        lambda place: ["run", place.ground / "virtual.toml", "--engine", "virtual", "--db", place.database],
        trials="virtual",
    ),
    "run-emulated": Deed(
        lambda place: [
            *("run", place.ground / "emulated.toml", "--no-calibrate", "--jobs", 2, "--db", place.database)
        ],
        trials="emulated",
    ),
    "crosscheck": Deed(
        lambda place: [
            "crosscheck",
            place.ground / "emulated.toml",
            "--no-calibrate",
            "--db",
            place.database,
        ],
        prepared=VIRTUAL,
        trials="emulated",
    ),
    "compare": Deed(_compare, trials="virtual"),
    "watch": Deed(lambda place: ["watch", "--db", place.database], prepared=VIRTUAL),
    "report": Deed(
        lambda place: ["report", "--db", place.database, "--output", place.output],
        prepared=VIRTUAL,
        same_files=True,
    ),
    "explain": Deed(
        lambda place: ["explain", "--db", place.database, "--output", place.output],
        prepared=VIRTUAL,
        same_files=True,
    ),
    "export-csv": Deed(
        lambda place: ["export", "--db", place.database, "--output", place.output / "trials.csv"],
        prepared=VIRTUAL,
        same_files=True,
    ),
    "export-parquet": Deed(
        lambda place: ["export", "--db", place.database, "--output", place.output / "trials.parquet"],
        prepared=VIRTUAL,
        same_files=True,
    ),
    "replay-virtual": Deed(
        lambda place: [
            *("replay", 1, "--db", place.database, "--output", place.output / "replayed"),
            *("--plot", place.output / "replayed.png"),
        ],
        prepared=VIRTUAL,
        trials="virtual",
    ),
    "replay-emulated": Deed(
        lambda place: ["replay", 1, "--json", "--db", place.database, "--output", place.output / "replayed"],
        prepared=EMULATED,
        trials="emulated",
    ),
    "plan": Deed(
        lambda place: ["plan", place.ground / "virtual.toml", "--plot", place.output / "plan.png"],
        same_files=True,
    ),
    "link-import": Deed(
        lambda place: [
            *("link", "import", "rates", place.ground / "rates.csv", "--output", place.output / "link.csv")
        ],
        same_files=True,
    ),
    "trace-from-list": Deed(
        lambda place: [
            *("trace", "from-list", place.ground / "frames.txt", "--output", place.output / "trace.json")
        ],
        same_files=True,
    ),
    "advise": Deed(
        lambda place: [
            *("advise", "--rtt-ms", 80, "--bandwidth-mbps", 20, "--loss", 0.02, "--size-bytes", 50_000),
            *("--output", place.output / "networks.csv"),
        ],
        same_files=True,
    ),
}
