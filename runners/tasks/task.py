"""The task of a trial: everything that decides its result, and nothing about the machine that runs it."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator

from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.parameters import loss_model
from fecbench.runners.tasks import ports
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.validity import Validity
from fecbench.topologies.backend import Backend
from fecbench.topologies.family import Family
from fecbench.topologies.left_out import left_out
from fecbench.topologies.link import DIRECTIONS, Direction, LinkSettings
from fecbench.topologies.topology import has_relay
from fecbench.topologies.written import written_whole

Carrier = Backend | Literal["virtual", "field"]
"""The carrier of packets: a backend of the emulated link, a simulator's link in virtual time, or a path that
is not ours."""
VIRTUAL: Final = "virtual"
FIELD: Final = "field"

Certificates = Literal["p256", "ed25519"]
Value = TypeVar("Value")
Role = Literal["client", "server"]
ROLES: tuple[Role, Role] = ("client", "server")
RELAY: Final = "relay"
Place = Role | Literal["relay"]
"""The place of an endpoint in a trial: one of both ends of a pair, or between those of the measured one."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class InteropTask(_Part):
    """The part of a task that only endpoints of the interop runner's contract get, besides the workload."""

    testcase: str
    env: dict[str, str] = {}
    """Environment variables; names of options stand between braces, as in `params`."""
    params: str = ""


class EndpointTask(_Part):
    """An end of a pair."""

    implementation: str
    options: dict[str, Any]
    """The options of the implementation, defaults included."""
    series: list[str] = []
    """Series over time that the design asks of it."""
    local_addresses: bool = False
    """Whether it gets all addresses of its host."""
    transport: Annotated[Literal["udp", "tcp"], left_out("udp")] = "udp"
    content_seed_hex: bool = False
    """Whether it gets the content's seed as hexadecimal text instead of a number."""
    fec: bool | None = None
    """Whether its options turn FEC on; None: its implementation does not say what turns it off."""
    owes_repair: bool = True
    """Whether each transfer with FEC on has a repair symbol with these options."""
    owes_source: Annotated[bool, left_out(True)] = True
    """Whether it has a source symbol."""
    certificates: Annotated[Certificates, left_out("ed25519")] = "ed25519"
    """The keys of the certificates that it takes, where it is emulated."""
    interop: InteropTask | None = None
    """The task by the interop runner's contract; None: the endpoint meets the contract of
    quic-impls/README.md."""


class PairTask(_Part):
    """A client and its server. They may be of different implementations."""

    client: EndpointTask
    server: EndpointTask
    workload: dict[str, Any]
    demand: Demand = Demand()
    """The least that the transfer needs."""
    playout_ms: list[float] = []
    """The playout delays at which its messages are asked for; of other workloads none."""
    session: Annotated[dict[str, Any] | None, left_out()] = None
    """The session by which the harness sends requests to the client during the trial. None: no
    requests."""
    begins_s: Annotated[float | None, left_out()] = None
    """The time at which a pair besides the measured one begins, after that one. None: before it."""
    lasts_s: Annotated[float | None, left_out()] = None
    """The time for which such a pair goes on when both have begun. None: until the measured one has ended."""

    @property
    def certificates(self) -> Certificates:
        """Ed25519's where both ends take them. P-256's are what any other pair has in common."""
        both = {self.client.certificates, self.server.certificates}
        return "ed25519" if both == {"ed25519"} else "p256"

    def end(self, role: Role) -> EndpointTask:
        return self.client if role == "client" else self.server


class LinkTask(_Part):
    """An emulated link, and what is lost behind it."""

    settings: LinkSettings
    late_bound_us: int
    """A frame that leaves the link later than this counts as late."""
    losses: dict[Direction, dict[str, Any]]
    """Parameters of the loss model of each direction."""

    @cached_property
    def models(self) -> dict[Direction, LossModel]:
        """The loss model of each direction."""
        return {direction: loss_model(parameters) for direction, parameters in self.losses.items()}

    @cached_property
    def texts(self) -> dict[Direction, str]:
        """The text of each direction, without losses, as far as no repetition draws a part of it."""
        return {direction: written_whole(self.settings, direction) for direction in DIRECTIONS}


class ProcessorTask(_Part):
    """Time that endpoints take of a processor in virtual time; emulated ones take what they take."""

    handshake_ns: int = 0
    """Time of each side for TLS, once."""
    datagram_ns: int = 0
    """Time for each datagram."""


CONTENT = "content"
"""The name of the seed of what is transferred."""


def seed_name(link: str, what: str) -> str:
    """Return the name of a seed of a link: `what` is a direction for that of its losses, or what
    `LinkSettings.drawn` names."""
    return f"{link}/{what}"


