"""The recorded samples of `notebooks/samples` as databases, each decompressed once for all workers."""

import lzma
from pathlib import Path

from fecbench.checkout import REPOSITORY
from tests.support.once import made_once

SAMPLES = REPOSITORY / "notebooks" / "samples"
NAMES = sorted(path.name.removesuffix(".sqlite.xz") for path in SAMPLES.glob("*.sqlite.xz"))


def database_of(sample: str, shared_folder: Path) -> Path:
    """Return the database of a sample, which is only to be read."""
    compressed = SAMPLES / f"{sample}.sqlite.xz"

    def decompress_into(path: Path) -> None:
        path.write_bytes(lzma.decompress(compressed.read_bytes()))

    return made_once(shared_folder / f"{sample}.sqlite", decompress_into)
