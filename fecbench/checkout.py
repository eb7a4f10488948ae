"""Where this checkout is: fecbench builds programs and reads folders beside its packages."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def is_whole() -> bool:
    """Whether this is a checkout. A wheel holds the Python packages alone, and can run no trial."""
    return (REPOSITORY / "quic-impls").is_dir() and (REPOSITORY / "topologies" / "wire" / "wire.c").is_file()
