"""The error that every refusal of a results database is."""

from fecbench.errors import BadInput


class DatabaseError(BadInput):
    """Says in one line which database cannot be used, why, and what would be right."""


class Replaced(DatabaseError):
    """The file is not the one that was opened: it was deleted, moved or replaced."""


class UnfitRecord(DatabaseError):
    """The record of a trial cannot be stored as it is; the database is as it was."""


class HasResult(DatabaseError):
    """The trial has a result that this one may not replace; the database is as it was."""
