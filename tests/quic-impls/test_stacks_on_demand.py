"""Stacks that are built only when a design uses them, over loopback: left out where they are not built."""

import signal
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.conformance import contract, simulator_trials
from fecbench.runners.implementations.finding import ours
from fecbench.runners.implementations.implementation import Implementation

pytestmark = pytest.mark.on_demand
STACKS = ("aioquic", "quiche", "quinn")
SIMULATED = [name for name in STACKS if ours().find(name, "tests").declaration.simulator]
CONTROLLERS = [
    *(("aioquic", controller) for controller in ("reno", "cubic")),
    *(("quiche", controller) for controller in ("reno", "cubic", "bbr2")),
    *(("quinn", controller) for controller in ("newreno", "cubic", "bbr")),
]
COUNTERS = {"packets_sent", "bytes_sent", "bytes_received", "smoothed_rtt_ms"}
LOSSES = {"aioquic": {"packets_lost", "losses_declared"}}
PLAIN = {"noq-fec": {"scheme": "none"}, "rquic": {"scheme": "plain", "http": "hq"}}


@pytest.fixture(params=STACKS)
def name(request: pytest.FixtureRequest) -> str:
    """The name of each such stack in turn."""
    return str(request.param)


@pytest.fixture
def stack(name: str) -> Implementation:
    return ours().find(name, "tests")


@pytest.fixture
def endpoints(stack: Implementation, endpoints_of: Any) -> Any:
    endpoints = endpoints_of(stack.declaration.name)
    endpoints._counters = COUNTERS | LOSSES.get(stack.declaration.name, set())
    return endpoints


def transfers(*sizes: int) -> list[dict[str, Any]]:
    return [{"name": name, "size_bytes": size} for name in ("download", "upload") for size in sizes]


def test_a_stack_meets_the_contract(stack: Implementation, tmp_path: Path) -> None:
    parts = contract.check(stack, tmp_path)
    assert [part for part in parts if not part.good] == []


@pytest.mark.parametrize("name", SIMULATED, indirect=True)
def test_a_simulator_answers_the_same_each_time(stack: Implementation) -> None:
    assert [part for part in simulator_trials.check(stack) if not part.good] == []


@pytest.mark.parametrize(("name", "controller"), CONTROLLERS, indirect=["name"])
def test_each_congestion_controller_carries_a_transfer(
    endpoints: Any, assignment: dict[str, Any], controller: str
) -> None:
    options = {"congestion_control": controller, "initial_window": 32, "packet_size": 1400}
    for workload in transfers(500_000):
        endpoints.transfer({**assignment, "workload": workload, "options": options})


@pytest.mark.parametrize("role", ["client", "server"])
def test_an_unknown_controller_is_refused_in_one_line_that_names_it(
    endpoints: Any, assignment: dict[str, Any], role: Any
) -> None:
    options = {"congestion_control": "vegas"}
    code, events, err = endpoints.start(role, {**assignment, "options": options}).end()
    assert (code, events, err.count("\n")) == (2, [], 1)
    assert "congestion_control" in err
    assert "vegas" in err


def test_a_series_that_it_has_not_is_unsupported(endpoints: Any, assignment: dict[str, Any]) -> None:
    code, events, err = endpoints.start("client", {**assignment, "series": ["cwnd"]}).end()
    assert (code, events, err.count("\n")) == (127, [], 1)


def test_qlog_and_secrets_are_written_where_the_environment_says(
    endpoints: Any, assignment: dict[str, Any], tmp_path: Path
) -> None:
    qlog, keys = tmp_path / "qlog", tmp_path / "keys.log"
    endpoints.transfer(assignment, QLOGDIR=str(qlog), SSLKEYLOGFILE=str(keys))
    assert all(path.stat().st_size > 0 for path in qlog.iterdir())
    assert len(list(qlog.iterdir())) == 2
    assert "CLIENT_TRAFFIC_SECRET_0 " in keys.read_text()


@pytest.mark.parametrize("workload", transfers(300_000))
@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize("other", PLAIN)
def test_it_works_with_stacks_that_offer_fec(
    endpoints: Any,
    endpoints_of: Any,
    assignment: dict[str, Any],
    other: str,
    role: str,
    workload: dict[str, Any],
) -> None:
    own = (endpoints, {**assignment, "workload": workload})
    others = (endpoints_of(other), {**own[1], "options": PLAIN[other]})
    (dialing, of_client), (listening, of_server) = (own, others) if role == "client" else (others, own)
    with listening.serving(of_server) as server:
        dialing.start("client", of_client).metrics()
        server.process.send_signal(signal.SIGTERM)
        server.metrics()
