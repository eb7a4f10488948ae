"""The contents of an impl.toml; the page about it is quic-impls/contract/declaration.md."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from fecbench.hints import nearest
from fecbench.runners.implementations import interop
from fecbench.runners.implementations.interop import Command, Interop, Word
from fecbench.runners.options import Option, Value

# An empty table would be among any options.
Options = Annotated[dict[str, Value], Field(min_length=1)]
# A series becomes the name of a file and of a table.
SeriesName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}\z")]


PATHS = "paths"
"""The option of implementations that can use several paths: how many."""
CONGESTION_CONTROL = "congestion_control"
ECN = "ecn"
"""The option of implementations over TCP: the kernel's controller, by its name."""


Delivery = Literal["datagram", "deadline", "stream", "reliable"]
DELIVERIES: tuple[Delivery, ...] = get_args(Delivery)
"""Ways to send messages of the workload `messages`."""


class FecSwitch(BaseModel):
    """The options with which FEC is off, and the symbols that it must send when it is on."""

    model_config = ConfigDict(extra="forbid", strict=True)

    off: dict[str, Value]
    """The options of the fair baseline: the same stack without FEC."""
    also_off: list[Options] = []
    """Other options without FEC, such as those of another stack."""
    repair_may_lack: list[Options] = []
    """Options with which a short transfer may end before there is a repair symbol."""
    source_may_lack: list[Options] = []
    """Options with which nothing need be protected, and there may be no symbols at all."""

    def is_on(self, options: Mapping[str, object]) -> bool:
        """Whether all options of an endpoint together turn FEC on."""
        return not any(_are_among(off, options) for off in (self.off, *self.also_off))

    def owes_repair(self, options: Mapping[str, object]) -> bool:
        """Whether every transfer has a repair symbol with these options, when they turn FEC on."""
        lacking = (*self.repair_may_lack, *self.source_may_lack)
        return not any(_are_among(some, options) for some in lacking)

    def owes_source(self, options: Mapping[str, object]) -> bool:
        """Whether every transfer has a source symbol with these options, when they turn FEC on."""
        return not any(_are_among(lacking, options) for lacking in self.source_may_lack)

    def agrees(self, one: Mapping[str, object], other: Mapping[str, object]) -> bool:
        """Whether two ends with these options, FEC on at both, have the same FEC, such as one scheme: by the
        options that turn it off."""
        switches = {name for off in (self.off, *self.also_off) for name in off}
        return all(one.get(name) == other.get(name) for name in switches)

    @property
    def all_options(self) -> list[tuple[str, Value]]:
        """The named options with their values."""
        tables = (self.off, *self.also_off, *self.repair_may_lack, *self.source_may_lack)
        return [entry for table in tables for entry in table.items()]


_NOT_OF_INTEROP = (
    *("server", "client", "check", "simulator", "sources"),
    *("local_addresses", "multipath", "relay"),
)
"""Keys that an implementation of the interop contract cannot declare."""


def _are_among(some: Mapping[str, object], options: Mapping[str, object]) -> bool:
    return all(options.get(name) == value for name, value in some.items())


def _check_known(choices: Mapping[str, Value], options: Mapping[str, Option]) -> None:
    """Raises ValueError for a name or a value that is none of the options."""
    for name, value in choices.items():
        if name not in options:
            raise ValueError(f"there is no option {name!r}; {nearest(name, options)}")
        if problem := options[name].problem_of(value):
            raise ValueError(f"option {name} = {value!r} {problem}")


