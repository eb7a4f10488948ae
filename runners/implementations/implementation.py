"""An implementation: the folder that holds it, what it declares, its commands, its files and its options.

The first word of a command is a program: an absolute path, a file of the folder, or the name of one that the
system has. Any other word that names a file of the folder stands for its absolute path, because an endpoint
is started in another folder.
"""

import json
import os
import re
import shlex
import shutil
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import tomli_w
from pydantic import ValidationError

from fecbench.checkout import DECLARATIONS
from fecbench.complaint import complaint, wrong_value
from fecbench.hints import nearest
from fecbench.runners import scratch
from fecbench.runners.implementations import interop
from fecbench.runners.implementations.declaration import Declaration
from fecbench.runners.implementations.engine_name import EngineName
from fecbench.runners.implementations.interop import Bundle, Command
from fecbench.runners.implementations.kept_answers import ask
from fecbench.runners.implementations.toolchains import build_path
from fecbench.runners.options import Value
from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox.environment import PATH, environment
from fecbench.runners.sandbox.question import Answer, NoAnswer

IMPLEMENTATIONS = DECLARATIONS
DECLARATION = "impl.toml"
CHECK_LIMIT_S = 30.0
NO_BUILD = ["true"]
OPTIONS_OF = "options_of"
COMMON = ("options", "fec")
"""Tables of the implementation that `options_of` names, which are its own, too."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""The name of a folder, and so of an implementation."""


class Lack(NamedTuple):
    """The fault of a needed file, and the command or action that mends it."""

    problem: str
    mend: str


