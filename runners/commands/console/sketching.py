"""The options of `try` and `new`: a question in ranges, with their units, and the design that asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fecbench.errors import BadInput
from fecbench.hints import nearest
from fecbench.quantities import quantity
from fecbench.runners.commands.console.quantity_options import ends
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from fecbench.designs.ranges import Range
    from fecbench.designs.sketch import Arm, Sketch
    from fecbench.runners.implementations.finding import Implementations

ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    "none": ("no FEC", {"scheme": "none"}),
    "safe": ("safe", {"scheme": "rlc", "controller": "safe"}),
    "tail": (
        "RLC (3, 2, 20), tail",
        {"scheme": "rlc", "n": 3, "k": 2, "window": 20, "controller": "tail"},
    ),
    "fixed": ("RLC (3, 2, 20)", {"scheme": "rlc", "n": 3, "k": 2, "window": 20, "controller": "constant"}),
    "deadline": ("deadline", {"scheme": "rlc", "controller": "deadline"}),
}
"""Arms by one word: the label, and options of noq-fec."""
_CONTROLLERS = {"cubic": "Cubic", "bbr3": "BBRv3", "newreno": "NewReno"}
_MOST_SIZES = 8


def _sizes(text: str) -> list[int]:
    try:
        sizes = [quantity(part, "bytes") for part in text.split(",")]
    except BadInput as error:
        raise typer.BadParameter(str(error)) from None
    wrong = next((size for size in sizes if size < 1 or not size.is_integer()), None)
    if wrong is not None or len(sizes) > _MOST_SIZES:
        raise typer.BadParameter(f"{text!r}: must be 1 to {_MOST_SIZES} whole sizes such as 10kB,50kB")
    return [int(size) for size in sizes]


def _option(metavar: str, parser: Callable[[str], Any], help_: str) -> Any:
    return typer.Option(metavar=metavar, parser=parser, help=help_)


Bandwidth = Annotated[
    Any, _option("5..50Mbit/s", ends("Mbit/s"), "The rate of the link: a range, or one value.")
]
RoundTrip = Annotated[
    Any,
    typer.Option("--rtt", metavar="20..200ms", parser=ends("ms"), help="The round trip without a queue."),
]
Loss = Annotated[Any, _option("0.5..5%", ends("share"), "The share of packets that are lost.")]
Burst = Annotated[Any, _option("1..4", ends("number"), "How many packets are lost in a row, on average.")]
Queue = Annotated[
    Any,
    typer.Option(
        "--queue-bdp",
        metavar="0.5..2",
        parser=ends("number"),
        help="The limit of the queue, in bandwidth-delay products.",
    ),
]
Sizes = Annotated[
    Any, typer.Option("--size", metavar="10kB,50kB", parser=_sizes, help="How long transfers are.")
]
Upload = Annotated[bool, typer.Option("--upload", help="Upload in place of downloading.")]
Arms = Annotated[
    str,
    typer.Option(
        help="What is compared, with the first one: words of none, safe, tail, fixed, deadline; or options of"
        ' the implementation, such as "scheme=xor n=5 k=4".'
    ),
]
CongestionControls = Annotated[
    str,
    typer.Option(
        "--cc", metavar="cubic,bbr3", help="The congestion control; of several, all variants beside each."
    ),
]
Implementation = Annotated[str, typer.Option(help="Whose options the variants have.")]
Trials = Annotated[int, typer.Option(min=20, max=1_000_000, help="Run about so many trials.")]


def arms(text: str, congestion_controls: str, name: str, implementations: Implementations) -> list[Arm]:
    """Return the arms beside each congestion control; each is compared with the first one beside its own.

    Raises Refusal for a word that is none.
    """
    from fecbench.designs.sketch import Arm

    implementation = implementations.find(name, "--implementation")
    words = [part.strip() for part in text.split(",") if part.strip()]
    if len(words) < 2:
        raise Refusal(f"--arms {text!r}: must be two or more, such as none,safe")
    controls = [part.strip() for part in congestion_controls.split(",") if part.strip()]
    takes_control = "congestion_control" in implementation.declaration.options
    compared = list[Arm]()
    for control, word in product(controls if takes_control else [""], words):
        label, options = _arm(word, name)
        control_options = {"congestion_control": control} if control else {}
        beside = f"{_CONTROLLERS.get(control, control)}, " if len(controls) > 1 and control else ""
        first = f"{beside}{_arm(words[0], name)[0]}"
        arm = Arm(f"{beside}{label}", name, {**options, **control_options}, first if word != words[0] else "")
        compared.append(arm)
    return compared


def _arm(word: str, implementation: str) -> tuple[str, dict[str, Any]]:
    """Return the label and the options of an arm."""
    if "=" in word:
        return word, dict(_options(word))
    if word not in ARMS:
        raise Refusal(f"--arms: there is no variant {word!r}; {nearest(word, ARMS)} (or NAME=VALUE)")
    if implementation != "noq-fec":
        raise Refusal(f"--arms {word}: is of noq-fec; give options of {implementation}, such as NAME=VALUE")
    return ARMS[word]


def _options(text: str) -> Iterator[tuple[str, Any]]:
    for part in text.split():
        name, equals, value = part.partition("=")
        if not equals or not name or not value:
            raise Refusal(f"--arms {text!r}: {part!r}: must be NAME=VALUE")
        yield name, _plain(value)


def _plain(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def sketch(
    name: str,
    bandwidth: Range,
    rtt: Range,
    loss: Range,
    burst: Range,
    queue_bdp: Range,
    sizes: Sequence[int],
    upload: bool,
    compared: Sequence[Arm],
    trials: int,
) -> Sketch:
    """Return the design's sketch of these options."""
    from fecbench.designs.sketch import Sketch

    return Sketch(
        name=name,
        bandwidth_mbps=bandwidth,
        rtt_ms=rtt,
        loss=loss,
        burst=burst,
        queue_bdp=queue_bdp,
        sizes_bytes=sizes,
        workload="upload" if upload else "download",
        arms=compared,
        trials=trials,
    )
