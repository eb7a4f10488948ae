"""Implementations of the QUIC interop runner's contract: what `[interop]` of an impl.toml may say, and the
OCI runtime bundle that it may name (docs/interop-images.md).

A bundle is a folder with a root file system and a `config.json` (the OCI runtime specification), as `umoci
unpack` makes one of an image. The process of that file is
used: its arguments, environment and folder.
"""

import json
import string
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from fecbench.complaint import complaint, wrong_value
from fecbench.hints import nearest
from fecbench.runners.refusal import Refusal

WORKLOADS = ["download"]
LARGEST_BYTES = 512 << 20
"""Size of the largest download: the received file is in memory until it has been verified."""
OURS = ("ROLE", "TESTCASE", "REQUESTS", "SERVER_PARAMS", "CLIENT_PARAMS", "SSLKEYLOGFILE", "QLOGDIR")
"""The variables of the contract, which the harness sets."""

Word = Annotated[str, StringConstraints(pattern=r"^[^\x00]+\z")]
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*\z")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\z")]
Command = Annotated[list[Word], Field(min_length=1)]

_CONFIG = "config.json"
_OF_CONTRACT = ("www", "downloads", "certs", "logs", "tmp")
_MOST_LINKS = 40  # as the kernel


class Params(BaseModel):
    """SERVER_PARAMS and CLIENT_PARAMS."""

    model_config = ConfigDict(extra="forbid", strict=True)

    server: Text = ""
    client: Text = ""


class Interop(BaseModel):
    """The table `[interop]`: a bundle, or a command for each end."""

    model_config = ConfigDict(extra="forbid", strict=True)

    bundle: Word | None = None
    """The folder of an OCI runtime bundle, from the implementation's own."""
    server: Command | None = None
    client: Command | None = None
    testcase: Word = "http3"
    """TESTCASE, which a download is asked for as."""
    env: dict[VariableName, Text] = {}
    """More variables. `{name}` in a value stands for the option of that name."""
    params: Params | Text = Params()
    """A text is that of both ends. `{name}` stands for an option here, too."""

    @model_validator(mode="after")
    def _has_one_kind_of_program(self) -> Self:
        commands = (self.server, self.client)
        if self.bundle is not None and any(commands):
            raise ValueError("has a bundle and commands; it must be one or the other")
        if self.bundle is None and not all(commands):
            raise ValueError("must have a bundle, or the commands server and client")
        for name in self.env:
            if name in OURS:
                raise ValueError(f"env.{name} is set by the harness; leave it out")
        return self

    def params_of(self, role: Literal["client", "server"]) -> str:
        """SERVER_PARAMS or CLIENT_PARAMS, options not filled in."""
        if isinstance(self.params, str):
            return self.params
        return self.params.server if role == "server" else self.params.client

    def check_options(self, options: Mapping[str, object]) -> None:
        """Raises ValueError for an option that is named and not declared, and for one that reaches nobody."""
        names = set(self._named())
        for name in sorted(names - options.keys()):
            raise ValueError(f"names {{{name}}}: there is no option {name!r}; {nearest(name, options)}")
        for name in options:
            if name not in names:
                raise ValueError(f"option {name} reaches nobody: name it as {{{name}}} in env or params")

    def _named(self) -> Iterator[str]:
        for text in (*self.env.values(), self.params_of("server"), self.params_of("client")):
            for _, name, form, _ in string.Formatter().parse(text):
                if name is None:
                    continue
                if form or not name.isidentifier():
                    raise ValueError(f"{text!r}: between braces stands the name of an option, and no more")
                yield name


def filled(text: str, options: Mapping[str, Any]) -> str:
    """The text with the values of options in it."""
    return text.format_map({name: _as_text(value) for name, value in options.items()})


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Bundle(BaseModel):
    """An OCI runtime bundle: where it is, and the process that it starts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Path
    root: Path
    """Root of its file system."""
    arguments: list[str]
    environment: dict[str, str]
    working_folder: str
    """Working folder in its file system."""

    @property
    def program(self) -> Path:
        """The file here that its process starts; if it is missing, the place where it should be."""
        word = self.arguments[0]
        if "/" in word:
            candidates = [PurePosixPath(self.working_folder, word)]
        else:
            folders = self.environment.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").split(":")
            candidates = [PurePosixPath(folder, word) for folder in folders]
        existing = (
            path for one in candidates if (path := inside(self.root, one)) is not None and path.is_file()
        )
        return next(existing, self.root / candidates[0].relative_to("/"))

    @property
    def files(self) -> list[Path]:
        """The files that identify a bundle: its configuration, its program, and the list of hashes that umoci
        writes."""
        return sorted({self.folder / _CONFIG, self.program, *self.folder.glob("*.mtree")})


class _Process(BaseModel):
    model_config = ConfigDict(extra="ignore")

    args: Command
    env: list[Text] = []
    cwd: Annotated[str, StringConstraints(pattern=r"^/[^\x00]*\z")] = "/"


class _Root(BaseModel):
    model_config = ConfigDict(extra="ignore")

    path: Word


class _Configuration(BaseModel):
    model_config = ConfigDict(extra="ignore")

    process: _Process
    root: _Root


def load_bundle(folder: Path) -> Bundle:
    """The bundle in `folder`. Raises Refusal that names the file and what is wrong with it."""
    path = folder / _CONFIG
    try:
        configuration = _Configuration.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        problem = complaint(error) if isinstance(error, ValidationError) else str(error)
        raise Refusal(f"{path}: {problem}; a bundle is what `umoci unpack` makes") from error
    except RecursionError:
        raise Refusal(f"{path}: it is nested too deeply") from None
    root = folder / configuration.root.path
    if not root.is_dir():
        raise Refusal(
            f"{path}: {wrong_value('root.path', configuration.root.path, 'a folder of the bundle')}"
        )
    if not root.resolve().is_relative_to(folder.resolve()) or root.resolve() == folder.resolve():
        raise Refusal(f"{path}: {wrong_value('root.path', configuration.root.path, 'inside of the bundle')}")
    process = configuration.process
    if not _has_folder(root.resolve(), PurePosixPath(process.cwd)):
        raise Refusal(f"{path}: {wrong_value('process.cwd', process.cwd, 'a folder of its file system')}")
    return Bundle(
        folder=folder,
        root=root.resolve(),
        arguments=process.args,
        environment=dict(entry.split("=", 1) for entry in process.env if "=" in entry),
        working_folder=process.cwd,
    )


def _has_folder(root: Path, path: PurePosixPath) -> bool:
    """Whether an endpoint will have this folder, from the bundle or by the contract."""
    if path.parts[1:2] in [(name,) for name in _OF_CONTRACT]:
        return len(path.parts) == 2
    place = inside(root, path)
    return place is not None and place.is_dir()


def inside(root: Path, path: PurePosixPath) -> Path | None:
    """Return the target of an absolute path of the file system below `root`. Links are followed within it.

    None for links without end.
    """
    remaining, place, links = [part for part in path.parts if part != "/"], root, 0
    while remaining:
        part, *remaining = remaining
        if part == "..":
            place = place.parent if place != root else root
            continue
        step = place / part
        if not step.is_symlink():
            place = step
            continue
        if (links := links + 1) > _MOST_LINKS:
            return None
        target = PurePosixPath(step.readlink())
        if target.is_absolute():
            place = root
        remaining = [*(part for part in target.parts if part != "/"), *remaining]
    return place
