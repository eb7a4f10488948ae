"""PostgreSQL's own ways to say where a server is, who one is and how sure the connection has to be."""

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from fecbench import results
from fecbench.results.store import connector, schema
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.records import CampaignInfo, TrialRecord

PASSWORD = "s3cret @:/?%"


def test_trials_that_were_run_again_are_in_no_index_of_keys() -> None:
    import_module("fecbench.results.store.postgresql")  # adds the condition
    for name in ("postgresql", "sqlite"):
        dialect = sa.make_url(f"{name}://").get_dialect()()
        statement = sa.schema.CreateIndex(schema.one_trial_per_key).compile(dialect=dialect)
        assert "superseded" in str(statement).partition(" WHERE ")[2]


@dataclass(frozen=True)
class Server:
    """A server that wants a password, and on TCP has a certificate for localhost."""

    port: int
    authority: Path

    def url(self, host: str = "localhost", **options: object) -> str:
        chosen = {"sslmode": "verify-full", "sslrootcert": self.authority, **options}
        query = "&".join(f"{name}={value}" for name, value in chosen.items())
        return f"postgresql://fecbench@{host}:{self.port}/postgres?{query}"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    extension: x509.ExtensionType,
) -> bytes:
    """A certificate of this name by the authority, as PEM."""
    now = datetime.now(UTC)
    named, authority = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (name, "authority")
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(named)
        .issuer_name(authority)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(extension, critical=False)
        .sign(issuer_key, SHA256())
    )
    return certificate.public_bytes(Encoding.PEM)


def write_certificates(folder: Path) -> None:
    """An authority, and what it vouches for: a server on this machine.

    Their keys are ECDSA's: PostgreSQL binds a password to the hash that signed the certificate, and Ed25519
    has none.
    """
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = signed("authority", authority_key, authority_key, x509.BasicConstraints(True, 0))
    server_name = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    (folder / "authority.pem").write_bytes(authority)
    (folder / "server.pem").write_bytes(signed("localhost", key, authority_key, server_name))
    written = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "server.key").write_bytes(written)


@pytest.fixture(scope="module")
def server(
    serve_postgresql: Callable[..., AbstractContextManager[Path]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("authority")
    write_certificates(folder)
    files = {name: (folder / name).read_bytes() for name in ("server.pem", "server.key")}
    files["password"] = PASSWORD.encode()
    port = free_port()
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c ssl=on"
    options += " -c ssl_cert_file=../server.pem -c ssl_key_file=../server.key"
    authentication = ("-A", "scram-sha-256", "--pwfile", "password")
    with serve_postgresql(*authentication, options=options, files=files):
        yield Server(port, folder / "authority.pem")


@pytest.fixture
def holds_a_trial(
    new_campaign: Callable[[Database], CampaignInfo], make: Callable[[], TrialRecord]
) -> Callable[[str], bool]:
    """Whether a campaign that is written to a URL is read again, by each of the libraries that read."""

    def holds_a_trial(url: str) -> bool:
        with Database.open(url, create=True) as database:
            if not database.campaigns():
                database.record(new_campaign(database).id, make())
        with results.open(url) as opened:
            return list(opened["demo"].trials()["state"]) == ["ok"]

    return holds_a_trial


def test_every_mode_of_tls_works(
    server: Server, holds_a_trial: Callable[[str], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    for mode in ("verify-full", "require", "verify-ca", "prefer"):
        assert holds_a_trial(server.url(sslmode=mode)), mode


def refusal(url: str) -> str:
    with pytest.raises(DatabaseError) as refused:
        Database.open(url)
    assert "s3cret" not in str(refused.value)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_server_of_another_name_or_authority_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert "127.0.0.1" in refusal(server.url(host="127.0.0.1"))
    write_certificates(tmp_path)
    # What OpenSSL says of the other authority's certificate differs from version to version.
    assert "SSL error" in refusal(server.url(sslrootcert=tmp_path / "authority.pem"))


def test_a_wrong_password_is_refused_and_not_shown(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    line = refusal(server.url())
    assert "password authentication failed" in line
    assert "postgresql://fecbench@localhost:" in line


def test_a_server_of_the_tests_has_no_memory_that_a_killed_one_would_leave(postgresql_folder: Path) -> None:
    number = (postgresql_folder / "data" / "postmaster.pid").read_text().splitlines()[0]
    maps = Path("/proc", number, "maps").read_text()
    assert "/pg_dynshmem/" in maps
    assert "/dev/shm/" not in maps


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGPASSFILE", "PGSERVICEFILE", "PGPASSWORD", "PGHOST", "PGUSER", "PGSSLMODE"):
        monkeypatch.delenv(name, raising=False)


def test_a_password_file_is_read(
    server: Server, holds_a_trial: Callable[[str], bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no password supplied" in refusal(server.url())
    file = tmp_path / "pgpass"
    file.write_text("localhost:*:*:fecbench:" + PASSWORD.replace(":", "\\:") + "\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    assert holds_a_trial(server.url())


def test_a_service_file_is_read(
    server: Server, holds_a_trial: Callable[[str], bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "services"
    file.write_text(
        f"[results]\nhost=localhost\nport={server.port}\ndbname=postgres\nuser=fecbench\n"
        f"password={PASSWORD}\nsslmode=verify-full\nsslrootcert={server.authority}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    assert holds_a_trial("postgresql://?service=results")
    with Database.open("postgresql://?service=results") as database:
        assert database.address == "postgresql://?service=results"
    assert "nowhere" in refusal("postgresql://?service=nowhere")


def test_a_lock_of_another_program_is_not_waited_for_without_end(
    postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "LOCK_WAIT_S", 0.2)
    Database.open(postgresql, create=True).close()
    with psycopg.connect(postgresql) as holder, Database.open(postgresql) as database:
        holder.execute("LOCK TABLE campaigns")
        with pytest.raises(DatabaseError, match="lock timeout"):
            database.campaigns()


def test_what_its_library_warns_of_is_no_line_of_a_command() -> None:
    warns = "import logging, results.store.postgresql; logging.getLogger('psycopg').warning('the connection')"
    ended = subprocess.run([sys.executable, "-c", warns], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
