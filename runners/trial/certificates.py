"""A certificate authority and a server certificate for one campaign, made anew and thrown away with it.

All have the same length, whenever they are made, and so have their signatures: in virtual time the same trial
sends the same bytes again. So the keys are Ed25519's (a signature of ECDSA is 70 to 72 bytes long), dates are
fixed, and serial numbers have 20 bytes.
"""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Go's virtual time begins at the first of these.
NOT_BEFORE, NOT_AFTER = datetime(2000, 1, 1, tzinfo=UTC), datetime(2099, 12, 31, tzinfo=UTC)
INTEROP_NAMES = ("server4", "server", "server6", "server46")
"""Of servers by the interop runner's contract."""
SERIAL_BITS = 159
"""RFC 5280, 4.1.2.2: a positive number of at most 20 bytes."""


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _serial_number() -> int:
    return 1 << SERIAL_BITS - 1 | secrets.randbits(SERIAL_BITS - 1)


def _builder(subject: str, issuer: str, key: Ed25519PublicKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key)
        .serial_number(_serial_number())
        .not_valid_before(NOT_BEFORE)
        .not_valid_after(NOT_AFTER)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def write(folder: Path, server_name: str) -> None:
    """Write authority.pem, server.pem and server.key (readable by us alone) into `folder`; and for servers of
    the interop contract, which have more names, interop.pem and interop.key."""
    authority_key = Ed25519PrivateKey.generate()
    authority = (
        _builder("fecbench authority", "fecbench authority", authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, algorithm=None)
    )
    (folder / "authority.pem").write_bytes(_pem(authority))
    _write_server(folder, "server", [server_name], authority_key)
    _write_server(folder, "interop", [*INTEROP_NAMES, server_name], authority_key)


def _write_server(folder: Path, file: str, names: Sequence[str], authority_key: Ed25519PrivateKey) -> None:
    server_key = Ed25519PrivateKey.generate()
    server = (
        _builder(names[0], "fecbench authority", server_key.public_key())
        .add_extension(x509.SubjectAlternativeName(list(map(x509.DNSName, names))), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, algorithm=None)
    )
    (folder / f"{file}.pem").write_bytes(_pem(server))
    key = folder / f"{file}.key"
    key.touch(mode=0o600)
    key.write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
