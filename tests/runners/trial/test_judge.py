"""The judge: what cannot be vouched for is invalid, whatever the endpoints say."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from fecbench.dropper.command import Counters
from fecbench.dropper.draws import pack
from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import GilbertElliott, Pattern, Uniform, dropped_packets, verdicts
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.outcome import Competition, DropperOutcome, EndpointOutcome, Outcome
from fecbench.runners.tasks.task import InteropTask, Task
from fecbench.runners.tasks.validity import Validity
from fecbench.runners.trial import judging
from fecbench.runners.trial.judge import judge
from fecbench.runners.trial.judging.endpoints import state_by_ends, succeeded
from fecbench.topologies.jitter import Jitter
from fecbench.topologies.link import DIRECTIONS, Direction, LinkSettings
from fecbench.topologies.link_report import DirectionConfiguration, LinkConfiguration, Quantiles
from fecbench.topologies.trace import Trace
from tests.support import tasks
from tests.support.link_reports import direction_report, link_report

SEEDS: dict[Direction, int] = {"up": 5, "down": 6}
PACKETS: dict[Direction, int] = {"up": 300, "down": 1000}
OTHER_PACKETS = 2
SIZE_BYTES = 900_000
QUEUE_BYTES = 37_500
"""Queue of a link of 10 Mbps with an RTT of 20 ms: 1.5 times what is on its way."""


def task() -> Task:
    loss = {"model": "uniform", "p": 0.05}
    link = tasks.link(LinkSettings.symmetric(10, 10), loss, loss, late_bound_us=1000)
    workload, demand = {"name": "download", "size_bytes": SIZE_BYTES}, Demand(0, SIZE_BYTES, 1)
    pair, seeds = tasks.pair(workload=workload, demand=demand), tasks.seeds(1, {"internet": SEEDS})
    return tasks.task(link, pair, seeds=seeds, timeout_s=10, validity=Validity())


def task_with(
    client_fec: bool | None = None,
    server_fec: bool | None = None,
    owes_repair: bool = True,
    owes_source: bool = True,
    **demand: float,
) -> Task:
    """The task with another switch of FEC at its ends, and another demand."""
    usual = task()
    (pair,) = usual.pairs
    owed = {"owes_repair": owes_repair, "owes_source": owes_source}
    client = pair.client.model_copy(update={"fec": client_fec, **owed})
    server = pair.server.model_copy(update={"fec": server_fec, **owed})
    changes = {"client": client, "server": server, "demand": replace(pair.demand, **demand)}
    return usual.model_copy(update={"pairs": [pair.model_copy(update=changes)]})


def dropped_by(direction: Direction) -> Any:
    return verdicts(Uniform(0.05), SEEDS[direction], PACKETS[direction])


def recorded(direction: Direction) -> DropperOutcome:
    dropped = dropped_by(direction)
    packets = PACKETS[direction]
    counters = Counters(packets, int(dropped.sum()), OTHER_PACKETS, gso=0, truncated=0, fragments=0)
    return DropperOutcome(counters=counters, packets=packets, bitmap=pack(dropped))


def outcome() -> Outcome:
    """A trial with which nothing is wrong."""
    series = DirectionConfiguration(rate_bps=10_000_000, delay_ns=10_000_000, queue_bytes=QUEUE_BYTES)
    configuration = LinkConfiguration(up=series, down=series, mtu=1500)
    carried = {way: direction_report(PACKETS[way] + OTHER_PACKETS) for way in DIRECTIONS}
    return Outcome(
        backend="wire",
        client_s=1.1,
        endpoints={
            "client": EndpointOutcome(metrics={"dct_s": 1.0}, exit_code=0),
            "server": EndpointOutcome(ready=True, metrics={}, exit_code=0),
        },
        links={"internet": link_report(carried, configuration=configuration, version="0", command=[])},
        droppers={"internet": {direction: recorded(direction) for direction in DIRECTIONS}},
    )


Change = Callable[[Outcome], None]


def changed(*changes: Change) -> Outcome:
    """A trial with which nothing else is wrong."""
    it = outcome()
    for change in changes:
        change(it)
    return it


def had(**fields: object) -> Change:
    """Fields of the outcome."""

    def change(it: Outcome) -> None:
        for name, value in fields.items():
            setattr(it, name, value)

    return change


def endpoint(name: str, **fields: object) -> Change:
    """Fields of an endpoint that are not as they were."""

    def change(it: Outcome) -> None:
        for field, value in fields.items():
            setattr(it.endpoints[name], field, value)

    return change


def met(direction: Direction, **counters: int) -> Change:
    """Counters of the dropper."""
    return lambda it: change_recorded(it, direction, **counters)


def carried(**counters: object) -> Change:
    """Counters of the link downwards."""
    return lambda it: change_reported(it, **counters)


def frames_down(frames: int) -> Change:
    size = 1000 * frames
    return carried(frames_in=frames, frames_out=frames, bytes_in=size, bytes_out=size)


def change_recorded(broken: Outcome, direction: Direction, **counters: int) -> None:
    dropper = broken.droppers["internet"][direction]
    dropper.counters = replace(dropper.counters, **counters)


def change_reported(broken: Outcome, **changes: object) -> None:
    """Change the link's report downwards."""
    directions = broken.links["internet"].directions
    directions["down"] = directions["down"].model_copy(update=changes)


def change_configured(broken: Outcome, **changes: object) -> None:
    """Change the link's configuration downwards, as it reports it."""
    report = broken.links["internet"]
    assert report.configuration is not None
    down = report.configuration.down.model_copy(update=changes)
    configuration = report.configuration.model_copy(update={"down": down})
    broken.links["internet"] = report.model_copy(update={"configuration": configuration})


