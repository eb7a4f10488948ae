"""Settings and losses of each link and direction, from the values of a point.

A name without a link means every link, one without a direction both: `bandwidth_mbps`, `up.bandwidth_mbps`,
`internet.bandwidth_mbps`, `internet.up.bandwidth_mbps`; `loss.p`, `loss.up.p`, `internet.loss.p`,
`internet.loss.up.p`. The more specific name wins: a link's own name before that of all links, then a
direction's own name before that of both. A queue limit replaces every other queue limit. A `loss.model`
replaces a more general model together with its parameters. `outage_from_s` and `outage_to_s` are `outage_s`
in two parts, so that each can be a factor. `trace` names a file of a link that changes; with `trace.offset_s`
it begins there, else each repetition draws a place in it, and `trace.repeat` says what follows its end.
`jitter_ms` is the mean of a noise of the delay, and `jitter.law` its law; 0 means no noise. `rtt_ms` is the
round trip of a link, half of it each way, in the place of `owd_ms`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fecbench.complaint import wrong_value
from fecbench.dropper.draws import LossModelError
from fecbench.dropper.parameters import MODELS, loss_model, parameters_of
from fecbench.runners.tasks.task import LinkTask
from fecbench.runners.tasks.validity import USUAL, Validity
from fecbench.runners.workloads.json_file import find_document
from fecbench.topologies import link_traces
from fecbench.topologies.jitter import Jitter
from fecbench.topologies.link import (
    DIRECTIONS,
    Direction,
    DirectionSettings,
    LinkSettings,
    TopologyError,
    name_in_designs,
)
from fecbench.topologies.trace import REPEATS, Trace

_OUTAGE, _OUTAGE_ENDS = "outage_s", ("outage_from_s", "outage_to_s")
TRACE, _OFFSET, _REPEAT = "trace", "trace.offset_s", "trace.repeat"
_JITTER, _JITTER_MS, _LAW = "jitter", "jitter_ms", "jitter.law"
_DELAY, _ROUND_TRIP = "owd_ms", "rtt_ms"
_FIELDS = {name_in_designs(field.name): field.name for field in fields(DirectionSettings)}
KIND = "links"
"""The folder beside the design that has the files of traces, and what a campaign calls these."""
SETTINGS = (
    # Seeds are drawn.
    *(
        name_in_designs(field.name)
        for field in fields(DirectionSettings)
        if field.name != _JITTER and not field.name.endswith("_seed")
    ),
    *(*_OUTAGE_ENDS, _OFFSET, _REPEAT, _JITTER_MS, _LAW),
)
REQUIRED = ("bandwidth_mbps", _DELAY)
LOSSES = tuple(sorted(set().union(*map(parameters_of, MODELS.values()))))
_QUEUES = {name for name in SETTINGS if name.startswith("queue_")}
_DELAYS = {_DELAY, _ROUND_TRIP}


def names(links: Iterable[str]) -> set[str]:
    """Return every name that a parameter of these links may have."""
    links = list(links)
    of_losses = {
        name
        for link in links
        for direction in DIRECTIONS
        for name in _full_names(LOSSES, _of_losses(link, direction))
    }
    return setting_names(links) | of_losses


def setting_names(links: Iterable[str]) -> set[str]:
    """Return the names of parameters of the links themselves, without those of losses."""
    return {
        name for link in links for direction in DIRECTIONS for name in _names_of_settings(link, direction)
    }


def _names_of_settings(link: str, direction: Direction) -> set[str]:
    prefixes = _of_settings(link, direction)
    return {name for prefix in prefixes for name in _full_names(_settings_at(prefix), [prefix])}


def _settings_at(prefix: str) -> tuple[str, ...]:
    """Return the settings that may stand behind this prefix: a round trip is of no single direction."""
    is_of_direction = prefix.rstrip(".").rpartition(".")[2] in DIRECTIONS
    return SETTINGS if is_of_direction else (*SETTINGS, _ROUND_TRIP)


def missing(parameters: Iterable[str], links: Iterable[str]) -> str | None:
    """A parameter that a link lacks in one of its directions, if there is one."""
    names_of = set(parameters)

    def has(name: str, link: str, direction: Direction) -> bool:
        prefixes = _of_settings(link, direction)
        alternatives = (*(_DELAYS if name == _DELAY else {name}), TRACE)
        return any(prefix + last in names_of for prefix in prefixes for last in alternatives)

    return next(
        (
            name
            for link in links
            for direction in DIRECTIONS
            for name in REQUIRED
            if not has(name, link, direction)
        ),
        None,
    )


def link_tasks(
    values: Mapping[str, Any],
    links: Iterable[str],
    validity: Validity = USUAL,
    traces: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> dict[str, LinkTask]:
    """Return the task of each link. Raises TopologyError or LossModelError for a value that is not right.

    `traces` contains the named traces, as a campaign stores them.
    """
    return {link: _link_task(values, link, validity, traces) for link in links}


def traces_in(values: Mapping[str, Any], links: Iterable[str]) -> set[str]:
    """The names of the traces that any direction of these links follows."""
    trace_names = (
        _setting_names(values, link, direction).get(TRACE) for link in links for direction in DIRECTIONS
    )
    return {str(values[full]) for full in trace_names if full is not None}


def read_trace(name: str, folders: Sequence[Path]) -> dict[str, Any]:
    """A trace beside the design, as a campaign keeps it. Raises Refusal and TopologyError."""
    trace, sha256 = link_traces.read(find_document(folders, "link", name, TRACE, link_traces.SUFFIXES))
    columns = {column: values.tolist() for column, values in trace.columns.items()}
    return {"sha256": sha256, "trace": columns}


def reached(parameters: Collection[str], link: str, direction: Direction) -> set[str]:
    """Return those of the parameters whose values this direction of this link gets.

    The others belong to another link or direction, or a more specific name replaces them.
    """
    of_settings, of_losses = (
        _setting_names(parameters, link, direction),
        _loss_names(parameters, link, direction),
    )
    return {*of_settings.values(), *of_losses.values()}


def instead_of(name: str, parameters: Collection[str], links: Iterable[str]) -> list[str]:
    """Return the more specific names that replace this one in directions of links."""
    last, full_names = name.rpartition(".")[2], set()
    for link in links:
        for direction in DIRECTIONS:
            if name in _full_names(LOSSES, _of_losses(link, direction)):
                of_losses = _loss_names(parameters, link, direction)
                full_names.add(of_losses.get(last) or of_losses["model"])
            elif name in _names_of_settings(link, direction):
                same = next((group for group in (_QUEUES, _DELAYS) if last in group), {last})
                of_settings = _setting_names(parameters, link, direction)
                full_names |= {full for setting, full in of_settings.items() if setting in same}
    return sorted(full_names - {name})


def _full_names(short_names: Iterable[str], prefixes: Iterable[str]) -> set[str]:
    return {prefix + name for prefix in prefixes for name in short_names}


def _link_task(
    values: Mapping[str, Any], link: str, validity: Validity, traces: Mapping[str, Mapping[str, Any]]
) -> LinkTask:
    up, down = (
        _direction_settings(_valued(values, _setting_names(values, link, direction)), traces)
        for direction in DIRECTIONS
    )
    settings = LinkSettings(up=up, down=down)
    losses = {direction: _losses(values, link, direction) for direction in DIRECTIONS}
    for direction, parameters in losses.items():
        _check_read(values, link, direction)
        loss_model(parameters)  # refuses what is no model
    return LinkTask(settings=settings, late_bound_us=validity.late_bound_us(settings), losses=losses)


def _direction_settings(values: dict[str, Any], traces: Mapping[str, Mapping[str, Any]]) -> DirectionSettings:
    values |= _of_round_trip(values)
    values |= _of_trace(values, traces)
    values |= _of_jitter(values)
    ends = [values.pop(name) for name in _OUTAGE_ENDS if name in values]
    whole = values.pop(_OUTAGE, None)
    if len(ends) == 1 or (ends and whole is not None):
        raise TopologyError(f"an outage is given by {_OUTAGE}, or by {' and '.join(_OUTAGE_ENDS)} together")
    outage_s = ends or whole
    of_fields = {_FIELDS.get(name, name): value for name, value in values.items()}
    return DirectionSettings(
        outage_s=tuple(outage_s) if isinstance(outage_s, list) else outage_s, **of_fields
    )


def _of_round_trip(values: dict[str, Any]) -> dict[str, Any]:
    """Return the delay of a direction: half of the round trip, whose name is taken from the values."""
    round_trip_ms = values.pop(_ROUND_TRIP, None)
    if round_trip_ms is None:
        return {}
    if _DELAY in values:
        raise TopologyError(f"{_ROUND_TRIP} and {_DELAY} are given together: must be one of them")
    if isinstance(round_trip_ms, bool) or not isinstance(round_trip_ms, int | float):
        raise TopologyError(wrong_value(_ROUND_TRIP, round_trip_ms, "a number"))
    return {_DELAY: round_trip_ms / 2}


def _of_trace(values: dict[str, Any], traces: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the trace, and the constants that represent it; its names are removed from the values."""
    name, offset_s = values.pop(TRACE, None), values.pop(_OFFSET, None)
    repeat = values.pop(_REPEAT, None)
    if name is None:
        if alone := [full for full, value in ((_OFFSET, offset_s), (_REPEAT, repeat)) if value is not None]:
            raise TopologyError(f"{alone[0]}: there is no trace")
        return {}
    if repeat not in (None, *REPEATS):
        raise TopologyError(wrong_value(_REPEAT, repeat, f"one of {', '.join(REPEATS)}"))
    is_number = isinstance(offset_s, int | float) and not isinstance(offset_s, bool)
    if offset_s is not None and not (is_number and 0 <= offset_s <= 1e6):
        raise TopologyError(wrong_value(_OFFSET, offset_s, "a number from 0 to 1000000"))
    offset_ns = None if offset_s is None else round(1e9 * offset_s)
    trace = Trace(**traces[str(name)]["trace"], repeat=repeat or "loop", offset_ns=offset_ns)
    from_trace = {"bandwidth_mbps": trace.mean_bps / 1e6} if trace.changes_rate else {}
    from_trace |= {"owd_ms": trace.owd_span_us[0] / 1e3} if trace.owd_span_us is not None else {}
    for setting in REQUIRED:
        if setting in from_trace and setting in values and trace.repeat != "end":
            raise TopologyError(f"{setting} reaches nobody: trace {name!r} says it; leave it out")
        if setting not in from_trace and setting not in values:
            raise TopologyError(f"{setting} is missing: trace {name!r} does not say it")
    return {
        "trace": trace,
        **{setting: value for setting, value in from_trace.items() if setting not in values},
    }


