"""Claims on groups: several harnesses share a campaign, and each group is run by one of them.

A claimant of a group shows that it goes on by a beat, a number that goes up. Others watch the beat by their
own clock, so that clocks need not agree. On the claimant's own machine, a look at its lock is enough, where
its folder for temporary files is seen. The number of its process says nothing: containers have their own.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.records import Claimant, Group, Start
from fecbench.runners import scratch

_log = logging.getLogger(__name__)

BEAT_S = 10.0
# Several beats: a database that is locked for a while, or a busy machine, is not yet a death.
DEAD_AFTER_S = 60.0

Holder = dict[str, Any]


@contextmanager
def present() -> Iterator[Holder]:
    """Give what tells this process from all others, on whichever machine, as a start keeps it.

    The process holds a lock meanwhile, which ends with it, however it ends.
    """
    with scratch.folder() as folder:
        lock = folder / scratch.LOCK
        yield {
            "boot": _boot(),
            "process": os.getpid(),
            "lock": {"path": str(lock), "file": _identity(lock), "within": _identity(folder.parent)},
        }


def _boot() -> str | None:
    """The running system."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    return None


def _identity(path: Path) -> list[int] | None:
    """Return the device and the inode of a path; None where there is nothing."""
    with suppress(OSError):
        found = path.stat()
        return [found.st_dev, found.st_ino]
    return None


class Watch:
    """Tells the dead from the living among those that hold claims."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._boot = _boot()
        self._seen: dict[int, tuple[int, float]] = {}
        """The beat of each start, and since when it has been that."""

    def is_dead(self, claimant: Claimant) -> bool:
        """Whether it has ended, or has not gone on for DEAD_AFTER_S that we have watched it."""
        now = self._clock()
        beat, since = self._seen.get(claimant.start_id, (None, now))
        if beat != claimant.beat:
            self._seen[claimant.start_id] = (claimant.beat, now)
            since = now
        return self._is_gone(claimant.holder) or now - since >= DEAD_AFTER_S

    def _is_gone(self, holder: Holder | None) -> bool:
        """Whether its lock was in a folder that is seen here, and nobody holds it any more."""
        lock = None if holder is None else holder.get("lock")
        if holder is None or lock is None or self._boot is None or holder.get("boot") != self._boot:
            return False
        path = Path(lock["path"])
        if _identity(path.parent.parent) != lock["within"]:  # of another mount namespace
            return False
        return _identity(path) != lock["file"] or not scratch.is_in_use(path.parent)


def free_of_dead(database: Database, campaign_id: int, watch: Watch, own: int | None = None) -> list[Group]:
    """Free what the dead had claimed of a campaign; the groups that the living hold, but the start `own`."""
    held: list[Group] = []
    dead: dict[int, Claimant] = {}
    for group, claimant in database.claims(campaign_id).items():
        if claimant.start_id == own:
            continue
        if claimant.start_id in dead or watch.is_dead(claimant):
            dead[claimant.start_id] = claimant
        else:
            held.append(group)
    for claimant in dead.values():
        _log.info("start %d, on %s, has ended: its groups are free", claimant.start_id, claimant.host)
        database.give_up_all(claimant.start_id, claimant.beat)
    return held


class Claims:
    """The groups that one start holds: a context manager, at whose end it holds none."""

    def __init__(self, database: Database, start: Start) -> None:
        self._database = database
        self._start = start
        self._watch = Watch()
        self._over = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._heart.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._heart.join()
        try:
            self._database.give_up_all(self._start.id)
        except DatabaseError as problem:
            if error is None:
                raise
            # The reason why the campaign ended matters; others find out by themselves that it has ended.
            _log.info("claims could not be given up: %s", problem)

    def take(self, group: Group) -> bool:
        """Claim the group, also from one that is dead; False when another holds it."""
        return group in self.take_all([group])

    def take_all(self, groups: Sequence[Group]) -> set[Group]:
        """Claim these groups, also from those that are dead; without those that others hold."""
        owners = self._database.claim_all(self._start.campaign_id, self._start.id, groups)
        if any(owner != self._start.id for owner in owners.values()):
            self.bury_the_dead()
            owners = self._database.claim_all(self._start.campaign_id, self._start.id, groups)
        return {group for group, owner in owners.items() if owner == self._start.id}

    def others(self) -> int:
        """Return how many other starts hold claims on the campaign."""
        claimants = self._database.claims(self._start.campaign_id).values()
        return len({claimant.start_id for claimant in claimants} - {self._start.id})

    def give_up(self, groups: Sequence[Group]) -> None:
        self._database.give_up(self._start.campaign_id, self._start.id, groups)

    def bury_the_dead(self) -> Collection[Group]:
        """Free what the dead had claimed; the groups that living others hold."""
        return free_of_dead(self._database, self._start.campaign_id, self._watch, own=self._start.id)

    def _beat(self) -> None:
        while not self._over.wait(BEAT_S):
            try:
                self._database.beat(self._start.id)
            except DatabaseError as error:  # the next beat may succeed; the campaign itself meets it, too
                _log.info("no beat: %s", error)
