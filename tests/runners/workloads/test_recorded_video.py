"""Video of an encoder as a trace of the workload `live`: read by ffprobe, kept, cut and refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners import workloads
from fecbench.runners.refusal import Refusal
from fecbench.runners.workloads.live import recorded
from fecbench.runners.workloads.workload import Surroundings

LISTED = Path(__file__).with_name("data") / "ffprobe.json"
"""Printed by ffprobe 5.1.9 of 1.2 s of testsrc2: 10 frames a second in groups of five."""
LIVE = workloads.find("live", "design")
FRAMES = [[0, 4000, 1], [33_333, 500, 0], [66_667, 700, 0], [100_000, 3000, 1]]


def a_trace(*frames: list[int], **others: Any) -> dict[str, Any]:
    return {"title": "a trace", "made_by": "hand", "frames": list(frames), **others}


@pytest.fixture
def ffprobe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Put an ffprobe into the path that runs these lines of shell; the result is a media file."""
    programs, video = tmp_path / "programs", tmp_path / "video.mp4"

    def put(script: str) -> Path:
        programs.mkdir()
        (programs / "ffprobe").write_text(f"#!/bin/sh\n{script}\n")
        (programs / "ffprobe").chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
        video.write_bytes(b"a video")
        return video

    return put


def test_frames_are_those_that_ffprobe_lists_in_the_order_of_decoding(ffprobe: Callable[[str], Path]) -> None:
    recording = recorded.from_video(ffprobe(f"cat {LISTED}"), "a test")
    packets = json.loads(LISTED.read_text())["packets"]
    assert [size for _, size, _ in recording.frames] == [int(packet["size"]) for packet in packets]
    assert [due_us for due_us, *_ in recording.frames] == [100_000 * number for number in range(12)]
    assert [number for number, (*_, begins) in enumerate(recording.frames) if begins] == [0, 5, 10]


def test_times_count_from_the_first_frame(ffprobe: Callable[[str], Path]) -> None:
    video = ffprobe(f"""sed 's/"dts_time": "/&5/' {LISTED}""")  # 50.0, 50.1, …
    assert recorded.from_video(video, "a test").frames[1][0] == 100_000


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo no moov atom >&2; exit 1", "ffprobe cannot read it: no moov atom"),
        ("echo '{}'", "ffprobe listed no frames"),
        ("echo no JSON", "ffprobe listed no frames"),
        ("""echo '{"packets": []}'""", "has no frames of video"),
        ("""echo '{"packets": [{"size": "1", "flags": "K_"}]}'""", "frame 0 has no decoding time (dts)"),
        (f"""sed 's/K_/__/' {LISTED}""", "frame 0: must begin a group"),
        (f"""sed 's/"1948"/"0"/' {LISTED}""", "frame 0: 0 bytes must be from 1 to 16777216"),
    ],
)
def test_what_is_no_video_is_refused_in_one_line(
    ffprobe: Callable[[str], Path], script: str, problem: str
) -> None:
    with pytest.raises(Refusal, match=r"video\.mp4") as refusal:
        recorded.from_video(ffprobe(script), "a test")
    assert problem in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_missing_file_and_a_missing_ffprobe_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refusal, match=r"none\.mp4: there is no such file"):
        recorded.from_video(tmp_path / "none.mp4", "a test")
    (tmp_path / "video.mp4").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refusal, match="ffprobe is missing: apt-get install ffmpeg"):
        recorded.from_video(tmp_path / "video.mp4", "a test")


def _stored(folder: Path, document: object) -> dict[str, Any]:
    """The trace as a campaign keeps it, from its file."""
    path = folder / "traces" / "own.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))
    reference = LIVE.document({"trace": "own"}, [folder])
    assert reference == ("own", path)
    return dict(LIVE.read_document(path))


def _video(folder: Path, **choices: Any) -> list[list[int]]:
    """The frames of video of a broadcast of FRAMES."""
    choices = {"trace": "own", **choices}
    LIVE.check(choices, ["A"], "design")
    around = Surroundings(
        variant="A", link=None, timeout_s=60, documents={"own": _stored(folder, a_trace(*FRAMES))}
    )
    video, audio = LIVE.transfers(choices, around)[0].workload["tracks"]
    assert audio["frames"][-1][0] <= max(due_us for due_us, *_ in video["frames"]) + 20_000
    return list(video["frames"])


def test_a_trace_replaces_the_video_and_a_duration_cuts_it(tmp_path: Path) -> None:
    assert _video(tmp_path) == FRAMES
    assert _video(tmp_path, duration_s=0.1) == FRAMES[:3]
    with pytest.raises(Refusal, match="leave out fps"):
        _video(tmp_path, fps=30)


def test_a_trace_is_read_again_as_it_was_written(tmp_path: Path) -> None:
    recording = recorded.Recording(**a_trace(*FRAMES))
    assert _stored(tmp_path, json.loads(recording.text()))["frames"] == FRAMES


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (a_trace(), "frames = []"),
        (a_trace([0, 1, 0]), "frame 0: must begin a group"),
        (a_trace([5, 1, 1], [4, 1, 0]), "frame 1: is due at 4 µs, and the one before at 5"),
        (a_trace([0, 1, 2]), "frame 0: 2 must be 1 where a group begins, else 0"),
        (a_trace([0, 0, 1]), "frame 0: 0 bytes must be from 1"),
        (a_trace([-1, 1, 1]), "frame 0: -1 µs must be from 0"),
        (a_trace([0, 1]), "frames[0]"),
        (a_trace([0, 1, 1], fps=30), "fps: is no key here"),
        ({"title": "messages", "made_by": "hand", "messages": [[0, 1]]}, "frames"),
    ],
)
def test_a_bad_trace_is_refused_in_one_short_line(tmp_path: Path, document: object, problem: str) -> None:
    with pytest.raises(Refusal, match=r"own\.json") as refusal:
        _stored(tmp_path, document)
    assert problem in str(refusal.value)
    assert len(str(refusal.value)) < 400
