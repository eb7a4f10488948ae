"""Loss models as plain parameters: those of a design, of a command and of a document."""

from collections.abc import Mapping
from types import MappingProxyType

from fecbench.dropper.clocked import Slots, TimedGilbertElliott
from fecbench.dropper.draws import LossModelError
from fecbench.dropper.loss_model import LossModel
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


def loss_model(parameters: Mapping[str, object]) -> LossModel:
    """Return the model of plain parameters, such as {"model": "ge", "p": 0.01, "r": 0.25}.

    `markov` is a ge model and `none` a uniform one with p = 0. Raises LossModelError for unknown and missing
    keys and for values out of range.
    """
    name = parameters.get("model")
    if not isinstance(name, str) or name not in MODELS:
        raise LossModelError(f"model = {name!r}: must be one of {', '.join(MODELS)}")
    values = {key: value for key, value in parameters.items() if key != "model"}
    _require_form(MODELS[name], set(values))
    return MODELS[name].of(values)


def _require_form(model: type[LossModel], keys: set[str]) -> None:
    if any(set(form.needed) <= keys <= form.keys for form in model.forms):
        return
    right = f"model {model.name} takes {' or '.join(map(str, model.forms))}"
    unknown = sorted(keys - set().union(*(form.keys for form in model.forms)))
    if unknown:
        raise LossModelError(f"unknown key {unknown[0]}: {right}")
    raise LossModelError(f"{right} (given: {', '.join(sorted(keys)) or 'nothing'})")
