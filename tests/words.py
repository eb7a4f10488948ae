"""Words of our Python that make a reader go back: docstrings without a subject, and names that are no nouns.

    python -m tests.words            # counts by room
    python -m tests.words FILE…      # each place in these files
    python -m tests.words --record   # write tests/words.txt anew; refused if a count has grown

A docstring begins with a noun, an imperative ("Return the verdicts of the first n packets"), or "Whether" for
a truth value. Strings below an attribute are docstrings, too. A name is a noun or a verb of the field:
`calibration`, `count_lost`. `tests/words.txt` counts both by file, and their sums may only shrink. Public
names, options, columns and keys of JSON documents are an interface, and stay.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fecbench.checkout import REPOSITORY

RECORD = REPOSITORY / "tests" / "words.txt"
COMMAND = "python -m tests.words --record"
KINDS = ("docstrings", "names")

_INTERROGATIVES = r"What(ever)?|Who(m|se|ever)?|Which(ever)?|How(ever)?|Why|Where(ver)?|When(ever)?"
_PRONOUNS = (
    r"That|Those|These|It|Its|They|Their|He|His|Ours|Theirs|Nobody"
    r"|One(?=,| (that|which|who|whose|of|in|by|to)\b)"
)
_RELATIVES = r"(All|Each|Every one|Everything|Nothing|Something|Such)(?= (that|which|who|whose|as)\b)"
_PREPOSITIONS = (
    r"About|Above|After|As|At|Before|Below|Beside|Besides|Between|Beyond|By|During|For|From|In|Into|Of|On|Over"
    r"|Since|Through|To|Under|Until|Up|While|With|Within|Without"
)
_CONJUNCTIONS = r"And|But|Nor|Or|So|Also"
_NO_SUBJECT = re.compile(
    rf"({_INTERROGATIVES}|{_PRONOUNS}|{_RELATIVES}|{_PREPOSITIONS}|{_CONJUNCTIONS})(?![\w-])"
)

_NO_NOUN = re.compile(
    r"asked|begun|came|chosen|done|drawn|each|ended|found|given|gone|got|heard|held|kept|known|left|looked|made"
    r"|meant|met|named|refused|said|seen|shown|taken|these|this|those|told|wanted"
)
"""Participles and pronouns that serve as names of whatever is at hand."""

_WITH_A_BODY = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Place:
    """A docstring or a name that the rules refuse."""

    kind: str
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind[:-1]}: {self.text}"


def sources() -> list[str]:
    """Return the paths of our Python files, as git lists them."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [path for path in listed if (REPOSITORY / path).is_file() and not (REPOSITORY / path).is_symlink()]


def nodes_of(text: str) -> list[ast.AST]:
    """Return the nodes of a text's tree but contexts: a quarter of all, which `ast.walk` yields slowly."""
    nodes: list[ast.AST] = [ast.parse(text)]
    for node in nodes:
        for name in node._fields:
            match getattr(node, name, None):
                case ast.expr_context():
                    pass
                case ast.AST() as part:
                    nodes.append(part)
                case list() as parts:
                    nodes += [part for part in parts if isinstance(part, ast.AST)]
    return nodes


def docstrings(nodes: Iterable[ast.AST]) -> Iterator[ast.Constant]:
    """Yield the docstrings of modules, classes and functions, and the strings below attributes."""
    for node in nodes:
        for statement in node.body if isinstance(node, _WITH_A_BODY) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str()) as constant):
                    yield constant


def bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """Yield each name that is bound, as often as it is bound, and its line."""
    for node in nodes:
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.alias(asname=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.ExceptHandler(name=str(name))
            ):
                yield name, node.lineno


def places(path: str, text: str) -> Iterator[Place]:
    """Yield the docstrings and names that the rules refuse in a file with this text."""
    nodes = nodes_of(text)
    for constant in docstrings(nodes):
        first = str(constant.value).strip().partition("\n")[0]
        if _NO_SUBJECT.match(first):
            yield Place("docstrings", path, constant.lineno, first)
    for name, line in bindings(nodes):
        if _NO_NOUN.fullmatch(name.strip("_").lower()):
            yield Place("names", path, line, name)


def counts() -> dict[str, tuple[int, ...]]:
    """Return the numbers of docstrings and names that the rules refuse, by file. Clean files are left out."""
    counted = {}
    for path in sources():
        kinds = Counter(place.kind for place in places(path, (REPOSITORY / path).read_text("utf-8")))
        if kinds:
            counted[path] = tuple(kinds[kind] for kind in KINDS)
    return counted


def recorded() -> dict[str, tuple[int, ...]]:
    """Return the counts that `tests/words.txt` allows, by file."""
    rows = (line.split() for line in RECORD.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {path: tuple(map(int, numbers)) for *numbers, path in rows}


def _record() -> None:
    """Write `tests/words.txt` anew; exit with a line if the sum of a kind has grown."""
    now = counts()
    if RECORD.exists():
        for kind, before, after in zip(KINDS, _sums(recorded()), _sums(now), strict=True):
            if after > before:
                sys.exit(
                    f"{kind} = {after}: must be at most {before}, as {RECORD.name} says; mend the new ones"
                )
    rows = (f"{' '.join(map(str, numbers))} {path}\n" for path, numbers in sorted(now.items()))
    RECORD.write_text(
        f"# {', '.join(KINDS)}, file: written by `{COMMAND}`; may only shrink\n" + "".join(rows), "utf-8"
    )


def _sums(table: dict[str, tuple[int, ...]]) -> list[int]:
    return [sum(numbers[i] for numbers in table.values()) for i in range(len(KINDS))]


def _room(path: str) -> str:
    """Return the folder that a file is counted with: at most two levels."""
    return "/".join(Path(path).parent.parts[:2])


def _print_counts() -> None:
    by_room: dict[str, Counter[str]] = {}
    for path in sources():
        text = (REPOSITORY / path).read_text("utf-8")
        nodes = nodes_of(text)
        room = by_room.setdefault(_room(path), Counter())
        room.update(place.kind for place in places(path, text))
        room["all docstrings"] += sum(1 for _ in docstrings(nodes))
        room["all names"] += sum(1 for _ in bindings(nodes))
    by_room["all"] = sum(by_room.values(), Counter())
    print(f"{'room':28}{'docstrings without a subject':>30}{'names that are no nouns':>30}")
    for room, counter in by_room.items():
        columns = [f"{counter[kind]} of {counter[f'all {kind}']}" for kind in KINDS]
        print(f"{room:28}{columns[0]:>30}{columns[1]:>30}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.words")
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name} anew")
    parser.add_argument("files", nargs="*", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.record:
        _record()
    elif arguments.files:
        for path in arguments.files:
            for place in places(path, Path(path).read_text("utf-8")):
                print(place)
    else:
        _print_counts()


if __name__ == "__main__":
    main()
