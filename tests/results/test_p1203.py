"""Documents of sessions for the model of ITU-T P.1203, by its README: units, places, order."""

import pandas as pd
import pytest

from fecbench.results.p1203 import document

LEVELS = [
    {"kbps": 200.0, "width": 320, "height": 240, "fps": 25.0},
    {"kbps": 9000.0, "width": 3840, "height": 2160, "fps": 50.0},
]


def test_a_session_is_written_as_the_model_reads_it() -> None:
    segments = pd.DataFrame({"index": [0, 1, 1], "level": [0, 1, 1], "bytes": [50_000, 1_000_000, 1_250_000]})
    stalls = pd.DataFrame({"t_s": [0.0, 2.0], "length_s": [1.25, 0.5]})
    written = document(segments, stalls, {"segment_s": 2.0, "levels": LEVELS})
    first, second = written["I13"]["segments"]
    assert (first["bitrate"], first["resolution"], first["fps"], first["start"]) == (
        200.0,
        "320x240",
        25.0,
        0.0,
    )
    assert second["bitrate"] == pytest.approx(9000.0)  # both of its chunks, in kilobits of 1,000
    assert (second["resolution"], second["start"], second["codec"]) == ("1920x1080", 2.0, "h264")
    assert written["I23"]["stalling"] == [[0.0, 1.25], [2.0, 0.5]]
    assert [sound["start"] for sound in written["I11"]["segments"]] == [0.0, 2.0]
    assert {part["streamId"] for part in (written["I11"], written["I13"], written["I23"])} == {1}


def test_a_session_without_a_stall_has_the_time_before_the_first_picture_alone() -> None:
    segments = pd.DataFrame({"index": [0], "level": [0], "bytes": [50_000]})
    stalls = pd.DataFrame({"t_s": [0.0], "length_s": [0.4]})
    assert document(segments, stalls, {"segment_s": 2.0, "levels": LEVELS})["I23"]["stalling"] == [[0.0, 0.4]]
