"""Ladders of DASH presentations: sizes as they lie in a folder, and one line for whatever is none."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from fecbench.runners.workloads.video.ladder import load
from fecbench.runners.workloads.video.mpd import video_from
from tests.support.refusals import refusal_of

HEAD = '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT5.5S">'
ARMS = (("low", 320, 240), ("high", 640, 480))


def mpd(inside: Callable[[str], str], of_set: str = "", before: str = "") -> str:
    representations = "".join(
        f'<Representation id="{name}" bandwidth="1000" width="{width}" height="{height}"'
        f' frameRate="30000/1001">'
        f"{inside(name)}</Representation>"
        for name, width, height in ARMS
    )
    video = f'<AdaptationSet contentType="video">{of_set}{representations}</AdaptationSet>'
    sound = '<AdaptationSet contentType="audio"><Representation id="a" bandwidth="1"/></AdaptationSet>'
    return f"{HEAD}{before}<Period>{sound}{video}</Period></MPD>"


def presentation(folder: Path, text: str) -> Path:
    """Segments 1 to 3 of `low` have 100, 200 and 300 bytes, those of `high` ten times as many."""
    folder.mkdir(exist_ok=True)
    (folder / "it.mpd").write_text(text)
    for factor, (name, _, _) in zip((1, 10), ARMS, strict=True):
        for number in (1, 2, 3):
            for named in (f"{name}-{number:03d}.m4s", f"{name}_{(number - 1) * 2000}.m4s"):
                (folder / named).write_bytes(b"x" * (100 * number * factor))
    return folder / "it.mpd"


def sidx(sizes: list[int]) -> bytes:
    entries = b"".join(struct.pack(">III", size, 2000, 0) for size in sizes)
    body = struct.pack(">4sIIIIIHH", b"sidx", 0, 1, 1000, 0, 0, 0, len(sizes)) + entries
    return struct.pack(">I", len(body) + 4) + body


TEMPLATE = '<SegmentTemplate media="$RepresentationID$-$Number%03d$.m4s" timescale="1000" duration="2000"/>'
TIMELINE = (
    '<SegmentTemplate media="$RepresentationID$_$Time$.m4s" timescale="1000"><SegmentTimeline>'
    '<S t="0" d="2000" r="1"/><S d="1500"/></SegmentTimeline></SegmentTemplate>'
)


def ranges(name: str) -> str:
    factor, at, urls = (1 if name == "low" else 10), 0, ""
    for number in (1, 2, 3):
        size = 100 * number * factor
        urls += f'<SegmentURL mediaRange="{at}-{at + size - 1}"/>'
        at += size
    return f'<BaseURL>{name}.mp4</BaseURL><SegmentList timescale="1000" duration="2000">{urls}</SegmentList>'


FORMS = {
    "template with numbers": mpd(lambda _: "", TEMPLATE),
    "template with a timeline": mpd(lambda _: TIMELINE),
    "list of byte ranges": mpd(ranges),
    "list of files": mpd(
        lambda name: (
            '<SegmentList duration="2">'
            + "".join(f'<SegmentURL media="{name}-00{number}.m4s"/>' for number in (1, 2, 3))
            + "</SegmentList>"
        )
    ),
    "index of a file": mpd(
        lambda name: (
            f'<BaseURL>{name}.mp4</BaseURL><SegmentBase indexRange="10-{10 + len(sidx([1] * 3)) - 1}"/>'
        )
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_presentation_has_the_sizes_of_its_segments(form: str, tmp_path: Path) -> None:
    path = presentation(tmp_path / "film", FORMS[form])
    for factor, (name, _, _) in zip((1, 10), ARMS, strict=True):
        index = sidx([100 * factor, 200 * factor, 300 * factor])
        (path.parent / f"{name}.mp4").write_bytes(b"-" * 10 + index)
    for named in (path, path.parent):
        video = video_from(named, "tests")
        assert video.segment_s == 2.0
        assert [level.sizes for level in video.levels] == [(100, 200, 300), (1000, 2000, 3000)]
        assert [level.resolution for level in video.levels] == ["320x240", "640x480"]
        assert [level.kbps for level in video.levels] == [0.8, 8.0]
        assert video.levels[0].fps == pytest.approx(29.97, abs=0.01)


def handed_down(level: str, inside: str) -> str:
    """A presentation whose Period or set says what its representations have."""
    text = mpd(lambda _: "", inside if level == "set" else "")
    return text.replace("<Period>", f"<Period>{inside}") if level == "period" else text


ENDED = TEMPLATE.replace("/>", ' endNumber="3"/>')
INDEXED = f'<SegmentBase indexRange="10-{10 + len(sidx([1] * 3)) - 1}"/>'
LISTED = '<SegmentTemplate media="$RepresentationID$-$Number%03d$.m4s" timescale="1000"'
RUNS = "<SegmentTimeline>{}</SegmentTimeline></SegmentTemplate>"
OPEN = HEAD.replace(' mediaPresentationDuration="PT5.5S"', "")
SAME = {
    "a template of the period": handed_down("period", TEMPLATE),
    "a template of the set, and its media of the period": handed_down(
        "set", '<SegmentTemplate timescale="1000" duration="2000"/>'
    ).replace("<Period>", '<Period><SegmentTemplate media="$RepresentationID$-$Number%03d$.m4s"/>'),
    "a timeline of the period": handed_down("period", TIMELINE),
    "an index of the set": handed_down("set", INDEXED).replace(
        "</Representation>", "<BaseURL>$.mp4</BaseURL></Representation>"
    ),
    "an end": handed_down("set", ENDED).replace("PT5.5S", "PT1H"),
    "an end, and no duration": handed_down("set", ENDED).replace(HEAD, OPEN),
    "years and months of none": handed_down("set", TEMPLATE).replace("PT5.5S", "P0Y0M0DT0H0M5.500S"),
    "days": handed_down("set", TEMPLATE).replace("PT5.5S", "P0DT5.5S"),
    "a period with a duration": handed_down("set", TEMPLATE)
    .replace("PT5.5S", "PT1H")
    .replace("<Period>", '<Period duration="PT5.5S">'),
    "a period that another follows": handed_down("set", TEMPLATE).replace("PT5.5S", "PT1H").replace(
        "</Period>", '</Period><Period start="PT5.5S"/>'
    ),
    "a run up to the end of the period": mpd(
        lambda _: LISTED + ">" + RUNS.format('<S t="0" d="2000" r="-1"/>')
    ),
    "a run up to the next": mpd(
        lambda _: LISTED + ">" + RUNS.format('<S t="0" d="2000" r="-1"/><S t="4000" d="1500"/>')
    ),
    "times that begin elsewhere": mpd(
        lambda _: (
            LISTED
            + ' presentationTimeOffset="90000">'
            + RUNS.format('<S t="90000" d="2000" r="-1"/>')
        )
    ),
    "an end of a timeline": mpd(
        lambda _: LISTED + ' endNumber="3">' + RUNS.format('<S t="0" d="2000" r="9"/>')
    ),
    "lengths that differ by a frame": mpd(
        lambda _: LISTED + ">" + RUNS.format('<S t="0" d="2002"/><S d="1998"/><S d="1500"/>')
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", SAME)
def test_what_says_the_same_gives_the_same_ladder(form: str, tmp_path: Path) -> None:
    path = presentation(tmp_path / "film", SAME[form])
    if "$.mp4" in SAME[form]:
        for (name, _, _), factor in zip(ARMS, (1, 10), strict=True):
            (path.parent / f"{name}.mp4").write_bytes(
                b"-" * 10 + sidx([100 * factor, 200 * factor, 300 * factor])
            )
        text = path.read_text()
        for name, _, _ in ARMS:
            text = text.replace("$.mp4", f"{name}.mp4", 1)
        path.write_text(text)
    notes: list[str] = []
    video = video_from(path, "tests", notes.append)
    assert video.segment_s == 2.0
    assert [level.sizes for level in video.levels] == [(100, 200, 300), (1000, 2000, 3000)]
    others = "it.mpd has 2 Periods; the first is read, and the others are left out"
    assert notes == ([others] if form == "a period that another follows" else [])


def sidx_of(durations: list[int], kind: int = 0) -> bytes:
    entries = b"".join(struct.pack(">III", kind << 31 | 500, duration, 0) for duration in durations)
    body = struct.pack(">4sIIIIIHH", b"sidx", 0, 1, 1000, 0, 0, 0, len(durations)) + entries
    return struct.pack(">I", len(body) + 4) + body


DIFFERENT = [
    ([4000, 8000, 4000], "4, 8, 4 s, 16 s in all"),
    ([2000, 2000, 2000, 5000], "2, 2, 2, 5 s, 11 s in all"),
    ([2000, 2000, 3000, 2000], "2, 2, 3, 2 s, 9 s in all"),
    ([2000, 1000, 2000, 2000], "2, 1, 2, 2 s, 7 s in all"),
]


@pytest.mark.parametrize(("durations", "right"), DIFFERENT)
def test_lengths_that_differ_are_refused_with_the_lengths(
    tmp_path: Path, durations: list[int], right: str
) -> None:
    index = sidx_of(durations)
    of_index = mpd(
        lambda name: f'<BaseURL>{name}.mp4</BaseURL><SegmentBase indexRange="0-{len(index) - 1}"/>'
    )
    runs = "".join(f'<S d="{duration}"/>' for duration in durations)
    for text in (of_index, mpd(lambda _: LISTED + ">" + RUNS.format(runs))):
        path = presentation(tmp_path / "film", text)
        for name, _, _ in ARMS:
            (path.parent / f"{name}.mp4").write_bytes(index)
            (path.parent / f"{name}-004.m4s").write_bytes(b"x")
        assert f"its segments last {right}: a ladder has one" in refusal_of(video_from, path, "tests")


BOMB = (
    '<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{("&" + chr(97 + n) + ";") * 10}">' for n in range(8))
    + "]>"
)


def template(media: str) -> str:
    return mpd(lambda _: "", f'<SegmentTemplate media="{media}" duration="2"/>')


def timeline(old: str, new: str) -> str:
    return mpd(lambda _: TIMELINE.replace(old, new))


NO_SECONDS = '<SegmentTemplate media="$Number$" duration="4" timescale="0"/>'
HOSTILE = [
    (BOMB + mpd(lambda _: "&i;", TEMPLATE), "declares a document type or entities"),
    ("<MPD", "is no XML"),
    ("<html/>", "is no MPD: its root is html"),
    (f"{HEAD}<Period/></MPD>", "has no AdaptationSet of video"),
    (template("https://example/$Number$.m4s"), "nothing is fetched"),
    (template("/etc/passwd"), "nothing is fetched"),
    (template("../../$Number$.m4s"), "is outside of its folder"),
    (template("none-$Number$.m4s"), "No such file"),
    (timeline('r="1"', 'r="999999999"'), "or too many segments"),
    (timeline('d="2000"', 'd="-1"'), "d = -1"),
    (timeline('d="2000"', 'd="2e3"'), "'2e3' is no whole number"),
    (mpd(lambda name: ranges(name).replace("0-", "9999-", 1)), "is no range of bytes"),
    (mpd(lambda _: "", NO_SECONDS), "has timescale 0: it must be above 0"),
    (template("low-00$Number$.m4s").replace("PT5.5S", f"PT{'9' * 400}S"), "has inf segments"),
    (FORMS["template with numbers"].replace('width="320"', 'width="0"'), "levels[0].width"),
    (mpd(lambda _: ""), "has no SegmentTemplate, SegmentList or index"),
    (mpd(lambda _: "<SegmentBase/>"), "its SegmentBase has no indexRange"),
    (FORMS["template with numbers"].replace("PT5.5S", "P1Y"), "'P1Y': years and months are no length"),
    (FORMS["template with numbers"].replace("PT5.5S", "5.5"), "'5.5' is no duration such as PT1H2M3.5S"),
    (FORMS["template with numbers"].replace("PT5.5S", "PT"), "'PT' is no duration"),
    (timeline('r="1"', 'r="-2"'), "r = -2, or too many segments"),
    (
        timeline('r="1"/><S d="1500"/>', 'r="-1"/>').replace(HEAD, OPEN),
        "has r = -1, up to the end of its period",
    ),
    (template("low-00$Number$.m4s").replace("duration=", 'endNumber="0" duration='), "endNumber 0"),
    (
        mpd(lambda name: TEMPLATE.replace("/>", f' endNumber="{3 if name == "low" else 1}"/>')),
        "its representations have 1 to 3 segments",
    ),
]


def test_what_is_no_presentation_is_refused_in_one_line(tmp_path: Path) -> None:
    for text, why in HOSTILE:
        path = presentation(tmp_path / "film", text)
        line = refusal_of(video_from, path, "tests")
        assert line.startswith(str(path)) and why in line and len(line) <= 400
    with path.open("wb") as file:
        file.truncate(100 << 20)
    assert "is larger than" in refusal_of(video_from, path, "tests")


def test_an_index_that_is_cut_or_of_nothing_is_refused(tmp_path: Path) -> None:
    path = presentation(tmp_path / "film", FORMS["index of a file"])
    for content in (b"", b"-" * 10 + sidx([1, 2, 3])[:30], b"x" * 400, b"-" * 10 + sidx([])):
        for name, _, _ in ARMS:
            (path.parent / f"{name}.mp4").write_bytes(content)
        assert "sidx" in refusal_of(video_from, path, "tests")


def test_the_command_writes_what_plays(fecbench_here: Callable[..., object], tmp_path: Path) -> None:
    path = presentation(tmp_path / "film", FORMS["template with numbers"])
    output = tmp_path / "film.json"
    result = fecbench_here("video", "from-mpd", path.parent, "--output", output)
    assert "3 segments of 2 s at 2 levels" in result.stdout  # type: ignore[attr-defined]
    assert load(output).segments == 3
