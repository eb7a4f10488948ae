"""The file of an SQLite database, looked at before any library that reads it is loaded."""

from pathlib import Path

from fecbench.results.store.error import DatabaseError


def check_file(path: str, *, create: bool) -> None:
    """Raise DatabaseError for a directory, and for a missing file, unless it is to be created."""
    file = Path(path)
    if file.is_dir():
        raise DatabaseError(f"{path}: is a directory: give the path of a database file")
    if create and not file.absolute().parent.is_dir():
        raise DatabaseError(f"{path}: its folder does not exist: make it first")
    if not create and not file.exists():
        raise DatabaseError(f"{path}: no such database: give a file that a campaign was run into")