def test_a_link_that_was_told_something_else_is_another_link() -> None:
    for name, value in {
        "rate_bps": 9_999_999,
        "delay_ns": 0,
        "queue_bytes": 37_501,
        "queue_packets": 1000,
        "queue": "codel",
        "outage_ns": (0, 1),
    }.items():
        other = outcome()
        change_configured(other, **{name: value})
        judgement = judge(task(), other)
        assert judgement.state == "invalid"
        assert f"internet/down: the link had {name} = {value}" in judgement.reason


def test_a_trial_with_which_nothing_is_wrong_is_ok() -> None:
    judgement = judge(task(), outcome())
    assert (judgement.state, judgement.reason) == ("ok", "")
    assert judgement.checks.verdicts["internet", "down"].differing == 0


def flip_one_verdict(broken: Outcome) -> None:
    bits = np.array(dropped_by("down"))
    bits[123] ^= True
    broken.droppers["internet"]["down"].bitmap = pack(bits)


def overdue(ms: float, frames: int = 10, together_ms: float | None = None) -> Change:
    """Frames that are late by so much; together, or one after another for `together_ms`."""
    quantiles = Quantiles(p50=10, p99=20, p999=1e3 * ms, max=1e3 * ms)
    late_sum_us = 1e3 * (together_ms or ms) * bool(frames)
    return carried(late=frames, late_sum_us=late_sum_us, lateness_us=quantiles)


def compete(filling_s: float, *mbps: float, lasted_s: float | None = None) -> Change:
    """Report the rates of the foreground and of the background."""
    names = ("filling_s", "foreground_mbps", "background_mbps")
    rates = dict(zip(names, (filling_s, *mbps), strict=True))
    return had(competition=Competition(**rates, lasted_s=lasted_s))


def exist(elapsed_s: float | None, **fields: object) -> Change:
    def change(broken: Outcome) -> None:
        fields["elapsed_s"] = elapsed_s
        broken.links["internet"] = broken.links["internet"].model_copy(update=fields)

    return change


def lost_at(node: str, place: str, packets: int = 3) -> Change:
    return had(discarded={node: {place: packets}})


def gap(seconds: float) -> Change:
    """The kernel tells nothing of endpoints, so a gap of the watch counts."""
    return had(stalled_s=None, longest_gap_s=seconds)


AS_USUAL = had()
# What the harness can just vouch for, what it cannot, and what is said of it. A twentieth of the completion
# time may be late, stolen or waited; and one packet in a hundred late. 1,002 frames went down, of 34 to 1,514
# bytes; 1,002,000 bytes but for a burst of 64 KiB take 749 ms.
INVALID = [
    (AS_USUAL, flip_one_verdict, "1 of 1000 verdicts differ from the oracle's, first at packet 123"),
    (AS_USUAL, met("up", dropped=int(dropped_by("up").sum()) + 1), "the oracle says"),
    (AS_USUAL, met("up", gso=1), "gso"),
    (AS_USUAL, carried(conserved=False), "did not conserve"),
    (
        AS_USUAL,
        carried(outage_dropped=1),
        "internet/down: the link was out and dropped 1 packets, and has no",
    ),
    (
        *(carried(max_queue_bytes=QUEUE_BYTES), carried(max_queue_bytes=QUEUE_BYTES + 1)),
        f"the queue held {QUEUE_BYTES + 1} bytes, its limit is {QUEUE_BYTES}",
    ),
    (carried(frames_out=1002), carried(frames_out=1003), "the link sent 1003 packets, the dropper met 1002"),
    (carried(late=10), carried(late=11), "11 of 1002 packets left the emulator later"),
    (had(stalled_s=0.05), had(stalled_s=0.0501), "kept from running for 50.1 ms, the bound is 50.0"),
    (AS_USUAL, had(failure="LinkError: the wire ended"), "the wire ended"),
    (overdue(50), overdue(50.1), "internet/down: packets were overdue for 50.1 ms, the bound is 50.0"),
    (overdue(3000, frames=0), overdue(3000), "overdue for 3000.0 ms, the bound is 50.0"),
    (overdue(6, together_ms=50), overdue(6, together_ms=51), "overdue for 51.0 ms, the bound is 50.0"),
    (had(stolen_s=0.05), had(stolen_s=0.06), "a hypervisor took a CPU for 60.0 ms, the bound is 50.0"),
    (gap(0.05), gap(0.051), "nobody could look at the endpoints for 51.0 ms"),
    (AS_USUAL, lost_at("r1", "r1-client: receive drops"), "3 packets were lost at r1"),
    (AS_USUAL, lost_at("client", "UDP checksum"), "3 packets were lost at client"),
    (AS_USUAL, lost_at("server", "UDP memory of the machine"), "3 packets were lost at server"),
    (had(client_s=20.0), had(client_s=20.1), "the client ran for 20.1 s, and its time limit is 10 s"),
    (had(client_s=1.1), had(client_s=-0.1), "the client ran for -0.1 s"),
    (compete(0, 5, 5.5), compete(-1, 5, 5.5), "the link was full after -1 s"),
    (compete(1, 0, 10.5), compete(1, -1, 10.5), "came at -1 and 10.5 Mbit/s over a link of 10"),
    (compete(1, 5, 5.5), compete(1, 5, 5.6), "came at 5 and 5.6 Mbit/s over a link of 10"),
    # In 20 ms come 25,000 bytes, and a frame that began before.
    (compete(1, 5, 6.1, lasted_s=0.02), compete(1, 5, 6.2, lasted_s=0.02), "came at 5 and 6.2 Mbit/s"),
    (carried(bytes_in=34 * 1002), carried(bytes_in=34 * 1002 - 1), "1002 frames: a frame has 34 to 1514"),
    (carried(bytes_out=1517028), carried(bytes_out=1517029), "bytes_out = 1517029 of 1002 frames"),
    (exist(0.7492), exist(0.7491), "the link sent 1002000 bytes in 0.7491 s, and its rate is 10 Mbit/s"),
]


