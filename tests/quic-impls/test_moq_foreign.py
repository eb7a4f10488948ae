"""A viewer that shares no line with moq gets the broadcast of our server: moq-tokio, over the QUIC that
deployments of moq-net use."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.trial.content import content
from tests.support.live import live, track

FOLDER = REPOSITORY / "quic-impls" / "moq"
PATIENCE_S = 60


@pytest.fixture(scope="module")
def viewer() -> Path:
    """The program, which is built for this alone."""
    subprocess.run(["make", "--no-print-directory", "-C", FOLDER, "foreign"], check=True)
    return FOLDER / "build" / "foreign" / "release" / "moq-foreign"


@pytest.mark.slow
@pytest.mark.on_demand
@pytest.mark.parametrize("name", ["moq"])
@pytest.mark.parametrize("scheme", ["none", "rlc"])
def test_a_foreign_viewer_gets_the_bytes_of_each_track(
    viewer: Path, endpoints: Any, assignment: dict[str, Any], tmp_path: Path, scheme: str
) -> None:
    sizes = {"video": (40_000, 7000, 6000, 8000, 1, 30_000, 9000), "audio": (160,) * 12}
    workload = live(
        track("video", "group", *sizes["video"]), track("audio", "frame", *sizes["audio"], priority=2)
    )
    task = {**assignment, "workload": workload, "options": {"scheme": scheme}, "series": ["live"]}
    folder = tmp_path / "viewed"
    folder.mkdir()
    with endpoints.serving(task) as serving:
        subprocess.run(
            [
                *(viewer, f"moql://127.0.0.1:{task['port']}", task["authority"], task["server_name"]),
                *(folder, *sizes),
            ],
            check=True,
            timeout=PATIENCE_S,
            env={**os.environ, "RUST_LOG": "warn"},
        )
        serving.process.send_signal(signal.SIGTERM)
        _, events, _ = serving.end()
    assert [event["event"] for event in events] == ["done"], json.dumps(events)
    received = b"".join((folder / name).read_bytes() for name in sizes)
    assert received == content(task["content_seed"], sum(map(sum, sizes.values())))
