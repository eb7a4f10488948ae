"""A certificate authority and a server certificate for one campaign, made anew and thrown away with it.

There are two kinds, by the keys: Ed25519's and P-256's (ECDSA).
"""

from pathlib import Path
from typing import Literal, get_args

from fecbench.runners.sandbox import handed_over

FOR_ALL = ("authority.pem", "server.pem", "interop.pem")
"""Files that each of two ends may read."""
INTEROP_NAMES = ("server4", "server", "server6", "server46")
"""Names of servers in the interop runner's contract."""

Kind = Literal["p256", "ed25519"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def write_each(folder: Path, server_name: str) -> None:
    """Write certificates of each kind, as `write` does, into a folder of its own: `of_kind`."""
    for kind in KINDS:
        handed_over.make_folder(of_kind(folder, kind))
        write(of_kind(folder, kind), server_name, kind)


def of_kind(folder: Path, kind: Kind) -> Path:
    """The folder of certificates of this kind that `write_each` makes."""
    return folder / kind


def write(folder: Path, server_name: str, kind: Kind = "ed25519") -> None:
    """Write authority.pem, server.pem and server.key into `folder`; and for servers of the interop contract,
    which have more names, interop.pem and interop.key. Keys are for us alone, all else is for everybody."""
    from fecbench.runners.trial import signed_certificates  # a trial's process reads them, and makes none

    signed_certificates.write(folder, server_name, kind)
