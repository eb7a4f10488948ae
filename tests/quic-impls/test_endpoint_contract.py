"""The contract of quic-impls/README.md for every endpoint, and further promises of ours: files, events, exit
codes, signals."""

import json
import re
import signal
import socket
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.implementations.finding import OWN
from fecbench.runners.implementations.implementation import IMPLEMENTATIONS as FOLDER
from fecbench.runners.tasks.task import EndpointTask, Role
from fecbench.runners.trial import assignment as trials

IMPLEMENTATIONS = {name: tomllib.loads((FOLDER / name / "impl.toml").read_text()) for name in OWN}
# That over TCP has no FEC, and ports and counters of another kind (test_tcp_endpoint.py).
OF_QUIC = [name for name in OWN if name != "tcp"]
OF_ANY = pytest.mark.parametrize("name", OWN, indirect=True)
ROLES: tuple[Role, ...] = ("client", "server")
FEC_COUNTERS = [
    *("source_sent", "repair_sent", "source_received", "repair_received"),
    *("packets_recovered", "recovered_spurious", "repair_useless", "recovered_late"),
]


@pytest.fixture(params=OF_QUIC)
def name(request: pytest.FixtureRequest) -> str:
    """The name of each implementation of QUIC in turn."""
    return str(request.param)


def names(**declared: str) -> list[str]:
    """The implementations that declare such a `workloads` or `series`."""
    return [
        name
        for name in OF_QUIC
        if all(value in IMPLEMENTATIONS[name][key] for key, value in declared.items())
    ]


