"""Modules that the command line loads before it knows the command."""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from fecbench.checkout import REPOSITORY
from fecbench.results.analysis.rules import FEWEST_POINTS
from fecbench.runners.commands.command_line import COMMANDS, MODULES

DRAWING = {"seaborn", "matplotlib"}


def module_of(command: str) -> str:
    return f"fecbench.runners.commands.{MODULES.get(command, command)}"


UNDRAWN = """
from fecbench.results.figures import saving
saving.save = lambda figure, path: path.write_bytes(b"not drawn")
"""
"""Beginning of a script whose reports draw no figure: that takes most of their time."""


def loaded_by(*commands: Sequence[str], before: str = "") -> set[str]:
    """The modules that a process has loaded after these commands, which all end with 0; a script does
    something `before`. Prints which command loaded what draws."""
    script = f"""
import sys
from fecbench.runners.commands.command_line import main
{before}
for words in {commands!r}:
    sys.argv = ["fecbench", *words]
    try:
        main()
    except SystemExit as ended:
        assert ended.code == 0, (words, ended.code)
    print("after", words, "loaded:", *sys.modules.keys() & {DRAWING!r})
print("loaded:", *sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    print(*re.findall("^after .*", result.stdout, re.MULTILINE), sep="\n")
    return set(result.stdout.rpartition("loaded:")[2].split())


def test_what_needs_no_command_loads_none_and_no_library_of_theirs() -> None:
    loaded = loaded_by(["--help"])
    assert "typer" in loaded
    assert not {"numpy", "pandas", "sqlalchemy", "pydantic", "matplotlib"} & loaded
    assert not {module_of(name) for name in COMMANDS} & loaded


COMPUTING = {"numpy", "pandas", "scipy", "sklearn", "sqlalchemy", "pyarrow", "cryptography", *DRAWING}
"""Libraries that compute, draw or read databases. Pydantic is not among them: typer itself loads it."""
WITH_NUMPY = {"losses", "link", "topo"}
"""Commands whose options are the parameters of models and links, which are read off these."""
EACH_IN_A_FORK = """
import os, sys
import pydantic, rich.markdown, typer.rich_utils
from fecbench.runners.commands.command_line import main
for words in map(str.split, sys.argv[1:]):
    if not os.fork():
        sys.stdout = sys.stderr = open(os.devnull, "w")
        sys.argv = ["fecbench", *words]
        try:
            main()
        except SystemExit as ended:
            os.write(1, f"{ended.code} {' '.join(sys.modules)}\\n".encode())
        os._exit(0)
    os.wait()
