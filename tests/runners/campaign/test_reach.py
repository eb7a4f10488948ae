"""The trials that a parameter of a design reaches. A parameter that reaches nobody is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.reach import Reach, check_reach, reach
from tests.support.experiments import experiment_of
from tests.support.refusals import refusal_of

Load = Callable[[str], Experiment]


@pytest.fixture
def load(write_design: Any, tmp_path: Path) -> Load:
    def load(text: str) -> Experiment:
        return experiment_of(write_design(tmp_path, text))

    return load


@pytest.fixture
def refusal(load: Load) -> Callable[[str], str]:
    """The line with which a design is refused."""

    return lambda text: refusal_of(lambda: check_reach(load(text)))


# Three variants of two implementations, of which one sets the option itself.
OPTIONS = """
[plan]
method = "grid"
[factors]
FACTOR = { choices = [CHOICES] }
[constants]
owd_ms = 5
bandwidth_mbps = 10
[[variants]]
label = "rquic"
implementation = "rquic"
[[variants]]
label = "rquic, 10 ms"
implementation = "rquic"
options = { bto_ms = 10 }
[[variants]]
label = "noq"
implementation = "noq-fec"
"""


def options(factor: str, *choices: int) -> str:
    return OPTIONS.replace("FACTOR", factor).replace("CHOICES", ", ".join(map(str, choices)))


def test_an_option_reaches_the_variants_that_have_it_and_do_not_set_it(load: Load) -> None:
    reaches = reach(load(options("option.bto_ms", 0, 25)))
    assert reaches["option.bto_ms"].variants == ["rquic"]
    assert reaches["option.bto_ms"].workloads == ["download-20000"]
    assert reaches["owd_ms"].variants == ["rquic", "rquic, 10 ms", "noq"]


def without(text: str, *labels: str) -> str:
    parts = text.split("[[variants]]")
    remaining = [part for part in parts if not any(f'label = "{label}"' in part for label in labels)]
    return "[[variants]]".join(remaining)


def test_an_option_that_every_variant_sets_or_lacks_is_refused(refusal: Callable[[str], str]) -> None:
    line = refusal(without(options("option.bto_ms", 0, 25), "rquic"))
    assert "factors.option.bto_ms: reaches nobody: " in line
    assert "variant 'rquic, 10 ms' sets it already, and variant 'noq' has no such option" in line
    assert line.endswith("; leave it out, or leave it to a variant that has it")


def test_an_option_that_no_variant_reads_beside_its_others_is_refused(refusal: Callable[[str], str]) -> None:
    """noq-fec's own default is a controller that does not read it."""
    line = refusal(without(options("option.n", 3, 9), "rquic", "rquic, 10 ms"))
    assert "factors.option.n: reaches nobody: it is read only with controller = 'constant' or 'tail'" in line
    assert "which is 'safe' here, in variant 'noq'" in line


def test_an_option_that_no_implementation_has_is_refused(refusal: Callable[[str], str]) -> None:
    line = refusal(without(options("option.bto_ms", 0, 25), "rquic", "rquic, 10 ms"))
    assert "factors.option.bto_ms: is not a parameter: no variant has such an option (noq-fec)" in line
    assert "reaches nobody" in line


WORKLOADS = """
[plan]
method = "grid"
[factors]
workload.size_bytes = { choices = [1000, 2000] }
[constants]
owd_ms = 5
bandwidth_mbps = 10
[[workloads]]
name = "download"
size_bytes = 50_000
[[workloads]]
name = "upload"
size_bytes = [1, 2]
"""


def test_a_parameter_that_every_workload_sets_or_none_has_is_refused(refusal: Callable[[str], str]) -> None:
    line = refusal(WORKLOADS)
    assert "factors.workload.size_bytes: reaches nobody: " in line
    assert "workload 'download-50000', 'upload-1' and 'upload-2' set it already" in line
    constant = WORKLOADS.replace("[[workloads]]", 'workload.graph = "photo-site"\n[[workloads]]', 1)
    line = refusal(constant.replace("50_000", "[1, 2]").replace("size_bytes = [1, 2]", "", 1))
    assert "constants.workload.graph: reaches nobody: " in line
    assert "workload 'download', 'upload-1' and 'upload-2' have no such parameter; leave it out" in line


def test_a_parameter_of_workloads_reaches_those_that_leave_it_open(load: Load) -> None:
    reaches = reach(load(WORKLOADS.replace("size_bytes = 50_000", "")))
    assert reaches["workload.size_bytes"] == Reach([("off", "download"), ("xor, 4/5", "download")], {})


