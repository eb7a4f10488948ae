"""JSON documents beside a design, or from a browser: found, read within bounds, and checked."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ValidationError

from fecbench.complaint import complaint
from fecbench.errors import BadInput
from fecbench.hints import nearest
from fecbench.runners.refusal import Refusal
from fecbench.unpacking import content_of

# A page is some kilobytes, a HAR with all contents some hundred megabytes.
LARGEST_FILE_BYTES = 2**30
LONGEST_COMPLAINT = 300


def _printable(text: str) -> str:
    if not text.isprintable() or not 1 <= len(text) <= 200:
        raise ValueError("must be 1 to 200 printable characters")
    return text


Model = TypeVar("Model", bound=BaseModel)
Line = Annotated[str, AfterValidator(_printable)]


def find_document(
    folders: Sequence[Path], kind: str, name: str, parameter: str, suffixes: Collection[str] = (".json",)
) -> Path:
    """Return the file of the `kind` (page, trace) of that name: in `KINDs` of the first folder that has it.

    Raises Refusal, which names the `parameter`.
    """
    names: list[str] = []
    for folder in folders:
        files = sorted(path for suffix in suffixes for path in (folder / f"{kind}s").glob(f"*{suffix}"))
        matches = [path for path in files if path.stem == name]
        if len(matches) == 1:
            return matches[0]
        if matches:
            paths = " and ".join(map(str, matches))
            raise Refusal(f"{parameter} = {name!r}: {paths} have that name; remove or rename one")
        names += [path.stem for path in files]
    where = " or ".join(str(folder / f"{kind}s") for folder in folders)
    raise Refusal(f"{parameter} = {name!r}: there is no {kind} {name!r} in {where}; {nearest(name, names)}")


def read_json(path: Path) -> object:
    """The JSON document in a file. Raises Refusal."""
    try:
        content = content_of(path, LARGEST_FILE_BYTES)
    except BadInput as error:
        raise Refusal(str(error)) from None
    try:
        document: object = json.loads(content.decode("utf-8-sig"))  # some browsers begin a HAR with a BOM
    except RecursionError:
        raise Refusal(f"{path}: is nested too deeply") from None
    except ValueError as error:  # neither UTF-8 nor JSON, and integers too long to be converted
        raise Refusal(f"{path}: is no JSON: {error}") from None
    return document


def checked(model: type[Model], document: object, where: str) -> Model:
    """The document as a model. Raises Refusal with the first thing that is wrong, in one short line."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        # A name or a value can hold line breaks, and megabytes.
        line = " ".join(f"{where}: {complaint(error)}".split())
        raise Refusal(line if len(line) <= LONGEST_COMPLAINT else f"{line[:LONGEST_COMPLAINT]}…") from None
