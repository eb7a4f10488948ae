"""The answer for those who look at it in their CI: JSON, a Markdown summary, and JUnit XML with a case for
each ratio and each kind of failure."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

from fecbench.documents import number
from fecbench.quantities import counted
from fecbench.results.gate import build_answer
from fecbench.results.gate.build_answer import Answer
from fecbench.results.gate.overall import Ratio
from fecbench.results.gate.verdict import Measured, shown, verdict_of

Commands = Callable[[int, int], list[str]]
"""The commands that replay an old trial and a new one."""
_SIGNS = {
    "fails": "🔴",
    "slower": "🔴",
    "faster": "🟢",
    "no difference that matters": "⚪",
    "undecided": "🟡",
}
_FAILURES = ("fails", "slower")


def document(result: Answer, commands: Commands) -> dict[str, Any]:
    """Return the answer as JSON, which knows no NaN."""
    measured, failed = result.measured, result.measured.failed
    return {
        "verdict": result.verdict,
        "says": build_answer.headline(result),
        **_of_error(measured.overall),
        "margin": result.margins.overall,
        "helps": result.helps,
        "harms": result.harms,
        "equivalent": result.equivalent,
        "places": result.places,
        "pairs": measured.pairs,
        "workloads": {label: _of_error(ratio) for label, ratio in measured.workloads.items()},
        **_of(measured.mean, "mean_ratio", "mean_interval"),
        **_of(measured.tail, "tail_ratio", "tail_interval"),
        "tail_margin": result.margins.tail,
        "slower_networks": len(measured.networks.points),
        "slower_points": list(measured.networks.points),
        "failed": {
            "both": failed.both,
            "old_alone": failed.old_alone,
            "new_alone": failed.new_alone,
            "run": failed.run,
        },
        "failing": [
            {
                "kind": one.kind,
                "workload": one.workload,
                "point": one.point,
                "repetition": one.repetition,
                "old_trial": one.old_trial,
                "new_trial": one.new_trial,
                "replay": commands(one.old_trial, one.new_trial),
            }
            for one in failed.pairs
        ],
        "not_vouched": result.not_vouched,
        "other_hosts": result.other_hosts,
        "attempts": list(result.attempts),
        "where": list(result.where),
        "worst": [
            {
                "workload": one.workload,
                "point": one.point,
                "factors": dict(one.factors),
                "ratio": one.ratio,
                "interval": [one.low, one.high],
                "pairs": one.pairs,
                "old_trial": one.old_trial,
                "new_trial": one.new_trial,
                "pair_ratio": one.pair_ratio,
                "replay": commands(one.old_trial, one.new_trial),
            }
            for one in result.worst
        ],
        "campaign": result.campaign.name,
        "engine": result.campaign.engine,
    }


def _of(ratio: Ratio, name: str, interval: str) -> dict[str, Any]:
    return {name: number(ratio.value), interval: [number(ratio.low), number(ratio.high)]}


def _of_error(ratio: Ratio) -> dict[str, Any]:
    return {**_of(ratio, "ratio", "interval"), "error": number(ratio.error)}


def markdown(result: Answer, commands: Commands) -> str:
    """Return a summary that a pull request or a job's page shows."""
    lines = [
        f"### {_SIGNS[result.verdict]} {_escaped(result.campaign.title)}",
        "",
        f"**{_escaped(build_answer.headline(result))}**",
        "",
        *([_escaped(build_answer.failures(result)), ""] if build_answer.failures(result) else []),
        f"{build_answer.counts(result)} {_escaped(build_answer.slow_ends(result))}",
        "",
        "| new / old | ratio | 95 % interval |",
        "|---|---|---|",
        *(_row(label, ratio) for label, ratio in build_answer.ratios(result).items()),
        "",
        *(f"- {_escaped(line)}" for line in result.where),
        "",
    ]
    replays = [
        (build_answer.failing(result, one), commands(one.old_trial, one.new_trial))
        for one in result.measured.failed.pairs
    ]
    lines += _folded("Pairs that fail, and how to replay both builds", replays)
    replays = [
        (f"{build_answer.network(one)}: {build_answer.ratio_in(one)}", commands(one.old_trial, one.new_trial))
        for one in result.worst
    ]
    lines += _folded("The worst networks, and how to replay both builds", replays)
    return "\n".join(lines)


def _folded(heading: str, replays: list[tuple[str, list[str]]]) -> list[str]:
    if not replays:
        return []
    lines = [f"<details><summary>{heading}</summary>", ""]
    for text, commands in replays:
        lines += [_escaped(text), "", "```sh", *commands, "```", ""]
    return [*lines, "</details>", ""]


def _row(label: str, ratio: Ratio) -> str:
    value, _, interval = shown(ratio).partition(" ")
    return f"| {_escaped(label)} | {value} | {interval} |"


def _escaped(text: str) -> str:
    """Text that Markdown takes for text: titles hold the paths and revisions that a user named."""
    return "".join(f"\\{sign}" if sign in r"\`*_{}[]<>()#+!|" else sign for sign in text)


def junit(result: Answer) -> str:
    """Return a test suite: all networks, each workload, the slow ends, single networks, and failures. A
    slower or failing case is a failure, and an undecided one is skipped."""
    cases = _cases(result)
    kinds = [_kind(verdict) for verdict, _ in cases.values()]
    suite = ElementTree.Element(
        "testsuite",
        name="fecbench compare",
        tests=str(len(cases)),
        failures=str(kinds.count("failure")),
        errors="0",
        skipped=str(kinds.count("skipped")),
    )
    for (label, (_, words)), kind in zip(cases.items(), kinds, strict=True):
        case = ElementTree.SubElement(suite, "testcase", classname=result.campaign.name, name=label)
        if kind == "system-out":
            ElementTree.SubElement(case, kind).text = words
        else:
            ElementTree.SubElement(case, kind, message=words)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _kind(verdict: str) -> str:
    return "failure" if verdict in _FAILURES else "skipped" if verdict == "undecided" else "system-out"


def _cases(result: Answer) -> dict[str, tuple[str, str]]:
    """The verdict of each case, with its words."""
    measured, margins, failed = result.measured, result.margins, result.measured.failed
    cases = {"all networks": (str(result.verdict), build_answer.headline(result))}
    for label, ratio in measured.workloads.items():
        verdict = verdict_of(Measured(ratio, {}, measured.pairs), margins)
        cases[label] = (str(verdict), f"{verdict}: new / old = {shown(ratio)}")
    tail = "undecided" if math.isnan(measured.tail.low) else "not slower"
    is_tail_slower = measured.tail.low > 1 + margins.tail
    cases["95th percentiles"] = ("slower" if is_tail_slower else tail, build_answer.slow_ends(result))
    networks = "not slower" if measured.pairs else "undecided"
    points = measured.networks.points
    cases["single networks"] = ("slower" if points else networks, build_answer.counts(result))
    new_alone = "fails" if measured.fails else "undecided" if measured.may_fail else "no more often"
    for name, outcome, count in (
        ("both builds", "fails" if failed.both else "none", failed.both),
        ("the new build alone", new_alone, failed.new_alone),
    ):
        words = f"{count:,} of {counted(failed.run, 'pair')} failed or timed out in {name}"
        cases[f"failures in {name}"] = (outcome, words)
    return cases
