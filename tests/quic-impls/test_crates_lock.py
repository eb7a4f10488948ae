"""The lock files of the Rust crates: what is committed has no registry's address, and builds the same."""

import shutil
import subprocess
from pathlib import Path

import pytest

from fecbench.runners.implementations.finding import OWN

QUIC_IMPLS = Path(__file__).parents[2] / "quic-impls"
TOOL = QUIC_IMPLS / "crates_lock.py"
CRATES = (*OWN, "fec", "host")
needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
LOCKS = [lock for name in CRATES if (lock := QUIC_IMPLS / name / "crates.lock").is_file()]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/usr/bin/python3", str(TOOL), *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("lock", LOCKS, ids=[lock.parent.name for lock in LOCKS])
def test_no_committed_lock_file_names_a_registry(lock: Path) -> None:
    text = lock.read_text()
    assert "checksum = " in text
    assert "://" not in text


@needs_cargo
def test_a_lock_file_is_restored_with_a_source_for_every_checksum_and_saved_as_it_was(tmp_path: Path) -> None:
    committed = (QUIC_IMPLS / "fec" / "crates.lock").read_text()
    (tmp_path / "crates.lock").write_text(committed)
    restored = run("restore", str(tmp_path))
    assert (restored.returncode, restored.stderr) == (0, "")
    full = (tmp_path / "Cargo.lock").read_text()
    assert full.count("\nsource = ") == full.count("\nchecksum = ") == committed.count("\nchecksum = ")
    (tmp_path / "crates.lock").unlink()
    assert run("save", str(tmp_path)).returncode == 0
    assert (tmp_path / "crates.lock").read_text() == committed


@needs_cargo
def test_a_restored_lock_file_that_says_the_same_is_left_as_it_is(tmp_path: Path) -> None:
    shutil.copy(QUIC_IMPLS / "fec" / "crates.lock", tmp_path)
    assert run("restore", str(tmp_path)).returncode == 0
    before = (tmp_path / "Cargo.lock").stat()
    assert run("restore", str(tmp_path)).returncode == 0
    after = (tmp_path / "Cargo.lock").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("arguments", [(), ("restore",), ("mend", "."), ("restore", "/nonexistent")])
def test_a_wrong_call_ends_with_one_line_and_status_2(arguments: tuple[str, ...]) -> None:
    refusal = run(*arguments)
    assert refusal.returncode == 2
    assert refusal.stderr.startswith("crates_lock: ")
    assert refusal.stderr.count("\n") == 1
