"""Break a copy of the checkout, one patch at a time, and report which test notices.

    python tests/breaks/run.py [--whole] [--limit SECONDS] [BREAK …]

The checkout is the working directory; nothing in it changes but out/breaks/. Outcomes are kept there as soon
as they are known, and a later run at the same commit goes on from there. Named breaks are tried again.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

BREAKS = Path(__file__).parent
ROOM = Path("out/breaks")
COPY, OUTCOMES = ROOM / "copy", ROOM / "outcomes.json"
KILLS = BREAKS / "kills.json"
BUILD_S, WHOLE_S = 600.0, 3600.0
NO_TESTS = 5
MOST_DISTURBED = 3
# In one process, so that the nearest tests are the first. Those of breaks miss the line that is broken.
PYTEST = [".venv/bin/python", "-m", "pytest", "-xq", "-pno:xdist", "-pno:cacheprovider", "--tb=no"]
PYTEST += ["--deselect=tests/breaks"]
# The endpoint with both crates in it. Its build knows where it was made, so that the copy makes its own.
OWN = "[ -e build/own ] || rm -rf build/noq-proto build/target; make && touch build/own"
NOQ = ["sh", "-c", f"cd quic-impls/noq-fec && {{ {OWN}; }}"]
# The laws of noq-fec hold the policies of its codes, too.
OF_FEC, OF_NOQ = (f"make -C quic-impls/{name} test" for name in ("fec", "noq-fec"))
CARGO, GO = "cargo test: ", "go test: "


class Part(NamedTuple):
    """A folder that is compiled: how, its tests of its own, and the files of pytest's that may concern it."""

    build: Sequence[str]
    own_tests: Sequence[str] = ()
    tests: str = "test_*.py"


PARTS = {
    "dropper": Part(["make", "-C", "dropper"]),
    "topologies/wire": Part(["make", "-C", "topologies/wire"]),
    "quic-impls/fec": Part(NOQ, ["sh", "-c", f"{OF_FEC} && {OF_NOQ}"], "test_noq*.py"),
    "quic-impls/noq-fec": Part(NOQ, ["sh", "-c", OF_NOQ], "test_noq*.py"),
    "quic-impls/rquic": Part(
        ["make", "-C", "quic-impls/rquic"], ["make", "-C", "quic-impls/rquic", "test"], "test_r*.py"
    ),
    "quic-impls/host": Part(NOQ, ["make", "-C", "quic-impls/host", "test"], "test_[elns]*.py"),
}


class Outcome(NamedTuple):
    """`result` is killed, survived, unbuilt or gone; `by` is the test that failed, or why none did."""

    result: str
    by: str = ""


def applied(patch: str, texts: Mapping[str, str]) -> tuple[str, str] | None:
    """The path and new text of the only place with the patch's old lines, first in its file, then in any.

    Where none has them with their context, they are looked for without it.
    """
    (named,), (hunk,) = re.findall(r"^--- a/(.+)$", patch, re.M), re.split(r"^@@.*\n", patch, flags=re.M)[1:]
    lines = hunk.splitlines(keepends=True)
    changed = [index for index, line in enumerate(lines) if line[0] in "+-"]
    alike = {path: text for path, text in texts.items() if Path(path).suffix == Path(named).suffix}
    for some in (lines, lines[changed[0] : changed[-1] + 1]):
        old, new = ("\n" + "".join(line[1:] for line in some if line[0] != sign) for sign in "+-")
        for candidates in ([named] if named in alike else [], list(alike)):
            places = [path for path in candidates for _ in range(f"\n{alike[path]}".count(old))]
            if len(places) == 1:
                return places[0], f"\n{alike[places[0]]}".replace(old, new)[1:]
    return None


def part_of(path: str) -> Part | None:
    if path.endswith(".py"):
        return None
    return next(part for folder, part in PARTS.items() if path.startswith(f"{folder}/"))


def concerned(path: str, tests: Mapping[str, str]) -> list[str]:
    """The test files of a source file, nearest first: of its name, import it, of its folder, name it."""
    file, part = Path(path), part_of(path)
    word = re.compile(rf"\b{re.escape(file.stem)}\b")
    imported = re.compile(rf"\b{'.'.join(file.parent.parts)}(\.| import ([^)\n]*\W)?){word.pattern}")
    folders = {Path(test).parent for test in tests}
    near = next((above for above in (Path("tests") / file).parents if above in folders), Path("tests"))
    ranks = {}
    for test, text in tests.items():
        title, is_near, names = f"{Path(test).stem}_", near in Path(test).parents, bool(word.search(text))
        of_name, of_folder = (is_near and f"_{name}_" in title for name in (file.stem, file.parent.name))
        signs = (of_name, imported.search(text), of_folder, is_near and names, is_near, names)
        if any(signs) and Path(test).match(part.tests if part else "test_*.py"):
            ranks[test] = next(rank for rank, sign in enumerate(signs) if sign), not is_near, test
    return sorted(ranks, key=ranks.__getitem__)


