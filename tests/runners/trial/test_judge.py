"""The judge: what cannot be vouched for is invalid, whatever the endpoints say."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dropper.command import Counters
from dropper.model import Uniform, pack, verdicts
from runners.trial.judge import judge
from runners.trial.outcome import DropperOutcome, EndpointOutcome, Outcome
from runners.trial.task import EndpointTask, LinkTask, PairTask, Seeds, Task
from topologies.link import DIRECTIONS, Direction, LinkSettings
from topologies.link_report import DirectionConfiguration, DirectionReport, LinkConfiguration, LinkReport

SEEDS: dict[Direction, int] = {"up": 5, "down": 6}
PACKETS: dict[Direction, int] = {"up": 300, "down": 1000}
OTHER_PACKETS = 2


def task() -> Task:
    loss = {"model": "uniform", "p": 0.05}
    end = EndpointTask(implementation="script", options={})
    return Task(
        topology="single-path",
        backend="wire",
        links={
            "internet": LinkTask(
                settings=LinkSettings.symmetric(bandwidth_mbps=10, owd_ms=10),
                late_bound_us=1000,
                losses={"up": loss, "down": loss},
            )
        },
        seeds=Seeds(content=1, losses={"internet": SEEDS}),
        pairs=[PairTask(client=end, server=end, workload={"name": "download", "size_bytes": 1000})],
        completion="dct_s",
        timeout_s=10,
    )


def dropped_by(direction: Direction) -> Any:
    return verdicts(Uniform(0.05), SEEDS[direction], PACKETS[direction])


def recorded(direction: Direction) -> DropperOutcome:
    dropped = dropped_by(direction)
    counters = Counters(
        seen=PACKETS[direction],
        dropped=int(dropped.sum()),
        other=OTHER_PACKETS,
        gso=0,
        truncated=0,
        fragments=0,
    )
    return DropperOutcome(counters=counters, packets=PACKETS[direction], bitmap=pack(dropped))


def reported(direction: Direction) -> DirectionReport:
    frames = PACKETS[direction] + OTHER_PACKETS
    return DirectionReport(
        frames_in=frames,
        bytes_in=None,
        queue_dropped=0,
        oversize_dropped=0,
        frames_out=frames,
        bytes_out=1000 * frames,
        in_flight=0,
        max_queue_bytes=None,
        max_queue_packets=None,
        write_errors=0,
        kernel_dropped=0,
        lateness_us=None,
        read_lag_us=None,
        late=0,
        conserved=True,
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
            "internet": LinkReport(
                backend="wire",
                version="0",
                command=[],
                configuration=LinkConfiguration(
                    up=DirectionConfiguration(rate_bps=10_000_000, delay_ns=10_000_000, queue_bytes=37_500),
                    down=DirectionConfiguration(rate_bps=10_000_000, delay_ns=10_000_000, queue_bytes=37_500),
                    mtu=1500,
                ),
                scheduling=None,
                cpu_s=None,
                elapsed_s=None,
                late_bound_us=1000,
                directions={direction: reported(direction) for direction in DIRECTIONS},
            )
        },
        droppers={"internet": {direction: recorded(direction) for direction in DIRECTIONS}},
    )


def change_recorded(broken: Outcome, direction: Direction, **counters: int) -> None:
    dropper = broken.droppers["internet"][direction]
    dropper.counters = replace(dropper.counters, **counters)


def change_reported(broken: Outcome, **changes: object) -> None:
    """Of the link's report downwards."""
    directions = broken.links["internet"].directions
    directions["down"] = directions["down"].model_copy(update=changes)


def test_a_trial_with_which_nothing_is_wrong_is_ok() -> None:
    judgement = judge(task(), outcome())
    assert (judgement.state, judgement.reason) == ("ok", "")
    assert judgement.verdicts["internet", "down"].differing == 0


def flip_one_verdict(broken: Outcome) -> None:
    bits = np.array(dropped_by("down"))
    bits[123] ^= True
    broken.droppers["internet"]["down"].bitmap = pack(bits)


