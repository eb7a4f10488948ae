"""The user's folder of caches: files that can be made again, and are kept because that takes long.

Where it cannot be written, nothing is kept. Other processes may write the same file at the same time.
"""

import os
from contextlib import suppress
from pathlib import Path


def folder() -> Path:
    """Return our folder of caches, which may be absent. Raises RuntimeError if the user has no home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fecbench"


def read(name: str) -> str | None:
    """Return a text that was kept under this name, if it is there."""
    with suppress(OSError, RuntimeError, UnicodeDecodeError):
        return (folder() / name).read_text(encoding="utf-8")
    return None


def keep(name: str, text: str) -> None:
    with suppress(OSError, RuntimeError):
        file = folder() / name
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_name(f"{file.name}.{os.getpid()}")
        try:
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(file)
        finally:
            unfinished.unlink(missing_ok=True)
