"""What a user of a bench asks for, where it is nothing that could be measured."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("wrong", ["0", "-1", "1.5", "many"])
@pytest.mark.parametrize(
    ("program", "option"),
    [
        ("cluster_cost", "--repetitions="),
        ("engine_cost", "--repetitions="),
        ("results_cost", ""),
        ("soak", "--trials="),
    ],
)
def test_a_number_below_one_is_refused_in_a_line(program: str, option: str, wrong: str) -> None:
    words = [sys.executable, "-m", f"bench.{program}", *([] if option else ["--"]), f"{option}{wrong}"]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[-1].endswith(f"{wrong} must be a whole number from 1")
