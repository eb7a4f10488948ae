"""Bad input to the command: one line that names it, status 2, nothing changed."""

import json
import re
import shlex
import sqlite3
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import fecbench
from fecbench import designs
from fecbench.checkout import REPOSITORY
from fecbench.results.store.database import Database
from fecbench.runners.campaign import provenance
from fecbench.runners.commands.command_line import COMMANDS, Unloaded
from fecbench.runners.commands.console import version
from fecbench.runners.commands.console.examples import EXAMPLES

SMOKE = (REPOSITORY / "designs" / "catalog" / "smoke.toml").read_text()


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def assert_refused(result: Any, *message: str) -> None:
    line = result.refusal()
    for part in message:
        assert part in line


WRONG: list[tuple[str, str, list[str]]] = [
    ("owd_ms =", "ow_ms =", ["factors.ow_ms", "did you mean 'owd_ms'"]),
    ("queue_bdp = 1.5", "queue_bpd = 1.5", ["constants.queue_bpd", "did you mean 'queue_bdp'"]),
    ("queue_bdp = 1.5", "queue_bdp = -1", ["queue_bdp"]),
    ('loss.model = "uniform"', 'loss.model = "uniforn"', ["uniforn"]),
    ("loss.p = { min = 0.08", "loss.p = { min = -0.08", ["p"]),
    ('implementation = "rquic"', 'implementation = "rquik"', ["rquik", "did you mean 'rquic'"]),
    ('scheme = "xor"', 'scheme = "xro"', ["scheme", "xro", "none, hold, xor, rlc, plain"]),
    ('scheme = "xor"', 'shceme = "xor"', ["shceme", "did you mean 'scheme'"]),
    ("code_rate = 0.8", 'code_rate = "high"', ["code_rate", "high"]),
    ('name = "download"', 'name = "downlaod"', ["downlaod", "did you mean 'download'"]),
    ("size_bytes = [", "size_byte = [", ["size_byte", "did you mean 'size_bytes'"]),
    ("size_bytes = [1_000", "size_bytes = [-1", ["size_bytes", "-1"]),
    ('topology = "single-path"', 'topology = "single_path"', ["single_path", "single-path"]),
    ("seed = 7", "sede = 7", ["sede", "seed"]),
    ("points = 2", "points = 0", ["points"]),
    ("[plan]", "[plan", ["TOML"]),
]


def test_a_wrong_design_is_refused(fecbench_here: Any, tmp_path: Path) -> None:
    for before, after, message in WRONG:
        assert before in SMOKE
        design = tmp_path / "wrong.toml"
        design.write_text(SMOKE.replace(before, after, 1))
        database = tmp_path / "x.sqlite"
        assert_refused(fecbench_here("run", design, "--db", database), str(design), *message)
        assert not database.exists()


GENERATION = ["generation_max = 3", "generations of 4"]
# Of a variant, of a point, and of all points.
TOGETHER: list[tuple[str, str, list[str]]] = [
    ("code_rate = 0.8", "code_rate = 0.8, generation_max = 3", GENERATION),
    ("[constants]", "option.generation_max = { choices = [4, 3] }\n[constants]", GENERATION),
    ("[constants]", "[constants]\noption.redundancies = 2", ["redundancies = 2", "no more than 1"]),
]


@pytest.mark.usefixtures("can_run_trials")
def test_options_that_do_not_fit_together_are_refused_before_anything_runs(
    fecbench_here: Any, tmp_path: Path
) -> None:
    design, database = tmp_path / "wrong.toml", tmp_path / "x.sqlite"
    for before, after, message in TOGETHER:
        assert before in SMOKE
        design.write_text(SMOKE.replace(before, after, 1))
        for command in (["plan", design], ["run", design, "--db", database]):
            assert_refused(fecbench_here(*command), f"{design}: variant ", "scheme = 'xor'", *message)
        assert not database.exists()


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")


def text(path: Path) -> None:
    path.write_text("this is no database, but long enough to be looked at as one\n" * 100)


def folder(path: Path) -> None:
    path.mkdir()


def test_what_is_no_results_database_is_refused_and_not_changed(fecbench_here: Any, tmp_path: Path) -> None:
    for make in (foreign, text, folder):
        path = tmp_path / f"{make.__name__}.sqlite"
        make(path)
        before = path.read_bytes() if path.is_file() else None
        for command in (("run", "smoke"), ("show",), ("report", "--output", "never-made")):
            assert_refused(fecbench_here(*command, "--db", path), str(path))
            assert (path.read_bytes() if path.is_file() else None) == before


def test_a_database_without_campaigns_says_that_none_was_run_into_it(
    fecbench_here: Any, tmp_path: Path
) -> None:
    path = tmp_path / "new.sqlite"
    Database.open(str(path), create=True).close()
    for command in (("show",), ("explain",), ("report", "--output", "never-made")):
        assert_refused(fecbench_here(*command, "--db", path), "is empty: no campaign was run into it")