def test_what_the_harness_cannot_vouch_for_is_invalid_and_what_it_just_can_is_ok() -> None:
    for within, beyond, message in INVALID:
        fine = judge(task(), changed(within))
        assert (fine.state, fine.reason) == ("ok", "")
        for goes_before in (AS_USUAL, endpoint("client", exit_code=1)):
            judgement = judge(task(), changed(beyond, goes_before))
            assert judgement.state == "invalid"
            assert message in judgement.reason


def over(settings: LinkSettings) -> Task:
    """The task over another link."""
    usual = task()
    link = usual.links["internet"].model_copy(update={"settings": settings})
    drawing = {f"internet/{name}": 5 for name in settings.drawn}
    return usual.model_copy(update={"links": {"internet": link}, "seeds": {**usual.seeds, **drawing}})


def downwards(**changes: Any) -> LinkSettings:
    usual = task().settings_of("internet")
    return replace(usual, down=replace(usual.down, **changes))


UNCONFIGURED = exist(None, configuration=None)


def test_a_queue_in_time_or_of_packets_holds_its_limit_and_no_more() -> None:
    """20 ms of a trace of 5 and 10 Mbit/s, at the larger rate; or 5 packets."""
    trace = Trace.of((10**6, 10**6), rate_bps=(10**7, 5 * 10**6))
    usual, packets = task().settings_of("internet"), downwards(queue_packets=5)
    down = replace(usual.down, trace=trace, queue_ms=20)
    in_time = replace(usual, up=replace(usual.up, queue_bytes=QUEUE_BYTES), down=down)
    for beyond, state in ((0, "ok"), (1, "invalid")):
        filled = changed(carried(max_queue_bytes=25_000 + beyond), UNCONFIGURED)
        assert judge(over(in_time), filled).state == state
        filled = changed(carried(max_queue_packets=5 + beyond, max_queue_bytes=10**9), UNCONFIGURED)
        assert judge(over(packets), filled).state == state


def test_transfers_that_compete_may_bring_what_the_delay_had_held_back() -> None:
    """The delay may hold back up to 120 ms of the rate in one second."""
    for jitter, state in ((None, "invalid"), (Jitter(60, seed=1), "ok")):
        trial_task = over(downwards(jitter=jitter))
        assert judge(trial_task, changed(compete(1, 5, 6), UNCONFIGURED)).state == state


def test_a_program_that_fails_has_failed_whatever_it_had_to_wait_for() -> None:
    failing = changed(endpoint("client", exit_code=1, metrics=None), had(stalled_s=3.0))
    assert judge(task(), failing).state == "failed"


def timed_out(broken: Outcome) -> None:
    broken.timed_out = True
    broken.endpoints["client"].exit_code = -9


# How endpoints end: what they did, the state and its reason.
NO_SERVER = had(endpoints={"server": EndpointOutcome(exit_code=0, metrics={}, stderr="")})
UNSUCCESSFUL: list[tuple[Change, str, str]] = [
    (
        endpoint("client", exit_code=1, metrics=None, stderr="noise\nwhy\n"),
        "failed",
        "client ended with 1: why",
    ),
    (endpoint("client", metrics=None), "failed", "client ended without a done message"),
    (endpoint("client", complaint="wrote b'x'"), "failed", "client wrote b'x'"),
    (endpoint("server", exit_code=-9), "failed", "server ended with -9 (Killed): "),
    (NO_SERVER, "failed", "server was not ready"),
    (timed_out, "timeout", "did not end in time"),
]
OTHER_ENDS: list[tuple[Change, str, str]] = [
    (endpoint("client", metrics={"dct_s": 0.0}), "failed", "no dct_s above 0"),
    (endpoint("client", exit_code=127, metrics=None, stderr="none such"), "unsupported", "none such"),
]


def test_the_state_of_endpoints_is_told_with_its_reason() -> None:
    for result, state, message in UNSUCCESSFUL + OTHER_ENDS:
        judgement = judge(task(), changed(result))
        assert (judgement.state, message in judgement.reason) == (state, True), judgement.reason


def test_whether_endpoints_succeeded_is_known_of_an_invalid_trial() -> None:
    stalled = had(stalled_s=0.0501)
    assert judge(task(), changed(stalled)).state == "invalid"
    assert succeeded(changed(stalled))
    for result, _, _ in UNSUCCESSFUL:
        assert not succeeded(changed(stalled, result))


HINDRANCES: tuple[Change, ...] = (
    AS_USUAL,
    had(stalled_s=0.0501),
    had(longest_gap_s=30.0, stalled_s=None),
    had(stolen_s=9.0),
    carried(late=1000, late_sum_us=4e6),
)
"""Effects of a busy machine on a trial; the first has none."""


def test_what_both_ends_said_is_the_same_state_on_a_busy_machine() -> None:
    """This includes FEC that should have been sent, but was not."""
    no_fec = ("failed", "server: FEC is on, but no source symbol was sent (source_sent)")
    for hindrance in HINDRANCES:
        for result, state, message in (*UNSUCCESSFUL, *OTHER_ENDS[1:], (AS_USUAL, "ok", "")):
            by_ends, reason = state_by_ends(task(), changed(result, hindrance))
            assert (by_ends, message in reason) == (state, True), reason
        assert state_by_ends(task_with(client_fec=True, server_fec=True), changed(hindrance)) == no_fec


