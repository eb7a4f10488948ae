"""The cases of a CI say no more than the verdict does."""

from dataclasses import replace
from xml.etree import ElementTree

from fecbench.results.gate.build_answer import Answer
from fecbench.results.gate.failing import Failed
from fecbench.results.gate.for_ci import junit
from fecbench.results.gate.overall import UNKNOWN, Ratio
from fecbench.results.gate.verdict import Margins, Measured, verdict_of
from tests.support.campaigns import campaign_info

ONE = Ratio(1.0, 0.999, 1.001)
MEASURED = Measured(ONE, {"download-1": ONE}, pairs=100, mean=ONE, tail=ONE)
MARGINS = Margins(0.01, 0.04)


def cases(measured: Measured) -> dict[str, str]:
    """Return the end of each case: "failure", "skipped", or "system-out" where it passed."""
    verdict = verdict_of(measured, MARGINS)
    answer = Answer(campaign_info(), verdict, MARGINS, measured, 0, 0, 1, 1, 0, 0, (), (), ())
    suite = ElementTree.fromstring(junit(answer))
    return {str(case.get("name")): case[0].tag for case in suite}


def test_what_is_unknown_passes_no_case() -> None:
    assert set(cases(MEASURED).values()) == {"system-out"}
    assert cases(replace(MEASURED, tail=UNKNOWN))["95th percentiles"] == "skipped"
    nothing = cases(Measured(UNKNOWN, {}, pairs=0))
    assert {nothing[name] for name in ("all networks", "95th percentiles", "single networks")} == {"skipped"}


def test_failures_that_may_be_chance_fail_no_case_and_those_that_decide_do() -> None:
    """Emulated, one failure of the new build alone may be chance, and the verdict is good."""
    by_chance = replace(MEASURED, failed=Failed(new_alone=1, old_alone=1, run=102))
    assert verdict_of(by_chance, MARGINS) == "no difference that matters"
    name = "failures in the new build alone"
    assert cases(by_chance)[name] == "system-out"
    assert cases(replace(by_chance, may_fail=True))[name] == "skipped"
    assert cases(replace(by_chance, may_fail=True, fails=True))[name] == "failure"
