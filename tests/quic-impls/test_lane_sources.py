"""Simulators are never built from an old lane. Go reuses a built package as long as its files are the same,
so they have to be links to the lane's own."""

import subprocess
from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.implementations.finding import OWN

QUIC_IMPLS = REPOSITORY / "quic-impls"
LANE = QUIC_IMPLS / "lane"
MODULES = [QUIC_IMPLS / name for name in OWN if (QUIC_IMPLS / name / "go.mod").is_file()]
PACKAGES = sorted({path.parent for module in MODULES for path in module.rglob("lane.[ch]")})


def compiled_from(*sources: Path) -> set[Path]:
    """The sources, and all headers of the repository that they include."""
    rule = subprocess.run(["cc", "-MM", *sources], check=True, capture_output=True, text=True).stdout
    return {Path(word).resolve() for word in rule.split() if word.endswith((".c", ".h"))}


@pytest.mark.parametrize("package", PACKAGES, ids=[str(path.relative_to(QUIC_IMPLS)) for path in PACKAGES])
def test_go_sees_when_any_file_of_the_lane_has_changed(package: Path) -> None:
    linked = {path.resolve() for path in package.iterdir()}
    assert linked >= compiled_from(*(path for path in linked if path.suffix == ".c"))
    if LANE / "capture.c" in linked:
        assert linked >= compiled_from(LANE / "capture.c")
