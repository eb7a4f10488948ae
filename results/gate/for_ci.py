"""The answer for those who look at it in their CI: a Markdown summary, and JUnit XML with a case for each
workload."""

from __future__ import annotations

from xml.etree import ElementTree

from fecbench.results.gate.answer import (
    Answer,
    Commands,
    counts,
    failures,
    headline,
    network,
    ratio_in,
    shown,
)
from fecbench.results.gate.overall import Measured, Ratio
from fecbench.results.gate.verdict import verdict_of

_SIGNS = {"faster": "🟢", "no difference that matters": "⚪", "slower": "🔴", "undecided": "🟡"}


def markdown(found: Answer, commands: Commands) -> str:
    """A summary that a pull request or a job's page shows."""
    lines = [
        f"### {_SIGNS[found.verdict]} {_escaped(found.campaign.title)}",
        "",
        f"**{_escaped(headline(found))}**",
        "",
        f"{counts(found)} {failures(found)}".strip(),
        "",
        "| workload | new / old | 95 % interval |",
        "|---|---|---|",
        _row("all networks", found.measured.overall),
        *(_row(label, ratio) for label, ratio in found.measured.workloads.items()),
        "",
        *(f"- {_escaped(line)}" for line in found.where),
        "",
    ]
    if found.worst:
        lines += ["<details><summary>The worst networks, and how to replay both arms</summary>", ""]
        for one in found.worst:
            lines += [f"{_escaped(network(one))}: {ratio_in(one)}", "", "```sh", *commands(one), "```", ""]
        lines += ["</details>", ""]
    return "\n".join(lines)


def _row(label: str, ratio: Ratio) -> str:
    value, _, interval = shown(ratio).partition(" ")
    return f"| {_escaped(label)} | {value} | {interval} |"


def _escaped(text: str) -> str:
    """Text that Markdown takes for text: titles hold the paths and revisions that a user named."""
    return "".join(f"\\{sign}" if sign in r"\`*_{}[]<>()#+!|" else sign for sign in text)


def junit(found: Answer) -> str:
    """A test suite with a case for all networks and one for each workload: slower is a failure, undecided
    skipped."""
    cases = {"all networks": found.verdict}
    for label, ratio in found.measured.workloads.items():
        cases[label] = verdict_of(Measured(ratio, {}, found.measured.pairs), found.margin)
    count = {verdict: str(list(cases.values()).count(verdict)) for verdict in ("slower", "undecided")}
    suite = ElementTree.Element(
        "testsuite",
        name="fecbench compare",
        tests=str(len(cases)),
        failures=count["slower"],
        errors="0",
        skipped=count["undecided"],
    )
    ratios = {"all networks": found.measured.overall, **found.measured.workloads}
    for label, verdict in cases.items():
        case = ElementTree.SubElement(suite, "testcase", classname=found.campaign.name, name=label)
        words = (
            headline(found) if label == "all networks" else f"{verdict}: new / old = {shown(ratios[label])}"
        )
        if verdict == "slower":
            ElementTree.SubElement(case, "failure", message=words)
        elif verdict == "undecided":
            ElementTree.SubElement(case, "skipped", message=words)
        else:
            ElementTree.SubElement(case, "system-out").text = words
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
