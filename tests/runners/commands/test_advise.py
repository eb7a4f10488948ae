"""`fecbench advise`: its sentences, its document and its exit statuses."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fecbench.errors import BadInput
from fecbench.results.advice.likeness import NEAR
from fecbench.results.advice.record import CONTROLLERS
from fecbench.runners.commands.command_line import app

NETWORK = {"--rtt-ms": "80", "--bandwidth-mbps": "20", "--loss": "0.02", "--size-bytes": "50000"}


@pytest.fixture
def advised(capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Run the command: its exit status, and what it prints."""

    def run(*more: str, **other: str) -> tuple[int, str]:
        options = NETWORK | {f"--{name.replace('_', '-')}": value for name, value in other.items()}
        words = [word for pair in options.items() for word in pair]
        status = app(["advise", "--no-run", *words, *more], standalone_mode=False)
        return status, capsys.readouterr().out

    return run


def test_losses_may_be_a_percentage_and_what_the_answer_rests_on_is_written(
    advised: Any, tmp_path: Path
) -> None:
    near = tmp_path / "near.csv"
    assert advised("--output", str(near), loss="0.02") == advised("--output", str(near), loss="2%")
    assert len(pd.read_csv(near)) == len(CONTROLLERS) * NEAR


def test_the_document_has_a_prediction_beside_each_interval_of_a_mean(advised: Any) -> None:
    status, printed = advised("--json")
    document = json.loads(printed)
    assert status == 0 and document["answer"] == "use" and document["use"]["controller"] == "safe"
    assert document["networks"] == NEAR and document["outside"] is False
    for entry in (document, *document["candidates"]):
        (low, high), (mean_low, mean_high) = entry["prediction"], entry["interval"]
        assert low < mean_low < entry["ratio"] < mean_high < high
    for candidate in document["candidates"]:
        assert candidate["decided"] + candidate["undecided"] == NEAR


ASKED: list[dict[str, str]] = [
    {},
    {"size_bytes": "23000"},
    {"size_bytes": "100000", "congestion_control": "bbr3", "queue_bdp": "0.25"},
    {"burst": "4", "loss": "1%"},
    {"burst": "1.5"},
    {"loss": "0"},
    {"loss": "0.0005"},
    {"size_bytes": "5000000", "rtt_ms": "1500"},
    {"size_bytes": "200000", "burst": "4"},
]


@pytest.mark.parametrize("network", ASKED, ids=str)
def test_nothing_is_surely_longer_or_not_without_how_many_are_decided(
    advised: Any, network: dict[str, str]
) -> None:
    _, printed = advised(**network)
    entry = re.findall(r"harms in (\d+) of (\d+) that are decided, (\d+) undecided;", printed)
    assert len(entry) == printed.count("harms in") == len(CONTROLLERS)
    _, document = advised("--json", **network)
    for numbers, candidate in zip(entry, json.loads(document)["candidates"], strict=True):
        assert [*map(int, numbers)] == [candidate[name] for name in ("harmed", "decided", "undecided")]


def test_the_first_sentence_is_the_answer_and_its_range_is_of_one_network(advised: Any) -> None:
    status, printed = advised()
    first, of_safe, mean, *_ = printed.splitlines()
    (ends,) = re.findall(
        r"take (0\.\d+ to \d\.\d+) of the time without it \(90 of 100 such networks\)\.", first
    )
    assert status == 0 and first.startswith(
        'Turn FEC on, scheme = "rlc", controller = "safe": in a network like yours, '
    )
    assert of_safe == f"  safe: {ends} of the time (90 of 100 such networks)."
    assert mean.startswith(f"    The mean over the {NEAR} recorded networks most like yours is 0.")


def test_no_fec_is_an_answer(advised: Any) -> None:
    status, printed = advised(loss="0", size_bytes="5000000")
    assert status == 0 and printed.startswith('Leave FEC off (scheme = "none"): ')
    document = json.loads(advised("--json", loss="0", size_bytes="5000000")[1])
    assert (document["answer"], document["use"], document["ratio"]) == ("none", {"scheme": "none"}, 1.0)


