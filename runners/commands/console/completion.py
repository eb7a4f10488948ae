"""Words that a shell offers to complete one: designs, campaigns, variants, metrics, trials.

A function here takes the beginning of a word and returns the words that it may become, some with what they
mean. Options and arguments name it as their `autocompletion`. The shell waits meanwhile, so nothing is loaded
but this module, and a database is read only where it is a file.
"""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from fecbench.checkout import REPOSITORY
from fecbench.results.store import names

Words = list[str] | list[tuple[str, str]]
Completion = Callable[[str], Words]
_BASH = "complete_bash"


@dataclass(frozen=True)
class Offer:
    """A word with its meaning, as shells are told it."""

    value: str
    help: str | None = None
    type: str = "plain"


def designs(incomplete: str) -> Words:
    """Designs of the catalogue."""
    files = (REPOSITORY / "designs" / "catalog").glob("*.toml")
    return _beginning(incomplete, sorted(file.stem for file in files))


def campaigns(incomplete: str) -> Words:
    """Campaigns of the database."""
    return _of_database(incomplete, "campaigns")


def variants(incomplete: str) -> Words:
    """Variants of the database."""
    return _of_database(incomplete, "variants")


def metrics(incomplete: str) -> Words:
    """Metrics that trials of the database have."""
    return _of_database(incomplete, "metrics")


def series(incomplete: str) -> Words:
    """Series that trials of the database have left."""
    return _of_database(incomplete, "series")


def trials(incomplete: str) -> Words:
    """Trials of the database, by their numbers, with their labels."""
    database = _database()
    return [] if database is None else names.trials(database, incomplete)


def filters(incomplete: str) -> Words:
    """Fields of a filter, and their values of the database."""
    field, is_given, _ = incomplete.partition("=")
    if not is_given:
        return _beginning(incomplete, ["variant=", "workload=", "point=", "repetition="])
    database = _database()
    if database is None or field not in _FIELDS:
        return []
    return _beginning(incomplete, [f"{field}={name}" for name in names.names(database, _FIELDS[field])])


def implementations(incomplete: str) -> Words:
    """Our implementations."""
    files = (REPOSITORY / "quic-impls").glob("*/impl.toml")
    return _beginning(incomplete, sorted(file.parent.name for file in files))


OF_OPTIONS: dict[str, Completion] = {
    "--campaign": campaigns,
    "--metric": metrics,
    "--series": series,
    "--variant": variants,
    "--baseline": variants,
    "--filter": filters,
    "--check": implementations,
}
_FIELDS: dict[str, names.Kind] = {"variant": "variants", "workload": "workloads"}
OF_COMMANDS: dict[str, Completion] = {
    **dict.fromkeys(("run", "plan", "crosscheck"), designs),
    **dict.fromkeys(("show", "replay", "diff"), trials),
}
"""Completions of a command's first argument."""
_OTHERS_WITH_VALUES = {"--db", "--output", "--plot", "--jobs", "--engine"}


def known(command: str, words: Sequence[str]) -> Completion | None:
    """Return the completion of the word behind these words, if it is known without loading the command."""
    if _begun().startswith("-"):
        return None
    if words and words[-1] in OF_OPTIONS:
        return OF_OPTIONS[words[-1]]
    if field := _field_of_bash(words):
        return lambda incomplete: _of_database(incomplete, _FIELDS[field])
    rest = list(words)
    while rest and rest[0] in OF_OPTIONS.keys() | _OTHERS_WITH_VALUES:
        rest = rest[2:]
    wants_argument = not rest and not (words and words[-1] in _OTHERS_WITH_VALUES)
    return OF_COMMANDS.get(command) if wants_argument else None


def _field_of_bash(words: Sequence[str]) -> str | None:
    """The field of a filter whose value is being typed: bash makes of `variant=x` three words."""
    before = words[:-1] if words and words[-1] == "=" else words if _begun() == "=" else ()
    return before[-1] if before[-2:-1] == ["--filter"] and before[-1] in _FIELDS else None


def _of_database(incomplete: str, kind: names.Kind) -> list[str]:
    database = _database()
    return [] if database is None else _beginning(incomplete, names.names(database, kind))


def _beginning(incomplete: str, words: Sequence[str]) -> list[str]:
    """The words that begin so, as the shell takes them: bash splits an unquoted one at its spaces."""
    found = [word for word in words if word.startswith(incomplete)]
    is_bash = os.environ.get("_FECBENCH_COMPLETE") == _BASH
    return [shlex.quote(word) for word in found] if is_bash and not _is_quoted() else found


def _line() -> str:
    """Return the line that was typed, as the shell passes it."""
    return os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")


def _begun() -> str:
    """The end of what has been typed, from the last space on."""
    return _line().rpartition(" ")[2]


def _is_quoted() -> bool:
    """Whether a quote is open."""
    try:
        shlex.split(_line())
    except ValueError:
        return True
    return False


def _database() -> Path | None:
    """The file that the command would open, if it is one."""
    words = _line().replace("=", " ").split()
    named = [after for before, after in pairwise(words) if before == "--db"]
    place = (named or [os.environ.get("FECBENCH_DB", "fecbench.sqlite")])[-1].strip("'\"")
    path = Path(place).expanduser()
    return path if path.is_file() else None
