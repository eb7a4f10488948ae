"""The picture of docs/how-it-is-built.svg beside the imports: its arrows are imports, and hide none.

A box names the modules that it stands for. An arrow follows what is passed on, so either end may import the
other. Arrows of packets are no imports.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

from fecbench.checkout import REPOSITORY
from tests.support.modules import MODULES, imports, is_within

PICTURE = ElementTree.parse(REPOSITORY / "docs" / "how-it-is-built.svg").getroot()
SVG = "{http://www.w3.org/2000/svg}"
NEAR = 3
"""Pixels between an arrow's end and its box."""

PROGRAMS = 2
"""Boxes of programs that are none of our modules: client and server."""

IN_A_TRIAL = {"topologies", "dropper", "dropper.model"}
"""First modules of boxes of which a trial is made. Its makers and its judge know them, without an arrow."""

LEAPS = {
    *("results.store runners.campaign", "results.store runners.engines", "results.store runners.trial.judge"),
    *("runners.engines runners.workloads", "runners.trial runners.workloads"),
    *("runners.campaign runners.trial", "runners.campaign runners.trial.judge"),
    *("runners.campaign.record runners.engines", "runners.campaign.record runners.trial"),
    *("results.analysis runners.campaign", "runners.trial.judge runners.workloads"),
    "results.figures results.store",
}
"""Pairs of boxes of which one imports the other, though several arrows are between them. May only shrink."""


def boxes() -> dict[str, tuple[float, float, float, float]]:
    """Return the left, top, right and bottom of each box, by its modules."""
    places = {}
    for number, box in enumerate(PICTURE.iter(f"{SVG}rect")):
        if box.get("stroke"):
            x, y, width, height = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
            places[box.get("data-modules", f"program {number}")] = x, y, x + width, y + height
    return places


def box_at(x: float, y: float) -> str:
    """Return the box at whose edge a point is."""
    (box,) = (
        modules
        for modules, (x_min, y_min, x_max, y_max) in boxes().items()
        if x_min - NEAR <= x <= x_max + NEAR and y_min - NEAR <= y <= y_max + NEAR
    )
    return box


def arrows() -> Iterator[tuple[str, str, str]]:
    """Yield both ends of each arrow, and its class."""
    for path in PICTURE.findall(f"{SVG}path"):
        points = [float(number) for number in re.findall(r"[\d.]+", path.attrib["d"])]
        yield box_at(*points[:2]), box_at(*points[-2:]), path.get("class", "")


def box_of(module: str) -> str | None:
    """Return the box that stands for a module: the one with the longest name for it."""
    prefixes = {prefix: box for box in boxes() for prefix in box.split() if is_within(module, prefix)}
    return prefixes[max(prefixes, key=len)] if prefixes else None


def pair(one: str, other: str) -> str:
    """Return the first module of both boxes, in order."""
    return " ".join(sorted((one.split()[0], other.split()[0])))


def is_part(one: str, other: str) -> bool:
    """Whether one of two boxes is drawn beside the folder that it is in, with no arrow between them."""
    return {one.split()[0], other.split()[0]} in (
        {"runners.campaign", "runners.campaign.record"},
        {"dropper", "dropper.model"},
    )


def offering(imported: str) -> set[str]:
    """Return the modules that an import is of: itself, or those from which a package offers it."""
    package, _, name = imported.rpartition(".")
    if imported in MODULES or package not in MODULES:
        return {imported}
    parts = (inner.rpartition(".") for inner in imports(MODULES[package]))
    return {module for module, _, last in parts if last == name}


def imported_pairs() -> set[str]:
    """Return the pairs of boxes of which one imports the other and none is a part of the other."""
    in_boxes = {module: box for module in MODULES if (box := box_of(module))}
    return {
        pair(box, in_boxes[name])
        for module, box in in_boxes.items()
        for imported in imports(MODULES[module])
        for name in offering(imported) & in_boxes.keys()
        if in_boxes[name] != box and not is_part(box, in_boxes[name])
    }


def test_each_room_of_the_picture_is_one_that_imports_show() -> None:
    labels = set(re.findall(r"(?<![a-z-])([a-z]+)/", " ".join(PICTURE.itertext())))
    rooms = {part for module in MODULES for part in module.split(".")[:-1]}
    assert {"designs", "campaign", "trial", "analysis", "dropper"} <= labels
    assert labels - rooms == set()


def test_each_box_stands_for_modules_that_there_are() -> None:
    names = [name for box in boxes() if not box.startswith("program") for name in box.split()]
    assert set(names) <= {name for module in MODULES for name in (module, module.rpartition(".")[0])}
    assert len(boxes()) - len({box for box in boxes() if not box.startswith("program")}) == PROGRAMS


def test_arrows_and_what_is_not_drawn_are_all_imports_between_boxes() -> None:
    pairs_of_arrows = {
        pair(one, other)
        for one, other, kind in arrows()
        if kind != "packets" and not one.startswith("program") and not other.startswith("program")
    }
    assert pairs_of_arrows - imported_pairs() == set()
    beside = {joined for joined in imported_pairs() - pairs_of_arrows if not IN_A_TRIAL & set(joined.split())}
    assert beside == LEAPS
