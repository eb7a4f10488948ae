"""Plainer networks: what a hunt makes of what it found."""

from fecbench import designs
from fecbench.runners.hunt import plainer
from fecbench.runners.hunt.space import Network, Space
from tests.runners.hunt.planted import RANGES, design, design_text
from tests.support.designs import between

SPACE = Space(design(1))
FOUND = Network(
    "upload",
    (
        ("bandwidth_mbps", 61.93),
        ("owd_ms", 62.04),
        ("queue_bdp", 0.4711),
        ("jitter_ms", 7.03),
        ("workload.size_bytes", 10_753),
        ("option.initial_window", 32),
        ("option.congestion_control", "bbr3"),
        ("losses", "bursts of 3, 5 %"),
    ),
)


def first_of_each() -> dict[str, Network]:
    first: dict[str, Network] = {}
    for what, network in plainer.steps(SPACE, FOUND):
        first.setdefault(what, network)
    return first


def test_the_plainest_of_each_thing_comes_first() -> None:
    """The first choice, the usual queue, a number of one digit, a smaller size."""
    first = first_of_each()
    assert first.pop("workload").workload == "download"
    changed = {name: network.point[name] for name, network in first.items()}
    assert changed == {
        "option.initial_window": 10,
        "option.congestion_control": "cubic",
        "losses": "none",
        "queue_bdp": 1.5,
        "bandwidth_mbps": 50.0,
        "owd_ms": 50.0,
        "jitter_ms": 5.0,
        "workload.size_bytes": 10_000,
    }


def test_one_thing_is_plainer_at_a_time_and_within_its_range() -> None:
    for what, network in plainer.steps(SPACE, FOUND):
        before, after = FOUND.document(), network.document()
        assert [name for name in before if before[name] != after[name]] == [what]
        assert SPACE.at(SPACE.place(network)) == network


def test_what_is_as_plain_as_can_be_has_nothing_plainer() -> None:
    """Taking the plainest step again and again comes to an end."""
    network, count = FOUND, 0
    while steps := plainer.steps(SPACE, network):
        network, count = steps[0][1], count + 1
        assert count < 100
    assert network.point["losses"] == "none" and network.workload == "download"


def test_two_directions_become_alike() -> None:
    factors = {name: range_ for name, range_ in RANGES.items() if name != "owd_ms"}
    factors |= {"up.owd_ms": between(5, 400), "down.owd_ms": between(5, 400, scale="log")}
    space = Space(designs.parse(design_text(1, factors=factors), "two-directions.toml"))
    values = {**FOUND.point, "up.owd_ms": 20.0, "down.owd_ms": 62.04}
    network = Network("upload", tuple((name, values[name]) for name in space.factors))
    alike = [point.point for what, point in plainer.steps(space, network) if " and " in what]
    assert [(point["up.owd_ms"], point["down.owd_ms"]) for point in alike] == [(20.0, 20.0), (62.04, 62.04)]
