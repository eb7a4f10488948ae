"""Ladders of videos: made from a seed, and refused in one line when nobody could play them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fecbench import designs
from fecbench.runners.workloads.video import ladder, making
from tests.support.refusals import refusal_of

SHIPPED = sorted(designs.catalogue()["video-ladder"].with_name("videos").glob("*.json"))


def test_a_made_film_has_the_rates_of_its_levels_and_varies_as_films_do() -> None:
    video = making.make(7, 2.0, 300.0, "tests")
    for level in video.levels:
        rates = [8e-3 * size / video.segment_s for size in level.sizes]
        assert sum(rates) / len(rates) == pytest.approx(level.kbps, rel=1e-3)
        assert 3 < max(rates) / min(rates) < 12
    assert video == making.make(7, 2.0, 300.0, "tests")
    assert video != making.make(8, 2.0, 300.0, "tests")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_what_is_shipped_is_what_its_command_makes(path: Path) -> None:
    shipped = ladder.load(path)
    words = shipped.made_by.split()
    seed, segment_s, duration_s = (
        float(words[words.index(name) + 1]) for name in ("--seed", "--segment-s", "--duration-s")
    )
    assert making.make(int(seed), segment_s, duration_s, shipped.made_by).text() == path.read_text()


def good() -> dict[str, object]:
    level = {"kbps": 100.0, "width": 320, "height": 240, "fps": 25.0, "sizes": [1000, 2000]}
    return {"title": "t", "made_by": "m", "segment_s": 2.0, "levels": [level, {**level, "kbps": 200.0}]}


def changed(**of_level: object) -> dict[str, object]:
    document = good()
    levels = document["levels"]
    assert isinstance(levels, list)
    return {**document, "levels": [levels[0], {**levels[1], **of_level}]}


HOSTILE: list[tuple[object, str]] = [
    ([], "dictionary"),
    (changed(sizes=[-1, 5]), "levels.1.sizes.0"),
    (changed(sizes=[2**31, 5]), "levels.1.sizes.0"),
    (changed(sizes=[1] * 10**6), "levels.1.sizes"),
    (changed(sizes=[]), "levels.1.sizes"),
    (changed(sizes=[1]), "has 1 sizes, and level 0 has 2"),
    (changed(kbps=50.0), "must be more than 100"),
    ({**good(), "levels": []}, "levels"),
    ({**good(), "segment_s": 0.0}, "segment_s"),
    ({**good(), "codec": "av1"}, "codec"),
    (changed(kbps="200"), "kbps"),
]


def test_a_ladder_that_nobody_can_play_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    written = [(json.dumps(document), names) for document, names in HOSTILE]
    no_numbers = ("NaN", "Infinity", "1e400")
    written += [(json.dumps(good()).replace("200.0", value), "levels.1.kbps") for value in no_numbers]
    for text, names in written:
        path.write_text(text)
        line = refusal_of(ladder.load, path)
        assert line.startswith(str(path)) and names in line and len(line) < 400


def test_the_command_makes_and_shows_a_ladder(fecbench_here: Callable[..., object], tmp_path: Path) -> None:
    path, drawing = tmp_path / "film.json", tmp_path / "film.png"
    video = fecbench_here("video", "make", "--seed", 3, "--duration-s", 20, "--output", path)
    assert "10 segments of 2 s at 9 levels" in video.stdout  # type: ignore[attr-defined]
    output = fecbench_here("video", "show", path, "--output", drawing)
    assert "1920x1080" in output.stdout and drawing.stat().st_size > 10_000  # type: ignore[attr-defined]
