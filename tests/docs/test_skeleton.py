"""The skeleton in C is built and run as a reader would: it meets the contract, talks to another stack, and
counts its packets."""

import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.conformance import contract
from fecbench.runners.conformance.loopback import Loopback
from fecbench.runners.conformance.transfers import transfer
from fecbench.runners.implementations import build
from fecbench.runners.implementations.finding import ours
from fecbench.runners.implementations.implementation import Implementation, load
from fecbench.runners.sandbox import isolation
from fecbench.runners.trial import certificates
from fecbench.runners.trial.assignment import SERVER_NAME

HEADERS = {
    "ngtcp2": ["ngtcp2/ngtcp2_crypto_gnutls.h", "gnutls/gnutls.h", "cjson/cJSON.h"],
    "quiche": ["cjson/cJSON.h"],
}
CARGO = REPOSITORY / "quic-impls/quiche"
"""Folder with parts of the second variant, if they were built there: BoringSSL takes minutes."""
SIZE_BYTES = 300_000
MOST = {"packets": 1, "bytes": 1252}
"""Limits of a single packet."""


@pytest.fixture(scope="module", params=HEADERS)
def stack(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if not all(Path("/usr/include", header).is_file() for header in HEADERS[name]):
        pytest.skip("needs what docs/skeleton-c/Makefile names")
    version = Path("/usr/include/ngtcp2/version.h")
    if name == "ngtcp2" and '"0.12.' not in version.read_text():
        pytest.skip("needs ngtcp2 0.12, for which docs/skeleton-c is written")
    if name == "quiche" and not (CARGO / "build/target/release").is_dir():
        pytest.skip("needs quic-impls/quiche: make build-all")
    return name


@pytest.fixture(scope="module")
def sources(stack: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mine") / "skeleton-c"
    shutil.copytree(REPOSITORY / "docs/skeleton-c", folder, ignore=shutil.ignore_patterns("build"))
    if stack == "quiche":
        declared = (folder / "impl.toml").read_text()
        build_command = f'["make", "STACK=quiche", "CARGO_TARGET_DIR={CARGO}/build/target"]'
        (folder / "impl.toml").write_text(declared.replace('["make"]', build_command))
        shutil.copy(CARGO / "Cargo.lock", folder / "quiche")
    return folder


@pytest.fixture(scope="module")
def skeleton(sources: Path) -> Implementation:
    built = load(sources)
    build.build(built)
    return built


@pytest.fixture(scope="module")
def other() -> Implementation:
    noq = ours().find("noq-fec", "tests")
    if noq.missing_programs():
        pytest.skip("needs noq-fec: make build")
    return noq


@pytest.fixture
def loopback(skeleton: Implementation, tmp_path: Path) -> Iterator[Loopback]:
    certificates.write(tmp_path, SERVER_NAME, skeleton.declaration.certificates)
    loopback = Loopback(skeleton, tmp_path, contract._free_port(), None)
    yield loopback
    loopback.end()


def test_it_meets_the_contract_and_has_the_content_of_its_seed(
    skeleton: Implementation, other: Implementation, tmp_path: Path
) -> None:
    if os.geteuid() == 0:
        isolation.require("this test")
    parts = contract.check(skeleton, tmp_path, other)
    assert [part for part in parts if not part.good] == []
    details = {part.part: part.detail for part in parts}
    assert details["content of the seed"] == "noq-fec's client gets the same"
    assert details["certificates"].startswith(
        "the client refuses one that another authority signed and one of"
    )
    assert details["a server of another stack"] == "a download from noq-fec's server succeeds"


def test_content_that_both_ends_make_wrong_alike_is_named(
    sources: Path, other: Implementation, tmp_path: Path
) -> None:
    folder = shutil.copytree(sources, tmp_path / "skeleton-c")
    right = (folder / "content.c").read_text()
    (folder / "content.c").write_text(right.replace("z ^ z >> 27", "z ^ z >> 28"))
    (folder / "build/endpoint").unlink(missing_ok=True)
    wrong = load(folder)
    build.build(wrong)
    files = tmp_path / "files"
    files.mkdir()
    (broken,) = [part for part in contract.check(wrong, files, other) if not part.good]
    assert broken.part == "content of the seed"
    assert broken.detail.startswith("noq-fec's client gets another content than that of content_seed")


@pytest.mark.parametrize("controller", ["reno", "cubic", "bbr", "bbr2"])
def test_both_ends_count_the_same_packets(loopback: Loopback, controller: str) -> None:
    choice = {"congestion_control": controller}
    workload = {"name": "download", "size_bytes": SIZE_BYTES}
    ends = transfer(loopback, loopback, workload, 20, server=choice, client=choice)
    assert ends.problem == ""
    counted = ends.metrics
    for one, peer in itertools.permutations(("client", "server")):
        for unit in ("packets", "bytes"):
            received = counted[peer][f"{unit}_received"]
            # What is sent when the peer has gone is not received.
            assert received <= counted[one][f"{unit}_sent"] <= received + 3 * MOST[unit]


WRONG_NAME = {"ngtcp2": "name in the certificate does not match", "quiche": "Hostname mismatch"}


def test_a_certificate_of_another_name_ends_the_client_with_one_line(
    stack: str, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = {"name": "download", "size_bytes": 1}
    server = loopback.start("server", workload)
    loopback.await_ready(server)
    monkeypatch.setattr("fecbench.runners.trial.assignment.SERVER_NAME", "other.fecbench")
    client = loopback.start("client", workload)
    loopback.await_end(client, 20)
    assert client.exit_code == 1
    assert client.stderr.count("\n") == 1
    assert WRONG_NAME[stack] in client.stderr


KNOWING = {
    "<gnutls/": {"ngtcp2/tls.c"},
    "<ngtcp2/": {"ngtcp2/tls.c", "ngtcp2/connection.c"},  # how it wants a session of GnuTLS is TLS's business
    "<openssl/": {"quiche/tls.c"},
    "<quiche": {"quiche/connection.c"},
}


@pytest.mark.parametrize("header", KNOWING)
def test_the_libraries_of_tls_and_quic_are_known_to_one_file_each(header: str) -> None:
    folder = REPOSITORY / "docs/skeleton-c"
    including = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.[ch]")
        if f"#include {header}" in path.read_text()
    }
    assert including == KNOWING[header]
