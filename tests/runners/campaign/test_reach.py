"""The trials that a parameter of a design reaches. A parameter that reaches nobody is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.reach import Reach, check_reach, reach
from tests.support.designs import Table, between, one_of, variant, workload
from tests.support.experiments import experiment_of
from tests.support.refusals import refusal_of

Load = Callable[..., Experiment]
Refusal = Callable[..., str]


@pytest.fixture
def load(write_design: Any, tmp_path: Path) -> Load:
    def load(**keys: object) -> Experiment:
        return experiment_of(write_design(tmp_path, **keys))

    return load


@pytest.fixture
def refusal(load: Load) -> Refusal:
    """The line with which a design is refused."""

    return lambda **keys: refusal_of(lambda: check_reach(load(**keys)))


GRID: Table = {"plan": {"method": "grid"}}
PLAIN: Table = {"owd_ms": 5, "bandwidth_mbps": 10}
VARIANTS = [variant("rquic", "rquic"), variant("rquic, 10 ms", "rquic", bto_ms=10), variant("noq")]
"""Three variants of two implementations, of which one sets the option itself."""


def options(factor: str, *choices: int, variants: list[Table] = VARIANTS, **keys: object) -> Table:
    factors = {factor: one_of(*choices)}
    return {**GRID, "factors": factors, "constants": PLAIN, "variants": variants, **keys}


def test_an_option_reaches_the_variants_that_have_it_and_do_not_set_it(load: Load) -> None:
    reaches = reach(load(**options("option.bto_ms", 0, 25)))
    assert reaches["option.bto_ms"].variants == ["rquic"]
    assert reaches["option.bto_ms"].workloads == ["download-20000"]
    assert reaches["owd_ms"].variants == ["rquic", "rquic, 10 ms", "noq"]


def test_an_option_that_every_variant_sets_or_lacks_is_refused(refusal: Refusal) -> None:
    line = refusal(**options("option.bto_ms", 0, 25, variants=VARIANTS[1:]))
    assert "factors.option.bto_ms: reaches nobody: " in line
    assert "variant 'rquic, 10 ms' sets it already, and variant 'noq' has no such option" in line
    assert line.endswith("; leave it out, or leave it to a variant that has it")


def test_an_option_that_no_variant_reads_beside_its_others_is_refused(refusal: Refusal) -> None:
    """noq-fec's own default is a controller that does not read it."""
    line = refusal(**options("option.n", 3, 9, variants=VARIANTS[2:]))
    assert "factors.option.n: reaches nobody: it is read only with controller = 'constant' or 'tail'" in line
    assert "which is 'safe' here, in variant 'noq'" in line


def test_an_option_that_no_implementation_has_is_refused(refusal: Refusal) -> None:
    line = refusal(**options("option.bto_ms", 0, 25, variants=VARIANTS[2:]))
    assert "factors.option.bto_ms: is not a parameter: no variant has such an option (noq-fec)" in line
    assert "reaches nobody" in line


UPLOADS = workload("upload", size_bytes=[1, 2])
WORKLOADS: Table = {
    **GRID,
    "factors": {"workload.size_bytes": one_of(1000, 2000)},
    "constants": PLAIN,
    "workloads": [workload(size_bytes=50_000), UPLOADS],
}
OPEN = WORKLOADS | {"workloads": [workload(), UPLOADS]}
"""The download leaves its size open."""


def test_a_parameter_that_every_workload_sets_or_none_has_is_refused(refusal: Refusal) -> None:
    line = refusal(**WORKLOADS)
    assert "factors.workload.size_bytes: reaches nobody: " in line
    assert "workload 'download-50000', 'upload-1' and 'upload-2' set it already" in line
    line = refusal(**OPEN | {"constants": PLAIN | {"workload.graph": "photo-site"}})
    assert "constants.workload.graph: reaches nobody: " in line
    assert "workload 'download', 'upload-1' and 'upload-2' have no such parameter; leave it out" in line


