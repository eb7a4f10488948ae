"""A campaign over a real path: what its options mean, how much it sends, and what runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fecbench.quantities import quantity
from fecbench.runners.commands.console.terminal import note
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    import ssl

    from fecbench.results.store.database import Database
    from fecbench.results.store.records import CampaignInfo, Group
    from fecbench.runners.campaign.request import Request
    from fecbench.runners.field.connection import Place

MOST_BYTES = 1_000_000_000


@dataclass(frozen=True)
class OverPath:
    """The path of a campaign in the field."""

    place: Place
    name: str
    tls: ssl.SSLContext
    most_bytes: int

    def document(self) -> dict[str, Any]:
        """Return what the campaign's provenance keeps of it."""
        return {"path": self.name, "server": str(self.place)}

    def runner(self, request: Request) -> Callable[[Database], CampaignInfo]:
        """Return the function that runs the campaign. Raises Refusal for one that sends too much."""
        from fecbench.runners.campaign import field_traffic
        from fecbench.runners.commands.console.running import run_here
        from fecbench.runners.field.field_engine import FieldEngine

        sent = field_traffic.of_campaign(request.experiment, request.keys)
        if sent.up_bytes + sent.down_bytes > self.most_bytes:
            raise Refusal(
                f"{request.design.path}: {sent.words()}: more than {self.most_bytes / 1e6:g} MB:"
                " allow it with --most-bytes, or ask for fewer repetitions"
            )
        note(sent.words())
        engine = FieldEngine(self.place, self.tls, self.name, request.experiment.implementations, note)

        def run(database: Database) -> CampaignInfo:
            engine.connect()  # before a campaign is begun
            engine.broken |= _partly_run(request, database)
            return run_here(request, database, field=engine)

        return run


def _partly_run(request: Request, database: Database) -> set[Group]:
    """Return the blocks of which a trial was run that is not run again."""
    campaign = database.campaign(request.name)
    states = database.states(campaign.id) if campaign else {}
    return {key.group for key, (state, _) in states.items() if state not in request.retry}


def of_field(
    engine: str, server: str, path: str, most_bytes: str, certificates: Path | None
) -> OverPath | None:
    """Return the path that options name, for the engine field alone. Raises Refusal for what does not fit."""
    if engine != "field":
        for option, value in (("--server", server), ("--path", path), ("--most-bytes", most_bytes)):
            if value:
                raise Refusal(f"{option} {value}: is of --engine field")
        return None
    from fecbench.runners.field.connection import Place, context

    needed: tuple[tuple[str, object, str], ...] = (
        ("--server", server, "HOST:PORT, where fecbench field serve listens"),
        ("--path", path, "a name for the path, such as home-wifi"),
        ("--certificates", certificates, "DIR, made by fecbench field certificates DIR"),
    )
    for name, present, right in needed:
        if not present:
            raise Refusal(f"--engine field needs {name}: {right}")
    if not path.isprintable():
        raise Refusal(f"--path {path!r}: must be one line of printable text")
    assert certificates is not None
    most = MOST_BYTES if not most_bytes else int(quantity(most_bytes, "bytes"))
    return OverPath(Place.of("--server", server), path, context(certificates, server=False), most)
