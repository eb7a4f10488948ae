#!/usr/bin/python3
"""Cargo.lock without the address of a registry: crates.lock, which is what we commit.

    crates_lock.py restore FOLDER    before a build: makes FOLDER/Cargo.lock of FOLDER/crates.lock
    crates_lock.py save FOLDER       after an update: makes FOLDER/crates.lock of FOLDER/Cargo.lock

crates.lock has the version and the checksum of every crate, but not where it was fetched: that is a matter of
each machine's cargo, and is asked of it. A Cargo.lock that says the same already is left as it is.
Runs on the system's Python, without packages.
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

THROW_AWAY = """[package]
name = "throw-away"
version = "0.0.0"
[lib]
path = "lib.rs"
[dependencies]
"{name}" = "={version}"
[workspace]
"""


def main() -> None:
    """Run the command line; what is wrong with it ends the process with one line and status 2."""
    if len(sys.argv) != 3 or sys.argv[1] not in ("restore", "save"):
        sys.exit(_refused("usage: crates_lock.py restore|save FOLDER"))
    command, folder = sys.argv[1], Path(sys.argv[2])
    stripped, full = folder / "crates.lock", folder / "Cargo.lock"
    read = stripped if command == "restore" else full
    if not read.is_file():
        sys.exit(_refused(f"{read}: no such file"))
    if command == "save":
        write(stripped, without_sources(full.read_text(encoding="utf-8")))
    elif not full.is_file() or without_sources(full.read_text(encoding="utf-8")) != stripped.read_text(
        encoding="utf-8"
    ):
        write(full, with_sources(stripped.read_text(encoding="utf-8")))


def _refused(message: str) -> int:
    print(f"crates_lock: {message}", file=sys.stderr)
    return 2


def without_sources(lock: str) -> str:
    """The text of a lock file without the lines that say where a crate comes from."""
    return "".join(line for line in lock.splitlines(keepends=True) if not line.startswith("source = "))


def with_sources(lock: str) -> str:
    """The text of a lock file whose every crate with a checksum comes from this machine's registry."""
    fetched = [package for package in tomllib.loads(lock)["package"] if "checksum" in package]
    if not fetched:
        return lock
    source = registry_source(fetched[0]["name"], fetched[0]["version"])
    return "".join(
        source + line if line.startswith("checksum = ") else line for line in lock.splitlines(keepends=True)
    )


def registry_source(name: str, version: str) -> str:
    """The line by which this machine's cargo tells where it fetches a crate."""
    with tempfile.TemporaryDirectory(prefix="crates-lock-") as scratch:
        folder = Path(scratch)
        (folder / "Cargo.toml").write_text(THROW_AWAY.format(name=name, version=version), encoding="utf-8")
        (folder / "lib.rs").touch()
        generate = ["cargo", "generate-lockfile", "--quiet"]
        ran = subprocess.run(generate, cwd=folder, stderr=subprocess.PIPE, text=True)
        if ran.returncode != 0:
            sys.exit(f"crates_lock: cargo knows no {name} {version}: {' '.join(ran.stderr.split())}")
        lines = (folder / "Cargo.lock").read_text(encoding="utf-8").splitlines(keepends=True)
    return next(line for line in lines if line.startswith("source = "))


def write(path: Path, text: str) -> None:
    """Put the file in place at once, so that nobody reads half of it."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f"{path.name}.", delete=False
    ) as partial:
        partial.write(text)
    Path(partial.name).chmod(mode)
    Path(partial.name).replace(path)


if __name__ == "__main__":
    main()
