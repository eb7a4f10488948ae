"""What every refusal of a results database is raised as."""


class DatabaseError(ValueError):
    """Says in one line which database cannot be used, why, and what would be right."""
