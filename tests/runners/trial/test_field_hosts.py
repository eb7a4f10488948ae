"""Judging in the field: hosts and addresses; each fault has a sentence, within bounds none."""

from typing import Any

import pytest

from fecbench.runners.tasks.outcome import (
    EndpointOutcome,
    FullPacket,
    HostOutcome,
    Outcome,
    PathOutcome,
    Probe,
)
from fecbench.runners.tasks.task import EndpointTask, PairTask, Task
from fecbench.runners.trial.judge import judge

END = EndpointTask(implementation="noq-fec", options={}, fec=False)
PAIR = PairTask(client=END, server=END, workload={"name": "download", "size_bytes": 1000})
TASK = Task(
    topology="field",
    backend="field",
    links={},
    seeds={"content": 1},
    pairs=[PAIR],
    completion="dct_s",
    timeout_s=10,
)


def outcome(hosts: dict[str, dict[str, Any]] | None = None, changes: list[str] | None = None) -> Outcome:
    """A download of 0.2 s."""
    all_hosts = {"client": HostOutcome(), "server": HostOutcome()}
    all_hosts |= {name: HostOutcome(**host) for name, host in (hosts or {}).items()}
    return Outcome(
        backend="field",
        endpoints={
            "client": EndpointOutcome(metrics={"dct_s": 0.2}, exit_code=0),
            "server": EndpointOutcome(ready=True, metrics={}, exit_code=0),
        },
        client_s=0.25,
        stalled_s=all_hosts["client"].stalled_s,
        path=PathOutcome(
            name="home",
            block="b",
            place=0,
            probes=[
                Probe(sent_s=0, rtt_ms=20, lost_up=False),
                Probe(sent_s=0.02, rtt_ms=None, lost_up=True),
                Probe(sent_s=0.04, rtt_ms=None, lost_up=False),
            ],
            address="192.0.2.1",
            outside="198.51.100.1",
            mtu=1500,
            server_ahead_s=5.0,
            least_rtt_ms=20,
            rested_s=0.1,
            is_rested=True,
            changes=changes or [],
            hosts=all_hosts,
        ),
    )


def test_a_trial_within_all_bounds_is_ok_and_keeps_its_path() -> None:
    judgement = judge(TASK, outcome({"server": {"stalled_s": 0.0099, "clock_leap_s": 0.09}}))
    assert (judgement.state, judgement.reason) == ("ok", "")
    path = judgement.checks.path
    assert path is not None
    assert (path["probes"], path["lost_up"], path["lost_down"], path["rtt_ms"]) == (3, 1, 1, 20)
    assert judgement.series["path", "probes"].to_pydict() == {
        "t_s": [0, 0.02, 0.04],
        "rtt_ms": [20, 0, 0],
        "lost_up": [0, 1, 0],
        "lost_down": [0, 0, 1],
    }


@pytest.mark.parametrize("end", ["client", "server"])
@pytest.mark.parametrize(
    ("host", "why"),
    [
        ({"stalled_s": 0.0101}, "the endpoint was kept from running for 10.1 ms, the bound is 10.0"),
        ({"stalled_s": None, "longest_gap_s": 0.02}, "kept from running for 20.0 ms"),
        ({"stolen_s": 0.02}, "a hypervisor took a CPU for 20.0 ms"),
        ({"discarded": {"UDP receive buffer": 3}}, "3 packets were lost on the host: UDP receive buffer"),
        ({"discarded": {"eth0: send drops": 1}}, "1 packets were lost on the host: eth0: send drops"),
        ({"clock_leap_s": -0.2}, "its clock leapt by -0.200 s"),
    ],
)
def test_what_a_host_did_to_its_endpoint_makes_a_trial_invalid(
    end: str, host: dict[str, Any], why: str
) -> None:
    judgement = judge(TASK, outcome({end: host}))
    assert judgement.state == "invalid"
    assert judgement.reason.startswith(f"{end}: ") and why in judgement.reason


def test_a_change_of_the_path_within_a_block_makes_a_trial_invalid() -> None:
    changed = "the MTU of the path changed within the block from 1500 to 1400"
    judgement = judge(TASK, outcome(changes=[changed]))
    assert (judgement.state, judgement.reason) == ("invalid", changed)
    assert ("path", "probes") in judgement.series


def test_frames_that_nobody_asked_for_disturb_no_trial() -> None:
    judgement = judge(TASK, outcome({"client": {"discarded": {"eth0: receive drops": 50}}}))
    assert judgement.state == "ok"


@pytest.mark.parametrize(
    ("counted", "why"),
    [
        ({"sent_bytes": 60_000, "received_bytes": 1_100_000}, ""),
        ({"sent_bytes": 70_000}, "client: this host sent 56 kB of other traffic beside the 14 kB"),
        ({"received_bytes": 1_200_000}, "client: this host received 138 kB of other traffic"),
        ({"sent_bytes": None, "received_bytes": None}, ""),
    ],
)
def test_other_traffic_of_the_near_host_makes_a_trial_invalid(counted: dict[str, Any], why: str) -> None:
    busy = outcome({"client": counted, "server": {"sent_bytes": 10**9, "received_bytes": 10**9}})
    sent = {"client": (8000, 100), "server": (1_000_000, 1000)}
    for end, (size_bytes, packets) in sent.items():
        metrics = busy.endpoints[end].metrics
        assert metrics is not None
        metrics |= {"bytes_sent": size_bytes, "packets_sent": packets}
    judgement = judge(TASK, busy)
    assert judgement.state == ("invalid" if why else "ok") and judgement.reason.startswith(why)


def test_a_volley_is_kept_as_a_series() -> None:
    flown = outcome()
    assert flown.path is not None
    flown.path.volley = [
        FullPacket(sent_s=0, came_s=0, answered_s=0.5, answer_s=0.55),
        FullPacket(sent_s=0.001, came_s=None, answered_s=0.51, answer_s=None),
    ]
    assert judge(TASK, flown).series["path", "volley"].to_pydict() == {
        "t_s": [0, 0.001],
        "came_s": [0, -1],
        "answered_s": [0.5, 0.51],
        "answer_s": [0.55, -1],
    }


def test_an_impossible_report_fails_in_the_field_too() -> None:
    lying = outcome()
    lying.endpoints["client"].metrics = {"dct_s": 0.3}
    assert judge(TASK, lying).state == "failed"
