"""Sessions of video as ITU-T P.1203 reads them: a document of mode 0 for each.

The model itself (`itu_p1203`) is for non-commercial research, and its licence forbids redistribution. Users
who accept it read these documents with the model. Bit rates are in kilobits of 1,000 bits; stalls are at
exact places in the video, the first at 0: the time before the first picture. A viewer who leaves has seen
the video up to there, and no more of it is written. Live video is left out: its player skips, and the model's
places know no skip. So is a session without a picture: the model has no word for it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from fecbench.results.analysis import frames
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from fecbench.whole_files import write_text

AUDIO_KBPS = 192
"""goDASH's: AAC at a constant rate."""
DEVICE = {"device": "pc", "displaySize": "1920x1080", "viewingDistance": "150cm"}
STREAM = 1
HIGHEST = 1080
"""Lines of the largest picture that the model takes."""
_NOTHING_S = 1e-6
"""A shorter part of a segment is none: sums of times are rounded."""

MODEL = "itu_p1203"
"""The module of the model. Users who accept its licence install it: it is no dependency, nor copied here."""


class NoModel(ImportError):
    """Says in one line what is missing."""


class NoSessions(ValueError):
    """Says in one line why a campaign has none."""


def write(database: Database, campaign: CampaignInfo, folder: Path) -> int:
    """Write each session with a picture as `TRIAL.json`; how many there are. Raises NoSessions, OSError."""
    count = 0
    folder.mkdir(parents=True, exist_ok=True)
    for trial, session in sessions(database, campaign):
        if session is not None:
            write_text(folder / f"{trial}.json", json.dumps(session, indent=1) + "\n")
            count += 1
    return count


def sessions(database: Database, campaign: CampaignInfo) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The number and the document of each session; None: it showed no picture. Raises NoSessions."""
    if not {"segments", "stalls"} <= set(database.series_columns(campaign.id)):
        raise NoSessions(f"campaign {campaign.name!r} has no session of video")
    segments, stalls = (
        dict(list(frames.series(database, campaign, name).groupby("id"))) for name in ("segments", "stalls")
    )
    played, live = 0, 0
    for trial in database.trials(campaign.id, ["ok"]):
        session = trial.record.task["pairs"][0].get("session")
        if session is None:
            continue
        if session["settings"]["live_latency_s"]:
            live += 1
            continue
        played += 1
        measured = trial.record.metrics["video"]
        if "startup_s" not in measured:
            yield trial.id, None
        elif trial.id in segments and trial.id in stalls:
            rows = segments[trial.id], stalls[trial.id]
            yield trial.id, document(*rows, session["ladder"], measured["unplayed_s"])
    if live and not played:
        raise NoSessions(
            f"campaign {campaign.name!r} has live video alone, which ITU-T P.1203 does not judge"
        )


def scores(database: Database, campaign: CampaignInfo) -> dict[int, float]:
    """The score O.46 of each session, by its trial, from 1 to 5; -∞ of one without a picture. Raises NoModel
    and NoSessions."""
    try:
        standalone = import_module(f"{MODEL}.p1203_standalone").P1203Standalone
    except ImportError:
        raise NoModel(
            f"Scores of ITU-T P.1203 are not drawn: the module {MODEL} is not installed. Its licence allows"
            " research that earns nothing; fecbench export --p1203 writes what it reads."
        ) from None
    return {
        trial: -math.inf
        if session is None
        else float(standalone(session, quiet=True).calculate_complete()["O46"])
        for trial, session in sessions(database, campaign)
    }


def document(
    segments: pd.DataFrame, stalls: pd.DataFrame, ladder: Mapping[str, Any], unplayed_s: float = 0.0
) -> dict[str, Any]:
    """The document of one session, by its series, its ladder, and how much of the video was never shown."""
    whole = segments.groupby("index").agg({"level": "first", "bytes": "sum"})
    segment_s, videos, sounds = float(ladder["segment_s"]), [], []
    shown_s = len(ladder["levels"][0]["sizes"]) * segment_s - unplayed_s
    for place, (_, row) in enumerate(whole.iterrows()):
        level = ladder["levels"][int(row["level"])]
        start = place * segment_s
        length_s = min(segment_s, shown_s - start)
        if length_s <= _NOTHING_S:
            break
        videos.append(
            {
                "bitrate": 8e-3 * float(row["bytes"]) / segment_s,
                "codec": "h264",
                "duration": length_s,
                "fps": level["fps"],
                "resolution": _resolution(level),
                "start": start,
            }
        )
        sounds.append({"bitrate": AUDIO_KBPS, "codec": "aaclc", "duration": length_s, "start": start})
    stalling = stalls[["t_s", "length_s"]].to_numpy(dtype=float).tolist()
    return {
        "I11": {"segments": sounds, "streamId": STREAM},
        "I13": {"segments": videos, "streamId": STREAM},
        "I23": {"stalling": stalling, "streamId": STREAM},
        "IGen": dict(DEVICE),
    }


def _resolution(level: Mapping[str, Any]) -> str:
    width, height = int(level["width"]), int(level["height"])
    if height > HIGHEST:
        width, height = round(width * HIGHEST / height), HIGHEST
    return f"{width}x{height}"