class Task(_Part):
    """The task of one trial, complete: its engine looks nothing else up."""

    topology: str
    family: Annotated[Family, left_out("ipv4")] = "ipv4"
    backend: Carrier
    links: dict[str, LinkTask]
    seeds: dict[str, int]
    """Unsigned 64-bit numbers by name, the same for all variants and workloads of a repetition: CONTENT, and
    those of links (`seed_name`)."""
    pairs: list[PairTask]
    """The first is measured; the others share the link with it. Those that begin before it fill the link."""
    completion: str
    """The client's metric, in s, that says how long what is measured took. Its report ends the trial."""
    timeout_s: float
    validity: Validity = Validity()
    processor: ProcessorTask = ProcessorTask()
    capture: bool = False
    """Record packets, qlog and TLS secrets."""

    @property
    def has_interop(self) -> bool:
        """Whether an endpoint of the interop runner's contract takes part."""
        return any(end.interop for pair in self.pairs for end in (pair.client, pair.server))

    @property
    def has_relay(self) -> bool:
        """Whether a relay stands between both ends. It is of their implementation: towards the client, it has
        the client's options, and towards the server, the server's."""
        return has_relay(self.topology)

    @property
    def places(self) -> tuple[Place, ...]:
        """The places of a pair's endpoints, from the client to the server."""
        return ("client", RELAY, "server") if self.has_relay else ROLES

    @property
    def timed_by_harness(self) -> bool:
        """Whether the harness measures the completion time, since the client does not tell it."""
        return self.pairs[0].client.interop is not None

    @property
    def port(self) -> int:
        """The port at which servers listen."""
        return ports.INTEROP if self.has_interop else ports.OURS

    @model_validator(mode="before")
    @classmethod
    def _read_older(cls, written: Any) -> Any:
        return of_today(written) if isinstance(written, Mapping) else written

    @model_validator(mode="after")
    def _check_seeds(self) -> Self:
        for name in (CONTENT, *(seed_name(link, way) for link in self.links for way in DIRECTIONS)):
            if name not in self.seeds:
                raise ValueError(f"the seed {name} is missing")
        return self

    @property
    def content_seed(self) -> int:
        return self.seeds[CONTENT]

    def losses_seed(self, link: str, direction: Direction) -> int:
        """Return the seed of the losses of one direction."""
        return self.seeds[seed_name(link, direction)]

    def settings_of(self, link: str) -> LinkSettings:
        """Return the settings of a link in this repetition."""
        settings = self.links[link].settings
        return settings.seeded({name: self.seeds[seed_name(link, name)] for name in settings.drawn})

    @cached_property
    def shared_document(self) -> dict[str, Any]:
        """The document of the task that is stored with a trial.

        It omits the seeds, which differ by repetition, `capture`, and `processor` if endpoints take no time.
        """
        processor = {"processor"} if self.processor == ProcessorTask() else set()
        return self.model_dump(mode="json", exclude={"seeds", "capture", *processor})

    def document(self) -> dict[str, Any]:
        """Return the document of the task that is stored with a trial: that of all its repetitions."""
        return self.shared_document

    def share(self, document: dict[str, Any]) -> None:
        """Let this one, which is equal to its own, be the document of the task and of its copies. They share
        the values that are computed of the task from now on, too."""
        vars(self)["shared_document"] = document
        vars(self)["shared_values"] = {}

    @cached_property
    def shared_values(self) -> dict[Callable[[Self], Any], Any]:
        """The values that functions compute of the task."""
        return {}

    def once(self, compute: Callable[[Self], Value]) -> Value:
        """Return what a function computes of the task: once, for all copies that differ in seeds and capture
        alone, so that it may depend on neither."""
        if compute not in self.shared_values:
            self.shared_values[compute] = compute(self)
        value: Value = self.shared_values[compute]
        return value

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values of fields. It has a document of its own if that differs."""
        copied = super().model_copy(update=update, deep=deep)
        if update and update.keys() - {"seeds", "capture"}:
            for shared in ("shared_document", "shared_values"):
                vars(copied).pop(shared, None)
        return copied


def of_today(written: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a task with each field in today's place: older ones have one bound, and elsewhere."""
    task = dict(written)
    if "stall_share" in task:
        task["validity"] = {"stall_share": task.pop("stall_share")}
    return task


def pair_name(pair: int) -> str:
    """Return the name of a pair besides the first, of its folder and in names of endpoints: `background`,
    `background2`, …; nothing for the first."""
    return "" if pair == 0 else "background" if pair == 1 else f"background{pair}"


def endpoint_name(pair: int, role: Place) -> str:
    """The name of an endpoint of a pair of a task, in outcomes and results: `client`, `background_client`,
    `background2_client`, …"""
    return f"{pair_name(pair)}_{role}" if pair else role
