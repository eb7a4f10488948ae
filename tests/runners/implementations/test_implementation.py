"""Commands, programs and options of an implementation: what is wrong is named, with what would be right."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.implementations import implementation as implementations
from fecbench.runners.implementations.implementation import Implementation, load
from fecbench.runners.refusal import Refusal
from tests.support.patience import ahead
from tests.support.refusals import refusal_of


def test_commands_are_absolute_and_keep_their_arguments(folder: Path) -> None:
    implementation = load(folder)
    assert implementation.command("client") == [str(folder / "build/example"), "--fast"]
    assert implementation.programs() == [folder / "build/example"]


def test_options_that_are_not_chosen_have_their_defaults(folder: Path) -> None:
    options = load(folder).options({"code_rate": 0.75}, "x")
    assert options == {"scheme": "none", "code_rate": 0.75, "window": 20, "pacing": True}


WRONG: list[tuple[dict[str, object], str]] = [
    ({"shceme": "xor"}, "no option 'shceme'; did you mean 'scheme'"),
    ({"scheme": "rs"}, "scheme = 'rs' must be one of none, xor"),
    ({"scheme": 1}, "must be of type string"),
    ({"code_rate": 0.4}, "at least 0.5"),
    ({"code_rate": 1.5}, "at most 1"),
    ({"code_rate": "0.9"}, "must be of type number"),
    ({"code_rate": True}, "must be of type number"),
    ({"code_rate": float("nan")}, "must be of type number"),
    ({"window": 2.5}, "must be of type integer"),
    ({"pacing": 1}, "must be of type boolean"),
]


def test_a_wrong_option_is_refused(folder: Path) -> None:
    for choice, message in WRONG:
        line = refusal_of(load(folder).options, choice, "design.toml: variant 'a'")
        assert message in line and line.startswith("design.toml: variant 'a': ")


def test_an_option_that_is_not_read_beside_the_others_is_refused(folder: Path) -> None:
    declared = folder / "impl.toml"
    only_with = 'only_with = { scheme = ["xor"] }'
    declared.write_text(declared.read_text().replace("[options.window]", f"[options.window]\n{only_with}"))
    implementation = load(folder)
    assert implementation.options({"scheme": "xor", "window": 7}, "x")["window"] == 7
    assert implementation.options({"scheme": "none"}, "x")["window"] == 20
    with pytest.raises(Refusal) as refusal:
        implementation.options({"scheme": "none", "window": 7}, "x")
    why = "is read only with scheme = 'xor', which is 'none' here; set that, or leave window out"
    assert str(refusal.value) == f"x: option window = 7 {why}"


def test_a_missing_program_says_how_to_build_it(folder: Path) -> None:
    command = f"python -m fecbench.runners.implementations.build {folder.parent}"
    with pytest.raises(Refusal, match=rf"^example: {folder}/build/example is missing; mend: {command}$"):
        load(folder).check_built()


def test_files_that_not_every_user_may_read_are_named(folder: Path) -> None:
    """Endpoints run as a user of their own."""
    program = write_program(folder / "build/example")
    problem = f"{program} is not for every user; endpoints have one of their own"
    for name, mode in (("build/example", 0o750), ("build", 0o700), (".", 0o700)):
        load(folder).check_built()
        (folder / name).chmod(mode)
        assert refusal_of(load(folder).check_built) == f"example: {problem}; mend: chmod -R o+rX {folder}"
        (folder / name).chmod(0o755)


def test_of_those_here_make_builds_a_missing_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implementations, "is_file", lambda _: False)
    with pytest.raises(Refusal, match=r"^rquic: .*/build/rquic is missing; mend: make build$"):
        load(implementations.IMPLEMENTATIONS / "rquic").check_built()


def declare(folder: Path, **commands: str) -> Implementation:
    """The example with other commands: the TOML text of each, by its key."""
    lines = [
        line for line in (folder / "impl.toml").read_text().splitlines() if line.split(" ")[0] not in commands
    ]
    text = "\n".join([*(f"{key} = {command}" for key, command in commands.items()), *lines])
    (folder / "impl.toml").write_text(text)
    return load(folder)


def write_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_an_absolute_program_is_started_as_it_is_and_is_not_said_to_be_built(folder: Path) -> None:
    implementation = declare(folder, server='["/bin/sh", "-c", "exit"]', client='["/bin/sh", "-c", "exit"]')
    assert implementation.command("server") == ["/bin/sh", "-c", "exit"]
    assert implementation.programs() == implementation.files() == [Path("/bin/sh")]
    implementation.check_built()
    implementation = declare(folder, server='["/no/such/program"]', client='["/no/such/program"]')
    expected = f"example: /no/such/program is missing; mend: install it, or change {folder}/impl.toml"
    assert refusal_of(implementation.check_built) == expected


def test_a_word_that_names_a_file_of_the_folder_stands_for_its_absolute_path(folder: Path) -> None:
    write_program(folder / "server.py")
    implementation = declare(folder, server='["/bin/sh", "./server.py", "client.py", "--fast"]')
    assert implementation.command("server") == ["/bin/sh", f"{folder}/server.py", "client.py", "--fast"]


def test_a_bare_name_is_a_program_of_the_folder_or_else_one_that_the_system_has(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(write_program(tmp_path / "bin" / "sh").parent))
    implementation = declare(folder, server='["sh"]', client='["no-such-program"]')
    assert implementation.command("server") in (["/usr/bin/sh"], ["/bin/sh"])
    assert implementation.command("client") == [f"{folder}/no-such-program"]
    write_program(folder / "sh")
    assert implementation.command("server") == [f"{folder}/sh"]


def test_a_path_is_never_looked_for_elsewhere_and_a_word_that_is_too_long_for_one_is_a_word(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_program(tmp_path / "here" / "sh").parent)
    assert declare(folder, server='["./sh"]').command("server") == [f"{folder}/sh"]
    word = "x" * 5000
    assert declare(folder, server=f'["/bin/sh", "{word}"]').command("server") == ["/bin/sh", word]


def test_each_engine_needs_its_own_programs(folder: Path) -> None:
    for name in ("build/example", "check", "play.py"):
        write_program(folder / name)
    simulated = declare(folder, simulator='["/bin/sh", "play.py"]', check='["check"]')
    endpoints, check = folder / "build/example", folder / "check"
    assert simulated.simulator_command() == ["/bin/sh", str(folder / "play.py")]
    assert simulated.files("local") == sorted([endpoints, check])
    assert simulated.files("virtual") == sorted([Path("/bin/sh"), folder / "play.py", check])
    assert simulated.files() == sorted([Path("/bin/sh"), folder / "play.py", endpoints, check])
    endpoints.unlink()
    simulated.check_built("virtual")
    with pytest.raises(Refusal, match="build/example is missing"):
        simulated.check_built("local")


def test_without_a_simulator_there_is_no_virtual_time(folder: Path) -> None:
    with pytest.raises(Refusal, match=r"^example has no simulator: it runs with --engine local only$"):
        load(folder).simulator_command()


def test_its_files_are_all_that_a_command_names_or_that_is_declared(folder: Path) -> None:
    named = [
        write_program(folder / name) for name in ("build/example", "check", "run.sh", "server.py", "table")
    ]
    write_program(folder / "unnamed")
    implementation = declare(
        folder, server='["/bin/sh", "server.py"]', client='["run.sh"]', check='["check", "table"]',
        files='["build/example"]',
    )  # fmt: skip
    assert implementation.files() == sorted([Path("/bin/sh"), *named])
    implementation.check_built()
    (folder / "build/example").unlink()
    assert implementation.missing_programs() == [folder / "build/example"]


def test_a_program_that_may_not_be_executed_is_refused_with_what_allows_it(folder: Path) -> None:
    program = write_program(folder / "build/example")
    program.chmod(0o644)
    with pytest.raises(Refusal, match=f"^example: {program} is no program; mend: chmod \\+x {program}$"):
        load(folder).check_built()


@pytest.fixture
def checked(folder: Path) -> Path:
    """The folder of an implementation that checks its options: a window of 7 goes with no code."""
    with (folder / "impl.toml").open("r+") as written:
        text = written.read()
        written.seek(0)
        written.write(text.replace("workloads =", 'check = ["check", "--all"]\nworkloads ='))
    (folder / "check").write_text(
        '#!/bin/sh\n[ "$1" = --all ] || exit 9\n'
        'case "$2" in *\'"window": 7\'*) echo "example: window: 7 needs scheme none" >&2; exit 2 ;; esac\n'
    )
    (folder / "check").chmod(0o755)
    return folder


def test_a_check_is_asked_about_all_options_and_its_program_has_to_be_built(checked: Path) -> None:
    implementation = load(checked)
    assert checked / "check" in implementation.programs()
    implementation.check_together({"code_rate": 0.75}, "x")
    (checked / "check").write_text('#!/bin/sh\necho "$2" >&2\nexit 2\n')
    with pytest.raises(Refusal) as refusal:
        implementation.check_together({"code_rate": 0.75}, "x")
    message = str(refusal.value).removeprefix("x: code_rate = 0.75: ")
    assert json.loads(message) == implementation.options({"code_rate": 0.75}, "x")


def test_options_that_do_not_fit_together_are_refused_with_what_the_check_says(checked: Path) -> None:
    message = "design.toml: variant 'a': scheme = 'xor', window = 7: example: window: 7 needs scheme none"
    with pytest.raises(Refusal, match=f"^{message}$"):
        load(checked).check_together({"scheme": "xor", "window": 7}, "design.toml: variant 'a'")


def test_of_several_sets_the_first_that_is_refused_is_told(checked: Path) -> None:
    sets = [({"window": window}, f"variant {window}") for window in (6, 7, 8)]
    load(checked).check_each_together([sets[0], sets[2]])
    with pytest.raises(Refusal, match=r"^variant 7: window = 7: example: window: 7 needs scheme none$"):
        load(checked).check_each_together(sets)


def test_one_of_several_sets_that_is_not_answered_is_told(
    checked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(implementations, "CHECK_LIMIT_S", 2.0)
    (checked / "check").write_text('#!/bin/sh\ncase "$2" in *\'"window": 7\'*) exec sleep 60 ;; esac\n')
    with ahead(), pytest.raises(Refusal, match=r"^variant 7: .*/check did not answer within 2 s$"):
        load(checked).check_each_together([({"window": window}, f"variant {window}") for window in (6, 7, 8)])


def test_a_check_that_fails_without_a_word_or_cannot_be_started_refuses(checked: Path) -> None:
    for program, message in (
        ("#!/bin/sh\nexit 3\n", "x: window = 8: refused with 3"),
        ("\x7fELF, but cut off", r"x: .*/check cannot be started: Exec format error; mend: python"),
    ):
        (checked / "check").write_text(program)
        assert re.search(message, refusal_of(load(checked).check_together, {"window": 8}, "x"))
    (checked / "check").chmod(0o700)
    if os.geteuid() == 0:  # an ordinary user's check runs as that user
        line = refusal_of(load(checked).check_together, {}, "x")
        assert "check cannot be started: Permission denied; mend: chmod -R o+rX" in line


def test_without_a_check_any_options_go_together(folder: Path) -> None:
    load(folder).check_together({"scheme": "xor", "window": 7}, "x")


FOUND: list[tuple[str, str, dict[str, Any] | None]] = [
    ('default = "none"', 'default = "xor"', {}),
    ('default = "none"', 'default = "none"', {"scheme": "xor"}),
    ('off = { scheme = "none" }', "off = { pacing = true }", {"pacing": False}),
    ('off = { scheme = "none" }', "off = { window = 20 }", {"window": 21}),
    ('choices = ["none", "xor"]', 'choices = ["none"]', None),
]


def test_options_that_turn_fec_on_are_found(folder: Path) -> None:
    path = folder / "impl.toml"
    declared = path.read_text()
    for right, wrong, options in FOUND:
        assert right in declared
        path.write_text(declared.replace(right, wrong))
        assert load(folder).options_with_fec() == options


def test_options_that_owe_repair_turn_fec_on_before_a_default_that_owes_none(folder: Path) -> None:
    """Otherwise a check of FEC would accept a transfer without repair."""
    path = folder / "impl.toml"
    lacking = 'repair_may_lack = [{ scheme = "xor", window = 20 }]'
    path.write_text(
        path.read_text().replace('default = "none"', 'default = "xor"').replace("[fec]", f"[fec]\n{lacking}")
    )
    assert load(folder).options_with_fec() == {"window": 21}
