"""Interoperability of clients and servers, in a campaign in which variants name other variants as servers.

The question is whether the whole content arrives, not when. So each trial counts by the reports of both its
ends, whatever its times were, and a machine that was too busy to vouch for these changes no cell. The trial's
record has the result, for exit codes have not: a server of the interop contract is ended by a signal, and its
client verifies nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fecbench.results.store.database import Database
from fecbench.results.store.records import BY_ENDS, CampaignInfo, State, StoredTrial, TrialRecord

CellState = Literal["ok", "failed", "unsupported"]
_DECIDES: tuple[State, ...] = ("failed", "timeout", "unsupported", "invalid", "ok")
"""States of trials: the first one that a pair has decides."""
MARKS: dict[CellState, str] = {"ok": "✓", "failed": "✕", "unsupported": "?"}


@dataclass(frozen=True)
class Cell:
    """The result of a client with a server."""

    client: str
    server: str
    state: CellState
    reason: str
    """Empty when ok."""


@dataclass(frozen=True)
class Matrix:
    """The cells of all pairs of `ends` that there are."""

    ends: list[str]
    cells: list[Cell]

    def cell(self, client: str, server: str) -> Cell | None:
        return next((cell for cell in self.cells if (cell.client, cell.server) == (client, server)), None)

    def rows(self) -> list[list[str]]:
        """A row for each client: its name, and a mark for each server; "" for a pair that there is not."""
        return [[client, *(self._mark(client, server) for server in self.ends)] for client in self.ends]

    def _mark(self, client: str, server: str) -> str:
        cell = self.cell(client, server)
        return "" if cell is None else MARKS[cell.state]

    @property
    def reasons(self) -> list[str]:
        """A line for each cell that is not ok."""
        return [
            f"{MARKS[cell.state]} client {cell.client}, server {cell.server}: {cell.reason}"
            for cell in self.cells
            if cell.state != "ok"
        ]


def of_campaign(database: Database, campaign: CampaignInfo) -> Matrix | None:
    """The matrix of a campaign; None when no variant names another one as its server, unless the campaign was
    run for its matrix: then its record has the ends, and the pairs that cannot meet.

    A variant that names no server is an end, and meets itself; one that names a server is the end with the
    same implementation and options, or an end of its own.
    """
    variants = _variants(campaign)
    requested = campaign.provenance.get("interop")
    if requested is None and all(_server(variant) is None for variant in variants):
        return None
    ends = [variant for variant in variants if _server(variant) is None]
    trials: dict[str, list[StoredTrial]] = {}
    for trial in database.trials(campaign.id):
        trials.setdefault(trial.record.key.variant, []).append(trial)
    cells = [
        Cell(
            _client(variant, ends),
            _server(variant) or variant["label"],
            *_outcome(trials.get(variant["label"], [])),
        )
        for variant in variants
    ]
    if requested is not None:
        return Matrix(requested["ends"], [*cells, *(Cell(**cell) for cell in requested["cells"])])
    names = dict.fromkeys([end["label"] for end in ends])
    names |= dict.fromkeys([name for cell in cells for name in (cell.client, cell.server)])
    return Matrix(list(names), cells)


def _variants(campaign: CampaignInfo) -> list[dict[str, Any]]:
    return list(tomllib.loads(campaign.design_text).get("variants", []))


def _by_ends(record: TrialRecord) -> tuple[State, str]:
    """The state and its reason by what both ends said."""
    if record.state == "ok" or BY_ENDS not in record.checks:
        return record.state, record.reason
    verdict = record.checks[BY_ENDS]
    return verdict["state"], verdict["reason"]


def _server(variant: Mapping[str, Any]) -> str | None:
    server = variant.get("server")
    return None if server is None or server == variant["label"] else str(server)


def _client(variant: Mapping[str, Any], ends: Sequence[Mapping[str, Any]]) -> str:
    for end in ends:
        if _program(end) == _program(variant):
            return str(end["label"])
    return str(variant["label"])


def _program(variant: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    return variant["implementation"], variant.get("options", {})


def _outcome(trials: Sequence[StoredTrial]) -> tuple[CellState, str]:
    """Return the result of all trials of a pair: one that failed decides, else one that is unsupported, else
    one of which nothing can be said."""
    if not trials:
        return "failed", "it was not run"
    reached = [_by_ends(trial.record) for trial in trials]
    state, reason = min(reached, key=lambda outcome: _DECIDES.index(outcome[0]))
    if state == "ok":
        return "ok", ""
    if state == "unsupported":
        return "unsupported", reason
    prefix = {"timeout": "it ran out of time: ", "invalid": "nothing can be said, the trial is invalid: "}
    return "failed", prefix.get(state, "") + reason
