"""Trials that one worker carries out, one after another: a worker takes longer to start than many a trial."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Self

from fecbench.results.store.records import TrialKey
from fecbench.runners.engines.engine import Finished
from fecbench.runners.engines.namespaces import NamespaceEngine
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial.judge import Judgement, judge
from fecbench.runners.trial.site import Bundles, Commands

KEY = TrialKey("variant", "workload", 0, 0)


class Trials:
    """Trials of any programs. The worker has the priority of what asks for the first of them."""

    def __init__(self) -> None:
        self._engine = NamespaceEngine(1, {})
        self._resources = ExitStack()
        self._last: Finished | None = None

    def __enter__(self) -> Self:
        self._resources.enter_context(self._engine)
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    @property
    def worker(self) -> int | None:
        """The process that carries a trial out, while there is one."""
        return next((worker.process.pid for worker in list(self._engine.busy)), None)

    def run(
        self,
        task: Task,
        commands: Commands,
        folders: Mapping[str, Path] = MappingProxyType({}),
        bundles: Bundles | None = None,
    ) -> tuple[Finished, Judgement]:
        """A trial, whose folder is there until the next one, and what the judge says of it."""
        if self._last is not None:
            self._engine.judged(self._last, valid=True)
        engine = self._engine
        engine._commands, engine._implementations, engine._bundles = commands, folders, bundles or {}
        (self._last,) = engine.run([(KEY, task)])
        return self._last, judge(task, self._last.outcome)
