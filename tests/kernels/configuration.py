"""Holds a kernel's configuration against the options that were asked for.

    python3 configuration.py ASKED CONFIGURATION

Kconfig leaves out an option whose dependencies are not met, and says nothing. Status 1 and a line for each
such option; 2 when one of the files has a line that is no option.
"""

import re
import sys
from pathlib import Path

_SET = re.compile(r"(CONFIG_\w+)=(.+)")
_NOT_SET = re.compile(r"# (CONFIG_\w+) is not set")


def options(text: str) -> dict[str, str]:
    """The value of each option; "n" when it is not set. Raises ValueError for any other line."""
    values = {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := _SET.fullmatch(line):
            values[match[1]] = match[2]
        elif match := _NOT_SET.fullmatch(line):
            values[match[1]] = "n"
        elif line and not line.startswith("#"):
            raise ValueError(f"line {number}: {line!r} must be CONFIG_NAME=value or # CONFIG_NAME is not set")
    return values


def differing(options: dict[str, str], configuration: dict[str, str]) -> list[str]:
    """Return a line for each option whose value differs from what was asked for."""
    # An option that cannot be chosen is not there at all.
    values = {name: configuration.get(name, "n") for name in options}
    return [
        f"{name} is {values[name]}, not {value} as asked for: see what it depends on"
        for name, value in options.items()
        if values[name] != value
    ]


def main() -> int:
    read = []
    for path in sys.argv[1:]:
        try:
            read.append(options(Path(path).read_text()))
        except ValueError as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
    problems = differing(*read)
    for problem in problems:
        print(f"{sys.argv[2]}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
