"""`fecbench losses` prints what the oracle predicts. Needs no root."""

import json

import numpy as np
from typer.testing import CliRunner

from fecbench.dropper.draws import LossModelError
from fecbench.dropper.model import (
    Beginning,
    GilbertElliott,
    Pattern,
    Uniform,
    gilbert_elliott_from,
    markov,
    verdicts,
)
from fecbench.runners.commands.losses import losses


def run(*arguments):
    return CliRunner().invoke(losses, list(arguments))


def document(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


MODELS = [
    (["uniform", "--p", "0.02"], Uniform(0.02)),
    (["uniform", "--p", "0"], Uniform(0.0)),
    (["markov", "--p", "0", "--r", "0"], markov(0.0, 0.0)),
    (["beginning", "--p", "0.5", "--length", "9"], Beginning(0.5, 9)),
    (
        ["ge", "--p", "0.01", "--r", "0.25", "--k", "0.98", "--h", "0.05"],
        GilbertElliott(0.01, 0.25, 0.98, 0.05),
    ),
    (["ge", "--p", "0.01", "--r", "0.25"], GilbertElliott(0.01, 0.25, 1.0, 0.0)),
    (["ge", "--rate", "0.02", "--burst", "4"], gilbert_elliott_from(0.02, 4.0)),
    (["markov", "--p", "0.01", "--r", "0.25"], markov(0.01, 0.25)),
    (["pattern", "--drop", "3,7-9"], Pattern((3, 7, 8, 9))),
    (["pattern", "--drop", "3", "--length", "10", "--repeat"], Pattern((3,), 10, True)),
]


def test_the_summary_counts_losses_and_bursts():
    printed = run("pattern", "--drop", "3,7-9", "--packets", "100").stdout
    assert "4 of 100 packets" in printed and "2, mean length 2" in printed and "3, 7, 8, 9" in printed
    assert "none" in run("pattern", "--drop", "").stdout


WRONG = [
    (["uniform", "--p", "2"], "p = 2.0"),
    (["uniform", "--p", "0.1", "--seed", "-1"], "seed = -1"),
    (["uniform", "--p", "0.1", "--packets", "-1"], "packets = -1"),
    (["markov"], "given: nothing"),
    (["pattern", "--drop", "9-7"], "drop = '9-7'"),
]


def test_a_wrong_value_is_named():
    for arguments, named in WRONG:
        result = run(*arguments)
        assert isinstance(result.exception, LossModelError)
        assert named in str(result.exception)
        assert result.stdout == ""


def test_the_document_has_the_model_and_the_losses_of_the_oracle():
    for arguments, model in MODELS:
        printed = document(*arguments, "--seed", "42", "--packets", "5000")
        assert printed["dropped"] == np.flatnonzero(verdicts(model, 42, 5000)).tolist()
        assert (printed["seed"], printed["packets"]) == (42, 5000)
        assert printed["model"] == model.plain
        assert printed["stationary_loss_rate"] == model.mean_rate
    assert document("uniform", "--p", "1", "--packets", "2")["mean_burst_length"] is None, "it never ends"