"""
"""A script that runs each argument as a command, and prints its status and the modules that it has loaded.
What all of them load is loaded once: it counts for each."""


def loaded_by_each(commands: Sequence[str], status: int, folder: Path) -> dict[str, set[str]]:
    """The libraries in COMPUTING that each of these commands has loaded when it ends with this status."""
    script = [sys.executable, "-c", EACH_IN_A_FORK, *commands]
    result = subprocess.run(script, cwd=folder, capture_output=True, text=True, check=True)
    outcomes = [line.split() for line in result.stdout.splitlines()]
    assert [words[0] for words in outcomes] == [str(status)] * len(commands), result.stderr
    return {command: COMPUTING & set(words) for command, words in zip(commands, outcomes, strict=True)}


def test_the_help_of_no_command_loads_what_computes(tmp_path: Path) -> None:
    loaded = loaded_by_each([f"{command} --help" for command in COMMANDS], 0, tmp_path)
    allowed = {f"{command} --help": {"numpy"} for command in WITH_NUMPY}
    assert {
        command: more for command, names in loaded.items() if (more := names - allowed.get(command, set()))
    } == {}


MISSING_FILES = (
    *("show", "explain", "serve", "watch", "diff 1 2", "aa hosts", "replay 1 --plot x.png"),
    *("report --output report", "figure ratio --output x.pdf", "export --output x.csv"),
    *("plan none.toml", "run none.toml", "crosscheck none.toml"),
)
"""Commands that refuse the design none.toml, or the database of this name in an empty folder."""


def test_the_refusal_of_a_missing_file_loads_nothing_that_computes(tmp_path: Path) -> None:
    loaded = loaded_by_each(MISSING_FILES, 2, tmp_path)
    assert {command: names for command, names in loaded.items() if names} == {}


LOADED_FOR_LITTLE = frozenset({"scipy.special", "scipy.stats", "scipy.spatial", "scipy.cluster", "sklearn"})
"""Packages that load for longer than what is used of them computes."""


OF_NUMPY = frozenset({"numpy.f2py", "numpy.testing", "numpy.polynomial", "numpy.ctypeslib"})
"""Packages of NumPy that SciPy names, and nobody uses."""


def test_show_loads_no_library_that_takes_longer_than_show_itself(planted: Path) -> None:
    loaded = loaded_by(["show", "--db", str(planted)])
    assert {"pandas", "sqlalchemy.dialects.sqlite"} <= loaded
    assert "sqlalchemy.dialects.postgresql" not in loaded, "another database's"
    assert not {*LOADED_FOR_LITTLE, "scipy.optimize", "matplotlib", "sklearn.tree._tree"} & loaded


def test_explain_loads_trees_and_none_of_the_packages_that_they_are_in(planted: Path) -> None:
    loaded = loaded_by(["explain", "--db", str(planted)])
    assert {"sklearn.tree._tree", "scipy._lib.array_api_compat.numpy"} <= loaded
    assert not {*LOADED_FOR_LITTLE, *OF_NUMPY, "matplotlib"} & loaded


def test_plan_loads_numpy_and_nothing_larger() -> None:
    loaded = loaded_by(["plan", "smoke", "--no-measure"])
    assert "numpy" in loaded
    assert (
        not {"scipy.stats", "scipy.spatial", "scipy.special", "pandas", "sqlalchemy", "matplotlib"} & loaded
    )
    runs_trials = {"rich.progress", "fecbench.runners.trial.judge", "fecbench.runners.engines.engine"}
    assert not runs_trials & loaded


def test_the_process_that_asks_a_program_loads_what_it_uses_alone() -> None:
    script = "import sys, fecbench.runners.sandbox.respondent; print(*sys.modules)"
    command = [sys.executable, "-S", "-E", "-c", script]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded = set(result.stdout.split())
    assert "selectors" in loaded
    assert not {"dataclasses", "inspect", "logging"} & loaded


NO_PLUGINS = """
def refuse(event, values):
    if event == "open" and str(values[0]).endswith("entry_points.txt"):
        raise RuntimeError(f"{values[0]} was read")
sys.addaudithook(refuse)
"""
"""Beginning of a script in which nobody may look for plugins among the packages of this machine."""


def test_a_command_with_models_looks_for_no_plugins_in_all_packages() -> None:
    assert "pydantic" in loaded_by(["plan", "smoke", "--no-measure"], before=NO_PLUGINS)


def test_advise_without_a_run_loads_what_reads_its_record_and_no_database() -> None:
    network = ("--rtt", "60ms", "--bandwidth", "20Mbit/s", "--loss", "3%", "--size", "50kB")
    loaded = loaded_by(["advise", *network, "--no-run"])
    assert {"numpy", "pyarrow"} <= loaded
    assert not {"pandas", "sqlalchemy", "scipy.special", "scipy.stats", "matplotlib", "sklearn"} & loaded


def test_the_report_of_a_few_points_loads_nothing_that_only_rules_need(
    plant: Callable[..., Path], tmp_path: Path
) -> None:
    few = plant(tmp_path / "few.sqlite", points=FEWEST_POINTS - 1)
    loaded = loaded_by(["report", "--db", str(few), "--output", str(tmp_path / "report")], before=UNDRAWN)
    assert "seaborn" in loaded
    assert not {*LOADED_FOR_LITTLE, "sklearn.tree._tree"} & loaded


def test_no_command_loads_what_draws_before_it_draws() -> None:
    script = f"import sys, {', '.join(map(module_of, COMMANDS))}; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert not DRAWING & set(result.stdout.split())


def test_what_draws_nothing_loads_neither_seaborn_nor_matplotlib(
    plant: Callable[..., Path], tmp_path: Path
) -> None:
    database = str(plant(tmp_path / "few.sqlite", points=FEWEST_POINTS))
    loaded = loaded_by(
        *(["show", "--db", database], ["show", "--db", database, "--format", "latex"], ["plan", "smoke"]),
        *(["export", "--db", database, "--output", str(tmp_path / "out.csv")],),
        *(["explain", "--db", database, "--json"],),
    )
    assert not DRAWING & loaded
