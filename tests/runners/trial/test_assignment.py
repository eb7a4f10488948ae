"""The assignment of an endpoint: only what its role and its implementation need."""

import json
import re
import resource
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.tasks.task import EndpointTask, Role
from fecbench.runners.trial.assignment import assignment, command


def assigned(role: Role, content_seed: int = 2**64 - 1, **declared: Any) -> dict[str, Any]:
    return assignment(
        role,
        EndpointTask(implementation="script", options={"a": 1}, **declared),
        workload={"name": "download", "size_bytes": 1},
        content_seed=content_seed,
        server_address="10.0.2.2",
        local_addresses=["10.0.1.2", "10.0.5.2"],
        certificates=Path("/certificates"),
        log_folder=Path("/log"),
        deadline_s=3,
    )


def test_only_the_server_gets_its_key() -> None:
    assert {"certificate", "private_key"} <= assigned("server").keys()
    assert not {"certificate", "private_key"} & assigned("client").keys()


def test_local_addresses_are_told_to_implementations_that_declare_them() -> None:
    assert assigned("client", local_addresses=True)["local_addresses"] == ["10.0.1.2", "10.0.5.2"]
    assert "local_addresses" not in assigned("client")


def test_the_seed_is_told_as_text_alone_to_implementations_that_declare_it() -> None:
    document = assigned("client", content_seed_hex=True)
    assert (document.get("content_seed"), document["content_seed_hex"]) == (None, "f" * 16)
    assert "content_seed_hex" not in assigned("client")


def test_a_small_seed_has_all_digits_as_text() -> None:
    assert (
        assigned("server", content_seed=123, content_seed_hex=True)["content_seed_hex"] == "000000000000007b"
    )


def test_series_are_asked_for_by_name_or_not_mentioned() -> None:
    assert assigned("server", series=["cwnd"])["series"] == ["cwnd"]
    assert "series" not in assigned("server")


@pytest.mark.parametrize("role", ["client", "server"])
def test_the_contract_shows_what_each_end_is_told(role: Role) -> None:
    page = (REPOSITORY / "quic-impls" / "README.md").read_text()
    blocks = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (output,) = (json.loads(text) for text in blocks if f'"role": "{role}"' in text)
    document = assigned(role, local_addresses=True, series=["cwnd"])
    assert output.keys() == document.keys()
    for key in ("authority", "certificate", "private_key"):
        assert Path(output.get(key, "")).name == Path(document.get(key, "")).name


def test_a_document_for_which_there_is_no_room_is_named_and_not_there(tmp_path: Path) -> None:
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, usual[1]))
    try:
        with pytest.raises(OSError) as raised:
            command(["endpoint"], assigned("client"), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert raised.value.filename == str(tmp_path / "client.json")
    assert list(tmp_path.iterdir()) == []