WRONG_ARGUMENTS = """run
run smoke --db x.sqlite --jobs 0
run smoke --db x.sqlite --jobs many
run smoke --db x.sqlite --link carrier-pigeon
run smoke --db x.sqlite --filter colour=red
run missing.toml --db x.sqlite
shwo
losses ge --p 2 --r 0.5
losses ge --p 0.1
losses uniform --p nan
losses uniform --p 0.1 --seed -1
losses uniform --p 0.1 --packets -5
losses pattern --drop 9-7
plan designs
topo double-path --bandwidth-mbps 1 --owd-ms 1
topo single-path --bandwidth-mbps 0 --owd-ms 1"""


def test_wrong_arguments_are_refused(fecbench_here: Any) -> None:
    for arguments in WRONG_ARGUMENTS.splitlines():
        assert_refused(fecbench_here(*arguments.split()))
        assert not (REPOSITORY / "x.sqlite").exists()


LEAVES = {
    f"{command} {name}".strip(): leaf
    for command in COMMANDS
    for loaded in [Unloaded(command).load()]
    for name, leaf in getattr(loaded, "commands", {"": loaded}).items()
    if not leaf.hidden
}


def test_an_option_without_its_value_is_refused_with_the_help_of_its_command(fecbench_here: Any) -> None:
    for words, leaf in LEAVES.items():
        with_value = [p for p in leaf.params if p.param_type_name == "option" and not p.is_flag and p.opts]
        for option in [o for o in with_value if not str(o.metavar).startswith("[")][:1]:
            line = fecbench_here(*words.split(), option.opts[0]).refusal().strip()
            assert option.opts[0] in line
            assert line.endswith(f"(see fecbench {words} --help)")


def test_the_help_of_a_command_begins_with_an_example_that_parses_and_a_group_lists_what_its_commands_do(
    fecbench_here: Any,
) -> None:
    for words, leaf in LEAVES.items():
        first, _, rest = leaf.help.partition("\n\n")
        assert first == f"Example: {EXAMPLES[words]}"
        assert rest
        named, arguments = words.split(), shlex.split(EXAMPLES[words])[1:]
        assert arguments[: len(named)] == named
        leaf.make_context(words, arguments[len(named) :])
        if " " in words:
            assert leaf.short_help and not leaf.short_help.startswith("Example"), words
    for words, option in product(("replay", "losses", "losses fit"), ("-h", "--help")):
        result = fecbench_here(*words.split(), option)
        assert result.returncode == 0
        assert result.stdout.split("\n", 4)[3].strip().startswith(f"Example: fecbench {words} ")
        assert "Usage" in fecbench_here(option).stdout


def test_losses_agree_with_the_oracle_through_the_stable_form(fecbench_here: Any) -> None:
    words = "losses ge --p 0.01 --r 0.25 --k 0.98 --h 0.05 --seed 42 --packets 1000 --json"
    result = fecbench_here(*words.split())
    document = json.loads(result.stdout)
    assert document["seed"] == 42
    assert document["packets"] == 1000
    assert document["dropped"] == reference_ge(0.01, 0.25, 0.98, 0.05, seed=42, packets=1000)


def reference_ge(p: float, r: float, k: float, h: float, *, seed: int, packets: int) -> list[int]:
    """The contract's Gilbert-Elliott model, packet by packet, in plain integers."""
    word = 2**64 - 1

    def draw(n: int, j: int) -> int:
        z = (seed + (2 * n + j + 1) * 0x9E3779B97F4A7C15) & word
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & word
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & word
        return (z ^ (z >> 31)) >> 32

    def happens(probability: float, value: int) -> bool:
        return value < round(probability * 2**32)

    dropped, bad = [], False
    for n in range(packets):
        if happens(1 - (h if bad else k), draw(n, 0)):
            dropped.append(n)
        if happens(r if bad else p, draw(n, 1)):
            bad = not bad
    return dropped


def test_the_version_is_one_line_with_the_commit(fecbench_here: Any) -> None:
    result = fecbench_here("--version")
    assert (result.returncode, result.stderr, result.stdout.count("\n")) == (0, "", 1)
    assert result.stdout.startswith(f"fecbench {fecbench.__version__} (")
    commit = (provenance.revision()["commit"] or "unknown commit")[:12]
    assert commit in result.stdout


@pytest.mark.parametrize(
    ("commit", "changed", "tags", "line"),
    [
        ("0123456789abcdef", False, "v1.2.3 other", "fecbench 1.2.3 (release, commit 0123456789ab)"),
        (
            "0123456789abcdef",
            True,
            "v1.2.3",
            "fecbench 1.2.3 (no release: commit 0123456789ab, with changes)",
        ),
        ("0123456789abcdef", False, "v1.2.2", "fecbench 1.2.3 (no release: commit 0123456789ab)"),
        ("0123456789abcdef", False, None, "fecbench 1.2.3 (no release: commit 0123456789ab)"),
        (None, None, None, "fecbench 1.2.3 (unknown commit)"),
    ],
)
def test_a_release_is_the_commit_with_the_tag_of_the_version(
    monkeypatch, commit, changed, tags, line
) -> None:
    monkeypatch.setattr(fecbench, "__version__", "1.2.3", raising=False)
    monkeypatch.setattr(version, "revision", lambda: {"commit": commit, "changed": changed})
    monkeypatch.setattr(version, "output_of", lambda _words: tags)
    assert version.version_line() == line


