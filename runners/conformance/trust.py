"""Whether a client verifies the server's certificate: it must refuse one that an unknown authority signed,
and one of another name.

An implementation without TLS has no certificate to verify. Its server works with a certificate file that
has no certificate, and so it is recognised.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fecbench.runners.conformance.loopback import Loopback
from fecbench.runners.conformance.part import Part, part_of
from fecbench.runners.conformance.transfers import transfer
from fecbench.runners.sandbox import handed_over
from fecbench.runners.tasks.task import Role
from fecbench.runners.trial import certificates
from fecbench.runners.trial.assignment import SERVER_NAME

PART = "certificates"
REFUSE_S = 3.0
"""Time for a handshake that a client has to refuse."""
OTHER_NAME = "other.fecbench"
_PAPERS = ("authority.pem", "server.pem", "server.key")


def parts(loopback: Loopback, workload: Mapping[str, Any], folder: Path) -> Iterator[Part]:
    """Yield whether wrong certificates are refused; `folder` takes these certificates."""
    kind = loopback.implementation.declaration.certificates
    stranger, other = folder / "of-another-authority", folder / "of-another-name"
    for place, name in ((stranger, SERVER_NAME), (other, OTHER_NAME)):
        handed_over.make_own_folder(place)
        certificates.write(place, name, kind)
    wrong: dict[str, dict[Role, Path]] = {
        "that another authority signed": {"server": stranger},
        f"of another name than {SERVER_NAME}": {"server": other, "client": other},
    }
    for which, papers in wrong.items():
        if transfer(loopback, loopback, workload, REFUSE_S, papers=papers).problem:
            continue
        if _works_without(loopback, workload, folder / "no-certificates"):
            why = "it works without any: it seems to speak no TLS"
            yield part_of(PART, "", why, tried=False)
            return
        demand = "the client must verify it by authority and server_name"
        yield part_of(PART, f"the client takes a certificate {which}; {demand}", "")
        return
    yield part_of(PART, "", f"the client refuses one {' and one '.join(wrong)}")


def _works_without(loopback: Loopback, workload: Mapping[str, Any], place: Path) -> bool:
    """Whether a transfer succeeds where no file holds a certificate or a key."""
    handed_over.make_own_folder(place)
    for name in _PAPERS:
        (place / name).write_text("no certificate\n", encoding="ascii")
    papers: dict[Role, Path] = {"server": place, "client": place}
    return not transfer(loopback, loopback, workload, REFUSE_S, papers=papers).problem