MESSAGES = """
[plan]
method = "grid"
[factors]
workload.deadline_ms = { choices = [50, 100] }
[constants]
bandwidth_mbps = 10
owd_ms = 10
[[workloads]]
name = "messages"
duration_s = 1
delivery = DELIVERY
"""


def test_a_parameter_reaches_the_workloads_that_read_it_beside_its_others_and_is_refused_if_none_does(
    load: Load, refusal: Callable[[str], str]
) -> None:
    line = refusal(MESSAGES.replace("DELIVERY", "'datagram'"))
    assert "factors.workload.deadline_ms: reaches nobody: workload 'messages" in line
    assert "does not read it beside its other parameters" in line
    for delivery in ("'deadline'", "['datagram', 'deadline']"):
        (reached,) = reach(load(MESSAGES.replace("DELIVERY", delivery)))["workload.deadline_ms"].workloads
        assert "deadline" in reached


def test_what_trials_are_made_of_differs_exactly_where_a_parameter_reaches(load: Load) -> None:
    experiment = load(options("option.bto_ms", 0, 25))
    reached = reach(experiment)["option.bto_ms"].variants
    for label in experiment.arms:
        tasks = [experiment.task(TrialKey(label, "download-20000", point, 0), "wire") for point in (0, 1)]
        assert (tasks[0].pairs != tasks[1].pairs) == (label in reached)


SERVED = """
[[variants]]
label = "served"
implementation = "rquic"
options = { bto_ms = 10 }
server = "noq"
[[variants]]
label = "alone"
implementation = "rquic"
options = { bto_ms = 10 }
[[variants]]
label = "noq"
implementation = "noq-fec"
"""


def test_an_option_of_a_server_reaches_the_variants_that_it_serves(load: Load) -> None:
    text = options("option.initial_window", 10, 32).partition("[[variants]]")[0] + SERVED
    assert reach(load(text))["option.initial_window"].variants == ["served", "noq"]


def test_an_option_of_a_workloads_server_reaches_all_variants_of_that_workload(load: Load) -> None:
    text = options("option.initial_window", 10, 32).partition("[[variants]]")[0]
    variants = SERVED.replace('server = "noq"\n', "")
    workloads = """
[[workloads]]
name = "download"
size_bytes = 1000
server = ["noq", "alone"]
"""
    reaches = reach(load(text + workloads + variants))["option.initial_window"]
    by_noq, by_alone = "download-1000-noq", "download-1000-alone"
    assert reaches.trials == [("served", by_noq), ("alone", by_noq), ("noq", by_noq), ("noq", by_alone)]


def test_an_option_of_a_background_reaches_what_competes_with_it(load: Load) -> None:
    head = options("option.initial_window", 10, 32).partition("[[variants]]")[0]
    workloads = """
[[workloads]]
name = "competing"
background = ["noq", "alone"]
size_bytes = 1000
"""
    text = 'topology = "dumbbell"\n' + head + workloads + SERVED.replace('server = "noq"\n', "")
    reaches = reach(load(text))["option.initial_window"]
    assert ("alone", "competing-noq-1000") in reaches.trials
    assert ("alone", "competing-alone-1000") not in reaches.trials


LINKS = """
[plan]
method = "grid"
levels = 2
[factors]
FACTOR = { min = 1, max = 2 }
[constants]
CONSTANTS
"""
PLAIN = {"bandwidth_mbps": 10, "owd_ms": 5}
LOSSES = {"loss.model": "'ge'", "loss.p": 0.1, "loss.r": 0.5}


def link_design(factor: str, **constants: object) -> str:
    lines = [f"{name} = {value}" for name, value in (PLAIN | constants).items() if name != factor]
    return LINKS.replace("FACTOR", factor).replace("CONSTANTS", "\n".join(lines))


INSTEAD: list[tuple[str, dict[str, object], str]] = [
    ("owd_ms", {"internet.owd_ms": 5}, "internet.owd_ms takes its place"),
    ("owd_ms", {"up.owd_ms": 5, "down.owd_ms": 5}, "down.owd_ms and up.owd_ms take its place"),
    ("up.owd_ms", {"internet.up.owd_ms": 5}, "internet.up.owd_ms takes its place"),
    ("up.owd_ms", {"internet.owd_ms": 5}, "internet.owd_ms takes its place"),
    ("queue_bdp", {"internet.queue_packets": 5}, "internet.queue_packets takes its place"),
    ("up.queue_bdp", {"internet.queue_packets": 5}, "internet.queue_packets takes its place"),
]