def test_a_server_that_had_to_be_ended_is_told_from_one_that_died() -> None:
    judgement = judge(task(), changed(endpoint("server", exit_code=-15, was_forced=True)))
    why = "server ended with -15 (Terminated, since it did not end in time when it was asked to): "
    assert (judgement.state, why in judgement.reason) == ("failed", True), judgement.reason


def test_a_server_that_was_too_slow_may_have_had_no_time_for_it() -> None:
    for fields in ({"was_slow": True, "exit_code": -9}, {"was_forced": True, "exit_code": None}):
        assert state_by_ends(task(), changed(endpoint("server", **fields)))[0] == "timeout"


def test_more_packets_than_the_bitmap_holds_are_judged_by_their_total() -> None:
    """The dropper records the first 2**20 verdicts only; here the first 64."""
    short = outcome()
    short.droppers["internet"]["down"].bitmap = recorded("down").bitmap[:8]
    assert judge(task(), short).state == "ok"
    change_recorded(short, "down", dropped=int(dropped_by("down").sum()) + 1)
    assert judge(task(), short).state == "invalid"


def test_a_series_is_read_and_kept_by_endpoint_and_name_and_one_that_cannot_be_read_is_a_failure() -> None:
    written = b"t_s,window_bytes\n0,100\n0.5,200\n"
    judgement = judge(task(), changed(endpoint("server", series={"cwnd": written})))
    assert judgement.state == "ok"
    table = judgement.series["server", "cwnd"]
    assert table.to_pydict() == {"t_s": [0, 0.5], "window_bytes": [100, 200]}
    for content, message in {
        b"": "column ''",
        b"t_s\n1\n": "must be t_s and others",
        b"t_s,a,a\n1,2,3\n": "must be t_s and others",
        b"t_s,<b>\n1,2\n": "column '<b>': must be a name",
        b"t_s,a\n1,nan\n": "column a: has a value that is not finite",
        b"t_s,a\n1,\n": "",
        b"t_s,a\n1,2,3\n": "",
        b"\xff\x00": "column ",
    }.items():
        judgement = judge(task(), changed(endpoint("server", series={"cwnd": content})))
        assert (judgement.state, judgement.series) == ("failed", {})
        assert judgement.reason.startswith("server: series cwnd: ")
        assert message in judgement.reason
        assert "\n" not in judgement.reason


# ---- What the harness or the machine did: invalid ----


def test_a_short_download_may_be_late_by_5_ms_and_lose_one_tick_of_a_cpu() -> None:
    trial_task, short = task_with(down_bytes=1000), endpoint("client", metrics={"dct_s": 0.03})
    within = (overdue(5), had(stolen_s=0.01, stalled_s=0.005))
    assert judge(trial_task, changed(short, *within)).state == "ok"
    for beyond in (overdue(5.1), had(stolen_s=0.02), had(stalled_s=0.0051)):
        assert judge(trial_task, changed(short, *within, beyond)).state == "invalid"


def test_a_timeout_is_judged_by_its_limit() -> None:
    result = (had(timed_out=True), endpoint("client", metrics=None))
    for bound in (overdue(500), had(stalled_s=0.5)):
        assert judge(task(), changed(*result, bound)).state == "timeout"
    assert judge(task(), changed(*result, overdue(501))).state == "invalid"
    starved = judge(task(), changed(*result, had(stalled_s=0.501)))
    assert starved.state == "invalid"
    assert "kept from running for 501.0 ms, the bound is 500.0" in starved.reason


def test_the_bounds_are_those_of_the_task() -> None:
    lenient = task().model_copy(update={"validity": Validity(late_time_share=3.0)})
    assert judge(lenient, changed(overdue(3000))).state == "ok"


def test_what_was_measured_is_told_of_a_trial_that_is_ok_too() -> None:
    times = had(stolen_s=0.01, longest_gap_s=0.012, stalled_s=0.002, backlog_drops=7)
    checks = judge(task(), changed(overdue(40), times)).checks
    assert (checks.late_max_ms, checks.late_sum_ms) == pytest.approx((40, 40))
    assert (checks.stolen_s, checks.watch_gap_s, checks.stalled_s) == (0.01, 0.012, 0.002)
    assert checks.backlog_drops == 7


def test_a_backend_that_does_not_know_its_lateness_has_none() -> None:
    judgement = judge(task(), changed(carried(late=None)))
    assert judgement.state == "ok"
    assert (judgement.checks.late_max_ms, judgement.checks.late_sum_ms) == (None, None)


def overflow(node: str) -> Change:
    return lost_at(node, "UDP receive buffer", 12)


def test_a_full_buffer_of_a_socket_is_the_endpoints_failure_with_its_place_and_the_mend() -> None:
    judgement = judge(task(), changed(overflow("client")))
    assert judgement.state == "failed"
    assert "12 packets were lost at client" in judgement.reason
    assert "SO_RCVBUF" in judgement.reason
    assert judgement.checks.lost_elsewhere == {"client": {"UDP receive buffer": 12}}
    assert judge(task(), changed(overflow("server"), had(timed_out=True))).state == "failed"


def test_a_full_buffer_is_the_machines_when_the_endpoint_was_kept_from_emptying_it() -> None:
    # Below the bound; 33,750 bytes can have come meanwhile.
    judgement = judge(task(), changed(overflow("client"), had(stalled_s=0.027)))
    assert judgement.state == "invalid"
    assert "kept from running for 27.0 ms" in judgement.reason
    enough = changed(overflow("client"), had(stalled_s=0.025))
    assert judge(task(), enough).state == "failed", "a buffer that 31,250 bytes fill is too small"


