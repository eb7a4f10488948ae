"""A design resolved: what each trial's endpoints are asked for, and which designs are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.results.store.digest import TaskDocument
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign import checks
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.implementations.finding import Implementations, search_path
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import Task
from fecbench.topologies.link import TopologyError
from tests.support.declarations import declare, option
from tests.support.designs import Table, between, one_of, variant, workload
from tests.support.refusals import refusal_of

Load = Callable[..., Experiment]

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
def load(write_design: Any, tmp_path: Path) -> Load:
    def load(different: str = "", **keys: object) -> Experiment:
        design = designs.load(write_design(tmp_path, different, **keys))
        return Experiment(design, design.plan().points, Implementations(search_path()))

    return load


def test_a_point_gives_a_workload_the_parameters_that_it_does_not_set_itself(load: Load) -> None:
    experiment = load(DESIGN)
    sizes = [
        [
            experiment.task(TrialKey("off", label, point, 0), "wire").pairs[0].workload["size_bytes"]
            for label in ("download", "upload-7")
        ]
        for point in range(2)
    ]
    assert sizes == [[10000, 7], [5000, 7]]


LINKED_WRONG: list[tuple[str, str, str]] = [
    ("workload.size_bytes", "workload.size", "did you mean 'workload.size_bytes'"),
    ("workload.size_bytes", "workload_size", "workload_size: is not a parameter"),
    ("= 5000", "= -1", "size_bytes = -1"),
    ("[factors.network.linked]", "[factors.owd_ms.linked]", "factors.owd_ms"),
    ("[factors.network.linked]", "[factors.repetition.linked]", "factors.repetition: the name is taken"),
    ("workload.size_bytes", "queue_bytes", "workload download: size_bytes is missing"),
    ("owd_ms", "loss.q", "loss.q: is not a parameter"),
]


def test_what_a_linked_factor_may_not_say_is_refused(load: Load) -> None:
    for right, wrong, message in LINKED_WRONG:
        assert right in DESIGN
        assert message in refusal_of(load, DESIGN.replace(right, wrong), by=(Refusal, designs.DesignError))


CHECKED = {
    "plan": {"method": "grid", "levels": 3},
    "factors": {"loss.p": between(0, 0.1), "option.generation_max": one_of(8, 9)},
    "constants": {"bandwidth_mbps": 10, "owd_ms": 5, "loss.model": "uniform", "option.code_rate": 0.5},
    "variants": [variant("short", "rquic"), variant("long", "rquic", generation_max=20, http="h3")],
}


def test_each_different_set_of_options_of_a_variant_is_asked_about_once(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = []

    def ask(_: Implementation, sets: list[tuple[dict[str, Any], str]]) -> None:
        questions.extend((where.rpartition(": ")[2], choice) for choice, where in sets)

    monkeypatch.setattr(Implementation, "missing_programs", lambda *_: [])
    monkeypatch.setattr(Implementation, "check_each_together", ask)
    experiment = load(**CHECKED)
    assert len(experiment.points) == 6
    for _ in range(2):  # as a plan that measures trials does
        assert checks.check_combinations(experiment) == set()
    assert questions == [
        ("variant 'short'", {"code_rate": 0.5, "generation_max": 8}),
        ("variant 'short'", {"code_rate": 0.5, "generation_max": 9}),
        ("variant 'long'", {"code_rate": 0.5, "generation_max": 20, "http": "h3"}),
    ]


def test_what_is_not_built_is_not_asked(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Implementation, "missing_programs", Implementation.programs)
    monkeypatch.setattr(Implementation, "check_each_together", None)
    assert checks.check_combinations(load(**CHECKED)) == {"rquic"}


def with_an_option(implementation: str) -> Table:
    factors = {"option.bto_ms": one_of(0, 25)}
    constants = {"bandwidth_mbps": 10, "owd_ms": 5}
    variants = [variant("only", implementation)]
    return {"plan": {"method": "grid"}, "factors": factors, "constants": constants, "variants": variants}


def test_only_options_of_implementations_that_the_design_uses_are_its_parameters(load: Load) -> None:
    load(**with_an_option("rquic"))
    with pytest.raises(Refusal, match=r"factors\.option\.bto_ms: is not a parameter"):
        load(**with_an_option("noq-fec"))


def test_a_broken_implementation_disturbs_only_designs_that_use_it(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "implementations" / "broken"
    broken.mkdir(parents=True)
    (broken / "impl.toml").write_text("name = 3\n")
    monkeypatch.setenv("FECBENCH_IMPLEMENTATIONS", str(broken.parent))
    load(**with_an_option("rquic"))
    with pytest.raises(Refusal, match=rf"variant 'only': {broken}/impl\.toml: name = 3"):
        load(**with_an_option("broken"))


PAIRED: Table = {
    "repetitions": 3,
    "plan": {"method": "lhs", "points": 5},
    "workloads": [workload(size_bytes=[1000, 2000])],
}


def test_variants_and_workloads_meet_the_same_losses_and_repetitions_and_directions_do_not(
    load: Load,
) -> None:
    experiment = load(**PAIRED)
    one = experiment.seeds(TrialKey("off", "download-1000", 2, 1))
    assert one == experiment.seeds(TrialKey("xor, 4/5", "download-2000", 2, 1))
    seeds = []
    for point in range(5):
        for repetition in range(3):
            of_trial = experiment.seeds(TrialKey("off", "download-1000", point, repetition))
            seeds += of_trial.values()
    assert len(seeds) == len(set(seeds)) == 5 * 3 * 3
    assert all(0 <= seed < 2**64 for seed in seeds)


def test_the_first_link_of_each_topology_meets_the_same_losses_and_the_others_meet_others(load: Load) -> None:
    key = TrialKey("off", "download-1000", 2, 1)
    single = load(**PAIRED).seeds(key)
    seeds = load(**PAIRED, topology="multipath-3").seeds(key)
    assert [seeds[f"path1/{way}"] for way in ("up", "down")] == [
        single[f"internet/{way}"] for way in ("up", "down")
    ]
    assert seeds["content"] == single["content"]
    assert len(set(seeds.values())) == len(seeds) == 7


def test_repetitions_share_a_document_and_a_copy_that_asks_for_something_else_has_its_own(load: Load) -> None:
    experiment = load(**PAIRED)
    first, second = (
        experiment.task(TrialKey("off", "download-1000", 0, repetition), "wire") for repetition in (0, 1)
    )
    assert first.seeds != second.seeds
    assert first.document() is second.document()
    longer = second.model_copy(update={"timeout_s": 2 * second.timeout_s})
    assert longer.document() == {**second.document(), "timeout_s": longer.timeout_s}
    assert TaskDocument.of(longer.document()).digest != TaskDocument.of(second.document()).digest


def test_what_is_computed_of_a_task_is_computed_once_for_all_repetitions_and_anew_for_another_task(
    load: Load,
) -> None:
    experiment = load(**PAIRED)
    computed: list[Task] = []

    def limit_s(task: Task) -> float:
        computed.append(task)
        return task.timeout_s

    first, second = (
        experiment.task(TrialKey("off", "download-1000", 0, repetition), "wire") for repetition in (0, 1)
    )
    longer = second.model_copy(update={"timeout_s": 2 * second.timeout_s})
    assert [task.once(limit_s) for task in (first, second, longer, second)] == [
        *(first.timeout_s, first.timeout_s, 2 * first.timeout_s, first.timeout_s)
    ]
    assert computed == [first, longer]


def test_a_task_is_nothing_of_this_machine(load: Load) -> None:
    task = load(**PAIRED).task(TrialKey("off", "download-1000", 0, 0), "wire")
    assert "/" not in task.model_dump_json(exclude={"seeds"}).replace("4/5", "")


def two_stacks(workloads: list[Table] | None = None, **of_client: object) -> Table:
    variants = [variant("client", "rquic", scheme="plain") | of_client, variant("other", scheme="none")]
    constants = {"owd_ms": 5, "loss.model": "uniform"}
    return {
        "constants": constants,
        "workloads": workloads or [workload(size_bytes=20_000)],
        "variants": variants,
    }


KEY = TrialKey("client", "download-20000", 0, 0)


def ends(experiment: Experiment, key: TrialKey) -> list[str]:
    (pair,) = experiment.task(key, "wire").pairs
    return [pair.client.implementation, pair.server.implementation]


def test_a_variant_may_be_served_by_another_one(load: Load) -> None:
    experiment = load(**two_stacks(server="other"))
    assert ends(experiment, KEY) == ["rquic", "noq-fec"]
    assert experiment.task(KEY, "wire").pairs[0].server.options["scheme"] == "none"
    assert ends(experiment, TrialKey("other", "download-20000", 0, 0)) == ["noq-fec", "noq-fec"]


def test_a_workload_may_have_all_variants_served_by_one(load: Load) -> None:
    served = workload(size_bytes=20_000, server=["client", "other"])
    experiment = load(**two_stacks([served]))
    assert list(experiment.activities) == ["download-20000-client", "download-20000-other"]
    assert ends(experiment, TrialKey("client", "download-20000-other", 0, 0)) == ["rquic", "noq-fec"]
    assert ends(experiment, TrialKey("other", "download-20000-client", 0, 0)) == ["noq-fec", "rquic"]
    (pair,) = experiment.task(TrialKey("other", "download-20000-client", 0, 0), "wire").pairs
    assert "server" not in pair.workload


def test_a_server_that_is_no_variant_or_is_named_twice_is_refused(load: Load) -> None:
    of_client = "variant 'client': server = 'othr':"
    for of_variant, of_workload, message in (
        ({"server": "othr"}, {}, f"{of_client} is no label of a variant; did you mean 'other'"),
        ({}, {"server": "x"}, "workload download: server = 'x': is no label of a variant"),
        ({"server": "other"}, {"server": "other"}, "variant 'client' names a server, too"),
    ):
        tables = two_stacks([workload(size_bytes=20_000, **of_workload)], **of_variant)
        assert message in refusal_of(lambda tables=tables: load(**tables))


UNKNOWN = {
    "nowhere.bandwidth_mbps": "topology single-path has no link 'nowhere'; known: 'internet'",
    "internett.up.owd_ms": "topology single-path has no link 'internett'; did you mean 'internet'?",
    "nowhere.loss.down.p": "topology single-path has no link 'nowhere'",
    "internet.bandwith_mbps": "is not a parameter; did you mean 'internet.bandwidth_mbps'?",
    "internet.left.owd_ms": "is not a parameter",
    "loss.loss": "is not a parameter; known: 'loss.bad_s', 'loss.burst', ",
}


def test_a_link_or_a_parameter_that_there_is_not_is_refused_by_its_name(load: Load) -> None:
    for name, message in UNKNOWN.items():
        constants = {"owd_ms": 5, "loss.model": "uniform", name: 1}
        line = refusal_of(lambda constants=constants: load(constants=constants))
        assert f"constants.{name}: " in line and message in line


def over_paths(paths: int = 1, topology: str = "multipath", link: str = "path2") -> Table:
    constants = {"owd_ms": 5, "loss.model": "uniform", f"{link}.outage_s": [0.5, 2]}
    variants = [variant("paths", "paths", paths=paths)]
    return {"topology": topology, "constants": constants, "variants": variants}


@pytest.fixture
def path_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """An implementation with the option `paths`, which declares what it is given."""

    def written(**declared: bool) -> None:
        paths = option(1, minimum=1)
        folder = declare(tmp_path / "mine" / "paths", **declared, options={"paths": paths})
        monkeypatch.setenv("FECBENCH_IMPLEMENTATIONS", str(folder.parent))

    return written


MULTIPATH = {"local_addresses": True, "multipath": True}


def test_more_paths_than_there_can_be_are_refused(load: Load, path_options: Callable[..., None]) -> None:
    undeclared = "variant 'paths': paths = 2: paths has no multipath; it must be 1"
    too_many = "paths = 3: a client of topology multipath has 2 addresses; it must be at most 2"
    for declared, count, message in (
        ({}, 1, None),
        ({"local_addresses": True}, 2, undeclared),
        (MULTIPATH, 2, None),
        (MULTIPATH, 3, too_many),
    ):
        path_options(**declared)
        experiment = load(**over_paths(count))
        if message is None:
            checks.check_paths(experiment)
        else:
            assert refusal_of(checks.check_paths, experiment).endswith(message)


def test_links_that_a_simulator_does_not_have_are_refused(
    load: Load, path_options: Callable[..., None]
) -> None:
    path_options()
    refusal = refusal_of(checks.check_simulated_links, load(**over_paths()))
    assert "paths has no multipath, so its simulator cannot have several links" in refusal
    checks.check_simulated_links(load(**over_paths(1, "single-path", "internet")))
    path_options(**MULTIPATH)
    checks.check_simulated_links(load(**over_paths()))


def test_an_outage_is_that_of_its_link_and_refused_for_netem(
    load: Load, path_options: Callable[..., None]
) -> None:
    path_options()
    experiment = load(**over_paths())
    links = experiment.task(TrialKey("paths", "download-20000", 0, 0), "wire").links
    assert [links[path].settings.up.outage_s for path in ("path1", "path2")] == [None, (0.5, 2)]
    checks.check_links(experiment, "wire")
    with pytest.raises(TopologyError, match=r"^path2\.up\.outage_s is \[0\.5, 2\]; the netem link"):
        checks.check_links(experiment, "netem")


def test_a_series_that_an_implementation_does_not_leave_is_refused(load: Load) -> None:
    refusal = refusal_of(lambda: load(**two_stacks(series=["cwnd", "cwmd"])))
    assert "rquic leaves no series 'cwmd'; did you mean 'cwnd'?" in refusal


def test_both_ends_are_asked_for_the_series_of_the_clients_variant_that_they_have(load: Load) -> None:
    tables = two_stacks(server="other", series=["cwnd", "code_rate"])
    (pair,) = load(**tables).task(KEY, "wire").pairs
    assert set(pair.client.series) == {"cwnd", "code_rate"}
    assert pair.server.series == ["cwnd"]