def _of_jitter(values: dict[str, Any]) -> dict[str, Any]:
    """The noise of the delay, whose names are taken from the values."""
    mean_ms, law = values.pop(_JITTER_MS, None), values.pop(_LAW, None)
    if mean_ms is None:
        if law is not None:
            raise TopologyError(f"{_LAW}: there is no {_JITTER_MS}")
        return {}
    # A factor may include a link without noise.
    return {} if mean_ms == 0 and mean_ms is not False else {_JITTER: Jitter(mean_ms, law or "uniform")}


def _losses(values: Mapping[str, Any], link: str, direction: Direction) -> dict[str, Any]:
    names_of = _valued(values, _loss_names(values, link, direction))
    return names_of if "model" in names_of else {"model": "none", **names_of}


def _check_read(values: Mapping[str, Any], link: str, direction: Direction) -> None:
    """Raises LossModelError for a parameter of losses that their model does not read."""
    model = _losses(values, link, direction)["model"]
    if model not in MODELS:
        return
    model_parameters = parameters_of(MODELS[model])
    for name, full in _loss_names(values, link, direction).items():
        if name not in model_parameters:
            takes = " or ".join(map(str, MODELS[model].forms))
            raise LossModelError(
                f"{full}: reaches nobody: the loss model of {link} {direction} is {model}, which takes"
                f" {takes}; leave it out, or choose another loss.model"
            )


