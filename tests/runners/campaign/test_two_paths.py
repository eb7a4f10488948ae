"""The worth of several paths, with real endpoints over emulated paths: each has its own round-trip time, two
carry twice as much, and one that dies costs little.

The tests compare durations, so trials are run one after another, and again while something disturbed them.
"""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fecbench import results
from tests.support.designs import Table, downloads, variant

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("can_run_trials")]

ONE_PATH = variant("one path", scheme="none", paths=1, baseline=True)
OVER_TCP = (
    variant("TCP, one path", "tcp", paths=1, congestion_control="cubic"),
    variant("TCP, two paths", "tcp", paths=2, congestion_control="cubic") | {"baseline": "TCP, one path"},
)
NEVER_S, AT_S = 1000, 0.3
DIRECTIONS = ("up", "down")


def design_of(
    size_bytes: int, scheduler: str, *more: Table, repetitions: int = 1, constants: Table, **keys: Table
) -> str:
    two_paths = variant("two paths", scheme="none", paths=2, scheduler=scheduler)
    return downloads(
        "two-paths",
        size_bytes,
        *(ONE_PATH, two_paths, *more),
        seed=16,
        topology="multipath",
        repetitions=repetitions,
        timeout_s=60,
        constants={"queue_bdp": 1.5, **constants},
        **keys,
    )


def dead(path: str, directions: tuple[str, ...]) -> Table:
    """A network in which a path dies, in these directions."""
    begins = {(link, way): NEVER_S for link in ("path1", "path2") for way in DIRECTIONS}
    begins |= {(path, way): AT_S for way in directions}
    return {f"{link}.{way}.outage_from_s": at_s for (link, way), at_s in begins.items()}


def trials(fecbench: Any, folder: Path, text: str, *options: str) -> pd.DataFrame:
    design, database = folder / "design.toml", folder / "x.sqlite"
    design.write_text(text)
    fecbench.run_until_ok(design, database, *options)
    with results.open(str(database)) as opened:
        frame: pd.DataFrame = opened["two-paths"].trials()
    return frame


def test_each_path_has_the_round_trip_time_of_its_link(fecbench: Any, tmp_path: Path) -> None:
    network = {"bandwidth_mbps": 100, "path1.owd_ms": 100, "path2.owd_ms": 10}
    few_bytes = 300_000  # so that no queue grows
    text = design_of(few_bytes, "round-robin", repetitions=3, constants=network)
    frame = trials(fecbench, tmp_path, text, "--filter", "variant=two paths")
    for end in ("client", "server"):
        for path, rtt_ms in {"path1": 200, "path2": 20}.items():
            measured = frame[f"{end}.{path}.smoothed_rtt_ms"].median()
            assert rtt_ms <= measured <= 1.1 * rtt_ms, (end, path)


def test_two_paths_carry_nearly_twice_as_much_as_one_and_as_much_as_multipath_tcp(
    fecbench: Any, tmp_path: Path
) -> None:
    network = {"bandwidth_mbps": 10, "owd_ms": 20}
    frame = trials(fecbench, tmp_path, design_of(20_000_000, "lowest-rtt", *OVER_TCP, constants=network))
    took_s = frame.set_index("variant")["client.dct_s"]
    assert took_s["one path"] >= 1.8 * took_s["two paths"]
    assert took_s["TCP, two paths"] >= 0.95 * took_s["two paths"]


def test_a_path_that_dies_costs_no_more_than_the_other_alone_and_finding_out(
    fecbench: Any, tmp_path: Path
) -> None:
    networks = {
        f"{path}, {' and '.join(directions)}": dead(path, directions)
        for path in ("path1", "path2")
        for directions in (("up",), ("down",), DIRECTIONS)
    }
    ends = {f"{path}.outage_to_s": NEVER_S + 1 for path in ("path1", "path2")}
    text = design_of(
        5_000_000,
        "lowest-rtt",
        plan={"method": "grid", "levels": {}},
        factors={"dead": {"linked": networks}},
        constants={"bandwidth_mbps": 10, "owd_ms": 20, **ends},
    )
    frame = trials(fecbench, tmp_path, text, "--filter", "variant=two paths")
    assert len(frame) == len(networks)
    # The first path as it is while the second one dies.
    alone = trials(fecbench, tmp_path, text, "--filter", "variant=one path", "--filter", "point=3")
    (other_s,) = alone.loc[alone["variant"] == "one path", "client.dct_s"]
    rtt_s = 2.5 * 0.04  # behind a full queue
    probe_s = 3 * rtt_s + 0.025  # RFC 9002, 6.2.1 with the deviation that a path begins with
    assert (frame["client.dct_s"] <= other_s + 2 * probe_s + 3 * rtt_s).all(), frame["client.dct_s"]
    lost = sum(frame[f"{path}.{way}.outage_dropped"] for path in ("path1", "path2") for way in DIRECTIONS)
    assert (lost > 0).all(), "every path died while it was in use"