def test_the_page_of_the_interface_has_each_command_once() -> None:
    page = (REPOSITORY / "docs/interface.md").read_text()
    promised = re.findall("`([a-z]+)`", page.partition("| Commands")[2].partition("|")[0])
    experimental = re.findall("`([a-z]+)`", page.partition("- the commands")[2].partition(";")[0])
    assert sorted([*promised, *experimental]) == sorted(COMMANDS)


def test_one_version_stands_in_every_file() -> None:
    for name, form in (
        ("pyproject.toml", 'version = "{}"'),
        ("CITATION.cff", "version: {}"),
        ("Containerfile", 'image.version="{}"'),
        ("CHANGELOG.md", "## {} ("),
        ("docs/interface.md", "# What {} promises"),
    ):
        assert form.format(fecbench.__version__) in (REPOSITORY / name).read_text(), name


def test_verbose_tells_where_an_error_came_from_and_ends_with_the_same_line(fecbench_here: Any) -> None:
    line = fecbench_here("plan", "no-such.toml").refusal()
    for arguments in (["-v", "plan"], ["--verbose", "plan"], ["plan", "-v"]):
        verbose = fecbench_here(*arguments, "no-such.toml")
        assert verbose.returncode == 2
        assert "Traceback" in verbose.stderr
        assert "in design_of" in verbose.stderr
        assert verbose.stderr.endswith(line)
        assert fecbench_here("plan", "no-such.toml").refusal() == line  # it is quiet again
    result = fecbench_here("losses", "uniform", "--p", "7", "-v")
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("fecbench: ")


def test_verbose_tells_the_steps_on_standard_error_and_the_results_are_the_same(fecbench_here: Any) -> None:
    words = ("plan", "smoke", "--no-measure")
    quiet, verbose = fecbench_here(*words), fecbench_here(*words, "--verbose")
    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert verbose.stdout == quiet.stdout
    assert "s  read the design" in verbose.stderr


@pytest.mark.parametrize(
    "error", ["MemoryError('std::bad_alloc')", 'RuntimeError("can\'t start new thread")']
)
def test_a_command_without_enough_memory_ends_with_one_line_and_status_1(error: str) -> None:
    script = (
        "import sys; from fecbench.runners.commands import command_line as line\n"
        f"def app(**_): raise {error}\n"
        "line.app = app; line.main()"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=200)
    assert ran.returncode == 1
    assert (
        ran.stderr == "fecbench: out of memory: this machine, or the limit of this process, has too little\n"
    )


def test_without_arguments_the_help_is_all_that_is_said(fecbench_here: Any) -> None:
    result = fecbench_here()
    assert result.returncode == 2
    assert "Usage" in result.stdout + result.stderr
    assert "fecbench:" not in result.stderr


def test_outside_a_checkout_a_run_is_refused_in_one_line_and_a_plan_is_not(
    fecbench_here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fecbench.checkout.is_whole", lambda: False)
    assert_refused(fecbench_here("run", "smoke"), ".venv/bin/fecbench run smoke", "make build")
    assert fecbench_here("plan", "smoke").returncode == 0
    assert fecbench_here("--version").returncode == 0


def test_a_design_is_known_by_its_file_or_else_by_its_name_in_the_catalogue(
    fecbench_here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("smoke", "designs/catalog/smoke.toml"):
        planned = json.loads(fecbench_here("plan", name, "--json", "--no-measure").stdout)
        assert planned["points"] == designs.load(designs.catalogue()["smoke"]).plan().points
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smoke").write_text(SMOKE.replace("points = 2", "points = 3"))
    assert len(json.loads(fecbench_here("plan", "smoke", "--json", "--no-measure").stdout)["points"]) == 3


def test_an_unknown_design_is_refused_with_the_nearest(fecbench_here: Any) -> None:
    commands = (["plan"], ["run", "--db", "x.sqlite"], ["aa", "itself", "--variant", "x", "--db", "x.sqlite"])
    for name, command in product(("smok", "smok.toml", "folder/smok.toml"), commands):
        assert_refused(fecbench_here(*command, name), f"{name}: cannot be read", "did you mean 'smoke'?")


def test_the_help_shows_no_type_of_a_flag_and_completion_of_the_whole_command_alone(
    fecbench_here: Any,
) -> None:
    for words in (("show",), ("losses",), ("losses", "fit")):
        shown = fecbench_here(*words, "--help").stdout
        assert "<bool>" not in shown and "--install-completion" not in shown, words
    assert "NAME" in fecbench_here("show", "--help").stdout
    assert "--install-completion" in fecbench_here("--help").stdout
