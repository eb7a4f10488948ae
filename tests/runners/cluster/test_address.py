"""Addresses of schedulers, never without TLS by accident; and the members of a cluster."""

import socket
import ssl
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fecbench.runners import authority
from fecbench.runners.cluster import address, dask_side
from fecbench.runners.cluster.address import Place, call, context, place
from fecbench.runners.refusal import Refusal


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    authority.write(tmp_path / "papers")
    return tmp_path / "papers"


NO_ADDRESSES: list[str] = [
    "",
    "ada",
    "ada:8786",
    "http://ada:1",
    "tls://",
    "tls://ada",
    "tls://ada:0",
    "tls://ada:70000",
    "tls://a b:1",
]


def test_what_is_no_address_is_refused(papers: Path) -> None:
    for given in NO_ADDRESSES:
        with pytest.raises(Refusal, match="must "):
            place(given, papers, insecure=False)


def test_an_address_without_tls_is_refused_unless_it_is_said(papers: Path) -> None:
    for host in ("ada", "127.0.0.1"):
        with pytest.raises(Refusal, match="has no TLS"):
            place(f"tcp://{host}:8786", None, insecure=False)
    assert place("tcp://ada:8786", None, insecure=True).papers is None
    with pytest.raises(Refusal, match="has no TLS: use tls://ada:8786"):
        place("tcp://ada:8786", papers, insecure=True)
    with pytest.raises(Refusal, match="leave it out"):
        place("tls://ada:8786", papers, insecure=True)


def test_tls_needs_certificates_that_nobody_else_reads(papers: Path, tmp_path: Path) -> None:
    known = place("tls://[::1]:8786", papers, insecure=False)
    assert (known.host, known.port) == ("::1", 8786)
    with pytest.raises(Refusal, match="needs --certificates"):
        place("tls://ada:1", None, insecure=False)
    with pytest.raises(Refusal, match=r"authority\.pem cannot be read"):
        place("tls://ada:1", tmp_path, insecure=False)
    (papers / authority.KEY).chmod(0o644)
    with pytest.raises(Refusal, match=r"others can read node\.key"):
        place("tls://ada:1", papers, insecure=False)
    (papers / authority.KEY).chmod(0o600)
    (papers / authority.CERTIFICATE).write_text("no certificate\n")
    with pytest.raises(Refusal, match="are no certificates"):
        place("tls://ada:1", papers, insecure=False)


def test_certificates_are_written_once_and_for_their_owner(papers: Path) -> None:
    assert stat.S_IMODE((papers / authority.KEY).stat().st_mode) == 0o600
    assert stat.S_IMODE(papers.stat().st_mode) == 0o700
    with pytest.raises(Refusal, match="holds files"):
        authority.write(papers)


@contextmanager
def listening(known: Place) -> Iterator[Place]:
    """Somebody who answers there with these papers, and wants some of the same authority."""
    assert known.papers
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_verify_locations(cadata=known.papers.authority)
    server.verify_mode = ssl.CERT_REQUIRED
    server.verify_flags |= ssl.VERIFY_X509_STRICT  # the default of Python 3.13 and later
    context(known.papers)  # they can be read
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            plain, _ = listener.accept()
            with plain:
                try:
                    with server.wrap_socket(plain, server_side=True) as secured:
                        secured.send(b"hello")
                except OSError:
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Place(f"tls://127.0.0.1:{listener.getsockname()[1]}", known.papers)
        finally:
            thread.join()


def with_chain(server: ssl.SSLContext, folder: Path) -> None:
    server.load_cert_chain(folder / authority.CERTIFICATE, folder / authority.KEY)


def test_who_has_certificates_of_another_cluster_is_refused_in_one_line(
    papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.write(tmp_path / "others")
    original = ssl.SSLContext.load_verify_locations

    def load(self: ssl.SSLContext, *arguments: object, **named: object) -> None:
        original(self, *arguments, **named)  # type: ignore[arg-type]
        if self.protocol == ssl.PROTOCOL_TLS_SERVER:
            with_chain(self, papers)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", load)
    own = place("tls://127.0.0.1:1", papers, insecure=False)
    with listening(own) as there:
        call(there)
    foreign = place("tls://127.0.0.1:1", tmp_path / "others", insecure=False)
    with listening(own) as there, pytest.raises(OSError, match="of another authority"):
        call(Place(there.address, foreign.papers))
    # Who trusts the scheduler, and is not trusted.
    assert own.papers and foreign.papers
    mixed = address.Papers(own.papers.authority, foreign.papers.certificate, foreign.papers.key)
    with listening(own) as there, pytest.raises(OSError, match="refuses our certificate"):
        call(Place(there.address, mixed))


def test_nobody_there_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(OSError, match="no scheduler answers: Connection refused"):
        call(Place(f"tcp://127.0.0.1:{port}", None))


def test_without_papers_there_is_no_encryption() -> None:
    assert dask_side.security(None).require_encryption is False
