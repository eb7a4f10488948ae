"""Losses that a model made are known again as its own, and others are not taken for it."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fecbench.dropper import recordings
from fecbench.dropper.fit import fit
from fecbench.dropper.model import GilbertElliott, Uniform, markov, verdicts
from fecbench.errors import BadInput
from fecbench.runners.commands.losses import losses

PACKETS = 100_000


def test_the_parameters_of_a_hidden_chain_are_found_within_a_tenth() -> None:
    for model in (GilbertElliott(0.01, 0.1, 0.99, 0.3), GilbertElliott(0.005, 0.05, 0.998, 0.5)):
        best = fit(verdicts(model, 5, PACKETS))
        assert (best.name, best.usable) == ("ge", True)
        assert isinstance(best.model, GilbertElliott)
        assert best.model.p == pytest.approx(model.p, rel=0.1)
        assert best.model.r == pytest.approx(model.r, rel=0.1)
        assert 1 - best.model.k == pytest.approx(1 - model.k, rel=0.2)
        assert best.model.h == pytest.approx(model.h, rel=0.1)


def test_of_uniform_losses_no_bursts_are_claimed() -> None:
    names = [fit(verdicts(Uniform(0.01), seed, 20_000), seed).name for seed in range(4)]
    assert names.count("uniform") >= 3


def test_losses_that_no_model_makes_are_not_usable() -> None:
    regular = np.arange(20_000) % 50 < 2
    best = fit(regular)
    assert not best.usable and "simulations are as far from it" in best.why


def test_of_too_few_nothing_is_said() -> None:
    for lost in (np.zeros(5000, bool), np.ones(5000, bool), np.arange(500) % 9 == 0):
        best = fit(lost)
        assert not best.usable and "too few" in best.why


def test_a_bad_file_is_named_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "verdicts"
    for content, why in (
        (b"", "is empty"),
        (b"0 1 2\n", "line 1: '2'"),
        (
            b"packet,lost\n0,1\n",
            "line 1: 'packet': must be 0 .* without a heading",
        ),
        (b"\xff\xfe", "is no text"),
        (b"01\n1x0\n", "line 2: 'x'"),
    ):
        path.write_bytes(content)
        with pytest.raises(BadInput, match=f"verdicts: {why}"):
            recordings.read(path)


def test_the_command_says_the_model_and_whether_it_may_be_used(tmp_path: Path) -> None:
    path = tmp_path / "verdicts"
    lost = verdicts(markov(0.02, 0.4), 5, 20_000)
    path.write_text("\n".join("".join(map(str, row)) for row in lost.astype(int).reshape(-1, 100)) + "\n")
    assert (recordings.read(path) == lost).all()
    result = CliRunner().invoke(losses, ["fit", str(path), "--json"])
    document = json.loads(result.stdout)
    assert (result.exit_code, document["model"], document["usable"]) == (0, "markov", True)
    assert set(document) >= {"model", "parameters", "usable", "why"}
    assert document["bursts"] == int(lost[0]) + int((~lost[:-1] & lost[1:]).sum())
    assert 0 < document["seen_from"]["losses by length of burst"] < 0.2
    assert document["parameters"] == {"p": pytest.approx(0.02, rel=0.1), "r": pytest.approx(0.4, rel=0.1)}
    printed = CliRunner().invoke(losses, ["fit", str(path)]).stdout
    assert printed.startswith(f"No difference found, with {document['bursts']} bursts: ")


def test_the_command_says_first_that_a_model_is_not_to_be_used(tmp_path: Path) -> None:
    path = tmp_path / "verdicts"
    path.write_text("0" * 1500 + ("1" * 20 + "0" * 1480) * 30)
    result = CliRunner().invoke(losses, ["fit", str(path)])
    assert result.exit_code == 0
    assert result.stdout.startswith("Do not use this model: ")


def test_a_model_of_few_stays_is_not_judged() -> None:
    random = np.random.default_rng(3)
    step = random.random(20_000) < np.where(np.arange(20_000) < 10_000, 0.005, 0.04)
    best = fit(step)
    assert (best.name, best.usable, best.seen_from) == ("ge", False, {})
    assert "too few to judge" in best.why
