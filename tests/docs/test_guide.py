"""The commands and examples of the README and of docs/ are run as a reader would run them, in a folder that
looks like the checkout. Files that a page has its reader write elsewhere are written beside that folder.

How a fenced block begins says what it is:

    ```sh            commands, run one after another; each must do what the page says it does
    ```sh refused    a command that ends with one line and status 2
    ```sh long       a `fecbench run` that takes an hour: here for trials of two variants, and in virtual
                     time of all where a script of the page names the database; then, commands on it
    ```sh setup      what makes the checkout itself, not run here: its targets must exist in the Makefile
    ```text          what the block before it prints: these lines, in this order; … stands for anything
    ```toml FILE     a file that the reader writes; so with any other language
    ```python        a script

On a busy machine trials would be invalid, so they run at real-time priority, and those that are invalid all
the same are run again: in the end, all are ok. In a sentence, `fecbench COMMAND --option` only names what
there is; what is to be typed, with values, stands in a block.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from fecbench.checkout import REPOSITORY
from fecbench.dropper.command import COMMAND as DROPPER
from fecbench.runners.commands.command_line import Unloaded, app
from fecbench.runners.commands.console.choice import design_of
from fecbench.runners.hunt.budget import fewest_trials
from fecbench.runners.implementations.finding import ours
from fecbench.topologies.programs import WIRE
from tests.support import preloaded

GUIDE = [*(REPOSITORY / "docs").glob("*.md"), *(REPOSITORY / "docs/findings").glob("*.md")]
PAGES = ["README.md", *sorted(str(page.relative_to(REPOSITORY)) for page in GUIDE)]
# CI runs these when a page changes. Whoever changes what one shows runs `make test-slow TESTS=tests/docs`.
SLOW_PAGES = {
    f"docs/{name}.md"
    for name in (
        *(
            "add-an-implementation",
            "changing-links",
            "ecn-or-not",
            "elsewhere",
            "fec-in-your-stack",
            "harms-record",
            "hunt",
        ),
        *("read-the-results", "real-time", "reproduce-a-paper", "tcp", "troubleshooting", "two-paths"),
        *("video", "virtual-time", "which-fec-record", "write-a-design"),
    )
}
SLOW_PAGES |= {f"docs/findings/{name}.md" for name in ("starlink2022", "thesis2018")}
SAME_FIGURES = {"docs/first-campaign.md", "docs/gate.md"}
"""Fast pages whose reports have the figures of others: the README's, and those of test_compare.py."""
LIMIT_S = 500  # of a command
HUNT_REPETITIONS = 20
"""Repetitions by which hunts on fast pages confirm; designs have three times as many."""

