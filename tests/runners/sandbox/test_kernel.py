"""The users that a process can become."""

from pathlib import Path

import pytest

from fecbench.runners.sandbox import kernel

IN_A_CONTAINER = "         0       1000          1\n         1     100000      65536\n"


def test_a_user_is_there_if_it_is_mapped_or_nobody_maps_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "_SELF", tmp_path)
    assert kernel.has_user(65536), "a kernel without maps"
    for users, groups, greatest in (
        ("0 0 4294967295\n", "0 0 4294967295\n", 65537),
        (IN_A_CONTAINER, IN_A_CONTAINER, 65536),
        (IN_A_CONTAINER, "0 1000 1\n", 0),
        ("0 1000 1\n", IN_A_CONTAINER, 0),
    ):
        (tmp_path / "uid_map").write_text(users)
        (tmp_path / "gid_map").write_text(groups)
        assert [kernel.has_user(user) for user in (65536, 65537)] == [greatest >= 65536, greatest >= 65537]
