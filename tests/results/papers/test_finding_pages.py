"""The pages of docs/findings say what the recorded campaigns give, and the guide what words are taken for."""

from pathlib import Path

import pytest

from fecbench.results.papers import finding_pages
from fecbench.results.papers.claim import Claim

# CI runs it when results/papers changes.
SLOW = ("rquic2021",)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] * (path.stem in SLOW), id=path.stem)
        for path in finding_pages.pages()
    ],
)
def test_pages_are_current(path: Path) -> None:
    page = path.read_text()
    assert page.count(finding_pages.START) == page.count(finding_pages.END) == 1
    assert finding_pages.with_findings(page, finding_pages.pages()[path]()) == page, "make findings"


def test_what_is_written_by_hand_stays() -> None:
    page = f"before\n{finding_pages.START}old\n{finding_pages.END}after\n"
    assert (
        finding_pages.with_findings(page, "new\n")
        == f"before\n{finding_pages.START}new\n{finding_pages.END}after\n"
    )


def test_more_trials_judge_a_claim_where_they_tell_more() -> None:
    def claim(holds: bool | None, in_direction: bool | None = False) -> Claim:
        return Claim("", "", "", holds, in_direction)

    in_direction, open_in_size = claim(False, True), claim(None, True)
    for words, more, tells_more in (
        (claim(None), claim(True), True),
        (claim(None), claim(None), False),
        (claim(True), claim(False), False),
        (claim(False, None), in_direction, True),
        (open_in_size, claim(True), True),
        (open_in_size, claim(None), False),
        (open_in_size, in_direction, True),
        (claim(False, None), claim(False), True),
        (claim(False, None), claim(False, None), False),
        (in_direction, claim(True), False),
    ):
        assert finding_pages._tells_more(more, words) is tells_more, (words, more)
