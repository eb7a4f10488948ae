"""The common parts of tests of whole campaigns: the command, and whether trials can run here."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.dropper.command import COMMAND as DROPPER
from fecbench.runners.commands.command_line import main
from fecbench.runners.implementations.finding import ours
from fecbench.topologies.programs import WIRE
from tests.support import preloaded
from tests.support.designs import Table, variant

LIMIT_S = 500


class Fecbench:
    """The installed command, run in the repository."""

    path = str(Path(sys.executable).parent / "fecbench")

    def __init__(self, patiently: Callable[..., Any], has_invalid_trials: Callable[[Path], bool]) -> None:
        preloaded.begin()
        self._patiently = patiently
        self._has_invalid_trials = has_invalid_trials

    def __call__(
        self, *arguments: object, within: Sequence[str] = (), limit_s: int = LIMIT_S, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """`within` is a command that runs the one after it, such as `nice`."""
        if not within and not environment:
            return preloaded.fecbench([*map(str, arguments)], REPOSITORY, os.environ, limit_s)
        return subprocess.run(
            [*within, self.path, *map(str, arguments)],
            cwd=REPOSITORY,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=limit_s,
        )

    def run(
        self, design: Path | str, database: Path, *options: object, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """A campaign without its calibration, which other tests are about."""
        return self("run", "--no-calibrate", design, "--db", database, *options, **environment)

    def until_valid(self, database: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
        """`run` or `aa` into a database, resumed while trials of it are invalid."""

        def measure(number: int) -> subprocess.CompletedProcess[str]:
            resume = ["--resume"] * (number > 0)
            return self(*arguments, "--db", database, "--no-calibrate", *resume)

        return self._patiently(measure, lambda _: self._has_invalid_trials(database))

    def run_until_ok(
        self, design: Path, database: Path, *options: object
    ) -> subprocess.CompletedProcess[str]:
        """A campaign all of whose trials are ok."""
        ran = self.until_valid(database, "run", design, *options)
        assert ran.returncode == 0, ran.stderr
        return ran

    def replay_until_ok(
        self, trial: int, database: Path, output: Path, *options: object
    ) -> subprocess.CompletedProcess[str]:
        """A replay of a trial that is as it was, in the new folder `output`."""

        def replay(_: int) -> subprocess.CompletedProcess[str]:
            shutil.rmtree(output, ignore_errors=True)  # of the attempt before
            return self("replay", trial, "--db", database, "--output", output, *options)

        replayed = self._patiently(replay, lambda result: result.returncode == 1)
        assert replayed.returncode == 0, replayed.stderr
        return replayed

    def trials(self, database: Path) -> list[dict[str, Any]]:
        """Return what `show` prints of each trial, by key."""
        output = self("show", "--db", database, "--json")
        assert output.returncode == 0, output.stderr
        trials: list[dict[str, Any]] = json.loads(output.stdout)["trials"]
        return sorted(trials, key=lambda trial: json.dumps(trial["key"]))


@pytest.fixture(scope="session")
def fecbench(patiently: Callable[..., Any], has_invalid_trials: Callable[[Path], bool]) -> Fecbench:
    return Fecbench(patiently, has_invalid_trials)


@dataclass(frozen=True)
class Done:
    """The exit status and outputs of a command."""

    returncode: int
    stdout: str
    stderr: str

    def refusal(self) -> str:
        """The one line with which it ended because of what it was given."""
        assert (self.returncode, self.stdout, self.stderr.count("\n")) == (2, "", 1), self
        return self.stderr


@pytest.fixture
def fecbench_here(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Done]]:
    """The command in this process: its libraries are loaded once for all tests."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["fecbench", *map(str, arguments)])
        with pytest.raises(SystemExit) as result:
            main()
        assert isinstance(result.value.code, int)
        return Done(result.value.code, *capfd.readouterr())

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def virtually(fecbench_here: Callable[..., Done], tmp_path: Path) -> Callable[..., Path]:
    """Runs a design, or the text of one, in virtual time until all trials are ok; returns their database."""

    def run(design: Path | str, *options: object, name: str = "x") -> Path:
        database, written = tmp_path / f"{name}.sqlite", tmp_path / f"{name}.toml"
        if "\n" in str(design):
            written.write_text(str(design))
            design = written
        ran = fecbench_here("run", design, "--engine", "virtual", "--db", database, *options)
        assert ran.returncode == 0, ran
        return database

    return run


@pytest.fixture(scope="session")
def can_run_trials() -> None:
    """Skips the test where a trial of rquic cannot run."""
    if os.geteuid() != 0:
        pytest.skip("needs root: makes namespaces")
    for program in (DROPPER, WIRE, *ours().find("rquic", "tests").programs()):
        if not program.exists():
            pytest.skip(f"needs {program}: make build")


WriteDesign = Callable[..., Path]
NONE: Table = {}
MADE_UP = Path(__file__).parent / "engines" / "made-up"


@pytest.fixture
def made_up(write_design: Any, tmp_path: Path) -> WriteDesign:
    """Writes the little design with two variants of `made-up`: the second answers in some manner.

    `good` and `other` are further keys of each.
    """

    def written(
        manner: str = "good", one_in: int = 1, good: Table = NONE, other: Table = NONE, **keys: Any
    ) -> Path:
        first = variant("good", "made-up", baseline=True)
        second = variant("other", "made-up", manner=manner, one_in=one_in)
        path: Path = write_design(tmp_path, **{"variants": [first | good, second | other], **keys})
        return path

    return written


TwoImplementations = Callable[..., tuple[Path, Path]]


@pytest.fixture
def two_implementations(made_up: WriteDesign, tmp_path: Path) -> TwoImplementations:
    """Writes the design of `made_up`, its second variant of an implementation of its own, `second`; with the
    folder of both."""

    def written(manner: str = "good", **keys: Any) -> tuple[Path, Path]:
        both = tmp_path / "both"
        for name in ("made-up", "second"):
            shutil.copytree(MADE_UP, both / name)
            declared = both / name / "impl.toml"
            declared.write_text(declared.read_text().replace('name = "made-up"', f'name = "{name}"'))
        design: Path = made_up(manner, **keys)
        parts = design.read_text().rsplit('implementation = "made-up"', 1)
        design.write_text('implementation = "second"'.join(parts))
        return design, both

    return written
