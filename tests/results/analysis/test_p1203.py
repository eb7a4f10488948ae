"""Documents of sessions for the model of ITU-T P.1203, by its README: units, places, order."""

import math
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from fecbench.results.analysis import frames, p1203
from fecbench.results.analysis.p1203 import document

LEVELS = [
    {"kbps": 200.0, "width": 320, "height": 240, "fps": 25.0, "sizes": [50_000, 50_000]},
    {"kbps": 9000.0, "width": 3840, "height": 2160, "fps": 50.0, "sizes": [2_250_000, 2_250_000]},
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


def test_of_a_viewer_who_left_what_was_shown_is_written_alone() -> None:
    segments = pd.DataFrame({"index": [0, 1], "level": [0, 0], "bytes": [50_000, 50_000]})
    stalls = pd.DataFrame({"t_s": [0.0], "length_s": [0.4]})
    for unplayed_s, lengths_s in ((0.0, [2.0, 2.0]), (0.5, [2.0, 1.5]), (2.0, [2.0]), (2.5, [1.5])):
        written = document(segments, stalls, {"segment_s": 2.0, "levels": LEVELS}, unplayed_s)
        for part in ("I11", "I13"):
            assert [segment["duration"] for segment in written[part]["segments"]] == lengths_s
        assert {segment["bitrate"] for segment in written["I13"]["segments"]} == {200.0}


def _documents(
    monkeypatch: pytest.MonkeyPatch, latencies_s: list[float], *, has_picture: bool = True
) -> dict[int, dict[str, Any] | None]:
    """The documents of sessions so late, by trial; 0: not live. `has_picture`: whether they have one."""
    ids = range(len(latencies_s))
    tables = {
        "segments": pd.DataFrame({"id": ids, "index": 0, "level": 0, "bytes": 50_000}),
        "stalls": pd.DataFrame({"id": ids, "t_s": 0.0, "length_s": 0.4}),
    }
    trials = []
    for trial, latency_s in enumerate(latencies_s):
        session = {"ladder": {"segment_s": 2.0, "levels": LEVELS}, "settings": {"live_latency_s": latency_s}}
        measured = {"unplayed_s": 0.0, **({"startup_s": 0.4} if has_picture else {})}
        record = SimpleNamespace(task={"pairs": [{"session": session}]}, metrics={"video": measured})
        trials.append(SimpleNamespace(id=trial, record=record))
    database = SimpleNamespace(series_columns=lambda _: tables, trials=lambda *_: trials)
    monkeypatch.setattr(frames, "series", lambda _database, _campaign, name: tables[name])
    return dict(p1203.sessions(database, SimpleNamespace(id=1, name="c")))  # type: ignore[arg-type]


def test_live_sessions_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(_documents(monkeypatch, [0.0, 3.0, 0.0])) == [0, 2]
    with pytest.raises(p1203.NoSessions, match="live video alone"):
        _documents(monkeypatch, [3.0])


class Standalone:
    """A replacement of the model, which no test may have: its score is the number of segments."""

    def __init__(self, session: dict[str, Any], quiet: bool) -> None:
        self._session, self._quiet = session, quiet

    def calculate_complete(self) -> dict[str, float]:
        return {"O46": len(self._session["I13"]["segments"])}


def test_scores_are_asked_of_the_model_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = [
        (7, {"I13": {"segments": [1, 2, 3]}}),
        *_documents(monkeypatch, [0.0], has_picture=False).items(),
    ]
    monkeypatch.setattr(p1203, "sessions", lambda *_: iter(sessions))
    with pytest.raises(p1203.NoModel, match="itu_p1203 is not installed"):
        p1203.scores(None, None)  # type: ignore[arg-type]
    package, module = ModuleType("itu_p1203"), ModuleType("itu_p1203.p1203_standalone")
    module.P1203Standalone = Standalone  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "itu_p1203", package)
    monkeypatch.setitem(sys.modules, "itu_p1203.p1203_standalone", module)
    assert p1203.scores(None, None) == {7: 3.0, 0: -math.inf}  # type: ignore[arg-type]
