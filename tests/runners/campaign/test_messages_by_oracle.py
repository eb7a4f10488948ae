"""Messages over plain UDP: what arrives is what the oracle lets pass, and all metrics follow from that."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench import results
from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import GilbertElliott, Pattern, Uniform, verdicts
from tests.support.designs import Table, one_of, variant, workload

MESSAGES, PACKETS, RATE_HZ = 150, 8, 30
# Where it is not the little design.
DESIGN = {
    "repetitions": 3,
    "timeout_s": 60,
    "plan": {"method": "grid"},
    "factors": {"owd_ms": one_of(0, 40)},
    "workloads": [workload("messages", duration_s=5)],
    "variants": [variant("UDP", "udp") | {"series": ["messages"]}],
}
DROPPED = (20, 21, 22, 23, 500, 900)
LOSSES: dict[str, tuple[Table, LossModel]] = {
    "none": ({"model": "none"}, Uniform(0.0)),
    "uniform": ({"model": "uniform", "p": 0.02}, Uniform(0.02)),
    "bursts": (
        {"model": "ge", "p": 0.01, "r": 0.2, "k": 0.99, "h": 0.1},
        GilbertElliott(0.01, 0.2, 0.99, 0.1),
    ),
    "pattern": ({"model": "pattern", "drop": ",".join(map(str, DROPPED))}, Pattern(DROPPED)),
}


def predicted(model: LossModel, seed: int) -> tuple[list[int], float, int]:
    """Return the oracle's arriving parts of each message, re-buffering in s, and received bytes."""
    # The server's first packet answers the client's; its next ones are the parts.
    lost = verdicts(model, seed, 1 + MESSAGES * PACKETS)[1:]
    arrive, rebuffering_s, received_bytes = [], 0.0, 0
    for message in range(MESSAGES):
        missing = int(lost[message * PACKETS : (message + 1) * PACKETS].sum())
        arrive.append(PACKETS - missing)
        received_bytes += 1000 * (PACKETS - missing)
        if missing:
            rebuffering_s += 1 / RATE_HZ
    return arrive, rebuffering_s, received_bytes


@pytest.mark.parametrize("kind", LOSSES)
def test_what_arrives_over_udp_is_what_the_oracle_lets_pass(
    kind: str, write_design: Any, virtually: Callable[..., Path], tmp_path: Path
) -> None:
    written, model = LOSSES[kind]
    network = {"bandwidth_mbps": 20, "queue_packets": 1000, "loss": written}
    design = write_design(tmp_path, **DESIGN, constants=network)
    with results.open(str(virtually(design))) as opened:
        (name,) = opened.campaigns()["campaign"]
        trials, rows = opened[name].trials(), opened[name].series("messages")
    assert len(trials) == 6
    for trial in trials.itertuples():
        of_trial = trials.loc[trial.Index]
        seeds = (int(of_trial[f"seed.internet.{direction}"]) for direction in ("up", "down"))
        if any(verdicts(model, seed, 1)[0] for seed in seeds):
            continue  # the client asks again, and is answered twice
        arrive, rebuffering_s, received_bytes = predicted(model, int(of_trial["seed.internet.down"]))
        assert list(rows.loc[rows["id"] == of_trial["id"], "parts_arrived"]) == arrive
        assert of_trial["messages.rebuffering_s"] == pytest.approx(rebuffering_s, abs=1e-4)
        assert of_trial["messages.received_bytes"] == received_bytes
        # No message waits for the one before; the first waits for what answers the client.
        assert of_trial["messages.latency_max_ms"] == pytest.approx(
            of_trial["owd_ms"] + 8e-3 * PACKETS * 1049 / 20, abs=0.02
        )
