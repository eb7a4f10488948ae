"""Campaigns without trials: an engine whose trials end at once, as a test says, and a judge that agrees."""

import dataclasses
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

from fecbench import designs
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey
from fecbench.runners.campaign import campaign, record
from fecbench.runners.campaign.order import trial_keys
from fecbench.runners.campaign.request import Request
from fecbench.runners.campaign.share import Watcher
from fecbench.runners.engines.engine import Finished
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial.judge import Judgement
from tests import ordinary
from tests.support.experiments import experiment_of


@dataclass
class Pretence:
    """An engine that runs nothing: each trial ends in the state that `end` says."""

    end: Callable[[TrialKey], str] = lambda _: "ok"
    ran: list[TrialKey] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)
    at_begin: Callable[[], object] = lambda: None
    deterministic: bool = False

    def __post_init__(self) -> None:
        self._again: deque[tuple[TrialKey, Task]] = deque()

    def __enter__(self) -> Self:
        self.at_begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._again.clear()

    def run(self, tasks: Iterable[tuple[TrialKey, Task]]) -> Iterator[Finished]:
        waiting = iter(tasks)
        while upcoming := self._again.popleft() if self._again else next(waiting, None):
            key, task = upcoming
            self.ran.append(key)
            self.tasks.append(task)
            outcome = self.outcome.model_copy(update={"backend": self.end(key)})
            yield Finished(key, task, outcome, 1.7e9, 0.5, 1, None)

    def again(self, key: TrialKey, task: Task) -> None:
        self._again.append((key, task))

    def judged(self, finished: Finished, *, valid: bool) -> None:
        assert valid == (finished.outcome.backend != "invalid")


@dataclass
class Told(Watcher):
    """A watcher that records what a campaign reports."""

    ended_trials: list[tuple[TrialKey, str, str]] = field(default_factory=list)
    dropped_trials: list[TrialKey] = field(default_factory=list)
    waited: bool = False

    def ended(self, key: TrialKey, judgement: Judgement, completion_s: float, again: bool) -> None:  # noqa: ARG002
        self.ended_trials.append((key, judgement.state, judgement.reason))

    def dropped(self, key: TrialKey, why: str) -> None:  # noqa: ARG002
        self.dropped_trials.append(key)

    def waiting(self, trials: int) -> None:  # noqa: ARG002
        self.waited = True


@pytest.fixture
def believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge believes a pretence."""

    def believe(_: Task, outcome: Outcome) -> Judgement:
        state: Any = outcome.backend
        return Judgement(state, "" if state == "ok" else f"it was {state}")

    monkeypatch.setattr(record, "judge", believe)


@pytest.fixture
def little(write_design: Any, tmp_path: Path) -> Request:
    """The request of a user who runs the little design."""
    design = designs.load(write_design(tmp_path))
    experiment = experiment_of(design)
    return Request(
        experiment=experiment,
        keys=trial_keys(design, len(experiment.points)),
        name="little",
        backend="wire",
        jobs=1,
        calibrate=False,
    )


Run = Callable[..., CampaignInfo]


@pytest.fixture
def run(believed: None, tmp_path: Path, little: Request) -> Run:  # noqa: ARG001
    """Runs the little design into an SQLite file, or a given database, with changes of the request."""

    def run(
        engine: Pretence | None = None,
        database: str = str(tmp_path / "x.sqlite"),
        watcher: Told | None = None,
        base_request: Request = little,
        **changes: Any,
    ) -> CampaignInfo:
        base_request = dataclasses.replace(base_request, **changes)
        with Database.open(database, create=True) as opened:
            return campaign.run(base_request, engine or Pretence(), opened, watcher or Told())

    return run


@pytest.fixture
def of_nobody() -> Iterator[Path]:
    """A folder of a user without rights, whom pytest's own folders do not let in."""
    folder = Path(tempfile.mkdtemp(prefix="of-nobody-"))
    os.chown(folder, ordinary.USER, ordinary.USER)
    yield folder
    shutil.rmtree(folder)
