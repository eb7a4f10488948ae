"""The environment of programs of others: nothing is inherited, so that it is the same on every machine."""

from pathlib import Path

# Programs are looked for here by their name, too: whoever runs it, the same ones are found.
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a program whose home is this folder."""
    return {"PATH": PATH, "LANG": "C.UTF-8", "HOME": str(home)}