def test_a_server_is_to_blame_for_its_limits_only_if_it_had_the_cpu() -> None:
    never = {"server": EndpointOutcome(was_slow=True, exit_code=-2)}
    on = outcome().endpoints | {"server": EndpointOutcome(ready=True, was_forced=True, exit_code=-15)}
    for result, phase, lasted_s, bound_s, message in (
        (never, "server_start", 10.0, 0.5, "server was not ready in time"),
        (on, "endpoints_end", 3.0, 0.15, "server did not end in time"),
    ):
        slow = had(endpoints=result, phases_s={phase: lasted_s})
        assert judge(task(), changed(slow, had(hindered_s={phase: bound_s}))).state == "failed"
        judgement = judge(task(), changed(slow, had(hindered_s={phase: bound_s + 0.001})))
        assert judgement.state == "invalid"
        assert message in judgement.reason
        in_time = had(hindered_s={phase: lasted_s / 2}, phases_s={phase: lasted_s / 1.5})
        assert judge(task(), changed(in_time)).state == "ok"


def test_verdicts_that_are_kept_for_the_next_variant_are_the_oracle_s() -> None:
    models: list[LossModel] = [Uniform(0.05), GilbertElliott(0.1, 0.3, 0.9, 0.2), Pattern((3, 70_000))]
    counts = (0, 1, 255, 256, 257, 1000, 2**16 - 1, 2**16, 2**16 + 1, 100_000)
    for model, packets in product(models, counts):
        predicted = judging.verdicts._predicted(model, 7, packets)
        assert np.array_equal(predicted, verdicts(model, 7, packets)), (model, packets)


def test_more_packets_than_a_sequence_of_verdicts_has_are_judged_by_their_total() -> None:
    """A day at 1 Gbit/s: more than 2**24 packets, of which the first are recorded."""
    packets = 2**24 + 10
    dropped = dropped_packets(Uniform(0.05), SEEDS["down"], packets)
    long = changed(met("down", seen=packets, dropped=dropped), frames_down(packets + OTHER_PACKETS))
    long.droppers["internet"]["down"].packets = packets
    assert judge(task(), long).state == "ok"
    change_recorded(long, "down", dropped=dropped + 1)
    assert judge(task(), long).state == "invalid"


def test_a_reason_is_one_line_that_no_terminal_obeys() -> None:
    for text in ("\x1b]0;mine\x07", "a\nb", "\x9b31m", "\u202egnihton", "\r\n\v\f"):
        reason = judge(task(), changed(endpoint("client", complaint=f"wrote {text} and more"))).reason
        assert reason.isprintable()
        assert reason.endswith("and more")
        assert judge(task(), Outcome(failure=text)).reason.isprintable()


# ---- What endpoints say and cannot be: failed ----


def say(**values: float) -> Callable[[Outcome], None]:
    """Metrics by endpoint and name: `client__dct_s`."""

    def change(broken: Outcome) -> None:
        for place, value in values.items():
            endpoint, _, name = place.partition("__")
            metrics = broken.endpoints[endpoint].metrics or {}
            broken.endpoints[endpoint].metrics = {**metrics, name: value}

    return change


DROPPED_DOWN = int(dropped_by("down").sum())
REPAIR = {"client__packets_recovered": 3, "client__recovered_spurious": 2, "client__repair_useless": 3}
CARRIED_DOWN = (1000 - 34) * (PACKETS["down"] + OTHER_PACKETS)
ENTERED_UP = (1000 - 34) * (PACKETS["up"] + OTHER_PACKETS)
# The last 8 packets and the 2 that were not judged are let off, and UDP's headers are no payload.
LEAST_BYTES_UP = ENTERED_UP - 8 * (PACKETS["up"] + OTHER_PACKETS) - (8 + OTHER_PACKETS) * 1472
LEAST_DOWN = PACKETS["down"] + OTHER_PACKETS - 8 - OTHER_PACKETS

