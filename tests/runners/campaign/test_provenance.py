"""The provenance of a campaign is collected without a failure."""

from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.campaign import provenance
from fecbench.runners.implementations.finding import ours
from fecbench.runners.implementations.implementation import Implementation, load
from fecbench.runners.probe import sha256_of
from tests.support import revisions
from tests.support.declarations import declare

OURS = {"dropper/build/dropper", "topologies/wire/build/wire", "topologies/clock/build/clock"}
CPUINFO = """processor	: 0
vendor_id	: GenuineIntel
model		: 143
model name	: Intel(R) Xeon(R) Processor @ 2.60GHz
stepping	: 8
"""


def test_the_cpu_is_read_from_proc_cpuinfo() -> None:
    assert provenance.cpu_model("processor\t: 0\n") is None
    assert provenance.cpu_model(CPUINFO) == "Intel(R) Xeon(R) Processor @ 2.60GHz"


def test_every_binary_has_its_hash_by_its_path_in_the_repository() -> None:
    binaries = provenance.collect([ours().find("rquic", "tests")], "wire")["binaries"]
    rquic = "quic-impls/rquic/build/rquic"
    assert set(binaries) == {*OURS, rquic}
    assert binaries[rquic] == sha256_of(REPOSITORY / rquic)


@pytest.fixture
def foreign(tmp_path: Path) -> Implementation:
    """An implementation outside the repository: a system's program that runs a file of its folder."""
    folder = declare(tmp_path / "foreign", "/bin/sh", "server.sh")
    (folder / "server.sh").write_text("exit 0\n")
    return load(folder)


def test_of_an_implementation_outside_the_repository_program_and_file_have_their_hash(
    foreign: Implementation,
) -> None:
    collected = provenance.collect([foreign], "wire")
    server = foreign.folder / "server.sh"
    hashes = {"/bin/sh": sha256_of(Path("/bin/sh")), str(server): sha256_of(server)}
    assert collected["binaries"].items() >= hashes.items()
    assert collected["implementations"]["foreign"] == {
        "folder": str(foreign.folder),
        "revision": {"commit": None, "changed": None},
        "declaration": (foreign.folder / "impl.toml").read_text(),
        "files": hashes,
    }


def test_the_revision_of_a_folder_is_that_of_its_own_repository(foreign: Implementation) -> None:
    folder = foreign.folder
    revisions.git(folder.parent, "init", "--quiet")
    assert provenance.revision_of(folder) == {"commit": None, "changed": None}
    commit = revisions.commit(folder)
    (folder.parent / "elsewhere").write_text("does not change the folder")
    assert provenance.revision_of(folder) == {"commit": commit, "changed": False}
    (folder / "added.sh").write_text("exit 1\n")
    assert provenance.revision_of(folder) == {"commit": commit, "changed": True}
