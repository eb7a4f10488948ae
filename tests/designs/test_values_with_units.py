"""Values of a design file with their units."""

import tomllib

import pytest

from fecbench.designs.design import Design, parse
from fecbench.designs.error import DesignError

PLAIN = """
name = "plain"
title = "Does it help?"
seed = 1
topology = "single-path"
repetitions = 3
margin = 0.03
timeout_s = 60

[plan]
method = "lhs"
points = 4

[factors]
rtt_ms = { min = 20, max = 200, scale = "log" }
loss.rate = { choices = [0.005, 0.05] }
network.linked.near = { bandwidth_mbps = 20, queue_bytes = 64_000 }
network.linked.far = { bandwidth_mbps = 0.8, queue_bytes = 2_048 }

[constants]
loss.model = "uniform"
outage_s = [0.5, 2]

[[workloads]]
name = "download"
size_bytes = [50_000, 1_048_576]

[[variants]]
label = "only"
implementation = "rquic"
"""
WRITTEN = {
    "margin = 0.03": 'margin = "3%"',
    "timeout_s = 60": 'timeout_s = "1min"',
    "{ min = 20, max = 200,": '{ min = "20ms", max = "0.2s",',
    "[0.005, 0.05]": '["0.5%", "5%"]',
    "bandwidth_mbps = 20": 'bandwidth_mbps = "20Mbit/s"',
    "bandwidth_mbps = 0.8": 'bandwidth_mbps = "800kbit/s"',
    "queue_bytes = 64_000": 'queue_bytes = "64kB"',
    "queue_bytes = 2_048": 'queue_bytes = "2KiB"',
    "[0.5, 2]": '["500ms", "2s"]',
    "[50_000, 1_048_576]": '["50kB", "1MiB"]',
}


def with_units(*names: str) -> str:
    text = PLAIN
    for plain in names or WRITTEN:
        assert plain in text
        text = text.replace(plain, WRITTEN[plain])
    return text


def parsed(text: str) -> Design:
    return parse(text, "some.toml")


def test_values_with_units_make_the_design_that_plain_numbers_make() -> None:
    design, plain = parsed(with_units()), parsed(PLAIN)
    assert design.model_dump() == plain.model_dump()
    assert tomllib.loads(design.text) == tomllib.loads(PLAIN)
    assert design.plan().points == plain.plan().points
    assert [workload.label for workload in design.workloads] == ["download-50000", "download-1048576"]
    for name in WRITTEN:
        assert parsed(with_units(name)).model_dump() == plain.model_dump(), name


def test_points_of_a_list_may_have_units() -> None:
    plan = '[plan]\nmethod = "lhs"\npoints = 4\n'
    listed = """[plan]
method = "list"
points = [{ rtt_ms = "0.1s", loss.rate = "5%", network = "near" }]
"""
    assert plan.strip() in PLAIN
    (point,) = parsed(PLAIN.replace(plan, listed)).plan().points
    assert (point["rtt_ms"], point["loss.rate"]) == (100, 0.05)


@pytest.mark.parametrize(
    ("plain", "written", "refusal"),
    [
        ("timeout_s = 60", 'timeout_s = "60kB"', "timeout_s = '60kB': must be a time such as 2s or 500ms"),
        ("min = 20,", 'min = "20kB",', "factors.rtt_ms = '20kB': must be a time such as 80ms or 0.08s"),
        ("0.05]", '"5Mbit/s"]', "factors.loss.rate = '5Mbit/s': must be a share such as 3% or 0.03"),
        ("64_000", '"64ms"', "factors.network.linked.near.queue_bytes = '64ms': must be a size"),
        ("50_000,", '"1.5B",', "workloads[0].size_bytes = 1.5: must be a whole number"),
        ("50_000,", '"50000",', "workloads[0].size_bytes = '50000': must be a whole number"),
        ("margin = 0.03", 'margin = "0.03"', "margin = '0.03': must be a valid number"),
    ],
)
def test_a_unit_of_another_kind_is_refused_with_its_key(plain: str, written: str, refusal: str) -> None:
    with pytest.raises(DesignError) as refusal_info:
        parsed(PLAIN.replace(plain, written))
    assert str(refusal_info.value).startswith(f"some.toml: {refusal}")
