"""Linked factors: named combinations of parameters that vary together."""

import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from fecbench import designs
from fecbench.designs import DesignError

# Where it is not the little design.
DESIGN = """
[plan]
method = "grid"

[factors]
loss.p = { choices = [0.0, 0.01] }

[factors.network.linked]
Wi-Fi = { bandwidth_mbps = 20, owd_ms = 12.5, workload.size_bytes = 1000 }
satellite = { owd_ms = 200, bandwidth_mbps = 1.5, "workload.size_bytes" = 500 }

[constants]
loss.model = "uniform"

[[workloads]]
name = "download"
"""


@pytest.fixture
def write(write_design: Callable[..., Path], tmp_path: Path) -> Callable[[str], Path]:
    return partial(write_design, tmp_path)


def test_every_point_has_exactly_the_parameters_of_the_combination_that_it_names(write) -> None:
    design = designs.load(write(DESIGN))
    tables = {
        "Wi-Fi": {"bandwidth_mbps": 20, "owd_ms": 12.5, "workload.size_bytes": 1000},
        "satellite": {"bandwidth_mbps": 1.5, "owd_ms": 200, "workload.size_bytes": 500},
    }
    points = design.plan().points
    assert [(point["loss.p"], point["network"]) for point in points] == [
        (loss, network) for loss in (0.0, 0.01) for network in tables
    ]
    for point in points:
        assert point == {
            "loss.p": point["loss.p"],
            "network": point["network"],
            **tables[str(point["network"])],
        }
    assert design.parameters == {"loss.p", "loss.model", *tables["Wi-Fi"]}


METHODS = ['"sobol"\npoints = 4', '"lhs"\npoints = 4', '"wsp"\npoints = 2\ncandidates = 40', '"univariate"']


def test_every_method_plans_combinations(write) -> None:
    for method in METHODS:
        # A second range keeps the points of the sequences apart.
        text = DESIGN.replace('"grid"', method)
        if method != '"univariate"':
            text = text.replace("{ choices = [0.0, 0.01] }", "{ min = 0, max = 0.05 }")
        for point in designs.load(write(text)).plan().points:
            assert point["owd_ms"] == {"Wi-Fi": 12.5, "satellite": 200}[str(point["network"])]


def test_a_listed_point_names_a_combination(write) -> None:
    listed = '"list"\npoints = [{ loss.p = 0.01, network = "satellite" }]'
    plan = designs.load(write(DESIGN.replace('"grid"', listed))).plan()
    assert [(point["network"], point["bandwidth_mbps"]) for point in plan.points] == [("satellite", 1.5)]
    unknown = DESIGN.replace('"grid"', listed.replace("satellite", "moon"))
    with pytest.raises(DesignError, match=r"points\[0\].network = 'moon': must be one of 'Wi-Fi', 'sat"):
        designs.load(write(unknown))


SECOND = "[factors.second.linked]\nx = { owd_ms = 1 }\ny = { owd_ms = 2 }"
REFUSED = [
    ("owd_ms = 200, ", "", "factors.network.linked.satellite: must have the parameters of linked.Wi-Fi"),
    ("owd_ms = 200, ", "owd_ms = 200, x = 1, ", "factors.network.linked.satellite: must have the parameters"),
    ("owd_ms = 200", "owd_ms = -2", "factors.network.linked.satellite.owd_ms = -2: must be a number, 0 or"),
    ("owd_ms = 200", "owd_ms = [200]", "linked.satellite.owd_ms: must be a number, a string"),
    ("size_bytes = 1000", "size_bytes = 0.5", "linked.Wi-Fi.workload.size_bytes = 0.5: must be"),
    ("[constants]", "[constants]\nowd_ms = 5", "factors.network.linked: owd_ms is a constant too"),
    ("loss.p =", "owd_ms = { min = 1, max = 2 }\nloss.p =", "factors.network.linked: owd_ms is a factor too"),
    ("[constants]", f"{SECOND}\n[constants]", "factors.second.linked: owd_ms is in factors.network too"),
    ("satellite = {", '"two\\nlines" = {', "factors.network.linked: 'two\\nlines' must be one line of text"),
    ('method = "grid"', 'method = "grid"\nlevels.network = 3', "plan.levels.network: has no range"),
]


def test_a_wrong_combination_is_refused_in_one_line(write) -> None:
    for right, wrong, line in REFUSED:
        assert right in DESIGN
        text = DESIGN.replace(right, wrong, 1)
        tomllib.loads(text)
        with pytest.raises(DesignError) as refusal:
            designs.load(write(text))
        assert line in str(refusal.value)
        assert "\n" not in str(refusal.value)


NO_COMBINATIONS = ["{}", "{ a = { owd_ms = 1 } }", "{ a = {}, b = {} }", "3", "{ a = 1, b = 2 }"]


def test_fewer_than_two_tables_and_what_is_no_table_are_refused(write) -> None:
    for table in NO_COMBINATIONS:
        head = DESIGN.partition("[factors.network.linked]")
        text = head[0] + f"network.linked = {table}\n[constants]" + head[2].partition("[constants]")[2]
        with pytest.raises(DesignError, match=r"factors\.network\.linked"):
            designs.load(write(text))