@dataclass(frozen=True)
class Implementation:
    """An implementation and the folder that holds it."""

    folder: Path
    declaration: Declaration
    text: str
    """The impl.toml, as it was read."""

    def called(self, name: str) -> "Implementation":
        """Return the same implementation with another name."""
        declaration = self.declaration.model_copy(update={"name": name})
        return Implementation(self.folder, declaration, self.text)

    def command(self, role: Literal["client", "server"]) -> list[str]:
        """The argument list that starts an endpoint, its program as an absolute path."""
        bundle = self.bundle
        if bundle is not None:
            return list(bundle.arguments)
        declares = self.declaration.interop or self.declaration
        command = declares.server if role == "server" else declares.client
        assert command is not None  # the declaration has been checked
        return self._absolute(command)

    @property
    def bundle(self) -> Bundle | None:
        """The OCI runtime bundle that has its programs, if one has. Raises Refusal when it cannot be read."""
        if self.declaration.interop is None or self.declaration.interop.bundle is None:
            return None
        try:
            return interop.load_bundle(self.folder / self.declaration.interop.bundle)
        except Refusal as refusal:
            raise Refusal(f"{self.declaration.name}: {refusal}") from None

    def check_command(self) -> list[str] | None:
        """The command that reports whether options, its last argument, fit together, if there is one."""
        return None if self.declaration.check is None else self._absolute(self.declaration.check)

    def simulator_command(self) -> list[str]:
        """The argument list that starts its simulator. Raises Refusal when it declares none."""
        if self.declaration.simulator is None:
            raise Refusal(f"{self.declaration.name} has no simulator: it runs with --engine local only")
        return self._absolute(self.declaration.simulator)

    def _absolute(self, command: list[str]) -> list[str]:
        program, *arguments = command
        return [str(self._program(program, PATH)), *map(self._argument, arguments)]

    def build_command(self) -> list[str]:
        """The command that builds it, to be run in its folder with the user's compilers."""
        program, *arguments = self.declaration.build or NO_BUILD
        return [str(self._program(program, build_path())), *arguments]

    def lacking_for_build(self) -> list[str]:
        """The programs that its build needs and that the user does not have."""
        path = build_path()
        return [word for word in self.declaration.build_needs if shutil.which(word, path=path) is None]

    def _program(self, word: str, path: str) -> Path:
        program = self.folder / word
        if "/" in word or is_file(program):
            return program
        return Path(shutil.which(word, path=path) or program)

    def _argument(self, word: str) -> str:
        return str(self.folder / word) if is_file(self.folder / word) else word

    def _commands(self, engine: EngineName | None) -> list[list[str]]:
        """The commands that have a part in a trial of this engine; None: of any."""
        declares = self.declaration.interop or self.declaration
        endpoints: tuple[Command | None, ...] = (declares.client, declares.server)
        simulator = self.declaration.simulator
        of_engines: dict[EngineName | None, tuple[Command | None, ...]]
        of_engines = dict.fromkeys(("local", "field"), endpoints)
        of_engines |= {"virtual": (simulator,), None: (*endpoints, simulator)}
        declared = (*of_engines[engine], self.declaration.check)
        return [command for command in declared if command is not None]

    def programs(self, engine: EngineName | None = None) -> list[Path]:
        """The programs that its commands start."""
        own = {self._program(command[0], PATH) for command in self._commands(engine)}
        return sorted(own | {bundle.program for bundle in self._bundles(engine)})

    def _bundles(self, engine: EngineName | None) -> list[Bundle]:
        """The bundle, where it has one that has a part in a trial of this engine."""
        return [] if engine == "virtual" or self.bundle is None else [self.bundle]

    def files(self, engine: EngineName | None = None) -> list[Path]:
        """The programs, and every other file that a command or `files` of impl.toml names."""
        words = {word for command in self._commands(engine) for word in command[1:]}
        paths = {self.folder / word for word in words if is_file(self.folder / word)}
        of_bundle = {path for bundle in self._bundles(engine) for path in bundle.files}
        return sorted({*self.programs(engine), *paths, *of_bundle, *self._declared_files()})

    def _declared_files(self) -> list[Path]:
        return [self.folder / word for word in self.declaration.files]

    def needed_files(self, engine: EngineName | None = None) -> list[Path]:
        """The programs, and what `files` of impl.toml names: without them it cannot be started."""
        return sorted({*self.programs(engine), *self._declared_files()})

    def missing_programs(self, engine: EngineName | None = None) -> list[Path]:
        """The needed files that are not there."""
        return [path for path in self.needed_files(engine) if not is_file(path)]

    def lack_of(self, path: Path, engine: EngineName | None = None) -> Lack | None:
        """Return why one of the needed files is unusable, if it is."""
        if not is_file(path):
            inside = path.is_relative_to(self.folder)
            return Lack("is missing", self.build_with if inside else f"install it, or change {self._file}")
        if path in self.programs() and not os.access(path, os.X_OK):
            return Lack("is no program", f"chmod +x {path}")
        as_user = engine in ("virtual", "field") and os.geteuid() != 0
        if not (as_user or self._is_open_to_all(path)):
            return Lack("is not for every user; endpoints have one of their own", self._open_with)
        return None

    def _is_open_to_all(self, path: Path) -> bool:
        """Whether any user who is in the folder can read a file of it; where the folder lies matters not."""
        # An endpoint sees the file system of a bundle whatever is above it: umoci's folder is for root alone.
        roots = [*(bundle.root for bundle in self._bundles("local")), self.folder]
        base = next((root for root in roots if path.is_relative_to(root)), None)
        if base is None:
            return True
        above = [parent for parent in path.parents if parent.is_relative_to(base)]
        passable = all(parent.stat().st_mode & stat.S_IXOTH for parent in above)
        return passable and bool(path.stat().st_mode & stat.S_IROTH)

    @property
    def _open_with(self) -> str:
        return f"chmod -R o+rX {self.folder}"

    @property
    def build_with(self) -> str:
        """The command that a person builds it with."""
        every = self.declaration.on_demand
        if self.folder.parent == IMPLEMENTATIONS:
            return "make build-all" if every else "make build"
        option = "--all " if every else ""
        return f"python -m fecbench.runners.implementations.build {option}{self.folder.parent}"

    @property
    def _file(self) -> Path:
        return self.folder / DECLARATION

    def options(self, choices: Mapping[str, object], where: str) -> dict[str, Value]:
        """Return all options, defaults filled in.

        Raises Refusal for a name or value that is not allowed, and for an option that has no effect with the
        others.
        """
        self.check_options(choices, where)
        options, declared = self.with_defaults(choices), self.declaration.options
        for name in choices:
            if why := declared[name].unread_because(options):
                raise Refusal(
                    f"{where}: option {name} = {choices[name]!r} {why}; set that, or leave {name} out"
                )
        return options

    def check_options(self, choices: Mapping[str, object], where: str) -> None:
        """Raises Refusal for a name or value that is not allowed."""
        declared = self.declaration.options
        for name, value in choices.items():
            if name not in declared:
                raise Refusal(
                    f"{where}: {self.declaration.name} has no option {name!r}; {nearest(name, declared)}"
                )
            if problem := declared[name].problem_of(value):
                raise Refusal(f"{where}: option {name} = {value!r} {problem}")

    def with_defaults(self, choices: Mapping[str, object]) -> dict[str, Value]:
        """Return these options and the defaults of the others; nothing is checked."""
        declared = self.declaration.options
        return {name: choices.get(name, option.default) for name, option in declared.items()}  # type: ignore[misc]

    def check_together(self, choices: Mapping[str, object], where: str) -> None:
        """Ask the implementation itself whether options that are allowed one by one fit together.

        Raises Refusal with its answer. An implementation without `check` takes any combination.
        """
        self.check_each_together([(choices, where)])

    def check_each_together(self, sets: Sequence[tuple[Mapping[str, object], str]]) -> None:
        """Check several sets of options, each with the first words of its refusal. This is faster than one by
        one."""
        command = self.check_command()
        if command is None or not sets:
            return
        questions = [([*command, json.dumps(self.options(choices, where))], where) for choices, where in sets]
        for answer, (choices, where) in zip(self._answers(questions), sets, strict=False):
            if answer.status != 0:
                options = (
                    ", ".join(f"{name} = {value!r}" for name, value in choices.items()) or "the defaults"
                )
                lines = answer.errors.splitlines()
                reason = lines[-1] if lines else f"refused with {answer.status}"
                raise Refusal(f"{where}: {options}: {reason}")

    def options_with_fec(self) -> dict[str, Value] | None:
        """Return no options if FEC is on by default, else one that turns it on; None if no single option
        does.

        Options with which every transfer has a repair symbol come first.
        """
        name, fec = self.declaration.name, self.declaration.fec
        if fec is None:
            return None
        paths = dict.fromkeys([*fec.off, *(one for one, _ in fec.all_options)])
        choices: list[dict[str, Value]] = [{}]
        choices += [{one: value} for one in paths for value in self.declaration.options[one].samples]
        is_on = [choice for choice in choices if fec.is_on(self.with_defaults(choice))]
        for choice in sorted(is_on, key=lambda some: not fec.owes_repair(self.with_defaults(some))):
            try:
                self.check_together(choice, name)
            except Refusal:
                continue
            return choice
        return None

    def _answers(self, questions: Sequence[tuple[list[str], str]]) -> Iterator[Answer]:
        """Yield the answer of a program to each command, up to the first with a status other than 0.

        Raises Refusal, which begins with the text beside the command, for a command without an answer.
        """
        commands = [command for command, _ in questions]
        with scratch.folder(of_others=True) as home:
            answers = ask(commands, self.folder, home, environment(home), CHECK_LIMIT_S)
        for answer, ((program, *_), where) in zip(answers, questions, strict=False):
            if isinstance(answer, NoAnswer):
                lack = self.lack_of(Path(program))
                mend = "" if answer.can_start else f"; mend: {lack.mend if lack else self.build_with}"
                raise Refusal(f"{where}: {program} {answer.problem}{mend}")
            yield answer

    def check_workload(self, name: str, where: str) -> None:
        """Raises Refusal when the implementation does not support the workload."""
        supported = self.declaration.workloads
        if name not in supported:
            raise Refusal(
                f"{where}: {self.declaration.name} has no workload {name!r}; {nearest(name, supported)}"
            )

    def check_built(self, engine: EngineName = "local") -> None:
        """Raises Refusal when a program that the engine starts is missing or cannot be executed, and when the
        simulator was built from other sources than the endpoints."""
        if lack := self.lack(engine):
            raise Refusal(f"{self.declaration.name}: {lack.problem}; mend: {lack.mend}")

    def lack(self, engine: EngineName) -> Lack | None:
        """The first thing that trials of this engine lack of it."""
        for path in self.needed_files(engine):
            if lack := self.lack_of(path, engine):
                return Lack(f"{path} {lack.problem}", lack.mend)
        if engine == "virtual" and self.declaration.sources is not None:
            return self._lack_of_sources(self.declaration.sources)
        return None

    def _lack_of_sources(self, argument: str) -> Lack | None:
        """Whether its programs tell, and differ in, what they were built from."""
        endpoints = self.command("client"), self.command("server")
        commands = {shlex.join(command): command for command in (*endpoints, self.simulator_command())}
        questions = [([*command, argument], self.declaration.name) for command in commands.values()]
        sources_by_command = {}
        for command, answer in zip(commands, self._answers(questions), strict=False):
            words = answer.output.split()
            if answer.status != 0 or len(words) != 1:
                problem = f"{command} does not tell with {argument} what it was built from"
                return Lack(problem, self.build_with)
            sources_by_command[command] = words[0]
        if len(set(sources_by_command.values())) > 1:
            listing = ", ".join(
                f"{command} from {sources}" for command, sources in sources_by_command.items()
            )
            return Lack(
                f"endpoint and simulator were built from different sources, {listing}", self.build_with
            )
        return None


