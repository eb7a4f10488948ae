"""The implementations in quic-impls/: what their impl.toml declares, and which options a variant may set."""

import json
import math
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fecbench.checkout import REPOSITORY
from fecbench.hints import nearest
from runners.refusal import Refusal, first_problem

IMPLEMENTATIONS = REPOSITORY / "quic-impls"
CHECK_LIMIT_S = 30.0

Value = str | int | float | bool
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


class Option(BaseModel):
    """One option of an implementation."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["string", "integer", "number", "boolean"]
    default: Value
    choices: list[Value] | None = None
    minimum: float | None = None
    maximum: float | None = None
    help: str

    @model_validator(mode="after")
    def _default_is_allowed(self) -> Self:
        if problem := self.problem_of(self.default):
            raise ValueError(f"the default {problem}")
        return self

    def problem_of(self, value: object) -> str:
        """What is wrong with a value, or nothing."""
        right = isinstance(value, TYPES[self.type]) and isinstance(value, bool) == (self.type == "boolean")
        if not right or (isinstance(value, float) and not math.isfinite(value)):
            return f"must be of type {self.type}"
        if self.choices is not None and value not in self.choices:
            return f"must be one of {', '.join(map(str, self.choices))}"
        if isinstance(value, (int, float)):
            if self.minimum is not None and value < self.minimum:
                return f"must be at least {self.minimum:g}"
            if self.maximum is not None and value > self.maximum:
                return f"must be at most {self.maximum:g}"
        return ""


class FecSwitch(BaseModel):
    """The options that turn FEC off in the same stack: its fair baseline."""

    model_config = ConfigDict(extra="forbid", strict=True)
    off: dict[str, Value]


class Declaration(BaseModel):
    """The contents of an impl.toml."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    title: str
    toolchain: Literal["go", "rust"] | None = None
    build: list[str] = Field(min_length=1)
    server: list[str] = Field(min_length=1)
    client: list[str] = Field(min_length=1)
    check: list[str] | None = Field(default=None, min_length=1)
    workloads: list[str] = Field(min_length=1)
    options: dict[str, Option] = {}
    fec: FecSwitch | None = None


@dataclass(frozen=True)
class Implementation:
    """An implementation and the folder that holds it."""

    folder: Path
    declaration: Declaration

    def command(self, role: Literal["client", "server"]) -> list[str]:
        """The argument list that starts an endpoint, its program as an absolute path."""
        return self._absolute(self.declaration.server if role == "server" else self.declaration.client)

    def check_command(self) -> list[str] | None:
        """The argument list that tells whether options, its last argument, fit together, if there is one."""
        return None if self.declaration.check is None else self._absolute(self.declaration.check)

    def _absolute(self, command: list[str]) -> list[str]:
        program, *arguments = command
        return [str(self.folder / program), *arguments]

    def programs(self) -> list[Path]:
        """The programs that have to be built."""
        declared = (self.declaration.client, self.declaration.server, self.declaration.check)
        return sorted({self.folder / command[0] for command in declared if command is not None})

    def missing_programs(self) -> list[Path]:
        """Those that have not been built."""
        return [program for program in self.programs() if not program.is_file()]

    def options(self, chosen: Mapping[str, object], where: str) -> dict[str, Value]:
        """All options with defaults filled in. Raises Refusal for a name or value that is not allowed."""
        known = self.declaration.options
        for name, value in chosen.items():
            if name not in known:
                raise Refusal(
                    f"{where}: {self.declaration.name} has no option {name!r}; {nearest(name, known)}"
                )
            if problem := known[name].problem_of(value):
                raise Refusal(f"{where}: option {name} = {value!r} {problem}")
        return {name: chosen.get(name, option.default) for name, option in known.items()}  # type: ignore[misc]

    def check_together(self, chosen: Mapping[str, object], where: str) -> None:
        """Asks the implementation itself whether options that are allowed one by one fit together.

        Raises Refusal with what it answers. One that declares no `check` takes any combination.
        """
        command = self.check_command()
        if command is None:
            return
        command.append(json.dumps(self.options(chosen, where)))
        try:
            asked = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=CHECK_LIMIT_S
            )
        except subprocess.TimeoutExpired:
            raise Refusal(f"{where}: {command[0]} did not answer within {CHECK_LIMIT_S:g} s") from None
        except OSError as error:
            raise Refusal(
                f"{where}: {command[0]} cannot be started: {error.strerror}: run make build"
            ) from error
        if asked.returncode != 0:
            named = ", ".join(f"{name} = {value!r}" for name, value in chosen.items()) or "the defaults"
            said = asked.stderr.decode(errors="replace").splitlines()
            raise Refusal(f"{where}: {named}: {said[-1] if said else f'refused with {asked.returncode}'}")

    def check_workload(self, name: str, where: str) -> None:
        """Raises Refusal when the implementation does not support the workload."""
        supported = self.declaration.workloads
        if name not in supported:
            raise Refusal(
                f"{where}: {self.declaration.name} has no workload {name!r}; {nearest(name, supported)}"
            )

    def check_built(self) -> None:
        """Raises Refusal when a program is missing."""
        for program in self.missing_programs():
            raise Refusal(f"{self.declaration.name} is not built ({program} is missing): run make build")


def load(folder: Path) -> Implementation:
    """The implementation in `folder`. Raises Refusal that names the file and the key."""
    path = folder / "impl.toml"
    try:
        written = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:  # no UTF-8, no TOML, and integers too long to be converted
        raise Refusal(f"{path}: {error}") from error
    except RecursionError:
        raise Refusal(f"{path}: its arrays or tables are nested too deeply") from None
    try:
        declaration = Declaration.model_validate(written)
    except ValidationError as error:
        raise Refusal(f"{path}: {first_problem(error)}") from error
    if declaration.name != folder.name:
        raise Refusal(f"{path}: name = {declaration.name!r}: must be that of the folder, {folder.name!r}")
    return Implementation(folder, declaration)


def names(root: Path = IMPLEMENTATIONS) -> list[str]:
    """The names of all implementations."""
    return sorted(path.parent.name for path in root.glob("*/impl.toml"))


def find(name: str, where: str, root: Path = IMPLEMENTATIONS) -> Implementation:
    """The implementation of that name. Raises Refusal with the nearest right name."""
    known = names(root)
    if name not in known:
        raise Refusal(f"{where}: there is no implementation {name!r}; {nearest(name, known)}")
    return load(root / name)


def all_of_them(root: Path = IMPLEMENTATIONS) -> dict[str, Implementation]:
    """Every implementation by name."""
    return {name: load(root / name) for name in names(root)}


def option_names(root: Path = IMPLEMENTATIONS) -> set[str]:
    """The names of the options of all implementations."""
    return {
        option
        for implementation in all_of_them(root).values()
        for option in implementation.declaration.options
    }


__all__ = ["Declaration", "Implementation", "Option", "all_of_them", "find", "load", "names", "option_names"]
