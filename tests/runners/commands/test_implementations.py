"""`fecbench implementations` lists what there is, names what is broken, and says what keeps the contract."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.implementations.finding import OWN
from tests.support.declarations import declare, option

OPTIONS = {
    "scheme": option("xor", choices=["none", "xor"], help="The code."),
    "window": option(20, minimum=1, help="Symbols."),
}
DECLARED = {"title": "An example", "series": ["cwnd"], "options": OPTIONS, "fec": {"off": {"scheme": "none"}}}


@pytest.fixture(autouse=True)
def _no_folders_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FECBENCH_IMPLEMENTATIONS", raising=False)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder with two implementations: `example`, which is not executable, and `broken`."""
    folder = tmp_path / "mine"
    for name in ("example", "broken"):
        declare(folder / name, "server.sh", **DECLARED)
    (folder / "example" / "server.sh").write_text("#!/bin/sh\nexit 7\n")
    with (folder / "broken" / "impl.toml").open("a") as declaration:
        declaration.write("[fecc]\n")
    return folder


def document(result: Any) -> Any:
    assert result.returncode == 0, result
    return json.loads(result.stdout)


def test_ours_are_listed_with_all_that_a_script_needs(fecbench_here: Callable[..., Any]) -> None:
    entries = document(fecbench_here("implementations", "--json"))["implementations"]
    assert {entry["name"] for entry in entries} >= {"quic-go", *OWN}
    (rquic,) = [entry for entry in entries if entry["name"] == "rquic"]
    assert rquic["folder"] == str(REPOSITORY / "quic-impls" / "rquic")
    assert "download" in rquic["workloads"]
    assert rquic["options"]["scheme"]["choices"] == ["none", "hold", "xor", "rlc", "plain"]
    assert rquic["fec_off"] == {"scheme": "none"}
    assert rquic["problem"] is None


def test_one_of_a_given_folder_is_listed_beside_ours_and_a_broken_one_is_named(
    fecbench_here: Callable[..., Any], mine: Path
) -> None:
    listed = document(fecbench_here("implementations", "--implementations", mine, "--json"))
    entries = {entry["name"]: entry for entry in listed["implementations"]}
    assert set(entries) >= {"broken", "example", *OWN}
    example = entries["example"]
    assert (example["folder"], example["series"]) == (str(mine / "example"), ["cwnd"])
    assert (example["engines"], example["fec_off"]) == (["local"], {"scheme": "none"})
    assert example["options"]["window"]["minimum"] == 1
    assert entries["broken"]["problem"].startswith(f"{mine}/broken/impl.toml: fecc: is no key here")


def test_one_is_printed_with_its_options_for_a_person_and_a_broken_one_with_its_problem(
    fecbench_here: Callable[..., Any], mine: Path
) -> None:
    result = fecbench_here("implementations", "example", "--implementations", mine)
    assert result.returncode == 0
    assert "rquic" not in result.stdout
    lines = [line.strip() for line in result.stdout.splitlines()]
    for line in (
        "example",
        "title      An example",
        f"folder     {mine}/example",
        "workloads  download",
        "series     cwnd",
        'FEC off    scheme = "none"',
        'option scheme: string, "none" or "xor", default "xor"',
        "The code.",
        "option window: integer, at least 1, default 20",
    ):
        assert line in lines, line
    result = fecbench_here("implementations", "--implementations", mine)
    assert result.returncode == 0
    assert f"broken: cannot be used: {mine}/broken/impl.toml: fecc: is no key here" in result.stdout
    for options in ([], ["--json"]):
        words = ("implementations", "broken", "--implementations", mine, *options)
        assert fecbench_here(*words).returncode == 1


REFUSED = {
    "rquick": "fecbench: there is no implementation 'rquick'; did you mean 'rquic'?\n",
    "--check rquick": "fecbench: there is no implementation 'rquick'; did you mean 'rquic'?\n",
    "rquic --check noq-fec": "name one implementation",
    "--keep files": "--keep files: is of a check: give --check NAME, too",
    "--check rquic --keep docs": "--keep docs: holds other files, and no check.json",
    "--implementations /nowhere": "fecbench: --implementations: /nowhere: must be a folder that",
}


def test_what_cannot_be_listed_is_refused_in_one_line(fecbench_here: Callable[..., Any]) -> None:
    for arguments, refusal in REFUSED.items():
        assert refusal in fecbench_here("implementations", *arguments.split()).refusal()


def test_a_check_says_what_is_broken_and_ends_with_1(fecbench_here: Callable[..., Any], mine: Path) -> None:
    result = fecbench_here("implementations", "--implementations", mine, "--check", "example", "--json")
    assert result.returncode == 1
    checked = json.loads(result.stdout)
    program = mine / "example" / "server.sh"
    problem = f"programs: example: {program} is no program; mend: chmod +x {program}"
    assert (checked["name"], checked["passed"], checked["problems"]) == ("example", False, [problem])
    assert checked["parts"] == [
        {"part": "impl.toml", "good": True, "detail": f"{mine}/example declares it", "tried": True},
        {"part": "programs", "good": False, "detail": problem.removeprefix("programs: "), "tried": True},
    ]
    (entry,) = checked["implementations"]
    assert (entry["name"], entry["problem"]) == ("example", problem)


def test_a_check_names_a_simulator_that_is_missing(fecbench_here: Callable[..., Any], mine: Path) -> None:
    (mine / "example" / "server.sh").chmod(0o755)
    with (mine / "example" / "impl.toml").open("r+") as declaration:
        written = declaration.read()
        declaration.seek(0)
        declaration.write(f'simulator = ["build/simulator"]\n{written}')
    result = fecbench_here("implementations", "--implementations", mine, "--check", "example", "--json")
    missing = f"simulator: {mine}/example/build/simulator is missing"
    assert any(problem.startswith(missing) for problem in json.loads(result.stdout)["problems"])


def test_a_check_of_one_that_cannot_be_read_says_why(fecbench_here: Callable[..., Any], mine: Path) -> None:
    result = fecbench_here("implementations", "--implementations", mine, "--check", "broken")
    assert result.returncode == 1
    assert f"BROKEN  impl.toml: {mine}/broken/impl.toml: fecc: is no key here" in result.stdout
    assert result.stdout.endswith("broken breaks the contract\n")


@pytest.mark.usefixtures("can_run_trials")
@pytest.mark.parametrize("name", ["noq-fec", "rquic", "tcp"])
def test_ours_meet_the_contract(fecbench_here: Callable[..., Any], name: str) -> None:
    if not any((REPOSITORY / "quic-impls" / name / "build").glob(name)):
        pytest.skip(f"needs {name}: make build")
    result = fecbench_here("implementations", "--check", name)
    assert result.returncode == 0, result.stdout
    assert "BROKEN" not in result.stdout
    # No other stack here speaks TCP's protocol.
    met = "meets what was tried of the contract." if name == "tcp" else "meets the contract"
    assert result.stdout.splitlines()[-1].startswith(f"{name} {met}")
    assert ("noq-fec's client gets the same" in result.stdout) == (name == "rquic")
