"""Time of the tests, by file and by test:

    python -m tests.minutes out/tests.xml

The reports are those of `make test`, or of `pytest --junitxml=REPORT.xml`.

CPU is in seconds, of a test with its fixtures (one of a session counts for the test that came first). Idle is
what it waited by the clock beyond that: for trials in real time, or for a processor.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from tests.support.cost import PROPERTY

ROWS = 40
Costs = Counter[str]


def read(path: str) -> tuple[Costs, Costs]:
    """Return the seconds of CPU and by the clock of each test of a report."""
    cpu, clock = Costs(), Costs()
    for case in ElementTree.parse(path).iter("testcase"):
        if "classname" not in case.attrib:
            continue  # it was interrupted
        name = f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name']}"
        properties = {entry.attrib["name"]: entry.attrib["value"] for entry in case.iter("property")}
        cpu[name] += float(properties.get(PROPERTY, 0))
        clock[name] += float(case.attrib["time"])
    return cpu, clock


def by_file(costs: Costs) -> Costs:
    """Return the costs of files, each of which is the sum over its tests."""
    files = Costs()
    for name, seconds in costs.items():
        files[name.partition("::")[0]] += seconds
    return files


def write_table(title: str, cpu: Costs, clock: Costs) -> None:
    print(f"{'CPU':>8} {'idle':>8}  {title}")
    for name in sorted(clock, key=lambda name: -cpu[name])[:ROWS]:
        print(f"{cpu[name]:8.1f} {clock[name] - cpu[name]:8.1f}  {name}")
    print(f"{cpu.total():8.1f} {clock.total() - cpu.total():8.1f}  all {len(clock)}\n")


def main() -> None:
    cpu, clock = Costs(), Costs()
    missing = [path for path in sys.argv[1:] if not Path(path).is_file()]
    if missing or not sys.argv[1:]:
        sys.exit(f"{', '.join(missing) or 'no report'}: must be reports of pytest, such as out/tests.xml")
    for path in sys.argv[1:]:
        try:
            of_report = read(path)
        except ElementTree.ParseError as error:
            sys.exit(f"{path}: must be a report of pytest, such as out/tests.xml: {error}")
        for costs, more in zip((cpu, clock), of_report, strict=True):
            costs.update(more)
    write_table("by file", by_file(cpu), by_file(clock))
    write_table("by test", cpu, clock)


if __name__ == "__main__":
    main()
