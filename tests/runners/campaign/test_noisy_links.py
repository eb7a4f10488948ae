"""Designs whose links have noise of the delay, let frames overtake, and duplicate some: what they say, what
is refused, and that virtual time carries it out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fecbench import results
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign import links
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import VIRTUAL, LinkTask, Task
from fecbench.topologies.jitter import Jitter
from fecbench.topologies.link import DIRECTIONS, TopologyError
from fecbench.topologies.topology import check_backend
from tests.support import needs
from tests.support.campaigns import only_campaign
from tests.support.designs import OFF, RLC, downloads, one_of
from tests.support.experiments import experiment_of
from tests.support.refusals import refusal_of

FOUND = ours().find("noq-fec", "tests")
PLAIN = {"bandwidth_mbps": 10, "owd_ms": 20}
DESIGN = downloads(
    "noisy",
    200_000,
    OFF,
    RLC,
    seed=12,
    repetitions=2,
    plan={"method": "grid"},
    factors={"jitter_ms": one_of(0, 10)},
    constants={
        **{"bandwidth_mbps": 8, "owd_ms": 20, "queue_packets": 100, "jitter.law": "pareto", "reorder": True},
        **{"duplicate": 0.05, "corrupt.p": 0.02, "mtu_bytes": 1400},
        **{"policer_mbps": 20, "shaper_burst_bytes": 20_000},
        "loss": {"model": "uniform", "p": 0.02, "only_longer_than": 100},
    },
)


def written(tmp_path: Path) -> Path:
    path = tmp_path / "noisy.toml"
    path.write_text(DESIGN)
    return path


def task_of(path: Path, variant: str, point: int, repetition: int) -> Task:
    return experiment_of(path).task(TrialKey(variant, "download-200000", point, repetition), VIRTUAL)


def one(**values: Any) -> Any:
    return links.link_tasks({**PLAIN, **values}, ["internet"])["internet"].settings


def test_a_name_of_one_direction_gives_noise_to_that_one_alone() -> None:
    link = one(
        **{"internet.down.jitter_ms": 5, "jitter.law": "normal", "down.reorder": True, "up.jitter_ms": 0}
    )
    assert (link.up.jitter, link.up.reorder) == (None, False)
    assert (link.down.jitter, link.down.reorder) == (Jitter(5, "normal"), True)


def test_effects_have_the_names_of_designs_and_each_direction_its_own_values_and_seeds() -> None:
    link = one(**{"corrupt.p": 0.1, "up.corrupt.p": 0, "down.reorder.p": 0.2, "reorder.by_packets": 1})
    assert (link.up.corrupt_p, link.down.corrupt_p) == (0, 0.1)
    assert (link.up.reorder_p, link.down.reorder_p, link.up.overtakes, link.down.overtakes) == (
        *(0, 0.2),
        *(False, True),
    )
    assert link.drawn == ("up/corrupt", "down/corrupt", "up/reorder", "down/reorder")
    seeded = link.seeded({name: number for number, name in enumerate(link.drawn)})
    assert (seeded.up.corrupt_seed, seeded.down.corrupt_seed) == (None, 1)
    assert (seeded.up.reorder_seed, seeded.down.reorder_seed) == (None, 3)
    assert one(**{"duplicate": 0.1}).drawn == ("up/duplicate", "down/duplicate")


def test_a_shaper_with_credit_carries_that_much_more_than_its_rate() -> None:
    rate = one(shaper_burst_bytes=100_000).down.rate
    assert rate.most_bytes(0, 1) == 1_350_000 and rate.least_time_s(100_000) == 0
    assert rate.least_time_s(1_350_000) == 1


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"jitter_ms": -1}, "jitter_ms = -1: must be a number from 1e-06 to 10000"),
    ({"jitter_ms": "5"}, "jitter_ms = '5': must be a number"),
    ({"jitter_ms": float("nan")}, "jitter_ms = nan: must be a number"),
    ({"jitter_ms": False}, "jitter_ms = false: must be a number"),
    ({"up.jitter_ms": 10_001}, "up.jitter_ms = 10001: must be a number"),
    ({"jitter_ms": 5, "jitter.law": "gauss"}, "jitter.law = 'gauss': must be one of uniform, normal, "),
    ({"jitter.law": "normal"}, "jitter.law: there is no jitter_ms"),
    ({"reorder": 1}, "reorder = 1: must be true or false"),
    ({"duplicate": 1.5}, "duplicate = 1.5: must be a number from 0 to 1"),
    ({"corrupt.p": 2}, "corrupt.p = 2: must be a number from 0 to 1"),
    ({"up.corrupt.p": "1"}, "up.corrupt.p = '1': must be a number from 0 to 1"),
    ({"reorder.p": -0.5}, "reorder.p = -0.5: must be a number from 0 to 1"),
    ({"reorder.by_packets": 3}, "reorder.by_packets: there is no reorder.p"),
    (
        {"reorder.p": 0.5, "reorder.by_packets": 257},
        "reorder.by_packets = 257: must be a whole number from 1",
    ),
    ({"reorder.p": 0.5, "reorder.by_packets": 1.5}, "reorder.by_packets = 1.5: must be a whole number"),
    ({"mtu_bytes": 575}, "mtu_bytes = 575: must be a whole number from 576 to 1500"),
    ({"mtu.icmp": True}, "mtu.icmp: there is no mtu_bytes below 1500"),
    ({"mtu_bytes": 1300, "up.mtu.icmp": 1}, "up.mtu.icmp = 1: must be true or false"),
    ({"down.mtu_bytes": 9000}, "down.mtu_bytes = 9000: must be a whole number from 576 to 1500"),
    ({"policer_mbps": 0}, "policer_mbps = 0: must be a number from 0.1 to 10000"),
    ({"policer_burst_bytes": 20_000}, "policer_burst_bytes: there is no policer_mbps"),
    ({"policer_mbps": 1, "policer_burst_bytes": 1513}, "policer_burst_bytes = 1513: must be a whole number"),
    ({"shaper_burst_bytes": -1}, "shaper_burst_bytes = -1: must be a whole number from 0 to 1000000000"),
    ({"codel_target_ms": 20}, "codel_target_ms: the queue has no CoDel; write queue = 'codel' or 'fq_codel'"),
    ({"queue": "codel", "codel_target_ms": 0}, "codel_target_ms = 0: must be a number from 0.001 to 1000000"),
    ({"queue": "codel", "codel_target_ms": "5"}, "codel_target_ms = '5': must be a number"),
    ({"down.duplicate": True}, "down.duplicate = true: must be a number from 0 to 1"),
]


def test_noise_that_cannot_be_is_refused_in_one_line() -> None:
    for values, why in REFUSED:
        assert refusal_of(lambda these: one(**these), values, by=TopologyError).startswith(why)


def test_only_wire_and_simulators_have_noise_and_let_frames_overtake() -> None:
    for name, value in (
        *(("jitter_ms", 5), ("reorder", True), ("duplicate", 0.1), ("corrupt.p", 0.1), ("reorder.p", 0.1)),
        *(("mtu_bytes", 1300), ("policer_mbps", 5), ("shaper_burst_bytes", 9000), ("ecn", True)),
    ):
        link = one(**{f"down.{name}": value, **({"down.ecn_threshold_ms": 5} if name == "ecn" else {})})
        for backend in ("wire", "virtual"):
            check_backend(backend, "internet", link)
        refusal = refusal_of(check_backend, "netem", "internet", link, by=TopologyError)
        assert refusal.startswith(f"internet.down.{name}: ")


OF_ANY = {"bandwidth_mbps", "owd_ms", "queue_bdp", "queue_bytes", "queue_packets", "queue_ms"}
ELSEWHERE = {"outage_from_s", "outage_to_s", "trace", "trace.offset_s", "trace.repeat", "jitter.law"}
"""Names that mean nothing without another one, and those of files."""
REQUIRED: dict[str, dict[str, Any]] = {
    "reorder.by_packets": {"reorder.p": 0.5},
    "policer_burst_bytes": {"policer_mbps": 5},
    "mtu.icmp": {"mtu_bytes": 1300},
    "ecn": {"ecn_threshold_ms": 5},
    "ecn_threshold_ms": {"ecn": True},
    "codel_target_ms": {"queue": "codel"},
    "cross.on_s": {"cross.mbps": 2},
    "cross.off_s": {"cross.mbps": 2},
}
VALUES: dict[str, Any] = {
    **{"queue": "codel", "outage_s": [1, 2], "jitter_ms": 5, "reorder": True, "reorder.p": 0.1},
    **{"reorder.by_packets": 3, "duplicate": 0.1, "corrupt.p": 0.1, "mtu_bytes": 1300, "mtu.icmp": True},
    **{"policer_mbps": 5, "policer_burst_bytes": 20_000, "shaper_burst_bytes": 9000, "ecn": True},
    **{"ecn_threshold_ms": 5, "codel_target_ms": 50, "cross.mbps": 2, "cross.on_s": 2, "cross.off_s": 2},
}


def test_netem_refuses_each_parameter_of_a_link_that_it_cannot_follow_whichever_there_are() -> None:
    """A new parameter of a link has to be in one of these tables."""
    assert set(links.SETTINGS) == OF_ANY | ELSEWHERE | set(VALUES)
    for name, value in VALUES.items():
        for direction in DIRECTIONS:
            values = {**REQUIRED.get(name, {}), name: value}
            link = one(**{f"{direction}.{key}": own for key, own in values.items()})
            check_backend("wire", "internet", link)
            refusal = refusal_of(check_backend, "netem", "internet", link, by=TopologyError)
            parameter = refusal.split(":")[0].split(" ")[0].removeprefix(f"internet.{direction}.")
            assert parameter in values and "netem" in refusal and "\n" not in refusal, refusal


def test_the_least_delay_is_without_noise_and_the_greatest_with_the_most_of_it() -> None:
    for law, most in (("uniform", 10), ("normal", 10), ("pareto", 92.5)):
        link = one(**{"jitter_ms": 5, "jitter.law": law})
        assert (link.up.least_owd_ms, link.up.greatest_owd_ms, link.rtt_ms) == (20, 20 + most, 40)


def test_all_variants_of_a_repetition_meet_the_same_noise_and_each_direction_has_its_own(
    tmp_path: Path,
) -> None:
    path, noise = written(tmp_path), set()
    for repetition in range(2):
        off, rlc = (
            task_of(path, variant, 1, repetition).settings_of("internet") for variant in ("off", "rlc")
        )
        assert off == rlc
        noise |= {off.of(direction).jitter for direction in DIRECTIONS}
    assert len(noise) == 4 and all(seeds.seed for seeds in noise)


def test_a_link_without_noise_is_asked_for_as_before_there_was_any(tmp_path: Path) -> None:
    """The same is true at a point whose noise is 0."""
    task = task_of(written(tmp_path), "off", 0, 0)
    assert "jitter" not in str(task.document()) and "jitter" not in str(task.seeds)
    document = LinkTask(settings=one(jitter_ms=0), late_bound_us=1, losses={}).model_dump_json()
    for effect in ("jitter", "reorder", "corrupt", "mtu", "policer", "shaper"):
        assert effect not in document


@needs.built(FOUND)
def test_trials_in_virtual_time_meet_noise_that_is_recorded_and_replayed(
    tmp_path: Path, fecbench_here: Any, virtually: Callable[..., Path]
) -> None:
    path = written(tmp_path)
    digests: list[dict[TrialKey, str]] = []
    for name in ("again", "virtual"):
        database = virtually(path, name=name)
        with only_campaign(database) as (opened, campaign):
            trials = list(opened.trials(campaign.id))
            digests.append({trial.record.key: trial.record.checks["digest"] for trial in trials})
    assert digests[0] == digests[1] and len(set(digests[0].values())) == 8
    frame = results.open(str(database))["noisy"].trials(["client.dct_s"])
    assert set(frame["state"]) == {"ok"}
    noisy = next(trial for trial in trials if trial.record.key.point == 1)
    new_task = task_of(path, noisy.record.key.variant, 1, noisy.record.key.repetition)
    assert noisy.record.seeds == new_task.seeds
    replayed = fecbench_here("replay", noisy.id, "--db", database, "--output", tmp_path / "replay")
    assert replayed.returncode == 0, replayed.stdout