def test_a_parameter_of_workloads_reaches_those_that_leave_it_open(load: Load) -> None:
    reaches = reach(load(**OPEN))
    assert reaches["workload.size_bytes"] == Reach([("off", "download"), ("xor, 4/5", "download")], {})


def messages(*deliveries: str) -> Table:
    factors = {"workload.deadline_ms": one_of(50, 100)}
    workloads = [workload("messages", duration_s=1, delivery=list(deliveries))]
    return {**GRID, "factors": factors, "constants": PLAIN, "workloads": workloads}


def test_a_parameter_reaches_the_workloads_that_read_it_beside_its_others_and_is_refused_if_none_does(
    load: Load, refusal: Refusal
) -> None:
    line = refusal(**messages("datagram"))
    assert "factors.workload.deadline_ms: reaches nobody: workload 'messages" in line
    assert "does not read it beside its other parameters" in line
    for deliveries in (["deadline"], ["datagram", "deadline"]):
        (reached,) = reach(load(**messages(*deliveries)))["workload.deadline_ms"].workloads
        assert "deadline" in reached


def test_what_trials_are_made_of_differs_exactly_where_a_parameter_reaches(load: Load) -> None:
    experiment = load(**options("option.bto_ms", 0, 25))
    reached = reach(experiment)["option.bto_ms"].variants
    for label in experiment.arms:
        tasks = [experiment.task(TrialKey(label, "download-20000", point, 0), "wire") for point in (0, 1)]
        assert (tasks[0].pairs != tasks[1].pairs) == (label in reached)


ALONE, NOQ = variant("alone", "rquic", bto_ms=10), variant("noq")
SERVED = variant("served", "rquic", bto_ms=10)


def windows(variants: list[Table], **keys: object) -> Table:
    return options("option.initial_window", 10, 32, variants=variants, **keys)


def test_an_option_of_a_server_reaches_the_variants_that_it_serves(load: Load) -> None:
    design = windows([SERVED | {"server": "noq"}, ALONE, NOQ])
    assert reach(load(**design))["option.initial_window"].variants == ["served", "noq"]


def test_an_option_of_a_workloads_server_reaches_all_variants_of_that_workload(load: Load) -> None:
    workloads = [workload(size_bytes=1000, server=["noq", "alone"])]
    reaches = reach(load(**windows([SERVED, ALONE, NOQ], workloads=workloads)))["option.initial_window"]
    by_noq, by_alone = "download-1000-noq", "download-1000-alone"
    assert reaches.trials == [("served", by_noq), ("alone", by_noq), ("noq", by_noq), ("noq", by_alone)]


def test_an_option_of_a_background_reaches_what_competes_with_it(load: Load) -> None:
    competing = workload("competing", background=["noq", "alone"], size_bytes=1000)
    design = windows([SERVED, ALONE, NOQ], topology="dumbbell", workloads=[competing])
    reaches = reach(load(**design))["option.initial_window"]
    assert ("alone", "competing-noq-1000") in reaches.trials
    assert ("alone", "competing-alone-1000") not in reaches.trials


LOSSES: Table = {"loss.model": "ge", "loss.p": 0.1, "loss.r": 0.5}


def link_design(factor: str, **constants: object) -> Table:
    plan = {"method": "grid", "levels": 2}
    others = {name: value for name, value in (PLAIN | constants).items() if name != factor}
    return {"plan": plan, "factors": {factor: between(1, 2)}, "constants": others}


INSTEAD: list[tuple[str, dict[str, object], str]] = [
    ("owd_ms", {"internet.owd_ms": 5}, "internet.owd_ms takes its place"),
    ("owd_ms", {"up.owd_ms": 5, "down.owd_ms": 5}, "down.owd_ms and up.owd_ms take its place"),
    ("up.owd_ms", {"internet.up.owd_ms": 5}, "internet.up.owd_ms takes its place"),
    ("up.owd_ms", {"internet.owd_ms": 5}, "internet.owd_ms takes its place"),
    ("queue_bdp", {"internet.queue_packets": 5}, "internet.queue_packets takes its place"),
    ("up.queue_bdp", {"internet.queue_packets": 5}, "internet.queue_packets takes its place"),
]


