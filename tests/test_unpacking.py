"""Files of others are read up to a limit, which counts what gzip packs."""

import gzip
from pathlib import Path

import pytest

from fecbench.errors import BadInput
from fecbench.unpacking import content_of, opened


def test_a_file_is_read_as_it_is_or_unpacked(tmp_path: Path) -> None:
    for content in (b"", b"x", b"\x1e{}" * 70_000):
        (tmp_path / "plain").write_bytes(content)
        (tmp_path / "packed").write_bytes(gzip.compress(content[:9]) + gzip.compress(content[9:]))
        assert content_of(tmp_path / "plain", 1 << 20) == content_of(tmp_path / "packed", 1 << 20) == content


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_may_be_as_large_as_the_limit_and_no_larger(tmp_path: Path, pack: type[bytes]) -> None:
    (tmp_path / "file").write_bytes(pack(bytes(3 << 20)))
    assert len(content_of(tmp_path / "file", 3 << 20)) == 3 << 20
    with pytest.raises(BadInput, match="file: has more than 2 MiB"):
        content_of(tmp_path / "file", 2 << 20)


def test_what_cannot_be_unpacked_is_refused_in_one_line(tmp_path: Path) -> None:
    whole = gzip.compress(bytes(range(256)) * 40)
    for content, why in (
        (whole[:-20], "its gzip is cut off or broken"),
        (whole[:40] + b"\0\0\0" + whole[43:], "its gzip is cut off or broken"),
        (b"\xfd7zXZ\0....", "is packed by xz"),
        (b"PK\x03\x04....", "is packed by zip"),
    ):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(BadInput, match=why) as refusal:
            content_of(tmp_path / "file", 1 << 20)
        assert "\n" not in str(refusal.value)
    with pytest.raises(BadInput, match="none: cannot be read: No such file"), opened(tmp_path / "none", 1):
        pass
