"""`fecbench implementations`: which there are, what each can do, and whether one meets the contract."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fecbench.checkout import require_whole
from fecbench.hints import nearest
from fecbench.runners import scratch
from fecbench.runners.commands.console import arguments, completion
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import implementations_in
from fecbench.runners.commands.console.destination import check_own_folder, fill_own_folder
from fecbench.runners.commands.console.terminal import say
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from fecbench.runners.conformance.part import Part
    from fecbench.runners.implementations.declaration import Declaration
    from fecbench.runners.implementations.engine_name import EngineName
    from fecbench.runners.implementations.finding import Implementations
    from fecbench.runners.implementations.implementation import Implementation
    from fecbench.runners.options import Option

REFERENCES = ("noq-fec", "rquic")
REPORT = "check.json"
"""File in the folder of --keep with the parts and the files there."""


def implementations(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Only this one, with all its options.")] = "",
    folders: arguments.ImplementationFolders = None,
    check: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Start this one, and say what of the contract it breaks.",
            autocompletion=completion.implementations,
        ),
    ] = "",
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="With --check: leave there what its endpoints were given and left: logs, qlog, TLS secrets,"
            " certificates. A folder that this command filled before is filled anew.",
        ),
    ] = None,
    as_json: arguments.Json = False,
) -> int:
    """List the implementations, or check one of them; 1 when the one that is named cannot be used, or does
    not meet the contract."""
    from fecbench.runners.sandbox import handed_over

    available = implementations_in(folders)
    if check:
        require_whole(["implementations", "--check", check])
    for word in filter(None, (name, check)):
        if word not in available.names():
            raise Refusal(f"there is no implementation {word!r}; {nearest(word, available.names())}")
    if keep is not None:
        if not check:
            raise Refusal(f"--keep {keep}: is of a check: give --check NAME, too")
        check_own_folder("--keep", keep, REPORT)
    if not check:
        _print_list(available, name, as_json)
        return 1 if name and available.problem(name) else 0
    if name not in ("", check):
        raise Refusal(f"fecbench implementations {name} --check {check}: name one implementation")
    with scratch.folder(of_others=True) as folder:
        files = folder / "files"
        handed_over.make_own_folder(files)
        parts = _check(available, check, files, keeps=keep is not None)
        if keep is not None:
            try:
                keep.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise Refusal(f"--keep {keep}: cannot be made: {error.strerror}") from None
            fill_own_folder(keep, files, REPORT, {"name": check, "parts": [asdict(part) for part in parts]})
    _print_parts(available, check, parts, as_json)
    return 0 if all(part.good for part in parts) else 1


def _print_list(available: Implementations, name: str, as_json: bool) -> None:
    names = [name] if name else available.names()
    if as_json:
        print_document({"implementations": [document_of(available, listed) for listed in names]})
        return
    for listed in names:
        problem = available.problem(listed)
        say(f"{listed}: cannot be used: {problem}" if problem else listed)
        if problem is None:
            _print_implementation(available.find(listed, "implementations"), with_options=bool(name))


def document_of(available: Implementations, name: str) -> dict[str, Any]:
    """Return the JSON document of an implementation. An unusable one has few entries."""
    folder, problem = str(available.folders[name][0]), available.problem(name)
    if problem is not None:
        return {"name": name, "folder": folder, "workloads": [], "options": {}, "problem": problem}
    declared = available.find(name, "implementations").declaration
    return {
        "name": name,
        "title": declared.title,
        "folder": folder,
        "workloads": declared.workloads,
        "options": {name: option.model_dump() for name, option in declared.options.items()},
        "series": declared.series,
        "engines": _engines(declared),
        "local_addresses": declared.local_addresses,
        "content_seed_hex": declared.content_seed_hex,
        "multipath": declared.multipath,
        "relay": declared.relay,
        "fec_off": declared.fec.off if declared.fec else None,
        "problem": None,
    }


def _engines(declared: Declaration) -> list[EngineName]:
    """Return the engines whose trials an implementation can take part in."""
    return ["local"] if declared.simulator is None else ["local", "virtual"]


def _print_implementation(implementation: Implementation, *, with_options: bool) -> None:
    declared = implementation.declaration
    say(f"  title      {declared.title}")
    say(f"  folder     {implementation.folder}")
    if declared.interop is not None:
        say("  contract   that of the QUIC interop runner")
    say(f"  workloads  {', '.join(declared.workloads)}")
    say(f"  engines    {', '.join(_engines(declared))}")
    if declared.series:
        say(f"  series     {', '.join(declared.series)}")
    if declared.fec:
        say(f"  FEC off    {' or '.join(map(_values, [declared.fec.off, *declared.fec.also_off]))}")
    if not with_options:
        say(f"  options    {', '.join(declared.options) or 'none'}")
        return
    for name, option in declared.options.items():
        say(f"  option {name}: {_kind(option)}, default {_text(option.default)}")
        say(f"    {option.help}")


def _kind(option: Option) -> str:
    """The type of an option, and which values it may have."""
    if option.choices is not None:
        return f"{option.type}, {' or '.join(map(_text, option.choices))}"
    if option.minimum is not None and option.maximum is not None:
        return f"{option.type}, {option.minimum:g} to {option.maximum:g}"
    if option.minimum is not None:
        return f"{option.type}, at least {option.minimum:g}"
    if option.maximum is not None:
        return f"{option.type}, at most {option.maximum:g}"
    return option.type


def _values(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_text(value)}" for name, value in options.items())


def _text(value: Any) -> str:
    """A value as a design has it."""
    return json.dumps(value, ensure_ascii=False)


def _check(available: Implementations, name: str, folder: Path, *, keeps: bool) -> list[Part]:
    """Return its parts. With `keeps`, the files of endpoints stay in the folder."""
    from fecbench.runners.conformance import contract, lossy_download, simulator_trials
    from fecbench.runners.conformance import interop_contract as interop_check
    from fecbench.runners.conformance.part import Part

    if (problem := available.problem(name)) is not None:
        return [Part("impl.toml", False, problem)]
    implementation = available.find(name, "implementations")
    declared = Part("impl.toml", True, f"{implementation.folder} declares it")
    if implementation.declaration.interop is not None:
        return [declared, *interop_check.check(implementation, folder if keeps else None)]
    parts = [declared, *contract.check(implementation, folder, _reference(available, name), keeps=keeps)]
    if implementation.missing_programs("local"):  # which is one of the parts
        return parts
    if all(part.good for part in parts):
        parts += lossy_download.check(implementation)
    return [*parts, *simulator_trials.check(implementation)]


def _reference(available: Implementations, name: str) -> Implementation | None:
    """Return one of our built implementations, whose content is known to be right; None if there is none."""
    usable = (
        available.find(reference, "implementations")
        for reference in REFERENCES
        if reference != name and available.problem(reference) is None
    )
    return next((reference for reference in usable if not reference.missing_programs()), None)


def _print_parts(available: Implementations, name: str, parts: Sequence[Part], as_json: bool) -> None:
    from fecbench.runners.conformance.part import summary

    problems = [f"{part.part}: {part.detail}" for part in parts if not part.good]
    if as_json:
        document = {
            "name": name,
            "passed": not problems,
            "not_tried": [part.part for part in parts if not part.tried],
            "problems": problems,
            "parts": [asdict(part) for part in parts],
            "implementations": [{**document_of(available, name), "problem": "; ".join(problems) or None}],
        }
        print_document(document)
        return
    for part in parts:
        word = "BROKEN" if not part.good else "good  " if part.tried else "-     "
        say(f"{word}  {part.part}: {part.detail}")
    say(summary(name, parts))
