"""The worst pairs of `fecbench compare`: on its page, and by `fecbench replay --from` on another machine."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.implementations.finding import ours
from tests.runners.conftest import Done
from tests.support import needs
from tests.support.designs import between, downloads, variant

NOQ = ours().find("noq-fec", "tests")
pytestmark = [needs.built(NOQ), pytest.mark.usefixtures("unrendered")]
DESIGN = downloads(
    "two",
    60_000,
    variant("any"),
    repetitions=6,
    statistic="mean",
    plan={"method": "sobol", "points": 2},
    factors={"owd_ms": between(30, 60)},
    constants={"bandwidth_mbps": 10, "loss.model": "none"},
)


def build_with(folder: Path, window: int) -> Path:
    """Make a build whose initial window has so many packets by default: a small one is slower."""
    folder.mkdir(parents=True)
    (folder / "build").symlink_to(NOQ.folder / "build")
    text = (NOQ.folder / "impl.toml").read_text()
    changed, count = re.subn(r"(\[options\.initial_window\][^\[]*?\ndefault = )\d+", rf"\g<1>{window}", text)
    assert count == 1
    (folder / "impl.toml").write_text(changed)
    return folder


def test_a_slower_build_has_pictures_of_its_worst_pairs_and_its_file_replays_them_elsewhere(
    fecbench_here: Callable[..., Done], tmp_path: Path
) -> None:
    old, new = build_with(tmp_path / "here" / "old", 32), build_with(tmp_path / "here" / "new", 4)
    (tmp_path / "two.toml").write_text(DESIGN)
    words = (old, new, tmp_path / "two.toml", "--option", "scheme=none", "--no-calibrate", "--jobs", 1)
    output = tmp_path / "gate"
    compared = fecbench_here("compare", *words, "--db", tmp_path / "x.sqlite", "--output", output)
    assert compared.returncode == 1, compared
    answer = json.loads((output / "compare.json").read_text())
    assert f"replay --from {output}/compare.json worst 1" in compared.stdout
    page = (output / "report.html").read_text()
    assert (output / "worst-1.png").exists() and (output / "worst-2.png").exists()
    assert page.count("They part at packet") >= 2 and "replay --from compare.json worst 2" in page
    (tmp_path / "here").rename(tmp_path / "elsewhere")
    command: tuple[Any, ...] = ("replay", "--from", output / "compare.json", "worst", 1)
    pair = ("--plot", tmp_path / "pair.svg", "--json")
    refusal = fecbench_here(*command, *pair).refusal()
    assert f"the old build of noq-fec, {old}, is not here: give --old FOLDER" in refusal
    builds = [f"--{arm}={tmp_path / 'elsewhere' / arm}" for arm in ("old", "new")]
    result = fecbench_here(*command, *pair, *builds, "--output", tmp_path / "pair")
    document = json.loads(result.stdout)
    assert result.returncode == 0 and document["same"] == [True, True], result
    assert document["part"].startswith("They part at packet ")
    worst = answer["worst"][0]
    numbers = [str(worst["old_trial"]), str(worst["new_trial"])]
    assert all(list((tmp_path / "pair" / number).rglob("*.sqlog")) for number in numbers)
    times = document["differ"]["client.dct_s"]
    assert times[1] / times[0] == pytest.approx(worst["pair_ratio"])


def test_a_file_that_is_no_comparison_and_a_pair_that_it_lacks_are_refused(
    fecbench_here: Callable[..., Done], tmp_path: Path
) -> None:
    whole = {"worst": [], "failing": [], "builds": {}, "replays": {}}
    path = tmp_path / "compare.json"
    for text, words, problem in (
        ("{", "worst 1", "): must be a compare.json of fecbench compare --output"),
        ("[]", "worst 1", "must be a compare.json"),
        ("{}", "worst 1", "must be a compare.json of fecbench compare --output"),
        (json.dumps(whole), "worst 1", "worst 1: must be none, since there is no such pair"),
        (json.dumps(whole), "best 1", "best 1: must be worst or failing and a number"),
        (json.dumps(whole), "worst", "must be worst or failing, and a number: worst 1"),
        (json.dumps(whole), "worst one", "must be worst or failing, and a number: worst 1"),
        (json.dumps(whole | {"worst": [{"old_trial": 1}]}), "worst 1", "must be a compare.json"),
        (json.dumps(whole | {"worst": [1]}), "worst 1", "must be a compare.json"),
        (json.dumps(whole | {"worst": {}}), "worst 1", "must be"),
    ):
        path.write_text(text)
        assert problem in fecbench_here("replay", "--from", path, *words.split()).refusal(), text
    path.unlink()
    assert "cannot be read" in fecbench_here("replay", "--from", path, "worst", "1").refusal()
    assert "goes with --from" in fecbench_here("replay", "1", "--old", "x").refusal()
    assert "must be the number of a trial" in fecbench_here("replay", "worst").refusal()
    assert "must be one number" in fecbench_here("replay", "1", "2").refusal()
