"""Costs of a trial in virtual time: the CPU time of a simulator, without the harness around it."""

import resource
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.table import Row, print_table
from fecbench import designs
from fecbench.checkout import REPOSITORY
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import VIRTUAL
from fecbench.runners.trial import certificates
from fecbench.runners.trial.assignment import SERVER_NAME
from fecbench.runners.trial.simulation import Place, line_of
from fecbench.runners.workloads.page import graph as page_graph

DESIGN = REPOSITORY / "bench" / "simulators.toml"
PAGE = REPOSITORY / "designs" / "catalog" / "pages" / "photo-site.json"
ROUNDS = 3
TRIALS = 24  # of a round; their start is divided among them
LOSSY = 1  # the point with losses


def run() -> None:
    """Print a table for each workload."""
    design = designs.load(DESIGN)
    experiment = Experiment(
        design, design.plan().points, ours(), {"pages": {PAGE.stem: page_graph.stored(PAGE)}}
    )
    with tempfile.TemporaryDirectory() as path:
        place = Place(Path(path), Path(path) / "none")
        certificates.write(place.certificates, SERVER_NAME)
        for workload in experiment.activities:
            costs: dict[str, list[float]] = {variant: [] for variant in experiment.arms}
            for _ in range(ROUNDS):
                for variant, times_ms in costs.items():
                    times_ms.append(cpu_ms(experiment, variant, workload, place))
            what = f"{workload} in virtual time, {TRIALS} trials a round, {ROUNDS} rounds"
            print_table(
                what, "ms of CPU/trial", [Row(variant, times_ms) for variant, times_ms in costs.items()]
            )


def cpu_ms(experiment: Experiment, variant: str, workload: str, place: Place) -> float:
    """The CPU time of a simulator that carries out the trials of a variant, by the trial."""
    keys = [TrialKey(variant, workload, LOSSY, repetition) for repetition in range(TRIALS)]
    return 1e3 * cpu_s(experiment, keys, place) / TRIALS


def cpu_s(experiment: Experiment, keys: Sequence[TrialKey], place: Place) -> float:
    """The CPU time of a simulator, its start included, that carries out trials of one implementation."""
    lines = [line_of(experiment.task(key, VIRTUAL), number, place) for number, key in enumerate(keys)]
    implementation = experiment.arms[keys[0].variant].implementation.declaration.name
    before = _children_s()
    command = experiment.implementations[implementation].simulator_command()
    ended = subprocess.run(command, input=b"".join(lines), capture_output=True, check=True)
    answers = ended.stdout.splitlines()
    taken_s = _children_s() - before
    if len(answers) != len(keys) or any(b'"error"' in answer for answer in answers):
        raise RuntimeError(f"{implementation}'s simulator refused trials of {experiment.design.name}")
    return taken_s


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
