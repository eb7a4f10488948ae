"""From the values of a point to the settings and the losses of each link and direction.

A name without a link means every link, one without a direction both: `bandwidth_mbps`, `up.bandwidth_mbps`,
`internet.bandwidth_mbps`, `internet.up.bandwidth_mbps`; `loss.p`, `loss.up.p`, `internet.loss.p`,
`internet.loss.up.p`. The name that says more goes before: a link's own before that of all links, then a
direction's own before that of both. A queue limit takes the place of every other one, and a `loss.model` that
of another model with its parameters.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import dropper.model
from dropper.model import FORMS
from runners.trial.task import LinkTask
from runners.trial.validity import USUAL, Validity
from topologies.link import DIRECTIONS, Direction, DirectionSettings, LinkSettings

SETTINGS = tuple(field.name for field in fields(DirectionSettings))
REQUIRED = ("bandwidth_mbps", "owd_ms")
LOSSES = tuple(sorted({"model"}.union(*(form.keys for forms in FORMS.values() for form in forms))))
_QUEUES = {name for name in SETTINGS if name.startswith("queue_")}


def names(links: Iterable[str]) -> set[str]:
    """Every name that a parameter of these links may have."""
    return {
        prefix + name
        for link in links
        for direction in DIRECTIONS
        for prefixes, known in (
            (_of_settings(link, direction), SETTINGS),
            (_of_losses(link, direction), LOSSES),
        )
        for prefix in prefixes
        for name in known
    }


def missing(given: Iterable[str], links: Iterable[str]) -> str | None:
    """A parameter that a link lacks in one of its directions, if there is one."""
    known = set(given)
    return next(
        (
            name
            for link in links
            for direction in DIRECTIONS
            for name in REQUIRED
            if not any(prefix + name in known for prefix in _of_settings(link, direction))
        ),
        None,
    )


def link_tasks(
    values: Mapping[str, Any], links: Iterable[str], validity: Validity = USUAL
) -> dict[str, LinkTask]:
    """What each link is asked for. Raises TopologyError or LossModelError for a value that is not right."""
    return {link: _link_task(values, link, validity) for link in links}


def _link_task(values: Mapping[str, Any], link: str, validity: Validity) -> LinkTask:
    up, down = (DirectionSettings(**_settings(values, link, direction)) for direction in DIRECTIONS)
    settings = LinkSettings(up=up, down=down)
    losses = {direction: _losses(values, link, direction) for direction in DIRECTIONS}
    for parameters in losses.values():
        dropper.model.loss_model(parameters)  # refuses what is no model
    return LinkTask(settings=settings, late_bound_us=validity.late_bound_us(settings), losses=losses)


def _settings(values: Mapping[str, Any], link: str, direction: Direction) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for prefix in _of_settings(link, direction):
        own = {name: values[prefix + name] for name in SETTINGS if prefix + name in values}
        if own.keys() & _QUEUES:
            chosen = {name: value for name, value in chosen.items() if name not in _QUEUES}
        chosen |= own
    return chosen


def _losses(values: Mapping[str, Any], link: str, direction: Direction) -> dict[str, Any]:
    chosen: dict[str, Any] = {"model": "none"}
    for prefix in _of_losses(link, direction):
        own = dict(_below(values, prefix))
        chosen = own if "model" in own else chosen | own
    return chosen


def _below(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        last = name.removeprefix(prefix)
        if last != name and "." not in last:
            yield last, value


def _of_settings(link: str, direction: Direction) -> tuple[str, ...]:
    """What stands before the name of a setting, the most general first."""
    return "", f"{direction}.", f"{link}.", f"{link}.{direction}."


def _of_losses(link: str, direction: Direction) -> tuple[str, ...]:
    return "loss.", f"loss.{direction}.", f"{link}.loss.", f"{link}.loss.{direction}."
