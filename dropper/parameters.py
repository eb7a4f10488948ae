"""Loss models as plain parameters: those of a design, of a command and of a document."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import cast

from fecbench.complaint import wrong_value
from fecbench.dropper.clocked import Slots, TimedGilbertElliott
from fecbench.dropper.draws import LossModelError
from fecbench.dropper.loss_model import ONLY_LONGER_THAN, LossModel
from fecbench.dropper.model import Beginning, GilbertElliott, Markov, Nothing, Pattern, Uniform

_CLASSES: tuple[type[LossModel], ...] = (
    Nothing,
    Uniform,
    GilbertElliott,
    Markov,
    Pattern,
    Beginning,
    TimedGilbertElliott,
    Slots,
)
MODELS: Mapping[str, type[LossModel]] = MappingProxyType({model.name: model for model in _CLASSES})
"""The models by name."""


COMMON: Mapping[str, str] = MappingProxyType(
    {ONLY_LONGER_THAN: "Bytes of IP: only longer packets count, and may be lost. In designs alone."}
)
"""The meanings of parameters that all models have which may lose packets."""


def loss_model(parameters: Mapping[str, object]) -> LossModel:
    """Return the model of plain parameters, such as {"model": "ge", "p": 0.01, "r": 0.25}.

    `markov` is a ge model and `none` a uniform one with p = 0; all but `none` take `only_longer_than`. Raises
    LossModelError for unknown and missing keys and for values out of range.
    """
    name = parameters.get("model")
    if not isinstance(name, str) or name not in MODELS:
        raise LossModelError(wrong_value("model", name, f"one of {', '.join(MODELS)}"))
    common = set(parameters) & parameters_of_any(MODELS[name])
    values = {key: value for key, value in parameters.items() if key not in common}
    _require_form(MODELS[name], set(values))
    model = MODELS[name].of(values)
    if ONLY_LONGER_THAN not in common:
        return model
    return replace(model, only_longer_than=cast(int, parameters[ONLY_LONGER_THAN]))


def parameters_of_any(model: type[LossModel]) -> set[str]:
    """Return the parameters that a model has beside those of its forms."""
    may_lose = any(form.needed for form in model.forms)
    return {"model", *COMMON} if may_lose else {"model"}


def parameters_of(model: type[LossModel]) -> set[str]:
    """Return all that the model takes."""
    return parameters_of_any(model).union(*(form.keys for form in model.forms))


def _require_form(model: type[LossModel], keys: set[str]) -> None:
    if any(set(form.needed) <= keys <= form.keys for form in model.forms):
        return
    right = f"model {model.name} takes {' or '.join(map(str, model.forms))}"
    unknown = sorted(keys - set().union(*(form.keys for form in model.forms)))
    if unknown:
        raise LossModelError(f"unknown key {unknown[0]}: {right}")
    raise LossModelError(f"{right} (given: {', '.join(sorted(keys)) or 'nothing'})")
