"""Two paths in virtual time: what was recorded of each path comes out again when the trial is replayed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from results.store.database import Database

WANTED = [
    *("--filter", "point=0"),
    *("--filter", "workload=download-2000000"),
    *("--filter", "variant=two paths, RLC (3, 2)"),
]


def test_a_trial_over_two_paths_is_replayed_as_it_was(
    fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    path, folder = tmp_path / "x.sqlite", tmp_path / "replayed"
    ran = fecbench_here("run", "multipath-smoke", "--engine", "virtual", "--db", path, *WANTED)
    assert ran.returncode == 0, ran.stderr
    with Database.open(str(path)) as database:
        (campaign,) = database.campaigns()
        (trial,) = database.trials(campaign.id)
    links, server = trial.record.links, trial.record.metrics["server"]
    assert all(links[link]["directions"]["down"]["frames_in"] > 100 for link in ("path1", "path2"))
    assert server["path1.recovered"] > 0 < server["path2.recovered"]
    directions = {link: links[link]["directions"].values() for link in links}
    out = {link for link in links if any(way.get("outage_dropped") for way in directions[link])}
    assert out == {"path2"}

    replayed = fecbench_here("replay", trial.id, "--db", path, "--output", folder)
    assert replayed.returncode == 0, replayed.stderr
    assert f"ok, digest {trial.record.checks['digest']}, as recorded" in replayed.stdout
    assert {file.name for file in folder.iterdir()} >= {"client.pcapng", "server.pcapng", "replay.json"}
