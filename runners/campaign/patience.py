"""A results database on a server that may be gone for a while: what has ended waits until it can be kept."""

import logging
import time
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy.exc import InterfaceError, OperationalError

from fecbench.results.store.database import Database, DatabaseError

_log = logging.getLogger(__name__)

PATIENCE_S = 180.0
AGAIN_S = 1.0

P = ParamSpec("P")
T = TypeVar("T")


def _patient(
    method: Callable[Concatenate[Database, P], T],
) -> Callable[Concatenate["PatientDatabase", P], T]:
    """The method, called again while the server cannot be reached or has no room.

    A commit whose answer was lost has a result then, as any other second one.
    """

    def wait(self: "PatientDatabase", /, *arguments: P.args, **named: P.kwargs) -> T:
        until = time.monotonic() + PATIENCE_S
        told = False
        while True:
            try:
                done = method(self, *arguments, **named)
            except DatabaseError as error:
                if not isinstance(error.__cause__, OperationalError | InterfaceError):
                    raise
                if time.monotonic() >= until:
                    raise
                if not told:
                    self.tell(f"waiting for the database: {error}")
                    told = True
                time.sleep(AGAIN_S)
            else:
                if told:
                    self.tell("the database is there again")
                return done

    return wait


class PatientDatabase(Database):
    """A database that is waited for up to PATIENCE_S, but for the beat: that would come too late."""

    tell: Callable[[str], None] = staticmethod(_log.info)

    campaign = _patient(Database.campaign)
    starts = _patient(Database.starts)
    stop = _patient(Database.stop)
    claim_all = _patient(Database.claim_all)
    give_up = _patient(Database.give_up)
    claims = _patient(Database.claims)
    states = _patient(Database.states)
    states_in = _patient(Database.states_in)
    states_of = _patient(Database.states_of)
    record = _patient(Database.record)
    record_all = _patient(Database.record_all)
