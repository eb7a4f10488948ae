"""A deed, where it happens, and what it comes to when nothing disturbs it."""

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from bench.hardships import judging
from bench.hardships.deeds import Deed, Place
from bench.hardships.judging import Left, Stored
from bench.hardships.surroundings import Surroundings, await_end, look

LIMIT_S = 600.0
LOOK_EVERY_S = 0.001
WORDS, SAID = "words", "said"


class Doing:
    """A deed that is being done."""

    def __init__(self, deed: Deed, place: Place, **more: str) -> None:
        self._place = place
        self._words, self._said = place.root / WORDS, place.root / SAID
        self._begun_s = time.monotonic()
        with self._words.open("w") as words, self._said.open("w") as messages:
            self.process = subprocess.Popen(
                deed.command(place),
                cwd=place.root,
                env={**place.environment(), **more},
                stdout=messages,
                stderr=words,
            )
        place.harnesses.add(self.process.pid)

    def end(self) -> Left:
        """Wait for its end, and return what it leaves."""
        status = self.process.wait(LIMIT_S)
        seconds = time.monotonic() - self._begun_s
        return Left(
            status,
            self._words.read_text(),
            seconds,
            judging.files_in(self._place.output),
            judging.stored_in(self._place.database),
            self._said.read_text(errors="replace"),
        )

    def count_changes(self, most: float = float("inf")) -> int:
        """Return how often lasting files changed, when it has ended or they have changed `most` times."""
        changes, written_before = 0, _written(self._place)
        while changes < most and self.process.poll() is None:
            time.sleep(LOOK_EVERY_S)
            if (now := _written(self._place)) != written_before:
                changes, written_before = changes + 1, now
        return changes

    def kill(self) -> bool:
        """Whether it still ran."""
        self.process.kill()
        return self.process.wait() == -signal.SIGKILL


def _written(place: Place) -> list[tuple[Path, int]]:
    files = []
    for folder in (place.output, place.database.parent):
        for parent, _, names in os.walk(folder):  # which bears that folders are removed meanwhile
            for path in (Path(parent) / name for name in names):
                with contextlib.suppress(FileNotFoundError):
                    files.append((path, path.lstat().st_size))
    return files


@dataclass(frozen=True)
class Case:
    """A deed that is disturbed again and again."""

    deed: Deed
    place: Place
    around: Surroundings
    undisturbed: Left
    changes: int
    """Number of changes of lasting files."""

    def prepare(self) -> Stored:
        """Make a new place; what its database holds."""
        self.deed.prepare(self.place)
        return judging.stored_in(self.place.database)

    def begin(self, **more: str) -> Doing:
        return Doing(self.deed, self.place, **more)

    def again(self, before: Stored) -> list[str]:
        """Return the faults after the same command once more, undisturbed."""
        after = self.begin().end()
        wrong = judging.finished(self.deed, self.undisturbed, before, after)
        wrong += [*judging.half_written(self.place.output), *judging.beside(self.place.database)]
        return [
            *(f"again: {line}" for line in wrong),
            *await_end(self.place.temporary, self.place.harnesses, self.around),
        ]


def case_of(deed: Deed, place: Place) -> Case:
    """Do the deed undisturbed. Raises RuntimeError where even that leaves something, or fails."""
    deed.prepare(place)
    around = look(place.temporary)
    doing = Doing(deed, place)
    changes = doing.count_changes()
    undisturbed = doing.end()
    wrong = [*judging.half_written(place.output), *await_end(place.temporary, place.harnesses, around)]
    if undisturbed.status not in (0, 1, 3):
        wrong.append(f"status {undisturbed.status}: {undisturbed.words}")
    if wrong:
        raise RuntimeError("undisturbed: " + "; ".join(wrong))
    return Case(deed, place, around, undisturbed, changes)
