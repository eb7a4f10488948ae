"""Certificates by which hosts know each other: an authority of its own, and one certificate for all of them.

The authority's key is never written, so nobody can be let in later: the folder is what lets in.
"""

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fecbench.runners.refusal import Refusal

AUTHORITY, CERTIFICATE, KEY = "authority.pem", "node.pem", "node.key"
"""The files of a folder of certificates."""
DAYS = 730
_MARGIN = timedelta(hours=1)
"""Clocks of hosts may differ by so much."""


def write(folder: Path) -> datetime:
    """Write them into a new or empty folder; until when they serve. Raises Refusal for any other."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Refusal(f"{folder}: cannot be made a folder: {error.strerror}") from None
    if any(folder.iterdir()):
        raise Refusal(f"{folder}: holds files: give the name of a new folder")
    begin = datetime.now(UTC) - _MARGIN
    end = begin + timedelta(days=DAYS)
    authority_key, node_key = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    # A name of its own tells one authority from another.
    name = f"fecbench hosts {secrets.token_hex(4)}"
    # Python 3.13 and later ask for a usage and for key identifiers.
    unused = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment")
    of_keys = ("key_agreement", "crl_sign", "encipher_only", "decipher_only")
    usage = x509.KeyUsage(key_cert_sign=True, **dict.fromkeys((*unused, *of_keys), False))
    authority = (
        _builder(name, name, authority_key.public_key(), begin, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, algorithm=None)
    )
    both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    node = (
        _builder("node", name, node_key.public_key(), begin, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(both, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, algorithm=None)
    )
    key = node_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / KEY).touch(mode=0o600)
    for file, content in ((AUTHORITY, _pem(authority)), (CERTIFICATE, _pem(node)), (KEY, key)):
        (folder / file).write_bytes(content)
    return end


def _builder(
    subject: str, issuer: str, key: Ed25519PublicKey, begin: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