class Declaration(BaseModel):
    """The contents of an impl.toml."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    title: str
    toolchain: Literal["go", "rust"] | None = None
    contract: Literal["fecbench", "interop"] = "fecbench"
    """Contract that its endpoints meet: ours, or that of the QUIC interop runner."""
    interop: Interop | None = None
    build: Command | None = None
    """An implementation of the interop contract may have none."""
    build_needs: list[Word] = []
    """Programs that the build needs beside the toolchain."""
    on_demand: bool = False
    """Whether it is built only when that is asked for."""
    server: Command | None = None
    client: Command | None = None
    """Command of its client; for the interop contract, `interop` has both commands."""
    check: Command | None = None
    """Asked whether options fit together; without it, any do."""
    simulator: Command | None = None
    """Plays trials in virtual time; without it, there are none."""
    sources: Word | None = None
    """The argument with which endpoints and simulator tell what they were built from: of all the same."""
    files: list[Word] = []
    """Files that take part in a trial although no command names them, such as the program that a script
    starts."""
    workloads: list[str] = Field(min_length=1)
    deliveries: list[Delivery] = Field(default=list(DELIVERIES), min_length=1)
    """Deliveries of the workload `messages` that it has."""
    series: list[SeriesName] = []
    """The tables that an endpoint can leave beside its metrics."""
    local_addresses: bool = False
    """Whether an endpoint is told all addresses of its host."""
    transport: Literal["udp", "tcp"] = "udp"
    """Protocol of its packets. For tcp, the harness sets the kernel's congestion control and its path
    manager."""
    certificates: Literal["p256", "ed25519"] = "p256"
    """The keys of the certificates that emulated endpoints get; in virtual time all get Ed25519's."""
    content_seed_hex: bool = False
    """Whether an endpoint is told the content's seed as hexadecimal text, in the place of a number."""
    multipath: bool = False
    """Whether its option `paths`, how many paths a connection uses, may be above 1."""
    relay: bool = False
    """Whether its server can be a relay, between a client and another server."""
    options_of: str | None = None
    """The implementation beside it whose options and `fec` are its own, too."""
    options: dict[str, Option] = {}
    fec: FecSwitch | None = None
    plain: Options | None = None
    """The options with which it speaks QUIC with any other stack; without it, those that turn FEC off."""

    @property
    def plain_options(self) -> dict[str, Value]:
        """The options of plain QUIC, as far as they are not the default."""
        return self.plain or (self.fec.off if self.fec else {})

    @model_validator(mode="after")
    def _has_what_its_contract_wants(self) -> Self:
        if self.contract == "fecbench":
            if self.interop is not None:
                raise ValueError('[interop] needs contract = "interop"')
            for name in ("build", "server", "client"):
                if getattr(self, name) is None:
                    raise ValueError(f"{name} is missing")
            return self
        if self.interop is None:
            raise ValueError('contract = "interop" needs a table [interop]')
        for name in _NOT_OF_INTEROP:
            if getattr(self, name):
                raise ValueError(f"{name} is not of the interop contract; leave it out")
        if self.workloads != interop.WORKLOADS:
            raise ValueError(f"workloads must be {interop.WORKLOADS} by the interop contract")
        self.interop.check_options(self.options)
        return self

    @field_validator("multipath")
    @classmethod
    def _multipath_knows_addresses(cls, multipath: bool, info: ValidationInfo) -> bool:
        if multipath and not info.data.get("local_addresses", False):
            raise ValueError("needs local_addresses = true: a path begins at an address")
        return multipath

    @field_validator("options")
    @classmethod
    def _options_are_read_with_others(cls, options: dict[str, Option]) -> dict[str, Option]:
        for option in options.values():
            for name, values in option.only_with.items():
                for value in values:
                    _check_known({name: value}, options)
        return options

    @field_validator("fec")
    @classmethod
    def _fec_has_options(cls, fec: FecSwitch | None, info: ValidationInfo) -> FecSwitch | None:
        for name, value in fec.all_options if fec else []:
            _check_known({name: value}, info.data.get("options", {}))
        return fec

    @field_validator("plain")
    @classmethod
    def _plain_has_options(cls, plain: Options | None, info: ValidationInfo) -> Options | None:
        _check_known(plain or {}, info.data.get("options", {}))
        return plain
