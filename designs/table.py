"""Parts that the tables of a design file share: strict models, plain values, dotted names, and refusals.

Every refusal carries the key that it is about, so that `complaint` can say in one line where the file is
wrong, with which value, and what would be right.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from fecbench.hints import nearest

Value = bool | int | float | str
Interval = list[int | float]
"""Both ends."""

# Above it a double no longer holds every integer, so a value would change on its way through JSON or NumPy.
LARGEST_NUMBER = 2**53

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*")


def refused(message: str, key: str = "", value: Any = None) -> PydanticCustomError:
    """An error for pydantic to collect: about `value` of `key`, relative to the table that is being checked.

    Without a key it is about the very value that is being checked. (No value in TOML is None.)
    """
    return PydanticCustomError("refused", "{message}", {"message": message, "key": key, "value": value})


@contextmanager
def about(key: str, value: Any = None) -> Iterator[None]:
    """Makes a refusal inside one about `value` of `key`."""
    try:
        yield
    except PydanticCustomError as error:
        raise refused(error.message(), key, value) from None


class Table(BaseModel):
    """A TOML table whose keys are all known and whose values are never coerced."""

    model_config = ConfigDict(frozen=True, strict=True)

    others: ClassVar[str] = ""
    """A hint at the place of other keys, for one that was not mistyped."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, table: Any) -> Any:
        keys = [field.alias or name for name, field in cls.model_fields.items()]
        for key in table if isinstance(table, dict) else ():
            if key not in keys:
                hint = nearest(key, keys)
                where = f"{cls.others}; " if cls.others and not hint.startswith("did you mean") else ""
                raise refused(f"unknown key; {where}{hint}", key)
        return table


def finite(number: Any) -> int | float:
    """A number that a double holds, or a refusal."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise refused("must be a number")
    # `not <=` and not `>`: NaN fails every comparison.
    if not abs(number) <= LARGEST_NUMBER:
        raise refused("must be a finite number between -2^53 and 2^53")
    return number


def plain(value: Any) -> Value:
    """A number, a string or a boolean, or a refusal."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return finite(value)
    raise refused("must be a number, a string or a boolean")


def plain_or_interval(value: Any) -> Value | Interval:
    """A plain value or a list, of which check_unit says whether it is an interval; or a refusal."""
    return value if isinstance(value, list) else plain(value)


Number = Annotated[int | float, PlainValidator(finite)]
PlainValue = Annotated[Value, PlainValidator(plain)]
PlainOrInterval = Annotated[Value | Interval, PlainValidator(plain_or_interval)]


def check_unit(name: str, value: Value | Interval) -> None:
    """Refuses a value that cannot have the unit that its name ends with. Intervals are of seconds."""
    if isinstance(value, list):
        if not name.endswith("_s"):
            raise refused("must be a number, a string or a boolean")
        if len(value) != 2 or not 0 <= finite(value[0]) < finite(value[1]):
            raise refused("must be [from, to], two numbers, 0 or more, the first the smaller")
        return
    whole = name.endswith(("_bytes", "_packets"))
    if whole and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise refused("must be a whole number, 0 or more", value=value)
    if name.endswith(("_ms", "_s", "_mbps", "_bdp")) and (isinstance(value, bool | str) or value < 0):
        raise refused("must be a number, 0 or more", value=value)


def dotted(table: Any, is_leaf: Callable[[Any], bool] = lambda value: not isinstance(value, dict)) -> Any:
    """Nested tables as one flat table with dotted names: {"loss": {"p": 1}} becomes {"loss.p": 1}.

    Refuses names that are no names and a name that is given twice (`loss.p` and `"loss.p"`).
    """
    if not isinstance(table, dict):
        return table
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if not _NAME.fullmatch(key):
            raise refused(f"{key!r} is no parameter name (letters, digits, _ and -, parts joined by dots)")
        inner = {"": value} if is_leaf(value) else dotted(value, is_leaf)
        for rest, leaf in inner.items():
            name = f"{key}.{rest}" if rest else key
            if name in flat:
                raise refused("is given twice", name)
            flat[name] = leaf
    return flat
