"""The contents of a results database, as values: campaigns, and the trials that were run of them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict, get_args

from fecbench.looks import looks
from fecbench.quantities import counted
from fecbench.results.store.error import DatabaseError

State = Literal["ok", "failed", "timeout", "unsupported", "invalid"]
BY_ENDS = "by_ends"
"""Name of a check of a trial: the `state` and `reason` by what both ends said, where it is another state."""
STATES: tuple[State, ...] = get_args(State)
Value = float | int | str
DEFAULT_METRIC = "client.dct_s"
"""Metric of a workload that names none, as in the oldest databases."""
DEFAULT_MARGIN = 0.02
"""The margin of practical equivalence of a design that names none."""
P95 = "p95"
"""The statistic of a point that is the 95th percentile of its repetitions."""
FEWEST_OF_P95 = 20
"""Repetitions: of fewer, the 95th percentile would be the worst of them."""
Kind = Literal["comparison", "against-itself"]
"""Comparison of a campaign: different variants, or one with itself (A/A)."""
EngineWord = Literal["virtual", "emulated", "field"]
"""Engine of trials: in virtual time, or over emulated links in the time of a machine."""

TRIAL_COLUMNS = ("id", "variant", "workload", "point", "repetition", "state", "attempt", "duration_s")
"""The columns that every table of trials begins with."""

HARNESS_COLUMNS = (
    *("started_at", "host", "engine", "reason", "trials_at_once", "stalled_s", "stolen_s", "watch_gap_s"),
    *("late_max_ms", "late_sum_ms", "lost_elsewhere", "overhead_s"),
)
"""Measurements of the harness of every trial, as columns of a table of trials that is read with them."""


class RunsOfStart(NamedTuple):
    """Runs of a start."""

    start_id: int
    runs: int
    """Superseded ones included."""
    done: int
    """Trials that count and are valid."""
    invalid: int
    """Runs that were invalid, superseded ones included."""
    first_at: str
    last_at: str
    """Beginnings of its first and its last run, by its own clock: UTC, ISO 8601."""


class AttemptCount(NamedTuple):
    """Number of runs of trials of a variant that came to this state."""

    variant: str
    state: State
    superseded: bool
    """Whether these are the runs that a later one replaced."""
    attempts: int
    again: int
    """Attempts that came after another of the same trial."""


class RepairCount(NamedTuple):
    """Number of ok trials of a variant that had FEC on, by its options, and counted repair packets."""

    variant: str
    trials: int
    without_repair: int
    """Trials in which neither endpoint of the measured pair sent a repair packet."""


class Variant(TypedDict):
    """An implementation with its options, as a design names it."""

    label: str
    implementation: str
    options: dict[str, Any]
    baseline: bool
    """Whether variants that name no baseline are compared with it."""
    compared_with: NotRequired[str | None]
    """The label of the variant that it is compared with; None, and what a database before version 4 has: the
    one that is a baseline; "": none."""


class Workload(TypedDict):
    """Work of the endpoints, as a design names it."""

    label: str
    name: str
    parameters: dict[str, Any]
    metric: NotRequired[str]
    """The metric that is compared. A campaign that is read always has it: `DEFAULT_METRIC` where none was
    given."""


Why = Literal["decided", "most repetitions", "no interval"]
"""Reason to run a place no further: its results decide, it has all repetitions of the design, or a comparison
without an interval of its ratio (a timeout in a mean) will have none after more of them either."""
Place = tuple[str, int]
"""A workload, by its label, at a point."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A place that has been run far enough, in a campaign that runs until its results decide."""

    workload: str
    point: int
    repetitions: int
    """Number of repetitions of each variant."""
    why: Why
    verdicts: dict[str, str]
    """Verdict of each variant that is compared, by its label: one of `intervals.VERDICTS`, as it was then."""


