"""Losses that are clocked by time: the oracle follows its contract, and the kernel follows the oracle."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from fecbench.dropper.clocked import STAYS, Slots, Timed, TimedGilbertElliott, is_bad, stays_us, verdicts_at
from fecbench.dropper.command import Filter, attach, log, show
from fecbench.dropper.draws import SEEDS, LossModelError, draws, unpack
from fecbench.dropper.parameters import MODELS, loss_model
from fecbench.results.analysis import same_losses
from fecbench.results.store.records import TrialKey, TrialRecord, VerdictLog, is_clocked

QUIC = Filter("ipv4", "udp", 4433)
RESTLESS = TimedGilbertElliott(1e-5, 1e-5, 0.9, 0.2)
"""A process whose stays begin again within a second."""

seeds = st.integers(0, SEEDS - 1)
times = st.lists(st.integers(0, 5 * 10**9), max_size=50).map(
    lambda values: np.array(sorted(values), np.int64)
)


def stays_one_by_one(seed, good_us, bad_us, count):
    """The contract of stays, word for word."""

    def draw(n):
        return int(draws(seed, n, 1, 1)[0])

    n = 0
    for stay in range(count):
        mean, whole = (good_us, bad_us)[stay % 2], 0
        while True:
            first = last = draw(n)
            n, length = n + 1, 1
            while True:
                drawing = draw(n)
                n += 1
                if drawing >= last:
                    break
                last, length = drawing, length + 1
            if length % 2 == 1:
                break
            whole += 1
        yield whole * mean + (mean * first >> 32)


@given(seeds)
@example(0)
@example(SEEDS - 1)
def test_stays_are_those_of_the_contract(seed):
    model = TimedGilbertElliott(0.25, 0.003)
    stays = [stay for stay, _ in zip(stays_us(model, seed), range(20), strict=False)]
    assert stays == list(stays_one_by_one(seed, 250_000, 3_000, 20))


def test_stays_in_each_state_are_exponential_with_its_mean_and_do_not_follow_from_the_last():
    for seed in (1, 2, 3):
        stays = np.fromiter(stays_us(TimedGilbertElliott(2.0, 0.05), seed), np.int64)
        assert len(stays) == STAYS
        for of_state, mean_us in ((stays[::2], 2e6), (stays[1::2], 5e4)):
            # Fixed seeds: a law that holds is not refused by chance on some run.
            assert scipy.stats.kstest(of_state, "expon", (0, mean_us)).pvalue > 0.01
            assert abs(np.corrcoef(of_state[1:], of_state[:-1])[0, 1]) < 4 / np.sqrt(len(of_state))


@given(seeds, times)
def test_the_state_at_a_time_is_that_of_the_stay_in_which_it_lies(seed, times_ns):
    model = TimedGilbertElliott(0.2, 0.1)
    end_us, ends = 0, []
    for stay in stays_us(model, seed):
        end_us += stay
        ends.append(end_us)
        if end_us > 5 * 10**6:
            break
    expected = [sum(end <= time_ns // 1000 for end in ends) % 2 == 1 for time_ns in times_ns.tolist()]
    assert is_bad(model, seed, times_ns).tolist() == expected


def test_after_all_stays_the_same_ones_come_again():
    cycle_ns = 1000 * sum(stays_us(RESTLESS, 7))
    times_ns = np.arange(0, cycle_ns, 9_973)
    first, third = (is_bad(RESTLESS, 7, times_ns + round_ * cycle_ns) for round_ in (0, 2))
    assert 0.4 < first.mean() < 0.6
    assert np.array_equal(first, third)


@given(seeds, times, st.integers(0, 10**9))
def test_a_verdict_follows_from_number_and_time_of_its_packet_alone(seed, times_ns, later_ns):
    """The verdict is independent of the other packets' times."""
    model = TimedGilbertElliott(0.2, 0.1, 0.9, 0.3)
    whole = verdicts_at(model, seed, times_ns)
    assert np.array_equal(verdicts_at(model, seed, times_ns[:10]), whole[:10])
    changed = np.append(times_ns[:-1], times_ns[-1:] + later_ns)
    assert np.array_equal(verdicts_at(model, seed, changed)[:-1], whole[:-1])


