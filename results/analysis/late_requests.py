"""Whether the machine took part in sessions of video: by how much requests were read later than decided."""

from __future__ import annotations

from fecbench.results.analysis import frames
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

BOUND_MS = 2.0
_LAG = "video.request_lag_p99_ms"


def sentences(database: Database, campaign: CampaignInfo) -> list[str]:
    """Return the number of emulated sessions that had requests later than the bound; nothing if none had."""
    if campaign.engine == "virtual" or not any(
        workload["name"] == "video" for workload in campaign.workloads
    ):
        return []
    frame = frames.trials(database, campaign, [_LAG])
    if _LAG not in frame:  # no session had a request
        return []
    lags = frame.loc[frame["state"] == "ok", _LAG].dropna()
    late = int((lags > BOUND_MS).sum())
    if not late:
        return []
    return [
        f"In {late} of {len(lags)} sessions of video, 1 % of requests or more came over {BOUND_MS:g} ms late"
        f" (median of these sessions {lags[lags > BOUND_MS].median():.1f} ms): the machine took part in them."
    ]
