"""Arguments of benches that nothing can be measured with are refused."""

import argparse
import subprocess
import sys

import pytest

from bench.arguments import from_one


def test_a_whole_number_from_one_is_taken_and_nothing_else() -> None:
    assert [from_one(text) for text in ("1", "20")] == [1, 20]
    for wrong in ("0", "-1", "1.5", "many"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"^{wrong} must be a whole number from 1$"):
            from_one(wrong)


@pytest.mark.parametrize(
    ("program", "option"),
    [
        ("cluster_cost", "--repetitions="),
        ("engine_cost", "--repetitions="),
        ("results_cost", ""),
        ("soak", "--trials="),
    ],
)
def test_a_number_below_one_is_refused_in_a_line(program: str, option: str) -> None:
    words = [sys.executable, "-m", f"bench.{program}", *([] if option else ["--"]), f"{option}0"]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[-1].endswith("0 must be a whole number from 1")