RECOVERED = {"client__packets_recovered": 10, "client__repair_received": 10}
# Of each law: a number, its greatest or least possible value, one that is impossible, what is said of it, and
# the numbers beside it.
LAWS: list[tuple[str, float, float, str, dict[str, float]]] = [
    ("client__dct_s", 1.105, 1.1051, "must be above 0 and at most 1.105", {}),
    ("client__handshake_s", 1.0, 1.0001, "must be between 0 and 1, its dct_s", {}),
    ("client__handshake_s", 0.0, -0.1, "", {}),
    # 900,000 bytes at 10 Mbit/s are 0.72 s, and the round trip has 20 ms.
    ("client__dct_s", 0.7327, 0.7325, "the links carry what was asked for in 0.74 s at the soonest", {}),
    ("client__packets_lost", 0, -1, "must be at least 0", {}),
    ("server__packets_lost", 999, 1000, "must be at most 999, its packets_se", {"server__packets_sent": 999}),
    ("server__spurious_losses", 3, 4, "must be at most 3", {"server__packets_lost": 3}),
    ("client__repair_useless", 3, 4, "must be at most 3", {"client__repair_received": 3}),
    ("client__bytes_received", SIZE_BYTES, SIZE_BYTES - 1, "", {}),
    ("client__bytes_received", CARRIED_DOWN, CARRIED_DOWN + 1, "", {}),
    ("client__bytes_sent", ENTERED_UP, ENTERED_UP + 1, f"but {ENTERED_UP} bytes came to the links up", {}),
    ("client__bytes_sent", LEAST_BYTES_UP, LEAST_BYTES_UP - 1, "but 289316 bytes came to the links up", {}),
    ("server__packets_sent", LEAST_DOWN, LEAST_DOWN - 1, "but 1002 frames came to the links down", {}),
    (
        *("server__repair_sent", 7, 6, "packets_sent + repair_sent = 991: but 1002 frames came to the links"),
        {"server__packets_sent": LEAST_DOWN - 7},
    ),
    (
        *("client__bytes_received", 961_776, 961_777, "but bytes_sent of server is 950000"),
        {"server__bytes_sent": 961_776 - 8 * 1472},
    ),
    (
        *("client__packets_received", 1003, 1004, "but packets_sent of server is 995"),
        {"server__packets_sent": 995},
    ),
    ("server__source_received", 18, 19, "but source_sent of client is 10", {"client__source_sent": 10}),
    ("client__repair_received", 18, 19, "but repair_sent of server is 10", {"server__repair_sent": 10}),
    ("client__packets_recovered", 18, 19, "but source_sent of server is 10", {"server__source_sent": 10}),
    (
        *("client__packets_recovered", DROPPED_DOWN, DROPPED_DOWN + 1),
        *(f"but {DROPPED_DOWN} packets were lost on internet/down", {}),
    ),
    ("client__packets_recovered", 3, 4, "must be at most 3, its repair_re", {"client__repair_received": 3}),
    ("server__source_sent", 999, 1000, "must be at most 999, its packets_s", {"server__packets_sent": 999}),
    (
        *("client__repair_received", 8, 9),
        *("must be packets_recovered + recovered_spurious + repair_useless = 8", REPAIR),
    ),
    (
        *("client__recovered_late", 1, 2),
        "packets_recovered + recovered_spurious = 5: must be recovered_in_time + recovered_late = 6",
        {**REPAIR, "client__repair_received": 8, "client__recovered_in_time": 4},
    ),
    (
        *("server__repair_sent", 100, 101),
        "packets_sent + repair_sent = 1103: but 1002 frames came to the links down",
        {"server__packets_sent": 1002},
    ),
    (
        *("client__packets_received", 1102, 1103),
        "packets_received - packets_recovered + repair_received = 1103: but 1002 frames left",
        RECOVERED,
    ),
    # Packets that carry repair symbols and data.
    (
        *("server__repair_shared_sent", 50, 49),
        "packets_sent + repair_sent - repair_shared_sent = 1103: but 1002 frames came to the links down",
        {"server__packets_sent": 1002, "server__repair_sent": 150},
    ),
    (
        *("client__repair_shared_received", 5, 4),
        "packets_received - packets_recovered + repair_received - repair_shared_received = 1103: but 1002",
        {**RECOVERED, "client__repair_received": 15, "client__packets_received": 1102},
    ),
    ("server__repair_shared_sent", 3, 4, "must be at most 3, its repair_sent", {"server__repair_sent": 3}),
    # Symbols that are smaller than packets: one repair packet may rebuild several packets.
    (
        *("client__packets_recovered", 12, 13, "must be at most 12, its repair_symbols_received"),
        {"client__repair_received": 4, "client__repair_symbols_received": 12, "client__repair_useless": 0},
    ),
    (
        *("server__source_symbols_sent", 9, 8),
        "source_sent = 9: must be at most 8, its source_symbols_sent",
        {"server__source_sent": 9, "server__packets_sent": 999},
    ),
]


def test_a_number_that_is_impossible_is_a_failure_with_the_number() -> None:
    for place, possible, impossible, message, context in LAWS:
        fine = judge(task(), changed(say(**context, **{place: possible})))
        assert (fine.state, fine.reason) == ("ok", "")
        judgement = judge(task(), changed(say(**context, **{place: impossible})))
        assert judgement.state == "failed"
        end, _, number = place.partition("__")
        named = "" if message.startswith(("packets_", "source_sent")) else f"{number} = {impossible}: "
        assert f"{end}: {named}{message}" in judgement.reason


def test_of_source_symbols_no_more_are_missing_than_were_lost_or_on_their_way() -> None:
    sent = DROPPED_DOWN + 8
    assert judge(task(), changed(say(server__source_sent=sent, client__source_received=0))).state == "ok"
    more = judge(task(), changed(say(server__source_sent=sent + 1, client__source_received=0)))
    assert more.state == "failed"
    message = f"source_received = 0: but source_sent of server is {sent + 1}, and {DROPPED_DOWN} "
    assert f"client: {message}" in more.reason


def test_a_time_that_cannot_be_is_the_harness_s_where_it_has_taken_it() -> None:
    (pair,) = task().pairs
    client = pair.client.model_copy(update={"interop": InteropTask(testcase="transfer")})
    timed = task().model_copy(update={"pairs": [pair.model_copy(update={"client": client})]})
    assert timed.timed_by_harness
    for dct_s in (-1.0, 1e-6, 1e6):
        wrong = changed(say(client__dct_s=dct_s))
        assert judge(task(), wrong).state == "failed"
        assert judge(timed, wrong).state == "invalid"


def over_tcp(*transports: str) -> Task:
    """The task with pairs whose ends are of these transports."""
    usual = task()
    (pair,) = usual.pairs
    ends = [pair.client.model_copy(update={"transport": transport}) for transport in transports]
    return usual.model_copy(
        update={"pairs": [pair.model_copy(update={"client": end, "server": end}) for end in ends]}
    )