# Status 1 says that bounds do not hold, that equal variants differ, that a hunt found some network, or that
# an emulated trial went otherwise when it was run again.
MAY_END_WITH_1 = ("fecbench calibrate", "fecbench aa", "fecbench hunt", "fecbench diff")
_FENCE = re.compile(r"^```(\w+)[ ]?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STATES = re.compile(r"^[\d,]+ of [\d,]+ trials?: (.*)$", re.MULTILINE)
_FOR_THE_SHELL = re.compile(r"[$|&;<>*?~`]")
_INLINE = re.compile(r"`fecbench\s+([^`]*)`")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the rest of its first line, and what is in it."""

    language: str
    rest: str
    text: str


def blocks_of(markdown: str) -> list[Block]:
    return [Block(*match.groups()) for match in _FENCE.finditer(markdown)]


def commands_of(block: Block) -> list[str]:
    """The command lines of a block: continued lines joined, comments left to the shell."""
    return [line for line in block.text.replace("\\\n", " ").splitlines() if line.strip()]


class Reader:
    """Does what a page says, in a folder of its own."""

    def __init__(
        self, checkout: Path, patiently: Callable[..., Any], has_invalid_trials: Callable[[Path], bool]
    ) -> None:
        self.checkout = checkout
        self.scripts = ""  # of this page
        self.draws = self.makes = True  # figures of reports
        self.environment: dict[str, str] = {}  # what was exported
        self.printed = ""
        self.trial = ""  # the number of one of those that `show --trials` listed last
        self._patiently = patiently
        self._has_invalid_trials = has_invalid_trials

    def follow(self, block: Block) -> None:
        match block.language, block.rest:
            case "sh", "":
                self.printed = "".join(self._run(command) for command in commands_of(block))
            case "sh", "refused":
                (command,) = commands_of(block)
                result = self._shell(command)
                assert result.returncode == 2, (
                    f"{command}: {result.returncode}, {result.stdout}{result.stderr}"
                )
                assert result.stderr.count("\n") == 1, result.stderr
                self.printed = result.stderr
            case "sh", "long":
                command, *others = commands_of(block)
                assert not any(other.startswith("fecbench run") for other in others), "a block for each"
                design_path = Path(command.split()[2])
                of_page = self.checkout / design_path
                design = design_of(of_page if of_page.exists() else design_path)
                choice = ["point=0", f'"workload={design.workloads[0].label}"']
                choice += [] if design.until else ["repetition=0"]  # which decides nothing alone
                words = command.split()
                is_read = Path(words[words.index("--db") + 1]).stem in self.scripts
                if not (is_read and "--engine virtual" in command):
                    choice += [f'"variant={variant.label}"' for variant in design.variants[:2]]
                self.printed = self._run(" --filter ".join([command, *choice]))
                self.printed += "".join(self._run(other) for other in others)
            case "sh", "setup":
                assert all(command.split()[0] in ("make", "source") for command in commands_of(block))
            case "text", "":
                check_printed(block.text, self.printed)
            case "python", "":
                result = preloaded.script(block.text, self.checkout, self._environment(), LIMIT_S)
                assert result.returncode == 0, f"{block.text}\n{result.stderr}"
                self.printed = result.stdout
            case _, path if path:
                written = self.checkout / path
                written.parent.mkdir(parents=True, exist_ok=True)
                written.write_text(block.text)
            case _:
                pytest.fail(f"```{block.language} {block.rest}: is no kind of block that this test knows")

    def _run(self, command: str) -> str:
        match command.split():
            case ["export", definition]:
                name, _, value = definition.partition("=")
                self.environment[name] = self._shell(f'printf %s "{value}"').stdout
                return ""
            case ["fecbench", "run" | "aa" as name, *options]:
                result = self._resumed(command, name, self.checkout / options[options.index("--db") + 1])
            case ["fecbench", "crosscheck", *options]:
                result = self._checked(command, self.checkout / options[options.index("--db") + 1])
            case ["fecbench", "replay", number, *options]:
                # A reader takes a number from the table; trials that were run again have others.
                of_the_table = command.replace(number, self.trial, 1)
                result = self._replayed(of_the_table, self.checkout / options[options.index("--output") + 1])
            case ["fecbench", "hunt", design, *_] if not self.draws:
                result = self._shell(self._shorter(command, design))
            case ["fecbench", "diff", *_]:
                result = self._patiently(
                    lambda _: self._shell(command), lambda result: result.returncode == 1
                )
            case ["fecbench", "show", number, *_] if number.isdigit():
                result = self._shell(command.replace(number, self.trial, 1))
            case _:
                result = self._shell(command)
        output = result.stdout + result.stderr
        if "--trials" in command and (listed := re.search(r"^\s*(\d+) ", output, re.MULTILINE)):
            self.trial = listed[1]
        right = (0, 1) if command.startswith(MAY_END_WITH_1) else (0,)
        assert result.returncode in right, f"{command}: {result.returncode}\n{output}"
        for states in _STATES.findall(result.stdout):
            assert re.fullmatch(r"[\d,]+ ok", states), f"{command}:\n{output}"
        return output

    def _resumed(self, command: str, name: str, database: Path) -> subprocess.CompletedProcess[str]:
        """A command that runs trials, resumed while any of them is invalid."""

        # Whether this machine keeps time at the moment is not what is tested here.
        def measure(number: int) -> subprocess.CompletedProcess[str]:
            options = f"--no-calibrate{' --resume' if number else ''}"
            return self._shell(command.replace(name, f"{name} {options}", 1))

        return self._patiently(measure, lambda _: self._has_invalid_trials(database))

    def _checked(self, command: str, database: Path) -> subprocess.CompletedProcess[str]:
        """A crosscheck, gone on with while any of its trials is invalid."""

        def check(_: int) -> subprocess.CompletedProcess[str]:
            return self._shell(command.replace("crosscheck", "crosscheck --no-calibrate", 1))

        return self._patiently(check, lambda _: self._has_invalid_trials(database))

    def _replayed(self, command: str, output: Path) -> subprocess.CompletedProcess[str]:
        """A replay, from its beginning while it is not as the trial was."""

        def replay(_: int) -> subprocess.CompletedProcess[str]:
            shutil.rmtree(output, ignore_errors=True)
            return self._shell(command)

        return self._patiently(replay, lambda result: result.returncode == 1)

    def _shorter(self, command: str, design: str) -> str:
        """Return a hunt in the same space that confirms with fewer repetitions, and of the fewest trials."""
        shorter = self.checkout / "shorter.toml"
        shorter.write_text(
            f'base = "{design}"\nname = "{design}"\ntitle = "Fewer"\nrepetitions = {HUNT_REPETITIONS}\n'
        )
        trials = f"--trials {fewest_trials(HUNT_REPETITIONS)}"
        return re.sub(r"--trials \d+", trials, command.replace(design, shorter.name, 1))

    def _shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command without a shell if it needs none."""
        name, *words = shlex.split(command, comments=True)
        if name == "fecbench" and not any(map(_FOR_THE_SHELL.search, words)):
            figures = {"draws": self.draws, "makes": self.makes}
            return preloaded.fecbench(words, self.checkout, self._environment(), LIMIT_S, **figures)
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.checkout,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    def _environment(self) -> dict[str, str]:
        programs = Path(sys.executable).parent
        return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", **self.environment}


def check_printed(output: str, printed: str) -> None:
    """Assert that each line of a page was printed, in this order; … stands for anything."""
    lines = iter(" ".join(line.split()) for line in printed.splitlines())
    for line in filter(None, (" ".join(line_shown.split()) for line_shown in output.splitlines())):
        pattern = re.compile(".*".join(map(re.escape, line.split("…"))))
        assert any(pattern.fullmatch(line_shown) for line_shown in lines), (
            f"not printed: {line}\nbut:\n{printed}"
        )


@pytest.fixture
def reader(
    tmp_path: Path, patiently: Callable[..., Any], has_invalid_trials: Callable[[Path], bool]
) -> Iterator[Reader]:
    """A reader in a folder that has what commands read of the checkout."""
    checkout = tmp_path / "fecbench"
    checkout.mkdir()
    for name in ("designs", "notebooks", "quic-impls"):
        (checkout / name).symlink_to(REPOSITORY / name)
    yield Reader(checkout, patiently, has_invalid_trials)
    shutil.rmtree(checkout)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page in SLOW_PAGES)) for page in PAGES]
)
def test_a_page_does_what_it_says(page: str, reader: Reader) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: makes namespaces")
    for program in (DROPPER, WIRE, *ours().find("rquic", "tests").programs()):
        if not program.exists():
            pytest.skip(f"needs {program}: make build")
    blocks = blocks_of((REPOSITORY / page).read_text())
    reader.draws = page in SLOW_PAGES
    reader.makes = reader.draws or page not in SAME_FIGURES
    reader.scripts = "".join(block.text for block in blocks if block.language == "python")
    for block in blocks:
        reader.follow(block)