def test_a_name_that_others_take_the_place_of_everywhere_is_refused(refusal: Callable[[str], str]) -> None:
    for factor, constants, instead in INSTEAD:
        line = refusal(link_design(factor, **constants))
        assert f"factors.{factor}: reaches nobody: {instead} in each direction" in line


DIRECTIONS_OF: list[tuple[str, dict[str, object], list[str]]] = [
    ("owd_ms", {}, ["up", "down"]),
    ("owd_ms", {"up.owd_ms": 5}, ["down"]),
    ("owd_ms", {"internet.down.owd_ms": 5}, ["up"]),
    ("up.owd_ms", {}, ["up"]),
    ("queue_bdp", {"down.queue_packets": 5}, ["up"]),
]


def test_a_name_of_links_reaches_the_directions_that_no_other_name_takes(load: Load) -> None:
    for factor, constants, directions in DIRECTIONS_OF:
        reaches = reach(load(link_design(factor, **constants)))[factor]
        assert reaches.links == {"internet": directions}
        assert reaches.variants == ["off", "xor, 4/5"]


REPLACED: list[tuple[dict[str, object], str]] = [
    (LOSSES | {"internet.loss.model": "'none'"}, "loss.model"),
    (LOSSES | {"internet.loss.p": 0.2}, "loss.p"),
    (LOSSES | {"loss.up.model": "'none'", "loss.down.model": "'uniform'", "loss.down.p": 0.1}, "loss.model"),
]


def test_losses_that_others_take_the_place_of_everywhere_are_refused(refusal: Callable[[str], str]) -> None:
    for constants, name in REPLACED:
        assert f"constants.{name}: reaches nobody: " in refusal(link_design("queue_bdp", **constants))


UNREAD: list[tuple[dict[str, object], str]] = [
    ({"loss.model": "'uniform'", "loss.p": 0.1, "loss.r": 0.5}, "loss.r"),
    ({"loss.model": "'markov'", "loss.p": 0.1, "loss.r": 0.5, "loss.h": 0.5}, "loss.h"),
    ({"loss.p": 0.1}, "loss.p"),
    ({**LOSSES, "internet.loss.up.model": "'uniform'", "internet.loss.up.r": 1}, "internet.loss.up.r"),
]


def test_a_parameter_that_the_loss_model_does_not_read_is_refused(refusal: Callable[[str], str]) -> None:
    for constants, name in UNREAD:
        line = refusal(link_design("queue_bdp", **constants))
        assert f": {name}: reaches nobody: the loss model of internet " in line


LINKED = """
[plan]
method = "grid"
[factors.network.linked]
near = { owd_ms = 5, workload.size_bytes = 1000, up.bandwidth_mbps = 1 }
far = { owd_ms = 50, workload.size_bytes = 2000, up.bandwidth_mbps = 2 }
[constants]
down.bandwidth_mbps = 10
[[workloads]]
name = "download"
[[workloads]]
name = "upload"
size_bytes = 7
"""


def test_a_linked_factor_reaches_all_that_its_parameters_reach_and_each_has_to_reach_somebody(
    load: Load, refusal: Callable[[str], str]
) -> None:
    reaches = reach(load(LINKED))
    assert reaches["workload.size_bytes"].workloads == ["download"]
    assert reaches["up.bandwidth_mbps"].links == {"internet": ["up"]}
    assert reaches["network"].workloads == ["download", "upload-7"]
    assert reaches["network"].links == {"internet": ["up", "down"]}
    line = refusal(LINKED.replace('name = "download"', 'name = "download"\nsize_bytes = 9'))
    assert "factors.network.linked: workload.size_bytes: reaches nobody: " in line


def test_a_design_with_a_factor_that_reaches_nobody_ends_the_command_in_one_line(
    fecbench_here: Any, write_design: Any, tmp_path: Path
) -> None:
    design = write_design(tmp_path, WORKLOADS)
    for words in (["plan", design], ["run", design, "--db", tmp_path / "no.sqlite"]):
        assert "factors.workload.size_bytes: reaches nobody: " in fecbench_here(*words).refusal()
        assert not (tmp_path / "no.sqlite").exists()


def test_plan_says_whom_each_parameter_reaches(fecbench_here: Any, write_design: Any, tmp_path: Path) -> None:
    text = options("option.bto_ms", 0, 25)
    printed = fecbench_here("plan", "--no-measure", write_design(tmp_path, text)).stdout
    rows = {line.split()[0]: line.split() for line in printed.splitlines() if line.strip()}
    assert rows["option.bto_ms"] == ["option.bto_ms", "factors", "rquic", "all", "-"]
    assert rows["owd_ms"] == ["owd_ms", "constants", "all", "all", "all"]
