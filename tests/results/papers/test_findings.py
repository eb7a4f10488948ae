"""The pages of docs/findings say what the recorded campaigns give, word by word."""

from __future__ import annotations

import pytest

from fecbench.results.papers import findings


@pytest.mark.parametrize("paper", findings.RECORDED)
def test_findings_are_current(paper: str) -> None:
    page = (findings.PAGES / f"{paper}.md").read_text()
    assert page.count(findings.START) == page.count(findings.END) == 1
    assert findings.with_findings(page, findings.text_of(paper)) == page, "make findings"


def test_what_is_written_by_hand_stays() -> None:
    page = f"before\n{findings.START}old\n{findings.END}after\n"
    assert findings.with_findings(page, "new\n") == f"before\n{findings.START}new\n{findings.END}after\n"
