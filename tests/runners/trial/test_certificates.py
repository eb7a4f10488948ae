"""Certificates: whenever they are made, the same number of bytes is sent, and both ends take them."""

import ssl
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding

from fecbench.runners.tasks.task import EndpointTask, PairTask
from fecbench.runners.trial import certificates, signed_certificates
from fecbench.runners.trial.certificates import KINDS, Kind
from fecbench.runners.trial.signed_certificates import NOT_AFTER, NOT_BEFORE

NAME = "server.fecbench"
GENERATIONS = {"ed25519": 1000, "p256": 300}
"""Number of certificates to make: without care, every 256th signature would have a byte less."""


def lengths(folder: Path, kind: Kind) -> tuple[int, ...]:
    certificates.write(folder, NAME, kind)
    return tuple(
        len(ssl.PEM_cert_to_DER_cert((folder / name).read_text())) for name in ("authority.pem", "server.pem")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_have_the_same_length_however_often_they_are_made(tmp_path: Path, kind: Kind) -> None:
    assert len({lengths(tmp_path, kind) for _ in range(GENERATIONS[kind])}) == 1


def test_those_of_ecdsa_would_not_if_they_were_signed_once() -> None:
    def length() -> int:
        key = ec.generate_private_key(ec.SECP256R1())
        name = signed_certificates._name(NAME)
        number = signed_certificates._serial_number()
        builder = x509.CertificateBuilder(name, name, key.public_key(), number)
        dated = builder.not_valid_before(NOT_BEFORE).not_valid_after(NOT_AFTER)
        return len(dated.sign(key, hashes.SHA256()).public_bytes(Encoding.DER))

    assert len({length() for _ in range(200)}) > 1


def test_they_are_valid_from_the_day_on_which_virtual_time_begins(tmp_path: Path) -> None:
    certificates.write(tmp_path, NAME)
    for name in ("authority.pem", "server.pem"):
        certificate = x509.load_pem_x509_certificate((tmp_path / name).read_bytes())
        assert certificate.not_valid_before_utc == datetime(2000, 1, 1, tzinfo=UTC)
        assert certificate.not_valid_after_utc > datetime(2090, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_trusts_the_authority_takes_the_server(tmp_path: Path, kind: Kind) -> None:
    """TLS of this Python, over buffers: client and server are not ours."""
    certificates.write(tmp_path, NAME, kind)
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    client_context = ssl.create_default_context(cafile=str(tmp_path / "authority.pem"))
    client_context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as the contract says, for Python 3.13 and later
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(down, up, server_hostname=NAME)
    server = server_context.wrap_bio(up, down, server_side=True)
    for _ in range(3):
        for end in (client, server):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.getpeercert()["subjectAltName"] == (("DNS", NAME),)  # type: ignore[index]


def test_each_kind_has_keys_of_its_own(tmp_path: Path) -> None:
    certificates.write_each(tmp_path, NAME)
    kinds = {"ed25519": Ed25519PublicKey, "p256": ec.EllipticCurvePublicKey}
    for kind, name in product(KINDS, ("authority.pem", "server.pem", "interop.pem")):
        written = (certificates.of_kind(tmp_path, kind) / name).read_bytes()
        assert isinstance(x509.load_pem_x509_certificate(written).public_key(), kinds[kind])


def test_a_pair_gets_ed25519_only_where_both_ends_take_it() -> None:
    for kinds in product(KINDS, KINDS):
        ends = [EndpointTask(implementation="any", options={}, certificates=kind) for kind in kinds]
        pair = PairTask(client=ends[0], server=ends[1], workload={})
        assert (pair.certificates == "ed25519") == (set(kinds) == {"ed25519"})


def test_a_recorded_task_says_nothing_of_the_certificates_that_all_had_then() -> None:
    task = EndpointTask(implementation="any", options={}, certificates="ed25519")
    assert "certificates" not in task.model_dump(mode="json")
    assert EndpointTask(implementation="any", options={}) == task


def test_a_serial_number_has_its_highest_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    for bits in (lambda _: 0, lambda count: (1 << count) - 1):
        monkeypatch.setattr("secrets.randbits", bits)
        assert signed_certificates._serial_number().bit_length() == signed_certificates.SERIAL_BITS
