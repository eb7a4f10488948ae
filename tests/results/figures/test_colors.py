"""A colour has one meaning: verdicts have theirs everywhere, and no variant is near one."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from fecbench.results import metrics, report
from fecbench.results.analysis.cards import VERDICT_COLORS
from fecbench.results.figures.style import MARKERS, PALETTE, look, ratio_colors

# How people see linear RGB who lack one kind of cones: Machado, Oliveira and Fernandes, IEEE TVCG 15 (2009).
EYES = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
}
# Differences in CIELAB: 2.3 can just be seen. Lines on white need more.
LEAST = {"all cones": 25.0, "protanopia": 15.0, "deuteranopia": 15.0}


def lab(color: object, eyes: str) -> NDArray[np.float64]:
    """CIELAB of a colour, as these eyes see it."""
    srgb = np.array(to_rgb(color))  # type: ignore[arg-type]
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(EYES[eyes] @ linear, 0, 1) / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eyes", EYES)
def test_no_variant_has_a_colour_near_that_of_a_verdict_or_of_another_variant(eyes: str) -> None:
    verdicts = [
        *VERDICT_COLORS.values(),
        *(ratio_colors(metrics.of("client.dct_s"))(end) for end in (0.1, 0.9)),
    ]
    for one, other in [*combinations(PALETTE, 2), *((color, of) for color in PALETTE for of in verdicts)]:
        apart = float(np.linalg.norm(lab(one, eyes) - lab(other, eyes)))
        assert apart >= LEAST[eyes], (one, other, apart)


def test_looks_differ_until_every_colour_had_every_marker() -> None:
    different = {(look(place).color, look(place).marker) for place in range(len(PALETTE) * len(MARKERS))}
    assert len(different) == len(PALETTE) * len(MARKERS)


def test_a_ratio_is_purple_where_it_helps_whichever_direction_is_better() -> None:
    less, more = metrics.of("client.dct_s"), metrics.of("messages.on_time_ratio_100ms")
    assert (less.more_is_better, more.more_is_better) == (False, True)
    gains = [ratio_colors(less)(0.1), ratio_colors(more)(0.9)]
    assert gains[0] == pytest.approx(gains[1], abs=0.02)
    red, green, blue, _ = gains[0]
    assert green < red < blue  # purple


def test_the_page_has_the_colours_of_the_figures() -> None:
    css = Path(report.__path__[0]) / "templates" / "report.css"
    root = css.read_text(encoding="utf-8").partition("}")[0]
    names = {"gain": "helps", "harm": "harms", "equivalent": "equal", "undecided": "open"}
    for verdict, name in names.items():
        (color,) = re.findall(rf"--{name}: (#\w+)", root)
        assert color == VERDICT_COLORS[verdict]
