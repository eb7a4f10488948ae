"""URLs of PostgreSQL. A URL that has a password, or may have one, is refused, and no part of it is shown.

Every user who lists processes reads a command's arguments, and campaigns keep them. PostgreSQL's own library
(libpq) takes passwords from ~/.pgpass, service files and PGPASSWORD.
"""

import re
from urllib.parse import unquote

from fecbench.results.store.error import DatabaseError

SCHEMES = ("postgresql", "postgres")
FORM = "postgresql://USER@HOST:PORT/DATABASE"

_HOST = r"(\[[\w:.%]*\]|[\w.%-]*)(:[0-9]*)?"
# No @, : or / of a password that was not percent-encoded has a place in this.
_POSTGRESQL = re.compile(
    rf"(postgresql|postgres)://([^:/?@]*@)?{_HOST}(,{_HOST})*(/[^:/?@]*)?(\?[^?@]*)?", re.ASCII
)
_SECRET_OPTION = re.compile(r"[?&](\w*password|scram_\w+_key|\w+_secret)=", re.ASCII | re.IGNORECASE)


def is_url(text: str) -> bool:
    """Whether this names a server; all else is the path of a file."""
    return "://" in text


def check_url(url: str) -> None:
    """Raise DatabaseError for what is no URL of PostgreSQL, or has a place for a password."""
    refuse_password(url)
    if url.partition("://")[0] not in SCHEMES:
        raise DatabaseError(f"{url}: must be a file, or a URL {FORM}")


def refuse_password(word: str) -> None:
    """Raise DatabaseError for a word of a command line that ends in a URL which may have a password."""
    if not (found := re.search(r"([\w+.-]*)://", word, re.ASCII)):
        return
    scheme, url = found[1], word[found.start() :]
    has_form = scheme not in SCHEMES or _POSTGRESQL.fullmatch(url)
    if not has_form or re.search("://.*:.*@", url, re.DOTALL) or _SECRET_OPTION.search(unquote(url)):
        raise DatabaseError(
            f"{scheme}://***: a URL must have no password, which others could read: put it into ~/.pgpass or"
            f" a service file; must be {FORM}, with @ : / ? % in names percent-encoded (@ is %40)"
        )
