"""The catalogue: every design in it can be planned, and those of papers have the papers' numbers."""

from pathlib import Path

import pytest

import designs

CATALOG = Path(designs.__file__).parent / "catalog"
TABLE_I = {  # Networking 2019
    "bandwidth_mbps": (0.3, 10),
    "loss.p": (0.01, 0.08),
    "loss.r": (0.08, 0.5),
    "loss.k": (0.98, 1),
    "loss.h": (0, 0.1),
    "owd_ms": (100, 400),
}


@pytest.mark.parametrize("path", sorted(CATALOG.glob("*.toml")), ids=lambda path: path.stem)
def test_every_design_can_be_planned_and_has_its_files_name(path: Path) -> None:
    design = designs.load(path)
    assert design.name == path.stem
    assert design.plan().points
    assert sum(variant.baseline for variant in design.variants) == 1


@pytest.mark.parametrize(
    ("name", "factors"),
    [
        ("networking2019-uniform", ["bandwidth_mbps", "loss.p", "owd_ms"]),
        ("networking2019-ge", list(TABLE_I)),
    ],
)
def test_the_designs_of_networking_2019_have_its_ranges_sizes_and_repetitions(name: str, factors) -> None:
    design = designs.load(CATALOG / f"{name}.toml")
    assert {key: (factor.min, factor.max) for key, factor in design.factors.items()} == {
        key: TABLE_I[key] for key in factors
    }
    assert len(design.plan().points) == 130
    assert (design.repetitions, design.statistic) == (9, "median")
    sizes = [workload.parameters["size_bytes"] for workload in design.workloads]
    assert sizes == [1000, 10_000, 50_000, 1_000_000]


def test_smoke_is_a_dozen_trials() -> None:
    design = designs.load(CATALOG / "smoke.toml")
    trials = len(design.plan().points) * len(design.workloads) * len(design.variants) * design.repetitions
    assert trials == 12
