"""The judge: what cannot be vouched for is invalid, whatever the endpoints say."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dropper.model import Uniform, pack, verdicts
from runners.trial import judge as verification
from runners.trial.task import DropperOutcome, EndpointOutcome, Outcome, PairTask, Task
from topologies.link import DirectionSettings, LinkSettings

SEEDS = {"content": 1, "internet/up": 5, "internet/down": 6}
PACKETS = {"internet/up": 300, "internet/down": 1000}


def task() -> Task:
    loss = {"model": "uniform", "p": 0.05}
    return Task(
        topology="single-path",
        backend="wire",
        links={"internet": LinkSettings.symmetric(bandwidth_mbps=10, owd_ms=10)},
        late_bounds_us={"internet": 1000},
        losses={"internet": {"up": loss, "down": loss}},
        seeds=SEEDS,
        pairs=[
            PairTask(
                commands={"client": ["client"], "server": ["server"]},
                workload={"name": "download", "size_bytes": 1000},
                options={},
            )
        ],
        timeout_s=10,
        certificates=Path("/nowhere"),
        folder=Path("/nowhere"),
    )


def dropped_by(name: str) -> Any:
    return verdicts(Uniform(0.05), SEEDS[name], PACKETS[name])


def recorded(name: str) -> DropperOutcome:
    return DropperOutcome(
        counters={
            "seen": PACKETS[name],
            "other": 2,
            "dropped": int(dropped_by(name).sum()),
            "gso": 0,
            "truncated": 0,
        },
        packets=PACKETS[name],
        bitmap_base64=base64.b64encode(pack(dropped_by(name))).decode(),
    )


def outcome() -> Outcome:
    """A trial with which nothing is wrong."""
    return Outcome(
        backend="wire",
        endpoints={
            "client": EndpointOutcome(metrics={"dct_s": 1.0}, exit_code=0),
            "server": EndpointOutcome(ready=True, metrics={}, exit_code=0),
        },
        links={
            "internet": {
                "directions": {
                    direction: {
                        "frames_out": PACKETS[f"internet/{direction}"] + 2,
                        "late": 0,
                        "conserved": True,
                    }
                    for direction in ("up", "down")
                }
            }
        },
        droppers={name: recorded(name) for name in PACKETS},
    )


def test_a_trial_with_which_nothing_is_wrong_is_ok() -> None:
    judgement = verification.judge(task(), outcome())
    assert (judgement.state, judgement.reason) == ("ok", "")
    assert judgement.checks["verdicts"]["internet/down"]["differing"] == 0


def flip_one_verdict(broken: Outcome) -> None:
    name = "internet/down"
    bits = np.array(dropped_by(name))
    bits[123] ^= True
    broken.droppers[name].bitmap_base64 = base64.b64encode(pack(bits)).decode()


def count_one_drop_more(broken: Outcome) -> None:
    broken.droppers["internet/up"].counters["dropped"] += 1


def see_a_super_packet(broken: Outcome) -> None:
    broken.droppers["internet/up"].counters["gso"] = 1


def lose_a_packet_on_the_link(broken: Outcome) -> None:
    broken.links["internet"]["directions"]["down"]["conserved"] = False


def let_a_packet_pass_the_dropper_unseen(broken: Outcome) -> None:
    broken.links["internet"]["directions"]["down"]["frames_out"] += 1


def be_late_too_often(broken: Outcome) -> None:
    broken.links["internet"]["directions"]["down"]["late"] = 11


def keep_endpoints_from_running(broken: Outcome) -> None:
    broken.stalled_s = 0.0501


def starve_until_the_timeout(broken: Outcome) -> None:
    broken.timed_out, broken.stalled_s = True, 0.501
    broken.endpoints["client"].metrics = None


def fail_in_the_harness(broken: Outcome) -> None:
    broken.failure = "LinkError: the wire ended"


@pytest.mark.parametrize(
    ("breakage", "said"),
    [
        (flip_one_verdict, "1 of 1000 verdicts differ from the oracle's, first at packet 123"),
        (count_one_drop_more, "the oracle says"),
        (see_a_super_packet, "gso"),
        (lose_a_packet_on_the_link, "did not conserve"),
        (let_a_packet_pass_the_dropper_unseen, "the link sent 1003 packets, the dropper met 1002"),
        (be_late_too_often, "11 of 1002 packets left the emulator later"),
        (keep_endpoints_from_running, "kept from running for 50.1 ms, the bound is 50.0"),
        (starve_until_the_timeout, "kept from running for 501.0 ms, the bound is 500.0"),
        (fail_in_the_harness, "the wire ended"),
    ],
)
def test_what_the_harness_cannot_vouch_for_is_invalid(breakage: Callable[[Outcome], None], said: str) -> None:
    broken = outcome()
    breakage(broken)
    broken.endpoints["client"].exit_code = 1  # invalid goes before failed
    judgement = verification.judge(task(), broken)
    assert judgement.state == "invalid"
    assert said in judgement.reason


def test_one_packet_in_a_hundred_may_be_late() -> None:
    late = outcome()
    late.links["internet"]["directions"]["down"]["late"] = 10
    assert verification.judge(task(), late).state == "ok"


def test_endpoints_may_be_kept_from_running_for_a_twentieth_of_the_completion_time() -> None:
    stalled = outcome()
    stalled.stalled_s = 0.05
    judgement = verification.judge(task(), stalled)
    assert judgement.state == "ok"
    assert judgement.checks["stalled_s"] == 0.05


def test_a_short_download_may_be_stalled_for_5_ms() -> None:
    short = outcome()
    short.endpoints["client"].metrics = {"dct_s": 0.02}
    short.stalled_s = 0.005
    assert verification.judge(task(), short).state == "ok"


def test_a_program_that_fails_has_failed_whatever_it_had_to_wait_for() -> None:
    failing = outcome()
    failing.endpoints["client"] = EndpointOutcome(exit_code=1)
    failing.stalled_s = 3.0
    assert verification.judge(task(), failing).state == "failed"


def client_fails(broken: Outcome) -> None:
    broken.endpoints["client"] = EndpointOutcome(exit_code=1, stderr="noise\nthe cause\n")


def client_says_nothing(broken: Outcome) -> None:
    broken.endpoints["client"].metrics = None


def client_talks_nonsense(broken: Outcome) -> None:
    broken.endpoints["client"].complaint = "wrote b'x'"


def client_was_instant(broken: Outcome) -> None:
    broken.endpoints["client"].metrics = {"dct_s": 0.0}


def server_dies(broken: Outcome) -> None:
    broken.endpoints["server"].exit_code = -9


def server_never_gets_ready(broken: Outcome) -> None:
    broken.endpoints = {"server": EndpointOutcome(exit_code=0, metrics={}, stderr="")}


def client_takes_too_long(broken: Outcome) -> None:
    broken.timed_out = True
    broken.endpoints["client"].exit_code = -9


def client_does_not_support_it(broken: Outcome) -> None:
    broken.endpoints["client"] = EndpointOutcome(exit_code=127, stderr="no such workload")


@pytest.mark.parametrize(
    ("breakage", "state", "said"),
    [
        (client_fails, "failed", "client ended with 1: the cause"),
        (client_says_nothing, "failed", "client ended without a done message"),
        (client_talks_nonsense, "failed", "client wrote b'x'"),
        (client_was_instant, "failed", "no dct_s above 0"),
        (server_dies, "failed", "server ended with -9"),
        (server_never_gets_ready, "failed", "server was not ready"),
        (client_takes_too_long, "timeout", "did not end in time"),
        (client_does_not_support_it, "unsupported", "no such workload"),
    ],
)
def test_the_state_of_endpoints_is_told_with_its_reason(
    breakage: Callable[[Outcome], None], state: str, said: str
) -> None:
    broken = outcome()
    breakage(broken)
    judgement = verification.judge(task(), broken)
    assert (judgement.state, said in judgement.reason) == (state, True), judgement.reason


def test_more_packets_than_the_bitmap_holds_are_judged_by_their_total() -> None:
    """The dropper records the first 2**20 verdicts only; here the first 64."""
    short = outcome()
    name = "internet/down"
    short.droppers[name].bitmap_base64 = base64.b64encode(pack(dropped_by(name))[:8]).decode()
    assert verification.judge(task(), short).state == "ok"
    short.droppers[name].counters["dropped"] += 1
    assert verification.judge(task(), short).state == "invalid"


def test_the_lateness_bound_of_a_link_is_that_of_its_shorter_direction() -> None:
    satellite = LinkSettings(up=DirectionSettings(1, 300), down=DirectionSettings(20, 250))
    cellular = LinkSettings(up=DirectionSettings(5, 40), down=DirectionSettings(50, 60))
    cable = LinkSettings.symmetric(1000, 1)
    # 5 % of the OWD, and no less than 1 ms
    bounds_us = [verification.late_bound_us(link) for link in (satellite, cellular, cable)]
    assert bounds_us == [12_500, 2000, 1000]
