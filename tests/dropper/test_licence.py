"""The licence in the built BPF programs is the one in the README."""

import re
import subprocess

from fecbench.checkout import REPOSITORY
from fecbench.dropper.command import COMMAND
from fecbench.topologies.programs import CLOCK, WIRE

LICENCE = "Dual BSD/GPL"
SPDX = "SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only"
SOURCES = ("dropper/dropper.bpf.c", "topologies/clock/clock.bpf.c", "topologies/wire/arrivals.c")


def test_a_bpf_program_says_its_licence_to_the_kernel() -> None:
    for program in (COMMAND.with_name("dropper.bpf.o"), CLOCK.with_name("clock.bpf.o")):
        section = ["readelf", "--string-dump=license", program]
        dumped = subprocess.run(section, check=True, capture_output=True, text=True).stdout
        assert re.findall(r"\[ *0\] +(.*)", dumped) == [LICENCE], program


def test_the_wire_says_the_licence_of_what_it_loads() -> None:
    strings = WIRE.read_bytes().split(b"\0")
    assert LICENCE.encode() in strings
    assert b"GPL" not in strings


def test_each_source_of_a_bpf_program_names_the_licences_whose_texts_come_along() -> None:
    for name in SOURCES:
        first, *_ = (REPOSITORY / name).read_text().splitlines()
        assert SPDX in first
        assert f"`{name}`" in (REPOSITORY / "README.md").read_text()
    texts = {path.stem for path in (REPOSITORY / "LICENSES").iterdir()}
    assert texts == {"BSD-2-Clause", "GPL-2.0-only"}


def test_every_source_of_a_bpf_program_is_one_of_these() -> None:
    sources = [*REPOSITORY.glob("dropper/*.c"), *REPOSITORY.glob("topologies/*/*.c")]
    loading = [path for path in sources if re.search(r'SEC\("license"\)|\.license =', path.read_text())]
    assert sorted(str(path.relative_to(REPOSITORY)) for path in loading) == sorted(SOURCES)