def test_a_name_that_others_take_the_place_of_everywhere_is_refused(refusal: Refusal) -> None:
    for factor, constants, instead in INSTEAD:
        line = refusal(**link_design(factor, **constants))
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
        reaches = reach(load(**link_design(factor, **constants)))[factor]
        assert reaches.links == {"internet": directions}
        assert reaches.variants == ["off", "xor, 4/5"]


REPLACED: list[tuple[dict[str, object], str]] = [
    (LOSSES | {"internet.loss.model": "none"}, "loss.model"),
    (LOSSES | {"internet.loss.p": 0.2}, "loss.p"),
    (LOSSES | {"loss.up.model": "none", "loss.down.model": "uniform", "loss.down.p": 0.1}, "loss.model"),
]


def test_losses_that_others_take_the_place_of_everywhere_are_refused(refusal: Refusal) -> None:
    for constants, name in REPLACED:
        assert f"constants.{name}: reaches nobody: " in refusal(**link_design("queue_bdp", **constants))


UNREAD: list[tuple[dict[str, object], str]] = [
    ({"loss.model": "uniform", "loss.p": 0.1, "loss.r": 0.5}, "loss.r"),
    ({"loss.model": "markov", "loss.p": 0.1, "loss.r": 0.5, "loss.h": 0.5}, "loss.h"),
    ({"loss.p": 0.1}, "loss.p"),
    ({**LOSSES, "internet.loss.up.model": "uniform", "internet.loss.up.r": 1}, "internet.loss.up.r"),
]


def test_a_parameter_that_the_loss_model_does_not_read_is_refused(refusal: Refusal) -> None:
    for constants, name in UNREAD:
        line = refusal(**link_design("queue_bdp", **constants))
        assert f": {name}: reaches nobody: the loss model of internet " in line


NETWORKS = {
    "near": {"owd_ms": 5, "workload.size_bytes": 1000, "up.bandwidth_mbps": 1},
    "far": {"owd_ms": 50, "workload.size_bytes": 2000, "up.bandwidth_mbps": 2},
}


def linked(**of_download: int) -> Table:
    factors, constants = {"network": {"linked": NETWORKS}}, {"down.bandwidth_mbps": 10}
    workloads = [workload(**of_download), workload("upload", size_bytes=7)]
    return {**GRID, "factors": factors, "constants": constants, "workloads": workloads}


def test_a_linked_factor_reaches_all_that_its_parameters_reach_and_each_has_to_reach_somebody(
    load: Load, refusal: Refusal
) -> None:
    reaches = reach(load(**linked()))
    assert reaches["workload.size_bytes"].workloads == ["download"]
    assert reaches["up.bandwidth_mbps"].links == {"internet": ["up"]}
    assert reaches["network"].workloads == ["download", "upload-7"]
    assert reaches["network"].links == {"internet": ["up", "down"]}
    line = refusal(**linked(size_bytes=9))
    assert "factors.network.linked: workload.size_bytes: reaches nobody: " in line


def test_a_design_with_a_factor_that_reaches_nobody_ends_the_command_in_one_line(
    fecbench_here: Any, write_design: Any, tmp_path: Path
) -> None:
    design = write_design(tmp_path, **WORKLOADS)
    for words in (["plan", design], ["run", design, "--db", tmp_path / "no.sqlite"]):
        assert "factors.workload.size_bytes: reaches nobody: " in fecbench_here(*words).refusal()
        assert not (tmp_path / "no.sqlite").exists()


def test_plan_says_whom_each_parameter_reaches(fecbench_here: Any, write_design: Any, tmp_path: Path) -> None:
    design = write_design(tmp_path, **options("option.bto_ms", 0, 25))
    printed = fecbench_here("plan", "--no-measure", design).stdout
    rows = {line.split()[0]: line.split() for line in printed.splitlines() if line.strip()}
    assert rows["option.bto_ms"] == ["option.bto_ms", "factors", "rquic", "all", "-"]
    assert rows["owd_ms"] == ["owd_ms", "constants", "all", "all", "all"]
