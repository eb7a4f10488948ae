"""Lines of tests beside lines of code, by room:

    python -m tests.lines

All lines of Python, Rust, Go and C that git knows. In Rust, tests are what follows `#[cfg(test)]`, and the
folders `tests`; in Go, files that end with `_test.go`.
"""

import subprocess
from collections import Counter
from pathlib import Path

from fecbench.checkout import REPOSITORY

SUFFIXES = ("*.py", "*.rs", "*.go", "*.c", "*.h")
DIVIDED = ("results", "runners", "quic-impls")
"""Rooms with rooms in them."""


def room_of(path: Path) -> str:
    """Return the room of a file of code, or of the tests of one."""
    parts = path.parts[path.parts[0] == "tests" :]
    if len(parts) == 1:
        return "all rooms" if path.parts[0] == "tests" else "."
    if parts[0] not in DIVIDED:
        return parts[0] if (REPOSITORY / parts[0]).is_dir() else "all rooms"
    return "/".join(parts[: 2 if len(parts) > 2 else 1])


def counted(path: Path) -> tuple[int, int]:
    """Return the number of lines of code, and of tests."""
    lines = (REPOSITORY / path).read_text().splitlines()
    if path.parts[0] == "tests" or "tests" in path.parts[:-1] or path.name.endswith("_test.go"):
        return 0, len(lines)
    code = lines.index("#[cfg(test)]") if "#[cfg(test)]" in lines else len(lines)
    return code, len(lines) - code


def main() -> None:
    listed = ["git", "ls-files", "--", *SUFFIXES]
    files = subprocess.run(listed, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    code, tests = Counter[str](), Counter[str]()
    of_python = 0
    for path in map(Path, files.splitlines()):
        if not (REPOSITORY / path).is_symlink():
            of_code, of_tests = counted(path)
            code[room_of(path)] += of_code
            tests[room_of(path)] += of_tests
            of_python += of_tests if path.suffix == ".py" else 0
    for room in sorted(code | tests, key=lambda room: -tests[room]):
        ratio = f"{tests[room] / code[room]:5.2f}" if code[room] else "    –"
        print(f"{room:28} {code[room]:6} lines of code {tests[room]:6} of tests {ratio}")
    print(f"{'in all':28} {code.total():6} lines of code {tests.total():6} of tests", end="")
    print(f" {tests.total() / code.total():5.2f}, {of_python} of them Python")


if __name__ == "__main__":
    main()