def _valued(values: Mapping[str, Any], names_of: Mapping[str, str]) -> dict[str, Any]:
    return {name: values[full] for name, full in names_of.items()}


def _setting_names(parameters: Collection[str], link: str, direction: Direction) -> dict[str, str]:
    """Return the parameter that has the value of each setting."""
    names_of: dict[str, str] = {}
    for prefix in _of_settings(link, direction):
        own = {name: prefix + name for name in _settings_at(prefix) if prefix + name in parameters}
        for group in (_QUEUES, _DELAYS):
            if own.keys() & group:
                names_of = {name: full for name, full in names_of.items() if name not in group}
        names_of |= own
    return names_of


def _loss_names(parameters: Iterable[str], link: str, direction: Direction) -> dict[str, str]:
    """Return the parameter that has the value of each parameter of the loss model."""
    names_of: dict[str, str] = {}
    for prefix in _of_losses(link, direction):
        own = dict(_below(parameters, prefix))
        names_of = own if "model" in own else names_of | own
    return names_of


def _below(parameters: Iterable[str], prefix: str) -> Iterator[tuple[str, str]]:
    for name in parameters:
        last = name.removeprefix(prefix)
        if last != name and "." not in last:
            yield last, name


def _of_settings(link: str, direction: Direction) -> tuple[str, ...]:
    """Return the prefixes of a setting's name, the most general first."""
    return "", f"{direction}.", f"{link}.", f"{link}.{direction}."


def _of_losses(link: str, direction: Direction) -> tuple[str, ...]:
    return "loss.", f"loss.{direction}.", f"{link}.loss.", f"{link}.loss.{direction}."
