"""What an impl.toml may say; the page about it is quic-impls/README.md."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo, field_validator

from fecbench.hints import nearest
from runners.options import Option, Value

Word = Annotated[str, StringConstraints(pattern=r"^[^\x00]+\z")]
Command = Annotated[list[Word], Field(min_length=1)]
# A series becomes the name of a file and of a table.
SeriesName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}\z")]


class FecSwitch(BaseModel):
    """How FEC is turned off."""

    model_config = ConfigDict(extra="forbid", strict=True)

    off: dict[str, Value]
    """The options of the fair baseline: the same stack without FEC."""


class Declaration(BaseModel):
    """The contents of an impl.toml."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    title: str
    toolchain: Literal["go", "rust"] | None = None
    build: Command
    server: Command
    client: Command
    check: Command | None = None
    """Asked whether options fit together; without it, any do."""
    files: list[Word] = []
    """What has a part in a trial though no command names it, such as the program that a script starts."""
    workloads: list[str] = Field(min_length=1)
    series: list[SeriesName] = []
    """The tables that an endpoint can leave beside its metrics."""
    local_addresses: bool = False
    """Whether an endpoint is told all addresses of its host."""
    options: dict[str, Option] = {}
    fec: FecSwitch | None = None

    @field_validator("fec")
    @classmethod
    def _fec_off_is_allowed(cls, fec: FecSwitch | None, info: ValidationInfo) -> FecSwitch | None:
        options: dict[str, Option] = info.data.get("options", {})
        for name, value in (fec.off if fec else {}).items():
            if name not in options:
                raise ValueError(f"there is no option {name!r}; {nearest(name, options)}")
            if problem := options[name].problem_of(value):
                raise ValueError(f"option {name} = {value!r} {problem}")
        return fec
