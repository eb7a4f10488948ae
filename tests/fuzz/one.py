"""Fuzzes one target by Atheris, which follows what the bytes reach.

    python -m tests.fuzz.one TARGET RUNS FOLDER

The folder has the corpus, and gets what breaks the law.
"""

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["fecbench"]):
    from tests.fuzz.targets import REFUSALS, TARGETS

LARGEST_BYTES = 8192
LONGEST_S = 10
LARGEST_MIB = 2048


def main() -> None:
    name, runs, folder = sys.argv[1:]
    target = TARGETS[name]
    for number, seed in enumerate(target.seeds()):
        (Path(folder) / f"seed-{number}").write_bytes(seed)

    def read(data: bytes) -> None:
        try:
            target.read(data)
        except REFUSALS as refusal:
            if len(str(refusal).splitlines()) != 1:
                raise AssertionError(f"not one line: {refusal}") from refusal

    limits = [f"-max_len={LARGEST_BYTES}", f"-timeout={LONGEST_S}", f"-rss_limit_mb={LARGEST_MIB}"]
    places = [f"-artifact_prefix={folder}/", folder]
    atheris.Setup([sys.argv[0], f"-runs={runs}", "-verbosity=0", *limits, *places], read)
    atheris.Fuzz()  # ends the process


if __name__ == "__main__":
    main()