def count_one_drop_more(broken: Outcome) -> None:
    change_recorded(broken, "up", dropped=int(dropped_by("up").sum()) + 1)


def see_a_super_packet(broken: Outcome) -> None:
    change_recorded(broken, "up", gso=1)


def lose_a_packet_on_the_link(broken: Outcome) -> None:
    change_reported(broken, conserved=False)


def let_a_packet_pass_the_dropper_unseen(broken: Outcome) -> None:
    change_reported(broken, frames_out=PACKETS["down"] + OTHER_PACKETS + 1)


def be_late_too_often(broken: Outcome) -> None:
    change_reported(broken, late=11)


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
    judgement = judge(task(), broken)
    assert judgement.state == "invalid"
    assert said in judgement.reason


def test_one_packet_in_a_hundred_may_be_late() -> None:
    late = outcome()
    change_reported(late, late=10)
    assert judge(task(), late).state == "ok"


def test_endpoints_may_be_kept_from_running_for_a_twentieth_of_the_completion_time() -> None:
    stalled = outcome()
    stalled.stalled_s = 0.05
    judgement = judge(task(), stalled)
    assert judgement.state == "ok"
    assert judgement.stalled_s == 0.05


def test_a_short_download_may_be_stalled_for_5_ms() -> None:
    short = outcome()
    short.endpoints["client"].metrics = {"dct_s": 0.02}
    short.stalled_s = 0.005
    assert judge(task(), short).state == "ok"


def test_a_program_that_fails_has_failed_whatever_it_had_to_wait_for() -> None:
    failing = outcome()
    failing.endpoints["client"] = EndpointOutcome(exit_code=1)
    failing.stalled_s = 3.0
    assert judge(task(), failing).state == "failed"


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
    judgement = judge(task(), broken)
    assert (judgement.state, said in judgement.reason) == (state, True), judgement.reason


def test_more_packets_than_the_bitmap_holds_are_judged_by_their_total() -> None:
    """The dropper records the first 2**20 verdicts only; here the first 64."""
    short = outcome()
    short.droppers["internet"]["down"].bitmap = pack(dropped_by("down"))[:8]
    assert judge(task(), short).state == "ok"
    change_recorded(short, "down", dropped=int(dropped_by("down").sum()) + 1)
    assert judge(task(), short).state == "invalid"


def test_a_series_is_read_and_kept_by_endpoint_and_name() -> None:
    left = outcome()
    left.endpoints["server"].series = {"cwnd": b"t_s,window_bytes\n0,100\n0.5,200\n"}
    judgement = judge(task(), left)
    assert judgement.state == "ok"
    table = judgement.series["server", "cwnd"]
    assert table.to_pydict() == {"t_s": [0, 0.5], "window_bytes": [100, 200]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "column ''"),
        (b"window_bytes,t_s\n1,2\n", "must be t_s and others"),
        (b"t_s\n1\n", "must be t_s and others"),
        (b"t_s,a,a\n1,2,3\n", "must be t_s and others"),
        (b"t_s,<b>\n1,2\n", "column '<b>': must be a name"),
        (b"t_s,a\n1,nan\n", "column a: has a value that is not finite"),
        (b"t_s,a\n1,inf\n", "column a: has a value that is not finite"),
        (b"t_s,a\n1,\n", "series cwnd: "),
        (b"t_s,a\n1,two\n", "series cwnd: "),
        (b"t_s,a\n1,2,3\n", "series cwnd: "),
        (b"\xff\x00", "column "),
    ],
)
def test_a_series_that_cannot_be_read_is_a_failure(content: bytes, said: str) -> None:
    broken = outcome()
    broken.endpoints["server"].series = {"cwnd": content}
    judgement = judge(task(), broken)
    assert (judgement.state, judgement.series) == ("failed", {})
    assert judgement.reason.startswith("server: series cwnd: ")
    assert said in judgement.reason
    assert "\n" not in judgement.reason
