"""URLs of PostgreSQL, read by its own library (libpq), and shown without what is secret in them.

A URL that cannot be read is never shown, nor what libpq says of it: either might have a part of a password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from fecbench.results.store.error import DatabaseError

SCHEMES = ("postgresql", "postgres")
FORM = "postgresql://USER@HOST:PORT/DATABASE"
HIDDEN = "***"

_URL = re.compile(r"[\w+.-]*://", re.ASCII)
# Of a cluster: where a password would stand, there is a port.
_SCHEDULER = re.compile(r"(tls|tcp)://([\w.-]+|\[[\w:.%]+\]):[0-9]+", re.ASCII)
# A name, an address, or the folder of a socket.
_HOST = re.compile(r"[\w.:%-]*|/[\w./ ~+-]*", re.ASCII)
# libpq marks the other secrets itself.
_SECRET_KEYS = {"scram_client_key", "scram_server_key"}


def is_url(text: str) -> bool:
    """Whether this names a server; all else is the path of a file."""
    return "://" in text


def shown(url: str) -> str:
    """The URL without what is secret. Raises DatabaseError for one that cannot be read."""
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES:
        whole = url if _is_harmless(url) else f"{scheme}://{HIDDEN}"
        raise DatabaseError(f"{whole}: must be a file, or a URL {FORM}")
    given, secrets = _read(url)
    if _splits_a_password(given, rest):
        raise _unreadable()
    return _rendered({key: HIDDEN if key in secrets else value for key, value in given.items()})


def without_secrets(argument: str) -> str:
    """A word of a command line as it may be kept and shown: a URL in it has no password any more."""
    url = url_in(argument)
    if not url or _is_harmless(url):
        return argument
    try:
        without = shown(url)
    except DatabaseError:
        without = f"{url.partition('://')[0]}://{HIDDEN}"
    return argument.removesuffix(url) + without if HIDDEN in without else argument


def without_passwords(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Of a campaign or a start, as it may be shown: older ones kept passwords in some forms of a URL."""
    kept = [without_secrets(word) for word in provenance.get("command", [])]
    return {**provenance, "command": kept} if kept else dict(provenance)


def options_of(url: str) -> set[str]:
    """The names of the options that a URL gives."""
    return set(_read(url)[0])


def url_in(argument: str) -> str:
    """The URL at the end of a word, such as `--db=URL`; empty when there is none."""
    found = _URL.search(argument)
    return argument[found.start() :] if found else ""


def _is_harmless(url: str) -> bool:
    """Whether a password has no place in it, whoever reads it."""
    return not {":", "?"} & set(url.partition("://")[2]) or _SCHEDULER.fullmatch(url) is not None


def _read(url: str) -> tuple[dict[str, str], set[str]]:
    """The options in a URL, and the names of those that are secret."""
    from psycopg import OperationalError, pq  # takes longer to load than most commands take to run

    try:
        options = pq.Conninfo.parse(url.encode())
    except (OperationalError, UnicodeEncodeError):
        raise _unreadable() from None
    given = {option.keyword.decode(): option.val.decode(errors="replace") for option in options if option.val}
    marked = {option.keyword.decode() for option in options if option.dispchar == b"*"}
    return given, marked | _SECRET_KEYS


def _unreadable() -> DatabaseError:
    return DatabaseError(
        f"postgresql://{HIDDEN}: PostgreSQL's library cannot read this URL: must be {FORM}, with each of"
        " @ : / ? % and blanks in names and passwords percent-encoded (@ is %40)"
    )


def _splits_a_password(given: dict[str, str], rest: str) -> bool:
    """Whether an @, : or / in a password was taken for its end, so that a part of it is something else."""
    account = re.match("[^/@]*@|", rest)
    assert account is not None  # it may be empty
    user, behind = account[0].partition(":")[0], rest[account.end() :]
    hosts_are_names = all(_HOST.fullmatch(host) for host in given.get("host", "").split(","))
    ports_are_numbers = re.fullmatch("[0-9,]*", given.get("port", "")) is not None
    return "?" in user or "@" in behind.partition("?")[0] or not (hosts_are_names and ports_are_numbers)


def _rendered(given: dict[str, str]) -> str:
    """A URL of these options."""
    rest = dict(given)
    user, database = quote(rest.pop("user", ""), safe=""), quote(rest.pop("dbname", ""), safe="")
    password = f":{rest.pop('password')}" if "password" in rest else ""
    account = f"{user}{password}@" if user or password else ""
    server = ""
    # The folder of a socket and several hosts stand behind the question mark.
    if "host" in rest and not rest["host"].startswith("/") and "," not in rest["host"]:
        host = rest.pop("host")
        server = f"[{host}]" if ":" in host else host
        server += f":{rest.pop('port')}" if "port" in rest else ""
    query = f"?{urlencode(rest, safe='/*,:', quote_via=quote)}" if rest else ""
    return f"postgresql://{account}{server}/{database}{query}"