_PROCESSOR_TIMES = {
    "handshake_ms": "ms of a processor for each side of a handshake",
    "datagram_us": "µs for each datagram",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCampaign:
    """One execution of a design, before its first trial. `points[i]` holds the factor values of point i."""

    name: str
    title: str
    design_text: str
    seed: int
    """Unsigned, 64 bits."""
    repetitions: int
    statistic: str
    provenance: dict[str, Any]
    points: list[dict[str, Value]]
    variants: list[Variant]
    workloads: list[Workload]
    kind: Kind = "comparison"


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignInfo(NewCampaign):
    """A campaign as the database holds it."""

    id: int
    created_at: str
    """UTC, ISO 8601."""
    margin: float = DEFAULT_MARGIN
    """The relative difference below which two variants count as equal: 0.02 is 2 %. It stands in the design;
    `results.analysis.margins` says what it comes to for a workload."""
    until_decided: bool = False
    """Whether a place is run until its results decide, `repetitions` at most."""
    stops: dict[Place, Stop] = field(default_factory=dict)
    """Places of such a campaign that have been run far enough."""
    labels_of_design: tuple[str, ...] = ()
    """Labels of all variants, where `variants` are some of those of the design (`analysis.selection`)."""

    @property
    def all_labels(self) -> tuple[str, ...]:
        """The labels of the variants of its design, in their order."""
        return self.labels_of_design or tuple(variant["label"] for variant in self.variants)

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of repetitions of a place after which its results were looked at, ascending."""
        return looks(self.repetitions) if self.until_decided else (self.repetitions,)

    @property
    def averaged_repetitions(self) -> int:
        """Number of repetitions of each network, the first ones, of which averages over networks are made.

        A network that runs until its results decide stops where its ratio looks large, so its ratio over all
        of them is too far from 1 on average. The first look comes after a number that no result has chosen.
        """
        return self.looks[0] if len(self.points) > 1 else self.repetitions

    @property
    def planned_pairs(self) -> int:
        """Number of pairs of two variants: repetitions of all places, at most where one has not stopped."""
        stopped = sum(stop.repetitions for stop in self.stops.values())
        open_places = len(self.points) * len(self.workloads) - len(self.stops)
        return stopped + open_places * self.repetitions

    @property
    def planned_trials(self) -> int:
        return self.planned_pairs * len(self.variants)

    @property
    def engine(self) -> EngineWord:
        """Engine of its trials, in the word of tables, figures and pages."""
        words: dict[str, EngineWord] = {"virtual": "virtual", "field": "field"}
        return words.get(self.provenance.get("engine", "local"), "emulated")

    @property
    def processor_time(self) -> str:
        """Time of a processor that its design gives endpoints in virtual time, in words; "" for none."""
        given: Mapping[str, Sequence[float]] = self.provenance.get("processor", {})
        return " and ".join(
            f"{' to '.join(f'{time:g}' for time in dict.fromkeys(given[name]))} {words}"
            for name, words in _PROCESSOR_TIMES.items()
            if any(given.get(name, ()))
        )

    @property
    def timed_by_harness(self) -> frozenset[str]:
        """The labels of the variants whose completion time the harness measured, not their client."""
        return frozenset(self.provenance.get("timed_by_harness", ()))

    def same_timer(self, variant: str, other: str) -> bool:
        """Whether the completion times of two variants are of the same kind of timer."""
        return (variant in self.timed_by_harness) == (other in self.timed_by_harness)

    @property
    def heading(self) -> str:
        """Title above a figure or a table: its name, and how its trials were run."""
        return f"{self.name}, {self.engine}{' with time of processors' * bool(self.processor_time)}"

    @property
    def averaged_heading(self) -> str:
        """Title above a figure of averages over networks: `heading`, and the repetitions that they are of."""
        first = self.averaged_repetitions
        some = f", first {counted(first, 'repetition')} of each network" if first < self.repetitions else ""
        return f"{self.heading}{some}"

    @property
    def checked(self) -> str | None:
        """The campaign in virtual time of which this is an emulated sample; None for any other campaign."""
        name: str | None = self.provenance.get("crosscheck", {}).get("campaign")
        return name

    @property
    def design_name(self) -> str:
        """The name in the design, not always the campaign's. Raises DatabaseError when it is no TOML."""
        return str(self._design.get("name", ""))

    @property
    def question(self) -> str:
        """Question of its design; its title where the design has none."""
        return str(self._design.get("question") or self.title)

    @property
    def plan_method(self) -> str:
        """Method of the design's plan; "" without factors."""
        return str(self._design.get("plan", {}).get("method", ""))

    @property
    def scales(self) -> dict[str, str]:
        """Scale of each factor that its design spreads over a range, by its name: "linear" or "log"."""
        return dict(_scales(self._design.get("factors", {})))

    @property
    def linked(self) -> set[str]:
        """The factors that have no values of their own: those that names of a linked factor stand for."""
        factors = self._design.get("factors", {}).values()
        links = (factor.get("linked", {}) for factor in factors if isinstance(factor, Mapping))
        return {name for link in links for of_name in link.values() for name, _ in _leaves(of_name)}

    @property
    def constants(self) -> dict[str, Any]:
        """Return the constants of its design, by dotted names."""
        return dict(_leaves(self._design.get("constants", {})))

    @property
    def _design(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.design_text)
        except tomllib.TOMLDecodeError as error:
            raise DatabaseError(f"campaign {self.name!r}: its design cannot be read: {error}") from error


def _leaves(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _scales(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """The scales of the ranges in a table of factors, with their dotted names."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            if {"min", "max"} <= value.keys():
                yield f"{path}{name}", str(value.get("scale", "linear"))
            else:
                yield from _scales(value, f"{path}{name}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStart:
    """One run of the harness, before its first trial."""

    host: str
    """The name of the machine."""
    provenance: dict[str, Any]
    holder: dict[str, Any] | None = None
    """Identity of the process, by which others on the same machine recognise it; None: nobody can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(NewStart):
    """One run of the harness that has added trials to a campaign."""

    id: int
    campaign_id: int
    started_at: str
    """UTC, ISO 8601."""
    beat: int
    """Goes up while it runs."""


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """The trials of all variants that meet the same losses: what one harness claims at a time."""

    workload: str
    point: int
    repetition: int

    def __str__(self) -> str:
        return f"{self.workload}, point {self.point}, repetition {self.repetition}"


@dataclass(frozen=True, slots=True)
class Claimant:
    """A start that has claimed groups, as those see it who wait for them."""

    start_id: int
    host: str
    holder: dict[str, Any] | None
    beat: int


@dataclass(frozen=True, slots=True, order=True)
class TrialKey:
    """Names a trial within its campaign."""

    variant: str
    workload: str
    point: int
    repetition: int

    @property
    def group(self) -> Group:
        return Group(self.workload, self.point, self.repetition)

    def __str__(self) -> str:
        return f"{self.variant}, {self.workload}, point {self.point}, repetition {self.repetition}"


@dataclass(frozen=True, slots=True)
class StoredTask:
    """Place of a task in the database, without its document."""

    id: int
    key: TrialKey
    """A trial of this task."""
    digest: str


TIMES = ("_s", "_ms")
"""The ends of the names of parameters that are times."""


def is_clocked(losses: Iterable[str]) -> bool:
    """Whether a packet's time of arrival decides, and not its number, by the parameters of a loss model: only
    those of such models are times."""
    return any(name.endswith(TIMES) for name in losses)


@dataclass(frozen=True, slots=True)
class VerdictLog:
    """Verdicts of the dropper on one direction of a link."""

    link: str
    direction: str
    packets: int
    """Number of packets that were judged."""
    dropped: int
    bitmap: bytes
    """Bit n (little-endian) is set iff packet n was dropped. It may cover fewer packets than were judged."""

    def has_common_prefix(self, other: VerdictLog) -> bool:
        """Whether every packet that both cover met the same verdict."""
        bits = min(self.packets, other.packets, 8 * len(self.bitmap), 8 * len(other.bitmap))
        mask = (1 << bits) - 1
        mine, others = (int.from_bytes(log.bitmap, "little") for log in (self, other))
        return (mine ^ others) & mask == 0


@dataclass(frozen=True, slots=True)
class SeriesTable:
    """A table that an endpoint left of a trial, as `results.store.stored_series` packs it."""

    endpoint: str
    name: str
    columns: list[str]
    """Names of the columns, which end with their units."""
    rows: int
    data: bytes
    """Parquet, compressed by zstd."""


@dataclass(frozen=True, slots=True)
class TrialSeries:
    """A series of one trial, as the database holds it."""

    trial_id: int
    key: TrialKey
    table: SeriesTable


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """Record of one run of one trial."""

    key: TrialKey
    state: State
    reason: str
    """Empty when ok."""
    started_at: str
    """UTC, ISO 8601."""
    duration_s: float
    seeds: dict[str, int] = field(default_factory=dict)
    """Unsigned, 64 bits."""
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    """Endpoint → name → value."""
    verdicts: list[VerdictLog] = field(default_factory=list)
    """Read back sorted by link and direction."""
    dropper: dict[str, Any] = field(default_factory=dict)
    links: dict[str, Any] = field(default_factory=dict)
    exits: dict[str, int | None] = field(default_factory=dict)
    stderr: dict[str, str] = field(default_factory=dict)
    overhead_s: dict[str, float] = field(default_factory=dict)
    checks: dict[str, Any] = field(default_factory=dict)
    task: dict[str, Any] = field(default_factory=dict)
    """The task without its seeds; empty where it is not known, as in version 1."""
    series: list[SeriesTable] = field(default_factory=list)
    """Series to be stored with the trial. A trial that is read has none: `Database.series` reads them."""

    def met_the_losses_of(self, other: TrialRecord) -> bool:
        """Whether every packet that both runs sent met the same verdict, where its number decides."""
        mine, others = ({(log.link, log.direction): log for log in run.verdicts} for run in (self, other))
        shared = mine.keys() & others.keys() - self.clocked_directions
        return all(mine[where].has_common_prefix(others[where]) for where in shared)

    @property
    def clocked_directions(self) -> set[tuple[str, str]]:
        """Links with their directions whose losses follow from when a packet arrives."""
        return {
            (link, direction)
            for link, asked in self.task.get("links", {}).items()
            for direction, losses in asked.get("losses", {}).items()
            if is_clocked(losses)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTrial:
    """A record as the database holds it."""

    id: int
    campaign_id: int
    start_id: int | None
    """The start that has run it; None where it is not known, as in version 1."""
    attempt: int
    """Counts from 1: above 1 when runs came before that it has superseded."""
    record: TrialRecord