def is_file(path: Path) -> bool:
    """Whether the path is one of a file; a word that is too long for a path is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def load(folder: Path) -> Implementation:
    """The implementation in `folder`, which has its name. Raises Refusal that names the file and the key."""
    implementation = read(folder)
    name = implementation.declaration.name
    if name != folder.name:
        path = folder / DECLARATION
        raise Refusal(f"{path}: {wrong_value('name', name, f'that of the folder, {folder.name!r}')}")
    return implementation


def read(folder: Path) -> Implementation:
    """Return the implementation in `folder`, which may have any name. Raises Refusal as `load` does."""
    path = folder / DECLARATION
    text = _text(path)
    written = _parsed(path, text)
    if OPTIONS_OF in written:
        shared = _of_other(path, written)
        written |= shared
        # A campaign's provenance says what was declared, wherever it stands.
        text = f"{text}\n# {OPTIONS_OF}\n{tomli_w.dumps(shared)}"
    try:
        declaration = Declaration.model_validate(written)
    except ValidationError as error:
        raise Refusal(f"{path}: {complaint(error)}") from error
    return Implementation(folder, declaration, text)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # no UTF-8
        raise Refusal(f"{path}: {error}") from error


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:  # no TOML, and integers too long to be converted
        raise Refusal(f"{path}: {error}") from error
    except RecursionError:
        raise Refusal(f"{path}: its arrays or tables are nested too deeply") from None


def _of_other(path: Path, written: Mapping[str, object]) -> dict[str, Any]:
    """Return the tables that the implementation beside it, which it names, declares for both."""
    name = written[OPTIONS_OF]
    where = f"{path}: {OPTIONS_OF} = {name!r}"
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Refusal(f"{where}: must be the name of a folder beside it")
    for table in COMMON:
        if table in written:
            raise Refusal(f"{where}: [{table}] is that of {name}; leave one of the two out")
    other = path.parent.parent / name / DECLARATION
    try:
        declared = _parsed(other, _text(other))
    except Refusal as refusal:
        raise Refusal(f"{where}: {refusal}") from None
    if OPTIONS_OF in declared:
        raise Refusal(f"{where}: {name} has no options of its own; name {declared[OPTIONS_OF]!r}")
    return {table: declared[table] for table in COMMON if table in declared}