FRAMES_UP = PACKETS["up"] + OTHER_PACKETS
# The last 8 packets and the 2 that were not judged are let off.
LEAST_UP = FRAMES_UP - 8 - OTHER_PACKETS


def test_a_segment_of_tcp_is_a_frame() -> None:
    # Each packet that comes after the client's last look has its acknowledgement.
    unseen = {"client__packets_received": 990, "server__packets_sent": 997}
    for possible, impossible, context, message in (
        (FRAMES_UP, FRAMES_UP + 1, {}, "links up: segments"),
        (LEAST_UP, LEAST_UP - 1, {}, "links up"),
        (LEAST_UP - 7, LEAST_UP - 8, unseen, "links up"),
    ):
        fine, wrong = (changed(say(client__packets_sent=sent, **context)) for sent in (possible, impossible))
        assert judge(over_tcp("tcp"), fine).state == "ok"
        judgement = judge(over_tcp("tcp"), wrong)
        assert judgement.state == "failed"
        named = f"client: packets_sent = {impossible}: but {FRAMES_UP} frames came to the {message}"
        assert named in judgement.reason
        may_share = judge(task(), wrong).state  # QUIC packets may share a datagram
        assert may_share == ("ok" if impossible > FRAMES_UP else "failed")


def test_two_transfers_share_the_frames_of_their_segments() -> None:
    both = outcome()
    both.endpoints |= {f"background_{role}": end.model_copy() for role, end in both.endpoints.items()}
    say(client__packets_sent=200, background_client__packets_sent=FRAMES_UP - 200)(both)
    assert judge(over_tcp("tcp", "tcp"), both).state == "ok"
    say(client__packets_sent=201)(both)
    judgement = judge(over_tcp("tcp", "tcp"), both)
    assert judgement.state == "failed"
    assert f"client and background_client: packets_sent = {FRAMES_UP + 1}" in judgement.reason
    assert judge(over_tcp("udp", "tcp"), both).state == "ok", "the background's alone are fewer"


def test_a_frame_longer_than_the_mtu_is_none_of_tcp() -> None:
    long = outcome()
    change_reported(long, oversize_dropped=1)
    assert judge(over_tcp("tcp"), long).reason == "1 frames down were longer than the MTU, and TCP sends none"
    assert judge(task(), long).state == "ok"


def test_a_task_of_udp_is_written_as_it_was_before_there_was_tcp() -> None:
    assert "transport" not in task().document()["pairs"][0]["client"]
    assert over_tcp("tcp").document()["pairs"][0]["client"]["transport"] == "tcp"
    assert Task.model_validate_json(over_tcp("tcp").model_dump_json()) == over_tcp("tcp")


def test_what_came_while_the_link_was_out_is_lost_as_well() -> None:
    trial_task = over(downwards(outage_s=(0, 1)))
    dark = changed(say(client__packets_recovered=DROPPED_DOWN + 3), carried(outage_dropped=3))
    change_configured(dark, outage_ns=(0, 1_000_000_000))
    assert judge(trial_task, dark).state == "ok"
    change_reported(dark, outage_dropped=2)
    assert judge(trial_task, dark).state == "failed"


def test_where_packets_overtake_each_other_those_that_are_late_may_be_recovered_as_well() -> None:
    late = changed(say(client__packets_recovered=DROPPED_DOWN + 3))
    assert judge(task(), late).state == "failed"
    change_configured(late, reorder=True)
    assert judge(over(downwards(reorder=True)), late).state == "ok"


def test_a_time_far_beyond_what_is_possible_is_a_failure() -> None:
    assert judge(task_with(down_bytes=10**12), changed(say(client__dct_s=1e-6))).state == "failed"
    endless = changed(say(client__dct_s=1e6))
    assert judge(task(), endless).state == "failed"
    endless.client_s = None  # of an engine that does not tell
    assert judge(task(), endless).state == "failed"


def test_content_that_no_link_carried_was_not_transferred() -> None:
    trial_task = task_with(down_bytes=CARRIED_DOWN - 60_000, up_bytes=0)
    assert judge(trial_task, slow()).state == "ok"
    trial_task = task_with(down_bytes=CARRIED_DOWN + 1)
    judgement = judge(trial_task, slow())
    assert judgement.state == "failed"
    assert f"were transferred down, but the links carried {CARRIED_DOWN}" in judgement.reason
    trial_task = task_with(down_bytes=0, up_bytes=ENTERED_UP + 1)
    assert "were transferred up" in judge(trial_task, slow()).reason


def slow() -> Outcome:
    """Return an outcome that took so long that its link could have carried more than it did."""
    return changed(had(client_s=5.0), say(client__dct_s=4.0))


def test_content_needs_packets_that_the_loss_model_judged() -> None:
    sent = {"frames_in": 17, "frames_out": 17, "bytes_in": 17 * 1500, "bytes_out": 17 * 1500}
    few = changed(carried(**sent), met("down", seen=10, dropped=int(dropped_by("down")[:10].sum()), other=7))
    few.droppers["internet"]["down"].packets = 10
    assert judge(task_with(down_bytes=10 * 1472), few).state == "ok"
    judgement = judge(task_with(down_bytes=10 * 1472 + 1), few)
    assert judgement.state == "failed"
    assert "the loss model judged 10 packets" in judgement.reason


def pass_unjudged(other: int, judged: int) -> Outcome:
    """Packets that are not UDP, or at another port."""
    dropped = int(dropped_by("down")[:judged].sum())
    past = changed(met("down", seen=judged, dropped=dropped, other=other), frames_down(judged + other))
    past.droppers["internet"]["down"].packets = judged
    return past


