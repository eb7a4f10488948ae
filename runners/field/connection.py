"""The control connection between the two hosts of a field: documents of JSON over TLS, each with its length.

Both ends have a certificate of one authority. A host without one gets no byte of ours.
"""

import json
import os
import re
import socket
import ssl
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from fecbench.errors import Failed
from fecbench.runners.authority import AUTHORITY, CERTIFICATE, KEY
from fecbench.runners.refusal import Refusal

MOST_BYTES = 96 << 20
"""Largest document: the series of an endpoint, as base64."""
CONNECT_S = 10.0
SILENT_S = 25
"""A peer whose packets are not acknowledged for so long is gone."""
_HEADER = struct.Struct("!I")
_FORM = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[\w.-]+):(?P<port>[0-9]+)")


class ConnectionLost(Failed):
    """Raised when the other end is gone, or says what is no document."""


@dataclass(frozen=True)
class Place:
    """Address and port of a server of the field, for TCP and UDP."""

    host: str
    port: int

    @classmethod
    def of(cls, option: str, text: str) -> Self:
        """Return the place that a user gave. Raises Refusal that names the option."""
        match = _FORM.fullmatch(text)
        if match is None or not 0 < int(match["port"]) < 1 << 16:
            raise Refusal(f"{option} {text}: must be HOST:PORT, such as 192.0.2.7:4477")
        return cls(match["host"].strip("[]"), int(match["port"]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def context(folder: Path, *, server: bool) -> ssl.SSLContext:
    """Return the TLS context of one end. Raises Refusal for certificates that cannot be used."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    tls.check_hostname = False  # whoever has a certificate of this authority is one of the two hosts
    tls.verify_mode = ssl.CERT_REQUIRED
    if server:
        tls.num_tickets = 0
    makes = "fecbench field certificates DIR makes such a folder"
    try:
        mode, owner = (folder / KEY).stat().st_mode, (folder / KEY).stat().st_uid
        tls.load_verify_locations(folder / AUTHORITY)
        tls.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    except ssl.SSLError as error:
        raise Refusal(f"--certificates {folder}: are no certificates: {_reason(error)}; {makes}") from None
    except OSError as error:
        raise Refusal(f"--certificates {folder}: cannot be read: {error.strerror}; {makes}") from None
    if stat.S_IMODE(mode) & (0o037 if owner == 0 else 0o077):
        raise Refusal(f"--certificates {folder}: others can read {KEY}: chmod 600 {folder / KEY}")
    return tls


def keep_alive(plain: socket.socket) -> None:
    """Have the kernel find out when the peer is gone, and send what is small at once."""
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, 5),
        (socket.TCP_KEEPINTVL, 5),
        (socket.TCP_KEEPCNT, 4),
        (socket.TCP_USER_TIMEOUT, 1000 * SILENT_S),
        (socket.TCP_NODELAY, 1),
    ):
        plain.setsockopt(socket.IPPROTO_TCP, option, value)


class Connection:
    """One end of it."""

    def __init__(self, secured: ssl.SSLSocket, peer: str) -> None:
        """`peer` is the address of the other end."""
        self.secured, self.peer = secured, peer
        self.own_address: str = secured.getsockname()[0]

    @classmethod
    def to(cls, place: Place, tls: ssl.SSLContext) -> Self:
        """Connect to a server. Raises ConnectionLost, which says in one line why that is impossible."""
        try:
            plain = socket.create_connection((place.host, place.port), CONNECT_S)
        except TimeoutError:
            raise ConnectionLost(f"{place}: no answer within {CONNECT_S:g} s") from None
        except OSError as error:
            why = error.strerror or str(error)
            raise ConnectionLost(
                f"{place}: {why}: nothing listens there, or a firewall is between: fecbench field serve"
                f" --listen {place} must run there"
            ) from None
        keep_alive(plain)
        try:
            peer = plain.getpeername()[0]
            return cls(tls.wrap_socket(plain), peer)
        except ssl.SSLCertVerificationError as error:
            plain.close()
            why = error.verify_message
            raise ConnectionLost(f"{place}: has a certificate of another authority ({why})") from None
        except OSError as error:
            plain.close()
            why = _reason(error) if isinstance(error, ssl.SSLError) else str(error)
            raise ConnectionLost(f"{place}: is no server of fecbench field ({why})") from None

    def fileno(self) -> int:
        return self.secured.fileno()

    def send(self, document: dict[str, Any]) -> None:
        """Send a document. Raises ConnectionLost."""
        content = json.dumps(document).encode()
        try:
            self.secured.sendall(_HEADER.pack(len(content)) + content)
        except OSError as error:
            raise ConnectionLost(f"the connection broke: {_reason(error)}") from None

    def receive(self, limit_s: float | None = None) -> dict[str, Any]:
        """Return the next document. Raises ConnectionLost, also when none has come within the limit."""
        self.secured.settimeout(limit_s)
        try:
            (length,) = _HEADER.unpack(self._read(_HEADER.size))
            if length > MOST_BYTES:
                raise ConnectionLost(f"a document of {length} bytes was announced: at most {MOST_BYTES} may")
            document = json.loads(self._read(length))
        except TimeoutError:
            raise ConnectionLost(f"the other end has said nothing for {limit_s:g} s") from None
        except OSError as error:
            raise ConnectionLost(f"the connection broke: {_reason(error)}") from None
        except (ValueError, RecursionError):
            raise ConnectionLost("the other end sent what is no document") from None
        finally:
            if self.secured.fileno() >= 0:
                self.secured.settimeout(None)
        if not isinstance(document, dict):
            raise ConnectionLost("the other end sent what is no document")
        return document

    def _read(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            part = self.secured.recv(min(1 << 20, length - len(parts)))
            if not part:
                raise ConnectionLost("the other end closed the connection")
            parts += part
        return bytes(parts)

    def close(self) -> None:
        self.secured.close()


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).lower().replace("_", " ")
        return f"our certificate is refused: {reason}" if "alert" in reason else reason
    return error.strerror or (os.strerror(error.errno) if error.errno else str(error))
