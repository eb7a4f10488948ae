"""The certificates and keys of one campaign, made for each kind of `certificates`.

All certificates of a kind have the same length, whenever they are made: dates are fixed, serial numbers have
20 bytes, and ECDSA signs again until its signature, of 70 to 72 bytes, has 71. In virtual time the same trial
sends the same bytes again, so there the keys are Ed25519's: what a server signs in a handshake would vary in
length, too. Clients on BoringSSL refuse those unless they are told not to, so emulated endpoints get P-256's,
but for those that declare otherwise.
"""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fecbench.runners.sandbox import handed_over
from fecbench.runners.trial.certificates import INTEROP_NAMES, Kind
from fecbench.whole_files import naming

# Go's virtual time begins at the first of these.
NOT_BEFORE, NOT_AFTER = datetime(2000, 1, 1, tzinfo=UTC), datetime(2099, 12, 31, tzinfo=UTC)
SERIAL_BITS = 159
"""RFC 5280, 4.1.2.2: a positive number of at most 20 bytes."""

_Key = Ed25519PrivateKey | ec.EllipticCurvePrivateKey
_SIGNATURE_BYTES = 71
"""Length of an ECDSA signature with P-256 in DER: half of all signatures have this one."""


def _new_key(kind: Kind) -> _Key:
    return Ed25519PrivateKey.generate() if kind == "ed25519" else ec.generate_private_key(ec.SECP256R1())


def _signed(builder: x509.CertificateBuilder, key: _Key) -> x509.Certificate:
    if isinstance(key, Ed25519PrivateKey):
        return builder.sign(key, algorithm=None)
    certificate = builder.sign(key, hashes.SHA256())
    while len(certificate.signature) != _SIGNATURE_BYTES:
        certificate = builder.sign(key, hashes.SHA256())
    return certificate


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _serial_number() -> int:
    return 1 << SERIAL_BITS - 1 | secrets.randbits(SERIAL_BITS - 1)


def _builder(subject: str, issuer: str, key: _Key) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(_serial_number())
        .not_valid_before(NOT_BEFORE)
        .not_valid_after(NOT_AFTER)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def write(folder: Path, server_name: str, kind: Kind) -> None:
    """Write the files of `certificates.write`."""
    authority_key = _new_key(kind)
    authority = _builder("fecbench authority", "fecbench authority", authority_key).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    handed_over.write_file(folder / "authority.pem", _pem(_signed(authority, authority_key)))
    _write_server(folder, "server", [server_name], authority_key, kind)
    _write_server(folder, "interop", [*INTEROP_NAMES, server_name], authority_key, kind)


def _write_server(folder: Path, file: str, names: Sequence[str], authority_key: _Key, kind: Kind) -> None:
    server_key = _new_key(kind)
    server = (
        _builder(names[0], "fecbench authority", server_key)
        .add_extension(x509.SubjectAlternativeName(list(map(x509.DNSName, names))), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    handed_over.write_file(folder / f"{file}.pem", _pem(_signed(server, authority_key)))
    key = folder / f"{file}.key"
    key.touch(mode=0o600)
    pem = server_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with naming(key):
        key.write_bytes(pem)