def test_packets_that_come_evenly_have_the_mean_loss_rate():
    for model in (TimedGilbertElliott(0.1, 0.02, 0.99, 0.1), Slots((0, 1, 4), 1.0, 10, repeat=True)):
        lost = verdicts_at(model, 3, np.arange(10**6) * 10**6)
        assert lost.mean() == pytest.approx(model.mean_rate, rel=0.03), model


def test_a_mean_loss_rate_gives_the_time_in_the_good_state():
    model = loss_model({"model": "ge-time", "rate": 0.02, "bad_s": 0.01, "h": 0.5})
    assert model.mean_rate == pytest.approx(0.02)
    assert isinstance(model, TimedGilbertElliott) and model.bad_s == 0.01
    assert loss_model(model.plain) == model


@given(seeds, times, st.booleans())
def test_what_arrives_in_a_lost_slot_is_lost(seed, times_ns, repeat):
    model = Slots((0, 2, 3), 100.0, 7, repeat)
    first = int(draws(seed, 0, 1, 1)[0]) * 7 // 2**32 if repeat else 0
    slots = [time_ns // 10**8 + first for time_ns in times_ns.tolist()]
    expected = [(slot % 7 if repeat else slot) in model.dropped for slot in slots]
    assert verdicts_at(model, seed, times_ns).tolist() == expected


WRONG = [
    ({"model": "ge-time", "good_s": 0, "bad_s": 1}, "good_s = 0.0: must be a time from 1e-05 to 4000 s"),
    ({"model": "ge-time", "good_s": 1, "bad_s": 4001}, "bad_s = 4001.0"),
    ({"model": "ge-time", "good_s": 1, "bad_s": float("nan")}, "bad_s = nan"),
    ({"model": "ge-time", "good_s": 1}, "good_s, bad_s, [k], [h] or rate, bad_s, [k], [h]"),
    ({"model": "ge-time", "good_s": 1, "bad_s": 1, "p": 0.1}, "unknown key p"),
    ({"model": "ge-time", "rate": 0.9, "bad_s": 1, "h": 0.2}, "rate = 0.9: must be above"),
    ({"model": "ge-time", "rate": 0, "bad_s": 1}, "rate = 0.0: must be above"),
    ({"model": "slots", "drop": "1", "slot_ms": 0.5}, "slot_ms = 0.5: must be a time from 1 to 1000 ms"),
    ({"model": "slots", "drop": "1-9", "slot_ms": 1, "length": 5}, "length = 5"),
    ({"model": "slots", "drop": "1"}, "drop, slot_ms"),
]


def test_wrong_parameters_are_refused_in_a_line_that_names_them():
    for parameters, named in WRONG:
        with pytest.raises(LossModelError) as refusal:
            loss_model(parameters)
        assert named in str(refusal.value)
        assert "\n" not in str(refusal.value)


# The kernel


CLOCKED = [
    (TimedGilbertElliott(0.002, 0.0005, 0.98, 0.05), 42),
    (RESTLESS, SEEDS - 1),
    (Slots((0, 2, 3), 1.0, 7, repeat=True), 5),
    # So many, since a busy machine may let no packet arrive in some.
    (Slots((1, *range(40, 1000, 2)), 1.0), 5),
]
NAMES = ["ge-time", "ge-time-again-and-again", "slots-repeated", "slots-once"]


def assert_as_predicted(attachment, model, seed, packets):
    recorded = log(attachment)
    assert (recorded.packets, recorded.recorded) == (packets, packets)
    arrivals = recorded.arrivals_ns
    assert arrivals[0] == 0
    assert np.array_equal(unpack(recorded.bitmap, packets), verdicts_at(model, seed, arrivals))
    return arrivals


@pytest.mark.parametrize(("model", "seed"), CLOCKED, ids=NAMES)
def test_the_kernel_decides_by_the_time_of_arrival_as_the_oracle_does(
    lone, run_program, quic_frame, model, seed
):
    packets = 1_000_000
    attach(lone.attachment("ingress"), model, seed, QUIC)
    with run_program(lone) as program:
        program.run(quic_frame, repeat=packets)
    arrivals = assert_as_predicted(lone.attachment("ingress"), model, seed, packets)
    assert (np.diff(arrivals.astype(np.int64)) >= 0).all()
    assert 0 < show(lone.attachment("ingress")).dropped < packets


@pytest.mark.slow
@pytest.mark.parametrize(("model", "seed"), CLOCKED, ids=NAMES)
def test_ten_million_verdicts_by_the_clock_equal_the_oracles(lone, run_program, quic_frame, model, seed):
    packets = 10_000_000
    attach(lone.attachment("ingress"), model, seed, QUIC, record=packets)
    with run_program(lone) as program:
        program.run(quic_frame, repeat=packets)
    assert_as_predicted(lone.attachment("ingress"), model, seed, packets)


def test_the_clock_of_a_dropper_begins_with_its_first_packet(lone, run_program, quic_frame):
    model = Slots((0,), 1000.0)
    attach(lone.attachment("ingress"), model, 0, QUIC)
    with run_program(lone) as program:
        program.run(quic_frame, repeat=1000)
    assert show(lone.attachment("ingress")).dropped == 1000


def test_a_dropper_that_packets_clock_has_no_times_of_arrival(lone, run_program, quic_frame):
    attach(lone.attachment("ingress"), loss_model({"model": "uniform", "p": 0.5}), 0, QUIC)
    with run_program(lone) as program:
        program.run(quic_frame, repeat=10)
    assert log(lone.attachment("ingress")).arrivals_ns is None


def test_the_results_know_which_models_are_clocked_by_the_times_among_their_parameters():
    for model in MODELS.values():
        for form in model.forms:
            assert is_clocked(["model", *form.needed]) == model.is_clocked == issubclass(model, Timed)


def test_a_report_says_of_a_design_that_time_decides_its_losses_wherever_these_stand():
    for design, expected in (
        ('[constants]\nloss.model = "ge-time"\nloss.bad_s = 0.1', True),
        ('[constants.loss.up]\nmodel = "ge-time"\nbad_s = 0.1', True),
        ("[factors]\ninternet.loss.slot_ms = { values = [1, 2] }", True),
        ('[factors.a.linked]\n"x" = { owd_ms = 1, path1.loss.down.good_s = 1 }', True),
        ('timeout_s = 5\n[constants]\nloss.model = "ge"\nloss.p = 0.1\njitter_ms = 5', False),
    ):
        assert is_clocked(same_losses.parameters(design)) == expected, design


def test_runs_whose_losses_time_decides_need_not_lose_the_same_packets():
    """Runs whose losses packets' numbers decide do."""

    def run(model, bitmap):
        task = {"links": {"internet": {"losses": {"up": model, "down": model}}}}
        log = VerdictLog("internet", "down", 8, 1, bitmap)
        return TrialRecord(TrialKey("a", "b", 0, 0), "ok", "", "", 1.0, task=task, verdicts=[log])

    for model, expected in (
        ({"model": "ge-time", "good_s": 1, "bad_s": 1}, True),
        ({"model": "slots", "drop": "1", "slot_ms": 1}, True),
        ({"model": "ge", "p": 0.1, "r": 0.1}, False),
    ):
        assert run(model, b"\1").met_the_losses_of(run(model, b"\2")) == expected
        assert run(model, b"\1").met_the_losses_of(run(model, b"\1"))
