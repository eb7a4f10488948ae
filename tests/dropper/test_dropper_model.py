"""The oracle follows its contract, and its closed forms describe it. Needs no root."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fecbench.dropper import parameters as names
from fecbench.dropper.clocked import Slots
from fecbench.dropper.draws import LONGEST, SEEDS, LossModelError, draws, pack, threshold, unpack
from fecbench.dropper.model import (
    Beginning,
    GilbertElliott,
    Pattern,
    Uniform,
    dropped_packets,
    gilbert_elliott_from,
    markov,
    parse_drop_list,
    verdicts,
)
from fecbench.dropper.parameters import loss_model

probabilities = st.floats(0, 1)
seeds = st.integers(0, SEEDS - 1)
drop_lists = st.lists(st.integers(0, 300), max_size=20, unique=True).map(tuple)
longest_bursts = st.none() | st.integers(1, 6)
uniforms = st.builds(Uniform, probabilities, longest_bursts)
chains = st.builds(GilbertElliott, *[probabilities] * 4, longest_bursts)
patterns = st.builds(Pattern, drop_lists, st.none() | st.integers(301, 400), st.booleans())
beginnings = st.builds(Beginning, probabilities, st.integers(1, 400))
models = uniforms | chains | patterns | beginnings


# ---- The contract ----


def one_at_a_time(model, seed, packets):
    """The contract of the models, word for word."""

    def draw(n, j):
        z = (seed + (2 * n + j + 1) * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return (z ^ (z >> 31)) >> 32

    def happens(q, n, j):
        return draw(n, j) < round(q * 2**32)

    def capped(lost, burst_max):
        nonlocal burst
        burst = burst + 1 if lost and burst != burst_max else 0
        return burst > 0

    bad, burst = False, 0
    for n in range(packets):
        match model:
            case Uniform(p, burst_max):
                yield capped(happens(p, n, 0), burst_max)
            case Beginning(p, length):
                yield n < length and happens(p, n, 0)
            case Pattern(dropped, length, repeat):
                end = length if length is not None else max(dropped, default=-1) + 1
                yield (n % end if repeat and end else n) in dropped
            case GilbertElliott(p, r, k, h, burst_max):
                yield capped(happens(1 - h if bad else 1 - k, n, 0), burst_max)
                if happens(r if bad else p, n, 1):
                    bad = not bad


@given(models, seeds, st.integers(0, 700))
def test_as_many_packets_are_dropped_as_verdicts_say(model, seed, packets):
    assert dropped_packets(model, seed, packets) == verdicts(model, seed, packets).sum()


DROPPED = [
    (Uniform(1.0), LONGEST + 1),
    (Uniform(0.0), 0),
    (GilbertElliott(1.0, 1.0, 1.0, 0.0), LONGEST // 2),
    (Pattern((0, 5), 8, repeat=True), LONGEST // 4 + 1),
    (Pattern((0, 5), 8), 2),
]


def test_dropped_packets_are_counted_beyond_the_longest_sequence_of_verdicts():
    for model, dropped in DROPPED:
        assert dropped_packets(model, 7, LONGEST + 1) == dropped


@given(models, seeds, st.integers(0, 700))
@example(Uniform(1.0), 0, 10)
@example(Uniform(2.0**-32), 0, 10)
@example(GilbertElliott(1.0, 1.0, 1.0, 0.0), SEEDS - 1, 100)  # reverses its state at each packet
def test_verdicts_are_those_of_the_contract(model, seed, packets):
    assert verdicts(model, seed, packets).tolist() == list(one_at_a_time(model, seed, packets))


def test_draws_are_the_upper_halves_of_the_published_splitmix64_sequence():
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]  # of seed 1234567: Rosetta Code, "Pseudo-random numbers/Splitmix64"
    drawing = np.empty(6, dtype=np.uint64)
    drawing[0::2], drawing[1::2] = draws(1234567, 0, 3, 0), draws(1234567, 0, 3, 1)
    assert drawing[:5].tolist() == [output >> 32 for output in published]


CAPPED = [
    Uniform(0.5, 3),
    Uniform(1.0, 5),
    GilbertElliott(0.05, 0.2, 0.99, 0.1, burst_max=4),
    GilbertElliott(1.0, 1.0, 0.2, 0.1, burst_max=7),
    GilbertElliott(0.0, 0.3, 0.9, burst_max=2),
]


@pytest.mark.parametrize("model", CAPPED)
def test_no_burst_is_longer_than_its_maximum_and_the_closed_forms_know_it(model):
    lost = verdicts(model, 7, 1_000_000)
    edges = np.flatnonzero(np.diff(lost.astype(int), prepend=0, append=0))
    bursts = edges[1::2] - edges[::2]
    assert bursts.max() == model.burst_max
    assert lost.mean() == pytest.approx(model.mean_rate, rel=0.01)
    assert bursts.mean() == pytest.approx(model.mean_burst, rel=0.01)


def test_a_burst_and_its_maximum_go_on_over_chunks():
    model, packets = GilbertElliott(0.01, 0.01, 0.9, 0.02, burst_max=90), 300_000
    assert verdicts(model, 9, packets).tolist() == list(one_at_a_time(model, 9, packets))


def test_a_maximum_that_no_burst_reaches_changes_nothing():
    for model in (Uniform(0.3), GilbertElliott(0.01, 0.3)):
        capped = type(model)(**{**vars(model), "burst_max": 10_000})
        assert (verdicts(capped, 3, 50_000) == verdicts(model, 3, 50_000)).all()
        assert capped.mean_rate == pytest.approx(model.mean_rate)
        assert capped.mean_burst == pytest.approx(model.mean_burst)


def test_a_chain_carries_its_state_over_the_chunks_in_which_it_is_computed():
    model, packets = GilbertElliott(0.001, 0.0005, 0.99, 0.2), 300_000
    assert verdicts(model, 9, packets).tolist() == list(one_at_a_time(model, 9, packets))


def test_markov_is_ge_with_all_delivered_in_good_and_none_in_bad():
    assert markov(0.1, 0.2) == GilbertElliott(0.1, 0.2, k=1.0, h=0.0)


THRESHOLDS = [
    (0.0, 0),
    (2.0**-32, 1),
    (1 - 2.0**-32, 2**32 - 1),
    (1.0, 2**32),
    (0.5 / 2**32, 0),
    (1.5 / 2**32, 2),
    (2.5 / 2**32, 2),
]


def test_a_threshold_is_the_nearest_multiple_of_two_to_the_minus_32_and_halves_go_to_even():
    for probability, right in THRESHOLDS:
        assert threshold(probability) == right


@given(st.lists(st.booleans()))
def test_unpack_gives_back_what_pack_packed(bits):
    judged = np.array(bits, dtype=np.bool_)
    assert np.array_equal(unpack(pack(judged), len(bits)), judged)


def test_bit_n_of_a_bitmap_counted_from_the_least_is_packet_n():
    judged = np.zeros(20, dtype=np.bool_)
    judged[[0, 9, 19]] = True
    assert pack(judged) == bytes([0b1, 0b10, 0b1000])


# ---- Closed forms ----

STATISTICS = [
    Uniform(0.03),
    GilbertElliott(0.01, 0.25, 0.98, 0.05),
    GilbertElliott(0.3, 0.9, 0.6, 0.5),
    GilbertElliott(0.02, 0.1, 0.2, 0.9),  # the good state loses more
    markov(0.005, 0.3),
    gilbert_elliott_from(0.02, 3.0),
    gilbert_elliott_from(0.05, 2.0, k=0.99, h=0.1),
]


def observed(model, packets=2_000_000):
    lost = verdicts(model, 0, packets)
    begins = np.count_nonzero(lost[1:] & ~lost[:-1]) + int(lost[0])
    return np.count_nonzero(lost) / packets, np.count_nonzero(lost) / begins


def test_long_sequences_have_the_loss_rate_and_burst_length_of_the_closed_forms():
    for model in STATISTICS:
        rate, burst = observed(model)
        # 2 % is more than four standard deviations of the slowest of these chains over two million packets
        assert rate == pytest.approx(model.mean_rate, rel=0.02), model
        assert burst == pytest.approx(model.mean_burst, rel=0.02), model


@given(st.floats(0.0001, 0.5), st.floats(1.0, 100.0))
def test_a_model_made_from_a_rate_and_a_burst_length_has_them(rate, burst):
    model = gilbert_elliott_from(rate, burst)
    assert model.mean_rate == pytest.approx(rate)
    assert model.mean_burst == pytest.approx(burst)


@given(st.floats(0.001, 1), st.floats(0.001, 1), st.floats(0.6, 0.99), st.floats(0.01, 0.4))
def test_p_and_r_come_back_from_the_rate_and_burst_length_of_a_model(p, r, k, h):
    model = GilbertElliott(p, r, k, h)
    again = gilbert_elliott_from(model.mean_rate, model.mean_burst, k, h)
    assert (again.p, again.r) == (pytest.approx(p, rel=1e-6), pytest.approx(r, rel=1e-6))


def test_no_loss_has_no_bursts_and_total_loss_never_ends():
    assert Uniform(0.0).mean_burst == 0
    assert Uniform(1.0).mean_burst == math.inf
    assert markov(0.1, 0.0).mean_rate == 1
    assert gilbert_elliott_from(0.0, 3.0).mean_rate == 0


@given(patterns.filter(lambda pattern: pattern.repeat and pattern.packets))
def test_a_repeated_pattern_loses_its_share(pattern):
    assert pattern.mean_rate == np.count_nonzero(verdicts(pattern, 0, pattern.packets)) / pattern.packets


# ---- Parameters ----


@given(models)
def test_a_model_comes_back_from_its_parameters(model):
    assert loss_model(model.plain) == model


MODELS = [
    ({"model": "none"}, Uniform(0.0)),
    ({"model": "uniform", "p": 1}, Uniform(1.0)),
    ({"model": "markov", "p": 0.1, "r": 0.2}, markov(0.1, 0.2)),
    ({"model": "ge", "p": 0.1, "r": 0.2}, GilbertElliott(0.1, 0.2, 1.0, 0.0)),
    ({"model": "ge", "rate": 0.1, "burst": 2, "k": 0.99}, gilbert_elliott_from(0.1, 2.0, k=0.99)),
    ({"model": "markov", "rate": 0.1, "burst": 2}, gilbert_elliott_from(0.1, 2.0)),
    ({"model": "pattern", "drop": "3,7-9"}, Pattern((3, 7, 8, 9))),
    ({"model": "pattern", "drop": [3], "length": 9, "repeat": True}, Pattern((3,), 9, True)),
    ({"model": "uniform", "p": 0.1, "only_longer_than": 1200}, Uniform(0.1, only_longer_than=1200)),
    (
        {"model": "slots", "drop": "3", "slot_ms": 5, "only_longer_than": 9},
        Slots((3,), 5, only_longer_than=9),
    ),
    (
        {"model": "markov", "rate": 0.1, "burst": 2, "only_longer_than": 1},
        replace(gilbert_elliott_from(0.1, 2), only_longer_than=1),
    ),
]


def test_plain_parameters_and_texts_have_what_a_model_has():
    for _, model in MODELS:
        assert loss_model(model.plain) == model
        text = dict(line.split(" ", 1) for line in model.written(5).splitlines())
        assert text.get("only_longer_than") == (model.only_longer_than and str(model.only_longer_than))


def test_parameters_give_their_model():
    for parameters, model in MODELS:
        assert loss_model(parameters) == model


WRONG = [
    ({}, "model = None: must be one of none, uniform, ge, markov, pattern, beginning, ge-time"),
    ({"model": "gilbert"}, "model = 'gilbert': must be one of"),
    ({"model": "none", "p": 0.1}, "unknown key p: model none takes nothing"),
    ({"model": "uniform"}, "model uniform takes p, [burst_max] or rate (given: nothing)"),
    ({"model": "uniform", "p": 0.1, "q": 1}, "unknown key q: model uniform takes p, [burst_max] or rate"),
    ({"model": "uniform", "p": 0.1, "burst_max": 0}, "burst_max = 0: must be an integer from 1 to 10000"),
    ({"model": "markov", "p": 0.1, "r": 0.1, "burst_max": 2.5}, "burst_max = 2.5: must be an integer from 1"),
    (
        {"model": "ge", "rate": 0.1, "burst": 2, "burst_max": 3},
        "model ge takes p, r, [k], [h], [burst_max] or",
    ),
    ({"model": "beginning", "p": 0.1, "length": 3, "burst_max": 3}, "unknown key burst_max: model beginning"),
    *(
        (
            {"model": "uniform", "p": 0.1, "only_longer_than": bound},
            f"only_longer_than = {text}: must be an integer from 1 to 65535",
        )
        for bound, text in (
            (0, 0),
            (-1, -1),
            (65_536, 65_536),
            (1200.0, 1200.0),
            (True, "true"),
            ("9", "'9'"),
        )
    ),
    ({"model": "none", "only_longer_than": 9}, "unknown key only_longer_than: model none takes nothing"),
    ({"model": "uniform", "p": 1.5}, "p = 1.5: must be a probability, from 0 to 1"),
    ({"model": "uniform", "p": math.nan}, "p = nan: must be a probability"),
    ({"model": "uniform", "p": "0.1"}, "p = '0.1': must be a number"),
    ({"model": "uniform", "p": True}, "p = true: must be a number"),
    (
        {"model": "ge", "p": 0.1},
        "model ge takes p, r, [k], [h], [burst_max] or rate, burst, [k], [h] (given: p)",
    ),
    (
        {"model": "ge", "p": 0.1, "r": 0.1, "rate": 0.1},
        "model ge takes p, r, [k], [h], [burst_max] or rate, burst",
    ),
    ({"model": "ge", "p": 0.1, "r": -0.1}, "r = -0.1: must be a probability"),
    ({"model": "markov", "p": 0.1, "r": 0.1, "k": 1}, "unknown key k: model markov takes"),
    ({"model": "ge", "rate": 0.1, "burst": 0.5}, "burst = 0.5: must be from 1 to below inf packets"),
    ({"model": "ge", "rate": 0.01, "burst": 2, "k": 0.9}, "rate = 0.01: must be above 1 - k = 0.1 and below"),
    ({"model": "ge", "rate": 0.1, "burst": 2, "k": 0.1, "h": 0.2}, "h = 0.2: must be less than k = 0.1"),
    ({"model": "pattern", "drop": 7}, "drop = 7: must be packet indices"),
    ({"model": "pattern", "drop": [-1]}, "dropped = -1: must be an integer from 0"),
    ({"model": "pattern", "drop": "3", "length": 3}, "length = 3: must be an integer from 4"),
    ({"model": "pattern", "drop": "3", "repeat": "yes"}, "repeat = 'yes': must be true or false"),
]


def test_wrong_parameters_are_refused_in_one_line_that_names_them():
    for parameters, named in WRONG:
        with pytest.raises(LossModelError) as refusal:
            loss_model(parameters)
        assert named in str(refusal.value)
        assert "\n" not in str(refusal.value)


def test_every_model_is_refused_an_unknown_key():
    for name in names.MODELS:
        with pytest.raises(LossModelError, match="unknown key frequency"):
            loss_model({"model": name, "frequency": 1})


@given(drop_lists)
def test_a_drop_list_gives_its_indices(indices):
    assert parse_drop_list(",".join(map(str, indices))) == indices
    assert parse_drop_list("\n".join(f"{n}-{n}" for n in indices) + ",") == indices


def test_what_is_not_a_drop_list_is_refused():
    for text in ("x", "3-", "-3", "9-7", "1-2-3", "3.5", "٣", str(LONGEST), f"0-{LONGEST}"):
        with pytest.raises(LossModelError, match=r"^drop = "):
            parse_drop_list(text)


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999))
def test_a_markov_burst_lasts_one_over_r_and_a_uniform_one_is_geometric(p, r):
    assert markov(p, r).mean_burst == pytest.approx(1 / r)
    assert Uniform(p).mean_burst == pytest.approx(1 / (1 - p))


def test_a_seed_or_a_number_of_packets_out_of_range_is_refused():
    for seed, packets, named in (
        (-1, 10, "seed = -1"),
        (SEEDS, 10, "seed = "),
        (0, -1, "packets = -1"),
        (0, LONGEST + 1, "packets = "),
    ):
        with pytest.raises(LossModelError, match=named):
            verdicts(Uniform(0.1), seed, packets)
    with pytest.raises(LossModelError, match="packets = 9: must be an integer from 0 to 8"):
        unpack(b"\0", 9)
