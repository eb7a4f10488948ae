"""An implementation that cannot be built is reported with the reason, and does not stop the others."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.implementations import build
from fecbench.runners.implementations.finding import OWN, Implementations, ours
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.refusal import Refusal

DECLARATION = """
name = "{name}"
title = "x"
build = {build}
server = ["build/program"]
client = ["build/program"]
workloads = ["download"]
"""
BUILDS = '["/bin/sh", "-c", "mkdir -p build && cp /bin/true build/program"]'


@pytest.fixture
def add(tmp_path: Path) -> Callable[[str, str], Path]:
    """Adds an implementation with a build command, TOML's text, to `implementations`."""

    def add(name: str, command: str) -> Path:
        folder = tmp_path / "implementations" / name
        folder.mkdir(parents=True)
        (folder / "impl.toml").write_text(DECLARATION.format(name=name, build=command))
        return folder

    return add


def run_build(*folders: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fecbench.runners.implementations.build", *map(str, folders)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_those_of_a_folder_are_built_in_their_own_folders(add: Callable[[str, str], Path]) -> None:
    folders = [add("first", BUILDS), add("second", BUILDS), add("scripted", '["build.sh"]')]
    (folders[2] / "build.sh").write_text("#!/bin/sh\nmkdir build && cp /bin/true build/program\n")
    (folders[2] / "build.sh").chmod(0o755)
    result = run_build(folders[0].parent)
    assert (result.returncode, result.stderr) == (0, "")
    assert all((folder / "build/program").is_file() for folder in folders)


PROBLEMS = {
    '["false"]': "bad0: false ended with 1",
    '["no-such-compiler", "-O2"]': "bad1: its build needs no-such-compiler, which is not installed",
    '["./build.sh"]': "bad2: its build needs ./build.sh, which is not installed",
    '["./impl.toml"]': "bad3: ./impl.toml cannot be started: Permission denied",
    '["true"]': "bad4: true succeeded, but {folder}/build/program is missing",
    "[]": "{folder}/impl.toml: build = []: ",
    BUILDS
    + '\nbuild_needs = ["sh", "no-such-tool"]': "bad6: its build needs no-such-tool; install what is missing",
}


def test_those_that_cannot_be_built_are_told_and_the_others_are_built(
    add: Callable[[str, str], Path],
) -> None:
    bad, good = [add(f"bad{n}", command) for n, command in enumerate(PROBLEMS)], add("good", BUILDS)
    result = run_build(good.parent)
    assert result.returncode == 1
    for line, folder, problem in zip(result.stderr.splitlines(), bad, PROBLEMS.values(), strict=True):
        assert line.startswith(f"not built: {problem.format(folder=folder)}")
    assert (good / "build/program").is_file()
    assert not (bad[-1] / "build").exists(), "what a build lacks is named before it begins"


def test_a_folder_that_does_not_exist_is_refused_in_one_line(tmp_path: Path) -> None:
    result = run_build(tmp_path / "nowhere")
    assert result.returncode == 1
    problem = "must be a folder that holds folders with an impl.toml"
    assert result.stderr == f"build: {tmp_path}/nowhere: {problem}\n"


def test_a_name_that_no_implementation_has_is_refused_with_the_nearest_one() -> None:
    result = run_build(Path("qinn"))
    assert result.returncode == 1
    assert result.stderr.startswith("build: there is no implementation 'qinn'; ")
    assert "quinn" in result.stderr


def test_without_a_folder_ours_are_built_whatever_the_environment_says(
    add: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FECBENCH_IMPLEMENTATIONS", str(add("foreign", BUILDS).parent))
    monkeypatch.setattr(sys, "argv", ["build"])
    built: list[str] = []
    monkeypatch.setattr(build, "build", lambda implementation: built.append(implementation.declaration.name))
    build.main()
    # Whatever else somebody put beside ours.
    usable = {name: one for name, one in ours().all().items() if not isinstance(one, Refusal)}
    assert sorted(built) == [name for name in usable if not usable[name].declaration.on_demand]
    assert set(OWN) <= set(built)
    built.clear()
    monkeypatch.setattr(sys, "argv", ["build", "--all"])
    with suppress(SystemExit):  # when one of these cannot be read
        build.main()
    assert sorted(built) == list(usable)


@pytest.mark.parametrize(("own", "code"), [((), 0), (("bad",), 1)])
def test_one_that_somebody_put_beside_ours_is_named_and_ends_no_build(
    add: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    own: tuple[str, ...],
    code: int,
) -> None:
    here = Implementations([add("bad", '["false"]').parent])
    monkeypatch.setattr(build, "ours", lambda: here)
    monkeypatch.setattr(build, "OWN", own)
    monkeypatch.setattr(sys, "argv", ["build"])
    if code:
        with pytest.raises(SystemExit) as result:
            build.main()
        assert result.value.code == code
    else:
        build.main()
    assert capsys.readouterr().err == "not built: bad: false ended with 1\n"


def test_one_that_is_built_on_demand_is_left_out_unless_all_are_asked_for(
    add: Callable[[str, str], Path],
) -> None:
    folder = add("later", BUILDS + "\non_demand = true")
    assert run_build(folder.parent).returncode == 0
    assert not (folder / "build").exists()
    assert run_build(Path("--all"), folder.parent).returncode == 0
    assert (folder / "build/program").is_file()


@pytest.mark.parametrize(("command", "code"), [(BUILDS, 0), ('["false"]', 1)])
def test_one_on_demand_is_built_when_it_is_asked_for_by_its_name(
    add: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, command: str, code: int
) -> None:
    folder = add("later", command + "\non_demand = true")
    other = add("other", BUILDS)
    here = Implementations([folder.parent])
    monkeypatch.setattr(build, "ours", lambda: here)
    monkeypatch.setattr(sys, "argv", ["build", "later"])
    if code:
        with pytest.raises(SystemExit) as result:
            build.main()
        assert result.value.code == code
    else:
        build.main()
        assert (folder / "build/program").is_file()
    assert not (other / "build").exists()


def test_two_are_built_at_once(add: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [add(name, BUILDS) for name in "abcd"]
    both, built = Barrier(2, timeout=30), []

    def meet(implementation: Implementation) -> None:
        both.wait()  # raises when no other is at work
        built.append(implementation.declaration.name)

    monkeypatch.setattr(build, "build", meet)
    assert build.build_all(Implementations([folders[0].parent])) == {}
    assert sorted(built) == list("abcd")