def messages(direction: str, size_bytes: int) -> dict[str, Any]:
    """Three messages of so many bytes in all."""
    timetable = [[20_000 * number, size_bytes // 3 + (number < size_bytes % 3)] for number in range(3)]
    delivery = {"delivery": "datagram", "deadline_ms": 100.0, "part_bytes": 1000}
    return {"name": "messages", "direction": direction, **delivery, "timetable": timetable}


def content(name: str, size_bytes: int) -> dict[str, Any]:
    """A workload by which the client gets so many bytes."""
    if "download" in IMPLEMENTATIONS[name]["workloads"]:
        return {"name": "download", "size_bytes": size_bytes}
    return messages("down", size_bytes)


@pytest.fixture
def assignment(assignment: dict[str, Any], name: str) -> dict[str, Any]:
    """The same with a workload that the implementation has."""
    return {**assignment, "workload": content(name, 1000)}


@pytest.mark.parametrize("name", OWN[:1], indirect=True)
def test_each_end_is_told_here_what_trials_tell_it(
    endpoints: Any, assignment: dict[str, Any], tmp_path: Path
) -> None:
    end = EndpointTask(implementation="any", options={})
    place = {"server_address": "", "local_addresses": [], "certificates": tmp_path, "log_folder": tmp_path}
    for role in ROLES:
        endpoints.start(role, {**assignment, "workload": {"name": "video"}}).end()
        of_trials = trials.assignment(
            role, end, workload={"name": "video"}, content_seed=0, deadline_s=1, **place
        )
        assert json.loads((tmp_path / f"{role}.json").read_text()).keys() == of_trials.keys()


def test_the_fec_off_options_turn_fec_off_and_no_series_is_left_when_none_is_asked_for(
    endpoints: Any, assignment: dict[str, Any], name: str, tmp_path: Path
) -> None:
    choice = {
        "options": IMPLEMENTATIONS[name]["fec"]["off"],
        "workload": content(name, 100_000),
        "series": [],
    }
    for metrics in endpoints.transfer({**assignment, **choice}):
        assert {counter: metrics.get(counter, 0) for counter in FEC_COUNTERS} == dict.fromkeys(
            FEC_COUNTERS, 0
        )
    assert {path.name for path in tmp_path.rglob("*")} == {"client", "client.json", "server", "server.json"}


def test_a_server_serves_until_a_signal_and_then_reports_on_all_its_clients(
    endpoints: Any, assignment: dict[str, Any]
) -> None:
    with endpoints.serving(assignment) as server:
        clients = [endpoints.start("client", assignment).metrics() for _ in range(2)]
        server.process.send_signal(signal.SIGTERM)
        assert server.metrics()["packets_sent"] >= sum(client["packets_received"] for client in clients)


@OF_ANY
def test_a_server_without_clients_reports_zeros(endpoints: Any, assignment: dict[str, Any]) -> None:
    for stop in (signal.SIGTERM, signal.SIGINT):
        with endpoints.serving(assignment) as server:
            server.process.send_signal(stop)
            assert set(server.metrics(unmeasured={"smoothed_rtt_ms"}).values()) == {0}


def test_a_signal_ends_a_client_with_one_line(endpoints: Any, assignment: dict[str, Any]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", assignment["port"]))
        silent.settimeout(30)
        client = endpoints.start("client", assignment)
        silent.recv(2000)  # it dials
        client.process.send_signal(signal.SIGTERM)
        assert re.search("ended by a signal|terminated signal received", client.failure())


@pytest.mark.parametrize("name", names(workloads="upload"), indirect=True)
def test_a_server_takes_any_content_and_confirms_its_hash(endpoints: Any, assignment: dict[str, Any]) -> None:
    with endpoints.serving(assignment):
        workload = {"name": "upload", "size_bytes": 1000}
        endpoints.start("client", {**assignment, "content_seed": 1, "workload": workload}).metrics()


# Options whose limits fit together only with other values than the defaults.
COMPANIONS: dict[tuple[str, str], dict[str, Any]] = {
    ("noq-fec", "flush"): {"scheme": "none"},
    ("noq-fec", "n"): {"scheme": "none"},
    ("noq-fec", "k"): {"scheme": "none"},
    ("noq-fec", "window"): {"scheme": "none"},
    ("noq-fec", "interleave"): {"scheme": "none"},
    ("rquic", "generation_max"): {"code_rate": 0.5},
    ("rquic", "overlap"): {"code_rate": 0.5},
    ("rquic", "redundancies"): {"code_rate": 0.5, "scheme": "rlc"},
}


def option_values(name: str) -> Iterator[tuple[str, Any, bool]]:
    """Values of each option at and just beyond the limits in impl.toml, and whether they are right."""
    for option, declared in IMPLEMENTATIONS[name]["options"].items():
        right, wrong = [declared["default"]], [None]
        if declared["type"] == "string":
            right += declared["choices"]
            wrong += ["nonsense", 1]
        elif declared["type"] == "boolean":
            right += [not declared["default"]]
            wrong += ["true", 1]
        else:
            step = 1 if declared["type"] == "integer" else 1e-6
            right += [declared["minimum"], declared["maximum"]]
            wrong += [declared["minimum"] - step, declared["maximum"] + step, "1"]
        if declared["type"] == "integer":
            wrong += [declared["minimum"] + 0.5]
        yield from ((option, value, True) for value in right)
        yield from ((option, value, False) for value in wrong)


def test_options_are_checked_as_impl_toml_says(endpoints: Any, assignment: dict[str, Any], name: str) -> None:
    # The server's port is taken: a good option gets it to where that is noticed.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as occupied:
        occupied.bind((assignment["address"], assignment["port"]))
        for option, value, right in option_values(name):
            options = {**COMPANIONS.get((name, option), {}), option: value}
            code, events, err = endpoints.start("server", {**assignment, "options": options}).end()
            assert (code, events, err.count("\n")) == (1 if right else 2, [], 1), options
            message = "address already in use" if right else f"options.{option}: "
            assert message in (err.lower() if right else err)
            code, events, err = endpoints.check(options).end()
            assert (code, events, err.count("\n")) == ((0, [], 0) if right else (2, [], 1)), options


CONSTANT = {"controller": "constant"}


UNFIT: dict[str, list[tuple[dict[str, Any], str]]] = {
    "noq-fec": [
        ({**CONSTANT, "scheme": "xor", "n": 7, "k": 5}, "n = 7 with k = 5"),
        ({**CONSTANT, "n": 7, "k": 6, "window": 5}, "window = 5 with k = 6"),
        ({**CONSTANT, "n": 2}, "n = 2, k = 2"),
        ({"interleave": 2}, "interleave = 2"),
        ({**CONSTANT, "scheme": "rs", "n": 21, "k": 20, "interleave": 13}, "interleave = 13 with k = 20"),
    ],
    "rquic": [
        ({"generation_max": 8}, "needs generations of 9; generation_max is 8"),
        ({"code_rate": 0.5, "redundancies": 2}, "redundancies: 2"),
        ({"scheme": "rlc", "packet_size": 1400}, "packet_size: 1400"),
        ({"period_ms": 5, "period_rtt": 1}, "period_ms, options.period_rtt"),
    ],
}


@pytest.mark.parametrize("name", UNFIT, indirect=True)
def test_options_that_do_not_fit_together_are_refused_alike_by_the_check_and_by_an_endpoint(
    endpoints: Any, assignment: dict[str, Any], name: str
) -> None:
    for options, named in UNFIT[name]:
        checked = endpoints.check(options).end()
        started = endpoints.start("server", {**assignment, "options": options}).end()
        for code, events, err in (checked, started):
            assert (code, events, err.count("\n")) == (2, [], 1)
            assert named in err


@OF_ANY
def test_a_wrong_call_is_refused_with_one_line(endpoints: Any, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    calls: list[tuple[list[Any], str, str]] = [
        *((arguments, "", "") for arguments in ([], ["/nowhere.json"], ["a", "b"])),
        *((["--check", text], "", "options") for text in ("", "[]", "{", "{}")),
        *(([file], text, str(file)) for text in ("", "[]", "{", '{"version": 1, "colour": "red"}')),
    ]
    for arguments, content, message in calls:
        file.write_text(content)
        code, events, err = endpoints.call(*arguments).end()
        assert (code, events, err.count("\n")) == (2, [], 1)
        assert message in err


@pytest.mark.parametrize("name", [name for name in OF_QUIC if name != "udp"], indirect=True)
def test_what_an_assignment_lacks_is_named_with_the_role_that_needs_it(
    endpoints: Any, assignment: dict[str, Any]
) -> None:
    for role, key in (("client", "authority"), ("server", "certificate")):
        lacking = {name: value for name, value in assignment.items() if name != key}
        code, events, err = endpoints.start(role, lacking).end()
        assert (code, events, err.count("\n")) == (2, [], 1)
        assert f"{key}: missing; a {role} needs it" in err


@pytest.mark.parametrize(
    ("name", "options", "namespace"),
    [
        ("noq-fec", {}, "quic"),
        ("rquic", {"scheme": "none", "http": "hq"}, "transport"),
        ("rquic", {"scheme": "none", "http": "h3"}, "transport"),
    ],
    indirect=["name"],
)
def test_key_log_and_qlog_are_written_only_when_asked_for(
    endpoints: Any, assignment: dict[str, Any], tmp_path: Path, options: dict[str, Any], namespace: str
) -> None:
    workload = {"name": "download", "size_bytes": 100_000}
    assignment = {**assignment, "options": options, "workload": workload}
    endpoints.transfer(assignment)
    assert {path.name for path in tmp_path.rglob("*")} == {"client", "client.json", "server", "server.json"}
    keys, logs = tmp_path / "keys", tmp_path / "logs"
    endpoints.transfer(assignment, SSLKEYLOGFILE=str(keys), QLOGDIR=str(logs))
    assert sum(line.startswith("CLIENT_TRAFFIC_SECRET_0 ") for line in keys.read_text().splitlines()) == 2
    traces = [path.read_text() for path in logs.iterdir()]
    assert len(traces) == 2
    for trace in traces:
        events = {json.loads(record).get("name") for record in trace.split("\x1e")[1:]}
        assert {f"{namespace}:packet_sent", f"{namespace}:packet_received"} <= events


CWND = ["t_s", "connection", "congestion_window_bytes", "bytes_in_flight", "smoothed_rtt_ms"]


SERIES = [(name, series) for name in OF_QUIC for series in IMPLEMENTATIONS[name].get("series", [])]


@pytest.mark.parametrize(("name", "series"), SERIES, indirect=["name"])
def test_both_ends_leave_the_series_that_they_are_asked_for_and_no_other(
    endpoints: Any, assignment: dict[str, Any], tmp_path: Path, rows_of: Any, series: str
) -> None:
    workload = (
        messages("up", 10_000) if series == "messages" else {"name": "download", "size_bytes": 1_000_000}
    )
    endpoints.transfer({**assignment, "workload": workload, "series": [series]})
    for role in ROLES:
        assert [path.name for path in (tmp_path / role).iterdir()] == [f"{series}.series.csv"]
        rows = rows_of(role, series)
        if series == "content" and role == "client":
            assert not rows
            continue
        assert list(rows[0])[:2] == ["t_s", "connection"]
        times = [row["t_s"] for row in rows]
        assert times == sorted(times)
        assert 0 <= times[0] < 1
        assert {row["connection"] for row in rows} == {0}


@pytest.mark.parametrize("name", names(series="cwnd"), indirect=True)
def test_a_server_numbers_the_connections_of_its_clients_and_without_any_leaves_no_rows(
    endpoints: Any, assignment: dict[str, Any], rows_of: Any, tmp_path: Path
) -> None:
    assignment["series"] = ["cwnd"]
    for clients in (0, 2):
        with endpoints.serving(assignment) as server:
            for _ in range(clients):
                endpoints.start("client", assignment).metrics()
            server.process.send_signal(signal.SIGTERM)
            server.metrics(unmeasured=set() if clients else {"smoothed_rtt_ms"})
        if not clients:
            written = (tmp_path / "server" / "cwnd.series.csv").read_text()
            assert written.splitlines() == [",".join(CWND)]
    rows = rows_of("server", "cwnd")
    first = [next(row["t_s"] for row in rows if row["connection"] == number) for number in (0, 1)]
    assert first == sorted(first)
    assert {row["connection"] for row in rows} == {0, 1}


@pytest.mark.parametrize("name", names(series="cwnd"), indirect=True)
def test_the_congestion_window_over_time_ends_with_what_the_metrics_say(
    endpoints: Any, assignment: dict[str, Any], rows_of: Any
) -> None:
    content = {"name": "download", "size_bytes": 1_000_000}
    client, server = endpoints.transfer({**assignment, "workload": content, "series": ["cwnd"]})
    for role, metrics in (("client", client), ("server", server)):
        rows = rows_of(role, "cwnd")
        assert list(rows[0]) == CWND
        last = rows[-1]
        assert last["smoothed_rtt_ms"] == pytest.approx(metrics["smoothed_rtt_ms"], abs=0.001)
        if "congestion_window_bytes" in metrics:
            assert last["congestion_window_bytes"] == metrics["congestion_window_bytes"]
        assert 0 < max(row["bytes_in_flight"] for row in rows) < metrics["bytes_sent"]
        assert last["t_s"] == pytest.approx(client["dct_s"], abs=1)
    # The server's window grows, and each of its packets with content is a change of the bytes in flight.
    assert rows[0]["congestion_window_bytes"] < max(row["congestion_window_bytes"] for row in rows)
    assert len(rows) > 1_000_000 / 1252


@pytest.mark.parametrize("name", names(series="cwnd"), indirect=True)
def test_a_client_that_fails_leaves_its_series(
    endpoints: Any, assignment: dict[str, Any], rows_of: Any
) -> None:
    endpoints.start("client", {**assignment, "deadline_s": 0.3, "series": ["cwnd"]}).failure()
    assert rows_of("client", "cwnd")[0]["bytes_in_flight"] > 0


@OF_ANY
def test_a_series_that_cannot_be_written_is_a_failure_with_one_line(
    endpoints: Any, assignment: dict[str, Any], name: str, tmp_path: Path
) -> None:
    series = IMPLEMENTATIONS[name]["series"][0]
    (tmp_path / "server" / f"{series}.series.csv").mkdir(parents=True)
    with endpoints.serving({**assignment, "series": [series]}) as server:
        server.process.send_signal(signal.SIGTERM)
        code, _, err = server.end()
    assert (code, err.count("\n")) == (1, 1)
    assert f"{series}.series.csv" in err


@OF_ANY
def test_an_unsupported_series_exits_with_127(endpoints: Any, assignment: dict[str, Any], name: str) -> None:
    series = [IMPLEMENTATIONS[name]["series"][0], "pace"]
    for role in ROLES:
        code, events, err = endpoints.start(role, {**assignment, "series": series}).end()
        assert (code, events, err.count("\n")) == (127, [], 1)
        assert 'series: "pace" is not supported' in err
