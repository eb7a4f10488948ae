"""Which users a process can become."""

from pathlib import Path

import pytest

from fecbench.runners.sandbox import kernel

IN_A_CONTAINER = "         0       1000          1\n         1     100000      65536\n"


@pytest.mark.parametrize(
    ("users", "groups", "has_it"),
    [
        ("0 0 4294967295\n", "0 0 4294967295\n", True),
        (IN_A_CONTAINER, IN_A_CONTAINER, True),
        (IN_A_CONTAINER, "0 1000 1\n", False),
        ("0 1000 1\n", IN_A_CONTAINER, False),
        (None, None, True),
    ],
    ids=["machine", "container", "without-its-group", "without-its-user", "kernel-without-maps"],
)
def test_a_user_is_there_if_it_is_mapped_or_nobody_maps_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, users: str | None, groups: str | None, has_it: bool
) -> None:
    monkeypatch.setattr(kernel, "_SELF", tmp_path)
    for kind, text in (("uid", users), ("gid", groups)):
        if text is not None:
            (tmp_path / f"{kind}_map").write_text(text)
    assert kernel.has_user(65536) is has_it


def test_a_user_beyond_the_map_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_SELF", tmp_path)
    for kind in ("uid", "gid"):
        (tmp_path / f"{kind}_map").write_text(IN_A_CONTAINER)
    assert not kernel.has_user(65537)
