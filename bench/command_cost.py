"""Costs of commands that a person waits for, in CPU time of the whole process, imports included.

    python -m bench.command_cost [--rounds 5] [--beside CHECKOUT]

With `--beside`, those of another checkout take turns with them: what did a change gain? The campaign is that
of `bench.synthetic`: 40 points, four sizes, four variants. Each command runs once before it is measured: the
first time, it writes bytecode and what is kept in the folder of caches.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.arguments import from_one
from bench.synthetic import fill
from bench.table import Row, print_table

ROUNDS = 5
POINTS, REPETITIONS = 40, 8
DATABASE, OUTPUT = "DATABASE", "OUTPUT"
NETWORK = ("--rtt", "80ms", "--bandwidth", "20Mbit/s", "--loss", "2%", "--size", "50kB")

COMMANDS = {
    "fecbench --help": (("--help",), 300),
    "fecbench plan smoke --no-measure": (("plan", "smoke", "--no-measure"), 500),
    "fecbench plan smoke": (("plan", "smoke"), 500),
    "fecbench advise --no-run": (("advise", *NETWORK, "--no-run"), 500),
    "fecbench show": (("show", "--db", DATABASE), 500),
    "fecbench explain": (("explain", "--db", DATABASE), 2000),
    "fecbench report": (("report", "--db", DATABASE, "--output", OUTPUT), 6000),
}
"""The words of each command, and the most CPU time that it may take, in ms."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=from_one, default=ROUNDS)
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="another checkout, which is built")
    options = parser.parse_args()
    if options.beside is not None and not program_of(options.beside).is_file():
        parser.error(f"--beside {options.beside}: must be a checkout with .venv/bin/fecbench: build it first")
    sys.exit("\n".join(run(options.rounds, options.beside)) or 0)


def run(rounds: int = ROUNDS, beside: Path | None = None) -> list[str]:
    """Print a table of each command, and return the bounds that were missed."""
    programs = {"this version": Path(sys.executable).with_name("fecbench")}
    if beside is not None:
        programs = {"the other version": program_of(beside), **programs}
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "small.sqlite"
        fill(str(database), "small", POINTS, REPETITIONS)
        places = {DATABASE: str(database), OUTPUT: str(Path(folder) / "report")}
        for name, (words, bound) in COMMANDS.items():
            command = [places.get(word, word) for word in words]
            for program in programs.values():
                cpu_ms([str(program), *command])
            measured = [
                {of: cpu_ms([str(program), *command]) for of, program in programs.items()}
                for _ in range(rounds)
            ]
            table = [Row(of, [costs[of] for costs in measured]) for of in programs]
            print_table(name, "ms of CPU", table)
            if (median := table[-1].median) > bound:
                missed.append(f"{name}: took {median:.0f} ms of CPU: must be at most {bound}")
    return missed


def program_of(checkout: Path) -> Path:
    return checkout / ".venv" / "bin" / "fecbench"


def cpu_ms(command: list[str]) -> float:
    """Return the CPU time of a command and its children. Raises CalledProcessError if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    after = os.times()
    return 1000 * (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


if __name__ == "__main__":
    main()
