"""The catalogue: the designs that come with fecbench, by name."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "catalog"


def catalogue() -> dict[str, Path]:
    """The file of each design of the catalogue."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.toml"), key=str)}
