"""A campaign that was never run, whose one effect is known."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fecbench.results.store import stored_series
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from tests.support.campaigns import new_campaign, trial, variants, workload

OFF, XOR, RS = "FEC off", "XOR 4/5", "RS 4/5"


def write_campaign(
    path: Path,
    *,
    points: int,
    labels: tuple[str, ...] = (OFF, XOR),
    state: str = "ok",
    timed_out: tuple[str, ...] = (),
    unsupported: tuple[str, ...] = (),
) -> Path:
    """Store a campaign in which XOR helps above a loss of 3.5 %, and nothing else differs."""
    random = np.random.default_rng(1)
    drawing = [
        {"loss.p": random.uniform(0.01, 0.08), "owd_ms": random.uniform(100, 400)} for _ in range(points)
    ]
    window = stored_series.of_endpoint(
        "client", "cwnd", pa.table({"t_s": [0.0, 0.5], "window_bytes": [1, 2]})
    )
    with Database.open(str(path), create=True) as database:
        info = database.create_campaign(
            new_campaign(
                points=drawing,
                variants=variants(*labels, baseline=OFF),
                workloads=[workload("download-1000", size_bytes=1000)],
            )
        )
        records = []
        for point, factors in enumerate(drawing):
            for label in labels:
                helped = label == XOR and factors["loss.p"] > 0.035
                dct_s = math.exp(random.normal(0, 0.05)) * (0.7 if helped else 1)
                result = "timeout" if label in timed_out else "unsupported" if label in unsupported else state
                record = trial(
                    TrialKey(label, "download-1000", point, 0),
                    result,  # type: ignore[arg-type]
                    metrics={"client": {"dct_s": dct_s, "packets_lost": 0.0}},
                    series=[window],
                )
                records.append(record)
        database.record_all(info.id, records)
    return path


@pytest.fixture(scope="session")
def plant() -> Callable[..., Path]:
    """Writes a campaign of so many points into a new database at a path."""
    return write_campaign


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one campaign: 60 points, FEC off, XOR and RS."""
    return write_campaign(tmp_path_factory.mktemp("planted") / "p.sqlite", points=60, labels=(OFF, XOR, RS))


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same over 24 points, which are too few for rules: to look for these takes seconds."""
    return write_campaign(tmp_path_factory.mktemp("few") / "p.sqlite", points=24, labels=(OFF, XOR, RS))
