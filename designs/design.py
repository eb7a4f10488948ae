"""Design files: one TOML file names the question, the networks, the implementations and the repetitions.

`load` reads one, and refuses an error in one line. It checks form only: `runners` knows which parameters,
workloads and options exist.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import tomli_w
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from fecbench.complaint import complaint, short_text
from fecbench.designs import base
from fecbench.designs.error import DesignError
from fecbench.designs.factor import ChoiceFactor, Factor, LinkedFactor, RangeFactor, is_factor
from fecbench.designs.methods import AnyPlanSettings, ListSettings
from fecbench.designs.planner import Plan, make_plan
from fecbench.designs.table import (
    PlainOrInterval,
    PlainValue,
    Table,
    Value,
    about,
    check_unit,
    dotted,
    plain,
    refused,
)
from fecbench.designs.values_with_units import plain_values
from fecbench.hints import nearest
from fecbench.looks import FEWEST as FEWEST_UNTIL_DECIDED
from fecbench.looks import looks

# A design by hand has a few kilobytes; this keeps a wrong path to a database or a capture cheap.
LARGEST_FILE_BYTES = 16 * 2**20


def _matching(pattern: str, meaning: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise refused(f"must be {meaning}")
        return text

    return check


Name = Annotated[
    str,
    AfterValidator(
        _matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", "a name of letters, digits, '.', '_' and '-'")
    ),
]
# Control characters, and those that rearrange or break a line: two labels that differ by these alone would
# look the same.
_UNSEEN = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
Text = Annotated[str, AfterValidator(_matching(rf"(?! )[^{_UNSEEN}]{{1,500}}(?<! )", "one line of text"))]


def _baseline(value: Any) -> bool | str:
    if not isinstance(value, bool | str):
        raise refused("must be true, or the label of the variant to compare with")
    return value


class Variant(Table):
    """One implementation with one set of options."""

    label: Text
    implementation: Name
    options: dict[str, PlainValue] = Field(default_factory=dict)
    baseline: Annotated[bool | str, PlainValidator(_baseline)] = False
    """True: those variants are compared with it that name none. A label: it is compared with that variant."""
    server: Text | None = None
    """The label of the variant that runs its servers; None: itself."""
    series: list[Name] = Field(default_factory=list)
    """Names of the series over time that its endpoints are asked to record."""

    @property
    def is_baseline(self) -> bool:
        """Whether those variants are compared with it that name none."""
        return self.baseline is True

    @property
    def compared_with(self) -> str | None:
        """The label of the variant that it says it is compared with; None: it says none."""
        return self.baseline if isinstance(self.baseline, str) else None


LISTS = frozenset({"playout_ms"})
"""Parameters whose value is a list: by them one trial is looked at in several ways."""


class Workload(BaseModel):
    """A workload of the endpoints, with one value for each parameter."""

    model_config = ConfigDict(frozen=True)

    label: str
    name: str
    parameters: dict[str, Value | tuple[Value, ...]]

    @property
    def of_trials(self) -> dict[str, Value]:
        """The parameters that decide what a trial is: all but lists."""
        return {name: value for name, value in self.parameters.items() if not isinstance(value, tuple)}


def _expanded(tables: Any) -> Any:
    """[[workloads]] with the lists in them written out: one workload for each combination of their values.

    A list of LISTS is one value, which no label names: it makes no other trial.
    """
    if not isinstance(tables, list) or not tables:
        raise refused("must be [[workloads]], at least one")
    return [workload for index, table in enumerate(tables) for workload in _workloads(table, f"[{index}]")]


def _workloads(table: Any, key: str) -> list[Workload]:
    if not isinstance(table, dict):
        raise refused("must be a table", key)
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise refused("must say what the endpoints do, such as 'download'", f"{key}.name")
    alternatives_by_parameter = {
        parameter: _alternatives(parameter, value, key)
        for parameter, value in table.items()
        if parameter != "name"
    }
    lists = {
        parameter: tuple(values)
        for parameter, values in alternatives_by_parameter.items()
        if parameter in LISTS
    }
    parameters = {
        parameter: values for parameter, values in alternatives_by_parameter.items() if parameter not in LISTS
    }
    alternatives = parameters.values()
    return [
        Workload(
            label="-".join([name, *(str(value) for value in values)]),
            name=name,
            parameters=dict(zip(parameters, values, strict=True)) | lists,
        )
        for values in product(*alternatives)
    ]


def _alternatives(parameter: str, value: Any, key: str) -> list[Value]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise refused("must have at least one value", f"{key}.{parameter}")
    for one in values:
        with about(f"{key}.{parameter}", one):
            check_unit(parameter, plain(one))
    return values


FEWEST_OF_P95 = 20
"""Repetitions of a design whose statistic is the 95th percentile: of fewer, it would be the worst of them."""


def _one_point() -> ListSettings:
    return ListSettings(method="list", points=[{}])


class Design(Table):
    """A design file, checked. See README.md of this folder for each key."""

    others: ClassVar[str] = "a parameter of the network belongs in [constants] or [factors]"

    name: Name
    title: Text
    question: Text | None = None
    seed: Annotated[int, Field(ge=0, lt=2**64)]
    topology: Name
    repetitions: Annotated[int, Field(ge=1, le=10_000)]
    until: Literal["decided"] | None = None
    """"decided": a point ends with a workload as soon as its results decide; None: after all repetitions."""
    statistic: Literal["median", "mean", "p95"] = "median"
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.02
    timeout_s: Annotated[float, Field(gt=0, le=86_400)] | None = None
    plan_settings: Annotated[AnyPlanSettings, Field(alias="plan", default_factory=_one_point)]
    """The plan of the points; without factors there is one point, whose network is the constants."""
    factors: Annotated[dict[str, Factor], BeforeValidator(lambda table: dotted(table, is_factor))] = Field(
        default_factory=dict
    )
    constants: Annotated[dict[str, PlainOrInterval], BeforeValidator(dotted)] = Field(default_factory=dict)
    workloads: Annotated[list[Workload], BeforeValidator(_expanded)]
    variants: Annotated[list[Variant], Field(min_length=1)]

    _text: str = PrivateAttr(default="")
    _path: str = PrivateAttr(default="")
    _bases: tuple[Path, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _check_factors_and_constants(self) -> Self:
        if self.factors and "plan_settings" not in self.model_fields_set:
            raise refused("is missing: it says how the factors become points", "plan")
        if not self.factors and "plan_settings" in self.model_fields_set:
            why = "is for factors, and there are none: leave it out, and the constants are the one network"
            raise refused(why, "plan")
        for name in self.factors:
            if name in self.constants:
                raise refused("is a factor too; it must be one or the other", f"constants.{name}")
        self._check_linked()
        self._check_units()
        self.plan_settings.check(self.factors)
        return self

    def _check_units(self) -> None:
        """Refuse the end of a range, a choice or a constant that its name's unit cannot have, also where no
        point has it."""
        values = {f"constants.{name}": (name, value) for name, value in self.constants.items()}
        for name, factor in self.factors.items():
            if isinstance(factor, RangeFactor):
                least = int(factor.min) if factor.integer else factor.min
                values[f"factors.{name}.min"] = name, least
            elif isinstance(factor, ChoiceFactor):
                values |= {
                    f"factors.{name}.choices[{index}]": (name, choice)
                    for index, choice in enumerate(factor.choices)
                }
        for key, (name, value) in values.items():
            with about(key, value):
                check_unit(name, value)

    @model_validator(mode="after")
    def _check_statistic(self) -> Self:
        if self.statistic == "p95" and self.repetitions < FEWEST_OF_P95:
            raise refused(f"p95 needs {FEWEST_OF_P95} repetitions or more", "statistic", self.statistic)
        return self

    @model_validator(mode="after")
    def _check_until(self) -> Self:
        if self.until is None:
            return self
        if self.statistic == "p95":
            raise refused(
                "is for a median or a mean: an interval of p95 needs 300 repetitions", "until", self.until
            )
        if self.repetitions < FEWEST_UNTIL_DECIDED:
            why = (
                f"needs repetitions = {FEWEST_UNTIL_DECIDED} or more, which is the most that a point may have"
            )
            raise refused(why, "until", self.until)
        return self

    def _check_linked(self) -> None:
        places = {**dict.fromkeys(self.factors, "a factor"), **dict.fromkeys(self.constants, "a constant")}
        for name, factor in self.linked_factors.items():
            for parameter in factor.parameters:
                if parameter in places:
                    raise refused(f"{parameter} is {places[parameter]} too", f"factors.{name}.linked")
                places[parameter] = f"in factors.{name}"

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        for key, labels in (
            ("workloads", [workload.label for workload in self.workloads]),
            ("variants", [variant.label for variant in self.variants]),
        ):
            for index, label in enumerate(labels):
                if label in labels[:index]:
                    raise refused(f"{short_text(label)} is given twice; each must be different", key)
        baselines = [variant.label for variant in self.variants if variant.is_baseline]
        if len(baselines) > 1:
            names = " and ".join(map(short_text, baselines))
            raise refused(f"{names} are baselines; there must be at most one", "variants")
        return self

    @model_validator(mode="after")
    def _check_compared_with(self) -> Self:
        compared_with = {variant.label: variant.compared_with for variant in self.variants}
        for index, (label, baseline) in enumerate(compared_with.items()):
            if baseline is not None and (problem := _problem_of_baseline(label, baseline, compared_with)):
                raise refused(problem, f"variants[{index}].baseline", baseline)
        return self

    @property
    def linked_factors(self) -> dict[str, LinkedFactor]:
        """The factors whose values are names of combinations of parameters."""
        return {name: factor for name, factor in self.factors.items() if isinstance(factor, LinkedFactor)}

    @property
    def parameters(self) -> set[str]:
        """The name of every parameter that a point has a value for."""
        varied = set(self.factors) - set(self.linked_factors)
        linked = {parameter for factor in self.linked_factors.values() for parameter in factor.parameters}
        return varied | linked | set(self.constants)

    @property
    def point_count(self) -> int:
        """The number of points that `plan` returns, without planning them."""
        return self.plan_settings.count(self.factors)

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of repetitions, ascending, after which the results of a point are looked at. That is
        at the end alone unless the design stops when they decide."""
        return looks(self.repetitions) if self.until else (self.repetitions,)

    @property
    def trial_count(self) -> int:
        """The number of trials that the design asks for, at most."""
        return self._count(self.repetitions)

    @property
    def fewest_trials(self) -> int:
        """The number of trials if all is decided as early as possible."""
        return self._count(self.looks[0])

    def _count(self, repetitions: int) -> int:
        return self.point_count * len(self.workloads) * len(self.variants) * repetitions

    @property
    def text(self) -> str:
        """The file, verbatim; of one with a base or with units, a file that says the same without them."""
        return self._text

    @property
    def path(self) -> str:
        """The file's path, as it was given to `load`."""
        return self._path

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders that may hold its documents: its own, then those of its bases, the nearest first."""
        return tuple(dict.fromkeys(file.parent for file in (Path(self._path), *self._bases)))

    def plan(self) -> Plan:
        """The points, always the same for the same file. Raises DesignError when no plan was found."""
        try:
            return make_plan(self.plan_settings, self.factors, self.seed)
        except DesignError as error:
            raise DesignError(f"{self.path}: {error}") from None


def _problem_of_baseline(label: str, baseline: str, compared_with: Mapping[str, str | None]) -> str:
    """Return why the variant cannot be compared with that one, or "" when it can.

    A variant that names a baseline of its own cannot be a baseline: no table shows a ratio of ratios.
    """
    if baseline not in compared_with:
        return f"is no variant's label; {nearest(baseline, compared_with)}"
    if baseline == label:
        return "is this variant itself; it must be another"
    if (of_baseline := compared_with[baseline]) is not None:
        return (
            f"is itself compared with {short_text(of_baseline)}; it must be a variant that names no baseline"
        )
    return ""


def load(path: str | Path) -> Design:
    """The design in the TOML file at `path`, with what its `base` says.

    Raises DesignError with the file, the key, its value, and what would be right.
    """
    file = Path(path)
    text = _read(file)
    document = base.parsed(file, text)
    if "base" not in document:
        return parse(text, path)
    whole, bases = base.resolved(document, file, lambda other: base.parsed(other, _read(other)))
    return parse(tomli_w.dumps(whole), path, bases)


def parse(text: str, path: str | Path, bases: Iterable[Path] = ()) -> Design:
    """Return the design that a file at `path` with this text would hold.

    Documents that it needs, such as pages, may stand beside `bases`, too. Raises DesignError as `load` does.
    """
    document = base.parsed(Path(path), text)
    try:
        plain_document = plain_values(document)
        design = Design.model_validate(plain_document)
    except DesignError as error:
        raise DesignError(" ".join(f"{path}: {error}".split())) from None
    except ValidationError as error:
        # A key or a path can hold a line break; an error is one line.
        raise DesignError(" ".join(f"{path}: {complaint(error)}".split())) from None
    plain_text = text if plain_document == document else tomli_w.dumps(plain_document)
    design._text, design._path, design._bases = plain_text, str(path), tuple(bases)
    return design


def rewritten(design: Design, **tables: Any) -> Design:
    """The design with other tables in the place of its own, given as a file would hold them; None: with none.

    Its text is a file that holds exactly this design. Raises DesignError as `load` does.
    """
    whole = {**tomllib.loads(design.text), **tables}
    remaining = {name: value for name, value in whole.items() if value is not None}
    return parse(tomli_w.dumps(remaining), design.path, design._bases)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise DesignError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_FILE_BYTES:
        raise DesignError(f"{path}: is larger than {LARGEST_FILE_BYTES} bytes; it cannot be a design")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DesignError(f"{path}: must be UTF-8 text; byte {error.start} is not") from None
