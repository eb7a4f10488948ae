"""An endpoint that is made of one page alone meets the contract."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fecbench.checkout import REPOSITORY

SMALLEST = Path(__file__).parent / "smallest"
PAGE = REPOSITORY / "quic-impls" / "contract" / "smallest-endpoint.md"


def test_the_smallest_endpoint_meets_the_contract(fecbench_here: Callable[..., Any]) -> None:
    result = fecbench_here("implementations", "--implementations", SMALLEST, "--check", "smallest")
    assert result.returncode == 0, result
    assert "BROKEN" not in result.stdout
    # It speaks no QUIC, so that no other stack can tell whether its content is right.
    last = result.stdout.splitlines()[-1]
    assert last.startswith("smallest meets what was tried of the contract. Not tried: certificates: it works")
    assert "; content of the seed: " in last


def test_the_page_shows_its_declaration() -> None:
    output = PAGE.read_text().partition("```toml\n")[2].partition("```")[0]
    assert tomllib.loads(output) == tomllib.loads((SMALLEST / "smallest" / "impl.toml").read_text())


def test_the_page_fits_two_printed_ones() -> None:
    """A printed page has some 60 lines of 100 characters."""
    lines = sum(-(-max(len(line), 1) // 100) for line in PAGE.read_text().splitlines())
    assert lines <= 2 * 60