def run(command: Sequence[str], limit_s: float) -> tuple[int | None, str]:
    """Run a command in the copy. Returns its exit code, None at the limit, and its output."""
    environment = {**os.environ, "PATH": f"{(COPY / '.venv/bin').absolute()}:{os.environ['PATH']}"}
    with (ROOM / "output").open("w") as output:
        process = subprocess.Popen(
            command, cwd=COPY, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    code = None
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(limit_s)
        if code is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return code, (ROOM / "output").read_text(errors="replace").strip()


def copy_checkout() -> None:
    """Copy the checkout with its builds, as a repository of its own whose scripts run the copy."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(
        ".",
        COPY,
        symlinks=True,
        ignore=lambda folder, _: {".git", "out"} if folder == "." else {"__pycache__"},
    )
    (COPY / "out").mkdir()
    here, there = (str(path.absolute()).encode() for path in (Path(), COPY))
    for script in [*COPY.glob(".venv/bin/*"), *COPY.glob(".venv/lib/python*/site-packages/__editable__*")]:
        if script.is_file() and not script.is_symlink():
            script.write_bytes(script.read_bytes().replace(here, there))
    identity = ["-c", "user.name=breaks", "-c", "user.email=breaks@localhost"]
    for command in (["init", "-q"], ["add", "--all"], [*identity, "commit", "-q", "-m", "unbroken"]):
        subprocess.run(["git", *command], cwd=COPY, check=True)


def texts_of(checkout: Path) -> dict[str, str]:
    """Return the text of each file that may be broken, and of each test, by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.[ch]", "*.rs", "*.go", "quic-impls/*.patch"],
        cwd=checkout,
        check=True,
        capture_output=True,
    )
    paths = listed.stdout.decode().splitlines()
    return {path: (checkout / path).read_text() for path in paths if (checkout / path).is_file()}


def try_break(patch: str, limits_s: Sequence[float]) -> Outcome:
    """Break the copy, test it and mend it. A test kills the break if it passes without it."""
    texts = texts_of(COPY)
    tests = {path: texts.pop(path) for path in list(texts) if path.startswith("tests/")}
    place = applied(patch, texts)
    if place is None:
        return Outcome("gone")
    path, text = place
    suite = concerned(path, {test: tests[test] for test in tests if Path(test).match("test_*.py")})
    disturbed: list[str] = []
    while len(disturbed) < MOST_DISTURBED:
        (COPY / path).write_text(text)
        part = part_of(path)
        outcome = outcome_of(part, suite, disturbed, limits_s)
        subprocess.run(["git", "checkout", "-q", "--", path], cwd=COPY, check=True)
        if part and not outcome.by.startswith((CARGO, GO)):
            run(part.build, BUILD_S)
        if not outcome.by.startswith("tests/") or run([*PYTEST, outcome.by], BUILD_S)[0] == 0:
            return outcome
        disturbed.append(outcome.by)
    return Outcome("survived", f"these fail without it, too: {', '.join(disturbed)}")


def outcome_of(
    part: Part | None, suite: Sequence[str], disturbed: Sequence[str], limits_s: Sequence[float]
) -> Outcome:
    """Run the own tests of a part, then those of the suite, and within another limit all of pytest's."""
    for command in (part.own_tests, part.build) if part else ():
        code, output = run(command, BUILD_S) if command else (0, "")
        if code != 0:
            if failed := re.search(r"^--- FAIL: (\S+)", output, re.M):
                return Outcome("killed", GO + failed[1])
            if failed := re.search(r"^(?:---- (\S+) stdout|error: (test failed.*))", output, re.M):
                return Outcome("killed", CARGO + (failed[1] or failed[2]))
            return Outcome("unbuilt", last(output))
    outcome = Outcome("survived", "no test concerns it")
    for tests, limit_s in zip((suite, ()), limits_s, strict=False):
        code, output = run([*PYTEST, *(f"--deselect={test}" for test in disturbed), *tests], limit_s)
        failed = re.search(r"^(?:FAILED|ERROR) (tests/\S+\.py(?:::\w+)*(?:\[.*?\])?)(?= - |$)", output, re.M)
        if code is None:  # the interrupt may have failed a test
            outcome = Outcome("survived", f"no test failed in {limit_s:g} s")
        elif failed:
            return Outcome("killed", failed[1])
        elif code not in (0, NO_TESTS):
            return Outcome("killed", f"pytest cannot begin: {last(output)}")
        else:
            outcome = Outcome("survived", last(output))
    return outcome


def last(output: str) -> str:
    return output.rpartition("\n")[2][:200]


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, too, where it is ignored
    patches = {path.stem: path.read_text() for path in sorted(BREAKS.glob("*.patch"))}
    parser = argparse.ArgumentParser(description="Report which test notices each break.")
    parser.add_argument(
        "breaks", nargs="*", metavar="BREAK", help="one of those here; all that are not yet tried"
    )
    parser.add_argument("--whole", action="store_true", help="what survives meets the whole suite, too")
    parser.add_argument("--limit", type=float, default=90, metavar="SECONDS", help="for the tests of a break")
    options = parser.parse_args()
    if unknown := ", ".join(set(options.breaks) - patches.keys()):
        parser.error(f"no such break: {unknown}")
    ROOM.mkdir(parents=True, exist_ok=True)
    revision = subprocess.run(
        ["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    outcomes_so_far = json.loads(OUTCOMES.read_text()) if OUTCOMES.exists() else {}
    outcomes = outcomes_so_far["outcomes"] if outcomes_so_far.get("revision") == revision else {}
    copy_checkout()
    for name in options.breaks or sorted(patches.keys() - outcomes.keys()):
        outcome = try_break(patches[name], [options.limit, WHOLE_S][: 1 + options.whole])
        print(f"{outcome.result:8}  {name}  {outcome.by}", flush=True)
        outcomes[name] = outcome._asdict()
        OUTCOMES.write_text(
            json.dumps({"revision": revision, "outcomes": outcomes}, indent=1, sort_keys=True)
        )
    results = {name: outcome["result"] for name, outcome in outcomes.items()}
    counts = Counter(results.values())
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())))
    killed = {name for name, test in json.loads(KILLS.read_text()).items() if test}
    for name in sorted(killed & {name for name, result in results.items() if result != "killed"}):
        print(f"no longer killed: {name}")


if __name__ == "__main__":
    main()
