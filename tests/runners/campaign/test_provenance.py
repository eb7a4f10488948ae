"""What a campaign was run with is found out without ever failing, and gives no secret away."""

import pytest

from runners.campaign import provenance
from runners.implementations.finding import ours

CPUINFO = """processor	: 0
vendor_id	: GenuineIntel
model		: 143
model name	: Intel(R) Xeon(R) Processor @ 2.60GHz
stepping	: 8
"""


def test_a_machine_without_a_name_of_its_cpu_has_none() -> None:
    assert provenance.cpu_model("processor\t: 0\n") is None


def test_the_cpu_is_read_from_proc_cpuinfo() -> None:
    assert provenance.cpu_model(CPUINFO) == "Intel(R) Xeon(R) Processor @ 2.60GHz"


@pytest.mark.parametrize(
    ("argument", "kept"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("--db=postgresql://me:se:cr/et@host/db", "--db=postgresql://me:***@host/db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("results.sqlite", "results.sqlite"),
    ],
)
def test_passwords_are_not_kept(argument: str, kept: str) -> None:
    assert provenance.without_password(argument) == kept


def test_every_binary_has_its_hash() -> None:
    hashes = provenance.collect([ours().find("rquic", "tests")], "wire")["binaries"]
    assert {"dropper/build/dropper", "topologies/wire/build/wire", "quic-impls/rquic/build/rquic"} <= set(
        hashes
    )
