"""Where control groups with limits can be made, by what the kernel says of a machine."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest

from fecbench.runners.trial import cgroup
from fecbench.runners.trial.cgroup import MEMORY_BYTES, PROCESSES, Place, places

# As Debian 10 has them; the last is of systemd alone.
VERSION_1 = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,nosuid - cgroup cgroup rw,name=systemd
"""
# In a container, which sees its own cgroup as the root of the tree.
CONTAINER_1 = "35 31 0:32 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"


def test_version_1_has_a_tree_for_each_controller() -> None:
    own = "9:name=systemd:/x\n8:pids:/\n4:memory:/user.slice/session-1\n"
    assert places(VERSION_1, own) == [
        Place(1, Path("/sys/fs/cgroup/memory/user.slice/session-1"), ("memory",)),
        Place(1, Path("/sys/fs/cgroup/pids"), ("pids",)),
    ]


def test_in_a_container_the_path_begins_where_the_tree_does() -> None:
    found = places(CONTAINER_1, "4:memory:/docker/1f\n")
    assert found == [Place(1, Path("/sys/fs/cgroup/memory"), ("memory",))]


def version_2(tree: Path) -> str:
    return f"35 23 0:32 / {tree} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


def test_version_2_takes_the_nearest_cgroup_whose_children_are_counted(tmp_path: Path) -> None:
    slice_, scope = tmp_path / "user.slice", tmp_path / "user.slice/session-1.scope"
    scope.mkdir(parents=True)
    for folder, controllers in ((tmp_path, "cpu memory pids"), (slice_, "memory pids"), (scope, "")):
        (folder / "cgroup.subtree_control").write_text(f"{controllers}\n")
    assert places(version_2(tmp_path), "0::/user.slice/session-1.scope\n") == [
        Place(2, slice_, ("memory", "pids"))
    ]
    for folder in (tmp_path, slice_):
        (folder / "cgroup.subtree_control").write_text("hugetlb\n")
    assert places(version_2(tmp_path), "0::/user.slice/session-1.scope\n") == []


def test_a_place_has_limits_of_the_controllers_that_count_there() -> None:
    both = Place(2, Path("/x"), ("memory", "pids"))
    assert both.limits() == {"memory.max": MEMORY_BYTES, "memory.swap.max": 0, "pids.max": PROCESSES}
    assert Place(1, Path("/x"), ("pids",)).limits() == {"pids.max": PROCESSES}


def test_a_trial_may_have_more_processes_than_its_endpoints_can_start() -> None:
    from resource import RLIMIT_NPROC

    from fecbench.runners.sandbox.rights import LIMITS, USERS

    assert USERS * LIMITS[RLIMIT_NPROC] < PROCESSES


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is taken for a tree of cgroups."""
    monkeypatch.setattr(cgroup, "usable", lambda: (Place(2, tmp_path, ("pids",)),))
    return tmp_path


def test_only_cgroups_of_harnesses_that_are_gone_are_abandoned(place: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    abandoned = place / f"fecbench-{ended.pid}-abcd1234.77"
    kept = [
        place / f"fecbench-{os.getpid()}-abcd1234.77",
        place / f"fecbench-{ended.pid}-of-somebody-else",
        place / f"fecbench-{ended.pid}-12345678.78",
    ]
    for folder in (abandoned, *kept):
        folder.mkdir()
    (kept[-1] / "somebody").touch()  # it is not empty
    assert cgroup.remove_abandoned() == [abandoned]
    assert sorted(place.iterdir()) == sorted(kept)


def test_one_whose_processes_are_still_leaving_is_removed(place: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    abandoned = place / f"fecbench-{ended.pid}-abcd1234.77"
    abandoned.mkdir()
    (abandoned / "somebody").touch()
    leaving = Timer(0.02, (abandoned / "somebody").unlink)
    leaving.start()
    assert cgroup.remove_abandoned() == [abandoned]
    leaving.join()


def test_of_a_harness_only_its_own_are_removed(place: Path) -> None:
    for name in ("fecbench-1-abcd1234.77", "fecbench-1-abcd12345.77", "fecbench-11-abcd1234.77"):
        (place / name).mkdir()
    cgroup.remove("fecbench-1-abcd1234")
    assert {path.name for path in place.iterdir()} == {"fecbench-1-abcd12345.77", "fecbench-11-abcd1234.77"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes cgroups")
def test_where_none_can_be_made_there_is_none(tmp_path: Path) -> None:
    assert not cgroup._can_make(Place(1, tmp_path / "no-such-folder", ("pids",)))
