"""Values that a design file writes with their units: `rtt_ms = "0.1s"`, `size_bytes = "50kB"`.

They become plain numbers in the unit that the name ends with, before anything else is checked. A
text without a unit stays as it is.
"""

from collections.abc import Mapping
from typing import Any

from fecbench.designs.error import DesignError
from fecbench.errors import BadInput
from fecbench.quantities import Kind, quantity

_KINDS: Mapping[str, Kind] = {"ms": "ms", "s": "s", "mbps": "Mbit/s", "bytes": "bytes"}
"""Kinds of units by the end of a name, behind its last underscore."""
_SHARES = {"p", "r", "k", "h", "rate"}
"""Parameters of losses that are probabilities."""
_OF_FACTORS = {"min", "max", "choices"}


def plain_values(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a design file with plain numbers. Raises DesignError, which names the key."""
    plain = dict(document)
    for table in ("factors", "constants"):
        if isinstance(document.get(table), dict):
            plain[table] = _table(document[table], table)
    if isinstance(document.get("workloads"), list):
        plain["workloads"] = [
            _table(workload, f"workloads[{index}]") for index, workload in enumerate(document["workloads"])
        ]
    if isinstance(document.get("plan"), dict):
        plain["plan"] = {
            key: [_table(point, f"plan.{key}[{index}]") for index, point in enumerate(value)]
            if key in ("points", "candidates") and isinstance(value, list)
            else value
            for key, value in document["plan"].items()
        }
    plain |= {key: _value(document[key], key) for key in ("timeout_s", "margin") if key in document}
    return plain


def _table(table: Any, path: str) -> Any:
    """Return a table with plain numbers: names of parameters at any depth, as dots make tables of them."""
    if not isinstance(table, dict):
        return table
    return {name: _value(value, f"{path}.{name}") for name, value in table.items()}


def _value(value: Any, path: str) -> Any:
    kind = _kind(path)
    if isinstance(value, str):
        return value if kind is None or _is_bare(value) else _number(value, kind, path)
    if isinstance(value, list):
        return [_value(element, path) for element in value]
    if isinstance(value, dict) and kind is not None and not _OF_FACTORS.isdisjoint(value):
        return {
            key: _value(setting, path) if key in _OF_FACTORS else setting for key, setting in value.items()
        }
    return _table(value, path)


def _kind(path: str) -> Kind | None:
    *above, name = path.split(".")
    if path == "margin" or ("loss" in above and name in _SHARES):
        return "share"
    stem, underscore, unit = name.rpartition("_")
    return _KINDS.get(unit) if stem and underscore else None


def _is_bare(text: str) -> bool:
    """Whether a text is a number without a unit, which is refused as any text in the place of a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(text: str, kind: Kind, path: str) -> int | float:
    try:
        value = quantity(text, kind)
    except BadInput as error:
        raise DesignError(f"{path} = {error}") from None
    return int(value) if value.is_integer() else value
