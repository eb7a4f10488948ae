"""A probe returns None for what it cannot find out."""

from pathlib import Path

import pytest

from fecbench.runners import probe


def test_a_probe_that_fails_or_hangs_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (["no-such-program"], ["false"], ["printf", "\\377"]):
        assert probe.output_of(command) is None
    monkeypatch.setattr(probe, "PROBE_LIMIT_S", 0.1)
    assert probe.output_of(["sleep", "60"]) is None


def test_the_hash_of_a_file_is_its_sha256(tmp_path: Path) -> None:
    (tmp_path / "abc").write_text("abc")
    # FIPS 180-2, appendix B.1.
    published = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert probe.sha256_of(tmp_path / "abc") == published
    for path in ("/no/such/file", "/"):
        assert probe.sha256_of(Path(path)) is None


def test_a_file_that_has_changed_has_another_hash(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("abc")
    before = probe.sha256_of(file)
    file.write_text("abcd")
    assert probe.sha256_of(file) != before