def test_the_targets_of_make_that_pages_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = re.findall(r"(?:^|`)make ([a-z-]+)", (REPOSITORY / page).read_text(), re.MULTILINE)
        assert set(named) <= targets, page


def test_the_commands_that_pages_mention_exist_with_their_options() -> None:
    for page in PAGES:
        for mentioned in _INLINE.findall((REPOSITORY / page).read_text()):
            command, words = typer.main.get_command(app), mentioned.split()
            while words and hasattr(command, "commands"):
                command = command.commands[words.pop(0)]
                command = command.load() if isinstance(command, Unloaded) else command
            declared = {option for parameter in command.params for option in parameter.opts}
            assert set(words) <= declared, f"{page}: `fecbench {mentioned}`: values belong into a run block"


def test_the_files_that_pages_link_exist() -> None:
    for page in PAGES:
        linked = re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", (REPOSITORY / page).read_text())
        folder = (REPOSITORY / page).parent
        assert [line_shown for line_shown in linked if not (folder / line_shown).exists()] == [], page


@pytest.mark.parametrize(
    ("shown", "printed", "right"),
    [
        ("a 1 b", "x\na   1  b\ny", True),
        ("first\nsecond", "first\nother\nsecond", True),
        ("second\nfirst", "first\nsecond", False),
        ("took … s", "took 1.5 s", True),
        ("took … ms", "took 1.5 s", False),
    ],
)
def test_shown_output_is_printed_in_order(shown: str, printed: str, right: bool) -> None:
    if right:
        check_printed(shown, printed)
    else:
        with pytest.raises(AssertionError):
            check_printed(shown, printed)
