"""Two paths in virtual time: what was recorded of each path comes out again when the trial is replayed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from tests.support.campaigns import only_campaign

WANTED = [
    *("--filter", "point=0"),
    *("--filter", "workload=download-2000000"),
    *("--filter", "variant=two paths, RLC (3, 2)"),
]


def test_a_trial_over_two_paths_is_replayed_as_it_was(
    virtually: Callable[..., Path], fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    path, folder = virtually("multipath-smoke", *WANTED), tmp_path / "replayed"
    with only_campaign(path) as (database, campaign):
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


@pytest.mark.usefixtures("unmade")
def test_arms_of_which_one_had_ended_before_the_path_died_are_told_by_show_and_by_the_report(
    virtually: Callable[..., Path], fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    """The slower arm alone is still under way in one of the two networks."""
    catalogued = designs.catalogue()["multipath-handover"].read_text()
    head, _, tail = catalogued.partition("[plan]")
    _, _, tail = tail.partition("[constants]")
    plan = 'method = "list"\npoints = [{ path1.outage_from_s = 0.5 }, { path1.outage_from_s = 1.4 }]'
    factors = "path1.outage_from_s = { min = 0.2, max = 4 }"
    shrunk = tail.replace("12_500_000", "2_000_000").replace("queue_bdp", "owd_ms = 20\nqueue_bdp")
    design = f"{head}[plan]\n{plan}\n[factors]\n{factors}\n[constants]{shrunk}"
    arms = [("--filter", f"variant=lowest RTT, {arm}") for arm in ("FEC off", "RLC (3, 2, 20)")]
    filters = ["--filter", "repetition=0", *(word for arm in arms for word in arm)]
    path = virtually(design, *filters)
    warning = "in 1 of 2 pairs one trial met an outage that the other was spared"
    output = fecbench_here("show", "--db", path).stdout
    assert "met_outage" in output
    assert warning in output
    fecbench_here("report", "--db", path, "--output", tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text()
    assert warning in page
    assert '<td class="number">2, 1</td>' in page
