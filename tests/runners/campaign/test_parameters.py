"""From a design's names to what a trial needs: parameters of workloads that points give."""

from pathlib import Path
from typing import Any

import pytest

import designs
from runners.campaign import parameters
from runners.implementations.implementation import Implementation
from runners.refusal import Refusal

# Where it is not the little design.
DESIGN = """
[plan]
method = "grid"

[factors.network.linked]
Wi-Fi = { bandwidth_mbps = 20, owd_ms = 12.5, workload.size_bytes = 10000 }
satellite = { bandwidth_mbps = 1.5, owd_ms = 200, workload.size_bytes = 5000 }

[constants]

[[workloads]]
name = "download"

[[workloads]]
name = "upload"
size_bytes = 7
"""


@pytest.fixture
def load(write_design: Any, tmp_path: Path):
    def load(text: str) -> designs.Design:
        return designs.load(write_design(tmp_path, text))

    return load


def test_a_point_gives_a_workload_the_parameters_that_it_does_not_set_itself(load) -> None:
    design = load(DESIGN)
    parameters.check_names(design)
    points = design.plan().points
    parameters.check_values(design, points)
    sizes = [
        [parameters.workload_of(design, label, point)["size_bytes"] for label in ("download", "upload-7")]
        for point in points
    ]
    assert sizes == [[10000, 7], [5000, 7]]


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("workload.size_bytes", "workload.size", "did you mean 'workload.size_bytes'"),
        ("workload.size_bytes", "workload_size", "workload_size: is not a parameter"),
        ("= 5000", "= -1", "size_bytes = -1"),
        ("[factors.network.linked]", "[factors.owd_ms.linked]", "factors.owd_ms"),
        ("[factors.network.linked]", "[factors.repetition.linked]", "factors.repetition: the name is taken"),
        ("workload.size_bytes", "queue_bytes", "workload download: size_bytes is missing"),
        ("owd_ms", "loss.q", "loss.q: is not a parameter"),
    ],
)
def test_what_a_linked_factor_may_not_say_is_refused(load, right: str, wrong: str, said: str) -> None:
    assert right in DESIGN
    with pytest.raises((Refusal, designs.DesignError)) as refused:
        design = load(DESIGN.replace(right, wrong))
        parameters.check_names(design)
        parameters.check_values(design, design.plan().points)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


CHECKED = """
[plan]
method = "grid"
levels = 3
[factors]
loss.p = { min = 0, max = 0.1 }
option.generation_max = { choices = [8, 9] }
[constants]
bandwidth_mbps = 10
owd_ms = 5
loss.model = "uniform"
option.code_rate = 0.5
[[variants]]
label = "short"
implementation = "rquic"
[[variants]]
label = "long"
implementation = "rquic"
options = { generation_max = 20, http = "h3" }
"""


def test_each_different_set_of_options_of_a_variant_is_asked_about_once(
    load, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def ask(_: Implementation, chosen: dict[str, Any], where: str) -> None:
        asked.append((where.rpartition(": ")[2], chosen))

    monkeypatch.setattr(Implementation, "missing_programs", lambda _: [])
    monkeypatch.setattr(Implementation, "check_together", ask)
    design = load(CHECKED)
    points = design.plan().points
    assert len(points) == 6
    assert parameters.check_combinations(design, points) == set()
    assert asked == [
        ("variant 'short'", {"code_rate": 0.5, "generation_max": 8}),
        ("variant 'short'", {"code_rate": 0.5, "generation_max": 9}),
        ("variant 'long'", {"code_rate": 0.5, "generation_max": 20, "http": "h3"}),
    ]


def test_what_is_not_built_is_not_asked(load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Implementation, "missing_programs", Implementation.programs)
    monkeypatch.setattr(Implementation, "check_together", None)
    design = load(CHECKED)
    assert parameters.check_combinations(design, design.plan().points) == {"rquic"}


OPTIONS = """
[factors]
option.bto_ms = { choices = [0, 25] }
[constants]
bandwidth_mbps = 10
owd_ms = 5
[[variants]]
label = "only"
implementation = "IMPLEMENTATION"
[plan]
method = "grid"
"""


def test_only_options_of_implementations_that_the_design_uses_are_its_parameters(load) -> None:
    parameters.check_names(load(OPTIONS.replace("IMPLEMENTATION", "rquic")))
    with pytest.raises(Refusal, match=r"factors\.option\.bto_ms: is not a parameter"):
        parameters.check_names(load(OPTIONS.replace("IMPLEMENTATION", "noq-fec")))


def test_a_broken_implementation_disturbs_only_designs_that_use_it(
    load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "implementations" / "broken"
    broken.mkdir(parents=True)
    (broken / "impl.toml").write_text("name = 3\n")
    monkeypatch.setenv("FECBENCH_IMPLEMENTATIONS", str(broken.parent))
    parameters.check_names(load(OPTIONS.replace("IMPLEMENTATION", "rquic")))
    with pytest.raises(Refusal, match=rf"variant 'only': {broken}/impl\.toml: name = 3"):
        parameters.check_names(load(OPTIONS.replace("IMPLEMENTATION", "broken")))
