"""The BPF program judges as the oracle predicts, bit for bit, and loses no update."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fecbench.dropper.command import Filter, attach, log, show
from fecbench.dropper.draws import SEEDS, threshold, unpack
from fecbench.dropper.model import Beginning, GilbertElliott, Pattern, Uniform, markov, verdicts

PACKETS = 10_000_000
QUIC = Filter("ipv4", "udp", 4433)
SMALLEST = 2.0**-32

TRACE = tuple(np.flatnonzero(verdicts(GilbertElliott(0.02, 0.2, 0.99, 0.3), 7, 1_000_003)).tolist())


def assert_as_predicted(attachment, model, seed, packets):
    predicted = verdicts(model, seed, packets)
    recorded = log(attachment)
    assert recorded.packets == packets
    judged = unpack(recorded.bitmap, recorded.recorded)
    assert np.array_equal(judged, predicted[: recorded.recorded])
    assert show(attachment).dropped == np.count_nonzero(predicted)


@pytest.mark.parametrize(
    ("model", "seed"),
    [
        (Uniform(0.05), 0x0123456789ABCDEF),
        (Uniform(0.6, burst_max=3), 5),
        (GilbertElliott(0.1, 0.1, 0.9, 0.05, burst_max=4), 6),
        (GilbertElliott(0.01, 0.25, 0.98, 0.05), 42),
        (Beginning(0.5, 700), 5),
        (markov(0.003, 0.4), 0),
        (Pattern(TRACE, length=1_000_003, repeat=True), 5),
        (Pattern(TRACE), 5),
    ],
    ids=[
        "uniform",
        "uniform-capped",
        "ge-capped",
        "ge",
        "beginning",
        "markov",
        "pattern-repeated",
        "pattern-once",
    ],
)
def test_ten_million_verdicts_equal_the_oracle_bit_for_bit(lone, run_program, quic_frame, model, seed):
    attachment = lone.attachment("ingress")
    attach(attachment, model, seed, QUIC, record=PACKETS)
    with run_program(lone) as program:
        ns_per_packet = program.run(quic_frame, repeat=PACKETS)
    print(f"\n{model.__class__.__name__}: {ns_per_packet} ns per packet")
    assert log(attachment).recorded == PACKETS
    assert_as_predicted(attachment, model, seed, PACKETS)


def test_verdicts_past_the_record_are_counted_but_not_recorded(lone, run_program, quic_frame):
    attachment = lone.attachment("ingress")
    attach(attachment, Uniform(0.5), 3, QUIC, record=64)
    with run_program(lone) as program:
        program.run(quic_frame, repeat=1000)
    assert log(attachment).recorded == 64
    assert_as_predicted(attachment, Uniform(0.5), 3, 1000)


def test_a_dropper_records_two_to_the_twenty_verdicts_unless_told_otherwise(lone, run_program, quic_frame):
    attachment = lone.attachment("ingress")
    attach(attachment, Uniform(0.1), 3)
    with run_program(lone) as program:
        program.run(quic_frame, repeat=2**20 + 5)
    assert (log(attachment).packets, log(attachment).recorded) == (2**20 + 5, 2**20)


@pytest.mark.parametrize("seed", [0, 1, SEEDS - 1])
def test_extreme_probabilities_and_seeds_agree_with_the_oracle(lone, run_program, quic_frame, seed):
    for probability in (0.0, SMALLEST, 0.5, 1 - SMALLEST, 1.0):
        restless = GilbertElliott(probability, 1 - probability, 1 - probability, probability)
        for model in (Uniform(probability), restless):
            attach(lone.attachment("ingress"), model, seed, QUIC)
            with run_program(lone) as program:
                program.run(quic_frame, repeat=20_000)
            assert_as_predicted(lone.attachment("ingress"), model, seed, 20_000)


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1))
@example(0.5 / 2**32)  # halves go to the even neighbour
@example(1.5 / 2**32)
@example(2.5 / 2**32)
@example(1 - SMALLEST / 2)
@example(SMALLEST)
def test_command_and_oracle_round_probabilities_to_the_same_thresholds(lone, probability):
    attach(lone.attachment("ingress"), GilbertElliott(probability, probability, probability, 0.25), 0)
    thresholds = lone.json_of("show", "ingress")["model"]["thresholds"]
    assert thresholds["good_to_bad"] == thresholds["bad_to_good"] == threshold(probability)
    assert thresholds["loss_good"] == threshold(1 - probability)


@pytest.mark.parametrize(
    "model",
    [Uniform(0.3), Uniform(0.7, burst_max=2), GilbertElliott(0.1, 0.3, 0.9, 0.2), Pattern((1, 5), 7, True)],
)
def test_two_cpus_at_once_lose_no_update(lone, run_program, quic_frame, model):
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    per_process = 1_000_000
    attach(lone.attachment("ingress"), model, 11, QUIC, record=2 * per_process)

    def hammer(cpu, program):
        os.sched_setaffinity(0, {cpu})
        program.run(quic_frame, repeat=per_process)

    with run_program(lone) as program, ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda cpu: hammer(cpu, program), cpus))
    assert_as_predicted(lone.attachment("ingress"), model, 11, 2 * per_process)
