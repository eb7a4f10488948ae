"""Sessions of video in which the machine took part are told."""

from pathlib import Path

import pytest

from fecbench.results.analysis import late_requests
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from tests.support.campaigns import new_campaign, trial, variants, workload


@pytest.mark.parametrize(
    ("engine", "name", "lags", "told"),
    [
        ("local", "video", [1.9, 2.1, 4.1], "In 2 of 3 sessions of video"),
        ("local", "video", [1.9, 2.0, 0.5], ""),
        ("local", "video", [None, None, None], ""),
        ("virtual", "video", [3.0, 3.0, 3.0], ""),
        ("local", "download", [3.0, 3.0, 3.0], ""),
    ],
)
def test_late_requests_of_emulated_sessions_are_told(
    engine: str, name: str, lags: list[float | None], told: str, tmp_path: Path
) -> None:
    with Database.open(str(tmp_path / "d.sqlite"), create=True) as database:
        campaign = database.create_campaign(
            new_campaign(
                repetitions=3,
                provenance={"engine": engine},
                variants=variants("off"),
                workloads=[workload(name, name)],
            )
        )
        for repetition, lag in enumerate(lags):
            metrics = {"client": {"dct_s": 1.0}}
            if lag is not None:
                metrics["video"] = {"request_lag_p99_ms": lag}
            database.record(campaign.id, trial(TrialKey("off", name, 0, repetition), metrics=metrics))
        sentences = late_requests.sentences(database, campaign)
    assert [sentence.partition(", 1 %")[0] for sentence in sentences] == ([told] if told else [])
