"""The JSON file that an endpoint is started with, as quic-impls/README.md says."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

CONTROLLERS = ("reno", "cubic")
LARGEST = 1 << 40
"""The largest transfer, in bytes."""


class WrongError(Exception):
    """The call, the file or a value in it is wrong."""


class UnsupportedError(Exception):
    """A request that is not supported here."""


@dataclass(frozen=True)
class Assignment:
    """The task of an endpoint."""

    role: Literal["client", "server"]
    address: str
    port: int
    server_name: str
    workload: Literal["download", "upload", "requests"]
    size_bytes: int
    content_seed: int
    congestion_control: str
    initial_window: int
    """Initial window in packets."""
    packet_size: int
    certificate: str
    private_key: str
    authority: str
    deadline_s: float

    @property
    def transfer(self) -> str:
        """The workload in words."""
        return self.workload if self.workload == "requests" else f"{self.workload} of {self.size_bytes} bytes"

    @property
    def method(self) -> Literal["GET", "PUT"]:
        """Method of its requests."""
        return "PUT" if self.workload == "upload" else "GET"


def read(path: Path) -> Assignment:
    """The assignment in a file. Raises WrongError and UnsupportedError with one line."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise WrongError(f"{path}: {error}") from None
    if not isinstance(document, dict):
        raise WrongError(f"{path}: must be a JSON object")
    try:
        return _assignment(document)
    except WrongError as error:
        raise WrongError(f"{path}: {error}") from None


def _assignment(document: dict[str, Any]) -> Assignment:
    if document.get("version") != 1:
        raise WrongError(f"version: {document.get('version')!r}; this program knows version 1")
    workload, options = _table(document, "workload"), _table(document, "options")
    role = _choice(document, "role", ("client", "server"))
    for name in document.get("series", []):
        raise UnsupportedError(f"series {name!r} is not supported")
    workload_name = workload.get("name")
    if workload_name not in ("download", "upload", "requests"):
        raise UnsupportedError(f"workload {workload_name!r} is not supported")
    known_options = {"congestion_control", "initial_window", "packet_size"}
    for name in options.keys() - known_options:
        raise WrongError(f"options.{name}: unknown; there are {', '.join(sorted(known_options))}")
    files = ("authority", "server_name") if role == "client" else ("certificate", "private_key")
    for name in files:
        if not isinstance(document.get(name), str) or not document[name]:
            raise WrongError(f"{name}: missing; a {role} needs it")
    deadline_s = document.get("deadline_s")
    if not isinstance(deadline_s, int | float) or not 0 < deadline_s <= 1e6:
        raise WrongError(f"deadline_s: {deadline_s!r} is not above 0 and up to 1000000")
    return Assignment(
        role="client" if role == "client" else "server",
        address=str(document.get("address")),
        port=_integer(document, "port", 1, 65535),
        server_name=document.get("server_name", ""),
        workload=workload_name,
        size_bytes=0 if workload_name == "requests" else _integer(workload, "size_bytes", 0, LARGEST),
        content_seed=_integer(document, "content_seed", 0, 2**64 - 1),
        congestion_control=_choice(options, "congestion_control", CONTROLLERS),
        initial_window=_integer(options, "initial_window", 2, 64),
        packet_size=_integer(options, "packet_size", 1200, 1452),
        certificate=document.get("certificate", ""),
        private_key=document.get("private_key", ""),
        authority=document.get("authority", ""),
        deadline_s=float(deadline_s),
    )


def _table(document: dict[str, Any], name: str) -> dict[str, Any]:
    table = document.get(name)
    if not isinstance(table, dict):
        raise WrongError(f"{name}: {table!r} is not a JSON object")
    return table


def _choice(table: dict[str, Any], name: str, choices: Sequence[str]) -> str:
    value = table.get(name)
    if not isinstance(value, str) or value not in choices:
        raise WrongError(f"{name}: {value!r} is not one of {', '.join(choices)}")
    return value


def _integer(table: dict[str, Any], name: str, minimum: int, maximum: int) -> int:
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise WrongError(f"{name}: {value!r} is not an integer in {minimum} to {maximum}")
    return value
