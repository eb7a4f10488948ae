"""A design that differs little from another: `base` names that one, and the design says what differs.

- `base = "NAME"` is a design of the catalogue, `base = "FILE.toml"` a file beside the design.
- Tables are merged key by key, whether a name is written `loss.p` or "loss.p". A factor, a list and any other
  value takes the place of the base's.
- `without = ["plan.candidates", …]` leaves out what the base has.
- `variants = ["LABEL", …]` chooses those of the base.
- Documents, such as pages, are looked for beside the design first, then beside its base.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fecbench.complaint import wrong_value
from fecbench.designs.catalogue import catalogue
from fecbench.designs.error import DesignError
from fecbench.designs.factor import is_factor
from fecbench.hints import nearest

Document = dict[str, Any]
Place = tuple[str, ...]
"""The keys of the tables that a value stands in, and its own."""
Read = Callable[[Path], Document]


def resolved(
    document: Document, path: Path, read: Read, below: tuple[Path, ...] = ()
) -> tuple[Document, tuple[Path, ...]]:
    """The design with all that its bases say, and their files, the nearest first.

    `read` reads the file of one. Raises DesignError.
    """
    if "base" not in document:
        return document, ()
    own = dict(document)
    file = _file(own.pop("base"), path)
    if file.resolve() in (chain := (*below, path.resolve())):
        raise DesignError(f"{path}: base = {document['base']!r}: is based on this design itself")
    base, others = resolved(read(file), file, read, chain)
    left_out = [_leave_out(base, key, path) for key in _keys(own.pop("without", []), path)]
    if labels := _labels(own.get("variants")):
        own["variants"] = _variants_of_base(labels, base.get("variants", []), path)
    merged = _merged(base, _spelled_as(base, own))
    for place in left_out:
        _without_empty_tables(merged, place)
    return merged, (file, *others)


def _file(reference: Any, path: Path) -> Path:
    if isinstance(reference, str) and reference.endswith(".toml") and "\0" not in reference:
        return path.parent / reference
    designs = catalogue()
    if not isinstance(reference, str):
        raise DesignError(
            f"{path}: {wrong_value('base', reference, 'the name of a design or of a .toml file')}"
        )
    if reference not in designs:
        raise DesignError(
            f"{path}: base = {reference!r}: is no design of the catalogue; {nearest(reference, designs)}"
        )
    return designs[reference]


def _keys(without: Any, path: Path) -> list[str]:
    if not isinstance(without, list) or not all(isinstance(key, str) for key in without):
        raise DesignError(f"{path}: {wrong_value('without', without, 'a list of keys of the base')}")
    return without


def _leave_out(base: Document, key: str, path: Path) -> Place:
    """Remove a key from the base; return where it stood."""
    places = _places_by_name(base)
    if key not in places:
        raise DesignError(f"{path}: without = {key!r}: the base has no such key; {nearest(key, places)}")
    *tables, last = place = places[key]
    table = base
    for name in tables:
        table = table[name]
    del table[last]
    return place


def _places_by_name(table: Document) -> dict[str, Place]:
    """Return where each key stands, of a table and of those in it, by its dotted name."""
    return {".".join(place): place for place in _places(table)}


def _places(table: Document, above: Place = ()) -> Iterator[Place]:
    for key, value in table.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from _places(value, (*above, key))


def _without_empty_tables(table: Document, place: Place) -> None:
    """Remove the tables of a key that was left out, if they are empty: one would be a factor without values.
    The place of the others among the factors, which the plan depends on, is that of the base."""
    name, *rest = place
    if rest and isinstance(below := table.get(name), dict):
        _without_empty_tables(below, tuple(rest))
        if not below:
            del table[name]


def _labels(variants: Any) -> list[str]:
    is_choice = isinstance(variants, list) and all(isinstance(label, str) for label in variants)
    return variants if is_choice else []


def _variants_of_base(labels: list[str], variants: Any, path: Path) -> list[Document]:
    tables = (
        [variant for variant in variants if isinstance(variant, dict)] if isinstance(variants, list) else []
    )
    of_base = {str(variant.get("label")): variant for variant in tables}
    for label in labels:
        if label not in of_base:
            raise DesignError(f"{path}: variants: the base has no {label!r}; {nearest(label, of_base)}")
    return [of_base[label] for label in labels]


def _spelled_as(base: Document, own: Document) -> Document:
    """Return the own document with names as the base writes them: `loss.p` or "loss.p".

    A name that stands there in both ways stays so, and is refused with the whole design.
    """
    places, leaves, spelled = _places_by_name(base), list(_leaves(own)), Document()
    for path, value in leaves:
        place = places.get(".".join(path), path)
        if any(_overlap(place, other) for other, _ in leaves if other != path):
            place = path
        *tables, last = place
        table = spelled
        for name in tables:
            table = table.setdefault(name, {})
        table[last] = value
    return spelled


def _leaves(table: Document, above: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield each value that is no table of others, and where it stands."""
    for key, value in table.items():
        if is_factor(value):
            yield (*above, key), value
        else:
            yield from _leaves(value, (*above, key))


def _overlap(place: Place, other: Place) -> bool:
    """Whether one of two places is the other, or in its table."""
    return all(key == key_of_other for key, key_of_other in zip(place, other, strict=False))


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> Document:
    merged = dict(base)
    for key, value in own.items():
        before = base.get(key)
        if isinstance(before, dict) and isinstance(value, dict) and not is_factor(before | value):
            merged[key] = _merged(before, value)
        else:
            merged[key] = value
    return merged


def parsed(path: Path, text: str) -> Document:
    """The tables of a file with this text. Raises DesignError."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise DesignError(f"{path}: is nested too deeply for a design") from None
    except ValueError as error:  # TOMLDecodeError, and integers too long to be converted
        raise DesignError(f"{path}: is no valid TOML: {error}") from None
