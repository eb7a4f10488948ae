"""The task of an endpoint: a JSON file, whose path is its one argument (quic-impls/README.md), and the files
that this file names."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict, Unpack

from fecbench.runners.tasks import ports
from fecbench.runners.tasks.task import EndpointTask, PairTask, Place
from fecbench.runners.workloads import asked_series
from fecbench.whole_files import write_text

PORT = ports.OURS
SERVER_NAME = "server.fecbench"


class OfRepetitions(TypedDict):
    """Fields of an assignment that all repetitions of a trial have in common, wherever it is run."""

    workload: dict[str, Any]
    server_address: str
    local_addresses: Sequence[str]
    deadline_s: float
    port: NotRequired[int]
    """Port of the server; PORT, if absent."""
    upstream: NotRequired[dict[str, Any] | None]
    """Server of a relay (`upstream`); None and absent for any other end."""


def upstream(pair: PairTask, server_address: str, port: int = PORT) -> dict[str, Any]:
    """Return the server of a relay, and the options of the relay's connection to it: the server's."""
    return {"address": server_address, "port": port, "options": pair.server.options}


def assignment(
    role: Place,
    end: EndpointTask,
    *,
    content_seed: int,
    certificates: Path,
    log_folder: Path,
    **shared: Unpack[OfRepetitions],
) -> dict[str, Any]:
    """The document for one end of a pair, or for the relay between both, whose server is `upstream`.

    A relay's `end` is that of its client, which connects to it: `server_address` is where the endpoint
    connects or listens. `certificates` is the folder that `certificates.write` filled.
    """
    of_this_trial = of_trial(
        role, end, content_seed=content_seed, certificates=str(certificates), log_folder=str(log_folder)
    )
    return {**of_repetitions(role, end, **shared), **of_this_trial}


def of_repetitions(role: Place, end: EndpointTask, **shared: Unpack[OfRepetitions]) -> dict[str, Any]:
    """Return the part of an assignment that all repetitions of a trial have in common, wherever it is run."""
    document: dict[str, Any] = {
        "version": 1,
        "role": role,
        "address": shared["server_address"],
        "port": shared.get("port", PORT),
        "server_name": SERVER_NAME,
        "workload": shared["workload"],
        "options": end.options,
        "deadline_s": shared["deadline_s"],
    }
    if (server := shared.get("upstream")) is not None:
        document["upstream"] = server
    elif series := list(asked_series(end, shared["workload"])):
        document["series"] = series
    if end.local_addresses:
        document["local_addresses"] = list(shared["local_addresses"])
    return document


def of_trial(
    role: Place, end: EndpointTask, *, content_seed: int, certificates: str, log_folder: str
) -> dict[str, Any]:
    """Return the rest of an assignment: the seed of one trial, and its files."""
    document = {
        **_seed(content_seed, as_text=end.content_seed_hex),
        "authority": f"{certificates}/authority.pem",
        "log_folder": log_folder,
    }
    if role != "client":
        document["certificate"] = f"{certificates}/server.pem"
        document["private_key"] = f"{certificates}/server.key"
    return document


def _seed(content_seed: int, *, as_text: bool) -> dict[str, Any]:
    """The content's seed in the one form that the endpoint reads: some readers of JSON refuse the number."""
    return {"content_seed_hex": f"{content_seed:016x}"} if as_text else {"content_seed": content_seed}


def command(arguments: Sequence[str], document: dict[str, Any], folder: Path) -> list[str]:
    """Writes the document into `folder`; the command that starts the endpoint with it."""
    path = folder / f"{document['role']}.json"
    write_text(path, json.dumps(document, indent=1))
    return [*arguments, str(path)]


def papers(command: Sequence[str], document: dict[str, Any]) -> dict[Path, bytes]:
    """Return the files for an endpoint: its document, which its command ends with, and certificates."""
    certificate_paths = [
        document[name] for name in ("authority", "certificate", "private_key") if name in document
    ]
    return {Path(name): Path(name).read_bytes() for name in (command[-1], *certificate_paths)}