def test_losses_between_none_and_the_fewest_measured_are_outside(advised: Any) -> None:
    _, printed = advised(loss="0.0005")
    assert "Believe this less: loss is between what was measured: 0 % and 0.1 %." in printed
    document = json.loads(advised("--json", loss="0.0005")[1])
    assert document["outside"] is True and document["between"]["loss"][0] == 0


NOTHING: list[tuple[dict[str, str], str]] = [
    ({"rtt_ms": "20000"}, "rtt_ms is outside of what was measured, 10"),
    ({"size_bytes": "1000000000"}, "size_bytes is outside of what was measured, 1 kB to 5 MB"),
    ({"loss": "90%"}, "loss is outside of what was measured, 0.1 % to"),
]


@pytest.mark.parametrize(("network", "why"), NOTHING, ids=str)
def test_where_nothing_can_be_said_the_status_is_3(advised: Any, network: dict[str, str], why: str) -> None:
    status, printed = advised(**network)
    assert status == 3 and printed.startswith("Nothing can be said of downloads of ") and why in printed
    status, printed = advised("--json", **network)
    document = json.loads(printed)
    assert (status, document["answer"], document["use"]) == (3, "nothing", None)
    assert document["outside"] is True and document["far"] == [*network]


def test_where_networks_alike_gain_and_lose_the_first_sentence_has_both_ends(advised: Any) -> None:
    place = {"rtt_ms": "20", "bandwidth_mbps": "5", "loss": "0.02", "burst": "4", "size_bytes": "200000"}
    status, printed = advised(**place, congestion_control="bbr3")
    ends = re.match(r"Nothing can be said of downloads of 200 kB: .* take (\S+) to (\S+) of", printed)
    assert status == 3 and ends is not None
    assert float(ends[1]) < 1 < float(ends[2])


def test_a_burst_without_losses_is_refused(advised: Any) -> None:
    with pytest.raises(BadInput, match="burst = 8: must be 1 where loss = 0"):
        advised(loss="0", burst="8")


def test_quantities_have_units_and_bare_numbers_those_of_before(advised: Any) -> None:
    words = ["--rtt", "0.08s", "--bandwidth", "20000kbit/s", "--loss", "2%", "--size", "50kB", "--json"]
    status = app(["advise", "--no-run", *words], standalone_mode=False)
    assert (status, advised("--json")[0]) == (0, 0)
    parts = {"--rtt-ms": "80ms", "--bandwidth-mbps": "20Mbit/s", "--size-bytes": "50 kB"}
    given = {name.removeprefix("--").replace("-", "_"): value for name, value in parts.items()}
    assert advised("--json", **given) == advised("--json")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--rtt", "80ms"], "give --bandwidth, --loss, --size, such as --bandwidth 20Mbit/s --loss 3%"),
        (["--rtt", "80mm"], "'80mm': must be a time such as 80ms"),
        (["--rtt", "90ms..80ms"], "the low end comes first"),
        (["--size", "50 apples"], "'50 apples': must be a size such as 50kB"),
        (["--burst", "two"], "'two': must be a number such as 2, or a range such as 1..4"),
        (["--trace", "2"], "--trace 2: is of a file, and there is none"),
        (["a", "b", "c"], "c: is a third file: give one, or captures of both sides"),
        (["absent.qlog", "--size", "50kB"], "absent.qlog: cannot be read: No such file or directory"),
    ],
    ids=str,
)
def test_what_is_missing_or_wrong_is_said_in_a_line(fecbench_here: Any, words: list[str], why: str) -> None:
    refusal = fecbench_here("advise", *words).refusal()
    assert why in refusal


def test_the_help_of_fecbench_finds_it_by_recording(fecbench_here: Any) -> None:
    (line,) = [line for line in fecbench_here("--help").stdout.splitlines() if "recording" in line]
    assert "advise" in line
