"""The address of a scheduler, and the certificates by which all of a cluster know each other."""

import os
import re
import socket
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from fecbench.runners.authority import AUTHORITY, CERTIFICATE, KEY
from fecbench.runners.refusal import Refusal

FORM = "tls://HOST:PORT"
CONNECT_S = 10.0
_ANSWER_S = 2.0


@dataclass(frozen=True)
class Papers:
    """The certificates of a cluster, in PEM."""

    authority: str
    certificate: str
    key: str


@dataclass(frozen=True)
class Place:
    """The address of a scheduler, and what it takes to reach it."""

    address: str
    papers: Papers | None
    """None: without TLS."""

    @property
    def host(self) -> str:
        return urlsplit(self.address).hostname or ""

    @property
    def port(self) -> int:
        port = urlsplit(self.address).port
        assert port is not None
        return port


def place(address: str, certificates: Path | None, insecure: bool) -> Place:
    """Raises Refusal for what is no address, for one without TLS, and for unreadable certificates."""
    scheme, _, rest = address.partition("://")
    if scheme not in ("tls", "tcp") or not re.fullmatch(r"(\[[0-9a-fA-F:.%\w]+\]|[\w.-]+):[0-9]+", rest):
        raise Refusal(f"{address}: must be an address {FORM}")
    if not 0 < int(rest.rpartition(":")[2]) < 1 << 16:
        raise Refusal(f"{address}: must have a port from 1 to 65535")
    if scheme == "tcp":
        if not insecure:
            raise Refusal(
                f"{address}: has no TLS, so whoever reaches it can run programs on all workers: use {FORM}"
                " with --certificates DIR, or say --insecure on a network that is yours alone"
            )
        if certificates is not None:
            raise Refusal(f"--certificates {certificates}: {address} has no TLS: use tls://{rest}")
        return Place(address, None)
    if insecure:
        raise Refusal(f"--insecure: {address} has TLS: leave it out")
    if certificates is None:
        raise Refusal(f"{address}: needs --certificates DIR, made by fecbench cluster certificates DIR")
    return Place(address, read(certificates))


def read(folder: Path) -> Papers:
    """The certificates in a folder. Raises Refusal for those that cannot be used."""
    texts = []
    for name in (AUTHORITY, CERTIFICATE, KEY):
        try:
            texts.append((folder / name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = (error.strerror if isinstance(error, OSError) else "") or "is no text"
            raise Refusal(
                f"--certificates {folder}: {name} cannot be read: {why}: fecbench cluster certificates DIR"
                " makes such a folder"
            ) from None
    if _is_exposed(folder / KEY):
        raise Refusal(f"--certificates {folder}: others can read {KEY}: chmod 600 {folder / KEY}")
    papers = Papers(*texts)
    try:
        context(papers)
    except ssl.SSLError as error:
        raise Refusal(
            f"--certificates {folder}: are no certificates of a cluster: {_reason(error)}"
        ) from None
    return papers


def _is_exposed(key: Path) -> bool:
    """Whether anybody but its owner can read it; a file of root's its group may, as a mounted secret."""
    status = key.stat()
    return bool(stat.S_IMODE(status.st_mode) & (0o037 if status.st_uid == 0 else 0o077))


def context(papers: Papers) -> ssl.SSLContext:
    """Return the TLS context of a client."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False  # whoever has a certificate of this authority belongs to the cluster
    tls.load_verify_locations(cadata=papers.authority)
    with os.fdopen(os.memfd_create("papers"), "wb") as file:
        file.write((papers.certificate + papers.key).encode())
        file.flush()
        tls.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return tls


def call(place: Place) -> None:
    """Find out whether a scheduler answers there. Raises OSError that says in one line why none does."""
    try:
        with socket.create_connection((place.host, place.port), CONNECT_S) as plain:
            if place.papers is None:
                return
            with context(place.papers).wrap_socket(plain) as secured:
                # TLS 1.3 tells only after the handshake that our certificate was refused.
                secured.settimeout(_ANSWER_S)
                secured.recv(1)
    except TimeoutError as error:
        raise TimeoutError(f"{place.address}: no answer within {CONNECT_S:g} s") from error
    except ssl.SSLCertVerificationError as error:
        why = error.verify_message
        raise OSError(f"{place.address}: its certificate is of another authority ({why})") from error
    except ssl.SSLError as error:
        raise OSError(f"{place.address}: refuses our certificate ({_reason(error)})") from error
    except OSError as error:
        raise OSError(f"{place.address}: no scheduler answers: {error.strerror or error}") from error


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).lower().replace("_", " ")
