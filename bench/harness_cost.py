"""Costs of the harness alone: it runs, judges and stores trials in virtual time, and their simulator only
says what it said before.

    python -m bench.harness_cost [--repetitions N]
"""

import argparse
import gc
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

from bench.arguments import from_one
from bench.table import Row, print_table
from fecbench import designs
from fecbench.designs import Design
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign import campaign
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.request import Request, request
from fecbench.runners.campaign.share import Watcher
from fecbench.runners.commands.command_line import ALLOCATIONS
from fecbench.runners.engines.engine import Finished
from fecbench.runners.engines.virtual import VirtualEngine
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import VIRTUAL, Task
from fecbench.runners.trial import certificates
from fecbench.runners.trial.assignment import SERVER_NAME
from fecbench.runners.trial.simulation import Place, line_of

DESIGN = "networking2019-uniform"
REPETITIONS = 2
ROUNDS = 3
PLAYER = """import sys
for task, answer in zip(sys.stdin.buffer, open({path!r}, "rb")):
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
"""
"""Program that has an answer for each line that it reads, in their order."""


class Silence:
    """Watches a campaign, and says nothing of whatever happens."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


class MeteredEngine(VirtualEngine):
    """Notes when the first trial is asked for, by the CPU time of this process."""

    start_s = 0.0

    def run(self, tasks: Iterable[tuple[TrialKey, Task]]) -> Iterator[Finished]:
        self.start_s = self.start_s or time.process_time()
        return super().run(tasks)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repetitions", type=from_one, default=REPETITIONS, help="of the design, so many")
    repetitions = parser.parse_args().repetitions
    design = designs.load(designs.catalogue()[DESIGN])
    with tempfile.TemporaryDirectory() as path:
        short = Path(path) / f"{DESIGN}.toml"
        short.write_text(designs.rewritten(design, repetitions=repetitions).text)
        taken_us = [1e6 / per_s for per_s in trials_per_s(designs.load(short), Path(path), ROUNDS)]
    print_table("the harness alone, a trial", "µs of CPU", [Row(DESIGN, taken_us)])


def trials_per_s(design: Design, folder: Path, rounds: int = 1) -> list[float]:
    """Return the trials in a second of CPU time, of each round. The design has one implementation."""
    gc.set_threshold(ALLOCATIONS)  # as the command does
    campaign_request = request(design, ours(), backend=VIRTUAL, calibrate=False)
    (implementation,) = campaign_request.experiment.implementations
    program, answers = folder / "player.py", folder / "answers"
    folder.chmod(0o755)  # a simulator has a user of its own
    program.write_text(PLAYER.format(path=str(answers)))
    answers.write_bytes(_answers(campaign_request.experiment, campaign_request.keys, implementation, folder))
    command = {implementation: ["/usr/bin/python3", str(program)]}
    return [
        _round(
            campaign_request,
            MeteredEngine(1, command, {implementation: folder}),
            folder / f"round-{number}.sqlite",
        )
        for number in range(rounds)
    ]


def _answers(experiment: Experiment, keys: Sequence[TrialKey], implementation: str, folder: Path) -> bytes:
    """Return the answers of the real simulator, a line each, in the order in which one seat asks for them."""
    place = Place(folder, folder / "none")
    certificates.write(place.certificates, SERVER_NAME)
    lines = [line_of(experiment.task(key, VIRTUAL), number, place) for number, key in enumerate(keys)]
    command = experiment.implementations[implementation].simulator_command()
    return subprocess.run(command, input=b"".join(lines), stdout=subprocess.PIPE, check=True).stdout


def _round(campaign_request: Request, engine: MeteredEngine, path: Path) -> float:
    with Database.open(str(path), create=True) as database:
        info = campaign.run(campaign_request, engine, database, cast("Watcher", Silence()))
        taken_s = time.process_time() - engine.start_s
        states = database.states_of(info.id)
    if states.keys() - {"ok", "timeout"} or sum(states.values()) != len(campaign_request.keys):
        name = campaign_request.design.name
        raise RuntimeError(f"{name}: of {len(campaign_request.keys)} trials ended {states}")
    return len(campaign_request.keys) / taken_s


if __name__ == "__main__":
    main()