def test_traffic_that_went_past_the_loss_model_is_a_failure() -> None:
    trial_task = task_with(down_bytes=1000)
    judgement = judge(trial_task, pass_unjudged(other=1300, judged=0))
    assert judgement.state == "failed"
    assert "internet/down: 1300 of 1300 packets went past the loss model" in judgement.reason
    assert "UDP and TCP at port 4433" in judgement.reason


def test_a_background_that_ended_is_told_before_what_its_kernel_answered() -> None:
    result = pass_unjudged(other=1300, judged=0)
    result.background_lasted = False
    result.endpoints["background_client"] = EndpointOutcome(exit_code=1, stderr="went home")
    judgement = judge(task_with(down_bytes=1000), result)
    assert (judgement.state, judgement.reason) == ("failed", "background_client ended first: went home")


def test_a_few_messages_of_the_kernel_may_pass_the_loss_model() -> None:
    trial_task = task_with(down_bytes=1000)
    assert judge(trial_task, pass_unjudged(other=20, judged=500)).state == "ok"
    assert judge(trial_task, pass_unjudged(other=21, judged=500)).state == "failed"


def test_more_of_a_long_transfer_may_pass_the_loss_model() -> None:
    packets, dropped = 10_000, dropped_packets(Uniform(0.05), SEEDS["down"], 10_000)
    long = changed(met("down", seen=packets, dropped=dropped, other=100))
    long.droppers["internet"]["down"].packets = packets
    change_reported(long, frames_in=packets + 100, frames_out=packets + 100, bytes_out=1000 * packets)
    assert judge(task(), long).state == "ok"


def test_the_time_of_a_page_is_at_least_that_of_its_objects_one_after_another() -> None:
    fine = changed(say(client__dct_s=1.0))
    # Ten round trips of 20 ms, and 0.8 s of processing.
    assert judge(task_with(down_bytes=1000, round_trips=10, pauses_s=0.8), fine).state == "ok"
    judgement = judge(task_with(down_bytes=1000, round_trips=10, pauses_s=0.9), fine)
    assert judgement.state == "failed"
    assert "1.1 s at the soonest" in judgement.reason


SENT = {"server__source_sent": 800, "server__repair_sent": 80}
ON, SHORT, LONG = (True, True), 14_720, 14_721  # ten packets, and one byte more
LOSSY = {"server__source_sent": 18, "client__repair_sent": 1, "server__losses_declared": 4}
ONLY_UP = {"client__source_sent": 1, "client__repair_sent": 1}
NO_SOURCE, NO_REPAIR = (
    f"FEC is on, but no {kind} symbol was sent ({kind}_sent)" for kind in ("source", "repair")
)
# FEC at the client and the server, what is asked, what they say that they sent, and what is wrong with it.
FEC: list[tuple[tuple[bool | None, bool | None], dict[str, Any], dict[str, float], str]] = [
    (ON, {}, SENT, ""),
    (ON, {}, {}, f"server: {NO_SOURCE}"),
    (ON, {}, SENT | {"server__repair_sent": 0}, f"server: {NO_REPAIR}"),
    (ON, {}, {"server__source_sent": 800, "client__repair_sent": 1}, f"server: {NO_REPAIR}"),
    (ON, {"down_bytes": SHORT}, {"server__source_sent": 10, "client__repair_sent": 1}, ""),
    (ON, {"down_bytes": LONG}, {"server__source_sent": 10, "client__repair_sent": 1}, "no repair"),
    (ON, {"down_bytes": SHORT}, {"server__source_sent": 10}, f"client and server: {NO_REPAIR}"),
    (ON, {"down_bytes": 2 * SHORT}, LOSSY, ""),
    (ON, {"down_bytes": 2 * SHORT + 1}, LOSSY, f"server: {NO_REPAIR}"),
    # All of a short content came in loss probes that a blocked server owed; the request was protected.
    (ON, {"down_bytes": SHORT}, ONLY_UP, ""),
    (ON, {"down_bytes": LONG}, ONLY_UP, f"server: {NO_SOURCE}"),
    (ON, {"down_bytes": SHORT}, {"client__repair_sent": 1}, f"client and server: {NO_SOURCE}"),
    (ON, {"owes_repair": False}, {"server__source_sent": 800}, ""),
    (ON, {"owes_repair": False}, {}, "no source symbol"),
    (ON, {"owes_repair": False, "owes_source": False}, {}, ""),
    (ON, {"down_bytes": 0}, {}, ""),
    (ON, {"down_bytes": 0, "up_bytes": LONG}, SENT, "client: FEC is on, but no source symbol was sent"),
    (ON, {"down_bytes": 0, "up_bytes": 1000}, ONLY_UP, ""),
    ((True, False), {}, {}, ""),
    ((True, False), {}, SENT, "server: FEC is off, but repair_sent = 80"),
    ((False, False), {}, SENT, "server: FEC is off, but repair_sent = 80"),
    ((False, False), {}, {"server__repair_sent": 0}, ""),
    ((None, None), {}, {}, ""),
    ((None, None), {}, SENT, ""),
]


def test_fec_is_at_work_where_it_is_on_and_nowhere_else() -> None:
    for ends, trial_task, configuration, message in FEC:
        judgement = judge(task_with(*ends, **trial_task), changed(say(**configuration)))
        assert judgement.state == ("failed" if message else "ok"), judgement.reason
        assert message in judgement.reason


def test_an_older_task_keeps_its_bound_of_stalls() -> None:
    older = task().model_dump(mode="json")
    del older["validity"]
    read = Task.model_validate({**older, "stall_share": 0.25})
    assert read.validity == Validity(stall_share=0.25)
